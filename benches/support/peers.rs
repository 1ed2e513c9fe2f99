//! The processes that a bench talks to: buses, services and responders that only answer.
//!
//! Our own bus and responder are this program in another role, so that each runs in a process like its counterpart.
//! Dropping a value ends its process.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use bus::{EmbeddedBus, ServerConfig};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::process::{Process, Sandbox, free_port};
use super::python;
use super::responder::{self, ECHO};
use super::wire::Wire;

/// First argument of this program in a peer role.
pub(crate) const ROLE: &str = "--role";

/// The bus implementation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BusKind {
    Embedded,
    Python,
}

/// A process and its home directory.
pub(crate) struct Peer {
    pub(crate) process: Process,
    pub(crate) sandbox: Sandbox,
}

impl Peer {
    pub(crate) fn start(name: &str, sandbox: Sandbox, command: Command) -> Self {
        let process = Process::start(name, &sandbox, command);
        Self { process, sandbox }
    }
}

/// A bus on its own port.
pub(crate) struct Bus {
    pub(crate) port: u16,
    pub(crate) peer: Peer,
}

impl Bus {
    pub(crate) fn start(kind: BusKind) -> Self {
        let port = free_port();
        let sandbox = Sandbox::with_bus(port);
        let mut process = match kind {
            BusKind::Embedded => role("bus", port, &sandbox),
            BusKind::Python => python::module("ovos_messagebus", &sandbox),
        };
        process.until("bus that answers", |_| Wire::join(port).ok());
        let peer = Peer { process, sandbox };
        Self { port, peer }
    }

    pub(crate) fn join(&self) -> Wire {
        Wire::join(self.port).expect("the bus was there a moment ago")
    }

    /// Starts a responder on this bus, or a relay.
    pub(crate) fn responder(&self, kind: &str) -> Peer {
        let sandbox = Sandbox::with_bus(self.port);
        let mut process = role(kind, self.port, &sandbox);
        let mut asking = self.join();
        asking
            .send(ECHO.request.as_bytes())
            .expect("the bus takes a message");
        process.until("responder", |process| {
            process.output().contains("ready").then_some(())
        });
        Peer { process, sandbox }
    }

    /// Starts the published service with testbed's Python counterpart, which has `grown` additional tools.
    pub(crate) fn reference(&self, grown: usize) -> Peer {
        let sandbox = Sandbox::with_bus(self.port);
        let mut command = sandbox.command(python::python().expect("was looked for before"));
        command
            .args(["-m", "ovos_PHAL"])
            .env("REFERENCE_TOOLBOX_GROWN", grown.to_string());
        self.lists(Peer::start("ovos_PHAL", sandbox, command), "add", 1)
    }

    /// Starts our service with testbed and this section of the configuration.
    pub(crate) fn service(&self, testbed: &Value) -> Peer {
        self.service_with(&json!({ "testbed": testbed }))
    }

    /// Starts our service with testbed and these sections of the configuration.
    pub(crate) fn service_with(&self, sections: &Value) -> Peer {
        self.lists(self.serve(sections, Some(plugins("bench-plugins"))), "add", 1)
    }

    /// Starts our service with these sections, and the toolboxes of a folder; it may not be ready yet.
    pub(crate) fn serve(&self, sections: &Value, plugins: Option<PathBuf>) -> Peer {
        let sandbox = self.configured(sections);
        let plugins = plugins.unwrap_or_else(|| {
            let none = sandbox.path("plugins");
            std::fs::create_dir(&none).expect("a sandbox can be written");
            none
        });
        let mut command = service_command(&sandbox);
        command.arg("--plugins").arg(plugins);
        Peer::start("ovos-tools", sandbox, command)
    }

    /// Starts our service with testbed in a home of its own.
    pub(crate) fn serve_in(&self, sandbox: Sandbox) -> Peer {
        let mut command = service_command(&sandbox);
        command.arg("--plugins").arg(plugins("bench-plugins"));
        self.lists(Peer::start("ovos-tools", sandbox, command), "add", 1)
    }

