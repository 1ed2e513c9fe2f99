//! What the program says without a bus. What it does with one is tested in `tests/doors/agent` of the service.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs the agent with this home; returns its exit code, stdout and stderr.
fn run(home: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ovos-tools-agent"));
    command.args(arguments).env_clear().env("HOME", home);
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn its_help_is_that_of_a_subcommand_and_names_every_end() {
    let home = tempfile::tempdir().unwrap();
    let (code, out, _) = run(home.path(), &["--help"]);
    assert_eq!(code, Some(0));
    for part in [
        "Usage: ovos-tools agent",
        "--goal <TEXT>",
        "--dry-run",
        "--replay <FILE>",
        "Stops are still real",
    ] {
        assert!(out.contains(part), "no {part:?} in {out}");
    }
    assert!(out.contains("docs/agent.md"), "{out}");
}

#[test]
fn what_is_wrong_goes_to_stderr_and_into_the_exit_code() {
    let home = tempfile::tempdir().unwrap();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let nowhere = format!("ws://{free}/core");
    let wrong = home.path().join("wrong.conf");
    let agent =
        r#"{"PHAL": {"ovos-phal-plugin-tools": {"service": {"doors": {"agent": {"key_env": "sk-1"}}}}}}"#;
    fs::write(&wrong, agent).unwrap();
    for (arguments, code, part) in [
        (&[][..], 2, "--goal <TEXT>"),
        (&["--goal", "x", "--serve"], 2, "cannot be used with"),
        (&["--goal", "x", "--max-steps", "many"], 2, "invalid value 'many'"),
        (
            &["--goal", "x", "--config", "/nowhere"],
            2,
            "there is no such file",
        ),
        (
            &["--goal", "x", "--config", wrong.to_str().unwrap()],
            2,
            "expected the name of an environment variable",
        ),
        (
            &["--goal", "x", "--bus", &nowhere],
            3,
            "run `ovos-tools serve --embedded-bus auto`",
        ),
    ] {
        let (found, out, err) = run(home.path(), arguments);
        assert_eq!(found, Some(code), "{arguments:?}: {err}");
        assert!(err.contains(part), "{arguments:?}: no {part:?} in {err}");
        assert!(out.is_empty(), "{out}");
    }
}

#[test]
fn a_limit_is_a_number() {
    let home = tempfile::tempdir().unwrap();
    for option in ["--max-rotation-deg", "--max-forward-m", "--min-battery-pct"] {
        for wrong in ["nan", "inf", "-1"] {
            let arguments = ["--goal", "x", &format!("{option}={wrong}")];
            let (code, _, err) = run(home.path(), &arguments);
            assert_eq!(code, Some(2), "{arguments:?}: {err}");
            assert!(err.contains("expected a number of 0 or more"), "{err}");
        }
    }
}
