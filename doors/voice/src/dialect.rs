//! What a live speech service is to the bridge: where its socket is, and what its frames mean. Pure.
//!
//! A dialect is one file with an implementation of [`Dialect`] and recorded frames as its tests; `docs/voice.md` says how to
//! add one.

use std::fmt;

use ovos_toolbox_wire::Object;
use serde_json::Value;
use url::Url;

use crate::outcome::Outcome;

/// The longest id of a call or of a chat that is accepted, in bytes.
pub(crate) const MAX_ID: usize = 256;

/// How much of a tool's name is kept, in bytes. No name that is shown is longer than 64, and names stand in answers.
const MAX_NAME: usize = 128;

/// One service's protocol.
pub(crate) trait Dialect: Send + Sync + 'static {
    /// Its name in the configuration and on the bus.
    fn name(&self) -> &'static str;

    /// Where a socket is opened, and with which headers.
    ///
    /// # Errors
    /// This service has no such socket, in words for an operator.
    fn open(&self, target: &Target, key: Option<&Key>) -> Result<Opening, String>;

    /// Whether frames of this type are read. All others, such as audio, are dropped before they are parsed.
    fn reads(&self, kind: &str) -> bool;

    /// What a frame says; nothing where it does not matter here.
    fn parse(&self, frame: &Value) -> Vec<Heard>;

    /// Tells the outcome of a call.
    fn answer(&self, call: &Asked, outcome: &Outcome) -> Vec<String>;

    /// Tells how a call ended that was answered before it had ended.
    fn report(&self, call: &Asked, outcome: &Outcome) -> Vec<String>;

    /// Lets the voice speak about what it was told; none where it does so by itself. It is said after the last answer of a turn
    /// and after a report, and never while the voice has the floor.
    fn speak(&self) -> Option<String> {
        None
    }

    /// Tells which tools there are, at the beginning and after every change.
    fn tools_changed(&self, tools: &[Shown]) -> Vec<String>;
}

/// What a socket is opened to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// A chat that runs elsewhere, by its id.
    Joined(String),
    /// A chat of our own; one that follows an earlier one names its group.
    Own { resumes: Option<String> },
}

/// How a socket is opened.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Opening {
    pub(crate) url: Url,
    /// They hold the key, so they are never logged.
    pub(crate) headers: Vec<(&'static str, Key)>,
}

/// What must not be logged.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Key(pub(crate) String);

impl fmt::Debug for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("(not shown)")
    }
}

/// A tool, as a dialect describes it to its service.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Shown {
    pub(crate) name: String,
    pub(crate) description: String,
    /// The schema of its arguments.
    pub(crate) arguments: Value,
}

/// What a frame says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Heard {
    /// The socket's chat has this id, and belongs to this group.
    Chat { id: String, group: Option<String> },
    /// A tool is called.
    Call(Asked),
    /// The same, which counts only where the tool is a stop: the voice may still be cut short, or was. A stop without a usable id
    /// has an empty one, and wants no answer.
    IfStop(Asked),
    /// The voice takes the floor, or gives it back.
    Floor { taken: bool },
    /// It was told to speak while it has the floor.
    SpokeTooSoon,
    /// These calls are taken back.
    Cancel(Vec<String>),
    /// The user spoke while the voice did.
    Interrupted,
    /// The service complains, or the frame does not make sense.
    Complaint(String),
}

/// A call, as the service asks for it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Asked {
    pub(crate) id: String,
    pub(crate) name: String,
    /// What is wrong with them, where they are no object. They are never taken for an empty one.
    pub(crate) arguments: Result<Object, String>,
    /// Whether the service waits for an answer.
    pub(crate) wants_answer: bool,
    /// What the call belongs to, where a service asks for several at once.
    pub(crate) turn: Option<String>,
}

/// Arguments that are written as JSON in a text.
pub(crate) fn arguments(text: Option<&Value>) -> Result<Object, String> {
    let expected = "expected a JSON object, written as text";
    let Some(Value::String(text)) = text else {
        return Err(expected.to_owned());
    };
    match serde_json::from_str(text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(expected.to_owned()),
        Err(error) => Err(format!("{expected}; {error}")),
    }
}

/// The name of a tool, cut after [`MAX_NAME`].
pub(crate) fn tool_name(value: Option<&Value>) -> String {
    let name = value.and_then(Value::as_str).unwrap_or_default();
    name[..name.floor_char_boundary(MAX_NAME)].to_owned()
}

/// A text that is neither missing, nor empty, nor longer than [`MAX_ID`].
pub(crate) fn id(value: Option<&Value>) -> Option<String> {
    let text = value?.as_str()?;
    (1..=MAX_ID).contains(&text.len()).then(|| text.to_owned())
}

/// Whether an id can stand in the path or the query of a URL as it is.
pub(crate) fn is_plain(id: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (1..=MAX_ID).contains(&id.len()) && id.bytes().all(is_plain)
}
