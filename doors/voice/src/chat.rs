//! One conversation: its sockets, one after the other, and the calls that they bring.
//!
//! What a call, a lost socket or an interruption means is decided in `ledger` and `silence`; this carries it out.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use config::{Interrupt, LongCalls};
use door::{Listing, StopTool};
use ovos_toolbox_wire::Effect;
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::backoff::Backoff;
use crate::call::{call, call_id};
use crate::claim::{Claim, ClaimError};
use crate::dialect::{Asked, Heard, Target};
use crate::kind::kind_of;
use crate::ledger::{CallKey, How, Kind, Ledger, Saying, Verdict};
use crate::line::{ChatError, Line};
use crate::list::{shown, too_large};
use crate::outcome::Outcome;
use crate::silence::{Need, Silence};
use crate::socket::{Came, DialError, Socket, dial};

/// How long a lost socket is opened again for.
const RECONNECT_FOR: Duration = Duration::from_secs(120);

/// How long the calls of a conversation that ends may take to come to rest.
const REST_WAIT: Duration = Duration::from_secs(3);

/// How a socket came to its end.
enum Over {
    /// The conversation is over.
    Closed(String),
    /// The socket alone.
    Lost(String),
    /// The door closes.
    Leaves,
}

/// A conversation.
pub(crate) struct Chat {
    line: Arc<Line>,
    target: Target,
    ledger: Ledger,
    calls: JoinSet<Outcome>,
    /// Which call each task of `calls` is, and how it is ended.
    keys: HashMap<Id, CallKey>,
    ends: HashMap<CallKey, CancellationToken>,
    changes: watch::Receiver<Arc<Listing>>,
    leave: CancellationToken,
    backoff: Backoff,
    claim: Option<Claim>,
}

impl Chat {
    /// Claims a conversation and opens its first socket. It ends when `leave` is cancelled.
    ///
    /// # Cancel safety
    /// Safe: a dropped attempt leaves nothing behind.
    pub(crate) async fn open(
        line: Arc<Line>,
        target: Target,
        leave: CancellationToken,
    ) -> Result<(Self, Socket), ChatError> {
        let name = match &target {
            Target::Joined(chat) => chat.clone(),
            Target::Own { .. } => String::new(),
        };
        let opening = line.opening(&target)?;
        let claim = match &target {
            Target::Joined(chat) => Some(Claim::new(&line.claims, line.dialect.name(), chat)?),
            Target::Own { .. } => None,
        };
        let socket = dial(&opening, Arc::clone(&line.trust)).await?;
        let announce_after = match line.config.long_calls {
            LongCalls::Wait => None,
            LongCalls::Announce => Some(line.config.announce_after),
        };
        let chat = Self {
            ledger: Ledger::new(&name, announce_after),
            calls: JoinSet::new(),
            keys: HashMap::new(),
            ends: HashMap::new(),
            changes: line.door.changes(),
            backoff: Backoff::new(),
            line,
            target,
            leave,
            claim,
        };
        Ok((chat, socket))
    }

    /// Serves the conversation to its end.
    ///
    /// # Errors
    /// It did not end by itself: no socket could be opened again.
    ///
    /// # Cancel safety
    /// If dropped, its calls are cancelled.
    pub(crate) async fn serve(mut self, mut socket: Socket) -> Result<(), ChatError> {
        let dialect = self.line.dialect.name();
        loop {
            tracing::info!(dialect, chat = self.ledger.chat(), "the conversation is open");
            let over = self.talk(&mut socket).await;
            // Before anything else: no voice can stop what moves any more.
            self.halt("the socket of its voice is closed");
            let chat = self.ledger.chat().to_owned();
            match over {
                Over::Closed(reason) => {
                    tracing::info!(dialect, chat, reason, "the conversation is over");
                    self.rest(None).await;
                    return Ok(());
                }
                Over::Leaves => {
                    for end in self.ends.values() {
                        end.cancel();
                    }
                    self.rest(Some(&socket)).await;
                    socket.close().await;
                    return Ok(());
                }
                Over::Lost(reason) => tracing::warn!(dialect, chat, reason, "the socket is lost"),
            }
            drop(socket);
            match self.reopened().await {
                Ok(Some(reopened)) => socket = reopened,
                Ok(None) => {
                    self.rest(None).await;
                    return Ok(());
                }
                Err(error) => {
                    tracing::warn!(dialect, chat, %error, "the conversation is given up");
                    self.rest(None).await;
                    return Err(error);
                }
            }
        }
    }

