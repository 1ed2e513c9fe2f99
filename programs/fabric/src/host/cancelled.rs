//! Runs that were asked to end, so that one whose start comes after its cancel does not begin. Read [`Cancelled::note`].

use std::collections::{HashMap, VecDeque};

/// How many runs of one machine are remembered: many more than it starts within the age that a start may have.
const REMEMBERED: usize = 1024;

/// The ids of their calls, by the machine that asked. One machine crowds out its own alone.
#[derive(Debug, Default)]
pub(super) struct Cancelled(HashMap<String, VecDeque<String>>);

impl Cancelled {
    /// Remembers that a run was asked to end.
    pub(super) fn note(&mut self, peer: &str, call_id: &str) {
        if self.has(peer, call_id) {
            return;
        }
        let own = self.0.entry(peer.to_owned()).or_default();
        if own.len() == REMEMBERED {
            own.pop_front();
        }
        own.push_back(call_id.to_owned());
    }

    pub(super) fn has(&self, peer: &str, call_id: &str) -> bool {
        let own = self.0.get(peer);
        own.is_some_and(|own| own.iter().any(|known| known == call_id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cancel_is_remembered_whoever_else_cancels() {
        let mut cancelled = Cancelled::default();
        cancelled.note("laptop", "laptop/m:1");
        for run in 0..2 * REMEMBERED {
            cancelled.note("tablet", &format!("tablet/m:{run}"));
        }
        assert!(cancelled.has("laptop", "laptop/m:1"));
        assert!(
            !cancelled.has("tablet", "laptop/m:1"),
            "it says nothing of another's"
        );
        assert!(!cancelled.has("tablet", "tablet/m:0"), "bounded");
        assert!(cancelled.has("tablet", &format!("tablet/m:{}", 2 * REMEMBERED - 1)));
    }
}
