//! One run: observe, reason, act, until something ends it.

use std::sync::Arc;
use std::time::SystemTime;

use client::payload::PlanResponse;
use door::{Registered, StopTool, stop};
use futures_util::future::join_all;
use ovos_toolbox_wire::{Effect, Object};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::act::{Came, Hands, planned, waves};
use crate::answer::{self, Answer, Asked, Ids};
use crate::batch::{Claim, batches};
use crate::budget::{Charge, Used, Verdict, millis};
use crate::end::{End, Spent};
use crate::prompt;
use crate::react;
use crate::record::{self, Ended, Line, Recorder, Start, Status, Step, VERSION, sha256};
use crate::settings::Settings;
use crate::source::Source;
use crate::state::{State, blanked};
use crate::tell::Tell;
use crate::toolbelt::{Own, Target, Toolbelt};

/// A run under way.
pub(crate) struct Run<'a> {
    hands: Hands<'a>,
    settings: &'a Settings,
    belt: &'a Toolbelt,
    state: State,
    used: Used,
    ids: Ids,
    began: Instant,
    /// The conversation.
    messages: Vec<Value>,
    /// How much of it the record has.
    recorded: usize,
    /// Those of results, for the conversation.
    pictures: Vec<Value>,
    /// A call that moves something was made.
    moved: bool,
    pub(crate) steps: Vec<Step>,
}

/// A call that is ready to be made.
struct Ready {
    /// Its place in the answer.
    at: usize,
    tool: Arc<Registered>,
    arguments: Object,
    plan: Option<PlanResponse>,
}

impl Ready {
    /// What it asks of the physical budgets.
    fn charge(&self) -> Charge {
        let arguments = Value::Object(self.arguments.clone());
        let schema = Value::Object((*self.tool.arguments).clone());
        Charge::asked(&self.tool.name, &arguments, &schema)
    }
}

impl<'a> Run<'a> {
    pub(crate) fn new(hands: Hands<'a>, belt: &'a Toolbelt) -> Self {
        let settings = hands.settings;
        let text_tools = settings.as_text().then(|| belt.shown());
        let messages = vec![
            prompt::system(&settings.door.instructions, text_tools),
            prompt::goal(&settings.goal),
        ];
        Self {
            hands,
            settings,
            belt,
            state: State::new(&settings.goal),
            used: Used::default(),
            ids: Ids::default(),
            began: Instant::now(),
            messages,
            recorded: 0,
            pictures: Vec::new(),
            moved: false,
            steps: Vec::new(),
        }
    }

