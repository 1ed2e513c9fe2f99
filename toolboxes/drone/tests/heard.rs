//! What a vehicle says by the server's other services: why it would not arm, and whether it has a camera.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed test panics and prints"
)]

#[path = "support/fake_mavsdk.rs"]
mod fake_mavsdk;
#[path = "support/paused.rs"]
mod paused;

use ovos_toolbox_sdk::serde_json::json;
use paused::{fly, fly_this};
use px4_sim::vehicle::severity;
use px4_sim::{Home, Quirks, Vehicle, World};

#[test]
fn why_it_would_not_arm_is_said_in_the_vehicles_own_words() {
    fly(json!({}), World::default(), |paused| async move {
        {
            let mut sim = paused.fake.lock();
            sim.vehicle.health.gps = false;
            sim.vehicle.say(severity::INFO, "Disarmed by landing");
        }
        paused.pass(3.0).await;
        let refused = paused.fleet.call("arm", json!({})).await;
        let said = refused["msg"].as_str().unwrap();
        assert_eq!(refused["code"], "preflight", "{refused}");
        assert!(
            said.contains("in mode Hold: Global position required"),
            "{refused}"
        );
        assert!(
            !said.contains("Logging") && !said.contains("Disarmed by landing"),
            "{refused}"
        );
        let health = paused.fleet.call("vehicle_health", json!({})).await;
        assert_eq!(
            health["why_not_armable"],
            json!(["Global position required"]),
            "{health}"
        );
        paused.fake.lock().vehicle.health.gps = true;
        paused.pass(3.0).await;
        let health = paused.ok("vehicle_health", json!({})).await;
        assert_eq!(health["why_not_armable"], json!([]), "{health}");
        paused.ok("arm", json!({})).await;
    });
}

#[test]
fn without_the_texts_of_its_events_the_mode_and_the_last_warning_are_said() {
    let vehicle = Vehicle::new(Home::default(), Quirks::all(), World::default());
    fly_this(json!({}), vehicle, |paused| async move {
        {
            let mut sim = paused.fake.lock();
            sim.has_event_texts = false;
            sim.reboot();
            sim.vehicle.health.mag = false;
        }
        paused.pass(6.0).await;
        {
            let mut sim = paused.fake.lock();
            sim.vehicle.say(severity::WARNING, "Compass needs calibration");
            sim.vehicle.say(severity::INFO, "[logger] ./log/1.ulg");
        }
        paused.pass(1.0).await;
        let refused = paused.fleet.call("arm", json!({})).await;
        let said = refused["msg"].as_str().unwrap();
        assert!(
            said.contains("magnetometer") && said.contains("the mode is HOLD"),
            "{refused}"
        );
        assert!(
            said.contains("Compass needs calibration") && !said.contains("logger"),
            "{refused}"
        );
    });
}

#[test]
fn a_vehicle_that_is_not_armable_is_never_without_a_reason() {
    fly(json!({}), World::default(), |paused| async move {
        {
            let mut sim = paused.fake.lock();
            (sim.silent, sim.tells_health, sim.has_event_texts) = (true, false, false);
            sim.vehicle.health.mag = false;
        }
        paused.pass(8.0).await;
        paused.fake.lock().silent = false;
        paused.pass(8.0).await;
        // Heard again, and what its health was before says nothing.
        for (tells_health, why) in [
            (false, "the vehicle has not told its health yet"),
            (true, "not well: magnetometer"),
        ] {
            paused.fake.lock().tells_health = tells_health;
            paused.pass(3.0).await;
            let health = paused.ok("vehicle_health", json!({})).await;
            assert_eq!(health["armable"], false, "{health}");
            assert_eq!(health["why_not_armable"][0], why, "{health}");
        }
    });
}

#[test]
fn a_vehicle_without_a_camera_is_never_asked_for_one() {
    for present in [false, true] {
        let mut vehicle = Vehicle::new(Home::default(), Quirks::all(), World::default());
        vehicle.payload.present = present;
        fly_this(json!({}), vehicle, |paused| async move {
            paused.pass(5.0).await;
            let photo = paused.fleet.call("capture_photo", json!({})).await;
            assert_eq!(photo["ok"], present, "{photo}");
            assert_eq!(photo["code"] == "no_camera", !present, "{photo}");
            assert_eq!(paused.fake.lock().asks_for_cameras, present);
        });
    }
}
