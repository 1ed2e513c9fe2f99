//! A service that hosts the toolboxes of an interpreter, with a folder of packages that a test installs.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::service_with_bus::ServiceWithBus;
use crate::support::status;

/// An interpreter of root, without packages of its own.
pub(crate) const PYTHON: &str = "/usr/bin/python3";

/// A service and its client.
pub(crate) struct Scene {
    pub(crate) client: Client,
    pub(crate) service: ServiceWithBus,
    folder: tempfile::TempDir,
}

/// A package with one OPM toolbox, as an installer leaves it.
pub(crate) struct Package {
    pub(crate) toolbox: &'static str,
    pub(crate) version: &'static str,
}

impl Scene {
    /// Starts a service with these packages, this entry `python` beside its environment, and these sections.
    pub(crate) fn start(packages: &[Package], python: &Value, sections: &Value) -> Self {
        let program = Path::new(env!("CARGO_BIN_EXE_ovos-tools"));
        Self::start_of(program, packages, python, sections)
    }

    /// The same, of a copy of the program.
    pub(crate) fn start_of(program: &Path, packages: &[Package], python: &Value, sections: &Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let plugins = folder.path().join("plugins");
        fs::create_dir(&plugins).unwrap();
        let site = site(folder.path());
        fs::create_dir(&site).unwrap();
        for package in packages {
            package.install(&site);
        }
        let user = folder.path().join("user");
        let env = json!({ "PYTHONPATH": site, "PYTHONUSERBASE": user });
        let mut entry = json!({ "enabled": true, "env": env });
        entry
            .as_object_mut()
            .unwrap()
            .extend(python.as_object().unwrap().clone());
        let mut conf = json!({ "service": { "programs": { "python": entry }, "probe_ms": 10_000 } });
        for (key, section) in sections.as_object().unwrap() {
            let entry = conf
                .as_object_mut()
                .unwrap()
                .entry(key.clone())
                .or_insert_with(|| json!({}));
            entry
                .as_object_mut()
                .unwrap()
                .extend(section.as_object().unwrap().clone());
        }
        let mut service = ServiceWithBus::start(program, &plugins, |_| conf);
        let mut client = Client::connect(service.port);
        service.process.until("every toolbox", |_| {
            let answer = client.ask_within(
                "mycroft.ovos_tools.all_loaded",
                &json!({}),
                Duration::from_millis(200),
            )?;
            (answer["status"] == true).then_some(())
        });
        Self {
            client,
            service,
            folder,
        }
    }

    pub(crate) fn install(&self, package: &Package) {
        package.install(&site(self.folder.path()));
    }

    /// Removes the metadata of a package, as `pip uninstall` does.
    pub(crate) fn uninstall(&self, toolbox: &str) {
        fs::remove_dir_all(metadata(&site(self.folder.path()), toolbox)).unwrap();
    }

    /// Has another entry `python` from the next reload on, with the same environment.
    pub(crate) fn configure(&mut self, python: &Value) {
        let keys = python.as_object().unwrap().clone();
        self.change(|programs| {
            let mut new = json!({ "enabled": true, "env": programs["python"]["env"] });
            new.as_object_mut().unwrap().extend(keys);
            programs["python"] = new;
        });
    }

    /// Adds an entry of this name for an interpreter with these packages; the next reload hosts it.
    pub(crate) fn add(&mut self, name: &str, packages: &[Package]) {
        let site = self.path(name);
        fs::create_dir(&site).unwrap();
        for package in packages {
            package.install(&site);
        }
        let entry = json!({ "interpreter": PYTHON, "env": { "PYTHONPATH": site } });
        self.change(|programs| programs[name] = entry);
    }

    fn change(&mut self, change: impl FnOnce(&mut Value)) {
        let file = self.service.sandbox.path("config/mycroft/mycroft.conf");
        let mut conf: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        change(&mut conf["PHAL"]["ovos-phal-plugin-tools"]["service"]["programs"]);
        fs::write(file, conf.to_string()).unwrap();
        self.client.send("configuration.updated", &json!({}));
    }

    /// A place beside the packages, which are in `site`.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn reload(&mut self) -> Value {
        self.client.ask("ovos.tools.reload", &json!({ "detail": true }))
    }

    /// What a call of a tool is answered.
    #[track_caller]
    pub(crate) fn call(&mut self, toolbox_id: &str, tool: &str, args: &Value) -> Value {
        let call = json!({ "name": tool, "args": args, "toolbox_id": toolbox_id });
        self.client.ask("ovos.tools.invoke", &call)
    }

    pub(crate) fn status(&mut self) -> Value {
        self.client.ask("ovos.tools.status", &json!({}))
    }

    #[track_caller]
    pub(crate) fn until(&mut self, id: &str, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        status::toolbox_until(&mut self.client, id, what, fits)
    }
}

fn site(folder: &Path) -> PathBuf {
    folder.join("site")
}

fn metadata(site: &Path, toolbox: &str) -> PathBuf {
    site.join(format!("{}-1.dist-info", toolbox.replace('-', "_")))
}

impl Package {
    fn install(&self, site: &Path) {
        let Self { toolbox, version } = self;
        let module = toolbox.replace('-', "_");
        let source = include_str!("toolbox.py")
            .replace("VERSION", version)
            .replace("TOOLBOX", toolbox);
        fs::write(site.join(format!("{module}.py")), source).unwrap();
        let metadata = metadata(site, toolbox);
        fs::create_dir_all(&metadata).unwrap();
        let about = format!("Metadata-Version: 2.1\nName: {toolbox}\nVersion: {version}\n");
        fs::write(metadata.join("METADATA"), about).unwrap();
        let points = format!("[opm.agents.toolbox]\n{toolbox} = {module}:Box\n");
        fs::write(metadata.join("entry_points.txt"), points).unwrap();
    }
}
