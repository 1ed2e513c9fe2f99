//! A bus, a service with testbed, and doors.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::process::Process;
use crate::support::scene::Scene;
use crate::voice::speech::{Line, Speech};

/// The key that doors are given. No log may hold it.
pub(crate) const KEY: &str = "key-that-no-log-holds";

pub(crate) struct Stage {
    pub(crate) scene: Scene,
    pub(crate) client: Client,
    pub(crate) speech: Speech,
    _service: Process,
    _bus: Process,
}

impl Stage {
    /// With these keys of the door.
    pub(crate) fn new(keys: &Value) -> Self {
        Self::of(keys, &json!({}))
    }

    /// The same, with a testbed that does not say that it is simulated.
    pub(crate) fn on_hardware() -> Self {
        let testbed = json!({ "testbed": { "simulated": false } });
        Self::of(
            &json!({}),
            &json!({ "PHAL": { "ovos-phal-plugin-tools": testbed } }),
        )
    }

    /// With these rules of the policy.
    pub(crate) fn with_policy(policy: &Value) -> Self {
        let service = json!({ "service": { "policy": policy } });
        Self::of(
            &json!({}),
            &json!({ "PHAL": { "ovos-phal-plugin-tools": service } }),
        )
    }

    fn of(keys: &Value, top: &Value) -> Self {
        let speech = Speech::new();
        let mut keys = keys.clone();
        for service in ["hume", "openai"] {
            keys[service] = json!({ "url": speech.url(), "key_env": format!("KEY_OF_{service}") });
        }
        let scene = Scene::new(&json!({}));
        scene.configure(&json!({ "doors": { "voice": keys } }), top);
        let (bus, service, client) = scene.open();
        Self {
            scene,
            client,
            speech,
            _service: service,
            _bus: bus,
        }
    }

    /// Starts a door with these arguments.
    pub(crate) fn door(&self, arguments: &[&str]) -> Process {
        let mut command = self.scene.sandbox.command(binary());
        command.args(["--bus", &self.scene.url(), "-vv"]).args(arguments);
        for service in ["hume", "openai"] {
            command.env(format!("KEY_OF_{service}"), KEY);
        }
        // Each has a log of its own.
        static DOORS: AtomicUsize = AtomicUsize::new(0);
        let name = format!("door-{}", DOORS.fetch_add(1, Ordering::Relaxed));
        Process::start(&name, &self.scene.sandbox, command)
    }

    /// A door that has joined the chat `c1`, after it has told its tools.
    pub(crate) fn joined(&self) -> (Process, Line) {
        let door = self.door(&["hume", "--chat", "c1"]);
        let line = self.accepted();
        (door, line)
    }

    /// The next socket, after the door has told its tools.
    #[track_caller]
    pub(crate) fn accepted(&self) -> Line {
        let line = self.speech.accept();
        line.say(&json!({"type": "chat_metadata", "chat_id": "c1", "chat_group_id": "g1"}));
        line.tools();
        line
    }
}

/// Arguments of `assemble` that move a subsystem for minutes.
pub(crate) fn moves(subsystem: &str) -> Value {
    json!({ "subsystems": [subsystem], "step_ms": 2, "steps": 100_000, "timeout_ms": 300_000 })
}

/// The door's program, beside the service's.
pub(crate) fn binary() -> PathBuf {
    let service = Path::new(env!("CARGO_BIN_EXE_ovos-tools"));
    let door = service.with_file_name("ovos-tools-voice");
    assert!(
        door.exists(),
        "no {}: cargo build --package ovos-tools-voice",
        door.display()
    );
    door
}
