//! What is known of the robots' connections.
//!
//! Owns the notice `backend`. The service keeps the last one of a toolbox: with several robots each notice names all of
//! them, and its state is the worst. Read [`Backends`].

use std::collections::BTreeMap;

use ovos_toolbox_sdk::prelude::*;
use parking_lot::Mutex;

use crate::adapter::BackendState;

/// What is known of the robots.
#[derive(Default)]
pub(crate) struct Backends(Mutex<States>);

#[derive(Default)]
struct States {
    /// The last state of each robot and its reason, by the robot's name.
    robots: BTreeMap<String, (BackendState, String)>,
    /// The files of robots that cannot be used, and why.
    left_out: Vec<String>,
}

impl States {
    /// A reason, with the files that were left out.
    fn with_left_out(&self, reason: &str) -> String {
        let left_out = self.left_out.iter().map(|why| format!("left out: {why}"));
        let all: Vec<String> = [reason.to_owned()]
            .into_iter()
            .filter(|said| !said.is_empty())
            .chain(left_out)
            .collect();
        all.join(" | ")
    }
}

impl Backends {
    /// Knows a robot of the configuration. Tells the service nothing yet.
    pub(crate) fn add(&self, robot: &str, state: BackendState) {
        let mut all = self.0.lock();
        all.robots.insert(robot.to_owned(), (state, String::new()));
    }

    /// Knows a file that cannot be used: its robot is not there. Tells the service nothing yet.
    pub(crate) fn left_out(&self, why: String) {
        let mut all = self.0.lock();
        all.left_out.push(why);
    }

    /// Tells the service that nothing here moves a real machine, if that is so.
    pub(crate) fn tell_simulated(&self, host: &Host) {
        let all = self.0.lock();
        if all
            .robots
            .values()
            .all(|(state, _)| *state == BackendState::Simulated)
        {
            host.simulator(&all.with_left_out(""));
        }
    }

    /// Tells the service that the state of a robot is now this one.
    pub(crate) fn tell(&self, host: &Host, robot: &str, state: BackendState, reason: &str) {
        // The lock is held while the service is told: of two notices the later one arrives last.
        let mut all = self.0.lock();
        all.robots.insert(robot.to_owned(), (state, reason.to_owned()));
        if all.robots.len() == 1 {
            let reason = all.with_left_out(&format!("{robot}: {reason}"));
            return host.backend(state.as_str(), &reason);
        }
        let worst = all
            .robots
            .values()
            .map(|(state, _)| *state)
            .max()
            .unwrap_or(state);
        let each = all.robots.iter().map(|(robot, (state, reason))| {
            let colon = if reason.is_empty() { "" } else { ": " };
            format!("{robot} ({}){colon}{reason}", state.as_str())
        });
        let each = each.collect::<Vec<_>>().join(" | ");
        host.backend(worst.as_str(), &all.with_left_out(&each));
    }
}
