//! Which question waits for an answer, and which answer was taken. Read [`Questions`].

use std::sync::Arc;

use bus::Message;
use parking_lot::Mutex;

/// Which question waits, and what was taken as an answer.
#[derive(Default)]
pub(crate) struct Questions(Mutex<State>);

#[derive(Default)]
struct State {
    /// The session in which one waits.
    waits: Option<Option<String>>,
    /// The answer that was taken last.
    taken: Option<Message>,
}

/// A question that waits, until it ends or this is dropped.
pub(crate) struct OpenQuestion(Arc<Questions>);

impl Questions {
    /// A question waits from now on. There is one at a time.
    pub(crate) fn ask(this: &Arc<Self>, session_id: Option<String>) -> OpenQuestion {
        this.0.lock().waits = Some(session_id);
        OpenQuestion(Arc::clone(this))
    }

    /// Whether an utterance that was handed over is for no question.
    pub(crate) fn is_stray(&self, message: &Message) -> bool {
        let state = self.0.lock();
        let is_taken = state
            .taken
            .as_ref()
            .is_some_and(|taken| taken.data == message.data && taken.context == message.context);
        let waits = state.waits.as_ref();
        !is_taken && waits.is_none_or(|session| session.as_deref() != message.session_id())
    }
}

impl OpenQuestion {
    /// The question has ended. `taken`: with this answer.
    pub(crate) fn ends(self, taken: Option<&Message>) {
        if let Some(taken) = taken {
            self.0.0.lock().taken = Some(taken.clone());
        }
    }
}

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        self.0.0.lock().waits = None;
    }
}
