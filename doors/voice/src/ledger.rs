//! The calls of one chat. Decides which calls are new, which have to end, and to which socket an answer goes. Pure.
//!
//! A chat can have several sockets, one after the other. A call is identified by the id of its chat and its own id. It runs once,
//! however often and on whichever sockets it arrives. An answer goes to the last socket that asked for it, or nowhere. An answer
//! that was sent on a lost socket may not have arrived, so a call that is repeated on the next socket is answered again.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;

use ovos_toolbox_wire::FailureKind;
use tokio::time::Instant;

use crate::dialect::{MAX_ID, VoiceCall};
use crate::outcome::Outcome;

/// How many calls of a chat may run at the same time. Stops do not count.
pub(crate) const MAX_RUNNING: usize = 64;

/// How many calls a chat may make in total. Stops do not count. All are remembered, so that none runs twice.
pub(crate) const MAX_CALLS: usize = 65_536;

/// How many stops of a chat are waited for at the same time. Further stops are carried out without waiting.
pub(crate) const MAX_STOPPING: usize = 16;

/// How many stops are remembered by their ids. A stop that was forgotten and is repeated stops again, which does no harm.
const MAX_STOPS: usize = 1024;

/// How many outcomes are kept for calls that are repeated.
const MAX_KEPT: usize = 64;

/// The identity of a call.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct CallKey {
    pub(crate) chat: String,
    pub(crate) id: String,
}

/// The kind of a call, for the rules about ending it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The call moves a machine.
    Motion,
    /// The call moves nothing, or brings a machine to safety.
    Other,
    /// The call is a stop, which is never refused.
    Stop,
}

/// The decision about a requested call.
#[derive(Debug, PartialEq)]
pub(crate) enum Verdict {
    /// The call is new: run it.
    Run(CallKey),
    /// The call runs, or was answered on this socket: do nothing.
    Known,
    /// The call ran, and was requested on a socket that is lost: send this now.
    Again(Box<OutcomeMessage>),
    /// The call is a new stop, and many stops are already waited for: stop without waiting, and send this.
    StopUnheard(CallKey, Outcome),
    /// The call is new and must not run.
    Refuse(CallKey, Outcome),
}

/// An answer or a report that has to be sent.
#[derive(Debug, PartialEq)]
pub(crate) struct OutcomeMessage {
    pub(crate) asked: VoiceCall,
    pub(crate) outcome: Outcome,
    pub(crate) how: MessageForm,
}

/// The form in which an outcome is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MessageForm {
    /// The answer to the call. `is_last`: no other call of its turn waits for an answer.
    Answer { is_last: bool },
    /// A report about a call that was answered before its end.
    Report,
}

/// The calls of one chat.
pub(crate) struct Ledger {
    announce_after: Option<Duration>,
    chat: String,
    socket: u64,
    /// All calls that were ever requested, without stops, and the last socket of each.
    known: HashMap<CallKey, u64>,
    /// The last stops, and the last socket of each.
    stops: VecDeque<(CallKey, u64)>,
    /// The number of stops without an id.
    nameless: u64,
    running: BTreeMap<CallKey, Running>,
    /// The outcomes of the calls that ended last.
    kept: VecDeque<(CallKey, Outcome)>,
}

struct Running {
    asked: VoiceCall,
    kind: Kind,
    socket: u64,
    /// When the call is answered even if it still runs.
    announce_at: Option<Instant>,
    was_announced: bool,
    was_cancelled: bool,
}

impl Ledger {
    /// Creates a ledger. `announce_after`: a call that takes longer is answered before its end.
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

    /// Records that a new socket is open. Calls of other sockets are not answered on it.
    pub(crate) fn opened(&mut self) {
        self.socket += 1;
    }

    /// Records the chat's id when the service tells it.
    pub(crate) fn named(&mut self, chat: &str) {
        chat.clone_into(&mut self.chat);
    }

    /// The chat's id.
    pub(crate) fn chat(&self) -> &str {
        &self.chat
    }

