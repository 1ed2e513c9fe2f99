//! What the program says without a bus. What it does with one is tested in `tests/doors/mcp` of the service.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::net::TcpListener;
use std::process::{Command, Stdio};

/// Runs the door in a home of its own; returns its exit code, stdout and stderr.
fn run(arguments: &[&str]) -> (Option<i32>, String, String) {
    let home = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_ovos-tools-mcp"));
    command.args(arguments).env_clear().env("HOME", home.path());
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn its_help_is_that_of_a_subcommand() {
    let (code, out, _) = run(&["--help"]);
    assert_eq!(code, Some(0));
    for part in [
        "Usage: ovos-tools mcp",
        "--http <ADDRESS>",
        "--bus <URL>",
        "docs/mcp.md",
    ] {
        assert!(out.contains(part), "no {part:?} in {out}");
    }
}

#[test]
fn what_is_wrong_goes_to_stderr_and_into_the_exit_code() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let nowhere = format!("ws://{free}/core");
    for (arguments, code, part) in [
        (&["--http", "here"][..], 2, "invalid value 'here'"),
        (&["--bus", "foo"], 2, "expected an address"),
        (&["--config", "/nowhere"], 2, "there is no such file"),
        // It waits for a bus until its client leaves.
        (&["--bus", &nowhere], 0, "no bus yet"),
    ] {
        let (found, out, err) = run(arguments);
        assert_eq!((found, out.as_str()), (Some(code), ""), "{arguments:?}: {err}");
        assert!(err.contains(part), "{arguments:?}: no {part:?} in {err}");
    }
}
