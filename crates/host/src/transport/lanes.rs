//! The interface that carries orders to a toolbox. Read [`Lanes`].

use ovos_toolbox_wire::{Failure, Start};
use protocol::Order;

/// The two lanes to a toolbox. Every method is called from any thread and returns at once, whatever the toolbox and the other
/// lane do; notices come back through `Peer::hear`.
pub(crate) trait Lanes: Send + Sync + 'static {
    /// Sends the start of a run on the data lane.
    ///
    /// # Errors
    /// The order cannot be sent.
    fn start(&self, run: u64, start: &Start, progress: bool) -> Result<(), Failure>;

    /// The number of starts that were sent so far: an order on the control lane may overtake them, and says how many it knows.
    fn starts(&self) -> u64;

    /// Whether so many bytes wait on the data lane that nothing new should be begun.
    fn is_full(&self) -> bool {
        false
    }

    /// Sends an order on the data lane.
    ///
    /// # Errors
    /// The order cannot be sent.
    fn data(&self, order: Order) -> Result<(), Failure>;

    /// As [`Lanes::data`], for an order that may be lost; false if it was.
    fn chatter(&self, order: Order) -> bool;

    /// Sends an order on the control lane.
    fn control(&self, order: Order);

    /// Sends the order to close the toolbox.
    fn close(&self, seq: u64);

    /// Called when a caller begins to wait for an answer.
    fn wait(&self) {}

    /// Whether a keeper ends a toolbox that does not halt or close in time. Without a keeper, only the wait of the
    /// caller ends.
    fn is_kept(&self) -> bool {
        false
    }

    /// Whether the toolbox shares its process with no other. Only such a toolbox may move something.
    fn is_alone(&self) -> bool {
        true
    }

    /// The id of the toolbox's process.
    fn pid(&self) -> u32;
}
