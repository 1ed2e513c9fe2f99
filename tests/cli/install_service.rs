//! `ovos-tools install-service`: the unit, what systemd is told, and what is left alone. systemd is a script.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::scripted::{Ran, command, finish};

/// A home, and a `systemctl` that writes down what it is asked.
struct Machine {
    home: tempfile::TempDir,
}

impl Machine {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("path")).unwrap();
        let machine = Self { home };
        machine.systemctl(r#"echo "$*" >>"$HOME/asked""#);
        machine
    }

    fn path(&self, path: &str) -> PathBuf {
        self.home.path().join(path)
    }

    fn systemctl(&self, script: &str) {
        let file = self.path("path/systemctl");
        fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn unit(&self) -> PathBuf {
        self.path("config/systemd/user/ovos-tools.service")
    }

    /// What systemd was asked since the last look.
    fn systemctl_calls(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path("asked")).unwrap_or_default();
        let _ = fs::remove_file(self.path("asked"));
        text.lines().map(str::to_owned).collect()
    }

    /// Runs `install-service` of the program that is the test's own, or a copy of it.
    async fn run(&self, program: Option<&Path>, arguments: &[&str]) -> Ran {
        let all = [&["install-service"], arguments].concat();
        let mut command = command(self.home.path(), &all);
        if let Some(program) = program {
            let mut other = tokio::process::Command::new(program);
            let environment = command.as_std().get_envs();
            other
                .args(&all)
                .env_clear()
                .envs(environment.filter_map(|(name, value)| Some((name, value?))));
            other
                .stdout(std::process::Stdio::piped())
                .stderr(std::process::Stdio::piped());
            command = other;
        }
        finish(command.env("PATH", self.path("path")).spawn().unwrap()).await
    }
}

#[tokio::test]
async fn it_is_installed_once_and_removed_without_a_trace() {
    let machine = Machine::new();
    let program = env!("CARGO_BIN_EXE_ovos-tools");
    let commands = ["--user daemon-reload", "--user enable --now ovos-tools.service"];
    for changed in [true, false] {
        let ran = machine.run(None, &["--json"]).await;
        assert_eq!(ran.code, 0, "{ran:?}");
        assert!(ran.out.contains(&format!("\"changed\":{changed}")), "{ran:?}");
        assert_eq!(machine.systemctl_calls(), commands);
        let unit = fs::read_to_string(machine.unit()).unwrap();
        for line in [
            format!("ExecStart={program} serve"),
            format!("ExecReload={program} reload"),
        ] {
            assert!(unit.lines().any(|it| it == line), "{line}: {unit}");
        }
        assert!(!unit.contains("/usr/local/bin"), "{unit}");
    }

    let wants = machine.path("config/systemd/user/default.target.wants");
    fs::create_dir(&wants).unwrap();
    std::os::unix::fs::symlink(machine.unit(), wants.join("ovos-tools.service")).unwrap();
    let ran = machine.run(None, &["--remove"]).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    let commands = [
        "--user daemon-reload",
        "--user disable --now ovos-tools.service",
        "--user daemon-reload",
    ];
    assert_eq!(machine.systemctl_calls(), commands);
    assert!(!machine.unit().exists() && fs::read_dir(&wants).unwrap().next().is_none());

    let ran = machine.run(None, &["--remove"]).await;
    assert!(
        ran.code == 0 && ran.out.starts_with("nothing to remove"),
        "{ran:?}"
    );
    assert_eq!(
        machine.systemctl_calls(),
        [""; 0],
        "what is not there is not stopped"
    );
}

