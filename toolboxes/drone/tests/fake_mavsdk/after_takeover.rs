//! Behaviour after a takeover: a second takeover counts like the first, and the service's stop after one vehicle's
//! takeover does not end another vehicle's landing. On virtual time.
use std::sync::Arc;
use std::time::Duration;

use drone::Fleet;
use ovos_toolbox_sdk::serde_json::json;
use px4_sim::log::Cause;
use px4_sim::{Home, Mode, Quirks, Vehicle};

use crate::fake_mavsdk::{FakeMavsdk, Sim};
use crate::paused::{Paused, airborne, empty};

fn pilot(sim: &mut Sim) {
    sim.vehicle.set_mode(Mode::Posctl, Cause::Pilot);
}

#[test]
fn a_pilot_who_takes_over_from_a_return_is_left_alone_too() {
    airborne(json!({}), 5.0, |paused| async move {
        let far = json!({"north_m": 40, "east_m": 0, "down_m": -6});
        let under_way = |sim: &Sim| sim.vehicle.body().position[0] > 20.0;
        let (answer, _) = paused.in_the_middle("goto_local", far, under_way, pilot).await;
        assert_eq!(answer["code"], "pilot_override", "{answer}");
        // An operator may still bring it home, until the pilot takes over again.
        paused.pass(3.0).await;
        let returns = |sim: &Sim| sim.vehicle.mode() == Mode::Return && sim.vehicle.height() > 12.0;
        let (answer, then) = paused.in_the_middle("rtl", json!({}), returns, pilot).await;
        assert_eq!(answer["code"], "pilot_override", "{answer}\n{}", paused.story());
        assert!(
            paused.time() - then < 2.0,
            "it ended {} s later",
            paused.time() - then
        );
        // The pilot lands it, later than the takeover, and waits with the motors on.
        paused.pass(0.1).await;
        paused.fake.lock().vehicle.set_mode(Mode::Land, Cause::Pilot);
        paused.pass(60.0).await;
        let sent = paused.commands_since(then + 0.01);
        // The only command is the pilot's own.
        assert_eq!(sent, ["set_mode land"], "{}", paused.story());
    });
}

/// Two vehicles in the air.
async fn two() -> (Arc<Fleet>, Paused, Paused) {
    let vehicle = || {
        let mut vehicle = Vehicle::new(Home::default(), Quirks::all(), empty());
        vehicle.drain = 0.0;
        FakeMavsdk::start(vehicle)
    };
    let (one, two) = (vehicle(), vehicle());
    let config = json!({"vehicles": [{"id": "one"}, {"id": "two"}]});
    let fleet = Fleet::over_each(vec![one.channel(), two.channel()], config).expect("a good configuration");
    let fleet = Arc::new(fleet);
    let of = |fake: FakeMavsdk| Paused {
        fake,
        fleet: Arc::clone(&fleet),
    };
    let (one, two) = (of(one), of(two));
    one.pass(6.0).await;
    for id in ["one", "two"] {
        one.ok("arm", json!({"vehicle": id})).await;
        one.ok("takeoff", json!({"alt_m": 8, "vehicle": id})).await;
    }
    (fleet, one, two)
}

#[test]
fn a_pilot_of_one_vehicle_does_not_end_the_landing_of_another() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let (fleet, one, two) = two().await;
        one.ok(
            "goto_local",
            json!({"north_m": 4, "east_m": 0, "down_m": -8, "vehicle": "one"}),
        )
        .await;
        let landing = |sim: &Sim| sim.vehicle.mode() == Mode::Land && sim.vehicle.height() < 6.0;
        let echo = async {
            while !landing(&two.fake.lock()) {
                two.pass(0.1).await;
            }
            pilot(&mut one.fake.lock());
            // The takeover is noticed within a second; then the service stops the whole toolbox.
            let state = || fleet.call("vehicle_state", json!({"vehicle": "one"}));
            let override_report = async {
                while state().await["safety"]["pilot_override"].is_null() {
                    one.pass(0.05).await;
                }
            };
            tokio::time::timeout(Duration::from_secs(3), override_report)
                .await
                .expect("the takeover is heard");
            fleet.halt(true).await.expect("sent");
        };
        let (answer, ()) = tokio::join!(fleet.call("land", json!({"vehicle": "two"})), echo);
        assert_eq!(answer["ok"], true, "{answer}\n{}", two.story());
        assert_eq!(one.mode(), Mode::Posctl, "{}", one.story());
        assert!(!two.fake.lock().vehicle.armed());
    });
}

#[test]
fn a_users_stop_ends_a_landing_as_before() {
    airborne(json!({}), 8.0, |paused| async move {
        let landing = |sim: &Sim| sim.vehicle.mode() == Mode::Land && sim.vehicle.height() < 6.0;
        let stop = async {
            while !landing(&paused.fake.lock()) {
                paused.pass(0.1).await;
            }
            paused.fleet.halt(true).await.expect("sent");
        };
        let (answer, ()) = tokio::join!(paused.fleet.call("land", json!({})), stop);
        assert_eq!(answer["code"], "stopped", "{answer}");
        paused.pass(5.0).await;
        assert_eq!(paused.mode(), Mode::Hold, "{}", paused.story());
    });
}
