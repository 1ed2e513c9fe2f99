//! A request that has been read.

use std::sync::Arc;
use std::time::Instant;

use ovos_toolbox_wire::Object;

use super::keys::is_call_id;
use bus::Message;
use client::topic;

/// A parsed request.
#[derive(Debug)]
pub struct Request {
    /// Its type and context; its data is moved out.
    pub head: Message,
    /// Its payload.
    pub data: Arc<Object>,
    /// When it was read.
    pub received: Instant,
    /// The step of a run, if the request is one.
    pub(super) step: Option<InRun>,
    /// Whether its answer goes before others.
    pub(super) urgent: bool,
}

/// A step of a run. Its progress is reported as progress of the run.
#[derive(Clone, Debug)]
pub(super) struct InRun {
    /// The call_id of the run.
    pub(super) run_id: String,
    /// The id of the step.
    pub(super) id: String,
    /// When the request of the run was read.
    pub(super) received: Instant,
    /// Whether it takes values from the results of other steps.
    pub(super) takes_values: bool,
}

impl Request {
    /// Creates a request of this type and context.
    #[must_use]
    pub fn new(head: Message, data: Object, received: Instant) -> Self {
        Self {
            head,
            data: Arc::new(data),
            received,
            step: None,
            urgent: false,
        }
    }

    /// Creates a request for a stop, whose answer must not wait for others.
    #[must_use]
    pub fn of_stop(head: Message, data: Object, received: Instant) -> Self {
        Self {
            urgent: true,
            ..Self::new(head, data, received)
        }
    }

    /// The `call_id` to put into the answer. The answer to a cancel has the id of the call that it cancels under that key anyway.
    pub(super) fn call_id(&self) -> Option<&str> {
        let cancels = self.head.kind == topic::CANCEL.name();
        self.data
            .get("call_id")
            .and_then(serde_json::Value::as_str)
            .filter(|id| !cancels && is_call_id(id))
    }
}
