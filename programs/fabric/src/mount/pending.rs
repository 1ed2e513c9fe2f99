//! What waits for contact with the host: questions, and the service that asked for the list of tools. Read [`Questions`].

use std::sync::Arc;
use std::time::Instant;

use ovos_toolbox_wire::ToolList;
use program::Reply;
use protocol::Raw;

/// The questions that wait for the host to be reached. As many as the service has calls.
pub(super) struct Questions<S>(pub(super) Vec<Question<S>>);

pub(super) struct Question<S> {
    pub(super) since: Instant,
    pub(super) end: End<S>,
}

/// Asks the question anew, or refuses it.
type End<S> = Box<dyn FnOnce(&Arc<S>, Contact) + Send>;

/// What a question that waited finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Contact {
    Made,
    Missed,
}

impl<S> Default for Questions<S> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

/// The lists of tools that the service asked for.
#[derive(Default)]
pub(super) struct ToolLists {
    pub(super) waiting: Vec<(Instant, Reply<Raw<ToolList>>)>,
    /// The last list of the host, which stays while it is away.
    pub(super) last: Option<Raw<ToolList>>,
    pub(super) was_asked: bool,
}
