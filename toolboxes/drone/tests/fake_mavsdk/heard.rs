//! Facts from the server's other services: why the vehicle would not arm, and whether it has a camera.
use crate::paused::{fly, fly_this};
use ovos_toolbox_sdk::serde_json::json;
use px4_sim::log::Cause;
use px4_sim::params::Param;
use px4_sim::vehicle::{Health, severity};
use px4_sim::{Home, Mode, Quirk, Quirks, Vehicle, World};

#[test]
fn why_it_would_not_arm_is_said_in_the_vehicles_own_words() {
    let sound = Health::default();
    let rows = [
        (Health { mag: false, ..sound }, "No valid data from Compass 0"),
        // PX4 reports it as information, but does not arm.
        (Health { home: false, ..sound }, "Home position not set"),
        // Beside an error it is left out.
        (
            Health {
                gps: false,
                home: false,
                ..sound
            },
            "No valid global position estimate",
        ),
    ];
    fly(json!({}), World::default(), |paused| async move {
        for (health, why) in rows {
            {
                let mut sim = paused.fake.lock();
                sim.vehicle.health = health;
                sim.vehicle.say(severity::INFO, "Disarmed by landing");
            }
            paused.pass(3.0).await;
            let refused = paused.fleet.call("arm", json!({})).await;
            let message = refused["msg"].as_str().unwrap();
            assert_eq!(refused["code"], "preflight", "{refused}");
            assert!(message.ends_with(&format!("in mode Hold: {why}")), "{refused}");
            let health = paused.fleet.call("vehicle_health", json!({})).await;
            assert_eq!(health["why_not_armable"], json!([why]), "{health}");
            paused.fake.lock().vehicle.health = sound;
            paused.pass(3.0).await;
            let health = paused.ok("vehicle_health", json!({})).await;
            assert_eq!(health["why_not_armable"], json!([]), "{health}");
        }
        paused.ok("arm", json!({})).await;
    });
}

#[test]
fn a_vehicle_that_refuses_in_hold_says_why() {
    // In an autonomous mode its health says little, so `arm` leaves that mode and asks the vehicle.
    fly(json!({}), World::default(), |paused| async move {
        {
            let mut sim = paused.fake.lock();
            sim.vehicle.battery_pct = 40.0;
            sim.vehicle.params.set("BAT_CRIT_THR", Param::Float(0.5)).unwrap();
            sim.vehicle.set_mode(Mode::Land, Cause::GroundStation);
        }
        paused.pass(3.0).await;
        let refused = paused.fleet.call("arm", json!({})).await;
        let message = refused["msg"].as_str().unwrap();
        assert!(message.contains("in mode Hold: Critical battery"), "{refused}");
    });
}

#[test]
fn without_the_texts_of_its_events_the_mode_and_the_last_warning_are_said() {
    let vehicle = Vehicle::new(Home::default(), Quirks::all(), World::default());
    fly_this(json!({}), vehicle, |paused| async move {
        {
            let mut sim = paused.fake.lock();
            sim.vehicle.quirks.set(Quirk::NoEventMetadata, true);
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
        let message = refused["msg"].as_str().unwrap();
        assert!(
            message.contains("magnetometer") && message.contains("the mode is HOLD"),
            "{refused}"
        );
        assert!(
            message.contains("Compass needs calibration") && !message.contains("logger"),
            "{refused}"
        );
        {
            let mut sim = paused.fake.lock();
            sim.vehicle.health.mag = true;
            sim.vehicle.battery_pct = 40.0;
            sim.vehicle.params.set("BAT_CRIT_THR", Param::Float(0.5)).unwrap();
        }
        paused.pass(3.0).await;
        let health = paused.ok("vehicle_health", json!({})).await;
        let why = health["why_not_armable"][0].as_str().unwrap();
        assert!(
            why.starts_with("the vehicle has not said why; the mode is HOLD; its last warning: "),
            "{health}"
        );
    });
}

#[test]
fn a_vehicle_that_is_not_armable_is_never_without_a_reason() {
    fly(json!({}), World::default(), |paused| async move {
        {
            let mut sim = paused.fake.lock();
            (sim.silent, sim.tells_health) = (true, false);
            sim.vehicle.quirks.set(Quirk::NoEventMetadata, true);
            sim.vehicle.health.mag = false;
        }
        paused.pass(8.0).await;
        paused.fake.lock().silent = false;
        paused.pass(8.0).await;
        // After a link loss the earlier health does not count.
        for (tells_health, why) in [
            (false, "the vehicle has not reported its health yet"),
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
