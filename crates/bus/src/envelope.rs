//! Locates the type, data and context of a frame without parsing their values.
//!
//! Nothing is built or copied: a frame that this service does not answer costs one pass over its bytes, and nesting
//! of any depth uses no stack. [`Envelope::message`] builds trees, only up to [`MAX_DEPTH`] levels. Read [`Envelope`]
//! first.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::Deserializer;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::message::Message;

/// Data or context nested this deep, or deeper, is not parsed: serde_json's own limit.
pub const MAX_DEPTH: usize = 128;

/// Why a frame, or a part of it, is not a usable message.
#[derive(Debug, thiserror::Error)]
pub enum MessageError {
    /// Not one JSON value.
    #[error("frame is not JSON: {0}")]
    NotJson(#[source] serde_json::Error),
    /// JSON, but an array, a string, a number ...
    #[error("frame is not a JSON object")]
    NotAnObject,
    /// No `type`.
    #[error("frame has no \"type\"")]
    NoType,
    /// `type` is not a string, or its escapes do not decode to text.
    #[error("\"type\" is not a string")]
    TypeNotAString,
    /// `type` is `""`.
    #[error("\"type\" is empty")]
    EmptyType,
    /// `data` or `context` is neither a JSON object nor null.
    #[error("\"{0}\" is not a JSON object")]
    PartNotAnObject(Part),
    /// `context.session` is neither an object nor null.
    #[error("\"context.session\" is not a JSON object")]
    SessionNotAnObject,
    /// A part is nested too deep to be parsed.
    #[error("\"{part}\" is nested {depth} levels deep: fewer than {MAX_DEPTH} are accepted")]
    TooDeep {
        /// Which part.
        part: Part,
        /// The measured depth, in levels.
        depth: usize,
    },
    /// A part has a key reserved by serde_json, which would turn the object into another value.
    #[error("\"{0}\" has a key that starts with \"$serde_json::private::\"")]
    ReservedKey(Part),
    /// The JSON is well formed but cannot be represented, such as half of a surrogate pair.
    #[error("\"{part}\" cannot be read: {source}")]
    Unreadable {
        /// Which part.
        part: Part,
        /// The cause.
        source: serde_json::Error,
    },
}

/// The two objects of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The payload.
    Data,
    /// Routing and session.
    Context,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Part::Data => "data",
            Part::Context => "context",
        })
    }
}

/// A frame whose parts are located but not parsed.
#[derive(Debug, Clone)]
pub struct Envelope<'a> {
    /// The topic, `type` on the wire.
    pub kind: Cow<'a, str>,
    /// The unparsed payload; none when absent or null.
    pub data: Option<&'a RawValue>,
    /// The unparsed context; none when absent or null.
    pub context: Option<&'a RawValue>,
}

impl<'a> Envelope<'a> {
    /// Locates the parts of a message. Unknown keys are ignored; the last of several equal keys wins.
    ///
    /// # Errors
    /// [`MessageError::NotJson`], `NotAnObject`, `NoType`, `TypeNotAString`, `EmptyType`, `PartNotAnObject`: the
    /// frame is not a message. No sender can be answered then: drop the frame.
    pub fn parse(text: &'a str) -> Result<Self, MessageError> {
        if !text.trim_start_matches([' ', '\t', '\r', '\n']).starts_with('{') {
            return Err(match serde_json::from_str::<IgnoredAny>(text) {
                Ok(_) => MessageError::NotAnObject,
                Err(error) => MessageError::NotJson(error),
            });
        }
        let parts = Parts::find(text).map_err(MessageError::NotJson)?;
        Ok(Self {
            kind: type_of(parts.kind.ok_or(MessageError::NoType)?.get())?,
            data: object(parts.data, Part::Data)?,
            context: object(parts.context, Part::Context)?,
        })
    }

