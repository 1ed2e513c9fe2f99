//! The functions of the service that a toolbox uses, and the limits of a toolbox.

use std::sync::Arc;
use std::time::Duration;

use ovos_toolbox_wire::Event;
use serde_json::Value;

/// The copy of a toolbox that an event or a request comes from.
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
    /// The number of the question, unique in the process of the toolbox.
    pub id: u64,
    /// One of the manifest's `requests`.
    pub topic: String,
    /// The message's data.
    pub data: Value,
    /// How long the toolbox waits, from now.
    pub timeout: Duration,
}

/// The functions of the service that a toolbox uses.
///
/// The methods are called from any thread, including those of the toolbox, and must return at once: use `try_send` on
/// a bounded queue, and drop what does not fit.
pub trait HostServices: Send + Sync + 'static {
    /// Receives an event of the toolbox. The rate of events is limited already; `backend`, `latched` and
    /// `tools_changed` have a limit of their own, so that a flood of other events cannot displace them.
    fn event(&self, origin: &Origin, event: Event);

    /// Receives a question of the toolbox to the bus. Exactly one answer must be delivered with `deliver_response`,
    /// even if the time is up or the request cannot be sent.
    fn request(&self, origin: &Origin, request: Request);
}

/// The limits of one toolbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Largest result, plan or tool list, in bytes. Default 8 MiB.
    pub max_result_bytes: usize,
    /// How many starts and questions may wait for the toolbox's thread. Default 16384.
    pub max_queued: usize,
    /// How many bus messages may wait; beyond that the oldest is dropped. Default 64.
    pub max_messages: usize,
    /// How many requests may be under way. Default 64.
    pub max_requests: usize,
    /// How long `open` and `tools` may take. Default 10 s.
    pub open: Duration,
    /// How long `close` may take before the toolbox is abandoned. Default 10 s.
    pub close: Duration,
    /// How long `halt` may take before it counts as failed. Default 200 ms.
    pub halt: Duration,
    /// How long a toolbox's process and the service may be silent to each other while something moves or an answer is
    /// due. Default 500 ms.
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

/// How an instance is opened.
#[derive(Clone, Debug)]
pub struct Open {
    /// Which copy of the toolbox this is, counted from 1.
    pub generation: u64,
    /// The toolbox's section of the configuration: a JSON object.
    pub config: String,
    /// Starts that were planned under an older stop epoch never begin.
    pub stop_epoch: u64,
    /// The limits of the toolbox.
    pub limits: Limits,
}
