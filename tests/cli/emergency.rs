//! Emergency stop from the command line: over the bus, by a signal, and never reported if it was not confirmed.

use std::time::Duration;

use cli::PidFile;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::UnixListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::timeout;

use crate::scripted::{Bus, DEADLINE, command, finish, run, unused_address};

const TOPIC: &str = "ovos.tools.stop";

fn stops(topic: &str, data: &Value) -> Vec<(String, Value)> {
    if topic != TOPIC {
        return Vec::new();
    }
    let all = json!([{"toolbox_id": "math", "ok": true, "stop_id": "s-1"},
        {"toolbox_id": "robot", "ok": false, "stop_id": "s-2", "error": "halt not confirmed"}]);
    let toolboxes = match data["toolbox_id"].as_str() {
        Some("math") => json!([all[0]]),
        Some("robot") => json!([all[1]]),
        _ => all,
    };
    vec![(format!("{TOPIC}.response"), json!({ "toolboxes": toolboxes }))]
}

#[tokio::test]
async fn everything_is_stopped_and_an_unconfirmed_halt_is_an_error() {
    let bus = Bus::start(Box::new(stops)).await;
    let ran = run(&["stop", "--bus", &bus.url]).await;
    let text = "\
\x20TOOLBOX  STATE        STOP ID  ERROR
 math     stopped      s-1
 robot    NOT stopped  s-2      halt not confirmed

When it is safe, run:
  ovos-tools resume math s-1
  ovos-tools resume robot s-2
";
    assert_eq!((ran.code, &*ran.out), (1, text));
    assert_eq!(ran.err, "error: not stopped: robot: halt not confirmed\n");
    assert_eq!(bus.requests(TOPIC), [json!({})]);
}

#[tokio::test]
async fn a_name_that_no_toolbox_has_is_told() {
    let bus = Bus::start(Box::new(stops)).await;
    let ran = run(&["stop", "maths", "--bus", &bus.url]).await;
    let remark = "there is no toolbox `maths`, so the stop went to all of them\n";
    assert_eq!((ran.code, ran.err.contains(remark)), (1, true), "{ran:?}");
}

#[tokio::test]
async fn named_toolboxes_are_stopped_at_once_and_shown_together() {
    let bus = Bus::start(Box::new(stops)).await;
    let ran = run(&["stop", "math", "robot", "--json", "--bus", &bus.url]).await;
    assert_eq!(ran.code, 1, "{ran:?}");
    let data: Value = serde_json::from_str(&ran.out).unwrap();
    let ids: Vec<&Value> = data["toolboxes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["toolbox_id"])
        .collect();
    assert_eq!(ids, ["math", "robot"]);
    assert_eq!(
        bus.requests(TOPIC),
        [json!({"toolbox_id": "math"}), json!({"toolbox_id": "robot"})]
    );
    let ran = run(&["stop", "math", "--bus", &bus.url]).await;
    assert_eq!((ran.code, &*ran.err), (0, ""));
}

#[tokio::test]
async fn a_broken_configuration_does_not_prevent_a_stop() {
    let bus = Bus::start(Box::new(stops)).await;
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("broken.conf");
    std::fs::write(&file, "{ not JSON").unwrap();
    let ran = run(&[
        "stop",
        "math",
        "--bus",
        &bus.url,
        "--config",
        file.to_str().unwrap(),
    ])
    .await;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.err.contains("sending the stop to"), "{}", ran.err);
}

/// One test, because a signal affects the whole process, and this process acts as the service.
#[tokio::test]
async fn without_an_answer_from_the_bus_the_service_on_this_machine_gets_a_signal() {
    let mut received = signal(SignalKind::user_defined1()).unwrap();
    let home = tempfile::tempdir().unwrap();
    let state = home.path().join("state/ovos-tools");
    let silent = Bus::start(Box::new(|_, _| Vec::new())).await;
    let slow = "a stop that was not confirmed";
    for (bus, reason) in [(unused_address().await, "no bus"), (silent.url.clone(), slow)] {
        let service = PidFile::claim(&state, &bus).unwrap();
        let child = command(home.path(), &["stop", "--bus", &bus, "--timeout", "0.6"])
            .spawn()
            .unwrap();
        timeout(DEADLINE, received.recv())
            .await
            .unwrap_or_else(|_| panic!("{reason}: no signal"));
        let ran = finish(child).await;
        assert_eq!(ran.code, 4, "{reason}: {ran:?}");
        let expected = format!(
            "SIGUSR1 sent to the service on this machine (process {})",
            std::process::id()
        );
        assert!(
            ran.err.contains("error: the stop is not confirmed: ") && ran.err.contains(&expected),
            "{}",
            ran.err
        );
        drop(service);
    }

    // A control socket that takes the request and does not answer holds the signal up, but not for long.
    let service = PidFile::claim(&state, &silent.url).unwrap();
    std::fs::create_dir_all(home.path().join("run/ovos-tools")).unwrap();
    let socket = UnixListener::bind(home.path().join("run/ovos-tools/control.sock")).unwrap();
    let arguments = ["stop", "--bus", &silent.url, "--timeout", "0.6"];
    let child = command(home.path(), &arguments).spawn().unwrap();
    let (connection, _) = timeout(DEADLINE, socket.accept()).await.unwrap().unwrap();
    let mut requests = BufReader::new(connection);
    let mut line = String::new();
    timeout(DEADLINE, requests.read_line(&mut line))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(line.trim(), r#"{"do":"stop"}"#);
    timeout(DEADLINE, received.recv()).await.expect("the signal");
    let ran = finish(child).await;
    assert_eq!(ran.code, 4, "{ran:?}");
    drop((service, socket, requests));
    std::fs::remove_file(home.path().join("run/ovos-tools/control.sock")).unwrap();

    // Another bus than that of the service: another machine is meant.
    let service = PidFile::claim(&state, "ws://127.0.0.1:1/core").unwrap();
    let elsewhere = unused_address().await;
    let ran = finish(
        command(home.path(), &["stop", "--bus", &elsewhere])
            .spawn()
            .unwrap(),
    )
    .await;
    assert_eq!(ran.code, 4, "{ran:?}");
    assert!(ran.err.contains("and was not signalled"), "{}", ran.err);
    drop(service);

    // A service that has ended gets no signal: another program may have its process id now.
    let ran = finish(
        command(home.path(), &["stop", "--bus", &elsewhere])
            .spawn()
            .unwrap(),
    )
    .await;
    assert!(
        ran.err.contains("no service on this machine to signal"),
        "{}",
        ran.err
    );
    let again = timeout(Duration::ZERO, received.recv()).await;
    assert!(again.is_err(), "there is nothing to signal any more");
}
