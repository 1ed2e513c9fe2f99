//! A message of the bus that a skill has sent later, and for which times it is sent. Pure.

use chrono::TimeZone;
use ovos_toolbox_wire::Object;
use serde::{Deserialize, Serialize};

use crate::timing::{LATE, Millis, Timing};

/// How many times that have passed are looked at; of those that follow none is sent late.
const MOST_PASSED: usize = 10_000;

/// A message that is sent when its schedule is due.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ScheduledMessage {
    pub(crate) event: String,
    pub(crate) data: Object,
    /// The context in which it was asked for, and is sent.
    pub(crate) context: Object,
}

/// For which times a message is sent at `now`: for each that has just come, and for the last one that has passed unseen.
/// `next_ms` becomes the next time.
pub(crate) fn owed<Z: TimeZone>(
    when: &Timing,
    next_ms: &mut Option<Millis>,
    now: Millis,
    zone: &Z,
) -> Vec<Millis> {
    let times = std::iter::successors(*next_ms, |last| when.next(*last, zone));
    let due: Vec<Millis> = times.take_while(|time| *time <= now).take(MOST_PASSED).collect();
    let Some(last) = due.last() else { return due };
    *next_ms = when.next(now.max(*last), zone);
    let passed = due.iter().filter(|time| now - **time > LATE).count();
    due[passed.saturating_sub(1)..].to_vec()
}
