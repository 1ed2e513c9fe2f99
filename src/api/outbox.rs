//! Where answers go.

use futures_util::future::BoxFuture;

/// The destination of frames. The service implements it with the bus client.
pub trait Outbox: Send + Sync + 'static {
    /// Sends an answer. It waits for room in the queue and survives a loss of the bus.
    fn answer(&self, frame: String) -> BoxFuture<'_, ()>;
    /// As [`answer`](Self::answer), for a short answer that must not wait for others: the answer to a stop.
    fn answer_urgent(&self, frame: String) -> BoxFuture<'_, ()>;
    /// Sends a message that is useless later: it is dropped if the queue is full or the bus is away.
    fn notify(&self, frame: String);
}
