//! Decides who may call which tools: the principal of a request, the rules, and the calls that wait to be confirmed.
//!
//! It opens nothing, and the time is an argument. Read [`decide`], then [`Confirmations`].

mod confirmations;
#[cfg(test)]
mod confirmations_tests;

use std::time::Duration;

use parking_lot::{Mutex, MutexGuard, RwLock};

pub use config::{
    Asker, Backends, Caller, Decide, Decision, Principal, Question, Rule, RuleNumber, built_in, decide,
};
pub use confirmations::{Answer, By, CallDescription, Confirmations, Hold, PendingCall, Subject, Unknown};

/// The rules in force, and the calls that wait to be confirmed.
#[derive(Debug)]
pub struct Policy {
    configured: RwLock<Vec<Rule>>,
    built_in: Vec<Rule>,
    confirmations: Mutex<Confirmations>,
}

impl Policy {
    /// Creates a policy with these rules before the built-in ones, which depend on `operator_tools`. A call waits to be confirmed for
    /// `confirm`.
    #[must_use]
    pub fn new(configured: Vec<Rule>, operator_tools: bool, confirm: Duration) -> Self {
        Self {
            configured: RwLock::new(configured),
            built_in: built_in(operator_tools),
            confirmations: Mutex::new(Confirmations::new(confirm)),
        }
    }

    /// Decides on a call of an asker: the strictest decision for one of its principals, and that principal. `question` is asked
    /// for each of them.
    #[must_use]
    pub fn decide<'a>(
        &self,
        asker: &'a Asker,
        question: impl Fn(&'a Principal) -> Question<'a>,
    ) -> (Decision, &'a Principal) {
        let configured = self.configured.read();
        let decided = |principal| {
            let decision = decide(&configured, &self.built_in, &question(principal));
            (decision, principal)
        };
        let others = asker.on_behalf().iter().map(decided);
        others.fold(decided(asker.principal()), |strictest, other| {
            if other.0.decide > strictest.0.decide {
                other
            } else {
                strictest
            }
        })
    }

    /// Replaces the configured rules; false if they are those in force. Calls that wait are decided on anew when they come again.
    pub fn replace(&self, configured: &[Rule]) -> bool {
        let mut in_force = self.configured.write();
        let differ = *in_force != configured;
        if differ {
            *in_force = configured.to_vec();
        }
        differ
    }

    /// The calls that wait.
    pub fn confirmations(&self) -> MutexGuard<'_, Confirmations> {
        self.confirmations.lock()
    }
}
