//! A charge that is no longer reported is unknown, and of several batteries the one with the lowest charge counts. On
//! virtual time.
use ovos_toolbox_sdk::serde_json::{Value, json};

use crate::paused::{Paused, airborne};

async fn up(paused: &Paused) -> Value {
    paused.fleet.call("move_up", json!({"cm": 30})).await
}

#[test]
fn a_charge_that_is_not_told_any_more_is_not_known() {
    airborne(json!({}), 5.0, |paused| async move {
        paused.fake.lock().batteries = None;
        paused.pass(6.0).await;
        // Some messages may be lost.
        assert_eq!(up(&paused).await["ok"], true);
        paused.pass(8.0).await;
        assert_eq!(up(&paused).await["code"], "no_battery_data");
        let status = paused.fleet.call("battery_status", json!({})).await;
        assert_eq!(
            (&status["ok"], &status["code"]),
            (&json!(false), &json!("no_battery_data"))
        );
        // The reports return and stop again: bringing it to safety needs no battery data.
        paused.fake.lock().batteries = Some(Vec::new());
        paused.pass(3.0).await;
        assert_eq!(up(&paused).await["ok"], true);
        paused.fake.lock().batteries = None;
        paused.pass(15.0).await;
        paused.ok("land", json!({})).await;
    });
}

#[test]
fn the_emptiest_battery_counts() {
    airborne(json!({}), 5.0, |paused| async move {
        for (others, pct) in [
            (vec![(1, 80.0), (2, 10.0), (3, 90.0)], 10.0),
            // A battery without an estimate is ignored.
            (vec![(1, 80.0), (2, f64::NAN)], 80.0),
        ] {
            paused.fake.lock().batteries = Some(others.clone());
            paused.pass(15.0).await;
            let status = paused.ok("battery_status", json!({})).await;
            assert_eq!(status["pct"], pct, "{others:?}: {status}");
            let moved = up(&paused).await;
            assert_eq!(moved["code"] == "battery_low", pct < 25.0, "{others:?}: {moved}");
        }
    });
}

#[test]
fn the_time_that_is_left_is_told_in_minutes() {
    airborne(json!({}), 5.0, |paused| async move {
        {
            let mut sim = paused.fake.lock();
            (sim.vehicle.battery_pct, sim.vehicle.drain) = (60.0, 0.02);
        }
        paused.pass(4.0).await;
        let status = paused.ok("battery_status", json!({})).await;
        let left = status["remaining_min"].as_f64().unwrap();
        // 60 % at 0.02 % per second.
        assert!((left - 50.0).abs() < 0.5, "{status}");
        assert_eq!(status["remaining_m"], status["remaining_min"], "{status}");
    });
}
