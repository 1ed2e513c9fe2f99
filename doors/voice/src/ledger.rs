//! The calls of one chat: which are new, which one has to end, and which answer goes where. Pure.
//!
//! A chat can have several sockets, one after the other. A call is known by the id of its chat and its own id; it runs once,
//! whatever sockets bring it how often. An answer goes to the last socket that asked for it, or nowhere: one that was said on a
//! lost socket may not have arrived, so a call that comes again on the next one is answered again.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;

use ovos_toolbox_wire::FailureKind;
use tokio::time::Instant;

use crate::dialect::{Asked, MAX_ID};
use crate::outcome::Outcome;

/// How many calls of a chat may run at the same time, beside stops.
pub(crate) const MAX_RUNNING: usize = 64;

/// How many calls a chat may make beside stops. None is forgotten, so that none runs twice.
pub(crate) const MAX_CALLS: usize = 65_536;

/// How many stops of a chat are waited for at the same time. A further one is carried out all the same.
pub(crate) const MAX_STOPPING: usize = 16;

/// How many stops are known by their ids. One that comes again later stops again, which does no harm.
const MAX_STOPS: usize = 1024;

/// How many outcomes are kept for calls that come again.
const MAX_KEPT: usize = 64;

/// What a call is known by.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct CallKey {
    pub(crate) chat: String,
    pub(crate) id: String,
}

/// What a call is, for the rules about ending it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It moves a machine.
    Motion,
    /// It moves nothing, or brings a machine to safety.
    Other,
    /// One of the two stops: never refused.
    Stop,
}

/// What to do about a call that is asked for.
#[derive(Debug, PartialEq)]
pub(crate) enum Verdict {
    /// It is new: run it.
    Run(CallKey),
    /// It runs, or was answered on this socket: do nothing.
    Known,
    /// It ran, and was asked for on a socket that is lost: tell this now.
    Again(Box<Saying>),
    /// It is a new stop, and many are waited for already: stop, wait for nothing, and tell this.
    StopUnheard(CallKey, Outcome),
    /// It is new and must not run.
    Refuse(CallKey, Outcome),
}

/// An answer or a report that is due.
#[derive(Debug, PartialEq)]
pub(crate) struct Saying {
    pub(crate) asked: Asked,
    pub(crate) outcome: Outcome,
    pub(crate) how: How,
}

/// How an outcome is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// As the answer to the call. `is_last`: no other call of its turn waits for one.
    Answer { is_last: bool },
    /// As news about a call that was answered before it had ended.
    Report,
}

/// The calls of one chat.
pub(crate) struct Ledger {
    announce_after: Option<Duration>,
    chat: String,
    socket: u64,
    /// All that were ever asked for but stops, and on which socket last.
    known: HashMap<CallKey, u64>,
    /// The same of the last stops.
    stops: VecDeque<(CallKey, u64)>,
    /// How many stops had no id.
    nameless: u64,
    running: BTreeMap<CallKey, Running>,
    /// The outcomes of those that ended last.
    kept: VecDeque<(CallKey, Outcome)>,
}

struct Running {
    asked: Asked,
    kind: Kind,
    socket: u64,
    /// When it is answered although it goes on.
    announce_at: Option<Instant>,
    was_announced: bool,
    was_cancelled: bool,
}

impl Ledger {
    /// `announce_after`: a call that takes longer is answered before it has ended.
    pub(crate) fn new(chat: &str, announce_after: Option<Duration>) -> Self {
        Self {
            announce_after,
            chat: chat.to_owned(),
            socket: 0,
            known: HashMap::new(),
            stops: VecDeque::new(),
            nameless: 0,
            running: BTreeMap::new(),
            kept: VecDeque::new(),
        }
    }

    /// A socket is open; what was asked on another one is not answered on it.
    pub(crate) fn opened(&mut self) {
        self.socket += 1;
    }

