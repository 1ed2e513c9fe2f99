//! A service whose toolboxes are the programs in `scripts`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::service_with_bus::ServiceWithBus;
use crate::support::status;

/// The interpreter of the scripts: root's own, because one in a home may be anyone's.
const PYTHON: &str = "/usr/bin/python3";

/// How long a program has to say hello. Longer than two dozen interpreters that start at once need on a busy machine.
const HELLO_MS: u64 = 10_000;

/// A service with programs, and a client.
pub(crate) struct Scene {
    pub(crate) client: Client,
    pub(crate) service: ServiceWithBus,
    scripts: tempfile::TempDir,
}

/// One program of the configuration.
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    pub(crate) script: &'static str,
    pub(crate) args: &'static [&'static str],
    /// More keys.
    pub(crate) more: Value,
    /// Sections of toolboxes.
    pub(crate) sections: Value,
}

impl Entry {
    pub(crate) fn of(name: &'static str) -> Self {
        Self {
            name,
            script: name,
            args: &[],
            more: json!({}),
            sections: json!({}),
        }
    }
}

impl Scene {
    /// Starts a service with the program `good` and these.
    pub(crate) fn start(entries: &[Entry]) -> Self {
        let scripts = scripts();
        let plugins = scripts.path().join("plugins");
        fs::create_dir(&plugins).unwrap();
        let program = Path::new(env!("CARGO_BIN_EXE_ovos-tools"));
        let mut service = ServiceWithBus::start(program, &plugins, |sandbox| {
            sections(scripts.path(), &sandbox.path("trace"), entries)
        });
        let mut client = Client::connect(service.port);
        service.process.until("an answer", |_| {
            client.ask_within("ovos.tools.status", &json!({}), Duration::from_millis(100))
        });
        Self {
            client,
            service,
            scripts,
        }
    }

    /// As `start`, and waits until these are ready.
    pub(crate) fn ready(entries: &[Entry]) -> Self {
        let mut scene = Self::start(entries);
        for id in entries.iter().map(|entry| entry.name).chain(["good"]) {
            scene.until(id, "readiness", |toolbox| toolbox["state"] == "ready");
        }
        scene
    }

    /// Has other programs from the next reload on.
    pub(crate) fn configure(&self, entries: &[Entry]) {
        let sections = sections(self.scripts.path(), &self.trace(), entries);
        let conf = json!({
            "websocket": { "host": "127.0.0.1", "port": self.service.port },
            "PHAL": { "ovos-phal-plugin-tools": sections },
        });
        let file = self.service.sandbox.path("config/mycroft/mycroft.conf");
        fs::write(file, conf.to_string()).unwrap();
    }

    /// Changes the section of a toolbox from the next reload on.
    pub(crate) fn set(&self, id: &str, keys: &Value) {
        let file = self.service.sandbox.path("config/mycroft/mycroft.conf");
        let mut conf: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        let section = &mut conf["PHAL"]["ovos-phal-plugin-tools"][id];
        let keys = keys.as_object().unwrap().clone();
        section.as_object_mut().unwrap().extend(keys);
        fs::write(file, conf.to_string()).unwrap();
    }

    /// Where `good` writes that its hardware was brought to rest.
    pub(crate) fn trace(&self) -> PathBuf {
        self.service.sandbox.path("trace")
    }

    pub(crate) fn script(&self, name: &str) -> PathBuf {
        self.scripts.path().join(format!("{name}.py"))
    }

    /// What a call of a tool is answered.
    #[track_caller]
    pub(crate) fn call(&mut self, toolbox_id: &str, tool: &str) -> Value {
        let call = json!({ "name": tool, "args": {}, "toolbox_id": toolbox_id });
        self.client.ask("ovos.tools.invoke", &call)
    }

    /// Waits until the status of a toolbox fits.
    #[track_caller]
    pub(crate) fn until(&mut self, id: &str, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        status::toolbox_until(&mut self.client, id, what, fits)
    }

    /// Why a program is not loaded; none if that is not known.
    pub(crate) fn failure(&mut self, name: &str) -> Option<String> {
        let status = self.client.ask("ovos.tools.status", &json!({}));
        let failed = status["failed"].as_array().unwrap().iter();
        let mut reasons = failed.filter_map(|failed| failed["reason"].as_str());
        let of_it = format!("program `{name}`: ");
        reasons
            .find(|reason| reason.starts_with(&of_it))
            .map(str::to_owned)
    }

    /// Has the files read again, and a reload.
    pub(crate) fn reload(&mut self) -> Value {
        self.client.send("configuration.updated", &json!({}));
        self.client.ask("ovos.tools.reload", &json!({ "detail": true }))
    }
}

/// A copy of the scripts that only this user may write, whatever the checkout allows.
fn scripts() -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/scripts");
    for entry in fs::read_dir(source).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            put(&path, &copy.path().join(path.file_name().unwrap()), 0o644);
        }
    }
    put(
        &copy.path().join("good.py"),
        &copy.path().join("writable.py"),
        0o666,
    );
    copy
}

fn put(from: &Path, to: &Path, mode: u32) {
    fs::copy(from, to).unwrap();
    fs::set_permissions(to, fs::Permissions::from_mode(mode)).unwrap();
}

fn sections(scripts: &Path, trace: &Path, entries: &[Entry]) -> Value {
    let good = Entry::of("good");
    let mut programs = serde_json::Map::new();
    let mut sections = json!({ "good": { "trace": trace } });
    for entry in std::iter::once(&good).chain(entries) {
        let script = scripts.join(format!("{}.py", entry.script));
        let mut args = vec![json!(entry.name)];
        args.extend(entry.args.iter().map(|arg| json!(arg)));
        let mut program = json!({ "command": [PYTHON, script], "args": args });
        let more = entry.more.as_object().unwrap().clone();
        program.as_object_mut().unwrap().extend(more);
        programs.insert(entry.name.to_owned(), program);
        // One that does not close is not waited for.
        sections[entry.name]["limits"] = json!({ "close_ms": 1000 });
        for (id, section) in entry.sections.as_object().unwrap() {
            sections[id] = section.clone();
        }
    }
    sections["service"] =
        json!({ "programs": programs, "probe_ms": HELLO_MS, "plan_ms": 10_000, "operator_tools": true });
    sections
}
