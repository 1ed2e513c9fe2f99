//! Decides who may call which tools: the principal of a request, the rules, and the calls that wait to be confirmed.
//!
//! It opens nothing, and the time is an argument. Read [`decide`], then [`Confirmations`].

mod backends;
mod confirmations;
#[cfg(test)]
mod confirmations_tests;
mod principal;
mod rules;

use std::time::Duration;

use parking_lot::{Mutex, MutexGuard, RwLock};

pub use backends::Backends;
pub use config::{Caller, Decide, Rule};
pub use confirmations::{Answer, By, Confirmations, Hold, Subject, Told, Unknown, Waiting};
pub use principal::Principal;
pub use rules::{Decision, Place, Question, built_in, decide};

/// The rules in force, and the calls that wait to be confirmed.
#[derive(Debug)]
pub struct Policy {
    configured: RwLock<Vec<Rule>>,
    built_in: Vec<Rule>,
    confirmations: Mutex<Confirmations>,
}

impl Policy {
    /// Creates a policy with these rules before the built-in ones. A call waits to be confirmed for `confirm`.
    #[must_use]
    pub fn new(configured: Vec<Rule>, confirm: Duration) -> Self {
        Self {
            configured: RwLock::new(configured),
            built_in: built_in(),
            confirmations: Mutex::new(Confirmations::new(confirm)),
        }
    }

    /// Decides on a call.
    #[must_use]
    pub fn decide(&self, question: &Question<'_>) -> Decision {
        decide(&self.configured.read(), &self.built_in, question)
    }

    /// Replaces the configured rules, when a file that could not be read at the start is mended.
    pub fn replace(&self, configured: Vec<Rule>) {
        *self.configured.write() = configured;
    }

    /// The calls that wait.
    pub fn confirmations(&self) -> MutexGuard<'_, Confirmations> {
        self.confirmations.lock()
    }
}
