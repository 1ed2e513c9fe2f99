//! The table of calls: those under way, by id, and the last ones that ended.
//!
//! It bounds the number of calls in flight and keeps call ids unique among them. Read [`Calls`].

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use ovos_toolbox_wire::Effect;
use parking_lot::Mutex;

use super::call::{CallControl, Cause, Refusal};

/// The number of ended call ids that are kept, so that a late cancel is answered with "already ended".
const REMEMBERED: usize = 4096;

/// The number of marks that are kept. When there are more, the two oldest are merged into one for every session.
const MARKS: usize = 64;

/// Calls of some kind were ended at a moment. A call that was received by then and enters the table only later is
/// ended, too, because a stop overtakes requests that are still in a queue.
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
pub enum Known {
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
    ended: VecDeque<String>,
    closed: bool,
    marks: VecDeque<Mark>,
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
    /// full.
    pub(crate) fn enter(&self, control: Arc<CallControl>, bounded: bool) -> Result<Entered<'_>, Refusal> {
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
        if bounded && table.in_flight.len() >= self.limit {
            return Err(Refusal::TooManyCalls { limit: self.limit });
        }
        let call_id = control.call_id.clone();
        table.in_flight.insert(call_id.clone(), control);
        Ok(Entered { calls: self, call_id })
    }

    /// Refuses the calls that the mark concerns from now on.
    pub(crate) fn mark(&self, mark: Mark) {
        let mut table = self.table.lock();
        if table.marks.len() == MARKS
            && let Some(oldest) = table.marks.pop_front()
            && let Some(next) = table.marks.front_mut()
        {
            // A call as old as these marks that has not entered yet is late enough to be ended by either of them.
            next.at = next.at.max(oldest.at);
            (next.session_id, next.motion) = (None, next.motion && oldest.motion);
        }
        table.marks.push_back(mark);
    }

    /// Refuses every call from now on.
    pub(crate) fn close(&self) {
        self.table.lock().closed = true;
    }

    pub(crate) fn find(&self, call_id: &str) -> Known {
        let table = self.table.lock();
        match table.in_flight.get(call_id) {
            Some(control) => Known::InFlight(control.clone()),
            None if table.ended.iter().any(|ended| ended == call_id) => Known::Ended,
            None => Known::Unknown,
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

/// A call in the table. Dropping it takes the call out, however the call's task ends.
#[derive(Debug)]
pub(crate) struct Entered<'a> {
    calls: &'a Calls,
    call_id: String,
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        let mut table = self.calls.table.lock();
        let control = table.in_flight.remove(&self.call_id);
        if let Some(control) = control {
            control.leave();
        }
        if table.ended.len() == REMEMBERED {
            table.ended.pop_front();
        }
        table.ended.push_back(std::mem::take(&mut self.call_id));
    }
}
