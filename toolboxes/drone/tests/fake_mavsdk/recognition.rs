//! A vehicle is flown as a simulation only after it was recognised as one, and again after every reconnect; a vehicle
//! that restarts is prepared again. On virtual time, and with addresses from the configuration.
use std::sync::Arc;
use std::time::Duration;

use crate::fake_mavsdk::{FakeMavsdk, Sim};
use crate::paused::{Paused, fly};
use drone::{Drone, Fleet};
use ovos_toolbox_sdk::serde_json::{Value, json};
use ovos_toolbox_sdk::testing::Harness;
use px4_sim::link::SITL_UID;
use px4_sim::params::Param;
use px4_sim::{Home, Quirks, Vehicle, World};

/// Runs a test on a vehicle that is modified before the toolbox connects.
fn meet<F: Future<Output = ()>>(
    config: Value,
    change: impl FnOnce(&mut Sim),
    test: impl FnOnce(Paused) -> F,
) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let fake = FakeMavsdk::start(Vehicle::new(Home::default(), Quirks::all(), World::default()));
        change(&mut fake.lock());
        let fleet = Arc::new(Fleet::over(fake.channel(), config).unwrap());
        let paused = Paused { fake, fleet };
        paused.pass(8.0).await;
        test(paused).await;
    });
}

fn set(sim: &mut Sim, name: &str, value: i32) {
    sim.vehicle.params.set(name, Param::Int(value)).unwrap();
}

#[test]
fn what_is_not_recognised_as_a_simulation_is_not_commanded() {
    let sitl = || json!({"backend": "sitl", "vehicles": [{"id": "drone", "url": "udpin://127.0.0.1:14540"}]});
    let real = || {
        json!({"backend": "vehicle", "allow_real_vehicle": true,
            "vehicles": [{"id": "drone", "url": "udpin://127.0.0.1:14540"}]})
    };
    type Change = fn(&mut Sim);
    // The vehicle, and whether it arms and is reported as simulated.
    let rows: [(&str, Value, Change, bool, bool); 9] = [
        ("SIH", sitl(), |_| {}, true, true),
        (
            "its tenth instance",
            sitl(),
            |sim| sim.uid = SITL_UID + 9,
            true,
            true,
        ),
        (
            "Gazebo",
            sitl(),
            |sim| {
                set(sim, "SENS_EN_GPSSIM", 0);
                set(sim, "SIM_GZ_EN", 1);
            },
            true,
            true,
        ),
        (
            "a real autopilot",
            sitl(),
            |sim| sim.uid = 3_690_507_541_151_037_490,
            false,
            false,
        ),
        ("no number", sitl(), |sim| sim.uid = 0, false, false),
        (
            "hardware in the loop",
            sitl(),
            |sim| set(sim, "SYS_HITL", 1),
            false,
            false,
        ),
        (
            "real sensors",
            sitl(),
            |sim| set(sim, "SENS_EN_GPSSIM", 0),
            false,
            false,
        ),
        (
            "a simulation flown as a real vehicle",
            real(),
            |_| {},
            true,
            false,
        ),
        (
            "a real vehicle",
            real(),
            |sim| sim.uid = 3_690_507_541_151_037_490,
            true,
            false,
        ),
    ];
    for (what, config, change, commanded, simulated) in rows {
        meet(config, change, |paused| async move {
            for tool in ["arm", "disarm", "land", "capture_photo"] {
                let answer = paused.fleet.call(tool, json!({})).await;
                assert_eq!(
                    answer["code"] != "not_trusted",
                    commanded,
                    "{what}: {tool}: {answer}"
                );
                assert_eq!(answer["simulated"], simulated, "{what}: {tool}: {answer}");
            }
            paused.fleet.halt(true).await.unwrap();
            paused.pass(5.0).await;
            let sent = paused.commands_since(0.0);
            assert_eq!(sent.is_empty(), !commanded, "{what}: {sent:?}");
        });
    }
}

