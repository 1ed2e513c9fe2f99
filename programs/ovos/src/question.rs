//! A spoken question and its answer, in the way that skills of OVOS ask (`get_response`): ovos-core hands the next utterance of the
//! session to the one that waits for it. Read [`ask`].

use std::time::Duration;

use bus::Message;
use ovos_toolbox_sdk::schemars::JsonSchema;
use ovos_toolbox_wire::{Failure, FailureKind};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::line::{Call, Line, SKILL_ID, Subscription, now};
use crate::open_question::Questions;
use crate::speech::Speech;

/// The user's "stop", by its new and its old topic, and what takes back the questions of skills.
const STOPS: [&str; 3] = ["ovos.stop", "mycroft.stop", "mycroft.skills.abort_question"];

/// The user begins to speak, or has ended, by the old and the new topics.
const RECORDS: [&str; 4] = [
    "recognizer_loop:record_begin",
    "recognizer_loop:record_end",
    "ovos.listener.record.started",
    "ovos.listener.record.ended",
];

/// What means that there will be no answer, in the languages of ovos-workshop's `cancel.voc` and in those next to it.
const CANCELS: &[&str] = &[
    "abbrechen",
    "annula",
    "annule",
    "annule ça",
    "annuleer",
    "annulla",
    "cancel",
    "cancela",
    "cancelar",
    "forget it",
    "laat maar",
    "laisse tomber",
    "lascia perdere",
    "never mind",
    "nevermind",
    "oublie ça",
    "olvídalo",
    "vergiss es",
];

/// How long a question holds the session besides the wait for the answer, in seconds: what it takes to say it. OVOS forgets it then.
const SPOKEN: f64 = 60.0;

/// Who may take what is said, and the answer to that.
const ACTIVE: &str = "intent.service.active_skills.get";
const ACTIVE_REPLY: &str = "intent.service.active_skills.reply";

/// What ovos-core says of the session of the device when that has changed.
const KEPT: &str = "ovos.session.update_default";

/// How long ovos-core has to say so.
const KNOWN: Duration = Duration::from_secs(1);

/// Ask the user a question aloud, and wait for the answer that the user says.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AskArgs {
    /// What is asked.
    #[schemars(length(min = 1, max = 1000))]
    question: String,
    /// Its language, such as en-US. By default that of the user.
    lang: Option<String>,
    /// How long the user has to begin to answer, in seconds from the end of the question.
    #[serde(default = "wait")]
    #[schemars(range(min = 3, max = 60))]
    wait_seconds: u32,
}

