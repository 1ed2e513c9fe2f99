//! Handles the notices of a toolbox: passes answers to the waiting callers. Read [`Peer::hear`], then [`Peer::ended`].

use std::collections::HashMap;
use std::convert::Infallible;
use std::time::{Duration, Instant};

use ovos_toolbox_wire::{Completion, Content, Failure, FailureKind};
use program::json;
use program::message_limits::MAX_SMALL_BYTES;
use program::payload::MAX_FAILURE_BYTES;
use protocol::{Answer, Notice, Order, Raw, RunEnd};
use serde_json::Value;

use super::state::{Departure, End, Peer, Run};
use crate::contract::answer;
use crate::contract::services::{Origin, Request};
use engine::{NoAnswer, RunResult};

impl Peer {
    /// Handles a notice of the toolbox.
    pub(crate) fn hear(&self, notice: Notice) {
        match notice {
            Notice::Opened { seq, answer } => {
                let opened = answer::into_result(brief(answer));
                let mut state = self.lock();
                // Only the first answer counts: the functions of a toolbox do not change afterwards.
                if let Some((_, sender)) = state.opened.take_if(|(asked, _)| *asked == seq) {
                    state.functions = opened.as_ref().ok().copied();
                    _ = sender.send(opened.map(drop).map_err(|unanswered| unanswered.into_failure()));
                }
            }
            Notice::Tools { seq, answer } => self.answered(seq, answer),
            Notice::Planned { seq, answer } => self.answered(seq, answer),
            Notice::Concluded { seq, answer } => self.answered(seq, answer),
            Notice::Closable { seq, answer } => self.answered(seq, answer),
            Notice::Halted { seq, answer } | Notice::Resumed { seq, answer } => {
                let command = self.lock().commands.remove(&seq);
                if let Some(command) = command {
                    // This fails if the caller gave up.
                    _ = command
                        .reply
                        .send(answer::into_result(brief(answer)).map_err(|unanswered| *unanswered));
                }
            }
            Notice::Ended { run, end, content } => {
                if let Some(run) = self.take(run) {
                    let ended = match self.too_long("the result", length(&end, content.as_ref())) {
                        None => answer::ended(&end, content.as_ref()),
                        Some(failure) => RunResult::Reported(Completion::Error(failure)),
                    };
                    _ = run.ended.send(ended);
                }
            }
            Notice::Progress { run, progress } => {
                let sink = self.lock().runs.get(&run).and_then(|run| run.progress.clone());
                let progress = self.unasked.progress(sink.is_some(), verbatim(progress.text()));
                if let (Some(sink), Some(progress)) = (sink, progress) {
                    sink(progress);
                }
            }
            Notice::Event(event) => {
                if let Some(event) = self.unasked.event(verbatim(event.text())) {
                    self.services.event(&self.origin, event);
                }
            }
            Notice::Request {
                request,
                topic,
                data,
                timeout_ms,
            } => self.request(request, topic, &data, timeout_ms),
            Notice::Log {
                level,
                target,
                message,
            } => {
                self.keep_line(&message);
                self.unasked.log(level, &target, verbatim(&message));
            }
            Notice::Counts(counts) => self.lock().counts = counts,
            Notice::Closed { in_time, .. } => {
                let mut state = self.lock();
                // A toolbox that was not asked to close has not closed: if its process ends now, it has died.
                if state.closing.is_some() {
                    state.closed = Some((in_time, Instant::now()));
                }
            }
            // A notice for the transport, or of a newer program.
            _ => {}
        }
    }

    fn answered<T>(&self, seq: u64, answer: Answer<Raw<T>>) {
        let reply = self.lock().asks.remove(&seq);
        if let Some(reply) = reply {
            let answer = brief(answer);
            let long = match &answer {
                Answer::Ok(value) => value.text().len(),
                Answer::Error(_) | Answer::Lost(_) => 0,
            };
            let result = match self.too_long("the answer", long) {
                None => answer::into_result(answer).map(Raw::into_text),
                Some(failure) => Err(Box::new(failure.into())),
            };
            _ = reply.send(result.map_err(|unanswered| *unanswered));
        }
    }

    /// The failure for a message that is too long. The toolbox's side checks the length as well, but may be foreign
    /// code.
    fn too_long(&self, what: &str, bytes: usize) -> Option<Failure> {
        let most = self.limits.max_result_bytes;
        let text = format!("{what} is {bytes} bytes; the limit is {most}");
        (bytes > most).then(|| Failure::new(FailureKind::ToolboxError, text))
    }

    /// Takes the run that has ended. If there is no such run, counts the end and returns `None`.
    fn take(&self, run: u64) -> Option<Run> {
        let mut state = self.lock();
        state.moving.remove(&run);
        let taken = state.runs.remove(&run);
        if taken.is_none() {
            let counters = self.unasked.counters();
            if run <= state.newest {
                counters.add(|counts| &mut counts.late_completions);
            } else {
                counters.add(|counts| &mut counts.unknown_completions);
            }
        }
        taken
    }

