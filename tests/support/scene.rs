//! A bus and a service that a test can freeze, kill and start again.
//!
//! All files of a scene are in one sandbox, which outlives the processes, as a disk outlives a power cut. Read
//! [`Scene`].

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::client::Client;
use super::process::{DEADLINE, Process, Sandbox, free_port};
use super::python;
use super::service::{BusKind, testbed_plugins};

/// A machine with a home, a bus address, and testbed's motor log.
pub(crate) struct Scene {
    pub(crate) sandbox: Sandbox,
    pub(crate) port: u16,
}

/// A motor command of testbed.
#[derive(Debug, Clone)]
pub(crate) struct Motor {
    /// Nanoseconds of the monotonic clock.
    pub(crate) at: u64,
    /// `start`, `step`, `stop`, `halt` or `emergency`.
    pub(crate) kind: String,
    pub(crate) subsystem: String,
    /// `<call id>/<action id>`.
    pub(crate) run: String,
}

impl Motor {
    fn moves(&self) -> bool {
        matches!(self.kind.as_str(), "start" | "step")
    }
}

impl Scene {
    /// A scene whose service has these keys, beside quick reconnects.
    pub(crate) fn new(service: &Value) -> Self {
        let scene = Self {
            sandbox: Sandbox::new(),
            port: free_port(),
        };
        scene.configure(service, &json!({}));
        scene
    }

    /// Writes the configuration; `top` are top-level keys beside ours.
    pub(crate) fn configure(&self, service: &Value, top: &Value) {
        // A plan waits for its turn in the toolbox, and a machine may be busy with tests.
        let mut keys = json!({
            "reconnect_first_ms": 100, "reconnect_max_ms": 400, "plan_ms": 30_000,
        });
        merge(&mut keys, service);
        let testbed = json!({ "motor_log": self.motor_log() });
        let mut conf = json!({
            "websocket": { "host": "127.0.0.1", "port": self.port },
            "PHAL": { "ovos-phal-plugin-tools": { "service": keys, "testbed": testbed } },
        });
        merge(&mut conf, top);
        fs::write(self.sandbox.path("config/mycroft/mycroft.conf"), conf.to_string()).unwrap();
    }

    pub(crate) fn url(&self) -> String {
        format!("ws://127.0.0.1:{}/core", self.port)
    }

    /// A bus at the scene's address; it listens when this returns.
    pub(crate) fn bus(&self, kind: BusKind) -> Process {
        let mut bus = self.bus_started(kind);
        bus.until("a bus that listens", |_| Client::try_connect(self.port));
        bus
    }

    /// The same without waiting.
    pub(crate) fn bus_started(&self, kind: BusKind) -> Process {
        match kind {
            BusKind::Embedded => self.ours("bus", &["bus", "--port", &self.port.to_string()]),
            BusKind::Python => python::module("ovos_messagebus", &self.sandbox),
        }
    }

    /// Our program in this scene.
    pub(crate) fn ours(&self, name: &str, args: &[&str]) -> Process {
        self.ours_with(name, args, &[])
    }

    /// The same with environment variables.
    pub(crate) fn ours_with(&self, name: &str, args: &[&str], variables: &[(&str, &str)]) -> Process {
        let mut command = self.sandbox.command(env!("CARGO_BIN_EXE_ovos-tools"));
        command.args(args).envs(variables.iter().copied());
        Process::start(name, &self.sandbox, command)
    }

    /// Starts a service with testbed and waits for nothing.
    pub(crate) fn service_started(&self, args: &[&str]) -> Process {
        let plugins = testbed_plugins();
        let mut all = vec!["serve", "--plugins", plugins.to_str().unwrap()];
        all.extend(args);
        self.ours("service", &all)
    }

    /// Starts a service with testbed and waits until it tells `client` that it is ready.
    pub(crate) fn service(&self, client: &mut Client) -> Process {
        let mut service = self.service_started(&[]);
        ready(&mut service, client);
        service
    }

    /// Starts a bus of ours and a service with testbed, and waits until it is ready.
    pub(crate) fn open(&self) -> (Process, Process, Client) {
        let bus = self.bus(BusKind::Embedded);
        let mut client = Client::connect(self.port);
        let service = self.service(&mut client);
        (bus, service, client)
    }

