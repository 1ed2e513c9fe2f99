//! Random calls in random order with random arguments: the vehicle stays inside its fence with the margin and between
//! floor and ceiling, moves only while a call runs, and every answer is true.
//!
//! A thousand seeded calls against the vehicle model of px4-sim with all its quirks, through gRPC in this process, on
//! virtual time; ten thousand in `make proofs`. `DRONE_SEED` replays one seed, `DRONE_CALLS` sets the number of calls.
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use drone::Fleet;
use ovos_toolbox_sdk::serde_json::{Value, json};
use px4_sim::control::Truth;
use px4_sim::geo::{difference, length};
use px4_sim::log::{Cause, What};
use px4_sim::scene::Scene;
use px4_sim::{Landed, Quirk, Vehicle};

use crate::fake_mavsdk::FakeMavsdk;
use crate::hostile::{Caller, READS, happened, shown};

const RADIUS_M: f64 = 25.0;
const MARGIN_M: f64 = 3.0;
const CEILING_M: f64 = 30.0;
const FLOOR_M: f64 = 0.5;
/// Telemetry has a resolution of centimetres.
const SLACK_M: f64 = 0.02;

struct Flight {
    fake: FakeMavsdk,
    fleet: Arc<Fleet>,
    caller: Caller,
    story: Vec<String>,
    tally: BTreeMap<String, (u32, f64)>,
}

impl Flight {
    async fn begin(seed: u64) -> Self {
        let mut vehicle = Vehicle::default();
        // Without drift, so that any motion outside a call is visible; random_missions.rs flies with it.
        vehicle.quirks.set(Quirk::HoverWanders, false);
        vehicle.quirks.set(Quirk::GroundDrifts, false);
        vehicle.drain = 0.0;
        let fake = FakeMavsdk::start(vehicle);
        let config = json!({"fence": {"radius_m": RADIUS_M}, "flight_limits": {"max_replans": 1000}});
        let fleet = Arc::new(Fleet::over(fake.channel(), config).expect("a good configuration"));
        let (watched, feeding) = (fake.clone(), Arc::clone(&fleet));
        tokio::spawn(async move {
            let mut clock = tokio::time::interval(Duration::from_millis(200));
            loop {
                clock.tick().await;
                let scene = Scene::of(&watched.lock().vehicle, feeding.unix());
                feeding.see(json!(scene));
            }
        });
        tokio::time::sleep(Duration::from_secs(6)).await;
        Self {
            fake,
            fleet,
            caller: Caller::new(seed),
            story: Vec::new(),
            tally: BTreeMap::new(),
        }
    }

    /// One call, sometimes stopped midway, and the checks after it.
    async fn one(&mut self) {
        let (in_air, armed) = {
            let sim = self.fake.lock();
            (sim.vehicle.landed() != Landed::OnGround, sim.vehicle.armed())
        };
        let (tool, args) = self.caller.next(in_air, armed);
        let began = self.fake.lock().vehicle.time();
        self.story.push(format!("{began:.1} {tool} {}", shown(&args)));
        let call = self.fleet.call(tool, args.clone());
        // Only an emergency stop ends a safe call.
        let safe = matches!(tool, "land" | "rtl" | "hold" | "disarm");
        let stop = self.caller.interruption();
        match stop.filter(|(_, emergency)| *emergency || !safe) {
            None => {
                let answer = tokio::time::timeout(Duration::from_secs(1200), call).await;
                let answer = answer.unwrap_or_else(|_| self.fail(&format!("{tool} was never answered")));
                self.judge(tool, &args, &answer);
                self.remember(tool, began, &answer);
                // The service latches after both, and refuses motion until an operator lifts the latch.
                if tool == "emergency_brake" || answer["code"] == "pilot_override" {
                    self.resume().await;
                }
            }
            Some((after, emergency)) => {
                tokio::pin!(call);
                // A stop, as the service makes it: drop the call, then halt everything.
                let ended = tokio::time::timeout(after, &mut call).await;
                if let Ok(answer) = ended {
                    self.judge(tool, &args, &answer);
                } else {
                    self.story
                        .push(format!("{:.1} stop {emergency}", self.fake.lock().vehicle.time()));
                }
                let _ = self.fleet.halt(emergency).await;
                if emergency {
                    self.resume().await;
                }
            }
        }
        self.bounds();
        if self.caller.rests() {
            self.still().await;
        } else {
            tokio::time::sleep(self.caller.pause()).await;
        }
    }

    /// Records how the call ended, for the story and the tally.
    fn remember(&mut self, tool: &str, began: f64, answer: &Value) {
        let how = match (answer["ok"].as_bool(), answer["code"].as_str()) {
            (Some(true), _) => "ok",
            (_, Some(code)) => code,
            _ => "told",
        };
        let took = self.fake.lock().vehicle.time() - began;
        self.story
            .push(format!("    {how} after {took:.1} s: {}", answer["msg"]));
        if how == "pilot_override" && !self.another_pilot_acted(began) {
            self.fail(&format!("{tool} blames another party, and none has acted"));
        }
        let kept = self.tally.entry(format!("{tool} {how}")).or_default();
        kept.0 += 1;
        kept.1 += took;
    }

