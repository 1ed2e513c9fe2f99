//! A bus message, and the replies derived from it.
//!
//! Owns the routing and session rules of OVOS-MSG-1 section 5, as the published Python packages apply them. Pure: no
//! IO, no clock. [`Envelope`](super::Envelope) reads frames. Read [`Message`] first.

use serde::Serialize;
use serde_json::{Map, Value};

/// The session id of the device itself.
pub const DEFAULT_SESSION_ID: &str = "default";

/// The context key that belongs to this service: it marks an answer that is sent again.
pub const OWN_KEY: &str = "ovos_tools";

/// One message of the bus: a type, a payload and its context.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Message {
    /// The topic, `type` on the wire.
    #[serde(rename = "type")]
    pub kind: String,
    /// The payload.
    pub data: Map<String, Value>,
    /// Routing (`source`, `destination`), `session` and any other keys of the sender.
    pub context: Map<String, Value>,
}

impl Message {
    /// Creates a message with an empty context.
    pub fn new(kind: impl Into<String>, data: Map<String, Value>) -> Self {
        Self {
            kind: kind.into(),
            data,
            context: Map::new(),
        }
    }

    /// Serializes the message as one JSON object in UTF-8, without ASCII escapes.
    pub fn to_text(&self) -> String {
        #[allow(
            clippy::expect_used,
            reason = "string keys and JSON values always serialize, and a String takes every write"
        )]
        serde_json::to_string(self).expect("a message is JSON")
    }

    /// Returns the session id of the context; none if it is absent or the default one.
    pub fn session_id(&self) -> Option<&str> {
        self.context.get("session")?.as_object().and_then(named)
    }

    /// Derives a message to the sender: source and destination are swapped, the rest of the context is kept.
    pub fn reply(&self, kind: impl Into<String>, data: Map<String, Value>) -> Self {
        let mut context = self.context.clone();
        turn_round(&mut context);
        settle_session(&mut context);
        Self {
            kind: kind.into(),
            data,
            context,
        }
    }

    /// Derives the answer to this message: a [`reply`](Self::reply) of type `<type>.response`.
    pub fn response(&self, data: Map<String, Value>) -> Self {
        self.reply(format!("{}.response", self.kind), data)
    }
}

/// Swaps source and destination. An empty string or null counts as an absent peer, also inside an array. Of several
/// destinations the first becomes the source. If only one of the two is present, both get its value, as in the
/// reference implementation.
fn turn_round(context: &mut Map<String, Value>) {
    for key in ["source", "destination"] {
        let absent = match context.get_mut(key) {
            Some(Value::Array(peers)) => {
                peers.retain(|peer| !is_blank(peer));
                peers.is_empty()
            }
            Some(peer) => is_blank(peer),
            None => false,
        };
        if absent {
            context.shift_remove(key);
        }
    }
    let source = context.get("source").cloned();
    let destination = context.get("destination").cloned();
    match destination {
        Some(Value::Array(mut peers)) => {
            context.insert("source".into(), peers.swap_remove(0));
        }
        Some(peer) => {
            context.insert("source".into(), peer);
        }
        None => {}
    }
    if let Some(peer) = source {
        context.insert("destination".into(), peer);
    }
}

fn is_blank(peer: &Value) -> bool {
    peer.is_null() || peer.as_str() == Some("")
}

/// Keeps a named session, `{}` and null as they are, unknown fields included. Of the default session only the id is kept, because its
/// other fields describe the process of the sender.
fn settle_session(context: &mut Map<String, Value>) {
    let keep = match context.get("session") {
        None => false,
        Some(Value::Object(session)) => session.is_empty() || named(session).is_some(),
        Some(_) => true,
    };
    if !keep {
        let default = Map::from_iter([("session_id".to_owned(), Value::from(DEFAULT_SESSION_ID))]);
        context.insert("session".into(), Value::Object(default));
    }
}

