//! The program as a person meets it who starts it by hand. What it does between machines is tested in `tests/programs/fabric.rs` of the
//! service.

#![allow(clippy::unwrap_used, reason = "a failed test panics and prints")]

use std::process::{Command, Stdio};

#[test]
fn by_hand_it_says_what_it_is_for() {
    for (arguments, code, expected) in [
        (&["--help"][..], 0, "docs/several-machines.md"),
        (&["--version"], 0, env!("CARGO_PKG_VERSION")),
        (&["--no-such-option"], 2, "--no-such-option"),
        (&["init", "Not A Name"], 1, "is not a name of a machine"),
        (&["mount", "robot1", "arm"], 2, "--at"),
        (&["mount", "robot1", "arm", "--at", "x", "--safe-stop"], 0, ""),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ovos-tools-fabric"));
        let run = command.args(arguments).stdin(Stdio::null()).output().unwrap();
        let output = String::from_utf8([run.stdout, run.stderr].concat()).unwrap();
        assert_eq!(run.status.code(), Some(code), "{arguments:?}: {output}");
        assert!(output.contains(expected), "{arguments:?}: {output}");
    }
}
