//! What a K1 does of its own, wave and dance, until somebody ends it.
//!
//! Owns what was begun and not surely ended. The robot would go on for ever, so nothing is forgotten before it has
//! said that it heard the end. Read [`Routines`].

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use crate::dds::booster::api;
use crate::subsystem::Subsystem;

/// Ends a dance.
const STOP_DANCING: i64 = 1000;

/// The function and body that end something of the robot's own.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct End {
    pub(super) function: i64,
    pub(super) body: Value,
}

impl End {
    /// Ends a wave of the left (0) or the right hand (1).
    pub(super) fn wave(hand: i64) -> Self {
        Self {
            function: api::WAVE_HAND,
            body: json!({"hand_index": hand, "hand_action": 1}),
        }
    }

    pub(super) fn dance() -> Self {
        Self {
            function: api::DANCE,
            body: json!({ "dance_id": STOP_DANCING }),
        }
    }

    /// All there are, for stops that do not know what was begun: a process that has died may have begun it.
    pub(super) fn all() -> [Self; 3] {
        [Self::wave(0), Self::wave(1), Self::dance()]
    }
}

/// What was begun. Clones are the same list.
#[derive(Clone, Default)]
pub(super) struct Routines(Arc<Mutex<List>>);

#[derive(Default)]
struct List {
    begun: Vec<Begun>,
    /// Of the newest one.
    number: u64,
}

struct Begun {
    number: u64,
    arm: Subsystem,
    end: End,
    /// Its end was said, and the robot has not answered yet.
    owed: bool,
}

impl Routines {
    fn list(&self) -> MutexGuard<'_, List> {
        // Every change is one step.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something is about to be begun with an arm.
    pub(super) fn begin(&self, arm: Subsystem, end: End) {
        let mut list = self.list();
        list.number += 1;
        let number = list.number;
        list.begun.push(Begun {
            number,
            arm,
            end,
            owed: false,
        });
    }

    /// What ends everything that was begun with an arm.
    pub(super) fn of(&self, arm: Subsystem) -> Vec<End> {
        self.ends(|begun| begun.arm == arm)
    }

    /// What was said and not answered.
    pub(super) fn owed(&self) -> Vec<End> {
        self.ends(|begun| begun.owed)
    }

    fn ends(&self, which: impl Fn(&Begun) -> bool) -> Vec<End> {
        let mut ends: Vec<End> = Vec::new();
        for begun in self.list().begun.iter().filter(|begun| which(begun)) {
            if !ends.contains(&begun.end) {
                ends.push(begun.end.clone());
            }
        }
        ends
    }

    /// An end is about to be said; what is returned names everything that it ends.
    pub(super) fn ending(&self, end: &End) -> u64 {
        let mut list = self.list();
        for begun in list.begun.iter_mut().filter(|begun| begun.end == *end) {
            begun.owed = true;
        }
        list.number
    }

    /// The robot has heard this end. What was begun since goes on.
    pub(super) fn ended(&self, end: &End, newest: u64) {
        let mut list = self.list();
        list.begun
            .retain(|begun| begun.end != *end || begun.number > newest);
    }

    /// Whether an end has to be said again: it was not heard for sure, and the same was not begun anew.
    pub(super) fn is_owed(&self, end: &End) -> bool {
        let list = self.list();
        let mut same = list.begun.iter().filter(|begun| begun.end == *end).peekable();
        same.peek().is_some() && same.all(|begun| begun.owed)
    }
}
