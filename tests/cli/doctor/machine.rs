//! The machine that `doctor` looks at.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Map, Value, json};
use tempfile::TempDir;

use crate::scripted::{self, Bus, finish};

/// A machine, with a bus whose services answer with lists of tools.
pub(super) struct Machine {
    pub(super) home: TempDir,
    pub(super) bus: Bus,
    /// What runs, if it is not the binary itself.
    pub(super) program: PathBuf,
    pub(super) env: Vec<(&'static str, PathBuf)>,
    pub(super) user: Option<u32>,
}

impl Machine {
    pub(super) async fn new(lists: Vec<Value>) -> Self {
        Self::with(lists, None).await
    }

    /// With a service that also tells its status.
    pub(super) async fn with(lists: Vec<Value>, status: Option<Value>) -> Self {
        let bus = Bus::start(Box::new(move |asked, _| {
            let data: Vec<Value> = match asked {
                "ovos.tools.list" => lists.iter().map(|tools| json!({ "tools": tools })).collect(),
                "ovos.tools.status" => status.iter().cloned().collect(),
                _ => Vec::new(),
            };
            let answer = |data| (format!("{asked}.response"), data);
            data.into_iter().map(answer).collect()
        }))
        .await;
        let home = tempfile::tempdir().unwrap();
        fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755)).unwrap();
        fs::create_dir(home.path().join("plugins")).unwrap();
        Self {
            home,
            bus,
            program: env!("CARGO_BIN_EXE_ovos-tools").into(),
            env: Vec::new(),
            user: None,
        }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// Compiles a C source, and returns the file.
    pub(super) fn compiled(&self, name: &str, source: &Path, arguments: &[&str]) -> PathBuf {
        let made = self.path(name);
        let mut cc = Command::new("cc");
        cc.args(["-x", "c", "-o"]).arg(&made).arg(source).args(arguments);
        let out = cc.output().expect("cc (Debian: apt install gcc)");
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        made
    }

    /// Runs `doctor` with these sections; the keys of `service` are added to the folder of plugins.
    pub(super) async fn examine(&self, sections: &Value) -> (i32, Value) {
        let mut sections = sections.as_object().unwrap().clone();
        let service = sections.entry("service").or_insert(Map::new().into());
        service["plugins_dir"] = json!([self.path("plugins")]);
        let file = self.path("mycroft.conf");
        let conf = json!({"PHAL": {"ovos-phal-plugin-tools": sections}});
        fs::write(&file, conf.to_string()).unwrap();
        let arguments = [
            "doctor",
            "--json",
            "--bus",
            &self.bus.url,
            "--config",
            file.to_str().unwrap(),
        ];
        let mut command = scripted::command_of(&self.program, self.home.path(), &arguments);
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        let ran = finish(command.spawn().unwrap()).await;
        let report = serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
        (ran.code, report)
    }
}

#[track_caller]
pub(super) fn assert_finding(report: &Value, part: &str, state: &str, found: &str, mend: &str) {
    let findings = report["findings"].as_array().unwrap();
    let fits = |finding: &&Value| {
        let text = |key: &str| finding[key].as_str().unwrap_or_default();
        text("part") == part
            && text("state") == state
            && text("found").contains(found)
            && text("mend").contains(mend)
    };
    assert!(
        findings.iter().any(|finding| fits(&finding)),
        "no {part}: {found}: {report:#}"
    );
}

pub(super) fn ours() -> Value {
    json!([{"name": "add", "meta": {"effect": "read"}}])
}
