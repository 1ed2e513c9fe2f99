//! The stops that were asked for, so that one that is repeated is one. Read [`Stops::take`].

use std::collections::VecDeque;

use crate::messages::StopAnswer;

/// How many stops are remembered, to answer one that is repeated.
const REMEMBERED: usize = 64;

/// The newest stops that were asked for by their ids, each with its answer once there is one.
#[derive(Debug, Default)]
pub(super) struct Stops(VecDeque<(String, Option<StopAnswer>)>);

impl Stops {
    /// Notes a stop; for one that was noted before what is known of its answer.
    pub(super) fn take(&mut self, id: &str) -> Option<Option<StopAnswer>> {
        if let Some((_, done)) = self.0.iter().find(|(known, _)| known == id) {
            return Some(done.clone());
        }
        if self.0.len() == REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back((id.to_owned(), None));
        None
    }

    pub(super) fn answered(&mut self, id: &str, done: &StopAnswer) {
        if let Some((_, remembered)) = self.0.iter_mut().find(|(known, _)| known == id) {
            *remembered = Some(done.clone());
        }
    }
}

/// A stop that a machine asks for.
pub(super) struct StopOrder {
    /// Drawn by the one who asks; a repetition has the same.
    pub(super) id: String,
    pub(super) reason: String,
    /// The stop of this host that the asker only follows.
    pub(super) mirrors: Option<String>,
}
