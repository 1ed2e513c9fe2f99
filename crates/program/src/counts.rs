//! Counts of the messages of a toolbox that were dropped, made on several threads. Read [`Counters`].

use parking_lot::Mutex;
use protocol::Counts;

/// Counts dropped messages.
#[derive(Debug, Default)]
pub struct Counters(Mutex<Counts>);

impl Counters {
    /// Counts one more.
    pub fn add(&self, which: fn(&mut Counts) -> &mut u64) {
        *which(&mut self.0.lock()) += 1;
    }

    /// The counts so far.
    pub fn read(&self) -> Counts {
        *self.0.lock()
    }
}
