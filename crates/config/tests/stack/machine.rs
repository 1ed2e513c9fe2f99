//! A test machine to read a configuration on.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ovos_tools_config::{Config, ConfigErrors, Environment, Overrides};
use serde_json::{Value, json};

pub(crate) const DISTRIBUTION: &str = "usr/share/mycroft/mycroft.conf";
pub(crate) const SYSTEM: &str = "etc/mycroft/mycroft.conf";
pub(crate) const RUNTIME: &str = "home/.config/mycroft/runtime.conf";
pub(crate) const XDG: &str = "etc/xdg/mycroft/mycroft.conf";
pub(crate) const USER: &str = "home/.config/mycroft/mycroft.conf";

/// A machine in a temporary folder: files below it, and variables whose values may contain `{root}`.
pub(crate) struct Machine {
    dir: tempfile::TempDir,
    vars: BTreeMap<String, String>,
}

impl Environment for Machine {
    fn var(&self, name: &str) -> Option<String> {
        self.vars.get(name).cloned()
    }

    fn home(&self) -> Option<PathBuf> {
        Some(self.path("home"))
    }

    fn root(&self) -> &Path {
        self.dir.path()
    }

    /// `PROGRAM` stands for the file of the program.
    fn program(&self) -> Option<PathBuf> {
        self.vars.get("PROGRAM").map(PathBuf::from)
    }
}

impl Machine {
    pub(crate) fn new(files: &[(&str, &str)], vars: &[(&str, &str)]) -> Self {
        let mut machine = Self {
            dir: tempfile::tempdir().unwrap(),
            vars: BTreeMap::new(),
        };
        for (name, value) in vars {
            let value = value.replace("{root}", machine.root().to_str().unwrap());
            machine.vars.insert((*name).to_owned(), value);
        }
        for (path, text) in files {
            machine.write(path, text);
        }
        machine
    }

    /// A machine whose user file has `service` as the service section.
    pub(crate) fn with_service(service: Value) -> Self {
        Self::with_section(json!({"service": service}))
    }

    pub(crate) fn with_section(section: Value) -> Self {
        Self::new(
            &[(
                USER,
                &json!({"PHAL": {"ovos-phal-plugin-tools": section}}).to_string(),
            )],
            &[],
        )
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn load(&self) -> Result<Arc<Config>, ConfigErrors> {
        Config::load(self, &Overrides::default(), None)
    }

    /// Removes the machine's folder from a text.
    pub(crate) fn plain(&self, text: impl ToString) -> String {
        text.to_string()
            .replace(&format!("{}/", self.root().display()), "")
    }

    pub(crate) fn origin(&self, config: &Config, key: &str) -> String {
        let setting = config
            .settings()
            .find(|setting| setting.key == key)
            .unwrap_or_else(|| panic!("no setting {key}"));
        self.plain(&setting.origin)
    }
}
