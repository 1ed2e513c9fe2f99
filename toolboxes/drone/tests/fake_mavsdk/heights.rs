//! Heights keep their meaning when the vehicle changes its height reference. On virtual time.
use ovos_toolbox_sdk::serde_json::json;
use px4_sim::World;

use crate::paused::fly;

/// Latitude in degrees, this many metres north of the simulator's home.
fn north(metres: f64) -> f64 {
    47.397_742 + (metres / 6_371_000.0).to_degrees()
}

#[test]
fn a_vehicle_whose_height_was_wrong_on_the_ground_flies_at_the_right_one() {
    // The height estimate drifted while the vehicle stood; PX4 restarts at zero when it takes off.
    for error in [4.0, -4.0, 0.0] {
        let world = World {
            things: Vec::new(),
            ..World::default()
        };
        fly(
            json!({"flight_limits": {"max_alt_m": 12.0}}),
            world,
            |paused| async move {
                paused.fake.lock().height_error_m = error;
                paused.pass(3.0).await;
                paused.take_off(5.0).await;
                let height = || paused.fake.lock().vehicle.height();
                let goto =
                    |metres: f64, alt_m: f64| json!({"lat": north(metres), "lon": 8.545_594, "alt_m": alt_m});
                paused.ok("goto_gps", goto(8.0, 3.0)).await;
                assert!((height() - 3.0).abs() < 0.5, "{error}: {}", height());
                let high = paused.fleet.call("goto_gps", goto(12.0, 50.0)).await;
                assert_eq!(high["code"], "altitude_ceiling", "{error}: {high}");
                paused.ok("goto_gps", goto(12.0, 9.5)).await;
                assert!((height() - 9.5).abs() < 0.5, "{error}: {}", height());
                // A path is sent with heights above the vehicle's own home, and both tools have to mean the same
                // height.
                let point = json!({"lat": north(4.0), "lon": 8.545_594, "alt_m": 4});
                paused.ok("follow_path", json!({"waypoints": [point]})).await;
                // The heights of a path move with PX4's home.
                assert!((height() - 4.0).abs() < 3.2, "{error}: {}", height());
                let refused = paused.fleet.call("move_down", json!({"cm": 300})).await;
                assert_eq!(refused["code"], "altitude_floor", "{error}: {refused}");
                paused.ok("rtl", json!({})).await;
            },
        );
    }
}
