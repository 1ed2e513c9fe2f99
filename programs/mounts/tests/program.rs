//! The program as a person meets it who starts it by hand.

#![allow(clippy::unwrap_used, reason = "a failed test panics and prints")]

use std::process::{Command, Output, Stdio};

fn run(arguments: &[&str]) -> (Option<i32>, String) {
    let program = env!("CARGO_BIN_EXE_ovos-tools-mounts");
    let Output {
        status,
        stdout,
        stderr,
    } = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let output = [stdout, stderr].concat();
    (status.code(), String::from_utf8(output).unwrap())
}

#[test]
fn by_hand_it_says_what_it_is_for() {
    for (arguments, code, expected) in [
        (&["--help"][..], 0, "service.mounts"),
        (&["--version"], 0, env!("CARGO_PKG_VERSION")),
        (&[], 2, "ovos-tools starts this program"),
        (&["--alone", "No Id"], 2, "ovos-tools starts this program"),
        (&["--alone", "fake"], 70, "descriptors 3 and 4 must be sockets"),
        (&["--alone", "fake", "--safe-stop"], 0, ""),
        (
            &["--keep", "1", "--", "/bin/true"],
            127,
            "the program that started this one is gone",
        ),
    ] {
        let (status, output) = run(arguments);
        assert_eq!(status, Some(code), "{arguments:?}: {output}");
        assert!(output.contains(expected), "{arguments:?}: {output}");
    }
}
