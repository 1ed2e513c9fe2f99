//! Emergency stop from the command line: over the bus, by a signal, and never reported if it was not confirmed.

use std::time::Duration;

use cli::PidFile;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
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

/// Whether a stop is lifted, or what waits, is said only where the service has said it, and nothing is asked twice.
#[tokio::test]
async fn an_answer_of_the_control_socket_that_says_nothing_is_no_success() {
    let bus = Bus::start(Box::new(|_, _| Vec::new())).await;
    let home = tempfile::tempdir().unwrap();
    let _service = PidFile::claim(&home.path().join("state/ovos-tools"), &bus.url).unwrap();
    std::fs::create_dir_all(home.path().join("run/ovos-tools")).unwrap();
    let socket = UnixListener::bind(home.path().join("run/ovos-tools/control.sock")).unwrap();
    let resume: &[&str] = &["resume", "robot", "s-1"];
    let approve: &[&str] = &["approve"];
    let lifted = r#"{"toolboxes": [{"toolbox_id": "robot", "ok": true}]}"#;
    let large = r#"{"waiting": [{"id": "3fa20c", "text": "wave", "plan": null}]}"#;
    let strange = r#"{"waiting": [{"id": "3fa20c", "text": "wave", "plan": [{"what": "moves"}]}]}"#;
    for (arguments, answer, code, part) in [
        (resume, Some(lifted), 0, "resumed"),
        (
            resume,
            Some(r#"{"error": "PermissionError: no"}"#),
            1,
            "PermissionError: no",
        ),
        (resume, Some("{}"), 4, "did not say whether the stop is lifted"),
        (resume, Some("what?"), 4, "did not say whether the stop is lifted"),
        (resume, None, 4, "did not say whether the stop is lifted"),
        (approve, Some(r#"{"waiting": []}"#), 0, "no calls are waiting"),
        (approve, Some("{}"), 4, "names no calls"),
        (
            approve,
            Some(r#"{"waiting": 7}"#),
            4,
            "no answer that can be read",
        ),
        (approve, None, 4, "no answer that can be read"),
        (approve, Some(large), 0, "too large to be kept"),
        (approve, Some(strange), 0, r#"[{"what":"moves"}]"#),
    ] {
        let arguments = [arguments, &["--bus", &bus.url, "--timeout", "0.3"]].concat();
        let child = command(home.path(), &arguments).spawn().unwrap();
        let (mut connection, _) = timeout(DEADLINE, socket.accept()).await.unwrap().unwrap();
        if let Some(answer) = answer {
            connection
                .write_all(format!("{answer}\n").as_bytes())
                .await
                .unwrap();
        }
        let ran = finish(child).await;
        assert_eq!(ran.code, code, "{arguments:?} {answer:?}: {ran:?}");
        assert!(
            format!("{}{}", ran.out, ran.err).contains(part),
            "{answer:?}: {ran:?}"
        );
    }
    // Another bus than that of the service: another machine is meant.
    let elsewhere = Bus::start(Box::new(|_, _| Vec::new())).await;
    let arguments = [resume, &["--bus", &elsewhere.url, "--timeout", "0.3"]].concat();
    let ran = finish(command(home.path(), &arguments).spawn().unwrap()).await;
    assert_eq!(ran.code, 4, "{ran:?}");
    let asked = |bus: &Bus| bus.requests("ovos.tools.resume").len();
    assert_eq!((asked(&bus), asked(&elsewhere)), (0, 1));
}