/// Returns the id of a session unless it is the default one. A value that cannot be an id (null, a number, "") counts
/// as absent, and a session without an id is the default one.
fn named(session: &Map<String, Value>) -> Option<&str> {
    session
        .get("session_id")?
        .as_str()
        .filter(|id| !id.is_empty() && *id != DEFAULT_SESSION_ID)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        match value {
            Value::Object(map) => map,
            other => panic!("a row of the table is not an object: {other}"),
        }
    }

    #[track_caller]
    fn check(context: Value, reply: Value) {
        let request = Message {
            kind: "a.b".into(),
            data: Map::new(),
            context: object(context),
        };
        let answer = request.response(object(json!({"x": 1})));
        assert_eq!(answer.kind, "a.b.response");
        assert_eq!(answer.data, object(json!({"x": 1})));
        assert_eq!(answer.context, object(reply), "reply to {:?}", request.context);
    }

    /// Each row was produced with ovos-bus-client 2.11.29a1 / ovos-spec-tools 1.16.0a1.
    #[test]
    fn routing_is_reversed_as_in_the_reference() {
        let rows = [
            (json!({}), json!({})),
            (
                json!({"source": "A", "destination": "B"}),
                json!({"source": "B", "destination": "A"}),
            ),
            (json!({"source": "A"}), json!({"source": "A", "destination": "A"})),
            (
                json!({"destination": "B"}),
                json!({"source": "B", "destination": "B"}),
            ),
            (
                json!({"source": "A", "destination": ["B", "C"]}),
                json!({"source": "B", "destination": "A"}),
            ),
            (
                json!({"source": ["A", "Z"], "destination": "B"}),
                json!({"source": "B", "destination": ["A", "Z"]}),
            ),
            (
                json!({"source": "A", "destination": ["", null, "C"]}),
                json!({"source": "C", "destination": "A"}),
            ),
            (
                json!({"source": "A", "destination": [""]}),
                json!({"source": "A", "destination": "A"}),
            ),
            (
                json!({"source": "", "destination": "B"}),
                json!({"source": "B", "destination": "B"}),
            ),
            (json!({"source": null, "destination": null}), json!({})),
            (json!({"source": [], "destination": []}), json!({})),
            (
                json!({"source": "A", "destination": [["B"], "C"]}),
                json!({"source": ["B"], "destination": "A"}),
            ),
            (
                json!({"source": 0, "destination": false}),
                json!({"source": false, "destination": 0}),
            ),
            (
                json!({"destination": ["B", ""]}),
                json!({"source": "B", "destination": ["B"]}),
            ),
        ];
        let with_session = |context: &Value| {
            let mut context = context.clone();
            context["session"] = json!({"session_id": "s1"});
            context
        };
        for (context, reply) in rows {
            check(with_session(&context), with_session(&reply));
        }
    }

    #[test]
    fn sessions_travel_as_the_reference_carries_them() {
        let default = json!({"session": {"session_id": "default"}});
        let same = |session: Value| {
            let context = json!({"session": session, "k": [1, {"n": null}]});
            check(context.clone(), context);
        };
        same(json!({"session_id": "s1", "site_id": "kitchen", "unknown": {"deep": [1]}}));
        same(json!({}));
        same(Value::Null);
        for session in [
            json!({"session_id": "default", "lang": "pt-PT"}),
            json!({"session_id": ""}),
            json!({"session_id": null}),
            json!({"session_id": 5}),
            json!({"lang": "pt-PT"}),
        ] {
            check(json!({ "session": session }), default.clone());
        }
        check(json!({}), default);
    }

    #[test]
    fn a_message_survives_its_text() {
        let big = "123456789012345678901234567890";
        let text = format!(
            r#"{{"type":"t","data":{{"z":{big},"a":-0.10,"e":1e400,"s":"zażółć 🤖 \u0000\u2028"}},"context":{{}}}}"#
        );
        let message = Message::parse(&text).unwrap();
        let again = message.to_text();
        assert!(
            again.contains(big) && again.contains("-0.10") && again.contains("zażółć 🤖"),
            "{again}"
        );
        assert!(
            again.find("\"z\"") < again.find("\"a\""),
            "the order of keys is kept: {again}"
        );
        assert_eq!(Message::parse(&again).unwrap(), message);
    }

    #[test]
    fn only_a_named_session_has_an_id() {
        let id = |session: Value| {
            let message = Message {
                context: object(json!({ "session": session })),
                ..Message::new("t", Map::new())
            };
            message.session_id().map(str::to_owned)
        };
        assert_eq!(id(json!({"session_id": "s1"})).as_deref(), Some("s1"));
        for session in [
            json!({}),
            json!(null),
            json!({"session_id": "default"}),
            json!({"session_id": 1}),
        ] {
            assert_eq!(id(session), None);
        }
    }
}
