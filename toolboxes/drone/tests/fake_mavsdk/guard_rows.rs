//! The guards through the tools, on virtual time: what each tool accepts, clamps and refuses, and what happens when a
//! fact is missing. `src/guard/tests` has the rows that no tool can reach.
use ovos_toolbox_sdk::serde_json::{Value, json};
use px4_sim::log::Cause;
use px4_sim::vehicle::Health;
use px4_sim::world::Thing;
use px4_sim::{Home, Mode, Quirks, Vehicle, World};

use crate::fake_mavsdk::Sim;
use crate::paused::{Paused, empty, fly, fly_this};

const LAT: f64 = 47.397_742;
const LON: f64 = 8.545_594;

fn lat(north: f64) -> f64 {
    LAT + (north / 6_371_000.0).to_degrees()
}

fn gps(north: f64, alt: f64) -> Value {
    json!({"lat": lat(north), "lon": LON, "alt_m": alt})
}

fn path(norths: &[f64]) -> Value {
    json!(norths.iter().map(|north| gps(*north, 5.0)).collect::<Vec<_>>())
}

/// The expected result of a call.
enum Becomes {
    /// Done as requested.
    Ok,
    /// Done with another number.
    Clamped(&'static str, f64),
    /// Refused with this code.
    Refused(&'static str),
}
use Becomes::{Clamped, Ok, Refused};

/// A tool, its arguments, the state in which it is called, and the expected result.
struct Row(&'static str, Value, fn(&mut Sim), Becomes);

fn well(_: &mut Sim) {}

async fn judge(paused: &Paused, row: &Row, seconds: f64) {
    let Row(tool, args, given, becomes) = row;
    given(&mut paused.fake.lock());
    paused.pass(seconds).await;
    let answer = paused.fleet.call(tool, args.clone()).await;
    let what = format!("{tool} {args}: {answer}\n{}", paused.story());
    match becomes {
        Ok => {
            assert_eq!(answer["ok"], true, "{what}");
            assert_eq!(answer["clamped"], Value::Null, "{what}");
        }
        Clamped(arg, applied) => {
            assert_eq!(answer["ok"], true, "{what}");
            let found = answer["clamped"][*arg]["used"].as_f64().expect(&what);
            assert!((found - applied).abs() < 0.011, "expected {applied}: {what}");
            if !args[*arg].is_null() {
                assert_eq!(
                    answer["clamped"][*arg]["asked"],
                    args[*arg].as_f64().unwrap(),
                    "{what}"
                );
            }
        }
        Refused(code) => {
            assert_eq!(
                (&answer["ok"], &answer["code"]),
                (&json!(false), &json!(code)),
                "{what}"
            );
            assert!(
                answer["msg"].as_str().is_some_and(|msg| !msg.is_empty()),
                "{what}"
            );
        }
    }
}

/// A cup five metres north, at the height of the vehicle.
fn with_a_cup() -> World {
    World {
        things: vec![Thing {
            label: "red cup".to_owned(),
            north_m: 5.0,
            east_m: 0.0,
            up_m: 6.0,
            radius_m: 0.05,
            height_m: 0.1,
            conf: 0.85,
            solid: false,
        }],
        ..World::default()
    }
}

/// Restores every fact.
fn mend(sim: &mut Sim) {
    sim.silent = false;
    sim.vehicle.health = Health::default();
    sim.vehicle.battery_pct = 90.0;
    sim.vehicle.world = with_a_cup();
    sim.vehicle.payload.obeys = true;
}

#[test]
fn on_the_ground() {
    #[rustfmt::skip]
    let rows = [
        // Preflight, one sensor after the other.
        Row("arm", json!({}), |sim| sim.vehicle.health.gyro = false, Refused("preflight")),
        Row("arm", json!({}), |sim| sim.vehicle.health.accel = false, Refused("preflight")),
        Row("arm", json!({}), |sim| sim.vehicle.health.mag = false, Refused("preflight")),
        Row("arm", json!({}), |sim| sim.vehicle.health.gps = false, Refused("preflight")),
        Row("arm", json!({}), |sim| sim.vehicle.health.home = false, Refused("preflight")),
        Row("arm", json!({}), |sim| sim.vehicle.battery_pct = 24.0, Refused("battery_low")),
        // An impossible charge counts as unknown.
        Row("arm", json!({}), |sim| sim.vehicle.battery_pct = 20_000.0, Refused("no_battery_data")),
        Row("arm", json!({}), |sim| sim.silent = true, Refused("link_down")),
        Row("takeoff", json!({"alt_m": 5}), well, Refused("not_armed")),
        Row("move_forward", json!({"cm": 50}), well, Refused("not_armed")),
        Row("move_left", json!({"cm": 50}), well, Refused("not_armed")),
        Row("move_right", json!({"cm": 50}), well, Refused("not_armed")),
        Row("move_up", json!({"cm": 50}), well, Refused("not_armed")),
        Row("move_down", json!({"cm": 50}), well, Refused("not_armed")),
        Row("turn_cw", json!({"deg": 5}), well, Refused("not_armed")),
        Row("turn_ccw", json!({"deg": 5}), well, Refused("not_armed")),
        Row("set_yaw", json!({"deg": 5}), well, Refused("not_armed")),
        Row("goto_gps", gps(5.0, 5.0), well, Refused("not_armed")),
        Row("goto_local", json!({"north_m": 1, "east_m": 0, "down_m": -5}), well, Refused("not_armed")),
        Row("follow_path", json!({"waypoints": path(&[5.0])}), well, Refused("not_armed")),
        Row("scan", json!({"object": "red cup"}), well, Refused("not_armed")),
        Row("orient_to_object", json!({"object": "red cup"}), well, Refused("not_armed")),
        Row("safe_approach_until", json!({"object": "red cup", "stop_dist_m": 1}), well, Refused("not_armed")),
        Row("track_object", json!({"object": "red cup", "horizon_s": 1}), well, Refused("not_armed")),
        Row("hold", json!({"ms": 0}), well, Refused("not_in_air")),
        Row("rtl", json!({}), well, Refused("not_in_air")),
        Row("disarm", json!({}), well, Ok),
        Row("land", json!({}), well, Ok),
        Row("emergency_brake", json!({}), well, Ok),
        // The camera.
        Row("capture_photo", json!({}), well, Ok),
        Row("start_video", json!({}), well, Ok),
        Row("stop_video", json!({}), well, Ok),
        Row("stop_video", json!({}), well, Refused("denied")),
        Row("capture_photo", json!({}), |sim| sim.vehicle.payload.obeys = false, Refused("unconfirmed")),
        Row("start_video", json!({}), |sim| sim.vehicle.payload.obeys = false, Refused("unconfirmed")),
        Row(
            "stop_video",
            json!({}),
            |sim| {
                sim.vehicle.payload.recording_since = Some(0.0);
                sim.vehicle.payload.obeys = false;
            },
            Refused("unconfirmed"),
        ),
        Row("capture_photo", json!({}), |sim| sim.silent = true, Refused("link_down")),
        Row("start_video", json!({}), |sim| sim.silent = true, Refused("link_down")),
        Row("stop_video", json!({}), |sim| sim.silent = true, Refused("link_down")),
        // Perception.
        Row("scene_free_ahead", json!({"range_m": 0.1}), well, Clamped("range_m", 0.5)),
        Row("scene_free_ahead", json!({"range_m": 50}), well, Clamped("range_m", 10.0)),
        Row("is_visible", json!({"object": "red cup", "conf_min": 1.1}), well, Refused("out_of_range")),
        Row("is_visible", json!({"object": "red cup", "conf_min": -0.1}), well, Refused("out_of_range")),
        Row("is_visible", json!({"object": "red cup", "conf_min": 0.0}), well, Ok),
        Row("object_pose", json!({"object": "unicorn"}), well, Refused("not_found")),
        Row("count_objects", json!({"label": "red cup"}), well, Ok),
        Row("log", json!({"level": "INFO", "text": "here"}), well, Ok),
        Row("log", json!({"level": "LOUD", "text": "here"}), well, Refused("bad_args")),
        Row("replan", json!({"reason": ""}), well, Refused("out_of_range")),
        Row("replan", json!({"reason": "x".repeat(501)}), well, Refused("out_of_range")),
        Row("replan", json!({"reason": "nothing found"}), well, Ok),
        Row("vehicle_state", json!({}), |sim| sim.silent = true, Ok),
        Row("vehicle_health", json!({}), |sim| sim.silent = true, Refused("link_down")),
        // JSON has no NaN; its substitutes are not numbers.
        Row("takeoff", json!({"alt_m": null}), well, Refused("bad_args")),
        Row("move_up", json!({"cm": "NaN"}), well, Refused("bad_args")),
        Row("move_up", json!({"cm": 10.5}), well, Refused("bad_args")),
    ];
    fly(json!({}), with_a_cup(), |paused| async move {
        for row in &rows {
            judge(&paused, row, 5.0).await;
            mend(&mut paused.fake.lock());
            paused.pass(5.0).await;
        }
        assert_eq!(paused.truth()["armed"], false);
    });
}

/// Requested take-off, and the expected result.
#[test]
fn takeoffs() {
    for (alt, ceiling, becomes) in [
        (5.0, 30.0, Ok),
        (0.2, 30.0, Clamped("alt_m", 1.0)),
        (31.0, 120.0, Clamped("alt_m", 30.0)),
        (30.0, 30.0, Clamped("alt_m", 29.24)),
        (20.0, 8.0, Refused("altitude_ceiling")),
    ] {
        let config = json!({"flight_limits": {"max_alt_m": ceiling}});
        fly(config, empty(), |paused| async move {
            paused.ok("arm", json!({})).await;
            judge(
                &paused,
                &Row("takeoff", json!({"alt_m": alt}), well, becomes),
                0.1,
            )
            .await;
        });
    }
}

#[test]
fn in_the_air() {
    let wall: fn(&mut Sim) = |sim| {
        let wall = Thing {
            label: String::new(),
            north_m: 1.2,
            east_m: 0.0,
            up_m: 6.0,
            radius_m: 0.2,
            height_m: 12.0,
            conf: 0.85,
            solid: true,
        };
        sim.vehicle.world.things.push(wall);
    };
    // A pole straight ahead, and the cup visible beside it.
    let pole: fn(&mut Sim) = |sim| {
        sim.vehicle.world.things[0].east_m = 0.55;
        sim.vehicle.world.things.push(Thing {
            label: String::new(),
            north_m: 1.2,
            east_m: 0.0,
            up_m: 6.0,
            radius_m: 0.08,
            height_m: 12.0,
            conf: 0.85,
            solid: true,
        });
    };
    let high: fn(&mut Sim) = |sim| sim.vehicle.teleport([0.0, 0.0, -29.0], 0.0);
    let low: fn(&mut Sim) = |sim| sim.vehicle.teleport([0.0, 0.0, -1.2], 0.0);
    let far: fn(&mut Sim) = |sim| sim.vehicle.teleport([96.0, 0.0, -6.0], 0.0);
    let weak: fn(&mut Sim) = |sim| sim.vehicle.battery_pct = 24.0;
    let homeless: fn(&mut Sim) = |sim| sim.vehicle.health.home = false;
    let pilot: fn(&mut Sim) = |sim| {
        sim.vehicle.set_mode(Mode::Posctl, Cause::Pilot);
    };
    let gone: fn(&mut Sim) = |sim| sim.silent = true;
    let local = |north: f64, down: f64| json!({"north_m": north, "east_m": 0, "down_m": down});
    let cm = |cm: i32| json!({"cm": cm});
    let deg = |deg: f64| json!({"deg": deg});
    #[rustfmt::skip]
    let rows = [
        Row("arm", json!({}), well, Refused("in_air")),
        Row("disarm", json!({}), well, Refused("in_air")),
        Row("takeoff", json!({"alt_m": 5}), well, Refused("in_air")),
        // Turns.
        Row("set_yaw", deg(90.0), well, Ok),
        Row("set_yaw", deg(270.0), well, Ok),
        Row("set_yaw", deg(-181.0), well, Ok),
        Row("set_yaw", deg(360.0), well, Ok),
        Row("set_yaw", deg(1e6), well, Refused("out_of_range")),
        Row("turn_cw", deg(45.0), well, Ok),
        Row("turn_cw", deg(0.2), well, Clamped("deg", 1.0)),
        Row("turn_cw", deg(360.0), well, Clamped("deg", 90.0)),
        Row("turn_ccw", deg(45.0), well, Ok),
        Row("turn_ccw", deg(-30.0), well, Refused("out_of_range")),
        Row("turn_ccw", deg(91.0), well, Clamped("deg", 90.0)),
        // Small moves.
        Row("move_forward", cm(100), well, Ok),
        Row("move_forward", cm(5), well, Clamped("cm", 10.0)),
        Row("move_forward", cm(400), well, Clamped("cm", 300.0)),
        Row("move_forward", cm(100), wall, Refused("blocked")),
        Row("move_forward", cm(300), far, Refused("fence")),
        Row("move_left", cm(50), well, Ok),
        Row("move_left", cm(1000), well, Clamped("cm", 300.0)),
        Row("move_right", cm(50), well, Ok),
        Row("move_right", cm(-50), well, Refused("out_of_range")),
        Row("move_up", cm(50), well, Ok),
        Row("move_up", cm(500), well, Clamped("cm", 300.0)),
        Row("move_up", cm(100), high, Refused("altitude_ceiling")),
        Row("move_down", cm(50), well, Ok),
        Row("move_down", cm(0), well, Clamped("cm", 10.0)),
        Row("move_down", cm(100), low, Refused("altitude_floor")),
        Row("hold", json!({"ms": 500}), well, Ok),
        Row("hold", json!({"ms": -1}), well, Clamped("ms", 0.0)),
        Row("hold", json!({"ms": 60_000}), well, Clamped("ms", 5000.0)),
        // Places.
        Row("goto_gps", gps(8.0, 6.0), well, Ok),
        Row("goto_gps", gps(0.0, 500.0), well, Refused("altitude_ceiling")),
        Row("goto_gps", gps(0.0, 28.0), well, Refused("altitude_ceiling")),
        Row("goto_gps", gps(0.0, 0.4), well, Refused("altitude_floor")),
        Row("goto_gps", gps(0.0, -3.0), well, Refused("out_of_range")),
        Row("goto_gps", json!({"lat": 91, "lon": LON, "alt_m": 5}), well, Refused("out_of_range")),
        Row("goto_gps", json!({"lat": LAT, "lon": -180.5, "alt_m": 5}), well, Refused("out_of_range")),
        Row("goto_gps", json!({"lat": 0, "lon": 0, "alt_m": 5}), well, Refused("out_of_range")),
        Row("goto_gps", gps(98.0, 5.0), well, Refused("fence")),
        Row("goto_gps", gps(900.0, 5.0), well, Refused("too_far")),
        Row("goto_gps", json!({"lat": LAT, "lon": LON, "alt_m": 6, "yaw_deg": 400}), well, Ok),
        Row("goto_gps", gps(80.0, 6.0), |sim| sim.vehicle.battery_pct = 30.0, Refused("battery_low")),
        Row("goto_local", local(4.0, -6.0), well, Ok),
        Row("goto_local", local(0.0, -50.0), well, Refused("altitude_ceiling")),
        Row("goto_local", local(0.0, 3.0), well, Refused("out_of_range")),
        Row("goto_local", local(98.0, -6.0), well, Refused("fence")),
        Row("goto_local", local(101.0, -6.0), well, Refused("too_far")),
        Row("goto_local", local(80.0, -6.0), |sim| sim.vehicle.battery_pct = 30.0, Refused("battery_low")),
        Row("follow_path", json!({"waypoints": path(&[4.0, 8.0])}), well, Ok),
        Row("follow_path", json!({"waypoints": path(&[8.0]), "cruise_mps": 20}), well, Clamped("cruise_mps", 8.0)),
        Row("follow_path", json!({"waypoints": path(&[3.0]), "cruise_mps": 0.1}), well, Clamped("cruise_mps", 0.5)),
        Row("follow_path", json!({"waypoints": []}), well, Refused("out_of_range")),
        Row("follow_path", json!({"waypoints": path(&[4.0; 26])}), well, Refused("out_of_range")),
        Row("follow_path", json!({"waypoints": path(&[4.0, 4.5])}), well, Refused("out_of_range")),
        Row("follow_path", json!({"waypoints": path(&[4.0, 98.0])}), well, Refused("fence")),
        Row("follow_path", json!({"waypoints": path(&[900.0])}), well, Refused("too_far")),
        Row("follow_path", json!({"waypoints": [gps(4.0, 40.0)]}), well, Refused("altitude_ceiling")),
        Row("follow_path", json!({"waypoints": [gps(4.0, 0.3)]}), well, Refused("altitude_floor")),
        Row("follow_path", json!({"waypoints": path(&[80.0])}), |sim| sim.vehicle.battery_pct = 30.0, Refused("battery_low")),
        // Policies.
        Row("scan", json!({"object": "red cup"}), well, Ok),
        Row("scan", json!({"object": "red cup", "step_deg": 90}), well, Clamped("step_deg", 45.0)),
        Row("scan", json!({"object": "red cup", "step_deg": 1}), well, Clamped("step_deg", 5.0)),
        Row("scan", json!({"object": "red cup", "max_steps": 40}), well, Clamped("max_steps", 12.0)),
        Row("scan", json!({"object": "unicorn", "max_steps": 1}), well, Refused("not_found")),
        Row("orient_to_object", json!({"object": "red cup"}), well, Ok),
        Row("orient_to_object", json!({"object": "red cup", "micro_deg": 90}), well, Clamped("micro_deg", 45.0)),
        Row(
            "orient_to_object",
            json!({"object": "red cup", "center_band": {"min": 0.6, "max": 0.4}}),
            well,
            Refused("out_of_range"),
        ),
        Row(
            "orient_to_object",
            json!({"object": "red cup", "center_band": {"min": -0.1, "max": 0.4}}),
            well,
            Refused("out_of_range"),
        ),
        Row("orient_to_object", json!({"object": "unicorn"}), well, Refused("not_found")),
        Row("safe_approach_until", json!({"object": "red cup", "stop_dist_m": 3}), well, Ok),
        Row("safe_approach_until", json!({"object": "red cup", "stop_dist_m": 0.2}), well, Refused("out_of_range")),
        Row("safe_approach_until", json!({"object": "red cup", "stop_dist_m": 3.1}), well, Refused("out_of_range")),
        Row("safe_approach_until", json!({"object": "red cup", "stop_dist_m": 3, "step_cm": 500}), well, Clamped("step_cm", 300.0)),
        Row("safe_approach_until", json!({"object": "unicorn", "stop_dist_m": 3}), well, Refused("not_found")),
        Row("safe_approach_until", json!({"object": "red cup", "stop_dist_m": 0.5}), pole, Refused("blocked")),
        Row("track_object", json!({"object": "red cup", "horizon_s": 0}), well, Clamped("horizon_s", 0.5)),
        Row("track_object", json!({"object": "red cup", "horizon_s": 600}), well, Clamped("horizon_s", 30.0)),
        Row("track_object", json!({"object": "unicorn", "horizon_s": 5}), well, Refused("not_found")),
        // Missing or unfavourable facts, for a tool of each kind.
        Row("move_up", cm(50), weak, Refused("battery_low")),
        Row("turn_cw", deg(5.0), weak, Refused("battery_low")),
        Row("goto_gps", gps(4.0, 6.0), weak, Refused("battery_low")),
        Row("goto_local", local(4.0, -6.0), weak, Refused("battery_low")),
        Row("scan", json!({"object": "red cup"}), weak, Refused("battery_low")),
        Row("move_up", cm(50), |sim| sim.vehicle.battery_pct = 20_000.0, Refused("no_battery_data")),
        Row("goto_gps", gps(4.0, 6.0), homeless, Refused("no_global_position")),
        Row("follow_path", json!({"waypoints": path(&[4.0])}), homeless, Refused("no_global_position")),
        Row("move_forward", cm(50), pilot, Refused("pilot_override")),
        Row("turn_ccw", deg(5.0), pilot, Refused("pilot_override")),
        Row("set_yaw", deg(5.0), pilot, Refused("pilot_override")),
        Row("goto_gps", gps(4.0, 6.0), pilot, Refused("pilot_override")),
        Row("goto_local", local(4.0, -6.0), pilot, Refused("pilot_override")),
        Row("follow_path", json!({"waypoints": path(&[4.0])}), pilot, Refused("pilot_override")),
        Row("scan", json!({"object": "red cup"}), pilot, Refused("pilot_override")),
        Row("track_object", json!({"object": "red cup", "horizon_s": 1}), pilot, Refused("pilot_override")),
        Row("hold", json!({"ms": 0}), pilot, Ok),
        Row("move_left", cm(50), gone, Refused("link_down")),
        Row("turn_cw", deg(5.0), gone, Refused("link_down")),
        Row("goto_gps", gps(4.0, 6.0), gone, Refused("link_down")),
        Row("goto_local", local(4.0, -6.0), gone, Refused("link_down")),
        Row("hold", json!({"ms": 0}), gone, Refused("link_down")),
        Row("land", json!({}), gone, Refused("link_down")),
        Row("rtl", json!({}), gone, Refused("link_down")),
        Row("emergency_brake", json!({}), well, Ok),
        Row("land", json!({}), well, Ok),
    ];
    fly(
        json!({"flight_limits": {"max_replans": 1000}}),
        with_a_cup(),
        |paused| async move {
            paused.take_off(6.0).await;
            for row in &rows {
                judge(&paused, row, 4.5).await;
                mend(&mut paused.fake.lock());
                if paused.truth()["armed"] == false {
                    // The last call landed it.
                    continue;
                }
                // Restores the state in which every row begins; hold takes the vehicle back from a pilot.
                paused.pass(4.0).await;
                paused.ok("hold", json!({"ms": 0})).await;
                paused.fleet.resume().expect("no other party flies");
                paused.fake.lock().vehicle.teleport([0.0, 0.0, -6.0], 0.0);
                paused.pass(2.5).await;
                paused.ok("replan", json!({"reason": "next"})).await;
            }
            assert_eq!(paused.truth()["landed"], "on_ground");
        },
    );
}

#[test]
fn budgets_end_and_a_new_plan_gives_new_ones() {
    fly(
        json!({"flight_limits": {"max_replans": 1}}),
        with_a_cup(),
        |paused| async move {
            paused.take_off(6.0).await;
            for _ in 0..4 {
                paused.ok("turn_cw", json!({"deg": 90})).await;
            }
            judge(
                &paused,
                &Row("turn_cw", json!({"deg": 5}), well, Refused("rotation_limit")),
                0.1,
            )
            .await;
            judge(&paused, &Row("move_forward", json!({"cm": 300}), well, Ok), 0.1).await;
            judge(
                &paused,
                &Row("move_forward", json!({"cm": 300}), well, Refused("forward_limit")),
                0.1,
            )
            .await;
            paused.ok("replan", json!({"reason": "used up"})).await;
            judge(&paused, &Row("turn_cw", json!({"deg": 5}), well, Ok), 0.1).await;
            judge(
                &paused,
                &Row(
                    "replan",
                    json!({"reason": "again"}),
                    well,
                    Refused("replan_limit"),
                ),
                0.1,
            )
            .await;
        },
    );
}

/// The data withheld, and the tools that then refuse.
#[test]
fn without_eyes_nothing_is_taken_for_free_or_seen() {
    let cup = || json!({"object": "red cup"});
    let near = || json!({"object": "red cup", "stop_dist_m": 1});
    let track = || json!({"object": "red cup", "horizon_s": 1});
    let blind = vec![
        ("is_visible", cup(), "vision_unavailable"),
        ("object_pose", cup(), "vision_unavailable"),
        ("count_objects", json!({"label": "red cup"}), "vision_unavailable"),
        ("scan", cup(), "vision_unavailable"),
        ("orient_to_object", cup(), "vision_unavailable"),
        ("safe_approach_until", near(), "vision_unavailable"),
        ("track_object", track(), "vision_unavailable"),
    ];
    let unsure = vec![
        ("move_forward", json!({"cm": 50}), "no_obstacle_data"),
        ("safe_approach_until", near(), "no_obstacle_data"),
    ];
    let flat = vec![("safe_approach_until", near(), "no_depth")];
    for (taken, rows) in [
        ("use_vision", blind),
        ("use_obstacles", unsure),
        ("use_depth", flat),
    ] {
        fly(
            json!({"perception": {taken: false}}),
            with_a_cup(),
            |paused| async move {
                paused.take_off(6.0).await;
                paused.ok("set_yaw", json!({"deg": 0})).await;
                for (tool, args, code) in rows {
                    judge(&paused, &Row(tool, args, well, Refused(code)), 0.1).await;
                }
                if taken == "use_obstacles" {
                    let free = paused.fleet.call("scene_free_ahead", json!({"range_m": 1})).await;
                    assert_eq!(
                        (&free["free"], &free["min_dist_m"]),
                        (&json!(false), &json!(0.0)),
                        "{free}"
                    );
                }
            },
        );
    }
}

#[test]
fn without_a_camera_there_are_no_pictures() {
    let mut vehicle = Vehicle::new(Home::default(), Quirks::all(), empty());
    vehicle.payload.present = false;
    fly_this(json!({}), vehicle, |paused| async move {
        for tool in ["capture_photo", "start_video", "stop_video"] {
            judge(&paused, &Row(tool, json!({}), well, Refused("no_camera")), 0.1).await;
        }
    });
}