    /// Handles the request for a call. A stop without an id gets one from this program.
    pub(crate) fn judge(&mut self, asked: VoiceCall, kind: Kind, now: Instant) -> Verdict {
        let mut key = CallKey {
            chat: self.chat.clone(),
            id: asked.id.clone(),
        };
        if key.id.is_empty() {
            self.nameless += 1;
            // The id is longer than any id that is accepted in a call, so it is unique.
            key.id = format!("{:0>1$}", self.nameless, MAX_ID + 1);
        }
        if let Some(socket) = self.move_to_socket(&key, kind) {
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
                "The stop was sent, but is NOT confirmed: {MAX_STOPPING} stops of this conversation are already waiting to be confirmed."
            )),
            Kind::Stop => None,
            _ if is_full => busy(format!(
                "The call limit of this conversation is reached ({MAX_CALLS}): start a new conversation."
            )),
            _ if count(false) >= MAX_RUNNING => busy(format!(
                "{MAX_RUNNING} calls of this conversation are already running: wait until one of them has ended."
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

    /// Returns the last socket that the call was requested on. From now on it is this one.
    fn move_to_socket(&mut self, key: &CallKey, kind: Kind) -> Option<u64> {
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

    /// Handles a known call that is repeated on another socket.
    fn asked_again(&mut self, asked: VoiceCall, key: &CallKey, now: Instant) -> Verdict {
        if let Some(running) = self.running.get_mut(key) {
            // The answer goes to this socket. Anything that was sent on the lost one does not count.
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
                    "{name} already ran in this conversation and was not repeated. Its result is no longer available."
                );
                Outcome::failure("RepeatedCall", message)
            },
            |(_, outcome)| outcome.clone(),
        );
        let how = MessageForm::Answer { is_last: true };
        Verdict::Again(Box::new(OutcomeMessage { asked, outcome, how }))
    }

    /// Records that a call has ended. Returns what to send to the open socket, if anything.
    pub(crate) fn ended(&mut self, key: &CallKey, outcome: Outcome, is_open: bool) -> Option<OutcomeMessage> {
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
            true => MessageForm::Report,
            false => MessageForm::Answer {
                is_last: !self.waits(asked.turn.as_deref()),
            },
        };
        (is_here && asked.wants_answer).then_some(OutcomeMessage { asked, outcome, how })
    }

    /// Returns the calls that run for longer than `announce_after`. Each is answered now, and its end is reported.
    pub(crate) fn announced(&mut self, now: Instant) -> Vec<OutcomeMessage> {
        let mut due = Vec::new();
        for running in self.running.values_mut() {
            if running.announce_at.is_none_or(|at| at > now) {
                continue;
            }
            running.announce_at = None;
            // A call that needs no answer, or was requested on a lost socket, gets no announcement.
            if running.asked.wants_answer && running.socket == self.socket {
                running.was_announced = true;
                due.push(running.asked.clone());
            }
        }
        let say = |asked: VoiceCall| {
            let outcome = Outcome::goes_on(&asked.name, None);
            let how = MessageForm::Answer { is_last: true };
            OutcomeMessage { asked, outcome, how }
        };
        let mut messages: Vec<OutcomeMessage> = due.into_iter().map(say).collect();
        self.find_last(&mut messages);
        messages
    }

    /// Sets in answers that are due together which ones are the last of their turns.
    pub(crate) fn find_last(&self, messages: &mut [OutcomeMessage]) {
        let mut later: Vec<Option<String>> = Vec::new();
        for OutcomeMessage { asked, how, .. } in messages.iter_mut().rev() {
            let MessageForm::Answer { is_last } = how else {
                continue;
            };
            let one_follows = asked.turn.is_some() && later.contains(&asked.turn);
            *is_last = !one_follows && !self.waits(asked.turn.as_deref());
            later.push(asked.turn.clone());
        }
    }

    /// Returns when [`announced`](Self::announced) next has a result.
    pub(crate) fn next_announcement(&self) -> Option<Instant> {
        self.running
            .values()
            .filter_map(|running| running.announce_at)
            .min()
    }

    /// Returns the calls to cancel because their socket is lost or the user interrupted: those that move something and were not
    /// cancelled yet.
    pub(crate) fn cancel_motion(&mut self) -> Vec<CallKey> {
        self.cancel_where(|running| running.kind == Kind::Motion)
    }

    /// Returns the calls to cancel because the service cancelled them.
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

    /// Whether a call of this chat moves something.
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
