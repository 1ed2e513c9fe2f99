//! Reads a message as it arrives, before the protocol's library does: a stop is found whatever stands beside its name, and what is
//! ill-formed is answered with its id. Pure.

use std::borrow::Cow;

use door::find::CALL_TOOL;
use door::{OwnTool as _, StopTool};
use ovos_toolbox_wire::Object;
use serde::Deserialize;
use serde_json::{Value, json};

/// The key of the protocol's version in the `_meta` of a request of the modern era.
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";

/// The first version of the modern era.
pub(crate) const MODERN: &str = "2026-07-28";

/// The requests that the door answers, and what each expects, in words that follow "expected".
const KNOWN: [(&str, &str); 14] = [
    (
        "initialize",
        "params {\"protocolVersion\": string, \"capabilities\": object, \"clientInfo\": {\"name\": string, \"version\": string}}",
    ),
    ("ping", "no params"),
    ("server/discover", "params {\"_meta\": object}"),
    ("tools/list", "params {\"cursor\": string} or no params"),
    ("tools/call", "params {\"name\": string, \"arguments\": object}"),
    ("resources/list", "params {\"cursor\": string} or no params"),
    (
        "resources/templates/list",
        "params {\"cursor\": string} or no params",
    ),
    ("resources/read", "params {\"uri\": string}"),
    ("skills/list", "params {\"cursor\": string} or no params"),
    ("skills/get", "params {\"uri\": string}"),
    ("tasks/get", "params {\"taskId\": string}"),
    ("tasks/cancel", "params {\"taskId\": string}"),
    (
        "tasks/update",
        "params {\"taskId\": string, \"inputResponses\": object}",
    ),
    ("subscriptions/listen", "params {\"notifications\": object}"),
];

/// What a message is, as far as the door cares before it is read any further.
#[derive(Debug, PartialEq)]
pub(crate) enum Arrival {
    /// One of the door's two stops.
    Stop(Stop),
    /// A call of a tool, with arguments that are an object. `stops`: of a toolbox's tool that stops something.
    Call { message: Value, stops: bool },
    /// A message for the library, perhaps mended.
    Other(Value),
    /// A request that cannot be carried out, with the reason.
    IllFormed { id: Value, why: String },
    /// It is not JSON, or nested too deeply.
    Unreadable,
}

/// A stop that a message asks for.
#[derive(Debug, PartialEq)]
pub(crate) struct Stop {
    pub(crate) tool: StopTool,
    /// Whether it was called through `call_tool`.
    pub(crate) is_wrapped: bool,
    /// `None` in a notification, which has no answer.
    pub(crate) id: Option<Value>,
    /// The version of the protocol that the request names.
    pub(crate) version: Option<String>,
}

impl Stop {
    /// The name of the tool in the request.
    pub(crate) fn called(&self) -> &'static str {
        if self.is_wrapped {
            CALL_TOOL
        } else {
            self.tool.name()
        }
    }
}

/// The parts of a call that decide whether it stops something. All else is skipped, however deep, long or wrong it is.
#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(default)]
    id: Option<Value>,
    #[serde(borrow)]
    params: RequestName<'a>,
}

#[derive(Deserialize)]
struct RequestName<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
}

/// A call of `call_tool`, as far as it says which tool is meant.
#[derive(Deserialize)]
struct Wrapped {
    params: WrappedParams,
}

#[derive(Deserialize)]
struct WrappedParams {
    arguments: Value,
}

/// Returns the tool that a call of `call_tool` is for.
fn inner(text: &[u8]) -> Option<String> {
    let wrapped = serde_json::from_slice::<Wrapped>(text).ok()?;
    let arguments = client::read_arguments(Some(&wrapped.params.arguments)).ok()?;
    Some(arguments.get("name")?.as_str()?.trim().to_owned())
}

/// Reads one message. `stops` says whether a tool of a toolbox stops something: its arguments never prevent that. `searched`: the
/// door has `call_tool`, whose calls are for another tool.
pub(crate) fn read(text: &[u8], searched: bool, stops: impl Fn(&str) -> bool) -> Arrival {
    let text = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text);
    let head = serde_json::from_slice::<Head<'_>>(text).ok();
    let head = head.filter(|head| head.method == "tools/call");
    let whole = serde_json::from_slice::<Value>(text).ok();
    if let Some(head) = head {
        let called = head.params.name.as_ref();
        let inner = (searched && called == CALL_TOOL).then(|| inner(text)).flatten();
        let name = inner.as_deref().unwrap_or(called);
        if let Some(tool) = StopTool::named(name) {
            return Arrival::Stop(Stop {
                tool,
                is_wrapped: inner.is_some(),
                id: head.id,
                version: whole.as_ref().and_then(version).map(str::to_owned),
            });
        }
        if let Some(id) = head.id.filter(|_| stops(name)) {
            return Arrival::Call {
                message: match &inner {
                    Some(name) => wrapped_stop(id, name, whole),
                    None => stop_of_toolbox(id, name, whole),
                },
                stops: true,
            };
        }
    }
    match whole {
        Some(message) => mended(message),
        None => Arrival::Unreadable,
    }
}

