//! The service's answers beyond the published contract, over a real bus: calls with an id, a timeout, progress and
//! cancel; plan and export; stop and resume; events and questions; malformed frames.
//!
//! Every answer is checked against its schema in `schemas/bus`.

mod arguments;
mod calls;
mod content;
mod frames;
mod lists;
mod run;
mod stops;
use crate::support::contract::{Client, World, expect};
use ovos_tools::api::{Topic, Urgent};
use serde_json::{Value, json};

const INVOKE: &str = "ovos.tools.invoke";

const LATCHED: &str = "~EmergencyStop: Robot is in emergency stop state. Reset required.";

fn world() -> (World, Client) {
    let world = World::start(&json!({}));
    let client = world.client();
    (world, client)
}

/// Fails unless `covered` has every topic that the service answers and whose request has a schema.
fn assert_covers_every_topic(table: &str, covered: impl IntoIterator<Item = impl Into<String>>) {
    let covered: Vec<String> = covered.into_iter().map(Into::into).collect();
    let is_answered = |topic: &String| Topic::of(topic, false).is_some() || Urgent::of(topic).is_some();
    let topics = client::payload::schemas().into_keys().filter(is_answered);
    let missing: Vec<String> = topics.filter(|topic| !covered.contains(topic)).collect();
    assert!(missing.is_empty(), "{table} has no row for {missing:?}; add one");
}

/// Each topic that clients know is one that the service answers, or one of these.
#[test]
fn every_topic_has_one_that_answers_it() {
    const OTHERS: [&str; 8] = [
        "ovos.tools.agent.cancel",
        "ovos.tools.agent.progress",
        "ovos.tools.agent.run",
        "ovos.tools.door.beat",
        "ovos.tools.door.hello",
        "ovos.tools.event",
        "ovos.tools.invoke.progress",
        "ovos.tools.voice.join",
    ];
    let topics = client::payload::schemas().into_keys();
    let requests = topics.filter(|topic| !topic.ends_with(".response"));
    let is_answered = |topic: &String| Topic::of(topic, false).is_some() || Urgent::of(topic).is_some();
    let others: Vec<String> = requests.filter(|topic| !is_answered(topic)).collect();
    assert_eq!(
        others, OTHERS,
        "add the name to `Topic::of`, or to this list if a door answers it or nothing does"
    );
}

/// A call that runs until it is ended: `slow` of effect read.
fn start_slow(client: &mut Client, call_id: &str) -> u64 {
    let n = client.send(
        INVOKE,
        json!({"name": "slow", "args": {"seconds": 300}, "call_id": call_id, "progress": true}),
    );
    client.progress(call_id, "action_started");
    n
}

/// A call that moves one arm until it is ended.
fn assemble(client: &mut Client, call_id: &str, more: &Value) -> u64 {
    let mut data = json!({
        "name": "assemble", "call_id": call_id, "progress": true,
        "args": {"subsystems": ["left_arm"], "step_ms": 600_000, "timeout_ms": 3_600_000},
    });
    data.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    client.send(INVOKE, data)
}

fn start_assemble(client: &mut Client, call_id: &str) -> u64 {
    let n = assemble(client, call_id, &json!({}));
    client.progress(call_id, "action_started");
    n
}

fn status_of(client: &mut Client, toolbox_id: &str) -> Value {
    let status = client.ask("ovos.tools.status", json!({}));
    let toolboxes = status["toolboxes"].as_array().unwrap();
    toolboxes
        .iter()
        .find(|t| t["toolbox_id"] == toolbox_id)
        .unwrap()
        .clone()
}

fn resume(client: &mut Client, toolbox_id: &str, stop_id: &Value) -> Value {
    let answer = client.ask(
        "ovos.tools.resume",
        json!({"toolbox_id": toolbox_id, "stop_id": stop_id}),
    );
    answer["toolboxes"][0].clone()
}

/// Lifts every latch.
fn resume_all(client: &mut Client) {
    for toolbox_id in ["testbed", "testbed_dup"] {
        let status = status_of(client, toolbox_id);
        if status["latched"] == true {
            expect(
                "resume",
                &json!({"toolbox_id": toolbox_id, "ok": true}),
                &resume(client, toolbox_id, &status["stop_id"]),
            );
        }
    }
}
