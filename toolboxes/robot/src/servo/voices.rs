//! Which servos of a bus answer, and which are asked while nothing else is. Pure but for the time. Read [`Voices::to_ask`].

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::clock::Clock;

/// How long nothing may be heard on an idle bus until a servo is asked whether it is there, and how many are asked at once
/// where the first says nothing.
const UNHEARD: Duration = Duration::from_secs(1);
const AT_ONCE: usize = 3;

/// Which servos of a bus answer.
pub(super) struct Voices {
    ids: Vec<u8>,
    /// Those that were asked since one was heard, and have said nothing.
    unanswered: Vec<u8>,
    heard_at: Instant,
    clock: Clock,
}

impl Voices {
    pub(super) fn new(ids: Vec<u8>, clock: Clock) -> Self {
        Self {
            ids,
            unanswered: Vec::new(),
            heard_at: clock.now(),
            clock,
        }
    }

    /// The port was opened anew: nothing is known.
    pub(super) fn forget(&mut self) {
        self.unanswered.clear();
        self.heard_at = self.clock.now();
    }

    pub(super) fn are_silent(&self) -> bool {
        !self.ids.is_empty() && self.ids.iter().all(|id| self.unanswered.contains(id))
    }

    /// The servos to ask now: none where one was heard lately; first the one that has answered before.
    pub(super) fn to_ask(&self) -> Vec<u8> {
        if self.clock.since(self.heard_at) < UNHEARD {
            return Vec::new();
        }
        let open = self.ids.iter().filter(|id| !self.unanswered.contains(id));
        match self.are_silent() {
            true => self.unanswered.iter().take(AT_ONCE).copied().collect(),
            false => open.take(AT_ONCE).copied().collect(),
        }
    }

    pub(super) fn unanswered(&mut self, id: u8) {
        // The longest silent one is asked first.
        self.unanswered.retain(|other| *other != id);
        self.unanswered.push(id);
    }

    pub(super) fn answered(&mut self, ids: &BTreeSet<u8>) {
        let Some(one) = self.ids.iter().position(|id| ids.contains(id)) else {
            return;
        };
        if let Some(front) = self.ids.get_mut(..=one) {
            front.rotate_right(1);
        }
        self.forget();
    }
}