#[test]
fn it_is_recognised_again_after_a_silence_and_after_a_restart() {
    let silence: fn(&mut Sim) = |sim| sim.silent = true;
    let restart: fn(&mut Sim) = |sim| {
        sim.reboot();
        sim.uid = 1;
    };
    for (what, happen) in [("a silence", silence), ("a restart without one", restart)] {
        meet(
            json!({}),
            |_| {},
            |paused| async move {
                paused.ok("arm", json!({})).await;
                paused.ok("disarm", json!({})).await;
                happen(&mut paused.fake.lock());
                paused.pass(5.0).await;
                // Another vehicle takes its place.
                {
                    let mut sim = paused.fake.lock();
                    (sim.uid, sim.silent) = (1, false);
                }
                let before = paused.commands_since(0.0).len();
                for _ in 0..100 {
                    paused.fleet.call("arm", json!({})).await;
                    let _ = paused.fleet.halt(true).await;
                    paused.pass(0.1).await;
                }
                let answer = paused.fleet.call("arm", json!({})).await;
                assert_eq!(answer["code"], "not_trusted", "{what}: {answer}");
                assert_eq!(answer["simulated"], false, "{what}: {answer}");
                let sent = paused.commands_since(0.0);
                assert_eq!(sent.len(), before, "{what}: {sent:?}");
            },
        );
    }
}

#[test]
fn a_vehicle_that_restarts_is_prepared_again() {
    for silence in [0.0, 6.0] {
        fly(json!({}), World::default(), |paused| async move {
            let prepared = || {
                let sim = paused.fake.lock();
                let (fence, valid) = sim.vehicle.fence();
                (
                    sim.vehicle.params.float("RTL_RETURN_ALT"),
                    valid && !fence.is_empty(),
                )
            };
            let before = prepared();
            assert!(before.0 < 29.5 && before.1, "{before:?}");
            paused.fake.lock().silent = silence > 0.0;
            paused.pass(silence).await;
            {
                let mut sim = paused.fake.lock();
                sim.reboot();
                sim.silent = false;
            }
            paused.pass(10.0).await;
            assert_eq!(prepared(), before, "after {silence} s of silence");
            paused.take_off(3.0).await;
        });
    }
}

#[test]
fn health_from_before_a_restart_arms_nothing() {
    fly(json!({}), World::default(), |paused| async move {
        paused.fake.lock().silent = true;
        paused.pass(5.0).await;
        {
            let mut sim = paused.fake.lock();
            sim.reboot();
            sim.silent = false;
            sim.vehicle.health.gps = false;
        }
        let mut codes = std::collections::BTreeSet::new();
        for _ in 0..40 {
            let answer = paused.fleet.call("arm", json!({})).await;
            assert_eq!(answer["ok"], false, "{answer}");
            codes.insert(answer["code"].as_str().unwrap().to_owned());
            paused.pass(0.2).await;
        }
        assert!(codes.contains("preflight"), "{codes:?}");
    });
}

#[test]
fn a_simulation_is_on_this_machine() {
    for (place, taken) in [
        (json!({"url": "udpin://127.0.0.1:14540"}), true),
        (json!({"url": "tcpout://localhost:5760"}), true),
        (json!({"url": "udpin://[::1]:14540"}), true),
        (json!({"address": "http://127.0.0.1:50051"}), true),
        (json!({"url": "serial:///dev/ttyACM0:921600"}), false),
        (json!({"url": "udpin://0.0.0.0:14540"}), false),
        (json!({"url": "udpin://:14540"}), false),
        (json!({"url": "udpout://192.168.1.7:14540"}), false),
        (json!({"url": "udpin://127.0.0.1.example.org:14540"}), false),
        (json!({"address": "http://drone.local:50051"}), false),
        (
            json!({"url": "udpin://127.0.0.1:14540", "address": "http://10.0.0.2:50051"}),
            false,
        ),
    ] {
        let mut vehicle = place.clone();
        vehicle["id"] = json!("drone");
        let config = json!({"backend": "sitl", "mavsdk_server": "/nowhere", "vehicles": [vehicle]});
        let opened = Harness::open::<Drone>(config);
        assert_eq!(opened.is_ok(), taken, "{place}");
        if let Err(refused) = opened {
            assert!(refused.failure.message.contains("loopback"), "{place}: {refused}");
        }
    }
}

#[test]
fn a_vehicle_that_is_not_there_is_said_to_be_missing() {
    let config = json!({"backend": "sitl", "vehicles": [{"id": "drone", "address": "http://127.0.0.1:1"}]});
    let harness = Harness::open::<Drone>(config)
        .unwrap()
        .with_deadline(Duration::from_secs(30));
    let began = std::time::Instant::now();
    let first = harness.call("arm", json!({})).unwrap();
    let waited = began.elapsed();
    assert_eq!(first["code"], "link_down", "{first}");
    let message = first["msg"].as_str().unwrap();
    assert!(
        message.contains("no vehicle was heard") && message.contains("127.0.0.1:1"),
        "{first}"
    );
    assert!(waited < Duration::from_millis(6000), "{waited:?}");
    // The next call fails at once.
    let began = std::time::Instant::now();
    harness.call("arm", json!({})).unwrap();
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
}
