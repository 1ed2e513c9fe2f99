//! What is known of the robots' connections.
//!
//! Owns the notice `backend`. The service keeps the last one of a toolbox: with several robots each notice names all of them.
//! Read [`Backends`].

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ovos_toolbox_sdk::prelude::*;

/// The last word about each robot, by name.
#[derive(Default)]
pub(crate) struct Backends(Mutex<BTreeMap<String, Backend>>);

struct Backend {
    state: String,
    reason: String,
}

impl Backends {
    /// A robot of the configuration. Says nothing yet.
    pub(crate) fn add(&self, robot: &str, simulated: bool) {
        let state = if simulated { "simulated" } else { "connecting" };
        drop(self.set(robot, state, ""));
    }

    /// Something is known of a robot: tells the service.
    pub(crate) fn tell(&self, host: &Host, robot: &str, state: &str, reason: &str) {
        // Held while it is told: of two notices the later one is told last.
        let all = self.set(robot, state, reason);
        if all.len() == 1 {
            return host.backend(state, &format!("{robot}: {reason}"));
        }
        let states = all.values().map(|backend| backend.state.as_str());
        let worst = states.max_by_key(|state| rank(state)).unwrap_or(state);
        let each = all.iter().map(|(robot, Backend { state, reason })| {
            let reason = if reason.is_empty() {
                String::new()
            } else {
                format!(": {reason}")
            };
            format!("{robot} ({state}){reason}")
        });
        host.backend(worst, &each.collect::<Vec<_>>().join(" | "));
    }

    fn set(&self, robot: &str, state: &str, reason: &str) -> MutexGuard<'_, BTreeMap<String, Backend>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let backend = Backend {
            state: state.to_owned(),
            reason: reason.to_owned(),
        };
        all.insert(robot.to_owned(), backend);
        all
    }
}

/// How much a state needs looking at.
fn rank(state: &str) -> u8 {
    match state {
        "simulated" => 0,
        "connected" => 1,
        "connecting" => 2,
        "degraded" => 3,
        _ => 4,
    }
}
