//! The schedule door against the real service: calls at a time, through restarts and stops, decided on when they fire.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::process::Process;
use crate::support::python::{python, script};
use crate::support::scene::Scene;

const ADD: &str = "ovos.tools.schedule";
const LIST: &str = "ovos.tools.schedule.list";
const CANCEL: &str = "ovos.tools.schedule.cancel";
const RESUME: &str = "ovos.tools.schedule.resume";

/// The topics of OVOS's scheduler.
const SCHEDULE_EVENT: &str = "mycroft.scheduler.schedule_event";
const UPDATE_EVENT: &str = "mycroft.scheduler.update_event";
const LIST_EVENTS: &str = "mycroft.scheduler.list_events";
const WAITING: &str = "waiting for mycroft.scheduler";

struct Stage {
    scene: Scene,
    client: Client,
    _service: Process,
    _bus: Process,
}

impl Stage {
    /// With a testbed that says that it is simulated, or not.
    fn new(simulated: bool) -> Self {
        Self::with(simulated, &json!({}))
    }

    /// With a door that is OVOS's scheduler, too.
    fn of_ovos() -> Self {
        Self::with(true, &json!({"schedule": {"ovos_scheduler": true}}))
    }

    fn with(simulated: bool, doors: &Value) -> Self {
        let scene = Scene::new(&json!({}));
        let testbed = json!({ "testbed": { "simulated": simulated }, "service": {"operator_tools": false} });
        scene.configure(
            &json!({ "doors": doors }),
            &json!({ "PHAL": { "ovos-phal-plugin-tools": testbed } }),
        );
        let (bus, service, client) = scene.open();
        Self {
            scene,
            client,
            _service: service,
            _bus: bus,
        }
    }

    /// A door that answers requests.
    fn door(&self) -> Process {
        self.door_that("waiting for ovos.tools.schedule")
    }

