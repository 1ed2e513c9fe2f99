//! A service that is ready before its slowest toolbox: its answers meanwhile, and the effect of a stop.

use std::fs;
use std::io::Read as _;
use std::path::PathBuf;

use crate::support::client::Client;
use crate::support::process::{DEADLINE, Process};
use crate::support::scene::{Scene, ready};
use crate::support::service::BusKind;
use crate::support::stage::{ids, put};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::Signal;
use serde_json::{Value, json};

/// A service in which `testbed_dup` is loaded and `testbed` waits in its `open`, at a pipe that has no reader.
struct Start {
    scene: Scene,
    _bus: Process,
    client: Client,
    service: Process,
}

impl Start {
    fn new() -> Self {
        let scene = Scene::new(&json!({}));
        let bus = scene.bus(BusKind::Embedded);
        let mode = Mode::RUSR | Mode::WUSR;
        mknodat(CWD, pipe(&scene), FileType::Fifo, mode, 0).unwrap();
        fs::create_dir(scene.sandbox.path("plugins")).unwrap();
        for plugin in ["testbed", "testbed_dup"] {
            put(&scene, plugin);
        }
        let plugins = scene.sandbox.path("plugins");
        let args = ["serve", "--plugins", plugins.to_str().unwrap()];
        let mut service = scene.ours("service", &args);
        let mut client = Client::connect(scene.port);
        service.until("readiness and its quick toolbox", |_| {
            let dup = json!({ "name": "dup", "toolbox_id": "testbed_dup", "args": {}, "timeout_ms": 100 });
            let answer = client.ask_within("ovos.tools.invoke", &dup, DEADLINE / 100)?;
            (answer["result"]["owner"] == "testbed_dup").then_some(())
        });
        Self {
            scene,
            _bus: bus,
            client,
            service,
        }
    }

    fn says(&mut self, question: &str) -> bool {
        let answer = self
            .client
            .ask(&format!("mycroft.ovos_tools.{question}"), &json!({}));
        answer["status"] == true
    }

    /// Lets the slow toolbox open.
    fn let_it_open(&self) {
        let pipe = pipe(&self.scene);
        // Reads the toolbox's log until the toolbox ends.
        std::thread::spawn(move || fs::File::open(pipe)?.read_to_end(&mut Vec::new()));
    }

    /// Waits until every toolbox is loaded.
    fn all_loaded(&mut self) {
        ready(&mut self.service, &mut self.client);
    }
}

fn pipe(scene: &Scene) -> PathBuf {
    scene.sandbox.path("motor.log")
}

#[test]
fn a_call_waits_for_the_toolbox_that_still_starts() {
    let mut start = Start::new();
    assert_eq!((start.says("is_ready"), start.says("all_loaded")), (true, false));
    let call = json!({ "name": "add", "args": { "a": 1, "b": 2 }, "timeout_ms": 50 });
    let late = start.client.ask("ovos.tools.invoke", &call);
    let error = late["error"].as_str().unwrap();
    assert!(error.contains("still starting"), "{error}");

    let rows: [(&str, Value); 3] = [
        (
            "ovos.tools.invoke",
            json!({ "name": "add", "args": { "a": 1, "b": 2 } }),
        ),
        (
            "ovos.persona.tools.call",
            json!({ "toolbox_id": "testbed", "name": "add", "kwargs": { "a": 1, "b": 2 } }),
        ),
        (
            "ovos.tools.plan",
            json!({ "name": "add", "args": { "a": 1, "b": 2 } }),
        ),
    ];
    let requests: Vec<String> = rows
        .iter()
        .map(|(topic, data)| start.client.send(topic, data))
        .collect();
    // `get` does not wait; its answer shows that the earlier requests do.
    let got = start.client.ask("ovos.tools.get", &json!({ "name": "add" }));
    let error = got["error"].as_str().unwrap();
    assert!(error.contains("still starting"), "{error}");
    assert!(!start.says("all_loaded"));
    let mut answers = Vec::new();
    start.let_it_open();
    start.client.until("three answers", |frame| {
        let ident = frame["context"]["ident"].as_str()?;
        let row = requests.iter().position(|requests| requests == ident)?;
        if frame["type"] == format!("{}.response", rows[row].0) {
            assert_eq!(frame["data"].get("error"), None, "{frame}");
            answers.push(row);
        }
        (answers.len() == rows.len()).then_some(())
    });
    start.all_loaded();
    let unknown = start
        .client
        .ask("ovos.tools.invoke", &json!({ "name": "nothing" }));
    assert_eq!(unknown["error"], "Unknown tool: 'nothing'");
}

#[test]
fn a_stop_also_holds_the_toolbox_that_still_starts() {
    let mut start = Start::new();
    let stopped = start.client.ask("ovos.tools.stop", &json!({}))["toolboxes"].take();
    let stop_id = stopped[0]["stop_id"].as_str().unwrap().to_owned();
    start.let_it_open();
    start.all_loaded();
    let status = start.client.ask("ovos.tools.status", &json!({}));
    for toolbox in status["toolboxes"].as_array().unwrap() {
        assert_eq!(toolbox["stop_id"], stop_id, "{toolbox}");
    }
    let step = json!({ "step_ms": 1, "steps": 1 });
    let refused = start.client.invoke("assemble", &step);
    assert!(
        refused["error"]
            .as_str()
            .is_some_and(|error| error.contains("EmergencyStop") || error.contains("emergency stop")),
        "{refused}"
    );
    let resume = json!({ "toolbox_id": "all", "stop_id": stop_id });
    let resumed = start.client.ask("ovos.tools.resume", &resume)["toolboxes"].take();
    assert!(ids(&resumed).iter().all(|(_, ok)| *ok), "{resumed}");
    assert_eq!(start.client.invoke("assemble", &step).get("error"), None);
}

#[test]
fn it_ends_also_while_a_toolbox_starts() {
    let mut start = Start::new();
    start.service.signal(Signal::TERM);
    assert!(
        start.service.end_within(DEADLINE).success(),
        "{}",
        start.service.log()
    );
}
