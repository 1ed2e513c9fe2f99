//! The schedules, and what follows from time, events and stops. Pure: what it says has to be done, and kept on disk before that.
//!
//! A schedule never fires twice for one time: its next time is set before it fires. What could not fire at its time is reported and
//! not caught up.

use std::collections::BTreeMap;

use chrono::TimeZone;
use ovos_toolbox_wire::Object;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::message::{ScheduledMessage, owed};
use crate::timing::{LATE, Millis, Timing};

/// How many schedules one asker may have, and all of them together.
pub(crate) const MOST_OF_ONE: usize = 20;
const MOST: usize = 500;

/// By how much a clock may run back without having been put back.
const JITTER: Millis = 5_000;

/// What a schedule does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum What {
    /// A call: the data of `ovos.tools.invoke`.
    Call(Object),
    /// A run: the data of `ovos.tools.run`.
    Run(Object),
    /// A message of OVOS's scheduler.
    Message(ScheduledMessage),
}

/// A schedule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Schedule {
    pub(crate) schedule_id: String,
    /// What people call it; may be empty.
    #[serde(default)]
    pub(crate) title: String,
    pub(crate) when: Timing,
    pub(crate) what: What,
    /// Whether it only reads. A stop suspends all others.
    pub(crate) reads: bool,
    /// Who asked for it, for the limits, and the part of the context with which it fires.
    pub(crate) asker: String,
    pub(crate) on_behalf: Value,
    #[serde(default)]
    pub(crate) session_id: Option<String>,
    /// How often it still fires. `None`: without end.
    #[serde(default)]
    pub(crate) times: Option<u64>,
    #[serde(default)]
    pub(crate) next_ms: Option<Millis>,
    /// For which time it fired last.
    #[serde(default)]
    pub(crate) last_ms: Option<Millis>,
    /// For which time it fires now.
    #[serde(default)]
    pub(crate) firing_ms: Option<Millis>,
    #[serde(default)]
    pub(crate) fired: u64,
    /// How its last firing ended.
    #[serde(default)]
    pub(crate) outcome: Option<String>,
    /// Why it does not fire at present.
    #[serde(default)]
    pub(crate) suspended: Option<String>,
}

/// What has to be done.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum DueWork {
    /// The schedule is due: make its call.
    Fire(Box<Schedule>),
    /// It was due at this time and did not fire.
    Missed {
        schedule_id: String,
        due_ms: Millis,
        why: String,
    },
}

/// Why a schedule is not taken.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(crate) enum TableFull {
    #[error(
        "{0} has {MOST_OF_ONE} schedules already: cancel one of them (ovos.tools.schedule.list names them)"
    )]
    OfOne(String),
    #[error("there are {MOST} schedules already: cancel some of them")]
    All,
    #[error("this time never comes: check the cron pattern")]
    Never,
}

/// All schedules. It is what is kept on disk.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Table {
    schedules: BTreeMap<String, Schedule>,
    /// What the clock showed last.
    seen_ms: Millis,
    /// Why no message is sent at present, whatever a person resumes.
    #[serde(skip)]
    messages_held: Option<&'static str>,
}

impl Table {
    /// Takes a schedule.
    ///
    /// # Errors
    /// There are too many, or it is never due.
    pub(crate) fn add<Z: TimeZone>(
        &mut self,
        mut schedule: Schedule,
        now: Millis,
        zone: &Z,
    ) -> Result<(), TableFull> {
        self.room_for(&schedule)?;
        let is_on_event = matches!(schedule.when, Timing::Event { .. });
        // At the very time is not too late.
        schedule.next_ms = schedule.when.next(now - 1, zone);
        if schedule.next_ms.is_none() && !is_on_event {
            return Err(TableFull::Never);
        }
        self.schedules.insert(schedule.schedule_id.clone(), schedule);
        Ok(())
    }

