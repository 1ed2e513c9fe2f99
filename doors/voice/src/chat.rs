//! One conversation: its sockets, one after the other, and the calls that it receives through them.
//!
//! `ledger`, `silence`, `floor` and `backoff` decide what follows from a call, a lost socket or an interruption. This module
//! carries out these decisions, and `hearing` those that follow from a frame.

mod hearing;

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use config::LongCalls as WhenLong;
use door::{Arrivals, Listing, LongCall, LongCalls, OwnTool as _, StopTool};
use ovos_toolbox_wire::Severity;
use serde_json::json;
use tokio::sync::watch;
use tokio::task::{Id, JoinSet};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::backoff::Backoff;
use crate::claim::Claim;
use crate::dialect::Target;
use crate::floor::Floor;
use crate::ledger::{CallKey, Ledger};
use crate::line::{ChatError, Line};
use crate::list::{at_most, shown_tools, too_large};
use crate::outcome::Outcome;
use crate::silence::{Silence, SocketTask};
use crate::socket::{DialError, Socket, SocketEvent, dial};

/// How long the end of a conversation waits for its calls. After that the door takes over the calls that go on.
const REST_WAIT: Duration = Duration::from_secs(3);

/// The kind of the event about a list of tools that a service refused.
const TOOLS_REFUSED: &str = "voice_tools_refused";

/// Why a socket ended.
enum Over {
    /// The conversation is over.
    Closed(String),
    /// Only the socket is lost.
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
    /// The order of its calls, over all its sockets.
    arrivals: Arrivals,
    /// The key of the call that each task in `calls` carries out, to end it.
    keys: HashMap<Id, CallKey>,
    /// The calls under way, to end them.
    under_way: HashMap<CallKey, Arc<LongCall<Outcome>>>,
    /// Those that were announced, which the voice can ask for.
    handles: Arc<LongCalls<Outcome>>,
    changes: watch::Receiver<Arc<Listing>>,
    /// How many tools the service is told of at most, since it refused more.
    most_tools: Option<usize>,
    leave: CancellationToken,
    backoff: Backoff,
    floor: Floor,
    claim: Option<Claim>,
}