    /// The chat's id, when it is told.
    pub(crate) fn named(&mut self, chat: &str) {
        chat.clone_into(&mut self.chat);
    }

    /// The chat's id.
    pub(crate) fn chat(&self) -> &str {
        &self.chat
    }

    /// A call is asked for. A stop without an id gets one of this program.
    pub(crate) fn asked(&mut self, asked: Asked, kind: Kind, now: Instant) -> Verdict {
        let mut key = CallKey {
            chat: self.chat.clone(),
            id: asked.id.clone(),
        };
        if key.id.is_empty() {
            self.nameless += 1;
            // Longer than the id of any call that is accepted.
            key.id = format!("{:0>1$}", self.nameless, MAX_ID + 1);
        }
        if let Some(socket) = self.seen(&key, kind) {
            return match socket == self.socket {
                true => Verdict::Known,
                false => self.asked_again(asked, &key, now),
            };
        }
        let busy = |message: String| Some(Outcome::failure(FailureKind::BusyError, message));
        let count = |stop: bool| {
            self.running
                .values()
                .filter(|running| (running.kind == Kind::Stop) == stop)
                .count()
        };
        let is_full = self.known.len() >= MAX_CALLS;
        let refusal = match kind {
            Kind::Stop if count(true) >= MAX_STOPPING => busy(format!(
                "The stop was sent, but is NOT confirmed: {MAX_STOPPING} stops of this chat wait for theirs already."
            )),
            Kind::Stop => None,
            _ if is_full => busy(format!(
                "This chat has made {MAX_CALLS} calls, and may make no more: begin a new one."
            )),
            _ if count(false) >= MAX_RUNNING => busy(format!(
                "{MAX_RUNNING} calls of this chat run already: wait until one of them has ended."
            )),
            _ => None,
        };
        if kind == Kind::Stop {
            self.stops.push_back((key.clone(), self.socket));
            if self.stops.len() > MAX_STOPS {
                self.stops.pop_front();
            }
        } else if !is_full {
            self.known.insert(key.clone(), self.socket);
        }
        let announce_at = match kind {
            Kind::Stop => None,
            _ => self.announce_after.map(|after| now + after),
        };
        let running = Running {
            asked,
            kind,
            socket: self.socket,
            announce_at,
            was_announced: false,
            was_cancelled: false,
        };
        self.running.insert(key.clone(), running);
        match refusal {
            Some(outcome) if kind == Kind::Stop => Verdict::StopUnheard(key, outcome),
            Some(outcome) => Verdict::Refuse(key, outcome),
            None => Verdict::Run(key),
        }
    }

    /// On which socket a call was asked for last; from now on it is this one.
    fn seen(&mut self, key: &CallKey, kind: Kind) -> Option<u64> {
        let socket = match kind {
            Kind::Stop => self
                .stops
                .iter_mut()
                .find(|(stop, _)| stop == key)
                .map(|(_, socket)| socket),
            _ => self.known.get_mut(key),
        };
        socket.map(|socket| std::mem::replace(socket, self.socket))
    }

    /// A call that is known comes again on another socket.
    fn asked_again(&mut self, asked: Asked, key: &CallKey, now: Instant) -> Verdict {
        if let Some(running) = self.running.get_mut(key) {
            // Its answer goes to this socket. What the lost one was told does not count.
            running.asked = asked;
            running.socket = self.socket;
            if running.was_announced {
                running.was_announced = false;
                running.announce_at = self.announce_after.map(|after| now + after);
            }
            return Verdict::Known;
        }
        if !asked.wants_answer {
            return Verdict::Known;
        }
        let kept = self.kept.iter().find(|(kept, _)| kept == key);
        let outcome = kept.map_or_else(
            || {
                let name = &asked.name;
                let message = format!(
                    "{name} was carried out before, and is not again. How it ended is not known any more."
                );
                Outcome::failure("RepeatedCall", message)
            },
            |(_, outcome)| outcome.clone(),
        );
        let how = How::Answer { is_last: true };
        Verdict::Again(Box::new(Saying { asked, outcome, how }))
    }

