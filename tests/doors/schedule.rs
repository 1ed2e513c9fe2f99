//! The schedule door against the real service: calls at a time, through restarts and stops, decided on when they fire.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::process::Process;
use crate::support::scene::{Scene, ready};
use crate::support::service::BusKind;

const ADD: &str = "ovos.tools.schedule";
const LIST: &str = "ovos.tools.schedule.list";
const CANCEL: &str = "ovos.tools.schedule.cancel";
const RESUME: &str = "ovos.tools.schedule.resume";

struct Stage {
    scene: Scene,
    client: Client,
    _service: Process,
    _bus: Process,
}

impl Stage {
    /// With a testbed that says that it is simulated, or not.
    fn new(simulated: bool) -> Self {
        let scene = Scene::new(&json!({}));
        let testbed = json!({ "testbed": { "simulated": simulated }, "service": {"operator_tools": false} });
        scene.configure(
            &json!({}),
            &json!({ "PHAL": { "ovos-phal-plugin-tools": testbed } }),
        );
        let bus = scene.bus(BusKind::Embedded);
        let mut client = Client::connect(scene.port);
        let mut service = scene.service_started(&[]);
        ready(&mut service, &mut client);
        Self {
            scene,
            client,
            _service: service,
            _bus: bus,
        }
    }

    /// A door that answers requests.
    fn door(&self) -> Process {
        static DOORS: AtomicUsize = AtomicUsize::new(0);
        let mut command = self.scene.sandbox.command(binary());
        command.args(["--bus", &self.scene.url()]);
        let name = format!("schedule-{}", DOORS.fetch_add(1, Ordering::Relaxed));
        let mut door = Process::start(&name, &self.scene.sandbox, command);
        door.until("a door that listens", |door| {
            door.output()
                .contains("waiting for ovos.tools.schedule")
                .then_some(())
        });
        door
    }

    /// Waits for an event of a schedule.
    fn event(&mut self, kind: &str) -> Value {
        self.client.until(kind, |frame| {
            let is_meant = frame["type"] == "ovos.tools.event" && frame["data"]["kind"] == kind;
            is_meant.then(|| frame["data"]["data"].clone())
        })
    }
}

fn binary() -> PathBuf {
    let service = Path::new(env!("CARGO_BIN_EXE_ovos-tools"));
    let door = service.with_file_name("ovos-tools-schedule");
    assert!(
        door.exists(),
        "no {}: cargo build --package ovos-tools-schedule",
        door.display()
    );
    door
}

fn add(a: i64, b: i64) -> Value {
    json!({"name": "add", "args": {"a": a, "b": b}})
}

fn motion() -> Value {
    json!({"name": "assemble", "args": {"subsystems": ["base"], "steps": 1, "step_ms": 1}})
}

#[test]
fn a_call_fires_at_its_time_and_a_run_too() {
    let mut stage = Stage::new(true);
    let _door = stage.door();
    let steps = json!({"steps": [
        {"id": "one", "name": "add", "args": {"a": 1, "b": 2}},
        {"id": "two", "name": "add", "args": {"a": {"$from": "one.result"}, "b": 4}},
    ]});
    for (key, what, text) in [
        ("call", add(20, 22), "42"),
        ("run", steps, "every step completed"),
        ("call", motion(), "success"),
    ] {
        let asked = stage
            .client
            .ask(ADD, &json!({key: what, "in_seconds": 0.5, "title": "soon"}));
        let id = asked["schedule_id"].as_str().unwrap_or_else(|| panic!("{asked}"));
        assert_eq!(asked["next"].as_array().map(Vec::len), Some(1), "{asked}");
        let fired = stage.event("schedule_fired");
        assert_eq!(
            (&fired["schedule_id"], &fired["ok"]),
            (&json!(id), &json!(true)),
            "{fired}"
        );
        assert!(fired["text"].as_str().unwrap().contains(text), "{fired}");
    }
    assert_eq!(stage.client.ask(LIST, &json!({}))["schedules"], json!([]));
}

#[test]
fn schedules_survive_a_killed_door_and_are_listed_and_cancelled() {
    let mut stage = Stage::new(true);
    let mut door = stage.door();
    let soon = stage
        .client
        .ask(ADD, &json!({"call": add(1, 1), "in_seconds": 3}));
    let often = stage
        .client
        .ask(ADD, &json!({"call": add(1, 2), "cron": "30 7 * * MON-FRI"}));
    assert_eq!(often["next"].as_array().map(Vec::len), Some(5), "{often}");
    door.kill();
    let _door = stage.door();
    let fired = stage.event("schedule_fired");
    assert_eq!(fired["schedule_id"], soon["schedule_id"]);
    let listed = stage.client.ask(LIST, &json!({}));
    assert_eq!(
        listed["schedules"][0]["schedule_id"], often["schedule_id"],
        "{listed}"
    );
    let id = json!({"schedule_id": often["schedule_id"]});
    assert_eq!(stage.client.ask(CANCEL, &id)["cancelled"], true);
    let again = stage.client.ask(CANCEL, &id);
    assert!(
        again["error"].as_str().unwrap().contains("there is no schedule"),
        "{again}"
    );
}