    /// Serves one socket to its end.
    async fn talk(&mut self, socket: &mut Socket) -> Over {
        self.ledger.opened();
        if !self.tell_tools(socket) {
            return Over::Lost(TOO_SLOW.to_owned());
        }
        let mut silence = Silence::new(Instant::now());
        loop {
            let until = match silence.need(self.ledger.moves(), Instant::now()) {
                Need::Lost => return Over::Lost("it gives no sign of life".to_owned()),
                Need::Ping => {
                    socket.ping();
                    continue;
                }
                Need::Nothing(until) => until,
            };
            let until = self.ledger.next_announcement().map_or(until, |at| at.min(until));
            let is_said = tokio::select! {
                () = self.leave.cancelled() => return Over::Leaves,
                came = socket.next() => {
                    silence.heard(Instant::now());
                    match came {
                        Came::Text(text) => match self.hear(&text, socket) {
                            Ok(is_said) => is_said,
                            Err(reason) => return Over::Closed(reason),
                        },
                        Came::Sign => true,
                        Came::Closed(reason) => return Over::Closed(reason),
                        Came::Lost(reason) => return Over::Lost(reason),
                    }
                }
                Some(done) = self.calls.join_next_with_id() => self.told(done, Some(socket)),
                // The sender is part of the door, which outlives this.
                _ = self.changes.changed() => self.tell_tools(socket),
                () = sleep_until(until) => true,
            };
            let mut is_said = is_said;
            for saying in self.ledger.announced(Instant::now()) {
                is_said &= self.say(&saying, socket);
            }
            if !is_said {
                return Over::Lost(TOO_SLOW.to_owned());
            }
        }
    }

