//! What the answers to the page are made of.

use std::sync::Arc;

use door::Door;

use crate::history::intake::Intake;
use crate::people::People;

/// Shared by all requests.
pub(crate) struct Console {
    /// The bus, the tools and the calls under way.
    pub(crate) door: Arc<Door>,
    /// The history, and the facts as they are written.
    pub(crate) intake: Arc<Intake>,
    pub(crate) people: People,
    /// Names under which browsers reach the page, besides those of this machine.
    pub(crate) hosts: Vec<String>,
}