    /// Takes a message, in place of one with its id. What was sent for a time is not sent for it again; a time that has passed is due; and what
    /// a stop has suspended stays so.
    ///
    /// # Errors
    /// There are too many, or it is never due.
    pub(crate) fn replace<Z: TimeZone>(&mut self, mut schedule: Schedule, zone: &Z) -> Result<(), TableFull> {
        match self.schedules.get(&schedule.schedule_id) {
            None => self.room_for(&schedule)?,
            Some(before) => {
                schedule.last_ms = before.last_ms;
                schedule.fired = before.fired;
                if !schedule.reads {
                    schedule.suspended.clone_from(&before.suspended);
                }
                if let Some(last) = before.last_ms.filter(|last| schedule.next_ms <= Some(*last)) {
                    schedule.next_ms = schedule.when.next(last, zone);
                }
            }
        }
        if schedule.next_ms.is_none() {
            return Err(TableFull::Never);
        }
        self.schedules.insert(schedule.schedule_id.clone(), schedule);
        Ok(())
    }

    fn room_for(&self, schedule: &Schedule) -> Result<(), TableFull> {
        let others = self.schedules.values();
        if others.filter(|other| other.asker == schedule.asker).count() >= MOST_OF_ONE {
            return Err(TableFull::OfOne(schedule.asker.clone()));
        }
        if self.schedules.len() >= MOST {
            return Err(TableFull::All);
        }
        Ok(())
    }

    /// Changes what is sent, if there is such a message.
    pub(crate) fn change_message(&mut self, schedule_id: &str, data: Object) -> bool {
        match self
            .schedules
            .get_mut(schedule_id)
            .map(|schedule| &mut schedule.what)
        {
            Some(What::Message(message)) => {
                message.data = data;
                true
            }
            _ => false,
        }
    }

    /// Sends no messages for this reason, or sends them again. What a stop has suspended stays so.
    pub(crate) fn hold_messages(&mut self, why: Option<&'static str>) {
        self.messages_held = why;
    }

    /// Why a schedule does not fire at present.
    pub(crate) fn suspended<'a>(&'a self, schedule: &'a Schedule) -> Option<&'a str> {
        idle(schedule, self.messages_held)
    }

