//! Two services that answer the same question.

use std::io;

use serde_json::json;

use super::measure::{Rounds, TURN, latency, throughput};
use super::peers::Question;
use super::wire::Wire;

/// Two services with one question each, on separate buses, so that neither reads the other's messages.
pub(crate) struct Contest {
    pub(crate) ours: (Wire, Question),
    pub(crate) theirs: (Wire, Question),
}

impl Contest {
    pub(crate) fn one_by_one(&mut self) -> io::Result<Rounds> {
        let Self { ours, theirs } = self;
        Rounds::play(&mut [&mut || latency(&mut ours.0, &ours.1), &mut || {
            latency(&mut theirs.0, &theirs.1)
        }])
    }

    pub(crate) fn many(&mut self, under_way: usize) -> io::Result<Rounds> {
        let Self { ours, theirs } = self;
        Rounds::play(&mut [
            &mut || throughput(&mut ours.0, &ours.1, under_way, TURN),
            &mut || throughput(&mut theirs.0, &theirs.1, under_way, TURN),
        ])
    }
}

/// The call that most benches make.
pub(crate) fn add() -> Question {
    Question::invoke("add", &json!({"a": 20, "b": 22}))
}