    fn motor_log(&self) -> PathBuf {
        self.sandbox.path("motor.log")
    }

    /// All motor commands so far.
    pub(crate) fn motors(&self) -> Vec<Motor> {
        let text = fs::read_to_string(self.motor_log()).unwrap_or_default();
        // The last line may be incomplete.
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        whole.lines().map(motor).collect()
    }

    /// Waits for motor commands that satisfy `found`.
    #[track_caller]
    pub(crate) fn until_motors<T>(&self, what: &str, mut found: impl FnMut(&[Motor]) -> Option<T>) -> T {
        let end = Instant::now() + DEADLINE;
        loop {
            let motors = self.motors();
            if let Some(value) = found(&motors) {
                return value;
            }
            let last = &motors[motors.len().saturating_sub(20)..];
            assert!(
                Instant::now() < end,
                "motors: no {what} in {} lines that end in {last:?}",
                motors.len()
            );
            // A growing file has to be polled.
            std::thread::park_timeout(Duration::from_millis(2));
        }
    }

    /// Waits until the service has recorded that nothing moves: if it is killed now, it is not latched after its
    /// restart.
    #[track_caller]
    pub(crate) fn until_at_rest(&self) {
        let record = self.sandbox.path("state/ovos-tools/moving.json");
        let end = Instant::now() + DEADLINE;
        loop {
            let moving = fs::read_to_string(&record).unwrap_or_default();
            if moving.trim() == "[]" {
                return;
            }
            assert!(Instant::now() < end, "on record as moving: {moving}");
            std::thread::park_timeout(Duration::from_millis(2));
        }
    }

    /// Waits until motors of a call whose id starts like this have made a step.
    #[track_caller]
    pub(crate) fn until_moving(&self, call_id: &str) {
        self.until_motors("step", |motors| {
            motors
                .iter()
                .any(|motor| motor.kind == "step" && motor.run.starts_with(call_id))
                .then_some(())
        });
    }
}

/// Waits until a service reports that all its toolboxes are loaded.
pub(crate) fn ready(service: &mut Process, client: &mut Client) {
    service.until("all toolboxes", |_| {
        let answer = client.ask_within(
            "mycroft.ovos_tools.all_loaded",
            &json!({}),
            Duration::from_millis(100),
        )?;
        (answer["status"] == true).then_some(())
    });
}

/// The first motor command of one of these kinds, and everything after it.
pub(crate) fn from_first<'a>(motors: &'a [Motor], kinds: &[&str]) -> Option<&'a [Motor]> {
    let first = motors
        .iter()
        .position(|motor| kinds.contains(&motor.kind.as_str()))?;
    motors.get(first..)
}

/// Fails if one of these moves something.
#[track_caller]
pub(crate) fn assert_still(motors: &[Motor]) {
    let moves: Vec<_> = motors.iter().filter(|motor| motor.moves()).collect();
    assert!(moves.is_empty(), "moved after it was halted: {moves:?}");
}

/// Fails if something that was moved was not halted, or was moved after that.
#[track_caller]
pub(crate) fn assert_halted(motors: &[Motor]) {
    let moved: BTreeSet<&str> = motors
        .iter()
        .filter(|motor| motor.moves())
        .map(|motor| motor.subsystem.as_str())
        .collect();
    assert!(!moved.is_empty(), "nothing was moved");
    for subsystem in moved {
        let of_it = |motor: &&Motor| motor.subsystem == subsystem || motor.subsystem == "all";
        let of_it: Vec<Motor> = motors.iter().filter(of_it).cloned().collect();
        let Some(halted) = from_first(&of_it, &["halt", "emergency"]) else {
            panic!("{subsystem} was never halted")
        };
        assert_still(halted);
    }
}

/// The monotonic clock of the motor log.
pub(crate) fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    u64::try_from(now.tv_sec * 1_000_000_000 + now.tv_nsec).unwrap()
}

fn motor(line: &str) -> Motor {
    let words: Vec<&str> = line.splitn(4, ' ').collect();
    let [at, kind, subsystem, run] = words.as_slice() else {
        panic!("motor log: {line:?}")
    };
    Motor {
        at: at.parse().unwrap(),
        kind: (*kind).to_owned(),
        subsystem: (*subsystem).to_owned(),
        run: (*run).to_owned(),
    }
}

fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from.clone(),
    }
}
