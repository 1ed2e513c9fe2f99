//! What the thread of the pipeline is sent: messages of the pipeline, refusals, and commands.
//!
//! Nothing here waits for an element. Read [`Inbox`].

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use parking_lot::Mutex;

use crate::order::Command;
use crate::policy::Refusal;

/// An input of the thread.
pub(super) enum Input {
    /// A message of the pipeline.
    Message(gst::Message),
    /// A forbidden element or change, which was made harmless already.
    Refused(Refusal),
    /// A caller's command, and the number of its answer.
    Command(u64, Command),
}

/// The sending end.
pub(super) struct Inbox {
    inputs: SyncSender<Input>,
    /// An error, an end or a refusal that did not fit the queue.
    urgent: Mutex<Option<Input>>,
}

/// Size of the queue. Commands are few, and of the messages only errors and ends must not be lost, which have a separate slot.
const MOST_WAITING: usize = 256;

impl Inbox {
    pub(super) fn new() -> (Arc<Self>, Receiver<Input>) {
        let (inputs, waiting) = sync_channel(MOST_WAITING);
        let urgent = Mutex::default();
        (Arc::new(Self { inputs, urgent }), waiting)
    }

    /// Posts a caller's command. Waits while the queue is full: nothing else is to be done for the toolbox meanwhile.
    pub(super) fn command(&self, id: u64, command: Command) {
        // The thread may have ended; the process ends then.
        _ = self.inputs.send(Input::Command(id, command));
    }

    /// Posts an input from a thread of the pipeline; never blocks.
    pub(super) fn post(&self, input: Input) {
        let input = match self.inputs.try_send(input) {
            Ok(()) | Err(TrySendError::Disconnected(_)) => return,
            Err(TrySendError::Full(input)) => input,
        };
        let matters = match &input {
            Input::Refused(_) => true,
            Input::Message(message) => {
                matches!(message.type_(), gst::MessageType::Error | gst::MessageType::Eos)
            }
            Input::Command(..) => false,
        };
        if matters {
            let mut urgent = self.urgent.lock();
            urgent.get_or_insert(input);
        }
    }

    pub(super) fn take_urgent(&self) -> Option<Input> {
        self.urgent.lock().take()
    }
}
