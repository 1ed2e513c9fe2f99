//! The program with which machines host and mount toolboxes.

use std::path::{Path, PathBuf};

use super::process::Sandbox;

/// The program that hosts and mounts.
pub(crate) fn program() -> PathBuf {
    let program = Path::new(env!("CARGO_BIN_EXE_ovos-tools")).with_file_name("ovos-tools-fabric");
    assert!(
        program.exists(),
        "no {}: cargo build --package ovos-tools-fabric",
        program.display()
    );
    program
}

/// Runs the program in a sandbox to its end; returns whether it succeeded, and what it said.
pub(crate) fn fabric(sandbox: &Sandbox, arguments: &[&str]) -> (bool, String) {
    let run = sandbox.command(program()).args(arguments).output().unwrap();
    let text = String::from_utf8([run.stdout, run.stderr].concat()).unwrap();
    (run.status.success(), text)
}

#[track_caller]
pub(crate) fn succeeds(sandbox: &Sandbox, arguments: &[&str]) -> String {
    let (success, text) = fabric(sandbox, arguments);
    assert!(success, "{arguments:?}: {text}");
    text
}
