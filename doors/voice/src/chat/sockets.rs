//! Serves the sockets of a conversation, one after the other, to its end.
//!
//! Read [`Chat::serve`].

use std::pin::pin;
use std::sync::Arc;

use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::conversation::{Chat, REST_WAIT};
use crate::floor::Floor;
use crate::line::ChatError;
use crate::silence::{Silence, SocketTask};
use crate::socket::{DialError, Socket, SocketEvent, dial};

/// The reason why an open socket counts as lost.
const TOO_SLOW: &str = "the peer does not read: the write queue is full";

/// Why a socket ended.
enum Over {
    /// The conversation is over.
    Closed(String),
    /// Only the socket is lost.
    Lost(String),
    /// The door closes.
    Leaves,
}

impl Chat {
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