    /// Returns the type of a frame as cheaply as possible. If the frame begins with its type, as all known senders
    /// write it, the rest is not read: `Some` then guarantees neither that the rest is well formed nor that no second
    /// `type` follows. None means that the frame is not a message.
    pub fn kind_of(text: &'a str) -> Option<Cow<'a, str>> {
        match leading_type(text) {
            Some(kind) => Some(Cow::Borrowed(kind)),
            None => Self::parse(text).ok().map(|envelope| envelope.kind),
        }
    }

    /// Builds the whole message.
    ///
    /// # Errors
    /// Those of [`data_map`](Self::data_map) and [`context_map`](Self::context_map). When only the data is unusable,
    /// [`head`](Self::head) still gives the request, so that an error can be answered.
    pub fn message(&self) -> Result<Message, MessageError> {
        let mut message = self.head()?;
        message.data = self.data_map()?;
        Ok(message)
    }

    /// Builds the message without its data: enough to derive an answer from it.
    ///
    /// # Errors
    /// As [`context_map`](Self::context_map).
    pub fn head(&self) -> Result<Message, MessageError> {
        Ok(Message {
            kind: self.kind.as_ref().to_owned(),
            data: Map::new(),
            context: self.context_map()?,
        })
    }

    /// Parses the data; an empty map when it is absent.
    ///
    /// # Errors
    /// [`MessageError::TooDeep`], `ReservedKey`, `Unreadable`.
    pub fn data_map(&self) -> Result<Map<String, Value>, MessageError> {
        tree(self.data, Part::Data)
    }

    /// Returns the entries of the data whose values are neither objects nor arrays. A list is returned, too, but only
    /// with its objects, and these only with such entries. This works also for data that is nested too deep for
    /// [`data_map`](Self::data_map).
    #[must_use]
    pub fn plain_data(&self) -> Map<String, Value> {
        let text = self.data.map_or("{}", RawValue::get);
        plain_entries(text, |list| {
            let items: Vec<&RawValue> = serde_json::from_str(list).ok()?;
            let objects = items.into_iter().filter(|item| item.get().starts_with('{'));
            let objects = objects.map(|item| Value::Object(plain_entries(item.get(), |_| None)));
            Some(Value::Array(objects.collect()))
        })
    }

    /// Parses the context; an empty map when it is absent.
    ///
    /// # Errors
    /// [`MessageError::SessionNotAnObject`], `TooDeep`, `ReservedKey`, `Unreadable`.
    pub fn context_map(&self) -> Result<Map<String, Value>, MessageError> {
        let context = tree(self.context, Part::Context)?;
        match context.get("session") {
            None | Some(Value::Null | Value::Object(_)) => Ok(context),
            Some(_) => Err(MessageError::SessionNotAnObject),
        }
    }
}

/// The entries of an object whose values are neither objects nor arrays. `list` converts an array, or drops it.
fn plain_entries(text: &str, list: impl Fn(&str) -> Option<Value>) -> Map<String, Value> {
    let values: BTreeMap<String, &RawValue> = serde_json::from_str(text).unwrap_or_default();
    let plain = |(key, value): (String, &RawValue)| {
        let value = match value.get() {
            object if object.starts_with('{') => None,
            array if array.starts_with('[') => list(array),
            scalar => serde_json::from_str(scalar).ok(),
        };
        Some((key, value?))
    };
    values.into_iter().filter_map(plain).collect()
}

impl Message {
    /// Parses a frame into a message: the shortcut for callers that want the whole tree at once.
    ///
    /// # Errors
    /// Those of [`Envelope::parse`] and [`Envelope::message`].
    pub fn parse(text: &str) -> Result<Self, MessageError> {
        Envelope::parse(text)?.message()
    }
}

/// Measures how deep brackets and braces nest, strings left out. The text need not be JSON.
pub(crate) fn nesting(text: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0_usize);
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'{' | b'[' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => loop {
                match bytes.next() {
                    Some(b'\\') => drop(bytes.next()),
                    Some(b'"') | None => break,
                    Some(_) => {}
                }
            },
            _ => {}
        }
    }
    deepest
}

