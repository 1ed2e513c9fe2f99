//! The service's status of a toolbox's process, and signals to it.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::client::Client;
use super::process::DEADLINE;

/// The service's status of a toolbox; null if it has none with this id.
#[track_caller]
pub(crate) fn toolbox(client: &mut Client, id: &str) -> Value {
    let status = client.ask("ovos.tools.status", &json!({}));
    let toolboxes = status["toolboxes"].as_array().expect("a list of toolboxes");
    let found = toolboxes.iter().find(|toolbox| toolbox["toolbox_id"] == id);
    found.cloned().unwrap_or_default()
}

/// Asks until the status of a toolbox fits.
#[track_caller]
pub(crate) fn toolbox_until(
    client: &mut Client,
    id: &str,
    what: &str,
    fits: impl Fn(&Value) -> bool,
) -> Value {
    let end = Instant::now() + DEADLINE;
    loop {
        let found = toolbox(client, id);
        if fits(&found) {
            return found;
        }
        assert!(Instant::now() < end, "{id}: no {what}: {found}");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

/// The process of a toolbox, if it has one.
pub(crate) fn pid(toolbox: &Value) -> Option<Pid> {
    let pid = toolbox["pid"].as_i64()?;
    Pid::from_raw(pid.try_into().ok()?)
}

/// Sends a signal to a toolbox's process, if it still has one.
pub(crate) fn signal(toolbox: &Value, signal: Signal) {
    if let Some(pid) = pid(toolbox) {
        // It may have ended by now, as the signal intends.
        _ = kill_process(pid, signal);
    }
}
