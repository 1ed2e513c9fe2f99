//! The program as a person meets it who starts it by hand, and the tools that it lists. What it does on a bus is tested in
//! `tests/programs/ovos.rs` of the service.

#![allow(clippy::unwrap_used, reason = "a failed test panics and prints")]

use std::path::Path;
use std::process::{Command, Stdio};

fn run(arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ovos-tools-ovos"));
    let run = command.args(arguments).stdin(Stdio::null()).output().unwrap();
    let output = [run.stdout, run.stderr].concat();
    (run.status.code(), String::from_utf8(output).unwrap())
}

#[test]
fn by_hand_it_says_what_it_is_for() {
    for (arguments, code, expected) in [
        (&["--help"][..], 0, "service.programs"),
        (&["--version"], 0, env!("CARGO_PKG_VERSION")),
        (&["--no-such-option"], 2, "not meant to be run by hand"),
    ] {
        let (status, output) = run(arguments);
        assert_eq!(status, Some(code), "{arguments:?}: {output}");
        assert!(output.contains(expected), "{arguments:?}: {output}");
    }
}

#[test]
fn committed_tools_are_what_the_toolbox_lists() {
    let (_, listed) = run(&["--tools"]);
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas/toolboxes/ovos.json");
    if std::env::var_os("UPDATE_SCHEMAS").is_some() {
        std::fs::write(&file, &listed).unwrap();
    }
    assert_eq!(
        std::fs::read_to_string(&file).unwrap_or_default(),
        listed,
        "run this test with UPDATE_SCHEMAS=1 and look at the difference, which is what models are told"
    );
}
