//! What the thread of an instance is told, and by whom.
//!
//! Owns the messages between the table, the pipeline's own threads and the instance's thread. Read [`Input`].

use ovos_toolbox_sdk::prelude::*;
use ovos_toolbox_sdk::tokio::sync::oneshot;

use super::change::Changed;
use crate::policy::Refusal;

/// What the thread is told.
pub(super) enum Input {
    /// The pipeline said something.
    Message(gst::Message),
    /// An element or a change that is not allowed; it was made harmless.
    Refused(Refusal),
    /// Somebody asks for something.
    Command(Command),
}

/// What is asked of the thread. A reply that nobody waits for any more is dropped.
pub(super) enum Command {
    /// Ends the pipeline, with an end of stream first unless `grace` is zero.
    Stop { grace: Duration },
    /// Holds the pipeline.
    Pause(oneshot::Sender<Result<(), ToolError>>),
    /// Goes on.
    Resume(oneshot::Sender<Result<(), ToolError>>),
    /// Asks the elements how far they are.
    Refresh(oneshot::Sender<()>),
    /// Sets a property.
    Set {
        element: String,
        property: String,
        value: Value,
        reply: oneshot::Sender<Result<Changed, ToolError>>,
    },
}

impl Command {
    /// Answers whoever waits that it cannot be done.
    pub(super) fn refuse(self, why: &str) {
        let error = || ToolError::busy(format!("not now: {why}"));
        match self {
            Self::Stop { .. } => {}
            Self::Pause(reply) | Self::Resume(reply) => _ = reply.send(Err(error())),
            Self::Refresh(reply) => _ = reply.send(()),
            Self::Set { reply, .. } => _ = reply.send(Err(error())),
        }
    }
}