    /// Whether the vehicle changed its mode or disarmed without a command, shortly before or during a call.
    fn another_pilot_acted(&self, began: f64) -> bool {
        let sim = self.fake.lock();
        let recent = sim.vehicle.log.next_seq().saturating_sub(2000);
        sim.vehicle.log.since(recent).any(|entry| {
            let cause = match entry.what {
                What::Mode { cause, .. } => cause,
                What::Armed { armed: false, cause } => cause,
                _ => return false,
            };
            cause != Cause::Command && entry.t > began - 3.0
        })
    }

    /// Lifts the latch as an operator, after the vehicle came to rest.
    async fn resume(&self) {
        tokio::time::sleep(Duration::from_secs(5)).await;
        if let Err(why) = self.fleet.resume() {
            self.fail(&format!("the latch could not be lifted: {why}"));
        }
    }

    /// Without a call nothing moves, after the vehicle came to rest.
    async fn still(&self) {
        tokio::time::sleep(Duration::from_secs(12)).await;
        let before = self.fake.lock().vehicle.body().position;
        tokio::time::sleep(Duration::from_secs(5)).await;
        let after = self.fake.lock().vehicle.body().position;
        let moved = length(difference(after, before));
        if moved > 0.1 {
            self.fail(&format!("it moved {moved:.2} m without a call"));
        }
        self.bounds();
    }

    fn bounds(&self) {
        let (seen, fence) = {
            let sim = self.fake.lock();
            (sim.vehicle.excursions(), sim.vehicle.fence().1)
        };
        let depth = seen.fence_depth_m.unwrap_or(f64::NEG_INFINITY);
        let radius = RADIUS_M - seen.radius_m;
        if !fence || depth.min(radius) < MARGIN_M - SLACK_M {
            self.fail(&format!(
                "it came within {depth:.2} m of the fence, {MARGIN_M} are kept"
            ));
        }
        if seen.up_m > CEILING_M + SLACK_M {
            self.fail(&format!("it rose to {:.2} m", seen.up_m));
        }
        if seen.lowest_m.is_some_and(|lowest| lowest < FLOOR_M - SLACK_M) {
            self.fail(&format!(
                "it sank to {:?} m, and no call landed it",
                seen.lowest_m
            ));
        }
    }

    /// An answer has `ok`, and `ok` is true only if the effect happened.
    fn judge(&self, tool: &str, args: &Value, answer: &Value) {
        let ok = answer["ok"].as_bool();
        if ok.is_none() && !READS.contains(&tool) {
            self.fail(&format!("{tool} was answered without ok: {answer}"));
        }
        let truth = json!(Truth::of(&self.fake.lock().vehicle));
        if ok == Some(true) && !happened(tool, args, answer, &truth) {
            self.fail(&format!(
                "{tool} {args} was answered with ok and did not happen: {answer}"
            ));
        }
    }

    fn fail(&self, what: &str) -> ! {
        let last = self.story.len().saturating_sub(25);
        let sim = self.fake.lock();
        let truth = Truth::of(&sim.vehicle);
        let log: Vec<String> = sim
            .vehicle
            .log
            .since(sim.vehicle.log.next_seq().saturating_sub(400))
            .filter(|entry| !matches!(entry.what, What::Setpoint { .. }))
            .map(|entry| format!("{:.2} {:?}", entry.t, entry.what))
            .collect();
        panic!(
            "{what}\nafter {} calls of DRONE_SEED={}; the last:\n{}\nthe vehicle:\n{}\n{}",
            self.story.len(),
            self.caller.seed,
            self.story[last..].join("\n"),
            log[log.len().saturating_sub(30)..].join("\n"),
            json!(truth)
        );
    }
}

/// Runs one thread's share of the calls on a runtime with its own paused clock.
fn check(seed: u64) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let seed = number("DRONE_SEED").unwrap_or(seed);
    let calls = number("DRONE_CALLS").unwrap_or(250);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let began = std::time::Instant::now();
        let mut flight = Flight::begin(seed).await;
        for _ in 0..calls {
            flight.one().await;
        }
        flight.still().await;
        let sim = flight.fake.lock();
        let seen = sim.vehicle.excursions();
        eprintln!(
            "seed {seed}: {calls} calls, {:.0} s of flight in {:.1} s, {seen:?}",
            sim.vehicle.time(),
            began.elapsed().as_secs_f64()
        );
        for (how, (count, seconds)) in &flight.tally {
            eprintln!("{count:6} {:8.1} s {how}", seconds);
        }
        // A run without flights proves nothing.
        assert!(seen.path_m > calls as f64 * 0.2, "{seen:?}");
    });
}

#[test]
fn random_calls_stay_within_the_limits_seed_1() {
    check(1);
}

#[test]
fn random_calls_stay_within_the_limits_seed_2() {
    check(2);
}

#[test]
fn random_calls_stay_within_the_limits_seed_3() {
    check(3);
}

#[test]
fn random_calls_stay_within_the_limits_seed_4() {
    check(4);
}
