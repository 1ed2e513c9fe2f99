//! The battery action: once per flight of ours, in the air, and only while no other party decides. On virtual time.
use crate::fake_mavsdk::Sim;
use crate::paused::{Paused, airborne, empty, fly};
use ovos_toolbox_sdk::serde_json::json;
use px4_sim::Mode;
use px4_sim::log::Cause;

fn low(sim: &mut Sim) {
    sim.vehicle.battery_pct = 20.0;
}

/// The modes requested since then.
fn requested_modes(paused: &Paused, then: f64) -> Vec<String> {
    paused.commands_since(then)
}

#[test]
fn below_the_reserve_it_does_what_the_configuration_says() {
    for (action, mode) in [("rtl", Mode::Return), ("land", Mode::Land), ("hold", Mode::Hold)] {
        airborne(json!({"battery_action": action}), 5.0, |paused| async move {
            let far = json!({"north_m": 30, "east_m": 0, "down_m": -6});
            let under_way = |sim: &Sim| sim.vehicle.body().position[0] > 3.0;
            let (answer, then) = paused.in_the_middle("goto_local", far, under_way, low).await;
            assert_eq!(answer["code"], "battery_low", "{answer}");
            let reached = async {
                while paused.mode() != mode {
                    paused.pass(0.1).await;
                }
            };
            tokio::time::timeout(std::time::Duration::from_secs(10), reached)
                .await
                .unwrap_or_else(|_| panic!("{action}\n{}", paused.story()));
            assert!(paused.time() - then > 2.5, "it waited for no dip: {action}");
            paused.pass(90.0).await;
            assert_eq!(
                paused.truth()["armed"],
                action == "hold",
                "{action}\n{}",
                paused.story()
            );
            assert!(paused.fleet.resume().is_ok());
        });
    }
}

#[test]
fn it_does_nothing_where_another_pilot_decides() {
    fly(json!({}), empty(), |paused| async move {
        // On the ground.
        paused.ok("arm", json!({})).await;
        low(&mut paused.fake.lock());
        let then = paused.time();
        paused.pass(8.0).await;
        assert!(requested_modes(&paused, then).is_empty(), "{}", paused.story());
    });
    fly(json!({}), empty(), |paused| async move {
        // A short dip of the charge.
        paused.take_off(5.0).await;
        let then = paused.time();
        low(&mut paused.fake.lock());
        paused.pass(1.5).await;
        paused.fake.lock().vehicle.battery_pct = 80.0;
        paused.pass(8.0).await;
        assert!(requested_modes(&paused, then).is_empty(), "{}", paused.story());
        // Not in emergency stop, until the latch is lifted.
        paused.fleet.halt(true).await.unwrap();
        paused.pass(6.0).await;
        let then = paused.time();
        low(&mut paused.fake.lock());
        paused.pass(10.0).await;
        assert!(requested_modes(&paused, then).is_empty(), "{}", paused.story());
        paused.fleet.resume().unwrap();
        paused.pass(10.0).await;
        assert_eq!(paused.mode(), Mode::Return, "{}", paused.story());
        // Once only: a user who ends it has priority.
        paused.ok("hold", json!({"ms": 0})).await;
        let then = paused.time();
        paused.pass(20.0).await;
        assert!(requested_modes(&paused, then).is_empty(), "{}", paused.story());
        assert_eq!(paused.mode(), Mode::Hold);
    });
    fly(json!({}), empty(), |paused| async move {
        // Not after a takeover, even when an operator has lifted the latch: the last to fly it was another party.
        paused.take_off(5.0).await;
        paused.fake.lock().vehicle.set_mode(Mode::Posctl, Cause::Pilot);
        paused.pass(3.0).await;
        let then = paused.time();
        low(&mut paused.fake.lock());
        paused.pass(10.0).await;
        paused.fake.lock().vehicle.set_mode(Mode::Hold, Cause::Pilot);
        paused.pass(2.0).await;
        paused.fleet.resume().unwrap();
        paused.pass(10.0).await;
        let sent = requested_modes(&paused, then);
        assert!(
            sent.iter().all(|command| command.contains("hold")),
            "{sent:?}\n{}",
            paused.story()
        );
        assert_eq!(paused.mode(), Mode::Hold);
    });
}
