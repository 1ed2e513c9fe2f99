//! Speech: a text is spoken by the device (ovos-audio), or by the client of a named session. Read [`Speech`].

use std::time::Duration;

use bus::{DEFAULT_SESSION_ID, Message};
use futures_util::future::join_all;
use ovos_toolbox_sdk::schemars::JsonSchema;
use ovos_toolbox_wire::{Failure, FailureKind};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::line::{Call, Line, SKILL_ID, Subscription, is_about};

/// What is heard of speech, by its old and its new topic. The first two are about the text that begins.
const BEGINS: [&str; 3] = [
    "recognizer_loop:utterance_start",
    "recognizer_loop:audio_output_start",
    "ovos.audio.output.started",
];
const ENDS: [&str; 2] = ["recognizer_loop:audio_output_end", "ovos.audio.output.ended"];

/// Ends speech. Both ovos-audio 1 and 2 know it by its old name.
const STOP: &str = "mycroft.audio.speech.stop";

/// How long a text may wait until it is spoken: it is synthesized, and other texts come first.
const BEGIN_WAIT: Duration = Duration::from_secs(30);

/// How often a text is told to end, and how long each time it has to.
const STOPS: u32 = 5;
const STOP_WAIT: Duration = Duration::from_secs(1);

/// How long one text may take.
const END_WAIT: Duration = Duration::from_secs(90);

/// How long the client of a session may take to report that it speaks. Many never do.
const REPORT_WAIT: Duration = Duration::from_secs(3);

/// The word that means every session.
const ALL: &str = "all";

/// Say a text aloud to the user who makes the request.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SpeakArgs {
    /// What is said.
    #[schemars(length(min = 1, max = 4000))]
    text: String,
    /// Its language, such as en-US. By default that of the user.
    lang: Option<String>,
    /// Whether to wait until all of it was said, and not only until it begins.
    #[serde(default = "yes")]
    wait: bool,
}

fn yes() -> bool {
    true
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct SpeakOutput {
    /// spoken: all of it was said. begun: it is being said. sent: the client of the session was told, and does not report whether
    /// it speaks.
    outcome: Outcome,
    /// The text.
    text: String,
}

#[derive(Clone, Copy, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Outcome {
    Spoken,
    Begun,
    Sent,
}

/// Announce a text aloud, to the device itself, to one session or to all of them, without expecting an answer.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AnnounceArgs {
    /// What is said.
    #[schemars(length(min = 1, max = 4000))]
    text: String,
    /// Its language, such as en-US.
    lang: Option<String>,
    /// Where: `default` is the device itself, `all` is that and each session in which something was said, any other is a session.
    #[serde(default = "device")]
    session_id: String,
}

