//! Telemetry that is no number, or not a place.

use super::*;
use crate::guard::{Braking, reaches};

const HERE: (f64, f64) = (47.397_742, 8.545_594);

fn at(lat: f64, lon: f64, amsl_m: f64) -> Option<Reading<GlobalPosition>> {
    Some(Reading::now(GlobalPosition {
        lat,
        lon,
        amsl_m,
        relative_m: 0.0,
    }))
}

#[tokio::test(start_paused = true)]
async fn a_velocity_that_is_no_number_says_nothing_about_the_acceleration() {
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        for axis in 0..3 {
            let mut telemetry = Telemetry::default();
            for step in 0..16 {
                let mut velocity = [2.0, 1.0, 0.0];
                if step == 2 {
                    velocity[axis] = bad;
                }
                telemetry.moved([0.0; 3], velocity);
                (telemetry.place, telemetry.yaw_deg) = (at(HERE.0, HERE.1, 500.0), Some(Reading::now(0.0)));
                let is_sound = step != 2;
                assert_eq!(
                    telemetry.pose().is_some(),
                    is_sound,
                    "{bad} on {axis}, step {step}"
                );
                let Some(pose) = telemetry.pose() else { continue };
                let fastest = reaches(pose.speed(), f64::INFINITY, Some(pose.speeds_up()));
                let metres = Braking::default().metres(fastest);
                assert!(
                    metres < 6.0,
                    "{bad} on {axis}, step {step}: it stops after {metres} m"
                );
                tokio::time::advance(Duration::from_millis(50)).await;
            }
        }
    }
}

#[test]
fn home_is_a_place_that_is_known() {
    for (lat, lon, amsl_m) in [
        (f64::NAN, f64::NAN, 500.0),
        (0.0, 0.0, 0.0),
        (91.0, 8.0, 500.0),
        (47.0, f64::INFINITY, 500.0),
        (HERE.0, HERE.1, f64::NAN),
    ] {
        let mut telemetry = Telemetry {
            armed: Some(false),
            in_air: Some(false),
            place: at(lat, lon, amsl_m),
            ..Telemetry::default()
        };
        telemetry.moved([0.0; 3], [0.0; 3]);
        telemetry.settle_home();
        assert_eq!(
            (telemetry.home, telemetry.anchor, telemetry.launch),
            (None, None, None),
            "{lat} {lon}"
        );
        telemetry.place = at(HERE.0, HERE.1, 500.0);
        telemetry.settle_home();
        let home = telemetry.home.expect("a home");
        assert!(
            home.centre[0].hypot(home.centre[1]) < 0.01,
            "{lat} {lon}: {home:?}"
        );
        assert_eq!(telemetry.launch, Some(HERE));
    }
}
