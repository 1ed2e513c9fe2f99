//! Conversion of arguments, and the values that answers report. On virtual time.
use crate::fake_mavsdk::Sim;
use crate::paused::{airborne, empty, fly};
use ovos_toolbox_sdk::serde_json::{Value, json};
use px4_sim::Mode;
use px4_sim::world::Thing;

#[test]
fn negative_distances_and_heights_are_refused_with_what_to_send() {
    airborne(json!({}), 5.0, |paused| async move {
        let here = json!({"lat": 47.397_742, "lon": 8.545_594});
        let gps = |alt: f64| {
            let mut place = here.clone();
            place["alt_m"] = json!(alt);
            place
        };
        for (tool, args, says) in [
            ("move_forward", json!({"cm": -100}), "move_backward"),
            ("move_backward", json!({"cm": -100}), "move_forward"),
            ("move_left", json!({"cm": -100}), "move_right"),
            ("move_up", json!({"cm": -100}), "move_down"),
            ("move_down", json!({"cm": -100}), "move_up"),
            ("turn_cw", json!({"deg": -30}), "turn_ccw"),
            ("turn_ccw", json!({"deg": -30}), "turn_cw"),
            ("goto_gps", gps(-10.0), "positive above home"),
            (
                "goto_local",
                json!({"north_m": 0, "east_m": 0, "down_m": 5}),
                "-5 is about 5 m up",
            ),
        ] {
            let then = paused.time();
            let refused = paused.fleet.call(tool, args.clone()).await;
            assert_eq!(refused["code"], "out_of_range", "{tool} {args}: {refused}");
            assert!(
                refused["msg"].as_str().unwrap().contains(says),
                "{tool} {args}: {refused}"
            );
            assert!(paused.commands_since(then).is_empty(), "{tool} {args}");
        }
        let far = json!({"north_m": 1e300, "east_m": 0, "down_m": -5});
        let refused = paused.fleet.call("goto_local", far).await;
        assert!(refused["msg"].as_str().unwrap().len() < 120, "{refused}");
    });
}

#[test]
fn a_failure_says_what_was_clamped() {
    airborne(json!({}), 5.0, |paused| async move {
        let pilot = |sim: &mut Sim| {
            sim.vehicle.set_mode(Mode::Posctl, px4_sim::log::Cause::Pilot);
        };
        let moving = |sim: &Sim| sim.vehicle.body().velocity[2] < -0.3;
        let far = json!({"cm": 900});
        let (answer, _) = paused.in_the_middle("move_up", far, moving, pilot).await;
        assert_eq!(answer["code"], "pilot_override", "{answer}");
        assert_eq!(
            answer["clamped"]["cm"],
            json!({"asked": 900.0, "used": 300.0}),
            "{answer}"
        );
    });
}

#[test]
fn a_flight_by_gps_keeps_its_heading() {
    airborne(json!({}), 5.0, |paused| async move {
        paused.ok("set_yaw", json!({"deg": 90})).await;
        paused
            .ok(
                "goto_gps",
                json!({"lat": 47.397_742 + 0.000_2, "lon": 8.545_594, "alt_m": 6}),
            )
            .await;
        let heading = paused.truth()["yaw_deg"].as_f64().unwrap();
        assert!((heading - 90.0).abs() < 6.0, "{heading}");
    });
}

#[test]
fn where_it_is_reads_back_as_what_a_flight_takes() {
    fly(json!({}), empty(), |paused| async move {
        let version = paused.ok("vehicle_health", json!({})).await;
        assert_eq!(version["px4_version"], "1.16.1", "{version}");
        paused.take_off(5.0).await;
        let place = json!({"north_m": 6, "east_m": -4, "down_m": -7, "yaw_deg": -90});
        paused.ok("goto_local", place).await;
        let state = paused.ok("vehicle_state", json!({})).await;
        let number = |key: &str| state["position"][key].as_f64().unwrap();
        let truth = paused.truth();
        for (key, expected, tolerance) in [
            ("lat", truth["lat"].as_f64().unwrap(), 1e-5),
            ("lon", truth["lon"].as_f64().unwrap(), 1e-5),
            ("alt_m", 7.0, 2.5),
            ("heading_deg", 270.0, 6.0),
            ("north_m", 6.0, 1.2),
            ("east_m", -4.0, 1.2),
        ] {
            assert!(
                (number(key) - expected).abs() < tolerance,
                "{key} {expected}: {state}"
            );
        }
        assert!(
            (state["home"]["lat"].as_f64().unwrap() - 47.397_742).abs() < 1e-5,
            "{state}"
        );
        // It flies within the fence, whose middle is where it was first heard.
        let fence = &state["fence"];
        assert!(
            fence["radius_m"].as_f64().is_some_and(|metres| metres > 7.0),
            "{state}"
        );
        for at in [0, 1] {
            assert!(fence["centre_m"][at].as_f64().unwrap().abs() < 1.0, "{state}");
        }
    });
}

#[test]
fn a_replan_gives_back_no_more_than_a_flight_has() {
    let config = json!({"flight_limits": {"max_rotation_deg": 90, "max_flight_rotation_deg": 200}});
    airborne(config, 5.0, |paused| async move {
        let turn = |tool: &'static str, deg: f64| paused.fleet.call(tool, json!({"deg": deg}));
        let code = |answer: &Value| answer["code"].as_str().unwrap_or("ok").to_owned();
        assert_eq!(code(&turn("set_yaw", 80.0).await), "ok");
        // A heading counts as a turn.
        assert_eq!(code(&turn("set_yaw", 0.0).await), "rotation_limit");
        assert_eq!(code(&turn("turn_cw", 30.0).await), "rotation_limit");
        paused.ok("replan", json!({"reason": "nothing found"})).await;
        assert_eq!(code(&turn("turn_cw", 85.0).await), "ok");
        paused.ok("replan", json!({"reason": "nothing found"})).await;
        let refused = turn("turn_cw", 60.0).await;
        assert_eq!(code(&refused), "rotation_limit", "{refused}");
        assert!(
            refused["msg"].as_str().unwrap().contains("of this flight"),
            "{refused}"
        );
        assert_eq!(code(&turn("turn_cw", 20.0).await), "ok");
    });
}

