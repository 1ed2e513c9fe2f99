//! What only an operator may do: take back a vehicle after a takeover, and send it home in emergency stop. Also a
//! take-off that arms. On virtual time.
use crate::paused::{empty, fly};
use drone::{Caller, Drone};
use ovos_toolbox_sdk::serde_json::json;
use ovos_toolbox_sdk::testing::Harness;
use px4_sim::Mode;
use px4_sim::log::Cause;

const MODEL: Caller = Caller {
    operator: false,
    latched: false,
};
const OPERATOR: Caller = Caller {
    operator: true,
    latched: false,
};

#[test]
fn only_an_operator_takes_a_vehicle_from_a_pilot() {
    fly(json!({}), empty(), |paused| async move {
        paused.take_off(5.0).await;
        paused.fake.lock().vehicle.set_mode(Mode::Posctl, Cause::Pilot);
        paused.pass(2.0).await;
        let then = paused.time();
        for (tool, args) in [
            ("land", json!({})),
            ("rtl", json!({})),
            ("hold", json!({"ms": 0})),
            ("disarm", json!({})),
            ("move_up", json!({"cm": 50})),
        ] {
            let answer = paused.fleet.call_as(MODEL, tool, args).await;
            assert_eq!(answer["code"], "pilot_override", "{tool}: {answer}");
            assert!(
                tool == "move_up" || answer["msg"].as_str().unwrap().contains("operator"),
                "{answer}"
            );
        }
        assert_eq!(paused.commands_since(then), Vec::<String>::new());
        assert_eq!(paused.mode(), Mode::Posctl);
        let answer = paused.fleet.call_as(OPERATOR, "hold", json!({"ms": 0})).await;
        assert_eq!(answer["ok"], true, "{answer}");
        paused.fleet.resume().unwrap();
        let answer = paused.fleet.call_as(MODEL, "land", json!({})).await;
        assert_eq!(answer["ok"], true, "{answer}");
    });
}

#[test]
fn in_emergency_stop_only_an_operator_sends_it_home() {
    for (operator, tool, code) in [
        (false, "rtl", Some("latched")),
        (true, "rtl", None),
        (false, "hold", None),
        (false, "land", None),
    ] {
        fly(json!({}), empty(), |paused| async move {
            paused.take_off(5.0).await;
            paused.fleet.halt(true).await.unwrap();
            paused.pass(6.0).await;
            let caller = Caller {
                operator,
                latched: true,
            };
            let args = if tool == "hold" {
                json!({"ms": 0})
            } else {
                json!({})
            };
            let answer = paused.fleet.call_as(caller, tool, args).await;
            assert_eq!(answer["code"].as_str(), code, "{operator} {tool}: {answer}");
        });
    }
}

#[test]
fn a_takeoff_arms_when_it_is_asked_to_and_disarms_when_it_fails() {
    fly(
        json!({"flight_limits": {"max_alt_m": 8.0}}),
        empty(),
        |paused| async move {
            let answer = paused.fleet.call_as(MODEL, "takeoff", json!({"alt_m": 3})).await;
            assert_eq!(answer["code"], "not_armed", "{answer}");
            let answer = paused
                .fleet
                .call_as(MODEL, "takeoff", json!({"alt_m": 20, "arm": true}))
                .await;
            assert_eq!(answer["code"], "altitude_ceiling", "{answer}");
            assert_eq!(paused.truth()["armed"], false, "{}", paused.story());
            paused.fake.lock().vehicle.health.gps = false;
            paused.pass(2.0).await;
            let answer = paused
                .fleet
                .call_as(MODEL, "takeoff", json!({"alt_m": 3, "arm": true}))
                .await;
            assert_eq!(answer["code"], "preflight", "{answer}");
            paused.fake.lock().vehicle.health.gps = true;
            paused.pass(4.0).await;
            paused.ok("takeoff", json!({"alt_m": 3, "arm": true})).await;
            assert_eq!(paused.truth()["landed"], "in_air");
        },
    );
}

#[test]
fn a_takeoff_that_arms_is_planned_as_both() {
    let harness =
        Harness::open::<Drone>(json!({"mavsdk_server": "/nowhere", "px4_sim": "/nowhere"})).unwrap();
    let planned = |args| {
        let plan = harness.plan("takeoff", args).unwrap().unwrap();
        let step =
            |action: &ovos_toolbox_sdk::wire::Action| (action.name.clone(), action.dependencies.clone());
        plan.iter().map(step).collect::<Vec<_>>()
    };
    let takeoff = |after: &[&str]| {
        let after = after.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        ("takeoff".to_owned(), after)
    };
    assert_eq!(planned(json!({"alt_m": 3})), [takeoff(&[])]);
    assert_eq!(
        planned(json!({"alt_m": 3, "arm": true})),
        [("arm".to_owned(), Vec::new()), takeoff(&["arm"])]
    );
    // Arguments that cannot be read arm nothing.
    assert_eq!(planned(json!({"arm": true})), [takeoff(&[])]);
}

#[test]
fn unknown_arguments_are_named_and_never_keep_it_from_landing() {
    fly(json!({}), empty(), |paused| async move {
        paused.take_off(5.0).await;
        let refused = paused.fleet.call("move_up", json!({"cm": 50, "speed": 9})).await;
        assert_eq!(refused["code"], "bad_args", "{refused}");
        assert_eq!(
            refused["msg"], "unknown argument 'speed'; known: cm, vehicle",
            "{refused}"
        );
        paused.ok("hold", json!({"ms": 0, "speed": 9})).await;
        // The only vehicle is meant, whatever it is called.
        paused.ok("hold", json!({"ms": 0, "vehicle": "nope"})).await;
        let refused = paused
            .fleet
            .call("move_up", json!({"cm": 50, "vehicle": "nope"}))
            .await;
        assert_eq!(refused["code"], "bad_args", "{refused}");
        paused.ok("land", json!({"speed": 9, "vehicle": 5})).await;
    });
}
