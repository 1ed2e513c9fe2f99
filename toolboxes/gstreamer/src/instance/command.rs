//! The messages to the thread of an instance.
//!
//! They come from the table, from the pipeline's own threads and from callers. Read [`Input`].

use ovos_toolbox_sdk::prelude::*;
use ovos_toolbox_sdk::tokio::sync::oneshot;

use super::change::Changed;
use crate::policy::Refusal;

/// An input of the thread.
pub(super) enum Input {
    /// A message of the pipeline.
    Message(gst::Message),
    /// A forbidden element or change, which was made harmless already.
    Refused(Refusal),
    /// A caller's command.
    Command(Command),
}

/// A caller's command. A reply is dropped if the caller no longer waits.
pub(super) enum Command {
    /// Ends the pipeline, with an end of stream first unless `grace` is zero.
    Stop { grace: Duration },
    /// Pauses the pipeline.
    Pause(oneshot::Sender<Result<(), ToolError>>),
    /// Resumes it.
    Resume(oneshot::Sender<Result<(), ToolError>>),
    /// Updates the status from the elements.
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
    /// Replies that the command cannot be executed.
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