/// Returns the type if the text starts with `{"type": "..."` and the type has no escapes.
fn leading_type(text: &str) -> Option<&str> {
    let space = [' ', '\t', '\r', '\n'];
    let rest = text
        .trim_start_matches(space)
        .strip_prefix('{')?
        .trim_start_matches(space);
    let rest = rest
        .strip_prefix("\"type\"")?
        .trim_start_matches(space)
        .strip_prefix(':')?;
    plain_string(rest.trim_start_matches(space))
}

/// Returns the JSON string at the start of a text, if it is not empty and has no escapes.
fn plain_string(text: &str) -> Option<&str> {
    let text = text.strip_prefix('"')?;
    let end = text
        .bytes()
        .position(|byte| byte == b'"' || byte == b'\\' || byte < 0x20)?;
    (end > 0 && text.as_bytes()[end] == b'"').then(|| &text[..end])
}

fn type_of(raw: &str) -> Result<Cow<'_, str>, MessageError> {
    if let Some(kind) = plain_string(raw) {
        return Ok(Cow::Borrowed(kind));
    }
    match serde_json::from_str::<String>(raw) {
        Ok(kind) if kind.is_empty() => Err(MessageError::EmptyType),
        Ok(kind) => Ok(Cow::Owned(kind)),
        Err(_) => Err(MessageError::TypeNotAString),
    }
}

fn object(raw: Option<&RawValue>, part: Part) -> Result<Option<&RawValue>, MessageError> {
    match raw {
        None => Ok(None),
        Some(raw) if raw.get() == "null" => Ok(None),
        Some(raw) if raw.get().starts_with('{') => Ok(Some(raw)),
        Some(_) => Err(MessageError::PartNotAnObject(part)),
    }
}

fn tree(raw: Option<&RawValue>, part: Part) -> Result<Map<String, Value>, MessageError> {
    let Some(raw) = raw else { return Ok(Map::new()) };
    let text = raw.get();
    if has_reserved_key(text) {
        return Err(MessageError::ReservedKey(part));
    }
    serde_json::from_str(text).map_err(|source| match nesting(text) {
        depth if depth >= MAX_DEPTH => MessageError::TooDeep { part, depth },
        _ => MessageError::Unreadable { part, source },
    })
}

/// serde_json passes big numbers and raw text through its trees under reserved keys. Received from the bus, such a
/// key would turn an object into another value, and each raw value would start a new depth count. The check is
/// conservative: it also rejects a string value with that text.
fn has_reserved_key(text: &str) -> bool {
    const RESERVED: &str = "$serde_json::private::";
    if text.contains(RESERVED) {
        return true;
    }
    // The key could also be written with escapes; `\u00..` is rare enough to unescape and search again.
    text.contains("\\u00") && unescape_ascii(text).contains(RESERVED)
}

/// Replaces the escapes `\u0020` to `\u007e` by the characters they stand for.
fn unescape_ascii(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut pieces = text.split("\\u00");
    plain.push_str(pieces.next().unwrap_or_default());
    for piece in pieces {
        match piece.get(..2).and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte @ 0x20..=0x7e) => {
                plain.push(char::from(byte));
                plain.push_str(&piece[2..]);
            }
            _ => {
                plain.push('\u{fffd}');
                plain.push_str(piece);
            }
        }
    }
    plain
}

/// The unparsed top-level values of a message, of any JSON type.
#[derive(Default)]
pub(super) struct Parts<'a> {
    pub(super) kind: Option<&'a RawValue>,
    pub(super) data: Option<&'a RawValue>,
    pub(super) context: Option<&'a RawValue>,
}

impl<'a> Parts<'a> {
    pub(super) fn find(text: &'a str) -> Result<Self, serde_json::Error> {
        let mut reader = serde_json::Deserializer::from_str(text);
        let parts = reader.deserialize_map(PartsVisitor)?;
        reader.end()?;
        Ok(parts)
    }
}

struct PartsVisitor;

