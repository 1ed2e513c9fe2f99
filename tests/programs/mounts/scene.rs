//! A service with mounts, and a client of its bus.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::process::{Process, Sandbox, free_port};
use crate::support::status;

/// A service, its mounts and its client.
pub(crate) struct Scene {
    pub(crate) client: Client,
    pub(crate) service: Process,
    pub(crate) sandbox: Sandbox,
    port: u16,
}

impl Scene {
    /// Starts a service with these mounts. `sections` are further sections.
    pub(crate) fn start(mounts: &Value, sections: &Value) -> Self {
        Self::with(&[], |_| (mounts.clone(), sections.clone()))
    }

    /// Starts a service with mounts whose configuration may name files of the sandbox.
    pub(crate) fn of(mounts: impl FnOnce(&Sandbox) -> Value) -> Self {
        Self::with(&[], |sandbox| (mounts(sandbox), json!({})))
    }

    /// The same, with these variables in the service's environment.
    pub(crate) fn with(env: &[(&str, &str)], written: impl FnOnce(&Sandbox) -> (Value, Value)) -> Self {
        Self::beside(None, env, written)
    }

    /// The same, with the plugins of a folder beside the mounts.
    pub(crate) fn beside(
        plugins: Option<PathBuf>,
        env: &[(&str, &str)],
        written: impl FnOnce(&Sandbox) -> (Value, Value),
    ) -> Self {
        let program = Path::new(env!("CARGO_BIN_EXE_ovos-tools"));
        let mounts = program.with_file_name("ovos-tools-mounts");
        assert!(
            mounts.exists(),
            "no {}: cargo build --package ovos-tools-mounts",
            mounts.display()
        );
        let port = free_port();
        let sandbox = Sandbox::with_bus(port);
        let none = sandbox.path("plugins");
        fs::create_dir(&none).unwrap();
        let plugins = plugins.unwrap_or(none);
        let (mounts, sections) = written(&sandbox);
        write(&sandbox, port, &mounts, &sections);
        let mut command = sandbox.command(program);
        command
            .args(["serve", "--embedded-bus", "always", "--plugins"])
            .arg(plugins)
            .envs(env.iter().copied());
        let service = Process::start("ovos-tools", &sandbox, command);
        let client = Client::connect(port);
        let mut scene = Self {
            client,
            service,
            sandbox,
            port,
        };
        let client = &mut scene.client;
        scene.service.until("readiness", |_| {
            let wait = std::time::Duration::from_millis(200);
            let status = client.ask_within("ovos.tools.status", &json!({}), wait)?;
            (status["service"]["ready"] == true).then_some(())
        });
        scene
    }

    /// Has other mounts from now on.
    pub(crate) fn reload(&mut self, mounts: &Value) -> Value {
        self.reload_with(mounts, &json!({}))
    }

    /// The same with further sections.
    pub(crate) fn reload_with(&mut self, mounts: &Value, sections: &Value) -> Value {
        write(&self.sandbox, self.port, mounts, sections);
        self.client.send("configuration.updated", &json!({}));
        self.client.ask("ovos.tools.reload", &json!({ "detail": true }))
    }

    /// The mounts in the configuration.
    pub(crate) fn mounts_of(sandbox: &Sandbox) -> Value {
        let conf = fs::read(sandbox.path("config/mycroft/mycroft.conf")).unwrap();
        let mut conf: Value = serde_json::from_slice(&conf).unwrap();
        conf["PHAL"]["ovos-phal-plugin-tools"]["service"]["mounts"].take()
    }

    /// What a call of a mounted tool is answered.
    #[track_caller]
    pub(crate) fn call(&mut self, mount: &str, tool: &str, args: &Value) -> Value {
        self.ask(mount, tool, args, &json!({}))
    }

    /// The same, with more keys in the request.
    #[track_caller]
    pub(crate) fn ask(&mut self, mount: &str, tool: &str, args: &Value, more: &Value) -> Value {
        let mut call = json!({ "name": tool, "args": args, "toolbox_id": mount });
        call.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        self.client.ask("ovos.tools.invoke", &call)
    }

    /// Waits until the server of a mount is as it should be; one that is ready has tools.
    #[track_caller]
    pub(crate) fn until(&mut self, mount: &str, state: &str) -> Value {
        status::toolbox_until(&mut self.client, mount, state, |toolbox| {
            let has_tools = state != "ready" || toolbox["tools"] != 0;
            toolbox["backend"]["state"] == state && has_tools
        })
    }

    /// Waits until a mount has so many tools.
    #[track_caller]
    pub(crate) fn until_tools(&mut self, mount: &str, tools: usize) -> Value {
        let what = format!("{tools} tools");
        status::toolbox_until(&mut self.client, mount, &what, |toolbox| {
            toolbox["tools"] == json!(tools)
        })
    }

    /// What a fake server has written so far.
    pub(crate) fn trace(&self, name: &str) -> String {
        fs::read_to_string(trace(&self.sandbox, name)).unwrap_or_default()
    }

    /// Waits until a fake server has written something.
    #[track_caller]
    pub(crate) fn until_trace(&mut self, name: &str, part: &str) -> String {
        let file = trace(&self.sandbox, name);
        self.service.until(&format!("{part:?} of {name}"), |_| {
            let text = fs::read_to_string(&file).unwrap_or_default();
            text.contains(part).then_some(text)
        })
    }
}

fn write(sandbox: &Sandbox, port: u16, mounts: &Value, sections: &Value) {
    let mut ours = sections.clone();
    ours["service"]["mounts"] = mounts.clone();
    let conf = json!({
        "websocket": { "host": "127.0.0.1", "port": port },
        "PHAL": { "ovos-phal-plugin-tools": ours },
    });
    fs::write(sandbox.path("config/mycroft/mycroft.conf"), conf.to_string()).unwrap();
}

fn trace(sandbox: &Sandbox, name: &str) -> PathBuf {
    sandbox.path(&format!("{name}.trace"))
}

/// The mount of a fake server that writes the trace `name`.
pub(crate) fn fake(sandbox: &Sandbox, name: &str, words: &[&str]) -> Value {
    let script = script("server.py");
    let mut args = vec![json!(script), json!(trace(sandbox, name))];
    args.extend(words.iter().map(|word| json!(word)));
    json!({ "command": "/usr/bin/python3", "args": args })
}

pub(crate) fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/programs/mounts/scripts")
        .join(name)
}