#[test]
fn motion_of_hardware_waits_for_an_approval_when_it_fires() {
    let mut stage = Stage::new(false);
    let _door = stage.door();
    let asked = stage
        .client
        .ask(ADD, &json!({"call": motion(), "in_seconds": 0.5}));
    assert!(asked["schedule_id"].is_string(), "{asked}");
    let waits = stage.event("schedule_waits");
    assert_eq!(waits["schedule_id"], asked["schedule_id"]);
    let id = waits["id"].as_str().unwrap().to_owned();
    stage.scene.ours("approve", &["approve", &id]).finish();
    let fired = stage.event("schedule_fired");
    assert_eq!(
        (&fired["schedule_id"], &fired["ok"]),
        (&asked["schedule_id"], &json!(true)),
        "{fired}"
    );
}

#[test]
fn a_stop_suspends_what_moves_until_a_person_resumes_it() {
    let mut stage = Stage::new(true);
    let _door = stage.door();
    for topic in ["ovos.stop", "ovos.tools.stop"] {
        let moves = stage
            .client
            .ask(ADD, &json!({"call": motion(), "every_seconds": 60}));
        stage
            .client
            .ask(ADD, &json!({"call": add(1, 1), "every_seconds": 60}));
        stage.client.send(topic, &json!({}));
        let suspended = stage.event("schedules_suspended");
        assert_eq!(suspended["count"], 1, "{suspended}");
        let listed = stage.client.ask(LIST, &json!({}));
        let schedules = listed["schedules"].as_array().unwrap();
        let of = |id: &Value| {
            schedules
                .iter()
                .find(|schedule| schedule["schedule_id"] == *id)
                .unwrap()
        };
        assert!(of(&moves["schedule_id"])["suspended"].is_string(), "{listed}");
        // A door asks for a model, which lifts no stop.
        let mut model = Client::connect(stage.scene.port).with_source("ovos-tools-mcp");
        let refused = model.ask(RESUME, &json!({"schedule_id": "all"}));
        assert!(
            refused["error"].as_str().unwrap().starts_with("PermissionError"),
            "{refused}"
        );
        assert_eq!(
            stage.client.ask(RESUME, &json!({"schedule_id": "all"})),
            json!({"resumed": 1})
        );
        for schedule in schedules {
            stage
                .client
                .ask(CANCEL, &json!({"schedule_id": schedule["schedule_id"]}));
        }
    }
}

/// Whenever the door ends between: what an emergency stop came before does not run, and is not caught up.
#[test]
fn an_emergency_stop_between_holds_through_restarts_of_the_door() {
    for (is_down, restarts) in [(false, false), (false, true), (true, true)] {
        let mut stage = Stage::new(true);
        let mut door = stage.door();
        let asked = stage.client.ask(ADD, &json!({"call": motion(), "in_seconds": 4}));
        if is_down {
            door.kill();
            let stopped = stage.client.ask("ovos.tools.stop", &json!({}));
            assert!(stopped["toolboxes"][0]["stop_id"].is_string(), "{stopped}");
        } else {
            stage.client.send("ovos.tools.stop", &json!({}));
            stage.event("schedules_suspended");
        }
        if restarts {
            door.kill();
            door = stage.door();
        }
        let missed = stage.event("schedule_missed");
        let why = missed["why"].as_str().unwrap();
        assert!(
            missed["schedule_id"] == asked["schedule_id"] && why.contains("suspended: an emergency stop"),
            "down {is_down}, restarts {restarts}: {missed}"
        );
        stage.client.ask(RESUME, &json!({"schedule_id": "all"}));
        assert_eq!(stage.client.ask(LIST, &json!({}))["schedules"], json!([]));
        drop(door);
    }
}

#[test]
fn what_cannot_be_scheduled_is_refused_with_the_reason() {
    let mut stage = Stage::new(true);
    let _door = stage.door();
    for (data, why) in [
        (json!({"call": add(1, 1)}), "ValueError: expected exactly one of"),
        (json!({"in_seconds": 1}), "ValueError: expected `call`"),
        (
            json!({"call": {"name": "none"}, "in_seconds": 1}),
            "ValueError: there is no tool 'none'",
        ),
        (
            json!({"call": {"name": "add", "args": {"a": "x"}}, "in_seconds": 1}),
            "ValueError",
        ),
        (
            json!({"call": {"name": "stop"}, "in_seconds": 1}),
            "PermissionError: 'stop' stops",
        ),
        (
            json!({"call": add(1, 1), "every_seconds": 59}),
            "ValueError: every_seconds",
        ),
        (
            json!({"call": add(1, 1), "cron": "* * * * * *"}),
            "ValueError: cron",
        ),
        (
            json!({"call": add(1, 1), "in_seconds": 1, "times": 0}),
            "ValueError: times",
        ),
    ] {
        let refused = stage.client.ask(ADD, &data);
        let error = refused["error"]
            .as_str()
            .unwrap_or_else(|| panic!("{data}: {refused}"));
        assert!(error.starts_with(why), "{data}: {error}");
    }
    for number in 0..20 {
        let taken = stage
            .client
            .ask(ADD, &json!({"call": add(1, 1), "every_seconds": 3600}));
        assert!(taken["schedule_id"].is_string(), "{number}: {taken}");
    }
    let full = stage
        .client
        .ask(ADD, &json!({"call": add(1, 1), "every_seconds": 3600}));
    assert!(full["error"].as_str().unwrap().starts_with("BusyError"), "{full}");
}
