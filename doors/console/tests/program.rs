//! What the program says without a bus. What it does with one is tested in `tests/doors/console` of the service.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::process::{Command, Stdio};

/// Runs the console in a home of its own; returns its exit code, stdout and stderr.
fn run(arguments: &[&str]) -> (Option<i32>, String, String) {
    let home = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_ovos-tools-console"));
    command.args(arguments).env_clear().env("HOME", home.path());
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn its_help_is_that_of_a_subcommand() {
    let (code, out, _) = run(&["--help"]);
    assert_eq!(code, Some(0));
    for part in ["Usage: ovos-tools console", "history", "--bus <URL>"] {
        assert!(out.contains(part), "no {part:?} in {out}");
    }
}

#[test]
fn what_is_wrong_goes_to_stderr_and_into_the_exit_code() {
    for (arguments, code, part) in [
        (&["--config", "/nowhere"][..], 2, "there is no such file"),
        (&["history", "--since", "soon"], 2, "expected a time such as 90s"),
        (&["history", "--limit=-1"], 2, "invalid value '-1'"),
        (&["history"], 5, "there is no history yet"),
    ] {
        let (found, out, err) = run(arguments);
        assert_eq!((found, out.as_str()), (Some(code), ""), "{arguments:?}: {err}");
        assert!(err.contains(part), "{arguments:?}: no {part:?} in {err}");
    }
}
