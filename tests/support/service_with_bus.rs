//! A real service with a bus of its own, which is asked through the command line.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::process::{Process, Sandbox, free_port};

pub(crate) struct ServiceWithBus {
    pub(crate) process: Process,
    pub(crate) sandbox: Sandbox,
    pub(crate) port: u16,
}

impl ServiceWithBus {
    /// Starts `program` with the toolboxes in `plugins`. `sections` makes their sections.
    pub(crate) fn start(program: &Path, plugins: &Path, sections: impl FnOnce(&Sandbox) -> Value) -> Self {
        let port = free_port();
        let sandbox = Sandbox::with_bus(port);
        let conf = json!({
            "websocket": { "host": "127.0.0.1", "port": port },
            "PHAL": { "ovos-phal-plugin-tools": sections(&sandbox) },
        });
        fs::write(sandbox.path("config/mycroft/mycroft.conf"), conf.to_string()).unwrap();
        let mut command = sandbox.command(program);
        command
            .args(["serve", "--embedded-bus", "always", "--plugins"])
            .arg(plugins);
        let process = Process::start("ovos-tools", &sandbox, command);
        Self {
            process,
            sandbox,
            port,
        }
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.sandbox.command(env!("CARGO_BIN_EXE_ovos-tools"));
        command
            .args(["--bus", &format!("ws://127.0.0.1:{}/core", self.port), "--json"])
            .args(arguments);
        command
    }

    pub(crate) fn ask(&self, arguments: &[&str]) -> Value {
        let answer = self.command(arguments).output().unwrap();
        serde_json::from_slice(&answer.stdout)
            .unwrap_or_else(|_| panic!("{arguments:?}: {}", String::from_utf8_lossy(&answer.stderr)))
    }

    /// Waits until the toolboxes of the status are as they should be.
    pub(crate) fn toolboxes_until<T>(&mut self, what: &str, found: impl Fn(&[Value]) -> Option<T>) -> T {
        let mut command = self.command(&["--timeout", "2", "status"]);
        self.process.until(what, |_| {
            let answer = command.output().ok()?;
            let status: Value = serde_json::from_slice(&answer.stdout).ok()?;
            found(status["toolboxes"].as_array()?)
        })
    }
}