/// Returns the messages of a batch, which the protocol had for one revision, or the message itself.
pub(crate) fn split_batch(text: &[u8]) -> Vec<Cow<'_, [u8]>> {
    let is_batch = text.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[');
    let batch = is_batch
        .then(|| serde_json::from_slice::<Vec<Value>>(text).ok())
        .flatten();
    match batch {
        Some(batch) => batch
            .iter()
            .map(|part| Cow::Owned(part.to_string().into_bytes()))
            .collect(),
        None => vec![Cow::Borrowed(text)],
    }
}

/// The version that a request names.
pub(crate) fn version(message: &Value) -> Option<&str> {
    message.pointer("/params/_meta")?.get(VERSION)?.as_str()
}

/// The version that a client asks for when it opens a session.
pub(crate) fn asked_version(message: &Value) -> Option<&str> {
    let is_opening = message.get("method")?.as_str()? == "initialize";
    message
        .pointer("/params/protocolVersion")?
        .as_str()
        .filter(|_| is_opening)
}

/// Gives a request that comes before its client has introduced itself what the modern era needs in each of them.
pub(crate) fn introduce(message: &mut Value) {
    let Some(params) = message.get_mut("params").and_then(Value::as_object_mut) else {
        return;
    };
    let meta = params.entry("_meta").or_insert_with(|| json!({}));
    meta[VERSION] = json!(MODERN);
    meta["io.modelcontextprotocol/clientInfo"] = json!({"name": "unknown", "version": "0"});
    meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
}

/// What the door knows about the params of this method, if it answers it.
pub(crate) fn expected(method: &str) -> Option<&'static str> {
    let (_, expected) = KNOWN.iter().find(|(known, _)| *known == method)?;
    Some(expected)
}

/// The reason why a request of this method is ill-formed.
pub(crate) fn ill_formed(method: &str) -> Option<String> {
    Some(format!("{method}: expected {}", expected(method)?))
}

/// Returns a call of a toolbox's tool that stops something: with the arguments that can be read, else with none.
fn stop_of_toolbox(id: Value, name: &str, whole: Option<Value>) -> Value {
    let mut params = Object::new();
    params.insert("name".to_owned(), json!(name));
    let given = whole.as_ref().and_then(|whole| whole.get("params"));
    let arguments = given.map(|given| arguments(given.get("arguments")));
    let arguments = arguments.and_then(Result::ok).unwrap_or_default();
    params.insert("arguments".to_owned(), Value::Object(arguments));
    if let Some(meta) = given
        .and_then(|given| given.get("_meta"))
        .filter(|meta| meta.is_object())
    {
        params.insert("_meta".to_owned(), meta.clone());
    }
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
}

/// Returns a call of `call_tool` for such a tool. It keeps its name, which the headers of a request over HTTP repeat.
fn wrapped_stop(id: Value, name: &str, whole: Option<Value>) -> Value {
    let pointer = "/params/arguments/arguments";
    let given = whole.as_ref().and_then(|whole| whole.pointer(pointer));
    let given = arguments(given).unwrap_or_default();
    let mut message = stop_of_toolbox(id, CALL_TOOL, whole);
    message["params"]["arguments"] = json!({"name": name, "arguments": given});
    message
}

