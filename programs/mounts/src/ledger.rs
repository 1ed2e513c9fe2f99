//! Decides which starts never begin: those whose cancel arrived before them, and those planned before an emergency stop. Pure.

use std::collections::BTreeMap;

/// The starts, cancels and stops that a program has to remember (`docs/protocol.md`, rules 1 and 2).
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// The number of starts received.
    starts: u64,
    /// The runs whose cancel arrived before their start, and how many starts were sent before that cancel.
    cancelled: BTreeMap<u64, u64>,
    /// The number of the newest emergency stop.
    epoch: u64,
}

impl Ledger {
    /// Counts a start. Returns `false` if its cancel arrived before it.
    pub(crate) fn begins(&mut self, run: u64) -> bool {
        self.starts += 1;
        let overtaken = self.cancelled.remove(&run).is_some();
        let starts = self.starts;
        self.cancelled.retain(|_, sent| *sent > starts);
        !overtaken
    }

    /// Records a cancel of a run that is not under way.
    pub(crate) fn cancelled(&mut self, run: u64, starts: u64) {
        if starts > self.starts {
            self.cancelled.insert(run, starts);
        }
    }

    /// Records an emergency stop.
    pub(crate) fn stopped(&mut self, epoch: u64) {
        self.epoch = self.epoch.max(epoch);
    }

    /// Whether a start was planned before the newest emergency stop.
    pub(crate) fn is_stale(&self, epoch: u64) -> bool {
        epoch < self.epoch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cancel_that_overtook_its_start_holds_and_is_forgotten() {
        let mut ledger = Ledger::default();
        assert!(ledger.begins(1));
        ledger.cancelled(1, 1);
        ledger.cancelled(3, 3);
        assert!(ledger.begins(2));
        assert!(!ledger.begins(3), "its cancel was faster");
        assert!(ledger.cancelled.is_empty());
        ledger.cancelled(9, 5);
        assert!(ledger.begins(4) && ledger.begins(5));
        assert!(ledger.cancelled.is_empty(), "as many starts have come as it said");
    }

    #[test]
    fn the_largest_epoch_counts() {
        let mut ledger = Ledger::default();
        ledger.stopped(3);
        ledger.stopped(2);
        assert!(ledger.is_stale(2) && !ledger.is_stale(3));
    }
}
