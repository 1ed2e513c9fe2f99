//! `service.log_calls`: calls are logged with their arguments and outcome, and no call waits for the disk.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::PermissionsExt;

use crate::support::client::Client;
use crate::support::scene::Scene;
use crate::support::service::BusKind;
use serde_json::{Value, json};

const FILE: &str = "state/ovos-tools/calls.jsonl";

#[test]
fn calls_are_written_down_with_arguments_and_outcome() {
    let scene = Scene::new(&json!({ "log_calls": true }));
    let _bus = scene.bus(BusKind::Embedded);
    let mut client = Client::connect(scene.port).in_session("kitchen");
    let mut service = scene.service(&mut client);
    client.invoke("slow", &json!({ "seconds": 0.25 }));
    client.invoke("no_such_tool", &json!({}));
    let large = "x".repeat(300 << 10);
    client.invoke("ping", &json!({ "ignored": large }));
    client.ask(
        "ovos.persona.tools.call",
        &json!({ "toolbox_id": "testbed", "name": "slow", "kwargs": { "seconds": 0.0 }, "call_id": "c4" }),
    );
    // This request calls no tool.
    client.ask("ovos.tools.list", &json!({}));

    let path = scene.sandbox.path(FILE);
    let lines: Vec<Value> = service.until("four calls in the file", |_| {
        let text = fs::read_to_string(&path).ok()?;
        let lines: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).ok())
            .collect::<Option<_>>()?;
        (lines.len() >= 4).then_some(lines)
    });
    assert_eq!(lines.len(), 4);
    let [slow, unknown, long, persona] = &lines[..] else {
        unreachable!("four of them")
    };
    assert_eq!(slow["topic"], "ovos.tools.invoke");
    assert_eq!(
        slow["request"],
        json!({ "name": "slow", "args": { "seconds": 0.25 }, "toolbox_id": "testbed" })
    );
    assert_eq!(slow["result"]["seconds"], 0.25);
    assert_eq!(
        (&slow["source"], &slow["session_id"]),
        (&json!("test"), &json!("kitchen"))
    );
    assert!(slow["elapsed_ms"].as_u64().unwrap() >= 250, "{slow}");
    assert!(slow["time"].as_str().unwrap().ends_with('Z'), "{slow}");
    assert!(
        unknown["error"].as_str().unwrap().contains("no_such_tool"),
        "{unknown}"
    );
    assert_eq!(
        (&long["left_out"], &long["request"]),
        (&json!(["request"]), &Value::Null)
    );
    assert_eq!(persona["topic"], "ovos.persona.tools.call");
    assert_eq!(persona["request"]["call_id"], "c4");
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "other users can read the arguments");
}

#[test]
fn by_default_nothing_is_written_down() {
    let scene = Scene::new(&json!({}));
    let _bus = scene.bus(BusKind::Embedded);
    let mut client = Client::connect(scene.port);
    let _service = scene.service(&mut client);
    client.invoke("ping", &json!({}));
    client.invoke("ping", &json!({}));
    assert!(!scene.sandbox.path(FILE).exists());
}

/// The file is a pipe that takes 64 KiB and is never read.
#[test]
fn a_disk_that_stands_still_holds_up_no_call() {
    let scene = Scene::new(&json!({ "log_calls": true }));
    let path = scene.sandbox.path(FILE);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
    assert!(made.success());
    let _pipe = OpenOptions::new().read(true).write(true).open(&path).unwrap();

    let _bus = scene.bus(BusKind::Embedded);
    let mut client = Client::connect(scene.port);
    let service = scene.service(&mut client);
    let text = "x".repeat(1000);
    for _ in 0..300 {
        client.invoke("ping", &json!({ "ignored": text }));
    }
    let stopped = client.ask("ovos.tools.stop", &json!({}));
    assert_eq!(stopped["toolboxes"][0]["ok"], true, "{stopped}");
    let log = service.output();
    assert!(
        log.contains("a call was not written to the log of calls"),
        "{log}"
    );
}