/// Mends what clients are known to send: an empty list or text where an object may be left out, and arguments as text.
fn mended(mut message: Value) -> Arrival {
    let method = message.get("method").and_then(Value::as_str).map(str::to_owned);
    let id = message.get("id").filter(|id| !id.is_null()).cloned();
    let (Some(method), Some(id)) = (method, id) else {
        return Arrival::Other(message);
    };
    let is_known = expected(&method).is_some();
    let ill_formed = |why: String| Arrival::IllFormed {
        id: id.clone(),
        why: format!("{method}: {why}"),
    };
    if is_known && message.get("params").is_some_and(is_empty) {
        message["params"] = json!({});
    }
    let params = match message.get_mut("params") {
        None => None,
        Some(Value::Object(params)) => Some(params),
        Some(_) if !is_known => return Arrival::Other(message),
        Some(other) => {
            return ill_formed(format!("params: expected an object, got {}", short(other)));
        }
    };
    if let Some(params) = params {
        match params.get("_meta") {
            Some(Value::Null) => _ = params.shift_remove("_meta"),
            None | Some(Value::Object(_)) => {}
            Some(other) => return ill_formed(format!("_meta: expected an object, got {}", short(other))),
        }
        if method == "tools/call" {
            if !params.get("name").is_some_and(Value::is_string) {
                return ill_formed("name: expected the name of a tool, as a text".to_owned());
            }
            match arguments(params.get("arguments")) {
                Ok(arguments) => _ = params.insert("arguments".to_owned(), Value::Object(arguments)),
                Err(why) => return ill_formed(why),
            }
            return Arrival::Call {
                message,
                stops: false,
            };
        }
    }
    Arrival::Other(message)
}

/// Reads the arguments of a call as every door does.
fn arguments(given: Option<&Value>) -> Result<Object, String> {
    client::read_arguments(given).map_err(|_| {
        let found = short(given.unwrap_or(&Value::Null));
        format!("arguments: expected an object, got {found}")
    })
}

/// Whether a value is what some languages write for an empty object.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::String(text) => text.trim().is_empty(),
        _ => false,
    }
}

