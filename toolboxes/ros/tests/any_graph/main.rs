//! Every tool against the peers of the crate `ros-graph`: bases of the published Cyclone DDS, ROS 2's own wheels, and rosbridge.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a failed test panics and prints"
)]

#[allow(dead_code, reason = "each test program uses its part")]
#[path = "../../../robot/tests/support/peers.rs"]
mod peers;
#[allow(dead_code, reason = "each test program uses its part")]
#[path = "../../../ros-graph/tests/graph/python.rs"]
mod python;

mod looks;
mod moves;
mod schemas;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use ovos_toolbox_sdk::testing::Harness;
use ovos_toolbox_sdk::wire::{Action, Failure};
use peers::Peer;
use ros::Ros;
use serde_json::{Value, json};

/// A peer and the toolbox, alone in a graph.
pub(crate) struct Scene {
    pub(crate) peer: Peer,
    pub(crate) ros: Harness,
    pub(crate) config: Value,
    _folder: tempfile::TempDir,
}

/// What the tests allow.
fn allow() -> Value {
    json!({
        "publish": {"/cmd_vel": {"seconds": 30}, "/level": {"limits": {"data": 2}, "end": {"data": 0.0}}},
        "call": ["/motor_power", "/slow", "/nothing"],
        "goal": {"/navigate_to_pose": {"seconds": 60}, "/fibonacci": {}},
    })
}

fn scene(peer: Peer, mut config: Value) -> Scene {
    peer.until("ready");
    config["allow"] = allow();
    let folder = tempfile::tempdir().unwrap();
    let ros = Harness::open::<Ros>(config.clone())
        .unwrap()
        .with_deadline(Duration::from_secs(60))
        .with_content_folder(folder.path());
    Scene {
        peer,
        ros,
        config,
        _folder: folder,
    }
}

/// A base over DDS, `busy` or with another word, or with none.
pub(crate) fn cyclone(kind: &str, word: &str) -> Option<Scene> {
    let domain = peers::domain();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ros-graph/tests/python/base_cyclonedds.py");
    let mut command = Command::new(python::cyclonedds()?);
    command
        .arg("-u")
        .arg(script)
        .args([kind, &domain.to_string()])
        .args(Some(word).filter(|word| !word.is_empty()))
        .env("CYCLONEDDS_URI", peers::LOOPBACK);
    let config = json!({"domain": domain, "interfaces": ["127.0.0.1"], "distro": "humble"});
    Some(scene(Peer::run("base_cyclonedds.py", command), config))
}

/// A base behind a rosbridge.
pub(crate) fn rosbridge() -> Option<Scene> {
    let node = python::node()?;
    let modules = node.ancestors().nth(2).unwrap().join("node_modules");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ros-graph/tests/node/rosbridge_base.mjs");
    let mut command = Command::new(node);
    command.arg(script).arg(modules);
    let peer = Peer::run("rosbridge_base.mjs", command);
    let ready: Value = serde_json::from_str(&peer.until("ready")).unwrap();
    let config = json!({"rosbridge": format!("ws://127.0.0.1:{}", ready["port"]), "distro": "humble"});
    Some(scene(peer, config))
}

impl Scene {
    /// Runs a tool as the service does: what plans is planned first.
    pub(crate) fn call(&self, tool: &str, args: Value) -> Result<Value, Failure> {
        match self.action(tool, args)? {
            Some(action) => self
                .ros
                .start_action(tool, action, json!({}))
                .unwrap()
                .wait()
                .result(),
            None => Err(Failure::new("none", "no action".to_owned())),
        }
    }

    /// The one action of a call.
    pub(crate) fn action(&self, tool: &str, args: Value) -> Result<Option<Action>, Failure> {
        match self.ros.plan(tool, args.clone()) {
            Ok(Some(mut actions)) => Ok(actions.pop()),
            Ok(None) => Ok(Some(Action {
                params: args.as_object().cloned().unwrap_or_default(),
                ..Action::named(tool)
            })),
            Err(refused) => Err(*refused.failure),
        }
    }

    /// What the peer said under a key, in order.
    pub(crate) fn values(&self, key: &str) -> Vec<Value> {
        let lines = self.peer.lines();
        let frames = lines
            .iter()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        frames
            .filter_map(|mut frame| frame.as_object_mut()?.remove(key))
            .collect()
    }

    /// Waits until the peer has said what `seen` looks for under a key.
    pub(crate) fn until(&self, key: &str, seen: impl Fn(&[Value]) -> bool) -> Vec<Value> {
        self.peer.wait(key, |_| {
            let values = self.values(key);
            seen(&values).then_some(values)
        })
    }
}
