//! What a client hands its frames to.

use tungstenite::Utf8Bytes;

/// Callbacks of the client. They run on the task that reads or writes the connection and delay everything behind
/// them: they must not block, and `frame` must be cheap (inspect the type, pass the frame on).
pub trait BusHandler: Send + Sync + 'static {
    /// A text frame arrived. The bus relays to all clients, so this includes the frames sent by this client.
    fn frame(&self, text: Utf8Bytes);
    /// The connection is established.
    fn connected(&self);
    /// The connection is lost. No frame arrives until [`connected`](Self::connected) is called again.
    fn disconnected(&self, reason: &str);
    /// Returns a frame to send in place of an answer that cannot be sent: same topic and context, with `reason` as
    /// the error. None if `answer` is not an answer.
    fn instead(&self, answer: &str, reason: &str) -> Option<String>;
}
