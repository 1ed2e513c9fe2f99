//! The end of the service: if asked, it ends its calls, halts, answers and ends in order; if killed, it leaves
//! nothing that disturbs the next start.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::support::client::Client;
use crate::support::process::Process;
use crate::support::scene::{Scene, assert_halted, assert_still, ready};
use crate::support::service::{BusKind, testbed_plugins};
use rustix::process::Signal;
use serde_json::{Value, json};

/// The time limit of a shutdown.
const PATIENCE: Duration = Duration::from_secs(5);

fn moves() -> Value {
    json!({ "step_ms": 2, "steps": 100_000, "timeout_ms": 300_000 })
}

/// A motion under way, one that waits for it, and two hundred calls of `slow`.
fn busy(scene: &Scene) -> (Process, Client, Process, Vec<String>) {
    let (bus, service, mut client) = scene.open();
    let calls = fill(scene, &mut client);
    (bus, client, service, calls)
}

fn fill(scene: &Scene, client: &mut Client) -> Vec<String> {
    let mut calls: Vec<String> = (0..200).map(|n| format!("slow-{n}")).collect();
    for call_id in &calls {
        client.call(call_id, "slow", &json!({ "seconds": 300 }));
    }
    for call_id in ["motion-0", "motion-1"] {
        client.call(call_id, "assemble", &moves());
        calls.push(call_id.to_owned());
    }
    client.until_phases(&[("running", 201), ("queued", 1)]);
    scene.until_moving("motion-");
    calls
}

fn ends_in_order(signal: Signal) {
    let scene = Scene::new(&json!({}));
    let (_bus, mut client, mut service, calls) = busy(&scene);
    service.signal(signal);
    // The shutdown has begun when the first call has ended. Requests that arrive now are answered, too.
    client.until_any_answered(&calls);
    client.call("late", "slow", &json!({ "seconds": 300 }));
    let calls: Vec<String> = calls.into_iter().chain(["late".to_owned()]).collect();
    client.until_answered(&calls);
    let status = service.end_within(PATIENCE);
    assert_eq!(status.code(), Some(0), "{status}\n{}", service.log());
    // Everything that it sent comes before this on the bus.
    client.send("test.marker", &json!({}));
    client.until("the marker", |frame| {
        (frame["type"] == "test.marker").then_some(())
    });
    for call_id in &calls {
        let answer = client.only_answer(call_id);
        let moved = answer["result"]["success"] == false;
        let error = answer["error"]
            .as_str()
            .is_some_and(|error| error.contains("the service is shutting down"));
        assert!(moved || error, "{call_id}: {answer}");
    }
    assert_halted(&scene.motors());
    // Nothing was interrupted, so the next service latches nothing.
    let _next = scene.service(&mut client);
    let again = client.invoke("assemble", &json!({ "step_ms": 1, "steps": 1 }));
    assert_eq!(again["result"]["success"], true, "{again}");
}

#[test]
fn sigterm_ends_it_in_order() {
    ends_in_order(Signal::TERM);
}

#[test]
fn ctrl_c_ends_it_in_order() {
    ends_in_order(Signal::INT);
}

#[test]
fn a_closed_terminal_ends_it_in_order() {
    ends_in_order(Signal::HUP);
}

#[test]
fn the_other_key_of_a_terminal_ends_it_in_order() {
    ends_in_order(Signal::QUIT);
}

/// A service that was started to outlive its terminal does.
#[test]
fn under_nohup_it_outlives_its_terminal() {
    let scene = Scene::new(&json!({}));
    let _bus = scene.bus(BusKind::Embedded);
    let mut client = Client::connect(scene.port);
    let mut command = scene.sandbox.command("sh");
    let program = env!("CARGO_BIN_EXE_ovos-tools");
    let plugins = testbed_plugins();
    let serve = format!(
        "trap '' HUP; exec {program} serve --plugins {}",
        plugins.display()
    );
    command.args(["-c", &serve]);
    let mut service = Process::start("service", &scene.sandbox, command);
    ready(&mut service, &mut client);
    service.signal(Signal::HUP);
    let answer = client.invoke("add", &json!({ "a": 1, "b": 1 }));
    assert_eq!(answer["result"]["result"], 2, "{answer}\n{}", service.log());
    service.signal(Signal::TERM);
    assert_eq!(service.end_within(PATIENCE).code(), Some(0), "{}", service.log());
}

/// The answers also pass through the service's own bus before it ends.
#[test]
fn its_own_bus_goes_last() {
    let scene = Scene::new(&json!({}));
    let mut service = scene.service_started(&["--embedded-bus", "always"]);
    let mut client = Client::connect(scene.port);
    ready(&mut service, &mut client);
    let calls = fill(&scene, &mut client);
    service.signal(Signal::TERM);
    client.until_answered(&calls);
    let status = service.end_within(PATIENCE);
    assert_eq!(status.code(), Some(0), "{status}\n{}", service.log());
    for call_id in &calls {
        client.only_answer(call_id);
    }
}

