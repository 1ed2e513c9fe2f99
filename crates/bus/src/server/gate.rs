//! Decides whether the bus relays a text frame. Pure.

use std::fmt;

use serde::de::{Deserializer as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::envelope::{Parts, nesting};

/// Deeper nested frames are not relayed: Python's JSON reader fails at 1000 levels, and every Python service on the
/// bus then drops its connection.
const MAX_NESTING: usize = 900;

/// The decision about a frame.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Relay it unchanged to all clients; it need not be JSON.
    Relay,
    /// Drop it and broadcast this notice instead: the session is neither an object nor null (OVOS-SESSION-1 2.5).
    Reject(String),
    /// Drop it: it is nested this many levels deep.
    TooDeep(usize),
}

pub(crate) fn judge(text: &str) -> Verdict {
    // Each level takes at least one byte, so a shorter text cannot nest too deep.
    if text.len() > MAX_NESTING {
        let depth = nesting(text);
        if depth > MAX_NESTING {
            return Verdict::TooDeep(depth);
        }
    }
    rejection(text).map_or(Verdict::Relay, Verdict::Reject)
}

fn rejection(text: &str) -> Option<String> {
    let parts = Parts::find(text).ok()?;
    let context = parts.context?.get();
    let carrier = serde_json::Deserializer::from_str(context)
        .deserialize_map(CarrierVisitor)
        .ok()?;
    let session = carrier.session?.get();
    if session == "null" || session.starts_with('{') {
        return None;
    }
    let kind = parts.kind.map_or("null", RawValue::get);
    let context = match carrier.utterance_id {
        Some(id) if is_truthy(id.get()) => format!(r#"{{"utterance_id": {}}}"#, id.get()),
        _ => "{}".to_owned(),
    };
    Some(format!(
        r#"{{"type": "ovos.session.rejected", "data": {{"msg_type": {kind}, "reason": "malformed_carrier"}}, "context": {context}}}"#
    ))
}

/// Applies Python's truth test to a JSON value without building a tree. The measured depth does not bound a tree:
/// under a reserved key `serde_json` would parse a string as further JSON, with a depth count of its own.
fn is_truthy(json: &str) -> bool {
    match json.as_bytes() {
        b"null" | b"false" => false,
        [b'"', inner @ .., b'"'] => !inner.is_empty(),
        [b'[' | b'{', inner @ .., b']' | b'}'] => !inner.trim_ascii().is_empty(),
        _ => json.parse() != Ok(0.0),
    }
}

/// The keys of a context that the gate examines.
#[derive(Default)]
struct Carrier<'a> {
    session: Option<&'a RawValue>,
    utterance_id: Option<&'a RawValue>,
}

struct CarrierVisitor;

impl<'de> Visitor<'de> for CarrierVisitor {
    type Value = Carrier<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a context")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut carrier = Carrier::default();
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "session" => carrier.session = Some(map.next_value()?),
                "utterance_id" => carrier.utterance_id = Some(map.next_value()?),
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(carrier)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn almost_everything_is_relayed() {
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        for text in [
            "",
            "hello",
            "[]",
            "5",
            "null",
            "\"s\"",
            "{}",
            r#"{"type":5,"data":[],"context":7}"#,
            r#"{"type":"t","context":{"session":null}}"#,
            r#"{"type":"t","context":{"session":{}}}"#,
            r#"{"type":"t","context":{"session":"x","session":{"session_id":"s"}}}"#,
            r#"{"type":"t","data":{"session":5},"context":{}}"#,
            r#"{"type":"t","context":{"session":5}"#,
            &nested(900),
        ] {
            assert_eq!(judge(text), Verdict::Relay, "{text:.60}");
        }
        assert_eq!(judge(&nested(901)), Verdict::TooDeep(901));
        assert_eq!(judge(&"[".repeat(100_000)), Verdict::TooDeep(100_000));
    }

    /// `serde_json` parses each layer as a text of its own and starts a new depth count for it.
    #[test]
    fn layers_of_raw_text_cost_no_stack() {
        let mut text = "1".to_owned();
        for _ in 0..18 {
            let inner = Value::from(format!("{}{text}{}", "[".repeat(120), "]".repeat(120)));
            text = format!(r#"{{"$serde_json::private::RawValue":{inner}}}"#);
        }
        let frame = format!(r#"{{"type":"t","context":{{"session":"s","utterance_id":{text}}}}}"#);
        let small = std::thread::Builder::new().stack_size(256 << 10);
        let judged = small.spawn(move || matches!(judge(&frame), Verdict::Reject(_)));
        assert!(judged.unwrap().join().unwrap());
    }

    /// Each row was produced by ovos-messagebus 0.2.1a6.
    #[test]
    fn an_invalid_session_is_rejected() {
        let rows = [
            (r#"{"type":"t","context":{"session":"s"}}"#, json!("t"), json!({})),
            (
                r#"{"type":"t","context":{"session":[],"utterance_id":"u1"}}"#,
                json!("t"),
                json!({"utterance_id": "u1"}),
            ),
            (
                r#"{"type":"t","context":{"session":0,"utterance_id":""}}"#,
                json!("t"),
                json!({}),
            ),
            (
                r#"{"type":7,"context":{"session":false,"utterance_id":[ ]}}"#,
                json!(7),
                json!({}),
            ),
            (
                r#"{"context":{"session":"s","utterance_id":5}}"#,
                json!(null),
                json!({"utterance_id": 5}),
            ),
            (
                r#"{"context":{"session":"s","utterance_id":-0.0e7}}"#,
                json!(null),
                json!({}),
            ),
            (
                r#"{"context":{"session":"s","utterance_id":{"a":[]}}}"#,
                json!(null),
                json!({"utterance_id": {"a": []}}),
            ),
        ];
        for (text, kind, context) in rows {
            let Verdict::Reject(frame) = judge(text) else {
                panic!("{text} was relayed")
            };
            let frame: Value = serde_json::from_str(&frame).unwrap();
            let data = json!({"msg_type": kind, "reason": "malformed_carrier"});
            assert_eq!(
                frame,
                json!({"type": "ovos.session.rejected", "data": data, "context": context})
            );
        }
    }
}