impl<'de> Visitor<'de> for PartsVisitor {
    type Value = Parts<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a message: {\"type\", \"data\", \"context\"}")
    }

    // Written by hand because a derived implementation rejects duplicate keys.
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut parts = Parts::default();
        while let Some(Key(key)) = map.next_key()? {
            match key.as_ref() {
                "type" => parts.kind = Some(map.next_value()?),
                "data" => parts.data = Some(map.next_value()?),
                "context" => parts.context = Some(map.next_value()?),
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(parts)
    }
}

#[derive(serde::Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns a short name for the outcome of reading a frame.
    fn verdict(text: &str) -> &'static str {
        match Message::parse(text) {
            Ok(_) => "message",
            Err(MessageError::NotJson(_)) => "not json",
            Err(MessageError::NotAnObject) => "not an object",
            Err(MessageError::NoType) => "no type",
            Err(MessageError::TypeNotAString) => "type not a string",
            Err(MessageError::EmptyType) => "empty type",
            Err(MessageError::PartNotAnObject(Part::Data)) => "data not an object",
            Err(MessageError::PartNotAnObject(Part::Context)) => "context not an object",
            Err(MessageError::SessionNotAnObject) => "session not an object",
            Err(MessageError::TooDeep { .. }) => "too deep",
            Err(MessageError::ReservedKey(_)) => "reserved key",
            Err(MessageError::Unreadable { .. }) => "unreadable",
        }
    }

    /// A value that cannot be parsed (a lone surrogate, deep nesting, a reserved key) does not hide the plain values
    /// beside it.
    #[test]
    fn what_is_plain_is_read_from_data_that_cannot_be_read() {
        for bad in [
            r#""\ud83d""#,
            &braces(200),
            r#"{"$serde_json::private::Number":1}"#,
        ] {
            let steps =
                format!(r#"[{{"name":"mark","args":{{"x":{bad}}}}},7,{{"name":"stop","args":{bad}}}]"#);
            let text =
                format!(r#"{{"type":"t","data":{{"call_id":"r","args":{{"x":{bad}}},"steps":{steps}}}}}"#);
            let envelope = Envelope::parse(&text).unwrap();
            assert!(envelope.data_map().is_err(), "{bad}");
            let plain = Value::Object(envelope.plain_data());
            assert_eq!(
                plain,
                json!({"call_id": "r", "steps": [{"name": "mark"}, {"name": "stop"}]}),
                "{bad}"
            );
        }
    }

    #[test]
    fn every_kind_of_frame_has_its_verdict() {
        let deep = |levels: usize| format!(r#"{{"type":"t","data":{}}}"#, braces(levels));
        let rows = [
            (r#"{"type":"t"}"#.into(), "message"),
            (
                r#" {"data":null,"context":null,"type":"t","extra":[[]]} "#.into(),
                "message",
            ),
            (
                r#"{"type":"t","type":"u","data":{},"data":{"a":1},"x":1,"x":2}"#.into(),
                "message",
            ),
            (r#"{"type":"t","context":{"session":null}}"#.into(), "message"),
            (r#"{"type":"a\u0062 é"}"#.into(), "message"),
            (deep(127), "message"),
            (deep(128), "too deep"),
            (deep(100_000), "too deep"),
            (format!(r#"{{"type":"t","x":{}}}"#, braces(100_000)), "message"),
            (format!(r#"{{"type":"t","context":{}}}"#, braces(500)), "too deep"),
            ("[".repeat(100_000), "not json"),
            ("{\"a\":".repeat(100_000), "not json"),
            (
                format!("{}{}", "[".repeat(100_000), "]".repeat(100_000)),
                "not an object",
            ),
            (String::new(), "not json"),
            ("hello".into(), "not json"),
            (r#"{"type":"t"} x"#.into(), "not json"),
            (r#"{"type":"t","data":{"x":NaN}}"#.into(), "not json"),
            (r#"{"type":"t""#.into(), "not json"),
            ("[]".into(), "not an object"),
            ("5".into(), "not an object"),
            ("null".into(), "not an object"),
            (r#""s""#.into(), "not an object"),
            ("{}".into(), "no type"),
            (r#"{"type":5}"#.into(), "type not a string"),
            (r#"{"type":null}"#.into(), "type not a string"),
            (r#"{"type":["t"]}"#.into(), "type not a string"),
            (r#"{"type":"\ud800"}"#.into(), "type not a string"),
            (r#"{"type":""}"#.into(), "empty type"),
            (r#"{"type":"t","data":[]}"#.into(), "data not an object"),
            (r#"{"type":"t","data":"x"}"#.into(), "data not an object"),
            (r#"{"type":"t","context":0}"#.into(), "context not an object"),
            (
                r#"{"type":"t","context":{"session":"s"}}"#.into(),
                "session not an object",
            ),
            (
                r#"{"type":"t","context":{"session":[]}}"#.into(),
                "session not an object",
            ),
            (r#"{"type":"t","data":{"s":"\ud800"}}"#.into(), "unreadable"),
            (
                r#"{"type":"t","data":{"a":{"$serde_json::private::Number":"1"}}}"#.into(),
                "reserved key",
            ),
            (
                r#"{"type":"t","data":{"\u0024serde_json::private::RawValue":"{}"}}"#.into(),
                "reserved key",
            ),
            (
                r#"{"type":"t","data":{"s":"\u001b[0m \u003cb\u003e \u00e9"}}"#.into(),
                "message",
            ),
        ];
        for (text, expected) in rows {
            let start: String = text.chars().take(60).collect();
            assert_eq!(verdict(&text), expected, "{start}");
        }
    }

    fn braces(levels: usize) -> String {
        format!("{}1{}", r#"{"a":"#.repeat(levels), "}".repeat(levels))
    }

    #[test]
    fn data_too_deep_still_leaves_a_request_to_answer() {
        let text = format!(
            r#"{{"type":"t","data":{},"context":{{"source":"A"}}}}"#,
            braces(100_000)
        );
        let envelope = Envelope::parse(&text).unwrap();
        let Err(MessageError::TooDeep {
            part: Part::Data,
            depth: 100_000,
        }) = envelope.message()
        else {
            panic!("100,000 levels were built into a tree");
        };
        let head = envelope.head().unwrap();
        assert_eq!(
            (head.kind.as_str(), head.context["source"].as_str()),
            ("t", Some("A"))
        );
    }

    #[test]
    fn a_repeated_key_counts_with_its_last_value() {
        let message = Message::parse(r#"{"type":"t","type":"u","data":{"a":1},"data":{"b":2}}"#).unwrap();
        assert_eq!(
            (message.kind.as_str(), Value::Object(message.data)),
            ("u", json!({"b": 2}))
        );
    }

    #[test]
    fn the_peek_agrees_with_the_full_look() {
        let rows = [
            r#"{"type":"ovos.tools.stop","data":{}}"#,
            "\n { \"type\" : \"ovos.tools.stop\" }",
            r#"{"data":{"type":"x"},"type":"ovos.tools.stop"}"#,
            r#"{"type":"ovos\u002etools.stop"}"#,
            r#"{"type":"zażółć"}"#,
            r#"{"type":""}"#,
            r#"{"type":5}"#,
            r#"{"typo":"t"}"#,
            "[]",
            "",
        ];
        for text in rows {
            let full = Envelope::parse(text).ok().map(|envelope| envelope.kind);
            assert_eq!(Envelope::kind_of(text), full, "{text}");
        }
        // A stop is recognised even if the rest of the frame is broken or huge.
        assert_eq!(
            Envelope::kind_of(r#"{"type": "ovos.tools.stop", "data": {"#).as_deref(),
            Some("ovos.tools.stop")
        );
    }

    #[test]
    fn brackets_in_strings_do_not_nest() {
        let rows = [
            ("", 0),
            ("{}", 1),
            ("[[1],[2]]", 2),
            (r#"{"a":"[[[\"[[[","b":[]}"#, 2),
            ("]]][", 1),
            ("\"[\\", 0),
        ];
        for (text, depth) in rows {
            assert_eq!(nesting(text), depth, "{text}");
        }
    }
}