    /// A door that has said this.
    fn door_that(&self, says: &str) -> Process {
        static DOORS: AtomicUsize = AtomicUsize::new(0);
        let mut command = self.scene.sandbox.command(binary());
        command.args(["--bus", &self.scene.url()]);
        let name = format!("schedule-{}", DOORS.fetch_add(1, Ordering::Relaxed));
        let mut door = Process::start(&name, &self.scene.sandbox, command);
        door.until("a door that listens", |door| {
            door.output().contains(says).then_some(())
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
        let schedule = stage
            .client
            .ask(ADD, &json!({key: what, "in_seconds": 0.5, "title": "soon"}));
        let id = schedule["schedule_id"]
            .as_str()
            .unwrap_or_else(|| panic!("{schedule}"));
        assert_eq!(schedule["next"].as_array().map(Vec::len), Some(1), "{schedule}");
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
        .ask(ADD, &json!({"call": add(1, 1), "in_seconds": 1.5}));
    let often = stage
        .client
        .ask(ADD, &json!({"call": add(1, 2), "cron": "30 7 * * MON-FRI"}));
    assert_eq!(often["next"].as_array().map(Vec::len), Some(5), "{often}");
    door.kill();
    let _door = stage.door();
    let fired = stage.event("schedule_fired");
    assert_eq!(fired["schedule_id"], soon["schedule_id"]);
    let list = stage.client.ask(LIST, &json!({}));
    assert_eq!(
        list["schedules"][0]["schedule_id"], often["schedule_id"],
        "{list}"
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
    let schedule = stage
        .client
        .ask(ADD, &json!({"call": motion(), "in_seconds": 0.5}));
    assert!(schedule["schedule_id"].is_string(), "{schedule}");
    let waits = stage.event("schedule_waits");
    assert_eq!(waits["schedule_id"], schedule["schedule_id"]);
    let id = waits["id"].as_str().unwrap().to_owned();
    stage.scene.ours("approve", &["approve", &id]).finish();
    let fired = stage.event("schedule_fired");
    assert_eq!(
        (&fired["schedule_id"], &fired["ok"]),
        (&schedule["schedule_id"], &json!(true)),
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
        let list = stage.client.ask(LIST, &json!({}));
        let schedules = list["schedules"].as_array().unwrap();
        let of = |id: &Value| {
            schedules
                .iter()
                .find(|schedule| schedule["schedule_id"] == *id)
                .unwrap()
        };
        assert!(of(&moves["schedule_id"])["suspended"].is_string(), "{list}");
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
        let schedule = stage
            .client
            .ask(ADD, &json!({"call": motion(), "in_seconds": 1.5}));
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
            missed["schedule_id"] == schedule["schedule_id"] && why.contains("suspended: an emergency stop"),
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

/// A message that a skill asks for.
fn message(event: &str, time: f64) -> Value {
    json!({"event": event, "time": time, "data": {"n": event}})
}

fn in_seconds(seconds: f64) -> f64 {
    let since = SystemTime::UNIX_EPOCH.elapsed().unwrap();
    since.as_secs_f64() + seconds
}

/// Skills of OVOS are served as by the scheduler that is published.
#[test]
fn skills_are_served_as_by_the_published_scheduler() {
    if python().is_none() {
        return;
    }
    let reports = [false, true].map(|is_ours| {
        let stage = Stage::of_ovos();
        let port = stage.scene.port.to_string();
        let sandbox = &stage.scene.sandbox;
        let _scheduler = if is_ours {
            stage.door_that(WAITING)
        } else {
            let folder = sandbox.path("state").to_str().unwrap().to_owned();
            let mut scheduler = script("ovos_events.py", &[port.as_str(), "serve", &folder], sandbox);
            scheduler.until("a scheduler", |scheduler| {
                scheduler.output().contains("scheduler serves").then_some(())
            });
            scheduler
        };
        let output = script("ovos_events.py", &[port.as_str()], sandbox).finish();
        let output = output.lines().find(|line| line.starts_with('{'));
        let output: Value = serde_json::from_str(output.expect("what was heard")).unwrap();
        output
    });
    let [published, ours] = reports;
    for key in ["status", "listed", "heard"] {
        let (theirs, ours) = (&published[key], &ours[key]);
        assert_eq!(ours, theirs, "{key}");
    }
    let messages = ours["heard"].as_object().unwrap();
    assert_eq!(
        messages["demo.skill:often"].as_array().map(Vec::len),
        Some(3),
        "{messages:?}"
    );
    assert!(
        messages.len() > 8 && !messages.keys().any(|name| name.contains("bad")),
        "{messages:?}"
    );
}

#[test]
fn messages_survive_a_killed_door_and_are_sent_once() {
    let mut stage = Stage::of_ovos();
    let mut door = stage.door_that(WAITING);
    stage
        .client
        .send(SCHEDULE_EVENT, &message("demo.skill:soon", in_seconds(2.0)));
    // What tools do is decided on when it is due, which a message of this kind is not.
    for topic in ["ovos.tools.invoke", "ovos.persona.tools.call"] {
        stage
            .client
            .send(SCHEDULE_EVENT, &message(topic, in_seconds(0.0)));
    }
    let list = stage.client.ask(LIST_EVENTS, &json!({}))["scheduled_events"].clone();
    assert_eq!(list.as_object().map(serde_json::Map::len), Some(1), "{list}");
    door.kill();
    let _door = stage.door_that(WAITING);
    let fired = stage.client.until("the message", |frame| {
        (frame["type"] == "demo.skill:soon").then(|| frame.clone())
    });
    assert_eq!(fired["data"]["n"], "demo.skill:soon", "{fired}");
    let list = stage.client.ask(LIST_EVENTS, &json!({}))["scheduled_events"].clone();
    assert_eq!(list, json!({}));
    // A skill has as many as any other asker.
    for number in 0..25 {
        let name = format!("demo.skill:{number}");
        stage
            .client
            .send(SCHEDULE_EVENT, &message(&name, in_seconds(600.0)));
    }
    let list = stage.client.ask(LIST_EVENTS, &json!({}))["scheduled_events"].clone();
    assert_eq!(list.as_object().map(serde_json::Map::len), Some(20), "{list}");
}

/// A stop holds for what is said to OVOS later, too; a reminder of a skill is sent all the same.
#[test]
fn what_is_said_later_is_suspended_by_a_stop_and_a_reminder_is_not() {
    for topic in ["ovos.stop", "ovos.tools.stop"] {
        let mut stage = Stage::of_ovos();
        let _door = stage.door_that(WAITING);
        for (event, skill) in [
            ("recognizer_loop:utterance", "none"),
            ("demo.skill:tea", "demo.skill"),
        ] {
            let data = json!({
                "event": event, "time": in_seconds(3.0), "repeat": 60, "data": {"utterances": ["wave"]},
            });
            let request = json!({"type": SCHEDULE_EVENT, "data": data, "context": {"skill_id": skill}});
            stage.client.send_text(&request.to_string());
        }
        // The bounds of a message hold for its change, too.
        for (length, is_taken) in [(100, true), (17_000, false)] {
            let update = json!({"event": "demo.skill:tea", "data": {"n": "x".repeat(length)}});
            stage.client.send(UPDATE_EVENT, &update);
            let list = stage.client.ask(LIST_EVENTS, &json!({}))["scheduled_events"].clone();
            let kept = list["demo.skill:tea"][0][2]["n"].as_str().map(str::len);
            assert_eq!(kept == Some(length), is_taken, "{length}: {kept:?}");
        }
        stage.client.send(topic, &json!({}));
        let suspended = stage.event("schedules_suspended");
        assert_eq!(suspended["count"], 1, "{suspended}");
        let (mut is_reminded, mut missed) = (false, None);
        stage
            .client
            .until("a reminder, and a word about the rest", |frame| {
                assert_ne!(frame["type"], "recognizer_loop:utterance", "{topic}: {frame}");
                is_reminded |= frame["type"] == "demo.skill:tea";
                if frame["data"]["kind"] == "schedule_missed" {
                    missed = Some(frame["data"]["data"].clone());
                }
                (is_reminded && missed.is_some()).then_some(())
            });
        let missed = missed.unwrap_or_default();
        assert_eq!(
            missed["schedule_id"], "ovos:recognizer_loop:utterance",
            "{missed}"
        );
        assert_eq!(
            stage.client.ask(RESUME, &json!({"schedule_id": "all"})),
            json!({"resumed": 1})
        );
    }
}

/// Of two schedulers on a bus the one that is there answers, whichever it is.
#[test]
fn a_second_scheduler_is_not_served_beside_the_first() {
    let mut stage = Stage::of_ovos();
    let first = stage.door_that(WAITING);
    let mut second = stage.door_that("another scheduler answers on this bus");
    let suspended = stage.event("schedules_suspended");
    assert_eq!(suspended["topics"], "mycroft.scheduler", "{suspended}");
    stage
        .client
        .send(SCHEDULE_EVENT, &message("demo.skill:once", in_seconds(0.3)));
    stage.client.until("the message", |frame| {
        (frame["type"] == "demo.skill:once").then_some(())
    });
    drop(first);
    // The second one still answers what is its own.
    assert_eq!(stage.client.ask(LIST, &json!({}))["schedules"], json!([]));
    assert_eq!(
        stage
            .client
            .ask_within(LIST_EVENTS, &json!({}), Duration::from_millis(500)),
        None
    );
    assert!(second.ended().is_none());
    // One that begins later is noticed, too.
    drop(second);
    let mut third = stage.door_that(WAITING);
    stage
        .client
        .send("ovos.scheduler.ready", &json!({"schedules": 0}));
    third.until("a plain word", |door| {
        door.output()
            .contains("another scheduler answers on this bus")
            .then_some(())
    });
}
