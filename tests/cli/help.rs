//! Help, version and completions, which need no bus.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::scripted::{command, finish, run};

/// Every subcommand, including the hidden one.
const SUBCOMMANDS: &[&str] = &[
    "serve",
    "bus",
    "list",
    "get",
    "invoke",
    "run",
    "plan",
    "export",
    "reload",
    "stop",
    "resume",
    "approve",
    "deny",
    "cancel",
    "status",
    "check",
    "new",
    "doctor",
    "enable",
    "disable",
    "install-service",
    "config",
    "completions",
    "toolbox-host",
    "program-host",
];

#[tokio::test]
async fn every_help_shows_an_example_of_its_own_command() {
    for name in SUBCOMMANDS {
        let help = run(&[name, "--help"]).await;
        assert_eq!(help.code, 0, "{name}: {}", help.err);
        let (_, examples) = help
            .out
            .split_once("Examples:\n")
            .unwrap_or_else(|| panic!("{name} shows no examples: {}", help.out));
        assert!(
            examples.contains(&format!("ovos-tools {name}")),
            "{name}: {examples}"
        );
        assert!(
            help.out.contains("--bus <URL>"),
            "{name} lists the global options: {}",
            help.out
        );
    }
}

#[tokio::test]
async fn the_help_lists_all_subcommands_and_the_exit_codes() {
    let help = run(&["--help"]).await;
    assert_eq!(help.code, 0);
    for name in SUBCOMMANDS {
        let is_listed = help.out.contains(&format!("\n  {name} "));
        assert_eq!(is_listed, !name.ends_with("-host"), "{name}");
    }
    for code in 0..=5 {
        assert!(
            help.out.contains(&format!("\n  {code}  ")),
            "exit code {code}: {}",
            help.out
        );
    }
}

#[tokio::test]
async fn an_error_names_its_cause_once() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    for (arguments, code, cause) in [
        (vec!["list", "--bus", "foo"], 2, "expected an address"),
        (vec!["list", "--config", "/nowhere"], 2, "there is no such file"),
        (vec!["bus", "--port", &port], 5, "os error 98"),
    ] {
        let ran = run(&arguments).await;
        assert_eq!((ran.code, ran.err.matches(cause).count()), (code, 1), "{ran:?}");
    }
}

#[tokio::test]
async fn completions_know_the_subcommands() {
    for (shell, sign) in [
        ("bash", "complete -F"),
        ("zsh", "#compdef ovos-tools"),
        ("fish", "complete -c ovos-tools"),
    ] {
        let script = run(&["completions", shell]).await;
        assert_eq!(script.code, 0, "{shell}: {}", script.err);
        assert!(script.out.contains(sign), "{shell}: {}", script.out);
        for name in ["invoke", "resume", "completions"] {
            assert!(script.out.contains(name), "{shell} misses {name}");
        }
    }
}

#[tokio::test]
async fn wrong_arguments_are_told_before_anything_is_asked() {
    for (arguments, part) in [
        (&["fly"][..], "unrecognized subcommand 'fly'"),
        (&["get"], "<NAME>"),
        (
            &["list", "--timeout", "0"],
            "expected a number of seconds from 0.001 to 86400",
        ),
        (&["list", "--json", "--quiet"], "cannot be used with"),
        (
            &["plan", "x", "--format", "svg"],
            "[possible values: table, json, mermaid, dot]",
        ),
        (
            &["serve", "--embedded-bus", "maybe"],
            "[possible values: never, auto, always]",
        ),
        (
            &["invoke", "add", "5"],
            "argument \"5\": expected key=value, or one JSON object",
        ),
        (&["invoke", "add", "a=1", "a=2"], "argument \"a\" is given twice"),
        (&["plan", "add", "{a}"], "not a valid JSON object"),
        (&["invoke", "add", "--timeout-ms", "0"], "0 is not in 1.."),
        (&["list", "--bus", "http://x"], "--bus: URL: found \"http://x\""),
        (
            &["list", "--config", "/nowhere.conf"],
            "--config /nowhere.conf: there is no such file",
        ),
    ] {
        let ran = run(arguments).await;
        assert_eq!(ran.code, 2, "{arguments:?}: {ran:?}");
        assert!(ran.err.contains(part), "{arguments:?}: {}", ran.err);
        assert_eq!(ran.out, "", "{arguments:?}");
    }
}

#[tokio::test]
async fn the_configuration_names_its_files_and_hides_secrets() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("mine.conf");
    let text = r#"{"PHAL": {"ovos-phal-plugin-tools": {
        "service": {"max_calls": 7}, "drone": {"api_token": "hunter2"}}}}"#;
    std::fs::write(&file, text).unwrap();
    let path = file.to_str().unwrap();
    let ran = run(&["config", "--config", path]).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    let line = |key: &str| {
        ran.out
            .lines()
            .find(|line| line.contains(key))
            .unwrap_or_default()
            .to_owned()
    };
    assert!(
        line("max_calls").contains(" 7 ") && line("max_calls").contains(path),
        "{}",
        ran.out
    );
    assert!(line("max_failures").contains("default"), "{}", ran.out);
    assert!(line("api_token").contains("(hidden)"), "{}", ran.out);

    let ran = run(&["config", "--json", "--config", path]).await;
    let data: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let files = data["files"].as_array().unwrap();
    assert!(
        files.iter().any(|it| it["path"] == path && it["state"] == "read"),
        "{data}"
    );
    assert!(!ran.out.contains("hunter2"));
    let ran = run(&["config", "--json", "--show-secrets", "--config", path]).await;
    assert!(ran.out.contains("hunter2"), "{}", ran.out);
}

/// A program of a door is one that may be executed, in a whole folder of PATH: never one of the working directory.
#[tokio::test]
async fn a_door_is_looked_for_in_whole_folders_only() {
    for (folder, mode, code) in [(None, 0o755, 7), (Some("."), 0o755, 2), (None, 0o644, 2)] {
        let home = tempfile::tempdir().unwrap();
        let program = home.path().join("ovos-tools-another");
        std::fs::write(&program, "#!/bin/sh\nexit 7\n").unwrap();
        std::fs::set_permissions(&program, Permissions::from_mode(mode)).unwrap();
        let mut command = command(home.path(), &["another"]);
        command
            .current_dir(home.path())
            .env("PATH", folder.map_or(home.path(), Path::new));
        let ran = finish(command.spawn().unwrap()).await;
        assert_eq!(ran.code, code, "{folder:?} {mode:o}: {ran:?}");
    }
}
