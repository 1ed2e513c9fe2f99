//! The two lanes to a process: what is full on one is nothing to the other.

use std::os::unix::fs::PermissionsExt;

use engine::{RunId, RunResult, Toolbox};
use futures_util::FutureExt;
use host::Hosted;
use ovos_toolbox_wire::Completion;

use crate::support::fixture::{FixtureFolder, Recorder, action, all, opening, process_of, within};

/// A program that reads nothing of its data lane once it is open, and serves its control lane.
const DEAF: &str = r#"#!/usr/bin/env python3
import json, socket, struct

data, control = socket.socket(fileno=0), socket.socket(fileno=1)

def say(lane, notice, body):
    text = json.dumps({"notice": notice, "body": body}).encode()
    lane.sendall(struct.pack("<I", len(text)) + text)

def read(lane, count):
    text = b""
    while len(text) < count:
        text += lane.recv(count - len(text)) or exit(0)
    return text

def hear(lane):
    order = json.loads(read(lane, struct.unpack("<I", read(lane, 4))[0]))
    return order["order"], order["body"]

manifest = {"id": "good", "version": "1", "description": "refuses to read"}
say(data, "hello", {"protocol": 2, "toolboxes": [manifest]})
hear(data)
say(data, "opened", {"seq": 0, "answer": {"ok": {"halt": True}}})
control.setblocking(True)
while True:
    order, body = hear(control)
    if order == "beat":
        say(control, "beat", {"seq": body["seq"]})
    if order == "halt":
        say(control, "halted", {"seq": body["seq"], "answer": {"ok": None}})
"#;

#[tokio::test]
async fn a_full_data_lane_refuses_calls_and_delays_no_halt() {
    let fixtures = FixtureFolder::new();
    let (mut process, manifest) = process_of(&fixtures.build("well_behaved", &[])).await;
    process.program = fixtures.path().join("deaf");
    std::fs::write(&process.program, DEAF).unwrap();
    std::fs::set_permissions(&process.program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let toolbox = Hosted::in_child(process, manifest, opening("{}"), Recorder::new())
        .await
        .unwrap();
    let mut huge = action("go", 0);
    huge.action
        .params
        .insert("text".to_owned(), "x".repeat(16 << 20).into());
    let mut sent = Vec::new();
    let refused = loop {
        assert!(sent.len() < 8, "it is never full");
        let mut run = toolbox.start(RunId(sent.len() as u64 + 1), huge.clone(), None);
        match (&mut run).now_or_never() {
            Some(ended) => break ended,
            None => sent.push(run),
        }
    };
    let RunResult::Reported(Completion::Error(failure)) = refused else {
        panic!("expected a refusal, got {refused:?}");
    };
    assert_eq!(failure.kind, "BusyError", "{failure}");
    // Each of them has to get through: what waits on the data lane is sent, or dropped, by another thread.
    for stop in 1..=20 {
        within(toolbox.halt(all(true, stop))).await.unwrap();
    }
}