fn wait() -> u32 {
    20
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct AskOutput {
    outcome: AskOutcome,
    /// What the user said; null without an answer.
    answer: Option<String>,
}

/// answered: see answer. no_answer: the user said nothing in time. cancelled: the user said "stop" or "cancel".
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum AskOutcome {
    Answered,
    NoAnswer,
    Cancelled,
}

/// How long ovos-core has to take a session that it is told, and how often it is told.
const SYNCED: Duration = Duration::from_millis(100);
const TRIES: usize = 3;

/// Asks in the session of the call.
pub(crate) async fn ask(line: Line, call: Call, args: AskArgs) -> Result<AskOutput, Failure> {
    let answers = answers();
    let topics = STOPS.iter().chain(&RECORDS).copied().chain([answers.as_str()]);
    let mut hearing = line.hear(topics).await?;
    let lang = args.lang.or(call.lang);
    let seconds = SPOKEN + f64::from(args.wait_seconds);
    let hold = Hold::take(&line, call.session_id.as_deref(), seconds).await?;
    let asking = Questions::ask(&line.questions, call.session_id.clone());
    let mut data = json!({"utterance": args.question, "expect_response": true, "meta": {"skill": SKILL_ID}});
    if let Some(lang) = lang {
        data["lang"] = lang.into();
    }
    let mut speech = Speech::send(&line, hold.message("speak", data)).await?;
    let session = call.session_id.as_deref();
    let wait = Duration::from_secs(u64::from(args.wait_seconds));
    let is_answer = |message: &Message| {
        let is_stop = STOPS.contains(&message.kind.as_str()) && stops(message, session);
        is_stop || (message.kind == answers && message.session_id() == session)
    };
    // An answer may come before the question has ended.
    let early = tokio::select! {
        biased;
        heard = hearing.until(Instant::now() + HEARD_AT_ALL, is_answer) => heard?,
        finished = speech.finish() => { finished?; None }
    };
    let mut reply = early;
    let mut end = Instant::now() + wait;
    while reply.is_none() {
        let news = |message: &Message| {
            is_answer(message)
                || (RECORDS.contains(&message.kind.as_str()) && message.session_id() == session)
        };
        match hearing.until(end, news).await? {
            None => break,
            Some(message) if is_answer(&message) => reply = Some(message),
            // The user is speaking.
            Some(_) => end = Instant::now() + wait,
        }
    }
    asking.ends(reply.as_ref());
    // A stop ends the call, and there is no time to wait.
    if reply.as_ref().is_none_or(|reply| reply.kind == answers) {
        hold.release().await?;
    }
    let utterance = reply.as_ref().filter(|reply| reply.kind == answers);
    let utterance = utterance.and_then(|reply| reply.data.get("utterances")?.get(0)?.as_str());
    let outcome = match (&reply, utterance) {
        (_, Some(utterance)) if !CANCELS.contains(&plain(utterance).as_str()) => AskOutcome::Answered,
        (None, _) => AskOutcome::NoAnswer,
        _ => AskOutcome::Cancelled,
    };
    Ok(AskOutput {
        outcome,
        answer: utterance.map(str::to_owned),
    })
}

/// Longer than any question is heard.
const HEARD_AT_ALL: Duration = Duration::from_secs(3600);

/// Whether a stop is about a question in this session. A stop without a session is about all, and one that takes back questions names
/// whose.
fn stops(message: &Message, session: Option<&str>) -> bool {
    let of = message.data.get("skill_id").and_then(Value::as_str);
    let is_of_session = message.session_id().is_none() || message.session_id() == session;
    is_of_session && of.is_none_or(|of| of == SKILL_ID)
}

fn plain(said: &str) -> String {
    let words = said.trim().trim_end_matches(['.', '!']);
    words.to_lowercase()
}

/// The topic of the answers.
pub(crate) fn answers() -> String {
    format!("{SKILL_ID}.converse.get_response")
}

/// Gives back a session in which no question waits.
///
/// # Errors
/// The bus is away.
pub(crate) async fn give_back(line: &Line, session_id: Option<&str>) -> Result<(), Failure> {
    let hold = Hold {
        line: line.clone(),
        session_id: session_id.map(str::to_owned),
        session: Some(Value::Null),
    };
    hold.release().await
}

/// The next utterance of a session is for us, until this is dropped.
struct Hold {
    line: Line,
    session_id: Option<String>,
    /// The session with what stable and newest ovos-core look for in it.
    session: Option<Value>,
}

impl Hold {
    /// Takes the session, for so many seconds at most.
    ///
    /// # Errors
    /// No ovos-core answers, or the bus is away.
    async fn take(line: &Line, session_id: Option<&str>, seconds: f64) -> Result<Self, Failure> {
        let answer = line.ask(ACTIVE, json!({}), &[ACTIVE_REPLY]).await?;
        let Some(answer) = answer else {
            let text = format!("nothing answers {ACTIVE}, so the user was not asked: start ovos-core");
            return Err(Failure::new(FailureKind::StateError, text));
        };
        let mut hold = Self {
            line: line.clone(),
            session_id: session_id.map(str::to_owned),
            session: None,
        };
        let probe = hold.line.message("", json!({}), session_id);
        let mut session = probe.context.get("session").cloned().unwrap_or_default();
        let others = answer.data.get("skills").and_then(Value::as_array);
        let others = others.into_iter().flatten().filter_map(Value::as_str);
        hold_in(&mut session, others, now(), seconds);
        hold.session = Some(session);
        // ovos-core 2 finds who waits among the skills that are active, newer ones among those that the session names. The client of
        // a named session takes both from what is said to it.
        if session_id.is_some() {
            line.send(&hold.message("ovos.session.sync", json!({})))?;
        }
        // It reads messages in several threads, where one of these may undo another.
        for _ in 0..TRIES {
            hold.enable().await?;
            if session_id.is_some() || hold.is_listed().await? {
                return Ok(hold);
            }
            // Newer ones take what the session of the device names from this. To ovos-core 2 it is a question for the session, and
            // the answer, which it hears itself, sets that back.
            line.send(&hold.message("ovos.session.sync", json!({})))?;
            sleep(SYNCED).await;
            if hold.is_listed().await? {
                return Ok(hold);
            }
        }
        Ok(hold)
    }

    /// Asks for the next utterance.
    async fn enable(&self) -> Result<(), Failure> {
        let mut hearing = self.line.hear([KEPT]).await?;
        let us = json!({"skill_id": SKILL_ID});
        self.line
            .send(&self.message("intent.service.skills.activate", us.clone()))?;
        self.known(&mut hearing, is_active).await?;
        self.line
            .send(&self.message("skill.converse.get_response.enable", us))?;
        self.known(&mut hearing, is_held).await
    }

    /// Whether ovos-core names us among those who may take what is said.
    async fn is_listed(&self) -> Result<bool, Failure> {
        let answer = self.line.ask(ACTIVE, json!({}), &[ACTIVE_REPLY]).await?;
        let skills = answer
            .as_ref()
            .and_then(|answer| answer.data.get("skills")?.as_array());
        Ok(skills.is_some_and(|skills| skills.iter().any(|skill| *skill == SKILL_ID)))
    }

    /// Gives the session back.
    async fn release(mut self) -> Result<(), Failure> {
        let mut hearing = self.line.hear([KEPT]).await?;
        self.give_back();
        self.known(&mut hearing, |session| !is_held(session)).await
    }

    /// Makes the session as it was before, once.
    fn give_back(&mut self) {
        if self.session.take().is_none() {
            return;
        }
        for topic in [
            "skill.converse.get_response.disable",
            "intent.service.skills.deactivate",
        ] {
            _ = self
                .line
                .send(&self.message(topic, json!({"skill_id": SKILL_ID})));
        }
    }

    /// Waits until ovos-core says of the session of the device that it is so.
    async fn known(&self, hearing: &mut Subscription, is_so: impl Fn(&Value) -> bool) -> Result<(), Failure> {
        if self.session_id.is_some() {
            return Ok(());
        }
        let says_so = |message: &Message| message.data.get("session_data").is_some_and(&is_so);
        hearing.until(Instant::now() + KNOWN, says_so).await.map(|_| ())
    }

    fn message(&self, topic: &str, data: Value) -> Message {
        let mut message = self.line.message(topic, data, self.session_id.as_deref());
        if let Some(session) = &self.session {
            message.context.insert("session".to_owned(), session.clone());
        }
        message
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.give_back();
    }
}

fn is_active(session: &Value) -> bool {
    let active = session["active_skills"].as_array();
    active.is_some_and(|active| active.iter().any(|skill| skill[0] == SKILL_ID))
}

fn is_held(session: &Value) -> bool {
    session["utterance_states"][SKILL_ID] == "response"
}

/// Writes into a session that we wait for its next utterance. `others` are those who may take utterances without that.
fn hold_in<'a>(session: &mut Value, others: impl Iterator<Item = &'a str>, now: f64, seconds: f64) {
    let ids: Vec<&str> = std::iter::once(SKILL_ID)
        .chain(others.filter(|other| *other != SKILL_ID))
        .collect();
    let handlers: Vec<Value> = ids
        .iter()
        .map(|id| json!({"skill_id": id, "activated_at": now}))
        .collect();
    session["converse_handlers"] = handlers.into();
    session["response_mode"] = json!({"skill_id": SKILL_ID, "expires_at": now + seconds});
    session["active_skills"] = ids.iter().map(|id| json!([id, now])).collect();
    session["utterance_states"] = json!({SKILL_ID: "response"});
}
