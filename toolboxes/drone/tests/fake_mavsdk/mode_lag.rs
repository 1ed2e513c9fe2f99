//! Takeovers that are not reported yet: the vehicle reports its flight mode once a second. On virtual time.
use drone::Caller;
use ovos_toolbox_sdk::serde_json::{Value, json};
use px4_sim::Mode;
use px4_sim::log::Cause;

use crate::fake_mavsdk::ModeReports;
use crate::paused::{Paused, airborne};

const MODEL: Caller = Caller {
    operator: false,
    latched: false,
};
const OPERATOR: Caller = Caller {
    operator: true,
    latched: false,
};

/// The pilot takes over, and a tenth of a second passes. Returns a time after the pilot's own command.
async fn taken_over(paused: &Paused) -> f64 {
    paused.fake.lock().vehicle.set_mode(Mode::Posctl, Cause::Pilot);
    let then = paused.time() + 0.005;
    paused.pass(0.1).await;
    then
}

/// The toolbox knows of the takeover, and from now on sends nothing.
async fn left_alone(paused: &Paused, what: &str) {
    let state = paused.fleet.call("vehicle_state", json!({})).await;
    let how = &state["safety"]["pilot_override"];
    assert!(
        how.as_str().is_some_and(|how| how.contains("POSCTL")),
        "{what}: {state}\n{}",
        paused.story()
    );
    let then = paused.time() + 0.005;
    for (tool, args) in commanding() {
        let answer = paused.fleet.call_as(MODEL, tool, args).await;
        assert_eq!(answer["code"], "pilot_override", "{what}, then {tool}: {answer}");
    }
    paused.pass(20.0).await;
    assert_eq!(paused.commands_since(then), Vec::<String>::new(), "{what}");
}

/// Leaves mode Hold, so that `hold` has something to send.
async fn offboard(paused: &Paused) {
    paused.ok("turn_cw", json!({"deg": 5})).await;
    paused.pass(2.0).await;
}

/// The simulator's names of what the first tools of [`commanding`] send, the safe ones.
const SAFE: [&str; 3] = ["set_mode hold", "land", "set_mode return"];

