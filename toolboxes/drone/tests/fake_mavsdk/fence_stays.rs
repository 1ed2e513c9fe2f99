//! The fence does not move, a brake gives way to a later landing, and arming alone moves nothing. On virtual time.
use std::time::Duration;

use ovos_toolbox_sdk::serde_json::json;
use px4_sim::Mode;
use px4_sim::log::Cause;

use crate::paused::{airborne, empty, fly};

#[test]
fn a_round_fence_is_not_carried_along_by_landing_and_arming_elsewhere() {
    fly(json!({"fence": {"radius_m": 20}}), empty(), |paused| async move {
        let mut north: f64 = 0.0;
        for _ in 0..3 {
            paused.take_off(3.0).await;
            north += 8.0;
            let answer = paused
                .fleet
                .call("goto_local", json!({"north_m": north, "east_m": 0, "down_m": -3}))
                .await;
            // The guards keep three metres inside the fence of twenty.
            let within = north <= 17.0;
            assert_eq!(answer["ok"], within, "{north} m north: {answer}");
            if !within {
                assert_eq!(answer["code"], "fence", "{answer}");
            }
            paused.ok("land", json!({})).await;
        }
        let radius = paused.truth()["excursions"]["radius_m"].as_f64().unwrap();
        assert!(radius <= 17.0, "{radius}");
    });
}

#[test]
fn a_flight_by_gps_begins_also_where_the_vehicle_holds_already() {
    airborne(json!({}), 3.0, |paused| async move {
        // It hovers in Hold already, after a take-off and after another flight: the mode does not show whether it
        // accepts a new target.
        for north in [10.0, 0.0, 6.0_f64] {
            let lat = 47.397_742 + (north / 6_371_000.0).to_degrees();
            paused
                .ok("goto_gps", json!({"lat": lat, "lon": 8.545_594, "alt_m": 4}))
                .await;
            let place = paused.truth()["position"][0].as_f64().unwrap();
            assert!((place - north).abs() < 1.2, "{place}, expected {north}");
        }
        // A hold ends such a flight, although the mode is the same.
        let far = json!({"lat": 47.398_4, "lon": 8.545_594, "alt_m": 4});
        {
            let flight = paused.fleet.call("goto_gps", far);
            let ended = tokio::time::timeout(Duration::from_secs(5), flight).await;
            assert!(ended.is_err(), "it is on its way");
        }
        paused.ok("hold", json!({"ms": 0})).await;
        paused.pass(8.0).await;
        let before = paused.truth()["position"][0].as_f64().unwrap();
        paused.pass(5.0).await;
        let after = paused.truth()["position"][0].as_f64().unwrap();
        assert!(
            (after - before).abs() < 0.1,
            "it flew on from {before} to {after}"
        );
    });
}

#[test]
fn a_landing_that_is_asked_for_right_after_a_stop_is_flown_to_its_end() {
    for after in [0.05, 0.3, 1.0, 2.0, 3.2] {
        airborne(json!({}), 5.0, |paused| async move {
            let place = json!({"north_m": 20, "east_m": 0, "down_m": -5});
            let flight = paused.fleet.call("goto_local", place);
            let ended = tokio::time::timeout(Duration::from_secs(4), flight).await;
            assert!(ended.is_err(), "it is on its way");
            paused.fleet.halt(true).await.unwrap();
            paused.pass(after).await;
            paused.ok("land", json!({})).await;
            let modes = paused.story();
            assert_eq!(paused.truth()["armed"], false, "{modes}");
            assert_ne!(paused.mode(), Mode::Offboard, "{modes}");
        });
    }
}

#[test]
fn arming_alone_moves_nothing_also_after_the_motors_were_killed_in_flight() {
    airborne(json!({}), 3.0, |paused| async move {
        let place = json!({"north_m": 20, "east_m": 0, "down_m": -3});
        let flight = paused.fleet.call("goto_local", place);
        tokio::pin!(flight);
        let ended = tokio::time::timeout(Duration::from_secs(4), &mut flight).await;
        assert!(ended.is_err(), "it is on its way");
        // The mode stays offboard, and mavsdk_server goes on repeating the last setpoint.
        paused.fake.lock().vehicle.disarm(true, Cause::Pilot);
        let answer = flight.await;
        assert_eq!(answer["code"], "pilot_override", "{answer}");
        paused.pass(10.0).await;
        paused.fleet.resume().expect("no other party flies it");
        let before = paused.truth()["excursions"]["path_m"].as_f64().unwrap();
        let armed = paused.fleet.call("arm", json!({})).await;
        paused.pass(5.0).await;
        let after = paused.truth()["excursions"]["path_m"].as_f64().unwrap();
        assert!(
            after - before < 0.05,
            "it moved {} m after {armed}\n{}",
            after - before,
            paused.story()
        );
    });
}

#[test]
fn arming_moves_nothing_after_a_takeoff_was_asked_for_while_disarmed() {
    fly(json!({}), empty(), |paused| async move {
        paused
            .fake
            .lock()
            .vehicle
            .set_mode(Mode::Takeoff, Cause::GroundStation);
        paused.pass(2.0).await;
        let armed = paused.fleet.call("arm", json!({})).await;
        paused.pass(8.0).await;
        let moved = paused.truth()["excursions"]["path_m"].as_f64().unwrap();
        assert!(moved < 0.05, "{moved} m after {armed}\n{}", paused.story());
    });
}
