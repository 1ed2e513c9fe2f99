//! The calls of this door that are under way.

use std::collections::BTreeMap;

use client::{Client, ClientError};
use tokio::sync::watch;

/// The calls under way: the tool of each, by call_id.
#[derive(Debug)]
pub struct Calls(watch::Sender<BTreeMap<String, String>>);

/// A call under way. If it is dropped before it has its answer, it asks the service to end the call.
pub(crate) struct Running<'a> {
    calls: &'a Calls,
    client: &'a Client,
    call_id: String,
    answered: bool,
}

impl Calls {
    pub(crate) fn new() -> Self {
        Self(watch::Sender::default())
    }

    pub(crate) fn enter<'a>(&'a self, client: &'a Client, call_id: &str, tool: &str) -> Running<'a> {
        self.0
            .send_modify(|running| _ = running.insert(call_id.to_owned(), tool.to_owned()));
        Running {
            calls: self,
            client,
            call_id: call_id.to_owned(),
            answered: false,
        }
    }

    /// The call_ids of the calls under way.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.0.borrow().keys().cloned().collect()
    }

    /// The tool of a call, or the call_id if the call has ended.
    #[must_use]
    pub fn tool_of(&self, call_id: &str) -> String {
        let tool = self.0.borrow().get(call_id).cloned();
        tool.unwrap_or_else(|| call_id.to_owned())
    }

    /// Waits for the end of these calls.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn all_ended(&self, calls: &[String]) {
        let gone = |running: &BTreeMap<_, _>| !calls.iter().any(|call| running.contains_key(call));
        // The sender is a field, so it exists as long as `self`.
        _ = self.0.subscribe().wait_for(gone).await;
    }

    /// Waits until no call is under way.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn none_left(&self) {
        _ = self.0.subscribe().wait_for(BTreeMap::is_empty).await;
    }
}

impl Running<'_> {
    /// Records that the service has answered: there is no call left to end.
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
        self.calls
            .0
            .send_modify(|running| _ = running.remove(&self.call_id));
    }
}
