//! Requests of toolboxes on the bus, from sending to the answer or the timeout.
//!
//! The bus has no correlation ids: an answer is `<topic>.response` in the session of the request, so each request
//! uses a session of its own. Read [`Questions`].

use std::collections::HashMap;

use ovos_toolbox_wire::Object;
use parking_lot::Mutex;
use serde_json::{Value, json};

use bus::Message;
use host::Origin;

/// One pending request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Question {
    pub(super) origin: Origin,
    pub(super) request: u64,
}

/// The pending requests, by session. The host bounds their number for each toolbox.
#[derive(Debug, Default)]
pub(super) struct Questions {
    open: Mutex<HashMap<String, (String, Question)>>,
}

impl Questions {
    /// Registers a request; returns the message to send, and its session.
    pub(super) fn ask(&self, question: Question, topic: &str, data: Object) -> (Message, String) {
        let session = format!("ovos-tools-{}", uuid::Uuid::new_v4());
        let mut message = Message::new(topic, data);
        let source = format!("ovos_tools.{}", question.origin.toolbox_id);
        message.context.insert("source".to_owned(), Value::from(source));
        message
            .context
            .insert("session".to_owned(), json!({ "session_id": session }));
        let response = format!("{topic}.response");
        self.open.lock().insert(session.clone(), (response, question));
        (message, session)
    }

    /// Returns and removes the request that a message answers.
    pub(super) fn answered(&self, message: &Message) -> Option<Question> {
        let session = message.session_id()?;
        let mut open = self.open.lock();
        let (response, _) = open.get(session)?;
        if *response != message.kind {
            return None;
        }
        open.remove(session).map(|(_, question)| question)
    }

    /// Removes a request that timed out; `None` if it was answered just before.
    pub(super) fn give_up(&self, session: &str) -> Option<Question> {
        self.open.lock().remove(session).map(|(_, question)| question)
    }
}