fn device() -> String {
    DEFAULT_SESSION_ID.to_owned()
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct AnnounceOutput {
    /// Where it was announced.
    sessions: Vec<Announced>,
}

#[derive(Serialize, JsonSchema)]
struct Announced {
    session_id: String,
    /// begun: it is being said. sent: the client of the session was told, and does not report whether it speaks. failed: see error.
    outcome: AnnounceOutcome,
    error: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum AnnounceOutcome {
    Begun,
    Sent,
    Failed,
}

/// Says a text in the session of the call.
pub(crate) async fn speak(line: Line, call: Call, args: SpeakArgs) -> Result<SpeakOutput, Failure> {
    let lang = args.lang.or(call.lang);
    let mut speech = Speech::begin(
        &line,
        call.session_id.as_deref(),
        &args.text,
        lang.as_deref(),
        false,
    )
    .await?;
    let mut outcome = speech.begun().await?;
    if outcome == Outcome::Begun && args.wait {
        speech.ended().await?;
        outcome = Outcome::Spoken;
    }
    speech.is_left = true;
    Ok(SpeakOutput {
        outcome,
        text: args.text,
    })
}

/// Says a text in some sessions.
pub(crate) async fn announce(line: Line, _: Call, args: AnnounceArgs) -> Result<AnnounceOutput, Failure> {
    let mut ids = vec![args.session_id];
    if ids[0] == ALL {
        ids = vec![device()];
        ids.extend(line.sessions());
    }
    let is_one = ids.len() == 1;
    let announced = ids.into_iter().map(|session_id| {
        let (line, text, lang) = (&line, &args.text, args.lang.as_deref());
        async move {
            let named = (session_id != DEFAULT_SESSION_ID).then_some(session_id.as_str());
            let outcome = begin_and_leave(line, named, text, lang).await;
            (session_id, outcome)
        }
    });
    let mut sessions = Vec::new();
    for (session_id, outcome) in join_all(announced).await {
        let (outcome, error) = match outcome {
            Ok(Outcome::Sent) => (AnnounceOutcome::Sent, None),
            Ok(_) => (AnnounceOutcome::Begun, None),
            Err(failure) if is_one => return Err(failure),
            Err(failure) => (
                AnnounceOutcome::Failed,
                Some(format!("{}: {}", failure.kind, failure.message)),
            ),
        };
        sessions.push(Announced {
            session_id,
            outcome,
            error,
        });
    }
    Ok(AnnounceOutput { sessions })
}

async fn begin_and_leave(
    line: &Line,
    session_id: Option<&str>,
    text: &str,
    lang: Option<&str>,
) -> Result<Outcome, Failure> {
    let mut speech = Speech::begin(line, session_id, text, lang, false).await?;
    let outcome = speech.begun().await?;
    speech.is_left = true;
    Ok(outcome)
}

/// A text that was sent to be spoken. Dropped before it has ended, or is left to itself, it is taken back.
pub(crate) struct Speech {
    line: Line,
    asked: Message,
    hearing: Option<Subscription>,
    has_begun: bool,
    is_left: bool,
}

impl Speech {
    /// Sends a text. `expects` opens the microphone when it was said.
    ///
    /// # Errors
    /// Nothing on this device speaks, or the bus is away: nothing was sent.
    ///
    /// # Cancel safety
    /// Nothing was sent.
    pub(crate) async fn begin(
        line: &Line,
        session_id: Option<&str>,
        text: &str,
        lang: Option<&str>,
        expects: bool,
    ) -> Result<Self, Failure> {
        let mut data = json!({"utterance": text, "expect_response": expects, "meta": {"skill": SKILL_ID}});
        if let Some(lang) = lang {
            data["lang"] = lang.into();
        }
        let request = line.message("speak", data, session_id);
        Self::send(line, request).await
    }

    /// As [`begin`](Self::begin), with a message `speak`.
    pub(crate) async fn send(line: &Line, asked: Message) -> Result<Self, Failure> {
        if asked.session_id().is_none() {
            check_audio(line).await?;
        }
        let hearing = line.hear(BEGINS.iter().chain(&ENDS).copied()).await?;
        line.send(&asked)?;
        Ok(Self {
            line: line.clone(),
            asked,
            hearing: Some(hearing),
            has_begun: false,
            is_left: false,
        })
    }

    /// Waits until the text is being said. Clients of named sessions may not report that.
    async fn begun(&mut self) -> Result<Outcome, Failure> {
        let is_device = self.asked.session_id().is_none();
        let wait = if is_device { BEGIN_WAIT } else { REPORT_WAIT };
        let request = &self.asked;
        let Some(hearing) = &mut self.hearing else {
            return Ok(Outcome::Sent);
        };
        let begins =
            |message: &Message| BEGINS.contains(&message.kind.as_str()) && is_about(request, message);
        let start = hearing.until(Instant::now() + wait, begins).await?;
        self.has_begun = start.is_some();
        match (start, is_device) {
            (Some(_), _) => Ok(Outcome::Begun),
            (None, false) => Ok(Outcome::Sent),
            (None, true) => {
                let text = format!(
                    "ovos-audio has not begun to say it within {wait:?}; its log (~/.local/state/mycroft/audio.log) says why, most \
                     often that the voice (tts) failed"
                );
                Err(Failure::new(FailureKind::TimeoutError, text))
            }
        }
    }

    /// Waits until the text was said.
    async fn ended(&mut self) -> Result<(), Failure> {
        let request = &self.asked;
        let Some(hearing) = &mut self.hearing else {
            return Ok(());
        };
        let ends = |message: &Message| is_end(request, message);
        match hearing.until(Instant::now() + END_WAIT, ends).await? {
            Some(_) => Ok(()),
            None => {
                let text =
                    format!("speaking began, but ovos-audio did not report its end within {END_WAIT:?}");
                Err(Failure::new(FailureKind::TimeoutError, text))
            }
        }
    }

    /// Waits until the text was said, as far as that is reported.
    pub(crate) async fn finish(&mut self) -> Result<(), Failure> {
        if self.begun().await? == Outcome::Begun {
            self.ended().await?;
        }
        self.is_left = true;
        Ok(())
    }
}

impl Drop for Speech {
    fn drop(&mut self) {
        if self.is_left {
            return;
        }
        let (line, asked, has_begun) = (self.line.clone(), self.asked.clone(), self.has_begun);
        let (Some(mut hearing), Ok(runtime)) = (self.hearing.take(), tokio::runtime::Handle::try_current())
        else {
            return;
        };
        runtime.spawn(async move {
            // What waits to be spoken cannot be taken back: it is ended when it begins.
            let begins =
                |message: &Message| BEGINS.contains(&message.kind.as_str()) && is_about(&asked, message);
            if !has_begun
                && !matches!(
                    hearing.until(Instant::now() + BEGIN_WAIT, begins).await,
                    Ok(Some(_))
                )
            {
                return;
            }
            // ovos-audio says that a text begins before it can be ended: a stop in between is lost.
            for _ in 0..STOPS {
                _ = line.send(&stop_of(&asked));
                let ends = |message: &Message| is_end(&asked, message);
                if !matches!(hearing.until(Instant::now() + STOP_WAIT, ends).await, Ok(None)) {
                    return;
                }
            }
        });
    }
}

/// Whether a message says that what is said in the session of this text has ended. Where another text follows at once, the end is that
/// of the last one.
fn is_end(asked: &Message, message: &Message) -> bool {
    ENDS.contains(&message.kind.as_str()) && message.session_id() == asked.session_id()
}

fn stop_of(asked: &Message) -> Message {
    Message {
        kind: STOP.to_owned(),
        data: Default::default(),
        context: asked.context.clone(),
    }
}

/// Checks that ovos-audio is there and can speak.
async fn check_audio(line: &Line) -> Result<(), Failure> {
    let answer = line
        .ask(
            "mycroft.audio.is_ready",
            json!({}),
            &["mycroft.audio.is_ready.response"],
        )
        .await?;
    let text = match answer.map(|answer| answer.data.get("status") == Some(&Value::Bool(true))) {
        Some(true) => return Ok(()),
        Some(false) => {
            "ovos-audio is not ready: it still starts, or has no voice (tts) that works; nothing was said. Its log says why, and `tts` in \
             mycroft.conf \
             chooses another"
        }
        None => {
            "nothing answers mycroft.audio.is_ready, so nothing on this device can speak, and nothing was said; start ovos-audio"
        }
    };
    Err(Failure::new(FailureKind::StateError, text))
}
