//! A service with the robot toolbox and a simulated robot, and the trace of the simulator.
//!
//! Read [`RobotScene`].

use std::fs;

use serde_json::{Value, json};

use super::client::Client;
use super::process::Process;
use super::scene::{Scene, ready};
use super::service::{BusKind, plugins_with};

/// A bus, a service with robots, and a client.
pub(crate) struct RobotScene {
    pub(crate) client: Client,
    pub(crate) service: Process,
    pub(crate) bus: Process,
    pub(crate) scene: Scene,
}

impl RobotScene {
    /// One simulated robot, `five`, with these keys in its section `sim`.
    pub(crate) fn new(sim: &Value) -> Self {
        let mut sim = sim.clone();
        sim["trace"] = json!("TRACE");
        // What lets go sinks, and is not at rest.
        Self::with_robots(&json!({ "five": { "estop": "hold", "sim": sim } }))
    }

    /// With these robots.
    pub(crate) fn with_robots(robots: &Value) -> Self {
        Self::with(&json!({}), robots)
    }

    /// With this section `service`, and these robots.
    pub(crate) fn with(service: &Value, robots: &Value) -> Self {
        let scene = Scene::new(&json!({}));
        let trace = scene.sandbox.path("trace.jsonl");
        let text = robots.to_string().replace("\"TRACE\"", &json!(trace).to_string());
        let robots: Value = serde_json::from_str(&text).unwrap();
        let section = json!({ "robots": robots, "recognition_timeout_ms": 1_000 });
        let top = json!({ "PHAL": { "ovos-phal-plugin-tools": { "robot": section } } });
        scene.configure(service, &top);
        let bus = scene.bus(BusKind::Embedded);
        let mut client = Client::connect(scene.port);
        let plugins = plugins_with("robot");
        let mut service = scene.ours("service", &["serve", "--plugins", plugins.to_str().unwrap()]);
        ready(&mut service, &mut client);
        Self {
            client,
            service,
            bus,
            scene,
        }
    }

    /// Another client of the bus.
    pub(crate) fn another_client(&self) -> Client {
        Client::connect(self.scene.port)
    }

    /// Every command to the simulated machine so far.
    pub(crate) fn trace(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.scene.sandbox.path("trace.jsonl")).unwrap_or_default();
        // The last line may be incomplete.
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        whole
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// Calls a tool without waiting for its answer.
    pub(crate) fn call(&mut self, call_id: &str, tool: &str, args: &Value) {
        self.client.send(
            "ovos.tools.invoke",
            &json!({ "name": tool, "args": args, "call_id": call_id, "progress": true }),
        );
    }

    /// Calls a tool and reads until its `nth` start or end of an action; false when it was answered before.
    pub(crate) fn call_until_boundary(
        &mut self,
        call_id: &str,
        tool: &str,
        args: &Value,
        nth: usize,
    ) -> bool {
        self.call(call_id, tool, args);
        let mut seen = 0;
        self.client.until("a boundary or the answer", |frame| {
            let data = &frame["data"];
            if data["call_id"] != call_id {
                return None;
            }
            if frame["type"] == "ovos.tools.invoke.response" {
                return Some(false);
            }
            if data["kind"] == "action_started" || data["kind"] == "action_ended" {
                seen += 1;
            }
            (seen > nth).then_some(true)
        })
    }

    /// Stops the robot in an emergency; returns the id of the stop.
    #[track_caller]
    pub(crate) fn stop(&mut self) -> String {
        let answer = self
            .client
            .ask("ovos.tools.stop", &json!({ "toolbox_id": "robot" }));
        let stopped = &answer["toolboxes"][0];
        // On a busy machine, recording the stop may take longer than its answer waits, or a bus that is hundreds of times faster
        // than time be heard late.
        let error = stopped["error"].as_str().unwrap_or_default();
        assert!(
            stopped["ok"] == true
                || error.starts_with("StateError: ")
                || error.contains("the stop is sent next"),
            "{answer}"
        );
        stopped["stop_id"].as_str().unwrap().to_owned()
    }

    /// Lifts the stop.
    #[track_caller]
    pub(crate) fn resume(&mut self, stop_id: &str) {
        let question = json!({ "toolbox_id": "robot", "stop_id": stop_id });
        let answer = self.client.ask("ovos.tools.resume", &question);
        assert_eq!(answer["toolboxes"][0]["ok"], true, "{answer}");
    }

    /// What the motors report, and where the base stands.
    #[track_caller]
    pub(crate) fn pose(&mut self) -> Vec<Value> {
        let answer = invoke(&mut self.client, "motor_status", &json!({ "subsystem": "all" }));
        let data = &answer["result"]["data"];
        let motors = data["motors"].as_object().unwrap_or_else(|| panic!("{answer:#}"));
        let mut all: Vec<Value> = motors.values().cloned().collect();
        all.push(data["odometry"].clone());
        all
    }

    /// Opens the hitch, empties the hands and moves everything home.
    #[track_caller]
    pub(crate) fn come_home(&mut self) {
        for (tool, args) in [
            ("hitch", json!({ "action": "open" })),
            ("gripper", json!({ "action": "open" })),
            ("go_to_pose", json!({ "pose": "home" })),
        ] {
            let answer = invoke(&mut self.client, tool, &args);
            assert_eq!(answer["result"]["success"], true, "{tool}: {answer:#}");
        }
    }
}

/// Runs a tool of the robot to its answer.
#[track_caller]
pub(crate) fn invoke(client: &mut Client, tool: &str, args: &Value) -> Value {
    client.ask(
        "ovos.tools.invoke",
        &json!({ "name": tool, "args": args, "toolbox_id": "robot" }),
    )
}

/// How many of these commands move something.
pub(crate) fn moves(trace: &[Value]) -> usize {
    let moving = |line: &&Value| line["do"] == "move" || line["do"] == "drive";
    trace.iter().filter(moving).count()
}
