//! Counts of the messages of a toolbox that were dropped, made on several threads. Read [`Counters`].

use parking_lot::Mutex;
use protocol::Counts;

#[derive(Debug, Default)]
pub(crate) struct Counters(Mutex<Counts>);

impl Counters {
    pub(crate) fn add(&self, which: fn(&mut Counts) -> &mut u64) {
        *which(&mut self.0.lock()) += 1;
    }

    pub(crate) fn read(&self) -> Counts {
        *self.0.lock()
    }
}