    /// A home with these sections of the configuration.
    pub(crate) fn configured(&self, sections: &Value) -> Sandbox {
        let sandbox = Sandbox::new();
        let conf = json!({
            "websocket": {"host": "127.0.0.1", "port": self.port},
            "PHAL": {"ovos-phal-plugin-tools": sections},
        });
        std::fs::write(sandbox.path("config/mycroft/mycroft.conf"), conf.to_string())
            .expect("a sandbox can be written");
        sandbox
    }

    /// Waits until the service lists so many tools of this name: a toolbox may join after the service says that it is ready.
    pub(crate) fn lists(&self, peer: Peer, tool: &'static str, times: usize) -> Peer {
        self.answers(peer, "ovos.tools.list", move |list| {
            let tools = list["tools"].as_array().into_iter().flatten();
            tools.filter(|one| one["name"] == tool).count() == times
        })
    }

    /// Asks the service until its answer fits.
    pub(crate) fn answers(
        &self,
        mut peer: Peer,
        topic: &str,
        fits: impl Fn(&Value) -> bool + Send + 'static,
    ) -> Peer {
        let Question {
            request: question,
            answer,
        } = Question::new(topic, &json!({}));
        let mut asking = self.join();
        let mut writing = asking.writer().expect("a socket can be cloned");
        let (sender, signals) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let read = |text: &[u8]| {
                let frame: Value = serde_json::from_slice(text).unwrap_or_default();
                fits(&frame["data"])
            };
            while let Ok(ready) = asking.until(&answer, read) {
                if sender.send(ready).is_err() {
                    return;
                }
            }
        });
        peer.process.until("readiness", |_| {
            writing
                .send(question.as_bytes())
                .expect("the bus takes a message");
            signals.try_iter().any(|ready| ready).then_some(())
        });
        peer
    }
}

/// `ovos-tools serve` in a sandbox; the caller adds the plugins.
pub(crate) fn service_command(sandbox: &Sandbox) -> Command {
    let mut command = sandbox.command(env!("CARGO_BIN_EXE_ovos-tools"));
    command.arg("serve");
    command
}

/// A program beside the service's, if it was built.
pub(crate) fn built(name: &str) -> Option<PathBuf> {
    let program = Path::new(env!("CARGO_BIN_EXE_ovos-tools")).with_file_name(name);
    program.exists().then_some(program)
}

/// A folder of toolboxes built with optimisation.
pub(crate) fn plugins(name: &str) -> PathBuf {
    let binary = Path::new(env!("CARGO_BIN_EXE_ovos-tools"));
    let target = binary.ancestors().nth(2).unwrap_or(Path::new("target"));
    let dir = target.join(name);
    assert!(
        dir.is_dir(),
        "no toolboxes in {}: run `make bench`",
        dir.display()
    );
    dir
}

fn role(name: &str, port: u16, sandbox: &Sandbox) -> Process {
    let program = std::env::current_exe().expect("a program knows where it is");
    let mut command = sandbox.command(program);
    command.args([ROLE, name, &port.to_string()]);
    Process::start(name, sandbox, command)
}

/// Runs this process in a peer role.
pub(crate) fn play(role: &str, port: u16) -> io::Result<()> {
    match role {
        "bus" => embedded_bus(port),
        "responder" => responder::respond(port),
        "relay" => responder::relay(port),
        "behind_relay" => responder::behind_relay(),
        other => Err(io::Error::other(format!("no peer has the role {other}"))),
    }
}

/// Like `ovos-tools bus`.
fn embedded_bus(port: u16) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let config = ServerConfig {
            port,
            ..ServerConfig::default()
        };
        let bus = EmbeddedBus::bind(config).await.map_err(io::Error::other)?;
        bus.run(CancellationToken::new()).await;
        Ok(())
    })
}

/// A request, and the type of its answer.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    pub(crate) request: String,
    pub(crate) answer: String,
}

impl Question {
    pub(crate) fn new(topic: &str, data: &Value) -> Self {
        let context = json!({"source": "bench", "destination": "tools", "session": {"session_id": "bench"}});
        Self {
            request: format!(r#"{{"type":"{topic}","data":{data},"context":{context}}}"#),
            answer: format!("{topic}.response"),
        }
    }

    pub(crate) fn invoke(tool: &str, args: &Value) -> Self {
        Self::new("ovos.tools.invoke", &json!({"name": tool, "args": args}))
    }
}