    fn request(&self, request: u64, topic: String, data: &Raw<Value>, timeout_ms: u64) {
        let data = data.text();
        let data = (data.len() <= MAX_SMALL_BYTES).then(|| json::read::<Value>(data).ok());
        let data = data.flatten().filter(Value::is_object);
        let data = data.filter(|_| self.manifest.requests.contains(&topic));
        let full = self.lanes.is_full();
        let taken = {
            let mut state = self.lock();
            if state.requests.contains(&request) {
                drop(state);
                self.unasked.counters().add(|counts| &mut counts.refused_requests);
                // Not answered: the one answer for this number belongs to the first request.
                return self
                    .unasked
                    .complain("a request has the number of another one that is under way; it is dropped");
            }
            let room = state.requests.len() < self.limits.max_requests && !full;
            data.filter(|_| room)
                .inspect(|_| _ = state.requests.insert(request))
        };
        let Some(data) = taken else {
            self.unasked.counters().add(|counts| &mut counts.refused_requests);
            let refusal = Failure::new(FailureKind::ToolboxError, "the request was refused");
            let answer = Answer::Error(Raw::of(&refusal));
            // This answer may be lost: a process that does not read could send requests without end.
            self.lanes.chatter(Order::Response { request, answer });
            return;
        };
        let request = Request {
            id: request,
            topic,
            data,
            timeout: Duration::from_millis(timeout_ms),
        };
        self.services.request(&self.origin, request);
    }

    /// Answers a request of the toolbox.
    pub(crate) fn respond(&self, request: u64, answer: Result<Raw<Value>, Failure>) {
        let order = |answer: Result<Raw<Value>, Failure>| {
            let answer = answer.into();
            Order::Response { request, answer }
        };
        if let Err(failure) = self.lanes.data(order(answer)) {
            // A failure is never too long.
            _ = self.lanes.data(order(Err(failure)));
        }
    }

    /// Gives up a toolbox that does not close in time and that nothing can end.
    pub(crate) fn abandon(&self) {
        let Origin {
            toolbox_id,
            generation,
        } = &self.origin;
        tracing::error!(
            toolbox = &**toolbox_id,
            generation,
            limit_ms = u64::try_from(self.limits.close.as_millis()).unwrap_or(u64::MAX),
            "the toolbox did not close; it is abandoned until its process ends"
        );
        self.ended(End::Abandoned);
    }

    /// Notes that the toolbox is gone, and tells all waiting callers why.
    pub(crate) fn ended(&self, end: End) {
        let id = &self.origin.toolbox_id;
        let closed = |what: &str| {
            let text = format!("toolbox `{id}` {what}");
            NoAnswer::Closed(Failure::new(FailureKind::ToolboxClosed, text))
        };
        let why = match &end {
            End::Closed(true) => closed("was closed while it ran"),
            End::Closed(false) => closed("did not close in time and was ended"),
            End::Abandoned => closed("did not close in time and was abandoned"),
            End::Died(death) => {
                let text = format!("toolbox `{id}`: {}", death.reason);
                NoAnswer::Died(Failure::new(FailureKind::ToolboxCrashed, text))
            }
        };
        let later = match &why {
            NoAnswer::Died(failure) => NoAnswer::NeverAsked(failure.clone()),
            _ => self.is_closed(),
        };
        let halts = matches!(end, End::Abandoned);
        let (asks, commands, runs) = {
            let mut state = self.lock();
            state.gone = Some(Departure { why: later, halts });
            state.moving.clear();
            state.requests.clear();
            // The drop tells the opening that the toolbox has ended.
            state.opened = None;
            (
                std::mem::take(&mut state.asks),
                if halts {
                    HashMap::new()
                } else {
                    std::mem::take(&mut state.commands)
                },
                std::mem::take(&mut state.runs),
            )
        };
        self.end.send_replace(Some(end));
        for (_, run) in runs {
            _ = run.ended.send(RunResult::Lost(why.clone().into_failure()));
        }
        for (_, reply) in asks {
            _ = reply.send(Err(why.clone()));
        }
        for (_, command) in commands {
            _ = command.reply.send(Err(why.clone()));
        }
    }
}

/// A text that was read already.
fn verbatim(text: &str) -> Result<&str, Infallible> {
    Ok(text)
}

/// The length of the end of a run, in bytes.
fn length(end: &RunEnd, content: Option<&Raw<Vec<Content>>>) -> usize {
    let end = match end {
        RunEnd::Output(output) => output.text().len(),
        RunEnd::Error(failure) | RunEnd::Lost(failure) => failure.text().len(),
        RunEnd::Cancelled => 0,
    };
    end + content.map_or(0, |content| content.text().len())
}

/// Replaces a reason that is too long, because `status` shows a reason until the next reload.
fn brief<T>(answer: Answer<T>) -> Answer<T> {
    let bytes = match &answer {
        Answer::Ok(_) => 0,
        Answer::Error(failure) | Answer::Lost(failure) => failure.text().len(),
    };
    if bytes <= MAX_FAILURE_BYTES {
        return answer;
    }
    let text = format!("the reason that it gave is {bytes} bytes; the limit is {MAX_FAILURE_BYTES}");
    Answer::Error(Raw::of(&Failure::new(FailureKind::ToolboxError, text)))
}