    /// Opens the socket again. `None`: the door closes.
    async fn reopened(&mut self) -> Result<Option<Socket>, ChatError> {
        let give_up = Instant::now() + RECONNECT_FOR;
        loop {
            let opening = self.line.opening(&self.target)?;
            let (wait, trust) = (self.backoff.wait(), Arc::clone(&self.line.trust));
            let attempt = async {
                sleep(wait).await;
                dial(&opening, trust).await
            };
            let mut attempt = pin!(attempt);
            let dialled = loop {
                tokio::select! {
                    () = self.leave.cancelled() => return Ok(None),
                    dialled = &mut attempt => break dialled,
                    Some(done) = self.calls.join_next_with_id() => {
                        self.told(done, None);
                    }
                }
            };
            match dialled {
                Ok(socket) => return Ok(Some(socket)),
                Err(DialError::Failed(reason)) if Instant::now() < give_up => {
                    tracing::debug!(dialect = self.line.dialect.name(), reason, "not open again yet");
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Reads a frame. False: nothing can be said any more. An error is the reason for which the conversation is over.
    fn hear(&mut self, text: &str, socket: &Socket) -> Result<bool, String> {
        let Some(kind) = kind_of(text) else {
            tracing::debug!(bytes = text.len(), "dropped a frame without a type");
            return Ok(true);
        };
        if !self.line.dialect.reads(kind) {
            return Ok(true);
        }
        let frame: Value = match serde_json::from_str(text) {
            Ok(frame) => frame,
            Err(error) => {
                tracing::warn!(kind, %error, "dropped a frame that is no JSON");
                return Ok(true);
            }
        };
        self.backoff.reset();
        let mut sayings = Vec::new();
        // All calls of a frame are known before the first one is answered: an answer says whether it is the last one.
        let mut refused = Vec::new();
        for heard in self.line.dialect.parse(&frame) {
            match heard {
                Heard::Chat { id, group } => self.name(&id, group)?,
                Heard::Call(asked) => match self.ask(asked) {
                    Asking::Runs => {}
                    Asking::Refused(key, outcome) => refused.push((key, outcome)),
                    Asking::Told(saying) => sayings.push(*saying),
                },
                Heard::Cancel(ids) => {
                    let keys = self.ledger.take_back(&ids);
                    self.end(&keys, "its voice took it back");
                }
                Heard::Interrupted if self.line.config.interrupt == Interrupt::CancelMotion => {
                    self.halt("the user interrupted");
                }
                Heard::Interrupted => {}
                Heard::Complaint(complaint) => {
                    tracing::warn!(
                        dialect = self.line.dialect.name(),
                        complaint,
                        "the service complains"
                    );
                }
            }
        }
        for (key, outcome) in refused {
            sayings.extend(self.ledger.ended(&key, outcome, true));
        }
        Ok(sayings.iter().all(|saying| self.say(saying, socket)))
    }

    /// A chat of our own says who it is.
    fn name(&mut self, chat: &str, group: Option<String>) -> Result<(), String> {
        let Target::Own { resumes } = &mut self.target else {
            return Ok(());
        };
        if group.is_some() {
            *resumes = group;
        }
        if self.ledger.chat() == chat {
            return Ok(());
        }
        let dialect = self.line.dialect.name();
        self.claim = match Claim::new(&self.line.claims, dialect, chat) {
            Ok(claim) => Some(claim),
            Err(error @ ClaimError::Taken) => return Err(error.to_string()),
            Err(error) => {
                tracing::warn!(%error, "another program could join this conversation, and run its calls again");
                None
            }
        };
        tracing::info!(dialect, chat, "this is the conversation's id");
        self.ledger.named(chat);
        Ok(())
    }

    /// A call is asked for.
    fn ask(&mut self, asked: Asked) -> Asking {
        let stop = StopTool::named(&asked.name);
        let tool = self.line.door.listing().tool(&asked.name).cloned();
        let kind = match (stop, tool.as_ref().map(|tool| tool.effect)) {
            (Some(_), _) | (None, Some(Effect::Stop)) => Kind::Stop,
            (None, Some(Effect::Motion)) => Kind::Motion,
            (None, _) => Kind::Other,
        };
        let (name, arguments) = (asked.name.clone(), asked.arguments.clone());
        let key = match self.ledger.asked(asked, kind, Instant::now()) {
            Verdict::Run(key) => key,
            Verdict::Known => {
                tracing::debug!(tool = name, "a call came again, and does not run again");
                return Asking::Runs;
            }
            Verdict::Again(saying) => return Asking::Told(saying),
            Verdict::Refuse(key, outcome) => return Asking::Refused(key, outcome),
        };
        let door = Arc::clone(&self.line.door);
        if let Some(stop) = stop {
            let stopping = async move { Outcome::stopped(door::stop(stop, &door).await) };
            let task = self.calls.spawn(stopping);
            self.keys.insert(task.id(), key);
            return Asking::Runs;
        }
        let Some(tool) = tool else {
            let message = format!("There is no tool {name:?}.");
            return Asking::Refused(key, Outcome::failure("ValueError", message));
        };
        let args = match arguments {
            Ok(args) => args,
            // A stop is never validated away.
            Err(_) if tool.effect == Effect::Stop => ovos_toolbox_wire::Object::new(),
            Err(wrong) => {
                let message =
                    format!("{name} did not run. Its {wrong}. Call it again with arguments that fit.");
                return Asking::Refused(key, Outcome::failure("ValueError", message));
            }
        };
        let end = CancellationToken::new();
        let call_id = call_id(self.line.dialect.name(), &key);
        let task = self.calls.spawn(call(door, tool, call_id, args, end.clone()));
        self.keys.insert(task.id(), key.clone());
        self.ends.insert(key, end);
        Asking::Runs
    }

    /// A call has ended. False: nothing can be said any more.
    fn told(&mut self, done: Result<(Id, Outcome), JoinError>, socket: Option<&Socket>) -> bool {
        let (task, outcome) = match done {
            Ok(done) => done,
            Err(error) => {
                tracing::error!(%error, "the door failed at a call");
                let message = "The door failed. It is not known whether the call was carried out.";
                (error.id(), Outcome::failure("InternalError", message))
            }
        };
        let Some(key) = self.keys.remove(&task) else {
            return true;
        };
        self.ends.remove(&key);
        match (self.ledger.ended(&key, outcome, socket.is_some()), socket) {
            (Some(saying), Some(socket)) => self.say(&saying, socket),
            _ => true,
        }
    }

    fn say(&self, saying: &Saying, socket: &Socket) -> bool {
        let Saying { asked, outcome, how } = saying;
        let frames = match how {
            How::Answer { is_last } => self.line.dialect.answer(asked, outcome, *is_last),
            How::Report => self.line.dialect.report(asked, outcome),
        };
        frames.into_iter().all(|frame| socket.say(frame))
    }

    fn tell_tools(&mut self, socket: &Socket) -> bool {
        let listing = Arc::clone(&self.changes.borrow_and_update());
        let tools = shown(&listing);
        let frames = self.line.dialect.tools_changed(&tools);
        let size: usize = frames.iter().map(String::len).sum();
        if size > self.line.config.warn_list_bytes {
            tracing::warn!("{}", too_large(&tools, size, self.line.config.warn_list_bytes));
        }
        frames.into_iter().all(|frame| socket.say(frame))
    }

    /// Cancels what moves.
    fn halt(&mut self, reason: &str) {
        let keys = self.ledger.cancel_motion();
        self.end(&keys, reason);
    }

    fn end(&self, keys: &[CallKey], reason: &str) {
        for key in keys {
            tracing::info!(tool_call_id = key.id, reason, "cancelling a call");
            if let Some(end) = self.ends.get(key) {
                end.cancel();
            }
        }
    }

    /// Waits until the calls have ended; those that do not are cancelled when this is dropped.
    async fn rest(&mut self, socket: Option<&Socket>) {
        let ending = async {
            while let Some(done) = self.calls.join_next_with_id().await {
                self.told(done, socket);
            }
        };
        _ = timeout(REST_WAIT, ending).await;
    }
}

/// Why a socket counts as lost that is open.
const TOO_SLOW: &str = "too much waits to be written";

/// What became of the request for a call.
enum Asking {
    /// It runs, or did.
    Runs,
    /// It does not.
    Refused(CallKey, Outcome),
    /// It ran, and this is told again.
    Told(Box<Saying>),
}