#[tokio::test]
async fn the_unit_names_the_program_its_environment_and_its_options() {
    let machine = Machine::new();
    let bin = machine.path("a venv/100%/bin");
    fs::create_dir_all(&bin).unwrap();
    fs::write(bin.join("../pyvenv.cfg"), "").unwrap();
    let program = bin.join("ovos-tools");
    fs::hard_link(env!("CARGO_BIN_EXE_ovos-tools"), &program)
        .or_else(|_| fs::copy(env!("CARGO_BIN_EXE_ovos-tools"), &program).map(|_| ()))
        .unwrap();
    let options = [
        "--plugins",
        "/opt/my toolboxes",
        "--plugins",
        "/b",
        "--bus",
        "ws://127.0.0.1:9/core",
    ];
    let ran = machine.run(Some(&program), &options).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    let unit = fs::read_to_string(machine.unit()).unwrap();
    let home = fs::canonicalize(machine.home.path()).unwrap();
    let venv = format!("{}/a venv/100%%", home.display());
    let line = format!(
        "Environment=\"VIRTUAL_ENV={venv}\"\nExecStart=\"{venv}/bin/ovos-tools\" serve --plugins \"/opt/my toolboxes\" \
         --plugins /b --bus ws://127.0.0.1:9/core\n"
    );
    assert!(unit.contains(&line), "{line}: {unit}");
    let line = format!("ExecReload=\"{venv}/bin/ovos-tools\" reload --bus ws://127.0.0.1:9/core\n");
    assert!(unit.contains(&line), "{line}: {unit}");
    let mode = fs::metadata(machine.unit()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "the address of a bus may have a password");

    machine.systemctl_calls();
    let ran = machine.run(Some(&program), &["--plugins", "/a$b"]).await;
    assert_eq!((ran.code, machine.systemctl_calls()), (2, vec![]), "{ran:?}");
    assert_eq!(fs::read_to_string(machine.unit()).unwrap(), unit);
}

#[tokio::test]
async fn a_unit_of_another_author_is_left_alone() {
    for linked in [false, true] {
        let machine = Machine::new();
        fs::create_dir_all(machine.unit().parent().unwrap()).unwrap();
        let theirs = if linked {
            machine.path("theirs")
        } else {
            machine.unit()
        };
        fs::write(&theirs, "[Service]\nExecStart=/bin/true\n").unwrap();
        if linked {
            std::os::unix::fs::symlink(&theirs, machine.unit()).unwrap();
        }
        for arguments in [&[][..], &["--remove"]] {
            let ran = machine.run(None, arguments).await;
            assert_eq!(ran.code, 1, "{ran:?}");
            assert!(
                ran.err.contains("was not written by `install-service`"),
                "{ran:?}"
            );
            assert!(machine.systemctl_calls().is_empty(), "linked: {linked}");
            assert!(fs::read_to_string(machine.unit()).unwrap().contains("/bin/true"));
        }
    }
}

#[tokio::test]
async fn without_a_manager_it_says_what_to_run() {
    let machine = Machine::new();
    let failing = "echo 'Failed to connect to bus: No medium found' >&2; exit 1";
    for script in [Some(failing), None] {
        match script {
            Some(script) => machine.systemctl(script),
            None => fs::remove_file(machine.path("path/systemctl")).unwrap(),
        }
        let ran = machine.run(None, &[]).await;
        assert_eq!(ran.code, 5, "{ran:?}");
        assert!(
            ran.err.contains("systemctl --user enable --now ovos-tools"),
            "{ran:?}"
        );
        assert_eq!(ran.err.contains("No medium found"), script.is_some(), "{ran:?}");
        assert!(machine.unit().is_file());

        let ran = machine.run(None, &["--remove"]).await;
        assert!(
            ran.code == 0 && ran.out.contains("nothing was stopped"),
            "{ran:?}"
        );
        assert!(!machine.unit().exists());
    }
}

#[tokio::test]
async fn a_service_that_does_not_stop_keeps_its_unit() {
    let machine = Machine::new();
    assert_eq!(machine.run(None, &[]).await.code, 0);
    machine.systemctl("case $2 in disable) echo 'Job failed' >&2; exit 1 ;; esac");
    let ran = machine.run(None, &["--remove"]).await;
    assert_eq!(ran.code, 5, "{ran:?}");
    assert!(
        ran.err.contains("Job failed") && machine.unit().is_file(),
        "{ran:?}"
    );
}
