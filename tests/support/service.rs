//! A bus and a service on it, both real processes, ready when `start` returns and gone when dropped.
//!
//! With `OVOS_TOOLS_TEST_SUBJECT=reference` the published Python bus and service are tested instead, which checks the
//! tests themselves: a test that the reference does not pass is wrong.

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::{Message, client};

use super::process::{Process, Sandbox, free_port};
use super::python;

/// The bus of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BusKind {
    /// The published `ovos-messagebus`.
    Python,
    /// `ovos-tools bus`.
    Embedded,
}

/// A running bus on a port of its own.
pub(crate) struct Bus {
    kind: BusKind,
    port: u16,
    process: Process,
    _sandbox: Sandbox,
}

impl Bus {
    pub(crate) fn start(kind: BusKind) -> Self {
        let port = free_port();
        let sandbox = Sandbox::with_bus(port);
        let process = start_bus(kind, port, &sandbox);
        Self {
            kind,
            port,
            process,
            _sandbox: sandbox,
        }
    }

    /// Kills it and starts another one on the same port.
    pub(crate) fn restart(&mut self) {
        let sandbox = Sandbox::with_bus(self.port);
        self.process.kill();
        self.process = start_bus(self.kind, self.port, &sandbox);
        self._sandbox = sandbox;
    }

    pub(crate) fn url(&self) -> String {
        format!("ws://127.0.0.1:{}/core", self.port)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }
}

fn start_bus(kind: BusKind, port: u16, sandbox: &Sandbox) -> Process {
    let mut process = match kind {
        BusKind::Embedded if !subject_is_reference() => {
            let mut command = ovos_tools(sandbox);
            command.args(["bus", "--host", "127.0.0.1", "--port", &port.to_string()]);
            Process::start("embedded-bus", sandbox, command)
        }
        _ => python::module("ovos_messagebus", sandbox),
    };
    process.until("bus that answers", |_| Asking::connect(port));
    process
}

/// The service under test, with the toolboxes of `target/testbed-plugins`.
pub(crate) struct Service {
    /// Its name in its status topics, `mycroft.<name>.all_loaded`.
    pub(crate) name: &'static str,
    process: Process,
    _sandbox: Sandbox,
}

impl Service {
    pub(crate) fn start(bus: &Bus) -> Self {
        if subject_is_reference() {
            return Self::reference(bus);
        }
        let sandbox = Sandbox::with_bus(bus.port);
        let mut command = ovos_tools(&sandbox);
        command
            .args(["serve", "--bus", &bus.url(), "--plugins"])
            .arg(testbed_plugins());
        Self::wait(
            "ovos_tools",
            bus,
            Process::start("ovos-tools", &sandbox, command),
            sandbox,
        )
    }

    /// The published service: ovos-PHAL, which finds the tools plugin and the toolboxes of tests/python.
    pub(crate) fn reference(bus: &Bus) -> Self {
        let sandbox = Sandbox::with_bus(bus.port);
        Self::wait("PHAL", bus, python::module("ovos_PHAL", &sandbox), sandbox)
    }

    fn wait(name: &'static str, bus: &Bus, mut process: Process, sandbox: Sandbox) -> Self {
        let mut asking = Asking::connect(bus.port).expect("the bus was there a moment ago");
        let topic = format!("mycroft.{name}.all_loaded");
        process.until("readiness", |_| {
            asking.ask(&topic).filter(|data| data["status"] == true)
        });
        Self {
            name,
            process,
            _sandbox: sandbox,
        }
    }

    /// The end of its log, for a failure message.
    pub(crate) fn log(&self) -> String {
        self.process.log()
    }
}

/// Whether the reference is tested instead of our bus and service.
pub(crate) fn subject_is_reference() -> bool {
    std::env::var("OVOS_TOOLS_TEST_SUBJECT").is_ok_and(|subject| subject == "reference")
}

fn ovos_tools(sandbox: &Sandbox) -> Command {
    sandbox.command(env!("CARGO_BIN_EXE_ovos-tools"))
}

/// Where `make testbed` puts the toolboxes that only tests use.
pub(crate) fn testbed_plugins() -> PathBuf {
    let binary = Path::new(env!("CARGO_BIN_EXE_ovos-tools"));
    let dir = binary.ancestors().nth(2).unwrap().join("testbed-plugins");
    assert!(
        dir.join("testbed.so").exists(),
        "no testbed.so in {}: run `make testbed`",
        dir.display()
    );
    dir
}

/// A small bus client that repeats its request until there is an answer.
struct Asking {
    socket: tokio_tungstenite::tungstenite::WebSocket<TcpStream>,
}

impl Asking {
    fn connect(port: u16) -> Option<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
        stream.set_read_timeout(Some(Duration::from_millis(100))).ok()?;
        let (socket, _) = client(format!("ws://127.0.0.1:{port}/core"), stream).ok()?;
        Some(Self { socket })
    }

    /// Asks once; `None` if no answer arrived before the read timeout.
    fn ask(&mut self, topic: &str) -> Option<Value> {
        let question = json!({ "type": topic, "data": {}, "context": {} });
        self.socket
            .send(Message::text(question.to_string()))
            .expect("the bus drops no client for a question");
        while let Ok(frame) = self.socket.read() {
            let frame: Value = serde_json::from_str(frame.to_text().ok()?).ok()?;
            if frame["type"] == format!("{topic}.response") {
                return Some(frame["data"].clone());
            }
        }
        None
    }
}

/// Where `make testbed` puts one toolbox that comes with the service, with its programs.
pub(crate) fn plugins_with(toolbox: &str) -> PathBuf {
    let binary = Path::new(env!("CARGO_BIN_EXE_ovos-tools"));
    let target = binary.ancestors().nth(2).expect("target/debug/ovos-tools");
    let dir = target.join(format!("{toolbox}-plugins"));
    assert!(
        dir.join(format!("{toolbox}.so")).exists(),
        "no {toolbox}.so in {}: run `make testbed`",
        dir.display()
    );
    dir
}
