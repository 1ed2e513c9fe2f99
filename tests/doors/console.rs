//! The console: the history that it keeps, and its page.

mod history;
mod kills;
mod page;

use std::process::Command;
use std::time::Instant;

use serde_json::Value;

use crate::support::process::DEADLINE;
use crate::support::scene::Scene;

/// What `ovos-tools history` with these arguments says: its exit code, stdout and stderr.
fn history(scene: &Scene, arguments: &[&str]) -> (i32, String, String) {
    let mut command: Command = scene.sandbox.command(env!("CARGO_BIN_EXE_ovos-tools"));
    let out = command.arg("history").args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (out.status.code().unwrap(), text(out.stdout), text(out.stderr))
}

/// The lines of JSON that it prints.
#[track_caller]
fn lines(scene: &Scene, arguments: &[&str]) -> Vec<Value> {
    let (code, output, wrong) = history(scene, arguments);
    assert_eq!(code, 0, "{wrong}");
    output
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Waits until what it prints fits.
#[track_caller]
fn until(scene: &Scene, arguments: &[&str], what: &str, fits: impl Fn(&str) -> bool) -> String {
    let end = Instant::now() + DEADLINE;
    loop {
        let (_, output, wrong) = history(scene, arguments);
        if fits(&output) {
            return output;
        }
        assert!(Instant::now() < end, "no {what}: {output}{wrong}");
        std::thread::park_timeout(std::time::Duration::from_millis(20));
    }
}
