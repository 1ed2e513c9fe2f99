//! The history of a real service, as `ovos-tools history` shows it.

use std::os::unix::fs::PermissionsExt as _;
use std::time::Instant;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::console::{history, lines, until};
use crate::support::client::Client;
use crate::support::console::{binary, start};
use crate::support::process::DEADLINE;
use crate::support::scene::Scene;

fn ids(calls: &[Value]) -> Vec<&str> {
    calls
        .iter()
        .map(|call| call["call_id"].as_str().unwrap())
        .collect()
}

#[test]
fn what_happened_while_the_console_was_down_is_there_afterwards_and_is_found_by_every_filter() {
    let scene = Scene::new(&json!({"doors": {"console": {"address": "127.0.0.1:0"}}}));
    let (code, _, text) = history(&scene, &[]);
    assert_eq!(code, 5);
    assert!(
        text.contains("no history yet") && text.contains("ovos-tools console"),
        "{text}"
    );

    let (_bus, mut service, mut client) = scene.open();
    let invoke = |client: &mut Client, id: &str, name: &str, args: Value| {
        client.ask(
            "ovos.tools.invoke",
            &json!({"name": name, "args": args, "call_id": id}),
        )
    };
    invoke(&mut client, "first", "ping", json!({}));
    let mut console = start(&scene);
    until(&scene, &["--json"], "first call", |text| {
        text.contains("\"first\"")
    });
    console.kill();
    // While it is down: a call that works, one that fails, and another run of the service.
    invoke(&mut client, "second", "ping", json!({}));
    invoke(&mut client, "failed", "fail", json!({"message": "no"}));
    service.signal(Signal::TERM);
    service.end_within(DEADLINE);
    let _service = scene.service(&mut client);
    // What the page reads each second is not kept.
    invoke(&mut client, "console-look-1", "ping", json!({}));
    invoke(&mut client, "third", "ping", json!({}));
    let _console = start(&scene);
    until(&scene, &["--json"], "third call", |text| {
        text.contains("\"third\"")
    });

    for (filter, expected) in [
        (&["--json"][..], &["third", "failed", "second", "first"][..]),
        (&["--json", "--limit", "1"], &["third"]),
        (&["--json", "--tool", "ping"], &["third", "second", "first"]),
        (
            &["--json", "--toolbox", "testbed", "--limit", "2"],
            &["third", "failed"],
        ),
        (&["--json", "--toolbox", "other"], &[]),
        (&["--json", "--failed"], &["failed"]),
        (&["--json", "--since", "1h", "--failed"], &["failed"]),
        (&["--json", "--since", "2999-01-01"], &[]),
        (&["--json", "--session", "other"], &[]),
        (&["export"], &["first", "second", "failed", "third"]),
        (&["export", "--tool", "fail"], &["failed"]),
    ] {
        let calls = lines(&scene, filter);
        assert_eq!(ids(&calls), expected, "{filter:?}");
    }
    let exported = lines(&scene, &["export", "--tool", "ping"]);
    let kinds = |call: &Value| -> Vec<String> {
        let facts = call["facts"].as_array().unwrap().iter();
        facts
            .map(|fact| fact["fact"].as_str().unwrap().to_owned())
            .collect()
    };
    for call in &exported {
        let kinds = kinds(call);
        assert_eq!(kinds.first().unwrap(), "received", "{call}");
        assert_eq!(kinds.last().unwrap(), "answered", "{call}");
        assert!(call["ok"] == true && call["ended_us"].as_i64() >= call["started_us"].as_i64());
    }
    assert_ne!(
        exported[0]["run"], exported[2]["run"],
        "runs of the service differ"
    );

    let (_, table, _) = history(&scene, &[]);
    assert!(
        table.starts_with("started") && table.contains("testbed"),
        "{table}"
    );
    let (_, shown, _) = history(&scene, &["show", "sec"]);
    assert!(
        shown.contains("second") && shown.contains("wave 1") && shown.contains('█'),
        "{shown}"
    );
    let (code, _, wrong) = history(&scene, &["show", "none"]);
    assert!(code == 1 && wrong.contains("no call with the id none"), "{wrong}");
    let (code, _, wrong) = history(&scene, &["--since", "yesterday"]);
    assert!(code == 2 && wrong.contains("expected a time such as"), "{wrong}");
}

#[test]
fn the_oldest_go_when_there_is_too_much_and_another_format_is_named() {
    let scene = Scene::new(&json!({ "doors": { "console": { "keep_mb": 1, "address": "127.0.0.1:0" } } }));
    let (_bus, _service, mut client) = scene.open();
    let padding = "x".repeat(15_000);
    for at in 0..300 {
        let id = format!("call-{at:03}");
        client.ask(
            "ovos.tools.invoke",
            &json!({"name": "echo", "args": {"text": padding}, "call_id": id}),
        );
    }
    let mut console = start(&scene);
    until(&scene, &["--json", "--limit", "1"], "last call", |text| {
        text.contains("call-299")
    });
    let calls = until(
        &scene,
        &["--json", "--limit", "1000"],
        "oldest calls that went",
        |text| text.contains("call-299") && !text.contains("call-000"),
    );
    assert!(calls.lines().count() < 300);
    console.kill();
    let end = Instant::now() + DEADLINE;
    loop {
        client.invoke("ping", &json!({}));
        let (_, _, note) = history(&scene, &["--limit", "1"]);
        if note.contains("the history ends at") {
            break;
        }
        assert!(note.is_empty() && Instant::now() < end, "{note}");
    }
    let file = scene.sandbox.path("state/ovos-tools/history.sqlite");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);

    // The version stands at byte 60 of an SQLite database.
    _ = std::fs::remove_file(file.with_file_name("history.sqlite-wal"));
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[60..64].copy_from_slice(&9_u32.to_be_bytes());
    std::fs::write(&file, bytes).unwrap();
    let (code, _, wrong) = history(&scene, &[]);
    assert!(code == 5 && wrong.contains("has format 9, expected 1"), "{wrong}");
    let mut again = scene.sandbox.command(binary());
    again.arg("history");
    assert!(!again.output().unwrap().status.success());
}
