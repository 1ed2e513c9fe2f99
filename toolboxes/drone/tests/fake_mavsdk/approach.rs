//! The approach to an object with a vehicle that drifts by half a metre and more, as PX4's own simulation does.
//!
//! On virtual time. `DRONE_SEED` replays one seed, `APPROACHES` sets their number.
use ovos_toolbox_sdk::serde_json::{Value, json};
use px4_sim::geo::{Ned, difference, length};
use px4_sim::{Home, Quirks, Vehicle, World};

use crate::paused::{Paused, fly_this};

/// Where the red cup of the simulator's world is.
const CUP: Ned = [-2.0, 5.0, -4.6];

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn seeds() -> Vec<u64> {
    match number("DRONE_SEED") {
        Some(seed) => vec![seed],
        None => (1..=number("APPROACHES").unwrap_or(5)).collect(),
    }
}

/// A vehicle with all quirks of real PX4, which drifts according to the seed.
fn wandering(seed: u64) -> Vehicle {
    Vehicle::new(Home::default(), Quirks::all(), World::default()).seeded(seed)
}

/// Takes off, finds the cup and turns to it.
async fn face_the_cup(paused: &Paused) {
    paused.take_off(5.0).await;
    paused.ok("scan", json!({"object": "red cup"})).await;
    paused.ok("orient_to_object", json!({"object": "red cup"})).await;
}

/// Mean distance of the vehicle from the cup while it hovers for this long.
async fn hovers_at(paused: &Paused, seconds: u32) -> f64 {
    let mut sum = 0.0;
    for _ in 0..2 * seconds {
        paused.pass(0.5).await;
        sum += length(difference(paused.fake.lock().vehicle.body().position, CUP));
    }
    sum / f64::from(2 * seconds)
}

#[test]
fn an_approach_ends_at_the_distance_that_was_asked_for() {
    let mut failed = Vec::new();
    for seed in seeds() {
        for stop_m in [1.0, 1.5] {
            fly_this(json!({}), wandering(seed), async |paused: Paused| {
                face_the_cup(&paused).await;
                let args = json!({"object": "red cup", "stop_dist_m": stop_m});
                let answer = paused.fleet.call("safe_approach_until", args).await;
                let distance_m = answer["final_dist_m"].as_f64().unwrap_or(f64::NAN);
                let hovers = hovers_at(&paused, 16).await;
                let near = |dist: f64, most: f64| (dist - stop_m).abs() < most;
                if answer["ok"] != true || !near(distance_m, 0.3) || !near(hovers, 0.6) {
                    failed.push(format!(
                        "DRONE_SEED={seed}, to {stop_m} m: hovers at {hovers:.2} m: {answer}"
                    ));
                }
            });
        }
    }
    assert!(
        failed.is_empty(),
        "{} failed:\n{}",
        failed.len(),
        failed.join("\n")
    );
}

#[test]
fn an_object_that_is_gone_for_good_ends_the_approach_where_it_is() {
    fly_this(json!({}), wandering(1), async |paused: Paused| {
        face_the_cup(&paused).await;
        let near = |sim: &crate::fake_mavsdk::Sim| length(difference(sim.vehicle.body().position, CUP)) < 3.0;
        let (answer, then) = paused
            .in_the_middle(
                "safe_approach_until",
                json!({"object": "red cup", "stop_dist_m": 1.0}),
                near,
                |sim| sim.vehicle.world.things.clear(),
            )
            .await;
        assert_eq!(answer["code"], "not_found", "{answer}");
        assert!(answer["final_dist_m"].as_f64().is_some(), "{answer}");
        assert_eq!(answer["reached"], Value::Bool(false), "{answer}");
        // It waits for a limited time and stays in place.
        let waited = paused.time() - then;
        assert!((16.0..30.0).contains(&waited), "{waited}");
        let at = paused.fake.lock().vehicle.body().position;
        assert!(length(difference(at, CUP)) > 1.0, "{at:?}");
    });
}

/// Each row: the height of the vehicle, and whether the scene feeder shows the cup, which is 4.6 m up and 5.4 m away.
#[test]
fn a_level_camera_sees_two_fifths_of_the_distance_up_and_down() {
    let world = World::default();
    let sees = |eye: Ned| {
        let yaw = (CUP[1] - eye[1]).atan2(CUP[0] - eye[0]);
        let scene = json!(px4_sim::scene::Scene::seen(&world, eye, yaw, "test", 0.0));
        let seen = scene["detections"].as_array().unwrap().clone();
        seen.iter().any(|one| one["label"] == "red cup")
    };
    for (height, expected) in [
        (1.0, false),
        (2.3, false),
        (2.5, true),
        (3.0, true),
        (5.0, true),
        (6.7, true),
        (6.9, false),
    ] {
        assert_eq!(sees([0.0, 0.0, -height]), expected, "{height} m");
    }
    for metres in [1.0, 2.0, 5.0] {
        for (off, expected) in [(0.4, true), (-0.4, true), (0.5, false), (-0.5, false)] {
            let eye = [CUP[0] - metres, CUP[1], CUP[2] + off * metres];
            assert_eq!(
                sees(eye),
                expected,
                "{metres} m away, {off} m lower for each metre"
            );
        }
    }
}

/// From a take-off to 3 m the cup is in the picture at first, and leaves it at the top on the way there.
#[test]
fn an_object_that_leaves_the_picture_by_its_height_is_said_to() {
    let vehicle = Vehicle::new(Home::default(), crate::paused::steady(), World::default());
    fly_this(json!({}), vehicle, async |paused: Paused| {
        paused.ok("arm", json!({})).await;
        let risen = paused.ok("takeoff", json!({"alt_m": 3})).await;
        let msg = risen["msg"].as_str().unwrap();
        assert!(
            msg.contains("below the requested 3.0 m") && msg.contains("move_up 40"),
            "{risen}"
        );
        paused.ok("scan", json!({"object": "red cup"})).await;
        paused.ok("orient_to_object", json!({"object": "red cup"})).await;
        let args = json!({"object": "red cup", "stop_dist_m": 1.0});
        let answer = paused.fleet.call("safe_approach_until", args.clone()).await;
        let msg = answer["msg"].as_str().unwrap();
        assert!(
            answer["code"] == "not_found" && msg.contains("because of its height"),
            "{answer}"
        );
        // It does what it was told to.
        let cm: i32 = msg
            .split("move_up ")
            .nth(1)
            .unwrap()
            .split(',')
            .next()
            .unwrap()
            .parse()
            .unwrap();
        paused.ok("move_up", json!({"cm": cm})).await;
        let answer = paused.fleet.call("safe_approach_until", args).await;
        assert_eq!(answer["ok"], true, "{answer}");
    });
    // Too low to see it at all.
    let vehicle = Vehicle::new(Home::default(), crate::paused::steady(), World::default());
    fly_this(json!({}), vehicle, async |paused: Paused| {
        paused.take_off(2.0).await;
        let answer = paused
            .fleet
            .call("scan", json!({"object": "red cup", "step_deg": 45}))
            .await;
        let msg = answer["msg"].as_str().unwrap();
        assert!(
            answer["code"] == "not_found" && msg.contains("move_up 100"),
            "{answer}"
        );
    });
}