/// A machine that takes longer than others to come to rest gets that time, and its toolbox closes after it.
#[test]
fn a_machine_that_rests_slowly_is_waited_for() {
    let scene = Scene::new(&json!({ "settle_ms": 9000 }));
    let (bus, mut service, mut client) = scene.open();
    let slow = json!({ "step_ms": 6000, "steps": 1, "ignore_cancel": true, "timeout_ms": 60_000 });
    client.call("slow", "assemble", &slow);
    scene.until_moving("slow");
    service.signal(Signal::TERM);
    client.until_answered([&"slow".to_owned()]);
    let status = service.end_within(PATIENCE * 2);
    assert_eq!(status.code(), Some(0), "{status}\n{}", service.log());
    let answer = client.only_answer("slow");
    let text = answer.to_string();
    assert_eq!(answer["result"]["success"], false, "{answer:#}");
    assert!(
        !text.contains("ToolboxC"),
        "it was closed while it moved: {answer:#}"
    );
    assert!(
        !service.log().contains("closing the toolboxes"),
        "{}",
        service.log()
    );
    drop(bus);
}

/// A bus that reads nothing does not delay the shutdown.
#[test]
fn a_frozen_bus_does_not_hold_it_up() {
    let scene = Scene::new(&json!({}));
    let (bus, _client, mut service, _) = busy(&scene);
    bus.signal(Signal::STOP);
    service.signal(Signal::TERM);
    let status = service.end_within(PATIENCE + Duration::from_secs(1));
    assert_eq!(status.code(), Some(0), "{status}\n{}", service.log());
    assert_halted(&scene.motors());
}

/// Nor does a missing bus.
#[test]
fn it_ends_without_a_bus() {
    let scene = Scene::new(&json!({}));
    let mut service = scene.service_started(&[]);
    service.until("its summary", |service| {
        service.output().contains("Try: ").then_some(())
    });
    service.signal(Signal::TERM);
    assert_eq!(service.end_within(PATIENCE).code(), Some(0), "{}", service.log());
}

#[test]
fn after_sigkill_the_next_start_is_complete() {
    let scene = Scene::new(&json!({}));
    let (_bus, mut client, mut service, calls) = busy(&scene);
    for round in 0..3 {
        let toolbox = process_of_testbed(&mut client);
        service.kill();
        if let Some(toolbox) = toolbox {
            until_gone(toolbox);
            if round == 0 {
                // It brought its machine to rest before it ended.
                assert_halted(&scene.motors());
            }
        }
        let still = scene.motors().len();
        service = scene.service(&mut client);
        assert_still(&scene.motors()[still..]);
        assert!(client.calls().is_empty(), "nothing is left of the calls before");
        let answer = client.invoke("add", &json!({ "a": round, "b": 1 }));
        assert_eq!(
            answer["result"]["result"],
            round + 1,
            "{answer}\n{}",
            service.log()
        );
        if round == 0 {
            // A motion was interrupted: nothing moves until a person lifts the stop.
            let refused = client.invoke("assemble", &json!({ "step_ms": 1, "steps": 1 }));
            let error = refused["error"].as_str().unwrap_or_default();
            assert!(
                error.contains("the service ended while it moved something"),
                "{refused}"
            );
            assert_still(&scene.motors()[still..]);
            resume_testbed(&mut client);
        }
        let again = client.invoke("assemble", &json!({ "step_ms": 1, "steps": 1 }));
        assert_eq!(again["result"]["success"], true, "{again}");
        scene.until_at_rest();
        // The same ids are free again.
        client.call(
            &format!("{}-{round}", calls[0]),
            "slow",
            &json!({ "seconds": 300 }),
        );
        client.until_phases(&[("running", 1)]);
    }
    // Private copies of plugins do not pile up: those of dead processes are removed.
    let own = format!("ovos-tools-{}/", service.pid());
    let left: Vec<_> = stages(&scene)
        .into_iter()
        .filter(|path| !path.contains(&own))
        .collect();
    assert!(left.is_empty(), "left behind by services that are gone: {left:?}");
}

/// The process that testbed runs in, where it has one of its own.
fn process_of_testbed(client: &mut Client) -> Option<u64> {
    let status = client.ask("ovos.tools.status", &json!({}));
    let toolboxes = status["toolboxes"].as_array().unwrap();
    let testbed = toolboxes.iter().find(|it| it["toolbox_id"] == "testbed").unwrap();
    assert_eq!(testbed["isolation"], "process");
    testbed["pid"].as_u64()
}

fn resume_testbed(client: &mut Client) {
    let status = client.ask("ovos.tools.status", &json!({}));
    let toolboxes = status["toolboxes"].as_array().unwrap();
    let testbed = toolboxes.iter().find(|it| it["toolbox_id"] == "testbed").unwrap();
    let stop = json!({ "toolbox_id": "testbed", "stop_id": testbed["stop_id"] });
    let resumed = client.ask("ovos.tools.resume", &stop);
    assert_eq!(resumed["toolboxes"][0]["ok"], true, "{resumed}");
}

fn until_gone(pid: u64) {
    let process = format!("/proc/{pid}");
    let end = Instant::now() + PATIENCE;
    while Path::new(&process).exists() {
        assert!(Instant::now() < end, "process {pid} is still there");
        thread::park_timeout(Duration::from_millis(5));
    }
}

/// The folders of staged plugins.
fn stages(scene: &Scene) -> Vec<String> {
    let mut found = Vec::new();
    let mut dirs = vec![scene.sandbox.path("run"), scene.sandbox.path("cache")];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).unwrap().flatten() {
            if entry.path().is_dir() {
                dirs.push(entry.path());
            } else if entry.path().extension().is_some_and(|end| end == "so") {
                found.push(entry.path().display().to_string());
            }
        }
    }
    found
}
