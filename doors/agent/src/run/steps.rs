//! The steps of a run, from its first to its end.
//!
//! Read [`Run::drive`].

use std::sync::atomic::Ordering;
use std::time::SystemTime;

use client::payload::AgentEndCall;
use door::{StopTool, stop};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::ledger::Run;
use crate::answer;
use crate::budget::millis;
use crate::end::End;
use crate::news::News;
use crate::prompt;
use crate::react;
use crate::record::{Line, Recorder, RunEnd, Start, Step, VERSION, sha256};
use crate::source::Source;

impl Run<'_> {
    /// Returns the first line of the record.
    pub(crate) fn start(&self) -> Start {
        Start {
            version: VERSION,
            run_id: self.settings.run_id.clone(),
            began: now(),
            goal: self.settings.goal.clone(),
            model: self.settings.door.model.clone(),
            dry_run: self.settings.dry_run,
            ablations: self.settings.ablations(),
            budgets: self.settings.budgets().clone(),
            prompt_sha256: sha256(&self.messages[0]),
            tools_sha256: sha256(&json!(self.belt.definitions())),
            tools: self.belt.names().into_iter().map(str::to_owned).collect(),
        }
    }

    /// Runs until an end, and makes sure that nothing continues after that.
    ///
    /// # Cancel safety
    /// Dropping it asks the service to end its calls.
    pub(crate) async fn drive(&mut self, source: &mut Source, recorder: &mut Recorder) -> RunEnd {
        (self.hands.audience)(&News::Began {
            goal: &self.settings.goal,
            tools: self.belt.names().len(),
            dry_run: self.settings.dry_run,
        });
        let mut end = loop {
            if let Some(end) = self.step(source, recorder).await {
                break end;
            }
        };
        // A call without an answer may still run. Otherwise a run that is done leaves no call under way.
        let open = self.hands.lost.load(Ordering::Relaxed);
        let halts = open || !self.moved.is_empty() && !matches!(end, End::Done(_));
        if halts
            && !end.is_of_people()
            && let Some(by) = self.hands.watch.check().await.filter(End::is_of_people)
        {
            // If people stop or take over at the last moment, the agent sends no commands against them.
            end = by;
        }
        let halted = if halts && !end.is_of_people() {
            let stopped = stop(StopTool::StopMoving, self.hands.door).await;
            Some(json!({"text": stopped.text, "confirmed": !stopped.failed}))
        } else {
            None
        };
        let agent_end = self.afterwards(&mut end).await;
        let left = self.remaining();
        (self.hands.audience)(&News::Ended {
            end: &end,
            left: &left,
        });
        let ended = RunEnd {
            text: end_text(&end, &agent_end),
            exit_code: end.exit_code(),
            end,
            used: self.used_object(),
            elapsed_ms: millis(self.began.elapsed()),
            halted,
            agent_end,
        };
        recorder.write(&Line::End(Box::new(ended.clone())));
        ended
    }

    /// Makes one step. Returns the end of the run, if the step ends it.
    async fn step(&mut self, source: &mut Source, recorder: &mut Recorder) -> Option<End> {
        let interrupt = self.hands.interrupt.clone();
        let budgets = self.settings.budgets();
        if let Some(end) = interrupt.raised() {
            return Some(end);
        }
        if let Some(end) = self.used.spent(budgets, self.began.elapsed()) {
            return Some(end);
        }
        self.observe().await;
        if let Some(end) = self.physical() {
            return Some(end);
        }
        self.used.steps += 1;
        prompt::shorten(
            &mut self.messages,
            self.recorded,
            self.settings.door.history_bytes,
        );
        let state = self.state.object(&self.used, budgets, &self.settings.blank);
        let request = self.request(&state);
        (self.hands.audience)(&News::Asking {
            step: self.used.steps,
            left: &self.remaining(),
        });
        let start = Instant::now();
        let completion = tokio::select! {
            biased;
            end = interrupt.wait() => return Some(end),
            answered = source.complete(&request) => answered,
        };
        let raw = match completion {
            Ok(raw) => raw,
            Err(end) => return Some(end),
        };
        let answer_ms = millis(start.elapsed());
        let answer = match answer::read(&raw, &mut self.ids, self.used.steps) {
            Ok(answer) => answer,
            Err(why) => return Some(End::ModelUnreadable(why)),
        };
        let counted = (request.to_string().len() + raw.to_string().len()) / 4;
        let tokens = answer
            .tokens
            .unwrap_or_else(|| u64::try_from(counted).unwrap_or(u64::MAX));
        self.used.tokens = self.used.tokens.saturating_add(tokens);
        let text = answer.text.clone();
        let answer = if self.settings.as_text() && answer.calls.is_empty() {
            let is_stop = |name: &str| self.belt.is_stop(name);
            react::read(answer, &mut self.ids, self.used.steps, is_stop)
        } else {
            answer
        };
        if !answer.text.trim().is_empty() {
            (self.hands.audience)(&News::Thought(answer.text.trim()));
        }
        let sent = self.messages[self.recorded..].to_vec();
        if self.settings.as_text() {
            self.messages
                .push(json!({ "role": "assistant", "content": text }));
        } else {
            self.messages.push(answer::message(&answer));
        }
        self.recorded = self.messages.len();
        let (calls, end) = self.act(&answer).await;
        let step = Step {
            step: self.used.steps,
            sent,
            state,
            request_sha256: sha256(&request),
            answer: raw,
            answer_ms,
            thought: answer.text,
            calls,
            used: self.used_object(),
            left: self.remaining(),
        };
        recorder.write(&Line::Step(Box::new(step.clone())));
        // The record keeps the large parts, so this copy of the step leaves them out.
        self.steps.push(Step {
            sent: Vec::new(),
            answer: Value::Null,
            ..step
        });
        // A stop during the calls counts, whatever the model said. A stop by the model itself is reported by its result.
        let raised = interrupt.raised();
        match (&raised, &end) {
            (Some(End::Latched(_)), Some(End::Latched(_))) => end,
            _ => raised.or(end),
        }
    }

    fn request(&self, state: &Value) -> Value {
        let mut messages = self.messages.clone();
        messages.push(prompt::state(state));
        let messages = prompt::alternating(messages);
        let door = &self.settings.door;
        let mut request = json!({ "model": door.model, "messages": messages, "stream": false });
        if self.settings.as_text() {
            request["stop"] = json!(["Observation:"]);
        } else {
            request["tools"] = json!(self.belt.definitions());
        }
        if door.answer_tokens > 0 {
            request["max_tokens"] = json!(door.answer_tokens);
        }
        if let Some(temperature) = door.temperature {
            request["temperature"] = json!(temperature);
        }
        request
    }
}

/// Seconds since 1970, UTC.
fn now() -> f64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0.0, |since| since.as_secs_f64())
}

/// Describes why the run ended, and what was done after that.
fn end_text(end: &End, after: &[AgentEndCall]) -> String {
    let mut text = end.text();
    for call in after {
        let became = if call.ok { "done" } else { &call.text };
        text.push_str(&format!("; afterwards {}: {became}", call.name));
    }
    text
}
