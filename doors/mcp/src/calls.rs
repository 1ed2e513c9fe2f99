//! The calls of this door that are under way.

use std::collections::BTreeMap;

use client::{Client, ClientError};
use parking_lot::Mutex;
use tokio::sync::watch;

/// The calls under way, by call_id.
pub(crate) struct Calls {
    running: Mutex<BTreeMap<String, String>>,
    count: watch::Sender<usize>,
}

/// A call under way. Dropped before it has its answer, it asks the service to end the call.
pub(crate) struct Running<'a> {
    calls: &'a Calls,
    client: &'a Client,
    call_id: String,
    answered: bool,
}

impl Calls {
    pub(crate) fn new() -> Self {
        Self {
            running: Mutex::default(),
            count: watch::Sender::new(0),
        }
    }

    pub(crate) fn enter<'a>(&'a self, client: &'a Client, call_id: &str, tool: &str) -> Running<'a> {
        self.running.lock().insert(call_id.to_owned(), tool.to_owned());
        self.count.send_modify(|count| *count += 1);
        Running {
            calls: self,
            client,
            call_id: call_id.to_owned(),
            answered: false,
        }
    }

    /// Their call_ids.
    pub(crate) fn names(&self) -> Vec<String> {
        self.running.lock().keys().cloned().collect()
    }

    /// The tool of a call; the call_id where it has ended.
    pub(crate) fn tool_of(&self, call_id: &str) -> String {
        let running = self.running.lock();
        running
            .get(call_id)
            .map_or_else(|| call_id.to_owned(), Clone::clone)
    }

    /// Waits for the end of these calls.
    ///
    /// # Cancel safety
    /// Safe.
    pub(crate) async fn all_ended(&self, calls: &[String]) {
        let gone = |_: &usize| {
            let running = self.running.lock();
            !calls.iter().any(|call| running.contains_key(call))
        };
        // The sender is a field: it does not go away.
        _ = self.count.subscribe().wait_for(gone).await;
    }

    /// Waits until no call is under way.
    ///
    /// # Cancel safety
    /// Safe.
    pub(crate) async fn none_left(&self) {
        _ = self.count.subscribe().wait_for(|count| *count == 0).await;
    }
}

impl Running<'_> {
    /// The service has answered: there is nothing left to end.
    pub(crate) fn answered(&mut self) {
        self.answered = true;
    }

    /// Asks the service to end the call.
    pub(crate) fn cancel(&self) -> Result<(), ClientError> {
        self.client.cancel_unheard(&self.call_id)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if !self.answered
            && let Err(error) = self.cancel()
        {
            tracing::warn!(call_id = self.call_id, %error, "a call may go on");
        }
        self.calls.running.lock().remove(&self.call_id);
        self.calls.count.send_modify(|count| *count -= 1);
    }
}
