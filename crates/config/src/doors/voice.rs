//! The keys of the door for live speech services.

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use url::{Host, Url};

use super::toolset::{Toolset, at};
use crate::reader::Reader;
use section::fields::{Millis, Whole, checked, trimmed, word};

/// `service.doors.voice`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VoiceDoor {
    /// Which tools voices see.
    #[serde(skip)]
    pub toolset: Toolset,
    /// Whether the service starts the door, watches it, and ends it with itself.
    pub start: bool,
    /// What happens to motion when the user interrupts the voice.
    #[serde(deserialize_with = "word")]
    pub interrupt: Interrupt,
    /// How a call that takes longer than `announce_after` is answered.
    #[serde(deserialize_with = "word")]
    pub long_calls: LongCalls,
    /// The duration after which a call counts as long.
    #[serde(rename = "announce_after_ms", with = "Millis::<100, 600_000>")]
    pub announce_after: Duration,
    /// The size of the list of tools, in bytes of JSON, above which the door warns and names the largest tools.
    #[serde(with = "Whole::<1024, 16_777_216>")]
    pub warn_list_bytes: usize,
    /// Hume's Empathic Voice Interface.
    #[serde(skip)]
    pub hume: HumeVoice,
    /// OpenAI's Realtime API.
    #[serde(skip)]
    pub openai: OpenAiVoice,
}

/// `interrupt`: what happens to motion when the user interrupts the voice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Interrupt {
    /// Motion goes on: the user interrupted the voice, not the machine.
    Ignore,
    /// The motion calls are cancelled, and everything that moves comes to rest.
    CancelMotion,
}

/// `long_calls`: how a long call is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LongCalls {
    /// When the call has ended.
    Wait,
    /// At once, with the news that the call goes on. A later message tells how it ended.
    Announce,
}

/// `hume`: the access to Hume's Empathic Voice Interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HumeVoice {
    /// The URL of the service.
    #[serde(with = "service")]
    pub url: Url,
    /// The name of the environment variable that holds the key.
    pub key_env: String,
    /// The configuration of chats that this door opens itself.
    #[serde(deserialize_with = "name")]
    pub config_id: Option<String>,
}

/// `openai`: the access to OpenAI's Realtime API.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenAiVoice {
    /// The URL of the service.
    #[serde(with = "service")]
    pub url: Url,
    /// The name of the environment variable that holds the key.
    pub key_env: String,
}

impl Default for HumeVoice {
    fn default() -> Self {
        Self {
            url: constant_url("wss://api.hume.ai"),
            key_env: "HUME_API_KEY".to_owned(),
            config_id: None,
        }
    }
}

impl Default for OpenAiVoice {
    fn default() -> Self {
        Self {
            url: constant_url("wss://api.openai.com"),
            key_env: "OPENAI_API_KEY".to_owned(),
        }
    }
}

impl VoiceDoor {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        let path = at(&["voice"]);
        let written = reader.written(&path);
        let defaults = Self {
            toolset: Toolset::default(),
            start: false,
            interrupt: Interrupt::Ignore,
            long_calls: LongCalls::Wait,
            announce_after: Duration::from_millis(4000),
            warn_list_bytes: 64 << 10,
            hume: HumeVoice::default(),
            openai: OpenAiVoice::default(),
        };
        let (door, rest) = reader.open(&path, written, defaults);
        let parts = [&Toolset::KEYS[..], &["hume", "openai"]].concat();
        reader.refuse(&path, &door, rest, &parts);
        let toolset = Toolset::read(reader, "voice");
        let hume = speech(reader, "hume", HumeVoice::default());
        let openai = speech(reader, "openai", OpenAiVoice::default());
        Self {
            toolset,
            hume,
            openai,
            ..door
        }
    }
}

/// Checks the URL of a speech service. The key is sent to it, so the scheme has to be `wss`; `ws` is accepted only for this
/// machine.
///
/// # Errors
/// The text says what is accepted.
pub fn speech_service(text: &str) -> Result<Url, &'static str> {
    let accepted = "an address like wss://host, or ws://127.0.0.1:port on this machine, without a path";
    let url: Url = text.parse().map_err(|_| accepted)?;
    let is_bare = url.path() == "/"
        && url.query().is_none()
        && url.fragment().is_none()
        && url.username().is_empty()
        && url.password().is_none();
    match url.scheme() {
        "wss" if url.has_host() && is_bare => Ok(url),
        "ws" if is_this_machine(&url) && is_bare => Ok(url),
        _ => Err(accepted),
    }
}

/// Whether a URL names this machine.
#[must_use]
pub fn is_this_machine(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

mod service {
    use super::*;

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Url, D::Error> {
        let accepted = speech_service("").err().unwrap_or_default();
        checked(from, accepted, |text: String| speech_service(text.trim()).ok())
    }

    pub(super) fn serialize<S: Serializer>(url: &Url, to: S) -> Result<S::Ok, S::Error> {
        url.as_str().trim_end_matches('/').serialize(to)
    }
}

#[expect(clippy::expect_used, reason = "a test reads the defaults")]
fn constant_url(url: &str) -> Url {
    speech_service(url).expect("an address")
}

/// Reads the keys of one service. A value that is not the name of a variable may be the key itself, so the error does not show
/// it.
fn speech<T: Serialize + DeserializeOwned>(reader: &mut Reader<'_>, service: &'static str, defaults: T) -> T {
    let path = at(&["voice", service]);
    let mut written = reader.written(&path);
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let is_name = |value: &Value| match value {
        Value::Null => true,
        Value::String(name) => (1..=64).contains(&name.len()) && name.bytes().all(is_word),
        _ => false,
    };
    if written.get("key_env").is_some_and(|value| !is_name(value)) {
        written.shift_remove("key_env");
        let accepted =
            "the name of an environment variable: letters, digits and _; the key itself does not belong here";
        reader.wrong(&at(&["voice", service, "key_env"]), "something else", accepted);
    }
    let (section, rest) = reader.open(&path, written, defaults);
    reader.refuse(&path, &section, rest, &[]);
    section
}

fn name<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    checked(from, "a string", |text: Option<String>| match text {
        Some(text) => trimmed(&text).map(Some),
        None => Some(None),
    })
}
