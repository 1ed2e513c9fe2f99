//! Carries out what a frame asks for, and sends the answers.

use std::sync::Arc;

use config::Interrupt;
use door::{ListedTool, LongCallTool, OwnTool as _, StopTool, wait_limit};
use futures_util::FutureExt as _;
use ovos_toolbox_wire::{Effect, FailureKind, Object};
use serde_json::Value;
use tokio::task::{Id, JoinError};
use tokio::time::Instant;

use super::conversation::Chat;
use crate::call::{call, call_id};
use crate::claim::{Claim, ClaimError};
use crate::dialect::{Meaning, Target, VoiceCall};
use crate::kind::kind_of;
use crate::ledger::{CallKey, Kind, MessageForm, OutcomeMessage, Verdict};
use crate::outcome::Outcome;
use crate::socket::Socket;

/// The result of a request for a call.
enum RequestedCall {
    /// The call runs, or ran before.
    Runs,
    /// The call does not run, or its end is not waited for.
    Ended(CallKey, Outcome),
    /// The call ran before, and its outcome is sent again.
    Told(Box<OutcomeMessage>),
}

impl Chat {
    /// Handles a frame. Returns `false` if nothing can be sent any more. An error is the reason why the conversation is over.
    pub(super) fn handle_frame(&mut self, text: &str, socket: &Socket) -> Result<bool, String> {
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
                tracing::warn!(kind, %error, "dropped a frame that is not JSON");
                return Ok(true);
            }
        };
        let mut messages = Vec::new();
        // All calls of a frame are recorded before the first one is answered, because an answer says whether it is the last one.
        let mut ended = Vec::new();
        for heard in self.line.dialect.parse(&frame) {
            let call = match heard {
                Meaning::Call(asked) => asked,
                Meaning::IfStop(asked) if self.kind(&asked.name) == Kind::Stop => asked,
                Meaning::ToolsRefused(why) => {
                    if !self.tell_fewer_tools(socket, &why) {
                        return Ok(false);
                    }
                    continue;
                }
                other => {
                    self.handle_event(other)?;
                    continue;
                }
            };
            match self.begin_call(call) {
                RequestedCall::Runs => {}
                RequestedCall::Ended(key, outcome) => ended.push((key, outcome)),
                RequestedCall::Told(message) => messages.push(*message),
            }
        }
        for (key, outcome) in ended {
            messages.extend(self.ledger.ended(&key, outcome, true));
        }
        self.ledger.find_last(&mut messages);
        Ok(self.send_messages(&messages, socket))
    }

    /// Handles everything but calls.
    fn handle_event(&mut self, heard: Meaning) -> Result<(), String> {
        match heard {
            Meaning::Chat { id, group } => self.name(&id, group)?,
            Meaning::Cancel(ids) => {
                let keys = self.ledger.take_back(&ids);
                self.end(&keys, "the conversation withdrew it");
            }
            Meaning::Interrupted if self.line.config.interrupt == Interrupt::CancelMotion => {
                self.halt("the user interrupted");
            }
            Meaning::Floor { taken } => self.floor.changed(taken),
            Meaning::SpokeTooSoon => self.floor.refused(),
            Meaning::Complaint(complaint) => {
                self.floor.complained();
                let dialect = self.line.dialect.name();
                tracing::warn!(dialect, complaint, "the service complains");
            }
            Meaning::Call(_) | Meaning::IfStop(_) | Meaning::ToolsRefused(_) | Meaning::Interrupted => {}
        }
        Ok(())
    }

    /// Records the id of a chat that this door opened.
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

    fn tool(&self, name: &str) -> Option<Arc<ListedTool>> {
        self.line.door.listing().tool(name).cloned()
    }

    /// Returns the kind of a call of this tool.
    fn kind(&self, name: &str) -> Kind {
        match (StopTool::named(name), self.tool(name).map(|tool| tool.effect)) {
            (Some(_), _) | (None, Some(Effect::Stop)) => Kind::Stop,
            (None, Some(Effect::Motion)) => Kind::Motion,
            (None, _) => Kind::Other,
        }
    }

    /// Handles the request for a call.
    fn begin_call(&mut self, mut asked: VoiceCall) -> RequestedCall {
        let stop = StopTool::named(&asked.name);
        let tool = self.tool(&asked.name);
        let kind = self.kind(&asked.name);
        let name = asked.name.clone();
        // Arguments may be large and are needed only once.
        let arguments = std::mem::replace(&mut asked.arguments, Ok(Object::new()));
        let key = match self.ledger.judge(asked, kind, Instant::now()) {
            Verdict::Run(key) => {
                self.backoff.works();
                key
            }
            Verdict::Known => {
                tracing::debug!(tool = name, "a call came again, and does not run again");
                return RequestedCall::Runs;
            }
            Verdict::Again(message) => return RequestedCall::Told(message),
            Verdict::StopUnheard(key, outcome) => {
                self.stop_unheard(stop, tool.as_deref());
                return RequestedCall::Ended(key, outcome);
            }
            Verdict::Refuse(key, outcome) => return RequestedCall::Ended(key, outcome),
        };
        let door = Arc::clone(&self.line.door);
        if let Some(stop) = stop {
            let stopping = door.begin_stop(stop);
            let task = self.calls.spawn(async move { Outcome::of_door(stopping.await) });
            self.keys.insert(task.id(), key);
            return RequestedCall::Runs;
        }
        if self.announces()
            && let Some(tool) = LongCallTool::named(&name)
        {
            return self.ask_for_call(key, tool, &arguments.unwrap_or_default());
        }
        let Some(tool) = tool else {
            let message = format!("There is no tool {name:?}.");
            return RequestedCall::Ended(key, Outcome::failure(FailureKind::ValueError, message));
        };
        let args = match arguments {
            Ok(args) => args,
            // Validation never prevents a stop.
            Err(_) if tool.effect == Effect::Stop => Object::new(),
            Err(wrong) => {
                let message =
                    format!("{name} did not run. Its {wrong}. Call it again with arguments that fit.");
                return RequestedCall::Ended(key, Outcome::failure(FailureKind::ValueError, message));
            }
        };
        let call_id = call_id(self.line.dialect.name(), &key);
        let long = self.handles.call(&call_id, &name);
        let (client, turn) = (self.line.client.clone(), self.arrivals.turn());
        let task = self
            .calls
            .spawn(call(door, client, turn, tool, args, Arc::clone(&long)));
        self.keys.insert(task.id(), key.clone());
        self.under_way.insert(key, long);
        RequestedCall::Runs
    }

    /// Answers one of the tools that ask for calls that were announced.
    fn ask_for_call(&mut self, key: CallKey, tool: LongCallTool, arguments: &Object) -> RequestedCall {
        if tool == LongCallTool::List {
            return RequestedCall::Ended(key, Outcome::of_door(self.handles.listed()));
        }
        let call = match self.handles.named(tool, arguments) {
            Ok(call) => call,
            Err(unknown) => return RequestedCall::Ended(key, Outcome::refused(&unknown)),
        };
        if tool == LongCallTool::Cancel {
            call.end("the conversation cancelled it");
        }
        // It is answered itself before it counts as long.
        let limit = wait_limit(arguments, self.line.config.announce_after.mul_f64(0.75));
        let task = self.calls.spawn(async move {
            let outcome = call.outcome_within(limit).await;
            outcome.unwrap_or_else(|| match tool {
                LongCallTool::Cancel => Outcome::of_door(call.is_cancelled()),
                _ => Outcome::goes_on(call.tool(), Some(&call)),
            })
        });
        self.keys.insert(task.id(), key);
        RequestedCall::Runs
    }

    /// Returns the calls that are announced now. From now on the voice can ask for them, as long as its socket is open.
    pub(super) fn announced(&mut self) -> Vec<OutcomeMessage> {
        let mut announced = self.ledger.announced(Instant::now());
        for message in &mut announced {
            let key = CallKey {
                chat: self.ledger.chat().to_owned(),
                id: message.asked.id.clone(),
            };
            if let Some(call) = self.under_way.get(&key).filter(|call| self.handles.keep(call)) {
                message.outcome = Outcome::goes_on(&message.asked.name, Some(call));
            }
        }
        announced
    }

    /// Stops without waiting for an answer. A tool that stops is replaced by the emergency stop of its toolbox, which has the same
    /// effect.
    fn stop_unheard(&self, stop: Option<StopTool>, tool: Option<&ListedTool>) {
        let door = &self.line.door;
        // Each stop has been sent when its future first yields.
        match (stop, tool) {
            (Some(stop), _) => _ = door::stop(stop, door).now_or_never(),
            (None, tool) => {
                let toolbox = tool.map(|tool| tool.toolbox_id.as_str());
                _ = door.client.stop(toolbox).now_or_never();
            }
        }
    }

    /// Handles the end of a call. Returns `false` if nothing can be sent any more.
    pub(super) fn call_ended(
        &mut self,
        done: Result<(Id, Outcome), JoinError>,
        socket: Option<&Socket>,
    ) -> bool {
        let (task, outcome) = match done {
            Ok(done) => done,
            Err(error) => {
                tracing::error!(%error, "the door failed at a call");
                let message = "The door failed. The call may or may not have been carried out: check before you call it again.";
                (error.id(), Outcome::failure(FailureKind::InternalError, message))
            }
        };
        let Some(key) = self.keys.remove(&task) else {
            return true;
        };
        self.under_way.remove(&key);
        match (self.ledger.ended(&key, outcome, socket.is_some()), socket) {
            (Some(message), Some(socket)) => self.send_messages(&[message], socket),
            _ => true,
        }
    }

    /// Sends what is due, and lets the voice speak about it when it may. Returns `false` if nothing can be sent any more.
    pub(super) fn send_messages(&mut self, messages: &[OutcomeMessage], socket: &Socket) -> bool {
        for OutcomeMessage { asked, outcome, how } in messages {
            let frames = match how {
                MessageForm::Answer { .. } => self.line.dialect.answer(asked, outcome),
                MessageForm::Report => self.line.dialect.report(asked, outcome),
            };
            if !frames.into_iter().all(|frame| socket.send_text(frame)) {
                return false;
            }
            if *how != (MessageForm::Answer { is_last: false }) {
                self.floor.want();
            }
        }
        if !self.floor.is_due() {
            return true;
        }
        self.line
            .dialect
            .speak()
            .is_none_or(|frame| socket.send_text(frame))
    }
}