#[test]
fn a_move_back_needs_to_know_what_is_behind() {
    airborne(json!({}), 5.0, |paused| async move {
        paused.ok("set_yaw", json!({"deg": 0})).await;
        let before = paused.fake.lock().vehicle.body().position[0];
        paused.ok("move_backward", json!({"cm": 200})).await;
        let moved = paused.fake.lock().vehicle.body().position[0] - before;
        assert!((-3.0..-1.0).contains(&moved), "{moved}");
        paused.fake.lock().vehicle.world.things.push(Thing {
            label: String::new(),
            north_m: before - 4.0,
            east_m: 0.0,
            up_m: 6.0,
            radius_m: 1.0,
            height_m: 12.0,
            conf: 0.85,
            solid: true,
        });
        paused.pass(1.0).await;
        let refused = paused.fleet.call("move_backward", json!({"cm": 200})).await;
        assert_eq!(refused["code"], "blocked", "{refused}");
    });
    let blind = json!({"perception": {"use_obstacles": false}});
    airborne(blind, 5.0, |paused| async move {
        let refused = paused.fleet.call("move_backward", json!({"cm": 50})).await;
        assert_eq!(refused["code"], "no_obstacle_data", "{refused}");
    });
}

#[test]
fn a_heading_that_was_reported_can_be_sent() {
    let limits = json!({"flight_limits": {"max_rotation_deg": 3600}});
    airborne(limits, 5.0, |paused| async move {
        let off =
            |asked: f64, found: f64| ((asked - found).rem_euclid(360.0) + 180.0).rem_euclid(360.0) - 180.0;
        for asked in [170.0, -170.0, 270.0, 360.0, 190.0, -200.0, 720.0] {
            let answer = paused.ok("set_yaw", json!({"deg": asked})).await;
            assert_eq!(answer["clamped"], Value::Null, "{answer}");
            let truth = paused.truth()["yaw_deg"].as_f64().unwrap();
            assert!(off(asked, truth).abs() < 6.0, "{asked}: {truth}");
            let state = paused.ok("vehicle_state", json!({})).await;
            let reported = state["position"]["heading_deg"].as_f64().unwrap();
            assert!(
                (0.0..360.0).contains(&reported) && off(reported, truth).abs() < 2.0,
                "{state}"
            );
            let again = paused.ok("set_yaw", json!({"deg": reported})).await;
            let truth_again = paused.truth()["yaw_deg"].as_f64().unwrap();
            assert!(off(truth, truth_again).abs() < 6.0, "{again}");
        }
        let home = paused.ok("vehicle_state", json!({})).await["home"].clone();
        for (tool, mut args) in [
            ("goto_local", json!({"north_m": 4, "east_m": 0, "down_m": -5})),
            (
                "goto_gps",
                json!({"lat": home["lat"], "lon": home["lon"], "alt_m": 5}),
            ),
        ] {
            args["yaw_deg"] = json!(270);
            let answer = paused.ok(tool, args.clone()).await;
            assert_eq!(answer["clamped"], Value::Null, "{answer}");
            let truth = paused.truth()["yaw_deg"].as_f64().unwrap();
            assert!(off(270.0, truth).abs() < 6.0, "{tool}: {truth}");
            args["yaw_deg"] = json!(1e9);
            assert_eq!(
                paused.fleet.call(tool, args).await["code"],
                "out_of_range",
                "{tool}"
            );
        }
    });
}

/// Heights above sea level, in every tool that takes a height: refused with what to send, and nothing is flown.
#[test]
fn a_height_above_sea_level_is_recognised() {
    airborne(json!({}), 5.0, |paused| async move {
        let home = paused.ok("vehicle_state", json!({})).await["home"].clone();
        let amsl = home["amsl_m"].as_f64().unwrap();
        let truth = paused.fake.lock().vehicle.home.alt;
        assert!((amsl - truth).abs() < 1.0, "{amsl}, in truth {truth}");
        let health = paused.ok("vehicle_health", json!({})).await;
        assert_eq!(health["home_amsl_m"], home["amsl_m"], "{health}");
        let began = paused.time();
        let point = json!({"lat": home["lat"], "lon": home["lon"], "alt_m": amsl + 7.0});
        for (tool, args, send) in [
            ("goto_gps", point.clone(), "send 7"),
            (
                "goto_local",
                json!({"north_m": 0, "east_m": 0, "down_m": -amsl - 7.0}),
                "send -7",
            ),
            ("follow_path", json!({"waypoints": [point]}), "send 7"),
        ] {
            let answer = paused.fleet.call(tool, args).await;
            let msg = answer["msg"].as_str().unwrap();
            assert_eq!(answer["code"], "altitude_ceiling", "{tool}: {answer}");
            assert!(
                msg.contains(send) && msg.contains("above sea level"),
                "{tool}: {answer}"
            );
        }
        assert_eq!(paused.commands_since(began), Vec::<String>::new());
        paused.ok("land", json!({})).await;
        let answer = paused
            .fleet
            .call("takeoff", json!({"alt_m": amsl + 7.0, "arm": true}))
            .await;
        assert!(answer["msg"].as_str().unwrap().contains("send 7"), "{answer}");
        assert!(!paused.fake.lock().vehicle.armed(), "{answer}");
    });
}
