//! What a toolbox in a process of its own cannot do to anything else, over a real bus, again and again.
//!
//! The short version is part of every test run; `CRASHES=200 MOMENTS=50 cargo test --test isolation_proofs` is the long one
//! (`make proofs`), which takes about half an hour.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test that cannot go on fails"
)]

#[path = "../support/client.rs"]
#[allow(dead_code, reason = "each test program uses its part")]
mod client;
mod crashes;
#[path = "../support/fixture.rs"]
mod fixture;
mod moments;
#[path = "../support/process.rs"]
#[allow(dead_code, reason = "each test program uses its part")]
mod process;
#[path = "../support/python.rs"]
#[allow(dead_code, reason = "each test program uses its part")]
mod python;
#[path = "../support/scene.rs"]
#[allow(dead_code, reason = "each test program uses its part")]
mod scene;
#[path = "../support/service.rs"]
#[allow(dead_code, reason = "each test program uses its part")]
mod service;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

const ISOLATION: ovos_tools::plugin::Isolation = ovos_tools::plugin::Isolation::Process;

/// The seed of everything that is drawn.
const SEED: u64 = 0x000b_0550_0106;

/// A number from the environment, for the long version.
fn number(variable: &str, usually: u64) -> u64 {
    std::env::var(variable).map_or(usually, |number| number.parse().unwrap())
}

/// What the service says of a toolbox.
#[track_caller]
fn toolbox(client: &mut client::Client, id: &str) -> Value {
    let status = client.ask("ovos.tools.status", &json!({}));
    let toolboxes = status["toolboxes"].as_array().expect("a list of toolboxes");
    let found = toolboxes.iter().find(|toolbox| toolbox["toolbox_id"] == id);
    found.cloned().unwrap_or_default()
}

/// Asks until a toolbox is as it should be.
#[track_caller]
fn toolbox_until(client: &mut client::Client, id: &str, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
    let end = std::time::Instant::now() + process::DEADLINE;
    loop {
        let found = toolbox(client, id);
        if fits(&found) {
            return found;
        }
        assert!(std::time::Instant::now() < end, "{id}: no {what}: {found}");
        std::thread::park_timeout(std::time::Duration::from_millis(5));
    }
}

/// Sends a signal to a toolbox's process, if it still has one.
fn signal(toolbox: &Value, signal: Signal) {
    let pid = toolbox["pid"]
        .as_i64()
        .and_then(|pid| Pid::from_raw(pid.try_into().ok()?));
    if let Some(pid) = pid {
        // It may be gone by now, which is what the signal is for.
        _ = kill_process(pid, signal);
    }
}
