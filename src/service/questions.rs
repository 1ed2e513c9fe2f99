//! Questions that toolboxes ask on the bus, until they are answered or their time is up.
//!
//! There is no correlation id on this bus: an answer is `<topic>.response` in the session that the question named, so each
//! question names a session of its own. Read [`Questions`].

use std::collections::HashMap;

use ovos_toolbox_wire::Object;
use parking_lot::Mutex;
use serde_json::{Value, json};

use bus::Message;
use host::Origin;

/// One question under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Question {
    pub(super) origin: Origin,
    pub(super) request: u64,
}

/// The questions under way, by session. The host bounds how many a toolbox may have.
#[derive(Debug, Default)]
pub(super) struct Questions {
    open: Mutex<HashMap<String, (String, Question)>>,
}

impl Questions {
    /// Opens a question; returns the message that asks it, and its session.
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

    /// The question that a message answers; it is closed by that.
    pub(super) fn answered(&self, message: &Message) -> Option<Question> {
        let session = message.session_id()?;
        let mut open = self.open.lock();
        let (response, _) = open.get(session)?;
        if *response != message.kind {
            return None;
        }
        open.remove(session).map(|(_, question)| question)
    }

    /// Closes a question whose time is up; `None` when it was answered just before.
    pub(super) fn give_up(&self, session: &str) -> Option<Question> {
        self.open.lock().remove(session).map(|(_, question)| question)
    }
}
