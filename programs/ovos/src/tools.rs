//! The tools: what each is called, what it does, and for how long. Read [`TOOLS`].

use std::future::Future;
use std::pin::Pin;

use ovos_toolbox_sdk::schemars::JsonSchema;
use ovos_toolbox_sdk::sentence::{Row as Sentences, sentences};
use ovos_toolbox_sdk::{argument_schema, output_schema};
use ovos_toolbox_wire::{
    Action, Audience, Effect, Failure, FailureKind, Object, Plan, Start, ToolDefinition, ToolList,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::line::{Call, Line};
use crate::{media, question, speech, volume};

type Work = Pin<Box<dyn Future<Output = Result<Value, Failure>> + Send>>;

/// A tool.
struct Tool {
    name: &'static str,
    effect: Effect,
    /// What two calls cannot use at the same time.
    subsystem: &'static str,
    timeout_ms: u64,
    schemas: fn() -> (Value, Value),
    work: fn(Line, Call, Object) -> Work,
}

/// A tool that a function of typed arguments does.
macro_rules! tool {
    ($name:literal, $effect:ident, $subsystem:literal, $seconds:literal, $work:path, $args:ty, $output:ty) => {
        Tool {
            name: $name,
            effect: Effect::$effect,
            subsystem: $subsystem,
            timeout_ms: $seconds * 1000,
            schemas: schemas::<$args, $output>,
            work: |line, call, args| Box::pin(async move { written($work(line, call, read(args)?).await?) }),
        }
    };
}

const TOOLS: &[Tool] = &[
    tool!(
        "speak",
        Write,
        "voice",
        130,
        speech::speak,
        speech::SpeakArgs,
        speech::SpeakOutput
    ),
    tool!(
        "ask",
        Write,
        "voice",
        300,
        question::ask,
        question::AskArgs,
        question::AskOutput
    ),
    tool!(
        "announce",
        Write,
        "voice",
        40,
        speech::announce,
        speech::AnnounceArgs,
        speech::AnnounceOutput
    ),
    tool!(
        "get_volume",
        Read,
        "volume",
        10,
        volume::get,
        volume::GetVolumeArgs,
        volume::Volume
    ),
    tool!(
        "set_volume",
        Write,
        "volume",
        15,
        volume::set,
        volume::SetVolumeArgs,
        volume::Volume
    ),
    tool!(
        "now_playing",
        Read,
        "media",
        10,
        media::now_playing,
        media::NowPlayingArgs,
        media::Playing
    ),
    tool!(
        "play_media",
        Write,
        "media",
        30,
        media::play,
        media::PlayMediaArgs,
        media::Playing
    ),
    tool!(
        "control_media",
        Write,
        "media",
        30,
        media::control,
        media::ControlMediaArgs,
        media::Playing
    ),
];

/// What a call would do, for the person who confirms it.
const SENTENCES: &[Sentences] = &[
    ("speak", &[("en", "say {text}"), ("de", "{text} sagen")]),
    ("ask", &[("en", "ask {question}"), ("de", "{question} fragen")]),
    (
        "announce",
        &[
            (
                "en",
                "announce {text} in {session_id:default=this room,all=every room,*=another room}",
            ),
            (
                "de",
                "{text} {session_id:default=hier,all=überall,*=anderswo} ansagen",
            ),
        ],
    ),
    (
        "set_volume",
        &[
            ("en", "set the volume to {percent} percent"),
            ("de", "die Lautstärke auf {percent} Prozent stellen"),
        ],
    ),
    ("play_media", &[("en", "play {uri}"), ("de", "{uri} abspielen")]),
    ("control_media", &[("en", "{action.word} the music")]),
];

/// The tools as the service lists them.
pub(crate) fn list() -> ToolList {
    let defined = |tool: &Tool| {
        let (mut argument_schema, output_schema) = (tool.schemas)();
        let described = argument_schema.as_object_mut();
        let described = described.and_then(|schema| schema.shift_remove("description"));
        ToolDefinition {
            name: tool.name.to_owned(),
            description: described
                .as_ref()
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned(),
            category: None,
            effect: tool.effect,
            audience: Audience::Model,
            for_models: Object::new(),
            timeout_ms: Some(tool.timeout_ms),
            agent_end: Vec::new(),
            validates: false,
            foreign: false,
            argument_schema,
            output_schema,
        }
    };
    ToolList {
        tools: TOOLS.iter().map(defined).collect(),
    }
}

/// The one action of a call.
///
/// # Errors
/// There is no such tool.
pub(crate) fn plan(name: &str, args: Object) -> Result<Plan, Failure> {
    let tool = find(name)?;
    let sentences = sentences(SENTENCES, name, &args);
    let action = Action {
        subsystems: vec![tool.subsystem.to_owned()],
        params: args,
        timeout_ms: Some(tool.timeout_ms),
        ..Action::named(name)
    };
    Ok(Plan {
        actions: vec![action],
        sentences,
    })
}

/// Does what a call asks for.
///
/// # Errors
/// There is no such tool, or what it says.
pub(crate) async fn work(line: Line, start: Start) -> Result<Value, Failure> {
    let tool = find(&start.action.name)?;
    let call = Call {
        session_id: start.call.session_id.filter(|id| line.is_spoken_in(id)),
        lang: start.call.lang,
    };
    (tool.work)(line, call, start.action.params).await
}

fn find(name: &str) -> Result<&'static Tool, Failure> {
    let found = TOOLS.iter().find(|tool| tool.name == name);
    found.ok_or_else(|| Failure::new(FailureKind::ValueError, format!("there is no tool '{name:.80}'")))
}

fn schemas<A: JsonSchema, O: JsonSchema>() -> (Value, Value) {
    (argument_schema::<A>(), output_schema::<O>())
}

fn read<A: DeserializeOwned>(args: Object) -> Result<A, Failure> {
    serde_json::from_value(Value::Object(args))
        .map_err(|error| Failure::new(FailureKind::ValueError, error.to_string()))
}

fn written(output: impl Serialize) -> Result<Value, Failure> {
    serde_json::to_value(output).map_err(|error| Failure::new(FailureKind::InternalError, error.to_string()))
}
