//! The toolbox with the in-process MAVSDK, on a paused clock: only computation takes real time.

#![allow(dead_code, reason = "each test uses a part")]

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use drone::Fleet;
use ovos_toolbox_sdk::serde_json::{Value, json};
use px4_sim::control::Truth;
use px4_sim::log::What;
use px4_sim::scene::Scene;
use px4_sim::{Home, Mode, Quirk, Quirks, Vehicle, World};

use crate::fake_mavsdk::{FakeMavsdk, Sim};

/// A booted vehicle on the ground, and the toolbox that is connected to it.
#[derive(Clone)]
pub(crate) struct Paused {
    pub(crate) fake: FakeMavsdk,
    pub(crate) fleet: Arc<Fleet>,
}

/// All quirks of real PX4 except drift while hovering and on the ground, for measurements to the centimetre.
/// `random_missions.rs` flies with drift.
pub(crate) fn steady() -> Quirks {
    let mut quirks = Quirks::all();
    quirks.set(Quirk::HoverWanders, false);
    quirks.set(Quirk::GroundDrifts, false);
    quirks
}

/// Runs a flight of a [`steady`] vehicle on a runtime of its own.
pub(crate) fn fly<F: Future<Output = ()>>(config: Value, world: World, flight: impl FnOnce(Paused) -> F) {
    fly_this(config, Vehicle::new(Home::default(), steady(), world), flight);
}

/// A world without objects and obstacles.
pub(crate) fn empty() -> World {
    World {
        things: Vec::new(),
        ..World::default()
    }
}

/// Like [`fly`], in an empty world and from a hover at this height.
pub(crate) fn airborne<F: Future<Output = ()>>(config: Value, alt_m: f64, flight: impl FnOnce(Paused) -> F) {
    fly(config, empty(), async |paused| {
        paused.take_off(alt_m).await;
        flight(paused).await;
    });
}

/// Like [`fly`], with the given vehicle.
pub(crate) fn fly_this<F: Future<Output = ()>>(
    config: Value,
    vehicle: Vehicle,
    flight: impl FnOnce(Paused) -> F,
) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .expect("a runtime");
    runtime.block_on(async { flight(Paused::begin(config, vehicle).await).await });
}

impl Paused {
    async fn begin(config: Value, mut vehicle: Vehicle) -> Self {
        vehicle.drain = 0.0;
        let fake = FakeMavsdk::start(vehicle);
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
        let paused = Self { fake, fleet };
        paused.pass(6.0).await;
        paused
    }

    /// Lets vehicle time pass.
    pub(crate) async fn pass(&self, seconds: f64) {
        tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
    }

    /// Simulated seconds since the start.
    pub(crate) fn time(&self) -> f64 {
        self.fake.lock().vehicle.time()
    }

    /// The vehicle's true state.
    pub(crate) fn truth(&self) -> Value {
        json!(Truth::of(&self.fake.lock().vehicle))
    }

    pub(crate) fn mode(&self) -> Mode {
        self.fake.lock().vehicle.mode()
    }

    /// Calls a tool that has to succeed.
    pub(crate) async fn ok(&self, tool: &str, args: Value) -> Value {
        let answer = self.fleet.call(tool, args.clone()).await;
        assert_eq!(answer["ok"], true, "{tool} {args}: {answer}\n{}", self.story());
        answer
    }

    /// Arms and takes off.
    pub(crate) async fn take_off(&self, alt_m: f64) {
        self.ok("arm", json!({})).await;
        self.ok("takeoff", json!({"alt_m": alt_m})).await;
    }

    /// Starts a call, acts on the simulation once `when` holds, and returns the answer and the time of the action.
    pub(crate) async fn in_the_middle(
        &self,
        tool: &str,
        args: Value,
        when: impl Fn(&Sim) -> bool,
        happen: impl Fn(&mut Sim),
    ) -> (Value, f64) {
        let call = self.fleet.call(tool, args);
        tokio::pin!(call);
        loop {
            let step = tokio::time::timeout(Duration::from_millis(50), &mut call).await;
            assert!(step.is_err(), "{tool} ended before: {step:?}\n{}", self.story());
            let mut sim = self.fake.lock();
            if when(&sim) {
                happen(&mut sim);
                break;
            }
        }
        let then = self.time();
        let answer = tokio::time::timeout(Duration::from_secs(300), call).await;
        (answer.expect("the call ends"), then)
    }

    /// The commands that reached the vehicle at or after this time, without setpoints.
    pub(crate) fn commands_since(&self, t: f64) -> Vec<String> {
        let sim = self.fake.lock();
        let command = |what: &What| match what {
            What::Command { name, .. } => Some(name.clone()),
            _ => None,
        };
        let since = sim.vehicle.log.since(0).filter(|entry| entry.t >= t);
        since.filter_map(|entry| command(&entry.what)).collect()
    }

    /// Number of setpoints that reached the vehicle at or after this time.
    pub(crate) fn setpoints_since(&self, t: f64) -> usize {
        let sim = self.fake.lock();
        let setpoint = |what: &What| matches!(what, What::Setpoint { .. });
        let since = sim.vehicle.log.since(0).filter(|entry| entry.t >= t);
        since.filter(|entry| setpoint(&entry.what)).count()
    }

    /// A log of events for failure messages.
    pub(crate) fn story(&self) -> String {
        let sim = self.fake.lock();
        let log = sim
            .vehicle
            .log
            .since(0)
            .filter(|entry| !matches!(entry.what, What::Setpoint { .. }));
        let lines: Vec<String> = log
            .map(|entry| format!("{:.2} {:?}", entry.t, entry.what))
            .collect();
        lines[lines.len().saturating_sub(40)..].join("\n")
    }
}
