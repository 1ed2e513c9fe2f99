//! The promises of a toolbox's life, for toolboxes in the service's own process.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on fails"
)]

#[path = "support/copies.rs"]
mod copies;
#[path = "support/fixture.rs"]
mod fixture;
#[path = "support/halts.rs"]
mod halts;
#[path = "support/open_toolbox.rs"]
mod open_toolbox;
#[path = "support/reload.rs"]
mod reload;
#[path = "support/rig.rs"]
mod rig;

use std::sync::{Arc, Mutex};

use host::{Manager, Probe, Settings};
use reload::check;
use rig::Rig;
use serde_json::json;

const ISOLATION: host::Isolation = host::Isolation::InProcess;

#[tokio::test]
async fn generations_are_limited_and_the_limit_counts_libraries() {
    let rig = Rig::with(|settings| settings.max_generations = 2);
    rig.add("arm", "1", &[]);
    rig.reload().await;
    rig.add("arm", "2", &[]);
    check(&rig.reload().await, json!({"replaced": ["arm"]}));
    // Another configuration needs no other library.
    rig.configure("arm", &json!({"speed": 1}));
    check(&rig.reload().await, json!({"replaced": ["arm"]}));
    assert_eq!(rig.get("arm").generation, 3);
    rig.add("arm", "3", &[]);
    let report = rig.reload().await;
    check(&report, json!({"broken": 1}));
    assert!(report.broken[0].reason.contains("restart needed"), "{report:?}");
    assert_eq!(rig.version("arm").await, "2");
}

/// Publishing compiles schemas; the reader of the bus must not wait for that when it has a message for a toolbox.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bus_message_does_not_wait_for_a_snapshot_that_is_being_published() {
    let fixtures = fixture::FixtureFolder::new();
    fixtures.build("well_behaved", &[]);
    let stage = fixtures.path().join(".stage");
    std::fs::create_dir(&stage).unwrap();
    let probe = Probe::with_program(env!("CARGO_BIN_EXE_ovos-tools"));
    let mut settings = Settings::new(vec![fixtures.path().to_owned()], probe);
    settings.stage_dirs = vec![stage];
    let (entered, is_inside) = std::sync::mpsc::channel();
    let (go_on, may_go) = std::sync::mpsc::channel::<()>();
    let (entered, may_go) = (Mutex::new(entered), Mutex::new(may_go));
    let publish = Arc::new(move |_| {
        _ = entered.lock().unwrap().send(());
        _ = may_go.lock().unwrap().recv_timeout(fixture::DEADLINE);
    });
    let seen = fixture::Recorder::new();
    let drains = Arc::new(rig::Drains::default());
    let manager = Arc::new(Manager::new(settings, seen, drains, publish).unwrap());
    let loading = tokio::spawn({
        let manager = manager.clone();
        async move { manager.reload().await }
    });
    let delivered = tokio::task::spawn_blocking({
        let manager = manager.clone();
        move || {
            is_inside.recv_timeout(fixture::DEADLINE).unwrap();
            manager.deliver_message("speak", "{}");
        }
    });
    // Were it behind the snapshot, this would take until the publisher gives up.
    tokio::time::timeout(fixture::DEADLINE / 2, delivered)
        .await
        .expect("the message waits for the snapshot")
        .unwrap();
    drop(go_on);
    fixture::within(loading).await.unwrap();
}
