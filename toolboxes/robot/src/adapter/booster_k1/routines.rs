//! The K1's own wave and dance, which go on until they are ended.
//!
//! Owns the requests that end them, and the list of those without a confirmed end. The robot would go on for ever, so
//! an entry stays until the robot has confirmed the end. Read [`Routines`].

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};

use crate::dds::booster::api;
use crate::subsystem::Subsystem;

/// Ends a dance.
const STOP_DANCING: i64 = 1000;

/// The request that ends one of the robot's own routines.
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

    /// Every end request, for a stop that does not know which routine runs: a process that has died may have begun one.
    pub(super) fn all() -> [Self; 3] {
        [Self::wave(0), Self::wave(1), Self::dance()]
    }
}

/// The routines that were begun. Clones share the list.
#[derive(Clone, Default)]
pub(super) struct Routines(Arc<Mutex<List>>);

#[derive(Default)]
struct List {
    begun: Vec<RoutineRun>,
    /// The number of the newest routine.
    number: u64,
}

struct RoutineRun {
    number: u64,
    arm: Subsystem,
    end: End,
    /// The request that ends the routine was sent and is not confirmed yet.
    owed: bool,
}

impl Routines {
    fn list(&self) -> MutexGuard<'_, List> {
        self.0.lock()
    }

    /// Adds a routine of an arm. Called before it is begun.
    pub(super) fn begin(&self, arm: Subsystem, end: End) {
        let mut list = self.list();
        list.number += 1;
        let number = list.number;
        list.begun.push(RoutineRun {
            number,
            arm,
            end,
            owed: false,
        });
    }

    /// The end requests of every routine that moves one of these parts. A dance moves all of them.
    pub(super) fn of(&self, parts: &[Subsystem]) -> Vec<End> {
        let dance = End::dance();
        self.ends(|begun| parts.contains(&begun.arm) || (begun.end == dance && !parts.is_empty()))
    }

    /// The end requests that were sent and not confirmed.
    pub(super) fn owed(&self) -> Vec<End> {
        self.ends(|begun| begun.owed)
    }

    fn ends(&self, which: impl Fn(&RoutineRun) -> bool) -> Vec<End> {
        let mut ends: Vec<End> = Vec::new();
        for begun in self.list().begun.iter().filter(|begun| which(begun)) {
            if !ends.contains(&begun.end) {
                ends.push(begun.end.clone());
            }
        }
        ends
    }

    /// Notes that an end request is sent, and returns the number of the newest routine that it ends. Called before the
    /// request is sent.
    pub(super) fn ending(&self, end: &End) -> u64 {
        let mut list = self.list();
        for begun in list.begun.iter_mut().filter(|begun| begun.end == *end) {
            begun.owed = true;
        }
        list.number
    }

    /// Removes the routines that this confirmed end request has ended. A routine that was begun later goes on.
    pub(super) fn ended(&self, end: &End, newest: u64) {
        let mut list = self.list();
        list.begun
            .retain(|begun| begun.end != *end || begun.number > newest);
    }

    /// Whether an end request has to be sent again: it was not confirmed, and the same routine was not begun again.
    pub(super) fn is_owed(&self, end: &End) -> bool {
        let list = self.list();
        let mut same = list.begun.iter().filter(|begun| begun.end == *end).peekable();
        same.peek().is_some() && same.all(|begun| begun.owed)
    }
}
