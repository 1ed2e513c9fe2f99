//! The table of calls: those under way, by id, and the last ones that ended.
//!
//! It bounds the number of calls in flight, gives each toolbox a share of them, and keeps call ids unique; a user stop, a
//! bus loss and the shutdown end the calls in it. Read [`Calls`].

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use ovos_toolbox_wire::Effect;
use parking_lot::Mutex;

use super::call::{CallControl, Cause, Refusal};

/// The number of ended call ids that are kept, so that a late cancel is answered with "already ended".
const REMEMBERED: usize = 4096;

/// The number of marks that are kept. When there are more, the two oldest are merged into one that concerns every
/// session.
const MARKS: usize = 64;

/// How many toolboxes the refusal of a call names.
const NAMED: usize = 4;

/// Notes that calls of some kind were ended at a moment. A call that was received before that moment but enters the
/// table later is ended, too, because a stop overtakes requests that are still in a queue.
#[derive(Clone, Debug)]
pub(crate) struct Mark {
    pub(crate) at: Instant,
    pub(crate) cause: Cause,
    /// Only calls of this session; `None` for calls of every session.
    pub(crate) session_id: Option<String>,
    /// Only calls of effect `motion`.
    pub(crate) motion: bool,
}

impl Mark {
    pub(crate) fn concerns(&self, call: &CallControl) -> bool {
        call.received <= self.at
            && (self.session_id.is_none() || self.session_id == call.session_id)
            && (!self.motion || call.effect == Effect::Motion)
    }
}

/// What the engine knows of a call id.
#[derive(Clone, Debug)]
pub enum CallLookup {
    /// The call is under way.
    InFlight(Arc<CallControl>),
    /// The call has ended.
    Ended,
    /// The id was never seen, or its call ended too long ago.
    Unknown,
}

#[derive(Debug, Default)]
struct Table {
    in_flight: HashMap<String, Arc<CallControl>>,
    /// How many of them each toolbox has; a toolbox without a call is not in it.
    held: HashMap<String, usize>,
    ended: VecDeque<String>,
    closed: bool,
    marks: VecDeque<Mark>,
}

impl Table {
    /// Whether one more call of this toolbox fits. A toolbox may hold three quarters of what the others leave, so that one
    /// whose calls hang cannot take the last places.
    fn has_room(&self, toolbox_id: &str, limit: usize) -> Result<(), Refusal> {
        let all = self.in_flight.len();
        if all >= limit {
            return Err(Refusal::TooManyCalls {
                limit,
                holders: self.holders(),
            });
        }
        let held = self.held.get(toolbox_id).copied().unwrap_or_default();
        let left_by_others = limit - (all - held);
        if held >= (left_by_others * 3).div_ceil(4) {
            return Err(Refusal::ShareUsedUp {
                toolbox_id: toolbox_id.to_owned(),
                held,
                limit,
            });
        }
        Ok(())
    }

    /// The toolboxes with the most calls.
    fn holders(&self) -> Vec<String> {
        let mut held: Vec<_> = self.held.iter().collect();
        held.sort_by(|(id, count), (other, others)| others.cmp(count).then(id.cmp(other)));
        let named = held.iter().take(NAMED);
        named.map(|(id, count)| format!("{count} of `{id}`")).collect()
    }
}

/// The table of calls.
#[derive(Debug)]
pub(crate) struct Calls {
    table: Mutex<Table>,
    limit: usize,
}

impl Calls {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            table: Mutex::default(),
            limit,
        }
    }

    /// Enters a call into the table, until the guard is dropped. Only a `bounded` call is refused when the table is
    /// full, or its toolbox's share is.
    pub(crate) fn enter(&self, control: Arc<CallControl>, bounded: bool) -> Result<TableGuard<'_>, Refusal> {
        let mut table = self.table.lock();
        if table.closed {
            return Err(Refusal::Ended(Cause::Shutdown));
        }
        let ended = table
            .marks
            .iter()
            .find(|mark| control.received < mark.at && mark.concerns(&control));
        if let Some(mark) = ended
            && control.effect != Effect::Safe
        {
            return Err(Refusal::Ended(mark.cause.clone()));
        }
        if table.in_flight.contains_key(&control.call_id) {
            return Err(Refusal::DuplicateCallId {
                call_id: control.call_id.clone(),
            });
        }
        if bounded {
            table.has_room(&control.toolbox_id, self.limit)?;
        }
        let call_id = control.call_id.clone();
        *table.held.entry(control.toolbox_id.clone()).or_default() += 1;
        table.in_flight.insert(call_id.clone(), control);
        Ok(TableGuard { calls: self, call_id })
    }

    /// From now on, refuses the calls that the mark concerns.
    pub(crate) fn mark(&self, mark: Mark) {
        let mut table = self.table.lock();
        if table.marks.len() == MARKS
            && let Some(oldest) = table.marks.pop_front()
            && let Some(next) = table.marks.front_mut()
        {
            // The merged mark may end a call that neither of the two concerns, but only a call that is as old as these
            // marks and has still not entered.
            next.at = next.at.max(oldest.at);
            (next.session_id, next.motion) = (None, next.motion && oldest.motion);
        }
        table.marks.push_back(mark);
    }

    /// Refuses every call from now on.
    pub(crate) fn close(&self) {
        self.table.lock().closed = true;
    }

    pub(crate) fn find(&self, call_id: &str) -> CallLookup {
        let table = self.table.lock();
        match table.in_flight.get(call_id) {
            Some(control) => CallLookup::InFlight(control.clone()),
            None if table.ended.iter().any(|ended| ended == call_id) => CallLookup::Ended,
            None => CallLookup::Unknown,
        }
    }

    /// Every call under way, oldest first.
    pub(crate) fn in_flight(&self) -> Vec<Arc<CallControl>> {
        let mut calls: Vec<_> = self.table.lock().in_flight.values().cloned().collect();
        calls.sort_by_key(|control| control.received);
        calls
    }

    pub(crate) fn len(&self) -> usize {
        self.table.lock().in_flight.len()
    }
}

/// The entry of a call in the table. Dropping it removes the call, however the call's task ends.
#[derive(Debug)]
pub(crate) struct TableGuard<'a> {
    calls: &'a Calls,
    call_id: String,
}

impl Drop for TableGuard<'_> {
    fn drop(&mut self) {
        let mut table = self.calls.table.lock();
        let control = table.in_flight.remove(&self.call_id);
        if let Some(control) = control {
            if let Entry::Occupied(mut held) = table.held.entry(control.toolbox_id.clone()) {
                *held.get_mut() -= 1;
                if *held.get() == 0 {
                    held.remove();
                }
            }
            control.leave();
        }
        if table.ended.len() == REMEMBERED {
            table.ended.pop_front();
        }
        table.ended.push_back(std::mem::take(&mut self.call_id));
    }
}