    /// All of them, in the order of their ids.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Schedule> {
        self.schedules.values()
    }

    pub(crate) fn find(&self, schedule_id: &str) -> Option<&Schedule> {
        self.schedules.get(schedule_id)
    }

    /// Removes a schedule. `None` if there is none.
    pub(crate) fn cancel(&mut self, schedule_id: &str) -> Option<Schedule> {
        self.schedules.remove(schedule_id)
    }

    /// What has to be done at `now`. It is kept on disk before it is done.
    pub(crate) fn due<Z: TimeZone>(&mut self, now: Millis, zone: &Z) -> Vec<DueWork> {
        let was_put_back = now < self.seen_ms - JITTER;
        self.seen_ms = now;
        let mut due_work = Vec::new();
        for schedule in self.schedules.values_mut() {
            if was_put_back {
                let last = schedule.last_ms;
                if schedule.next_ms.is_some() {
                    schedule.next_ms = schedule.when.after_step_back(now, last, zone);
                }
            }
            let Some(due_ms) = schedule.next_ms.filter(|due| *due <= now) else {
                continue;
            };
            let idle = idle(schedule, self.messages_held).map(str::to_owned);
            if matches!(schedule.what, What::Message(_)) && idle.is_none() {
                for due_ms in owed(&schedule.when, &mut schedule.next_ms, now, zone) {
                    due_work.push(fire(schedule, due_ms));
                    // It is sent at once.
                    schedule.firing_ms = None;
                }
                continue;
            }
            schedule.next_ms = schedule.when.next(now, zone);
            let missed = |why: String| DueWork::Missed {
                schedule_id: schedule.schedule_id.clone(),
                due_ms,
                why,
            };
            if let Some(why) = &idle {
                due_work.push(missed(format!("it is suspended: {why}")));
            } else if now - due_ms > LATE {
                due_work.push(missed(
                    "the schedule door was not running at that time".to_owned(),
                ));
            } else if schedule.firing_ms.is_some() {
                due_work.push(missed("its previous call is still running".to_owned()));
            } else {
                due_work.push(fire(schedule, due_ms));
            }
        }
        self.forget();
        due_work
    }

    /// What has to be done when a toolbox reports an event.
    pub(crate) fn event(&mut self, toolbox_id: &str, kind: &str, now: Millis) -> Vec<DueWork> {
        let mut due_work = Vec::new();
        for schedule in self.schedules.values_mut() {
            let Timing::Event {
                kind: wanted,
                toolbox_id: of,
                apart_ms,
            } = &schedule.when
            else {
                continue;
            };
            let is_meant = wanted == kind && of.as_deref().is_none_or(|of| of == toolbox_id);
            // A clock that was put back does not hold it up for long.
            let since_last = schedule.last_ms.map(|last| now - last);
            let is_apart = since_last.is_none_or(|since| since < 0 || since >= *apart_ms);
            if is_meant && is_apart && schedule.suspended.is_none() && schedule.firing_ms.is_none() {
                due_work.push(fire(schedule, now));
            }
        }
        due_work
    }

    /// Records how a firing ended.
    pub(crate) fn ended(&mut self, schedule_id: &str, outcome: &str) {
        if let Some(schedule) = self.schedules.get_mut(schedule_id) {
            schedule.firing_ms = None;
            schedule.outcome = Some(outcome.to_owned());
        }
        self.forget();
    }

    /// What was under way when the last service ended is reported, and not made again.
    pub(crate) fn restored(&mut self) -> Vec<DueWork> {
        let mut due_work = Vec::new();
        for schedule in self.schedules.values_mut() {
            if let Some(due_ms) = schedule.firing_ms.take() {
                let why = "the schedule door ended during the call: the call may or may not have been carried out; check before you make \
                    it again";
                schedule.outcome = Some(why.to_owned());
                due_work.push(DueWork::Missed {
                    schedule_id: schedule.schedule_id.clone(),
                    due_ms,
                    why: why.to_owned(),
                });
            }
        }
        self.forget();
        due_work
    }

    /// Suspends all schedules that do more than read, or those of one session. Returns how many.
    pub(crate) fn suspend(&mut self, session_id: Option<&str>, why: &str) -> usize {
        let mut count = 0;
        for schedule in self.schedules.values_mut() {
            let is_meant = session_id.is_none() || session_id == schedule.session_id.as_deref();
            if is_meant && !schedule.reads && schedule.suspended.is_none() {
                schedule.suspended = Some(why.to_owned());
                count += 1;
            }
        }
        count
    }

    /// Lets a schedule fire again, or all of them. Returns how many were suspended.
    pub(crate) fn resume<Z: TimeZone>(&mut self, schedule_id: Option<&str>, now: Millis, zone: &Z) -> usize {
        let mut count = 0;
        for schedule in self.schedules.values_mut() {
            let is_meant = schedule_id.is_none_or(|wanted| wanted == schedule.schedule_id);
            if is_meant && schedule.suspended.take().is_some() {
                // What was due meanwhile is not caught up.
                if !matches!(schedule.when, Timing::At { .. }) {
                    schedule.next_ms = schedule.when.next(now, zone);
                }
                count += 1;
            }
        }
        count
    }

    /// When something is due next.
    pub(crate) fn wakes_at(&self) -> Option<Millis> {
        self.schedules
            .values()
            .filter_map(|schedule| schedule.next_ms)
            .min()
    }

    /// Forgets what will not fire any more and is not under way.
    fn forget(&mut self) {
        self.schedules.retain(|_, schedule| {
            let is_over = schedule.times == Some(0)
                || (schedule.next_ms.is_none() && !matches!(schedule.when, Timing::Event { .. }));
            schedule.firing_ms.is_some() || !is_over
        });
    }
}

/// Why a schedule does not fire, where messages are held for this reason.
fn idle<'a>(schedule: &'a Schedule, held: Option<&'a str>) -> Option<&'a str> {
    let held = held.filter(|_| matches!(schedule.what, What::Message(_)));
    schedule.suspended.as_deref().or(held)
}

/// Sets all that a firing changes before it begins.
fn fire(schedule: &mut Schedule, due_ms: Millis) -> DueWork {
    schedule.last_ms = Some(due_ms);
    schedule.firing_ms = Some(due_ms);
    schedule.fired += 1;
    schedule.times = schedule.times.map(|times| times.saturating_sub(1));
    if schedule.times == Some(0) {
        schedule.next_ms = None;
    }
    DueWork::Fire(Box::new(schedule.clone()))
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