    /// The first line of the record.
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
            tools_sha256: sha256(&json!(self.belt.shown())),
            tools: self.belt.names().into_iter().map(str::to_owned).collect(),
        }
    }

    /// Goes on until the run ends, and sees to it that nothing goes on then.
    ///
    /// # Cancel safety
    /// Dropping it asks the service to end its calls.
    pub(crate) async fn drive(&mut self, source: &mut Source, recorder: &mut Recorder) -> Ended {
        (self.hands.audience)(&Tell::Began {
            goal: &self.settings.goal,
            tools: self.belt.names().len(),
            dry_run: self.settings.dry_run,
        });
        let end = loop {
            if let Some(end) = self.step(source, recorder).await {
                break end;
            }
        };
        let left = self.left();
        (self.hands.audience)(&Tell::Ended {
            end: &end,
            left: &left,
        });
        let halted = if self.moved && !end.is_of_people() && !matches!(end, End::Done(_)) {
            let stopped = stop(StopTool::StopMoving, self.hands.door).await;
            Some(json!({"text": stopped.text, "confirmed": !stopped.failed}))
        } else {
            None
        };
        let ended = Ended {
            text: end.text(),
            exit_code: end.exit_code(),
            end,
            used: self.used_object(),
            elapsed_ms: millis(self.began.elapsed()),
            halted,
        };
        recorder.write(&Line::End(Box::new(ended.clone())));
        ended
    }

    fn left(&self) -> Value {
        self.used.left(self.settings.budgets(), self.began.elapsed())
    }

    fn used_object(&self) -> Value {
        json!({
            "steps": self.used.steps,
            "calls": self.used.calls,
            "tokens": self.used.tokens,
            "rotation_deg": self.used.rotation_deg,
            "forward_m": self.used.forward_m,
        })
    }

    /// One step; the end of the run, where it is one.
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
        prompt::shorten(&mut self.messages, self.settings.door.history_bytes);
        let state = self.state.object(&self.used, budgets, &self.settings.blank);
        let request = self.request(&state);
        (self.hands.audience)(&Tell::Asking {
            step: self.used.steps,
            left: &self.left(),
        });
        let asked = Instant::now();
        let answered = tokio::select! {
            biased;
            end = interrupt.wait() => return Some(end),
            answered = source.ask(&request) => answered,
        };
        let raw = match answered {
            Ok(raw) => raw,
            Err(end) => return Some(end),
        };
        let answer_ms = millis(asked.elapsed());
        let answer = match answer::read(&raw, &mut self.ids, self.used.steps) {
            Ok(answer) => answer,
            Err(why) => return Some(End::ModelUnreadable(why)),
        };
        let counted = (request.to_string().len() + raw.to_string().len()) / 4;
        self.used.tokens += answer
            .tokens
            .unwrap_or_else(|| u64::try_from(counted).unwrap_or(u64::MAX));
        let said = answer.text.clone();
        let answer = if self.settings.as_text() && answer.calls.is_empty() {
            react::read(answer, &mut self.ids, self.used.steps)
        } else {
            answer
        };
        if !answer.text.trim().is_empty() {
            (self.hands.audience)(&Tell::Thought(answer.text.trim()));
        }
        let sent = self.messages[self.recorded..].to_vec();
        if self.settings.as_text() {
            self.messages
                .push(json!({ "role": "assistant", "content": said }));
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
            left: self.left(),
        };
        recorder.write(&Line::Step(Box::new(step.clone())));
        self.steps.push(step);
        // A stop during the calls stands, whatever the model said.
        interrupt.raised().or(end)
    }

    fn request(&self, state: &Value) -> Value {
        let mut messages = self.messages.clone();
        messages.push(prompt::state(state));
        let door = &self.settings.door;
        let mut request = json!({ "model": door.model, "messages": messages, "stream": false });
        if self.settings.as_text() {
            request["stop"] = json!(["Observation:"]);
        } else {
            request["tools"] = json!(self.belt.shown());
        }
        if door.answer_tokens > 0 {
            request["max_tokens"] = json!(door.answer_tokens);
        }
        if let Some(temperature) = door.temperature {
            request["temperature"] = json!(temperature);
        }
        request
    }

    /// Looks at the state, where there are tools for that.
    async fn observe(&mut self) {
        for name in &self.settings.door.state_tools {
            let Some(tool) = self.belt.reader(name) else {
                continue;
            };
            let came = self.hands.make(tool, &Object::new()).await;
            if let Some(result) = &came.result {
                let grown = self.state.see(&tool.name, &json!({}), result);
                self.used.rotation_deg += grown.deg;
                self.used.forward_m += grown.forward_m;
            }
        }
    }

    /// The end that the state of the machine means.
    fn physical(&self) -> Option<End> {
        if let Some(end) = self.hands.interrupt.raised() {
            return Some(end);
        }
        if self.state.taken_over() {
            return Some(End::Takeover("the vehicle says so".to_owned()));
        }
        self.used.overdrawn(self.settings.budgets())
    }

    /// Does what an answer asks for, as far as that is allowed.
    async fn act(&mut self, answer: &Answer) -> (Vec<record::Call>, Option<End>) {
        if answer.calls.is_empty() {
            self.used.came(true);
            self.messages.push(prompt::user(prompt::NO_CALL));
            return (Vec::new(), None);
        }
        let mut lines: Vec<record::Call> = answer.calls.iter().map(line).collect();
        // A stop is never behind anything, and nothing of the same answer follows it.
        if let Some(at) = self.first_stop(&answer.calls) {
            let end = self.stop(&answer.calls[at], &mut lines[at]).await;
            for (other, line) in lines.iter_mut().enumerate() {
                if other != at {
                    line.observation = json!("not made: there was a stop in the same answer");
                }
            }
            self.tell_model(&lines);
            return (lines, end);
        }
        let (ready, mut end) = self.prepare(answer, &mut lines).await;
        if end.is_none() {
            end = self.make(ready, &mut lines).await;
        }
        self.tell_model(&lines);
        (lines, end)
    }

    /// The results into the conversation, one for each call.
    fn tell_model(&mut self, lines: &[record::Call]) {
        for line in lines {
            let text = line.observation.as_str().unwrap_or_default();
            let message = prompt::observation(&line.id, text, self.settings.as_text());
            self.messages.push(message);
        }
        // After the results: nothing may stand between calls and their results.
        self.messages.append(&mut self.pictures);
    }

    fn first_stop(&self, calls: &[Asked]) -> Option<usize> {
        calls.iter().position(|call| match self.belt.target(&call.name) {
            Some(Target::Own(Own::Stop(_))) => true,
            Some(Target::Tool(tool)) => tool.effect == Effect::Stop,
            _ => false,
        })
    }

    /// Stops. An emergency stop ends the run; after `stop_moving` the model goes on.
    async fn stop(&mut self, asked: &Asked, line: &mut record::Call) -> Option<End> {
        let name = asked.name.as_str();
        let arguments = json!({});
        self.used.call(name, &arguments);
        (self.hands.audience)(&Tell::Call {
            name,
            arguments: &arguments,
            waves: &[],
        });
        let began = Instant::now();
        let (text, failed, latches) = match self.belt.target(name) {
            Some(Target::Own(Own::Stop(tool))) => {
                let stopped = stop(*tool, self.hands.door).await;
                (stopped.text, stopped.failed, *tool == StopTool::EmergencyStop)
            }
            Some(Target::Tool(tool)) => {
                // Whatever its arguments are: a stop is never validated away.
                let given = asked.arguments.clone().unwrap_or_default();
                let came = self.hands.make(tool, &given).await;
                (came.text.clone(), came.failed(), true)
            }
            _ => return None,
        };
        line.ms = millis(began.elapsed());
        line.status = if failed { Status::Failed } else { Status::Completed };
        line.observation = json!(text);
        self.used.came(failed);
        (self.hands.audience)(&Tell::Came {
            name,
            status: line.status,
            text: &text,
            ms: line.ms,
        });
        latches.then(|| End::Latched(format!("the model called {name}")))
    }

    /// Sorts out what cannot be made, does what the agent itself does, and plans the rest.
    async fn prepare(&mut self, answer: &Answer, lines: &mut [record::Call]) -> (Vec<Ready>, Option<End>) {
        let budgets = self.settings.budgets();
        let most = usize::try_from(budgets.calls_at_once).unwrap_or(usize::MAX);
        let mut ready = Vec::new();
        for (at, asked) in answer.calls.iter().enumerate() {
            let line = &mut lines[at];
            if at >= most {
                line.observation = json!(format!("not made: an answer may have at most {most} calls"));
                continue;
            }
            let (name, arguments) = match self.unwrapped(asked) {
                Ok(call) => call,
                Err(why) => {
                    self.refuse(line, &format!("MalformedCall: {why}. Nothing was done."));
                    continue;
                }
            };
            let given = Value::Object(arguments.clone());
            let Some(target) = self.belt.target(&name).cloned() else {
                self.refuse(line, &format!("UnknownTool: {}.", self.belt.unknown(&name)));
                continue;
            };
            if self.used.calls >= budgets.calls {
                line.observation = json!("not made: no calls are left in this run");
                continue;
            }
            if self.used.would_repeat(&name, &given) > budgets.repeats {
                self.refuse(line, "the same call was made too often");
                return (ready, Some(End::Budget(Spent::Repeats)));
            }
            match target {
                Target::Own(own) => {
                    if let Some(end) = self.own(own, &arguments, answer.calls.len(), line).await {
                        return (ready, Some(end));
                    }
                }
                Target::Tool(tool) => {
                    self.used.call(&name, &given);
                    let plan = if tool.effect == Effect::Read {
                        None
                    } else {
                        match self.hands.plan(&tool, &arguments).await {
                            Ok(plan) => Some(plan),
                            Err(why) => {
                                self.refuse(line, &why.text);
                                continue;
                            }
                        }
                    };
                    line.plan = plan.as_ref().map(planned);
                    ready.push(Ready {
                        at,
                        tool,
                        arguments,
                        plan,
                    });
                }
            }
        }
        (ready, None)
    }

    /// The tool and the arguments that are meant: `call_tool` stands for another one.
    fn unwrapped(&self, asked: &Asked) -> Result<(String, Object), String> {
        let arguments = asked.arguments.clone()?;
        if !matches!(self.belt.target(&asked.name), Some(Target::Own(Own::CallTool))) {
            return Ok((asked.name.clone(), arguments));
        }
        let name = arguments.get("name").and_then(Value::as_str);
        let name = name.ok_or("call_tool needs the name of a tool")?;
        if matches!(self.belt.target(name), Some(Target::Own(_))) {
            return Err(format!("{name} is called by its own name, without call_tool"));
        }
        let inner = match arguments.get("arguments") {
            None | Some(Value::Null) => Object::new(),
            Some(Value::Object(object)) => object.clone(),
            Some(Value::String(text)) => answer::of_text(text)?,
            Some(other) => return Err(format!("arguments: expected an object, found {other}")),
        };
        Ok((name.to_owned(), inner))
    }

    fn refuse(&mut self, line: &mut record::Call, why: &str) {
        line.status = Status::Refused;
        line.observation = json!(why);
        self.used.came(true);
        (self.hands.audience)(&Tell::Came {
            name: &line.name,
            status: Status::Refused,
            text: why,
            ms: 0,
        });
    }

    /// A tool of the agent itself.
    async fn own(
        &mut self,
        own: Own,
        arguments: &Object,
        calls: usize,
        line: &mut record::Call,
    ) -> Option<End> {
        let text = |key: &str| arguments.get(key).and_then(Value::as_str).unwrap_or_default();
        match own {
            Own::Finish => {
                let reached = arguments.get("reached").and_then(Value::as_bool);
                let summary = text("summary").trim().to_owned();
                let Some(reached) = reached.filter(|_| calls == 1) else {
                    let why = if calls == 1 {
                        "ValueError: finish needs `reached`, true or false"
                    } else {
                        "not done: call finish by itself, after you have read the results"
                    };
                    self.refuse(line, why);
                    return None;
                };
                line.status = Status::Completed;
                line.observation = json!("the run ends");
                Some(if reached {
                    End::Done(summary)
                } else {
                    End::GaveUp(summary)
                })
            }
            Own::FindTools => {
                self.used.call("find_tools", &Value::Object(arguments.clone()));
                let found = self.belt.find(text("query"));
                line.status = Status::Completed;
                line.observation = json!(found.to_string());
                self.used.came(false);
                None
            }
            Own::PreviewPlan => {
                self.used.call("preview_plan", &Value::Object(arguments.clone()));
                let name = text("name");
                let Some(Target::Tool(tool)) = self.belt.target(name).cloned() else {
                    self.refuse(line, &format!("UnknownTool: {}.", self.belt.unknown(name)));
                    return None;
                };
                let inner = match arguments.get("arguments") {
                    Some(Value::Object(object)) => object.clone(),
                    _ => Object::new(),
                };
                match self.hands.plan(&tool, &inner).await {
                    Ok(plan) => {
                        line.status = Status::Completed;
                        line.observation = json!(planned(&plan).to_string());
                        self.used.came(false);
                    }
                    Err(why) => self.refuse(line, &why.text),
                }
                None
            }
            // Both were handled before.
            Own::CallTool | Own::Stop(_) => None,
        }
    }

    /// Makes the calls that are ready: in batches of those that share nothing. After one that fails no further batch begins.
    async fn make(&mut self, ready: Vec<Ready>, lines: &mut [record::Call]) -> Option<End> {
        let claims: Vec<Claim> = ready
            .iter()
            .map(|call| Claim {
                toolbox_id: call.tool.toolbox_id.clone(),
                effect: call.tool.effect,
                subsystems: call
                    .plan
                    .as_ref()
                    .map_or_else(Vec::new, |plan| plan.subsystems.clone()),
            })
            .collect();
        let mut failed = None;
        let mut end = None;
        for batch in batches(&claims) {
            let batch: Vec<&Ready> = batch.into_iter().map(|at| &ready[at]).collect();
            if end.is_none() {
                end = self.hands.interrupt.raised();
            }
            if let Some(why) = end
                .as_ref()
                .map(End::text)
                .or_else(|| failed.as_ref().map(|name| format!("'{name}' failed")))
            {
                for call in batch {
                    lines[call.at].observation = json!(format!("not made: {why}"));
                }
                continue;
            }
            let mut allowed = Vec::new();
            for call in batch {
                match self.permitted(call).await {
                    Verdict::Go => allowed.push(call),
                    Verdict::Refuse(why) => {
                        self.refuse(&mut lines[call.at], &format!("BudgetError: {why}"));
                        failed = Some(call.tool.name.clone());
                    }
                    Verdict::End(reason) => {
                        lines[call.at].observation = json!(format!("not made: {}", reason.text()));
                        end = Some(reason);
                    }
                }
            }
            if end.is_some() {
                for call in allowed {
                    lines[call.at].observation = json!("not made: the run ends");
                }
                continue;
            }
            let moving = allowed.iter().any(|call| call.tool.effect == Effect::Motion);
            let came = join_all(allowed.iter().map(|call| self.one(call))).await;
            self.moved |= moving && !self.settings.dry_run;
            for (call, mut came) in allowed.into_iter().zip(came) {
                if came.failed() {
                    failed = Some(call.tool.name.clone());
                }
                self.note(call, &came);
                if !came.pictures.is_empty() {
                    self.pictures.push(prompt::pictures(
                        &call.tool.name,
                        &std::mem::take(&mut came.pictures),
                    ));
                }
                let line = &mut lines[call.at];
                line.status = came.status;
                line.call_id = came.call_id;
                line.ms = came.ms;
                line.observation = json!(prompt::cut(&came.text, self.settings.door.result_bytes));
            }
            if moving && end.is_none() {
                self.observe().await;
                end = self.physical();
            }
        }
        end
    }

    /// Whether a call may be made now.
    async fn permitted(&self, call: &Ready) -> Verdict {
        if call.tool.effect != Effect::Motion || self.settings.dry_run {
            return Verdict::Go;
        }
        if let Some(end) = self.hands.watch.check().await {
            return Verdict::End(end);
        }
        let asked = call.charge();
        self.used
            .motion(self.settings.budgets(), asked, self.state.battery_pct())
    }

    async fn one(&self, call: &Ready) -> Came {
        let arguments = Value::Object(call.arguments.clone());
        let waves = call.plan.as_ref().map(waves).unwrap_or_default();
        (self.hands.audience)(&Tell::Call {
            name: &call.tool.name,
            arguments: &arguments,
            waves: &waves,
        });
        let mut came = match &call.plan {
            Some(plan) if self.settings.dry_run => {
                let text = json!({"dry_run": true, "would": planned(plan)}).to_string();
                Came::said(Status::Planned, &text)
            }
            _ => self.hands.make(&call.tool, &call.arguments).await,
        };
        if let Some(result) = came.result.as_ref().filter(|_| !self.settings.blank.is_empty()) {
            let mut shown = result.clone();
            blanked(&mut shown, &self.settings.blank);
            came.text = shown.to_string();
        }
        (self.hands.audience)(&Tell::Came {
            name: &call.tool.name,
            status: came.status,
            text: &came.text,
            ms: came.ms,
        });
        came
    }

    /// Charges a call and takes what its result says about the world.
    fn note(&mut self, call: &Ready, came: &Came) {
        self.used.came(came.failed());
        let arguments = Value::Object(call.arguments.clone());
        if let Some(result) = &came.result {
            let grown = self.state.see(&call.tool.name, &arguments, result);
            self.used.rotation_deg += grown.deg;
            self.used.forward_m += grown.forward_m;
        }
        // A vehicle that counts its own turning and distance is believed; of another one the arguments are. A call that failed
        // may have moved all the same.
        if call.tool.effect == Effect::Motion && came.call_id.is_some() && !self.state.is_measured() {
            let charge = call.charge();
            self.used.rotation_deg += charge.deg;
            self.used.forward_m += charge.forward_m;
        }
    }
}

fn line(asked: &Asked) -> record::Call {
    record::Call {
        id: asked.id.clone(),
        name: asked.name.clone(),
        arguments: asked.arguments.clone().ok().map(Value::Object),
        observation: json!("not made"),
        ..record::Call::default()
    }
}

/// Seconds since 1970, UTC.
fn now() -> f64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0.0, |since| since.as_secs_f64())
}
