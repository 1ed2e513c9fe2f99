//! The order of a call's facts, which followers rely on.
//!
//! Read [`check`]; [`read`] takes from a follower what is there.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::FutureExt;
use ovos_tools_engine::{Fact, Followed, Follower, NumberedFact};
use tokio::task::unconstrained;

/// What a follower finds now.
pub(crate) fn read(follower: &mut Follower) -> Vec<Followed> {
    let next = || unconstrained(follower.next()).now_or_never().flatten();
    std::iter::from_fn(next).collect()
}

/// As [`read`], for a follower that has lost nothing.
pub(crate) fn read_all(follower: &mut Follower) -> Vec<NumberedFact> {
    let to_fact = |followed| match followed {
        Followed::Fact(fact) => fact,
        Followed::Lost { from, to } => panic!("the facts {from} to {to} are lost"),
    };
    read(follower).into_iter().map(to_fact).collect()
}

/// The course of one call.
#[derive(Debug, Default)]
struct Course {
    planned: bool,
    waited: bool,
    refused: bool,
    answered: bool,
    wave: usize,
    started: BTreeSet<String>,
    ended: BTreeSet<String>,
}

/// Checks that numbers follow each other, that time does not run back, and that each call is received before it is
/// planned, planned before it waits, then wave after wave with its actions, and answered last. Returns the number of
/// calls that were answered.
pub(crate) fn check(facts: &[NumberedFact]) -> usize {
    for pair in facts.windows(2) {
        assert_eq!(pair[0].number + 1, pair[1].number);
        assert!(pair[0].at_us <= pair[1].at_us, "{pair:?}");
    }
    let mut calls: BTreeMap<u64, Course> = BTreeMap::new();
    for NumberedFact { fact, .. } in facts {
        let call = match &**fact {
            Fact::Received { call, .. } => {
                let before = calls.insert(call.number, Course::default());
                assert!(before.is_none(), "it is received twice: {fact:?}");
                continue;
            }
            Fact::Planned { call, .. }
            | Fact::Refused { call, .. }
            | Fact::Waiting { call, .. }
            | Fact::Wave { call, .. }
            | Fact::ActionStarted { call, .. }
            | Fact::ActionEnded { call, .. }
            | Fact::Cancelled { call, .. }
            | Fact::Answered { call: Some(call), .. } => call,
            _ => continue,
        };
        let course = calls.get_mut(&call.number).expect("it is received first");
        assert!(!course.answered, "after the answer: {fact:?}");
        let fits = match &**fact {
            Fact::Planned { .. } => !std::mem::replace(&mut course.planned, true) && !course.refused,
            Fact::Waiting { .. } => {
                !std::mem::replace(&mut course.waited, true) && course.planned && course.wave == 0
            }
            Fact::Wave { wave, waves, .. } => {
                course.wave += 1;
                course.planned
                    && *wave == course.wave
                    && wave <= waves
                    && course.started.is_subset(&course.ended)
            }
            Fact::ActionStarted { action, wave, .. } => {
                *wave == course.wave && course.started.insert(action.clone())
            }
            Fact::ActionEnded { action, wave, .. } => {
                *wave == course.wave && course.ended.insert(action.clone())
            }
            Fact::Refused { .. } => {
                !std::mem::replace(&mut course.refused, true) && course.started.is_empty()
            }
            Fact::Answered { .. } => {
                course.answered = true;
                course.started.is_subset(&course.ended)
            }
            _ => true,
        };
        assert!(fits, "{fact:?} does not follow on {course:?}");
    }
    calls.values().filter(|course| course.answered).count()
}