impl Chat {
    /// Claims a conversation and opens its first socket. The conversation ends when `leave` is cancelled.
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
            WhenLong::Wait => None,
            WhenLong::Announce => Some(line.config.announce_after),
        };
        let chat = Self {
            ledger: Ledger::new(&name, announce_after),
            calls: JoinSet::new(),
            arrivals: line.door.arrivals(),
            keys: HashMap::new(),
            under_way: HashMap::new(),
            handles: Arc::new(LongCalls::new(REST_WAIT)),
            changes: line.door.changes(),
            most_tools: None,
            backoff: Backoff::new(Instant::now()),
            floor: Floor::default(),
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
    /// The conversation broke off: its socket could not be opened again.
    ///
    /// # Cancel safety
    /// If dropped, its calls are cancelled.
    pub(crate) async fn serve(mut self, mut socket: Socket) -> Result<(), ChatError> {
        let dialect = self.line.dialect.name();
        loop {
            tracing::info!(dialect, chat = self.ledger.chat(), "the conversation is open");
            let over = self.talk(&mut socket).await;
            // First of all: no voice can stop what moves any more.
            self.halt("the socket of its voice is closed");
            let chat = self.ledger.chat().to_owned();
            match over {
                Over::Closed(reason) => {
                    tracing::info!(dialect, chat, reason, "the conversation is over");
                    self.finish_calls(None).await;
                    self.leave_calls();
                    return Ok(());
                }
                Over::Leaves => {
                    self.end_all();
                    self.finish_calls(Some(&socket)).await;
                    socket.close().await;
                    return Ok(());
                }
                Over::Lost(reason) => tracing::warn!(dialect, chat, reason, "the socket is lost"),
            }
            drop(socket);
            self.backoff.lost(Instant::now());
            match self.reopened().await {
                Ok(Some(reopened)) => socket = reopened,
                Ok(None) => {
                    self.end_all();
                    self.finish_calls(None).await;
                    return Ok(());
                }
                Err(error) => {
                    tracing::warn!(dialect, chat, %error, "the conversation is given up");
                    self.finish_calls(None).await;
                    self.leave_calls();
                    return Err(error);
                }
            }
            self.backoff.opened(Instant::now());
        }
    }

    /// Serves one socket to its end.
    async fn talk(&mut self, socket: &mut Socket) -> Over {
        self.ledger.opened();
        self.floor = Floor::default();
        if !self.tell_tools(socket) {
            return Over::Lost(TOO_SLOW.to_owned());
        }
        let mut silence = Silence::new(Instant::now());
        loop {
            let until = match silence.need(self.ledger.moves(), Instant::now()) {
                SocketTask::Lost => return Over::Lost("it does not answer".to_owned()),
                SocketTask::Ping => {
                    socket.ping();
                    continue;
                }
                SocketTask::Nothing(until) => until,
            };
            let until = self.ledger.next_announcement().map_or(until, |at| at.min(until));
            let is_said = tokio::select! {
                () = self.leave.cancelled() => return Over::Leaves,
                came = socket.next() => {
                    silence.note_frame(Instant::now());
                    match came {
                        SocketEvent::Text(text) => match self.handle_frame(&text, socket) {
                            Ok(is_said) => is_said,
                            Err(reason) => return Over::Closed(reason),
                        },
                        SocketEvent::Sign => true,
                        SocketEvent::Closed(reason) => return Over::Closed(reason),
                        SocketEvent::Lost(reason) => return Over::Lost(reason),
                    }
                }
                Some(done) = self.calls.join_next_with_id() => self.call_ended(done, Some(socket)),
                // The sender is part of the door, which outlives this conversation.
                _ = self.changes.changed() => self.tell_tools(socket),
                () = sleep_until(until) => true,
            };
            let mut is_said = is_said;
            let announced = self.announced();
            is_said &= self.send_messages(&announced, socket);
            if !is_said {
                return Over::Lost(TOO_SLOW.to_owned());
            }
        }
    }

    /// Opens the socket again. `None` if the door closes.
    async fn reopened(&mut self) -> Result<Option<Socket>, ChatError> {
        loop {
            let opening = self.line.opening(&self.target)?;
            let Some(wait) = self.backoff.wait(Instant::now()) else {
                return Err(ChatError::GivenUp);
            };
            let trust = Arc::clone(&self.line.trust);
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
                        self.call_ended(done, None);
                    }
                }
            };
            match dialled {
                Ok(socket) => return Ok(Some(socket)),
                Err(DialError::Failed(reason)) => {
                    tracing::debug!(dialect = self.line.dialect.name(), reason, "not open again yet");
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn tell_tools(&mut self, socket: &Socket) -> bool {
        let listing = Arc::clone(&self.changes.borrow_and_update());
        let mut tools = shown_tools(&listing, self.announces());
        if let Some(most) = self.most_tools {
            at_most(&mut tools, most);
        }
        let frames = self.line.dialect.tools_changed(&tools);
        let size: usize = frames.iter().map(String::len).sum();
        if size > self.line.config.warn_list_bytes {
            tracing::warn!("{}", too_large(&tools, size, self.line.config.warn_list_bytes));
        }
        frames.into_iter().all(|frame| socket.send_text(frame))
    }

    /// Tells the service of half as many tools, because it refused them. When it refuses the stops, too, the user is told. Returns
    /// `false` if nothing can be sent any more.
    fn tell_fewer_tools(&mut self, socket: &Socket, why: &str) -> bool {
        let listing = self.line.door.listing();
        let tool_count = shown_tools(&listing, self.announces()).len();
        let limit = self.most_tools.map_or(tool_count, |most| most.min(tool_count));
        let dialect = self.line.dialect.name();
        if limit > StopTool::ALL.len() {
            let most = (limit / 2).max(StopTool::ALL.len());
            tracing::warn!(
                dialect,
                why,
                "the voice service rejected a list of {limit} tools; sending {most}"
            );
            self.most_tools = Some(most);
            self.publish_refusal(Severity::Warning, limit, most, why);
            return self.tell_tools(socket);
        }
        tracing::error!(
            dialect,
            why,
            "the voice service accepts no tools: this conversation can neither call nor stop anything"
        );
        if self.most_tools == Some(0) {
            return true;
        }
        self.most_tools = Some(0);
        self.publish_refusal(Severity::Error, limit, 0, why);
        let text = "I have no tools in this conversation: I can neither move nor stop anything. Use the machine's own switch.";
        let frames = self.line.dialect.text_frames(text);
        self.floor.want();
        frames.into_iter().all(|frame| socket.send_text(frame))
    }

    /// Tells the bus, and with it who asked for the conversation, that its service refused the list of tools.
    fn publish_refusal(&self, severity: Severity, told: usize, now: usize, why: &str) {
        let data = json!({
            "dialect": self.line.dialect.name(),
            "conversation": self.ledger.chat(),
            "refused": told,
            "now": now,
            "why": why,
        });
        if let Err(error) = self.line.door.client.event(TOOLS_REFUSED, severity, data) {
            tracing::warn!(%error, "the event about the refused tools was not sent");
        }
    }

    /// Cancels the calls that move something.
    fn halt(&mut self, reason: &'static str) {
        let keys = self.ledger.cancel_motion();
        self.end(&keys, reason);
    }

    /// Whether calls that take long are answered before their end.
    fn announces(&self) -> bool {
        self.line.config.long_calls == WhenLong::Announce
    }

    fn end(&self, keys: &[CallKey], reason: &'static str) {
        for key in keys {
            tracing::info!(tool_call_id = key.id, reason, "cancelling a call");
            if let Some(call) = self.under_way.get(key) {
                call.end(reason);
            }
        }
    }

    fn end_all(&self) {
        for call in self.under_way.values() {
            call.end("the conversation is over");
        }
    }

    /// Lets the door finish the calls that go on after the conversation. Calls that move something were cancelled before.
    fn leave_calls(&mut self) {
        let mut calls = std::mem::take(&mut self.calls);
        if calls.is_empty() {
            return;
        }
        let under_way = std::mem::take(&mut self.under_way);
        let leave = self.leave.clone();
        self.line.door.tasks.spawn(async move {
            let mut is_left = false;
            loop {
                tokio::select! {
                    ended = calls.join_next() => if ended.is_none() { return },
                    () = leave.cancelled(), if !is_left => {
                        is_left = true;
                        under_way.values().for_each(|call| call.end("the door is shutting down"));
                    }
                }
            }
        });
    }

    /// Waits for the end of the calls, up to a time limit.
    async fn finish_calls(&mut self, socket: Option<&Socket>) {
        let ending = async {
            while let Some(done) = self.calls.join_next_with_id().await {
                self.call_ended(done, socket);
            }
        };
        _ = timeout(REST_WAIT, ending).await;
    }
}

/// The reason why an open socket counts as lost.
const TOO_SLOW: &str = "too much waits to be written";
