//! What carries orders to a toolbox. Read [`Lanes`].

use ovos_toolbox_wire::{Failure, Start};
use protocol::Order;

/// The two lanes to a toolbox. Every method is called from any thread and returns at once, whatever the toolbox and the other
/// lane do; notices come back through `Peer::hear`.
pub(crate) trait Lanes: Send + Sync + 'static {
    /// Sends the start of a run on the data lane.
    ///
    /// # Errors
    /// Why it cannot be sent.
    fn start(&self, run: u64, start: &Start, progress: bool) -> Result<(), Failure>;

    /// Starts sent so far, as far as an order on the control lane could overtake one.
    fn starts(&self) -> u64 {
        0
    }

    /// Whether so much waits on the data lane that nothing new should be begun.
    fn is_full(&self) -> bool {
        false
    }

    /// Sends an order on the data lane.
    ///
    /// # Errors
    /// Why it cannot be sent.
    fn data(&self, order: Order) -> Result<(), Failure>;

    /// As [`Lanes::data`], for what may be lost; false when it was.
    fn chatter(&self, order: Order) -> bool;

    /// Sends an order on the control lane.
    fn control(&self, order: Order);

    /// Sends now what [`Lanes::control`] keeps for a moment.
    fn hurry(&self) {}

    /// Has the toolbox closed.
    fn close(&self, seq: u64);

    /// An answer is waited for from now on.
    fn wait(&self) {}

    /// Whether a keeper ends a toolbox that does not halt or close in time. Where none does, only the waiting ends.
    fn is_kept(&self) -> bool {
        false
    }

    /// Whether the toolbox shares its process with no other: only such a one may move something.
    fn is_alone(&self) -> bool {
        true
    }

    /// The toolbox's process, where it does not run in this one.
    fn pid(&self) -> Option<u32> {
        None
    }
}