    /// A call has ended. What is to be told to the socket that is open, if anything is.
    pub(crate) fn ended(&mut self, key: &CallKey, outcome: Outcome, is_open: bool) -> Option<Saying> {
        let Running {
            asked,
            socket,
            was_announced,
            ..
        } = self.running.remove(key)?;
        self.kept.push_back((key.clone(), outcome.clone()));
        if self.kept.len() > MAX_KEPT {
            self.kept.pop_front();
        }
        let is_here = is_open && socket == self.socket;
        let how = match was_announced {
            true => How::Report,
            false => How::Answer {
                is_last: !self.waits(asked.turn.as_deref()),
            },
        };
        (is_here && asked.wants_answer).then_some(Saying { asked, outcome, how })
    }

    /// The calls that go on for longer than a voice waits: each is answered now, and its end is reported.
    pub(crate) fn announced(&mut self, now: Instant) -> Vec<Saying> {
        let mut due = Vec::new();
        for running in self.running.values_mut() {
            if running.announce_at.is_none_or(|at| at > now) {
                continue;
            }
            running.announce_at = None;
            // One that waits for no answer, or was asked for on a socket that is gone, is told nothing.
            if running.asked.wants_answer && running.socket == self.socket {
                running.was_announced = true;
                due.push(running.asked.clone());
            }
        }
        let say = |asked: Asked| {
            let outcome = Outcome::goes_on(&asked.name);
            let how = How::Answer { is_last: true };
            Saying { asked, outcome, how }
        };
        let mut sayings: Vec<Saying> = due.into_iter().map(say).collect();
        self.find_last(&mut sayings);
        sayings
    }

    /// Says of answers that are due together which ones are the last of their turns.
    pub(crate) fn find_last(&self, sayings: &mut [Saying]) {
        let mut later: Vec<Option<String>> = Vec::new();
        for Saying { asked, how, .. } in sayings.iter_mut().rev() {
            let How::Answer { is_last } = how else { continue };
            let one_follows = asked.turn.is_some() && later.contains(&asked.turn);
            *is_last = !one_follows && !self.waits(asked.turn.as_deref());
            later.push(asked.turn.clone());
        }
    }

    /// When [`announced`](Self::announced) has something to tell.
    pub(crate) fn next_announcement(&self) -> Option<Instant> {
        self.running
            .values()
            .filter_map(|running| running.announce_at)
            .min()
    }

    /// What moves something and was not cancelled yet: to be cancelled now, because its socket is gone, or the user
    /// interrupted.
    pub(crate) fn cancel_motion(&mut self) -> Vec<CallKey> {
        self.cancel_where(|running| running.kind == Kind::Motion)
    }

    /// The same for the calls that the service takes back.
    pub(crate) fn take_back(&mut self, ids: &[String]) -> Vec<CallKey> {
        self.cancel_where(|running| running.kind != Kind::Stop && ids.contains(&running.asked.id))
    }

    fn cancel_where(&mut self, applies: impl Fn(&Running) -> bool) -> Vec<CallKey> {
        let mut keys = Vec::new();
        for (key, running) in &mut self.running {
            if !running.was_cancelled && applies(running) {
                running.was_cancelled = true;
                keys.push(key.clone());
            }
        }
        keys
    }

    /// Whether something moves for this chat.
    pub(crate) fn moves(&self) -> bool {
        self.running.values().any(|running| running.kind == Kind::Motion)
    }

    /// Whether a call of this turn waits for its answer.
    fn waits(&self, turn: Option<&str>) -> bool {
        turn.is_some()
            && self.running.values().any(|running| {
                running.asked.turn.as_deref() == turn
                    && running.asked.wants_answer
                    && !running.was_announced
                    && running.socket == self.socket
            })
    }
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
