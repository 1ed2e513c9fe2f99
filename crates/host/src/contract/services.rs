//! What a toolbox's host needs from the service, and what it hands to it.

use std::sync::Arc;
use std::time::Duration;

use ovos_toolbox_wire::Event;
use serde_json::Value;

/// Which loaded copy of which toolbox speaks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Origin {
    /// The toolbox's id.
    pub toolbox_id: Arc<str>,
    /// Counted from 1 for each toolbox.
    pub generation: u64,
}

/// A question that a toolbox asks on the bus.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Names the question in this process; never used again.
    pub id: u64,
    /// One of the manifest's `requests`.
    pub topic: String,
    /// The message's data.
    pub data: Value,
    /// How long the toolbox waits, from now.
    pub timeout: Duration,
}

/// The service, as a toolbox sees it.
///
/// Every method is called from any thread, also from threads of the toolbox, and must return at once: hand over to a
/// bounded queue with `try_send` and drop what does not fit.
pub trait HostServices: Send + Sync + 'static {
    /// The toolbox reports something by itself. Floods are cut before they come here; `backend`, `latched` and
    /// `tools_changed` have a limit of their own, so that a flood of other kinds cannot hide them.
    fn event(&self, origin: &Origin, event: Event);

    /// The toolbox asks the bus. Exactly one answer has to come back through `deliver_response`, also when the time
    /// is up or the request cannot be sent.
    fn request(&self, origin: &Origin, request: Request);
}

/// Bounds of one toolbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Largest result, plan or tool list, in bytes. Default 8 MiB.
    pub max_result_bytes: usize,
    /// Starts and questions that may wait for the toolbox's thread. Default 16384.
    pub max_queued: usize,
    /// Bus messages that may wait; past it the oldest is dropped. Default 64.
    pub max_messages: usize,
    /// Requests under way. Default 64.
    pub max_requests: usize,
    /// How long `open` and `tools` may take. Default 10 s.
    pub open: Duration,
    /// How long `close` may take before the toolbox is abandoned. Default 10 s.
    pub close: Duration,
    /// How long `halt` may take before it counts as failed. Default 200 ms.
    pub halt: Duration,
    /// How long a toolbox's process and the service may hear nothing of each other while something moves or is asked.
    /// Default 500 ms.
    pub silence: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_result_bytes: 8 * 1024 * 1024,
            max_queued: 16 * 1024,
            max_messages: 64,
            max_requests: 64,
            open: Duration::from_secs(10),
            close: Duration::from_secs(10),
            halt: Duration::from_millis(200),
            silence: Duration::from_millis(500),
        }
    }
}
