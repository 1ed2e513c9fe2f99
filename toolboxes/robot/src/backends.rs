//! What is known of the robots' connections.
//!
//! Owns the notice `backend`. The service keeps the last one of a toolbox: with several robots each notice names all of
//! them, and its state is the worst. Read [`Backends`].

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use ovos_toolbox_sdk::prelude::*;

use crate::adapter::BackendState;

/// The last state of each robot and its reason, by the robot's name.
#[derive(Default)]
pub(crate) struct Backends(Mutex<BTreeMap<String, (BackendState, String)>>);

impl Backends {
    /// Knows a robot of the configuration. Tells the service nothing yet.
    pub(crate) fn add(&self, robot: &str, state: BackendState) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(robot.to_owned(), (state, String::new()));
    }

    /// Tells the service that nothing here moves a real machine, if that is so.
    pub(crate) fn tell_simulated(&self, host: &Host) {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.values().all(|(state, _)| *state == BackendState::Simulated) {
            host.simulator("");
        }
    }

    /// Tells the service that the state of a robot is now this one.
    pub(crate) fn tell(&self, host: &Host, robot: &str, state: BackendState, reason: &str) {
        // The lock is held while the service is told: of two notices the later one arrives last.
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(robot.to_owned(), (state, reason.to_owned()));
        if all.len() == 1 {
            return host.backend(state.as_str(), &format!("{robot}: {reason}"));
        }
        let worst = all.values().map(|(state, _)| *state).max().unwrap_or(state);
        let each = all.iter().map(|(robot, (state, reason))| {
            let colon = if reason.is_empty() { "" } else { ": " };
            format!("{robot} ({}){colon}{reason}", state.as_str())
        });
        host.backend(worst.as_str(), &each.collect::<Vec<_>>().join(" | "));
    }
}
