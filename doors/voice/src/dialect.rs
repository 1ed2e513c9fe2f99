//! The interface to the protocol of a live speech service: the address of its socket, and the meaning of its frames. Pure.
//!
//! A dialect is one file with an implementation of [`Dialect`] and recorded frames as its tests; `docs/voice.md` says how to
//! add one.

use std::fmt;

use client::read_arguments;
use ovos_toolbox_wire::Object;
use serde_json::Value;
use url::Url;

use crate::outcome::Outcome;

/// The longest id of a call or of a chat that is accepted, in bytes.
pub(crate) const MAX_ID: usize = 256;

/// The length to which the name of a tool is cut, in bytes. The names of the door's tools have at most 64, and answers repeat
/// names.
const MAX_NAME: usize = 128;

/// One service's protocol.
pub(crate) trait Dialect: Send + Sync + 'static {
    /// Its name in the configuration and on the bus.
    fn name(&self) -> &'static str;

    /// Returns how a socket is opened: its address and headers.
    ///
    /// # Errors
    /// The service has no such socket; the text says so to an operator.
    fn open(&self, target: &Target, key: Option<&Key>) -> Result<Opening, String>;

    /// Whether frames of this type are read. All others, such as audio, are dropped before they are parsed.
    fn reads(&self, kind: &str) -> bool;

    /// Returns the meaning of a frame; nothing if the frame does not matter here.
    fn parse(&self, frame: &Value) -> Vec<Meaning>;

    /// Returns the frames that answer a call with its outcome.
    fn answer(&self, call: &VoiceCall, outcome: &Outcome) -> Vec<String>;

    /// Returns the frames that report how a call ended that was answered before its end.
    fn report(&self, call: &VoiceCall, outcome: &Outcome) -> Vec<String>;

    /// Returns the frame that makes the voice speak about what it was told; `None` if it speaks by itself. The frame is sent after
    /// the last answer of a turn and after a report, and never while the voice has the floor.
    fn speak(&self) -> Option<String> {
        None
    }

    /// Returns the frames that tell which tools there are. They are sent at the beginning and after every change.
    fn tools_changed(&self, tools: &[ShownTool]) -> Vec<String>;

    /// Returns the frames that tell the user this.
    fn text_frames(&self, text: &str) -> Vec<String>;
}

/// The chat for which a socket is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// A chat that runs elsewhere, by its id.
    Joined(String),
    /// A chat of our own. If it continues an earlier one, it names the group of that chat.
    Own { resumes: Option<String> },
}

/// The address and headers with which a socket is opened.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Opening {
    pub(crate) url: Url,
    /// The headers contain the key, so they are never logged.
    pub(crate) headers: Vec<(&'static str, Key)>,
}

/// A text that must not be logged.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Key(pub(crate) String);

impl fmt::Debug for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("(not shown)")
    }
}

/// A tool, as a dialect describes it to its service.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ShownTool {
    pub(crate) name: String,
    pub(crate) description: String,
    /// The schema of its arguments.
    pub(crate) arguments: Value,
}

/// The meaning of a frame.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Meaning {
    /// The socket's chat has this id, and belongs to this group.
    Chat { id: String, group: Option<String> },
    /// A tool is called.
    Call(VoiceCall),
    /// A tool is called, but the call counts only if the tool is a stop, because the voice may still be interrupted, or was. A
    /// stop without a usable id has an empty id and gets no answer.
    IfStop(VoiceCall),
    /// The voice takes the floor, or gives it back.
    Floor { taken: bool },
    /// The voice was told to speak while it had the floor.
    SpokeTooSoon,
    /// The service cancels these calls.
    Cancel(Vec<String>),
    /// The user interrupted the voice.
    Interrupted,
    /// The service does not take the tools that it was told.
    ToolsRefused(String),
    /// The service reports an error, or the frame makes no sense.
    Complaint(String),
}

/// A call, as the service asks for it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct VoiceCall {
    pub(crate) id: String,
    pub(crate) name: String,
    /// The arguments, or what is wrong if they are not an object. Wrong arguments are never replaced by an empty object.
    pub(crate) arguments: Result<Object, String>,
    /// Whether the service waits for an answer.
    pub(crate) wants_answer: bool,
    /// The turn of the call, if a service can ask for several calls at once.
    pub(crate) turn: Option<String>,
}

/// Reads arguments, which the services write as JSON in a text. Nothing and an empty text are no arguments.
pub(crate) fn arguments(given: Option<&Value>) -> Result<Object, String> {
    let read = read_arguments(given);
    read.map_err(|error| {
        error
            .to_string()
            .replacen("JSON object", "JSON object, written as text", 1)
    })
}

/// Returns the name of a tool, cut to [`MAX_NAME`].
pub(crate) fn tool_name(value: Option<&Value>) -> String {
    let name = value.and_then(Value::as_str).unwrap_or_default();
    name[..name.floor_char_boundary(MAX_NAME)].to_owned()
}

/// Returns a text, unless it is missing, empty or longer than [`MAX_ID`].
pub(crate) fn id(value: Option<&Value>) -> Option<String> {
    let text = value?.as_str()?;
    (1..=MAX_ID).contains(&text.len()).then(|| text.to_owned())
}

/// Whether an id can be put into the path or the query of a URL unchanged.
pub(crate) fn is_plain(id: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (1..=MAX_ID).contains(&id.len()) && id.bytes().all(is_plain)
}
