//! A message of the bus reaches toolboxes whatever the manager does.

use std::sync::{Arc, Mutex};

use host::{Greeter, Manager, Settings};

use crate::support::{fixture, rig};

/// Publishing compiles schemas; the reader of the bus must not wait for that when it has a message for a toolbox.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bus_message_does_not_wait_for_a_snapshot_that_is_being_published() {
    let fixtures = fixture::FixtureFolder::new();
    fixtures.build("well_behaved", &[]);
    let stage = fixtures.path().join(".stage");
    std::fs::create_dir(&stage).unwrap();
    let greeter = Greeter::with_program(env!("CARGO_BIN_EXE_ovos-tools"));
    let mut settings = Settings::new(vec![fixtures.path().to_owned()], greeter);
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