/// Tools that command a vehicle in the air.
fn commanding() -> [(&'static str, Value); 7] {
    let there = json!({"lat": 47.397_8, "lon": 8.545_594, "alt_m": 6});
    [
        ("hold", json!({"ms": 0})),
        ("land", json!({})),
        ("rtl", json!({})),
        ("goto_gps", there.clone()),
        ("goto_local", json!({"north_m": 5, "east_m": 0, "down_m": -6})),
        ("turn_cw", json!({"deg": 45})),
        ("follow_path", json!({"waypoints": [there]})),
    ]
}

#[test]
fn a_pilot_who_took_over_just_now_keeps_the_vehicle() {
    for (tool, args) in commanding() {
        for wait_s in [0.0, 0.3, 0.6] {
            let args = args.clone();
            airborne(json!({}), 6.0, |paused| async move {
                paused.pass(2.0 + wait_s).await;
                let then = taken_over(&paused).await;
                let answer = paused.fleet.call_as(MODEL, tool, args).await;
                let sent = paused.commands_since(then);
                assert_eq!(
                    (answer["code"].as_str(), sent, paused.mode()),
                    (Some("pilot_override"), Vec::new(), Mode::Posctl),
                    "{tool} after {wait_s}: {answer}"
                );
                left_alone(&paused, tool).await;
            });
        }
    }
}

#[test]
fn an_operator_takes_it_back_knowingly() {
    airborne(json!({}), 6.0, |paused| async move {
        taken_over(&paused).await;
        let answer = paused.fleet.call_as(OPERATOR, "hold", json!({"ms": 0})).await;
        assert_eq!(answer["ok"], true, "{answer}");
        assert_eq!(paused.mode(), Mode::Hold);
        left_alone(&paused, "hold of an operator").await;
    });
}

/// A stop asks for nothing before it acts. A vehicle that reports its mode only once a second is overridden; a pilot gets
/// it back, but not after an emergency stop.
#[test]
fn a_stop_that_overrides_a_pilot_is_noticed_and_is_the_last_command() {
    for (emergency, sent) in [
        (true, &["set_mode hold"][..]),
        (false, &["set_mode hold", "set_mode posctl"]),
    ] {
        airborne(json!({}), 6.0, |paused| async move {
            paused.pass(2.3).await;
            paused.fake.lock().modes_every_s = None;
            let then = taken_over(&paused).await;
            paused.fleet.halt(emergency).await.unwrap();
            let since = paused.time() - then;
            assert!(since < 0.2, "the stop took {since} s");
            assert_eq!(paused.mode(), Mode::Hold);
            paused.pass(0.1).await;
            left_alone(&paused, "a stop").await;
            assert_eq!(paused.commands_since(then), sent);
        });
    }
}

/// A vehicle that reports its mode as it changes is not overridden.
#[test]
fn a_stop_after_a_takeover_that_is_known_sends_nothing() {
    for emergency in [true, false] {
        airborne(json!({}), 6.0, |paused| async move {
            offboard(&paused).await;
            let then = taken_over(&paused).await;
            paused.fleet.halt(emergency).await.unwrap();
            left_alone(&paused, "a stop").await;
            assert_eq!(paused.commands_since(then), Vec::<String>::new());
            assert_eq!(paused.mode(), Mode::Posctl);
        });
    }
}

fn number(name: &str, default: u64) -> u64 {
    let set = std::env::var(name).ok();
    set.and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// A pilot takes over from 0 to 100 ms before a command arrives, also between the vehicle's last report of its mode and
/// the command. `PILOTS` sets how often.
#[test]
fn a_pilot_who_takes_over_around_a_command_has_the_vehicle() {
    for seed in 1..=number("PILOTS", 21) {
        let mut random = fastrand::Rng::with_seed(seed);
        let (tool, args) = commanding()[random.usize(0..7)].clone();
        let (command_s, switch_s) = (0.1 * random.f64(), 0.2 * random.f64());
        let what = format!(
            "seed {seed}: {tool}, the command after {command_s:.3} s, the switch after {switch_s:.3} s"
        );
        airborne(json!({}), 6.0, |paused| async move {
            offboard(&paused).await;
            paused.pass(1.0 + seed as f64 / 97.0).await;
            paused.fake.lock().command_delay_s = command_s;
            let then = paused.time() + switch_s;
            let takes_over = async {
                paused.pass(switch_s).await;
                paused.fake.lock().vehicle.set_mode(Mode::Posctl, Cause::Pilot);
            };
            let call = paused.fleet.call_as(MODEL, tool, args);
            let (answer, ()) = tokio::join!(call, takes_over);
            paused.pass(2.0).await;
            assert_eq!(
                paused.mode(),
                Mode::Posctl,
                "{what}: {answer}\n{}",
                paused.story()
            );
            // The call may have done its work before the switch.
            assert!(
                answer["code"] == "pilot_override" || answer["ok"] == true && tool == "hold",
                "{what}: {answer}"
            );
            left_alone(&paused, &what).await;
            let sent = paused.commands_since(then + 0.3);
            let given_back = sent.iter().all(|command| command == "set_mode posctl");
            assert!(given_back, "{what}: {sent:?}");
            assert!(paused.fleet.resume().is_err(), "{what}: a pilot flies");
        });
    }
}

/// A model repeats `hold`, and the pilot takes over at any moment: nothing is sent, so the pilot is never overridden.
#[test]
fn a_hold_while_it_holds_sends_nothing() {
    for seed in 1..=number("PILOTS", 21) / 3 {
        airborne(json!({}), 6.0, |paused| async move {
            let mut random = fastrand::Rng::with_seed(seed);
            paused.ok("hold", json!({"ms": 0})).await;
            paused.fake.lock().delay_s = 0.03 * random.f64();
            let then = paused.time() + 0.5 + 1.5 * random.f64();
            let mut taken_at = None;
            let repeated = async {
                loop {
                    let answer = paused.fleet.call_as(MODEL, "hold", json!({"ms": 0})).await;
                    if answer["ok"] != true {
                        break answer;
                    }
                    paused.pass(0.01).await;
                }
            };
            let pilot = async {
                paused.pass(then - paused.time()).await;
                paused.fake.lock().vehicle.set_mode(Mode::Posctl, Cause::Pilot);
                taken_at = Some(paused.time());
            };
            let began = paused.time();
            let (answer, ()) = tokio::join!(repeated, pilot);
            let late = paused.time() - taken_at.unwrap();
            assert_eq!(answer["code"], "pilot_override", "seed {seed}: {answer}");
            assert!(late < 0.4, "seed {seed}: noticed after {late} s");
            paused.fake.lock().delay_s = 0.0;
            left_alone(&paused, "repeated holds").await;
            assert_eq!(
                paused.commands_since(began),
                ["set_mode posctl"],
                "seed {seed}: only the pilot's own"
            );
            assert_eq!(paused.mode(), Mode::Posctl, "seed {seed}");
        });
    }
}

/// The pilot takes over after the vehicle has reported its mode and before the command arrives.
#[test]
fn a_command_that_crosses_a_takeover_is_noticed_and_is_the_last_one() {
    for ((tool, args), first) in commanding().into_iter().zip(SAFE) {
        airborne(json!({}), 6.0, |paused| async move {
            offboard(&paused).await;
            paused.fake.lock().delay_s = 0.2;
            paused.pass(2.3).await;
            let then = paused.time();
            let takes_over = async {
                paused.pass(0.3).await;
                paused.fake.lock().vehicle.set_mode(Mode::Posctl, Cause::Pilot);
            };
            let call = paused.fleet.call_as(MODEL, tool, args);
            let (answer, ()) = tokio::join!(call, takes_over);
            assert_eq!(
                answer["code"],
                "pilot_override",
                "{tool}: {answer}\n{}",
                paused.story()
            );
            assert!(
                answer["msg"].as_str().unwrap().contains("on its way"),
                "{tool}: {answer}"
            );
            paused.pass(1.5).await;
            paused.fake.lock().delay_s = 0.0;
            left_alone(&paused, tool).await;
            // The pilot's own, ours, and the pilot's mode again.
            let sent = ["set_mode posctl", first, "set_mode posctl"];
            assert_eq!(paused.commands_since(then), sent, "{tool}");
            assert_eq!(paused.mode(), Mode::Posctl, "{tool}");
        });
    }
}

/// A vehicle that does not answer, and one that reports no mode at all.
#[test]
fn safe_tools_do_not_wait_for_a_report_and_motion_does() {
    for reports in [ModeReports::Timed, ModeReports::Missing] {
        for ((tool, args), sent) in commanding().into_iter().zip(SAFE) {
            airborne(json!({}), 6.0, |paused| async move {
                offboard(&paused).await;
                paused.fake.lock().mode_reports = reports;
                let then = paused.time() + 0.005;
                let call = paused.fleet.call_as(MODEL, tool, args);
                let late = async {
                    paused.pass(0.4).await;
                    paused.commands_since(then)
                };
                let (_, commands) = tokio::join!(call, late);
                assert_eq!(commands, [sent], "{reports:?}\n{}", paused.story());
            });
        }
    }
    for (reports, code) in [
        (ModeReports::Timed, "pilot_override"),
        (ModeReports::Missing, "stale_telemetry"),
    ] {
        airborne(json!({}), 6.0, |paused| async move {
            paused.pass(2.3).await;
            paused.fake.lock().mode_reports = reports;
            paused.fake.lock().modes_every_s = None;
            let then = taken_over(&paused).await;
            let answer = paused.fleet.call_as(MODEL, "turn_cw", json!({"deg": 45})).await;
            assert_eq!(answer["code"], code, "{reports:?}: {answer}");
            assert_eq!(paused.commands_since(then), Vec::<String>::new());
        });
    }
}
