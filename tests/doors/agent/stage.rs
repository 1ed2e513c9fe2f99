//! A bus, a service with testbed, and agents.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::agent::model::Model;
use crate::support::client::Client;
use crate::support::process::Process;
use crate::support::scene::{Scene, assert_halted};
use crate::support::service::BusKind;

pub(crate) struct Stage {
    pub(crate) client: Client,
    _service: Process,
    bus: Process,
    pub(crate) scene: Scene,
}

/// How an agent ended.
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    /// The line of `--json`.
    pub(crate) json: Value,
    pub(crate) output: String,
}

impl Stage {
    /// With these keys of the agent.
    pub(crate) fn new(keys: &Value) -> Self {
        Self::of(Scene::new(&json!({ "doors": { "agent": keys } })))
    }

    /// With these rules of the policy.
    pub(crate) fn with_policy(policy: &Value) -> Self {
        Self::of(Scene::new(&json!({ "policy": policy })))
    }

    /// With a testbed that does not say that it is simulated.
    pub(crate) fn on_hardware() -> Self {
        let scene = Scene::new(&json!({}));
        let testbed = json!({ "testbed": { "simulated": false } });
        scene.configure(
            &json!({}),
            &json!({ "PHAL": { "ovos-phal-plugin-tools": testbed } }),
        );
        Self::of(scene)
    }

    fn of(scene: Scene) -> Self {
        let (bus, service, client) = scene.open();
        Self {
            client,
            _service: service,
            bus,
            scene,
        }
    }

    /// Starts an agent with this goal.
    pub(crate) fn agent(&self, model: &Model, goal: &str, more: &[&str]) -> Process {
        start(&self.scene, model, goal, more)
    }

    /// The same to its end.
    #[track_caller]
    pub(crate) fn run(&self, model: &Model, more: &[&str]) -> Ended {
        end(self.agent(model, "a goal", more))
    }

    /// Kills the bus, waits until `agent` has noticed, and brings the bus back while the agent is frozen: the client is there
    /// before anything is sent.
    pub(crate) fn outage(&mut self, agent: &mut Process, noticed: impl FnMut(&mut Process) -> Option<()>) {
        self.bus.kill();
        agent.until("the bus is gone", noticed);
        agent.signal(Signal::STOP);
        self.bus = self.scene.bus_started(BusKind::Embedded);
        self.client.reconnect();
        agent.signal(Signal::CONT);
    }

    /// Whether nothing is under way, and everything that was moved was brought to rest.
    #[track_caller]
    pub(crate) fn assert_at_rest(&mut self) {
        let status = self.client.ask("ovos.tools.status", &json!({}));
        assert_eq!(status["calls"], json!([]));
        let motors = self.scene.motors();
        if motors.iter().any(|motor| motor.kind == "step") {
            let all_ended = motors.iter().filter(|motor| motor.kind == "stop").count();
            let starts = motors.iter().filter(|motor| motor.kind == "start").count();
            if all_ended < starts {
                assert_halted(&motors);
            }
        }
    }
}

/// Starts an agent in a scene.
pub(crate) fn start(scene: &Scene, model: &Model, goal: &str, more: &[&str]) -> Process {
    let mut command = command(scene);
    command
        .args(["--url", &model.url, "--goal", goal, "--json"])
        .args(more);
    Process::start("agent", &scene.sandbox, command)
}

pub(crate) fn command(scene: &Scene) -> Command {
    let mut command = scene.sandbox.command(binary());
    command.args(["--bus", &scene.url()]);
    command
}

#[track_caller]
pub(crate) fn end(mut agent: Process) -> Ended {
    let status = agent.end_within(Duration::from_secs(170));
    let output = agent.output();
    let json = output
        .lines()
        .rev()
        .find_map(|line| serde_json::from_str(line).ok())
        .unwrap_or_else(|| panic!("no line of JSON: {output}"));
    Ended { status, json, output }
}

impl Ended {
    /// The word of its end.
    pub(crate) fn reason(&self) -> &str {
        self.json["end"]["reason"].as_str().unwrap_or_default()
    }
}

/// The lines of a record.
pub(crate) fn lines(record: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(record).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The calls of a record.
pub(crate) fn made(record: &Path) -> Vec<Value> {
    let lines = lines(record);
    let steps = lines.iter().filter(|line| line["kind"] == "step");
    steps
        .flat_map(|step| step["calls"].as_array().unwrap().clone())
        .collect()
}

/// The agent's program, beside the service's.
pub(crate) fn binary() -> PathBuf {
    let service = Path::new(env!("CARGO_BIN_EXE_ovos-tools"));
    let agent = service.with_file_name("ovos-tools-agent");
    assert!(
        agent.exists(),
        "no {}: cargo build --package ovos-tools-agent",
        agent.display()
    );
    agent
}