/// The beginning of a value, for a message.
fn short(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(message: &Value) -> Arrival {
        read(message.to_string().as_bytes(), false, |name| name == "arm__halt")
    }

    fn call(name: &str, rest: &str) -> String {
        format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"{name}"{rest}}}}}"#)
    }

    #[test]
    fn a_stop_is_found_whatever_stands_beside_its_name() {
        let deep = format!(r#","arguments":{}1{}"#, "[".repeat(4000), "]".repeat(4000));
        for rest in [
            "",
            r#","arguments":{}"#,
            r#","arguments":null"#,
            r#","arguments":[]"#,
            r#","arguments":[1,{"a":2}]"#,
            r#","arguments":"""#,
            r#","arguments":"{}""#,
            r#","arguments":"now!""#,
            r#","arguments":5"#,
            r#","arguments":1e999"#,
            r#","arguments":-0.0"#,
            r#","arguments":true"#,
            r#","arguments":{"toolbox_id":[]}"#,
            r#","arguments":{"a":"\ud800"}"#,
            r#","arguments":{},"arguments":[]"#,
            r#","args":{"x":1}"#,
            r#","_meta":5"#,
            r#","_meta":[]"#,
            r#","_meta":{"progressToken":{}}"#,
            r#","_meta":{"x":{"y":[null]}},"task":{"ttl":-1},"unknown":1"#,
            &deep,
        ] {
            for tool in StopTool::ALL.iter().copied() {
                let text = call(tool.name(), rest);
                let stop = Stop {
                    tool,
                    is_wrapped: false,
                    id: Some(json!(7)),
                    version: None,
                };
                assert_eq!(
                    read(text.as_bytes(), false, |_| false),
                    Arrival::Stop(stop),
                    "{text}"
                );
            }
            let text = call("arm__halt", rest);
            let Arrival::Call { message: call, .. } =
                read(text.as_bytes(), false, |name| name == "arm__halt")
            else {
                panic!("{text}")
            };
            assert!(call["params"]["arguments"].is_object(), "{call}");
        }
        for (arguments, found) in [
            (r#"{"name":"emergency_stop"}"#, true),
            (r#"{"name":" stop_moving ","arguments":[]}"#, true),
            (r#""{\"name\":\"stop_moving\"}""#, true),
            (r#"{"name":"wave","arguments":{"name":"stop_moving"}}"#, false),
            ("[]", false),
        ] {
            let text = call(CALL_TOOL, &format!(r#","arguments":{arguments}"#));
            let is_stop = |searched| matches!(read(text.as_bytes(), searched, |_| false), Arrival::Stop(_));
            assert_eq!((is_stop(true), is_stop(false)), (found, false), "{text}");
        }
        let text = call(
            CALL_TOOL,
            r#","arguments":{"name":"arm__halt","arguments":"now"},"_meta":{}"#,
        );
        let Arrival::Call { message, stops } = read(text.as_bytes(), true, |name| name == "arm__halt") else {
            panic!("{text}")
        };
        assert!(stops, "{message}");
        assert_eq!(message["params"]["name"], CALL_TOOL);
        assert_eq!(
            message["params"]["arguments"],
            json!({"name": "arm__halt", "arguments": {}})
        );
        let head = br#"{"id":7,"method":"tools/call","params":{"name":"emergency_stop","arguments":""#;
        let not_utf8 = [&head[..], b"\xff\"}}"].concat();
        assert!(matches!(read(&not_utf8, false, |_| false), Arrival::Stop(_)));
    }

    #[test]
    fn the_version_of_a_stop_is_that_of_its_request() {
        let text = call(
            "stop_moving",
            r#","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#,
        );
        let Arrival::Stop(stop) = read(text.as_bytes(), false, |_| false) else {
            panic!("{text}")
        };
        assert_eq!(stop.version.as_deref(), Some(MODERN));
    }

    #[test]
    fn what_stands_for_no_arguments_is_none_and_the_text_of_an_object_is_that_object() {
        for (given, expected) in [
            (json!({"a": 1}), json!({"a": 1})),
            (json!([]), json!({})),
            (json!(""), json!({})),
            (json!(" "), json!({})),
            (json!(null), json!({})),
            (json!("{}"), json!({})),
            (json!("[]"), json!({})),
            (json!("null"), json!({})),
            (json!("{\"a\": \"{}\"}"), json!({"a": "{}"})),
        ] {
            let message =
                json!({"id": 1, "method": "tools/call", "params": {"name": "wave", "arguments": given}});
            let Arrival::Call { message: call, .. } = of(&message) else {
                panic!("{message}")
            };
            assert_eq!(call["params"]["arguments"], expected, "{message}");
        }
    }

    #[test]
    fn what_is_ill_formed_says_what_was_expected_and_keeps_its_id() {
        let call = |params: Value| json!({"id": "x", "method": "tools/call", "params": params});
        for (message, expected) in [
            (
                call(json!({"name": "wave", "arguments": 5})),
                "arguments: expected an object, got 5",
            ),
            (
                call(json!({"name": "wave", "arguments": "x"})),
                "arguments: expected an object, got \"x\"",
            ),
            (
                call(json!({"name": "wave", "arguments": [1]})),
                "arguments: expected an object, got [1]",
            ),
            (
                call(json!({"name": "wave", "_meta": 5})),
                "_meta: expected an object, got 5",
            ),
            (call(json!({"name": 5})), "name: expected the name of a tool"),
            (call(json!({})), "name: expected the name of a tool"),
            (call(json!([])), "name: expected the name of a tool"),
            (call(json!("x")), "params: expected an object, got \"x\""),
            (
                json!({"id": "x", "method": "tools/list", "params": 5}),
                "params: expected an object, got 5",
            ),
        ] {
            let Arrival::IllFormed { id, why } = of(&message) else {
                panic!("{message}")
            };
            assert!(id == "x" && why.contains(expected), "{why}");
        }
    }

    #[test]
    fn all_else_is_left_to_the_library() {
        for (message, expected) in [
            (
                json!({"id": 1, "method": "tools/list", "params": []}),
                json!({"id": 1, "method": "tools/list", "params": {}}),
            ),
            (
                json!({"id": 1, "method": "tools/list", "params": {"_meta": null}}),
                json!({"id": 1, "method": "tools/list", "params": {}}),
            ),
            (
                json!({"id": 1, "method": "own/thing", "params": [1]}),
                json!({"id": 1, "method": "own/thing", "params": [1]}),
            ),
            (
                json!({"method": "notifications/x", "params": 5}),
                json!({"method": "notifications/x", "params": 5}),
            ),
            (json!({"id": 1, "result": {}}), json!({"id": 1, "result": {}})),
            (json!(5), json!(5)),
        ] {
            assert_eq!(of(&message), Arrival::Other(expected));
        }
        assert_eq!(read(b"hello", false, |_| false), Arrival::Unreadable);
        assert_eq!(read(b"\xff", false, |_| false), Arrival::Unreadable);
    }

    #[test]
    fn the_messages_of_a_batch_are_read_one_by_one() {
        let batch = format!(" [{}, 5]", call("emergency_stop", ""));
        let parts = split_batch(batch.as_bytes());
        assert!(matches!(read(&parts[0], false, |_| false), Arrival::Stop(_)));
        assert_eq!(read(&parts[1], false, |_| false), Arrival::Other(json!(5)));
    }
}
