//! Reads the answer of a model: its text and its calls. Servers write answers differently, so this module accepts many shapes, but
//! only clear calls: anything that is not clearly a call with arguments never becomes one. Pure.

use std::collections::HashSet;

use client::read_arguments;
use door::find::CALL_TOOL;
use ovos_toolbox_wire::Object;
use serde_json::{Value, json};

/// An answer of the model.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Answer {
    /// The text of the answer.
    pub(crate) text: String,
    /// The calls of the answer, in order.
    pub(crate) calls: Vec<ModelCall>,
    /// The tokens of request and answer, if the endpoint counts them.
    pub(crate) tokens: Option<u64>,
    /// Whether the answer was cut off at its maximum length. What the rest would have been is unknown.
    pub(crate) cut: bool,
}

/// A call that the model asks for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ModelCall {
    /// Unique in the run.
    pub(crate) id: String,
    /// The name by which the model calls the tool.
    pub(crate) name: String,
    /// The arguments, or why there are none.
    pub(crate) arguments: Result<Object, String>,
    /// The tool that a call of `call_tool` is for, even if its arguments are malformed: the call may be a stop.
    pub(crate) inner: Option<String>,
}

impl ModelCall {
    pub(crate) fn new(id: String, name: &str, arguments: Result<Object, String>, written: &str) -> Self {
        let name = name.trim();
        let inner = (name == CALL_TOOL).then(|| match &arguments {
            Ok(arguments) => arguments.get("name")?.as_str().map(str::trim),
            Err(_) => inner(written),
        });
        let inner = inner.flatten().map(str::to_owned);
        Self {
            id,
            name: name.to_owned(),
            arguments,
            inner,
        }
    }
}

/// Returns the tool that malformed arguments of `call_tool` name, as far as their text shows it.
fn inner(written: &str) -> Option<&str> {
    written.split("\"name\"").skip(1).find_map(|rest| {
        let value = rest.trim_start().strip_prefix(':')?;
        let (name, _) = value.trim_start().strip_prefix('"')?.split_once('"')?;
        Some(name.trim())
    })
}

/// The reason why an answer that was cut off has no calls.
pub(crate) const CUT: &str = "the answer reached the maximum length and was cut off: make it shorter";

/// Gives a call a new id if the model's id is missing or repeated.
#[derive(Debug, Default)]
pub(crate) struct Ids(HashSet<String>);

impl Ids {
    pub(crate) fn of(&mut self, server_id: Option<&str>, step: u32, number: usize) -> String {
        let server_id = server_id.filter(|id| !id.is_empty() && id.len() <= 256 && !self.0.contains(*id));
        let mut id = server_id.map_or_else(|| format!("call_{step}_{number}"), str::to_owned);
        while !self.0.insert(id.clone()) {
            id.push('x');
        }
        id
    }
}

/// Reads a chat completion.
///
/// # Errors
/// The JSON is not a chat completion.
pub(crate) fn read(completion: &Value, ids: &mut Ids, step: u32) -> Result<Answer, String> {
    if let Some(error) = completion.get("error").filter(|error| !error.is_null()) {
        let message = error.get("message").and_then(Value::as_str);
        return Err(message.map_or_else(|| error.to_string(), str::to_owned));
    }
    let choice = completion
        .get("choices")
        .and_then(|choices| choices.get(0))
        .ok_or("it has no choices")?;
    let message = choice.get("message").ok_or("its first choice has no message")?;
    // A call that was cut off may be complete JSON by chance.
    let cut = choice.get("finish_reason").and_then(Value::as_str) == Some("length");
    let mut calls = Vec::new();
    let listed = message.get("tool_calls").and_then(Value::as_array);
    for (number, call) in listed.into_iter().flatten().enumerate() {
        let function = call.get("function").unwrap_or(call);
        let name = function.get("name").and_then(Value::as_str).unwrap_or_default();
        let server_id = call.get("id").and_then(Value::as_str);
        let written = match function.get("arguments") {
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
            None => String::new(),
        };
        let arguments = arguments(function.get("arguments"), cut);
        let id = ids.of(server_id, step, number + 1);
        calls.push(ModelCall::new(id, name, arguments, &written));
    }
    Ok(Answer {
        text: text_of(message.get("content")),
        calls,
        tokens: completion
            .get("usage")
            .and_then(|usage| usage.get("total_tokens"))
            .and_then(Value::as_u64),
        cut,
    })
}

/// Returns the text of a message, which is a string, parts of text, or nothing.
pub(crate) fn text_of(content: Option<&Value>) -> String {
    match content {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => {
            let texts = parts.iter().filter_map(|part| part.get("text")?.as_str());
            texts.collect::<Vec<_>>().join("")
        }
        _ => String::new(),
    }
}

fn arguments(value: Option<&Value>, cut: bool) -> Result<Object, String> {
    if cut {
        return Err(CUT.to_owned());
    }
    read_arguments(value).map_err(|error| error.to_string())
}

/// Reads arguments that are text. An empty text means that there are no arguments.
pub(crate) fn of_text(text: &str) -> Result<Object, String> {
    read_arguments(Some(&Value::from(text))).map_err(|error| error.to_string())
}

/// Returns the answer as the message that the conversation keeps: with the ids that its results will have, and with arguments that
/// every server can read.
pub(crate) fn message(answer: &Answer) -> Value {
    let mut message = json!({ "role": "assistant", "content": answer.text });
    if !answer.calls.is_empty() {
        let calls = answer.calls.iter().map(|call| {
            let arguments = match &call.arguments {
                Ok(arguments) => Value::Object(arguments.clone()),
                Err(why) => json!({ "malformed": why }),
            };
            json!({
                "id": call.id,
                "type": "function",
                "function": { "name": call.name, "arguments": arguments.to_string() },
            })
        });
        message["tool_calls"] = calls.collect();
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_one(arguments: Value, finish: &str) -> Result<Object, String> {
        let completion = json!({"choices": [{"finish_reason": finish, "message": {"content": null, "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "move", "arguments": arguments}},
        ]}}]});
        let answer = read(&completion, &mut Ids::default(), 1).expect("an answer");
        answer.calls[0].arguments.clone()
    }

    #[test]
    fn arguments_are_an_object_as_such_or_as_text_and_nothing_else() {
        let object = |value: Value| value.as_object().cloned().expect("an object");
        for (written, expected) in [
            (json!({"a": 1}), json!({"a": 1})),
            (json!("{\"a\": 1}"), json!({"a": 1})),
            (json!(""), json!({})),
            (json!(null), json!({})),
            (json!("null"), json!({})),
            (json!([]), json!({})),
        ] {
            assert_eq!(read_one(written.clone(), "tool_calls"), Ok(object(expected)));
            assert!(read_one(written, "length").is_err());
        }
        for wrong in [
            json!("{bad json"),
            json!("[1]"),
            json!([1]),
            json!(7),
            json!("{\"a\": 1} and more"),
        ] {
            assert!(read_one(wrong.clone(), "tool_calls").is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_tool_behind_call_tool_is_known_also_where_its_arguments_are_malformed() {
        for (name, written, expected) in [
            (CALL_TOOL, "{\"name\": \"stop\"}", Some("stop")),
            (
                CALL_TOOL,
                "{\"arguments\": {\"name\": \"x\"}, \"name\": \"stop\"}",
                Some("stop"),
            ),
            (
                CALL_TOOL,
                "{\"name\" : \"stop\", \"arguments\": {bad",
                Some("stop"),
            ),
            (CALL_TOOL, "{\"name\": \"stop\", \"argu", Some("stop")),
            (CALL_TOOL, "{\"name\": 7}", None),
            (CALL_TOOL, "stop", None),
            ("move", "{\"name\": \"stop\"}", None),
        ] {
            let call = ModelCall::new("a".to_owned(), name, of_text(written), written);
            assert_eq!(call.inner.as_deref(), expected, "{written}");
        }
    }

    #[test]
    fn ids_that_are_missing_or_repeated_are_replaced() {
        let mut ids = Ids::default();
        assert_eq!(ids.of(Some("a"), 1, 1), "a");
        assert_eq!(ids.of(Some("a"), 1, 2), "call_1_2");
        assert_eq!(ids.of(None, 1, 3), "call_1_3");
        assert_eq!(ids.of(Some(""), 1, 3), "call_1_3x");
        assert_eq!(ids.of(Some("a"), 2, 1), "call_2_1");
    }

    #[test]
    fn answers_are_read_in_the_shapes_that_servers_write() {
        let mut ids = Ids::default();
        for (completion, expected) in [
            (
                json!({"choices": [{"message": {"content": "hello"}}], "usage": {"total_tokens": 12}}),
                Ok(("hello", 0, Some(12))),
            ),
            (
                json!({"choices": [{"message": {"content": [{"type": "text", "text": "a"}, {"text": "b"}]}}]}),
                Ok(("ab", 0, None)),
            ),
            (
                json!({"choices": [{"message": {"tool_calls": [{"name": "flat", "arguments": {}}]}}]}),
                Ok(("", 1, None)),
            ),
            (
                json!({"choices": [{"message": {"tool_calls": null}}]}),
                Ok(("", 0, None)),
            ),
            (json!({"choices": []}), Err("it has no choices")),
            (json!("hello"), Err("it has no choices")),
            (
                json!({"error": {"message": "no such model"}}),
                Err("no such model"),
            ),
        ] {
            let read = read(&completion, &mut ids, 1);
            let error = read
                .as_ref()
                .map(|answer| (answer.text.as_str(), answer.calls.len(), answer.tokens))
                .map_err(String::as_str);
            assert_eq!(error, expected, "{completion}");
        }
    }

    #[test]
    fn what_stands_in_the_conversation_is_json_whatever_the_model_wrote() {
        let completion = json!({"choices": [{"message": {"tool_calls": [
            {"function": {"name": "move", "arguments": "{bad"}},
        ]}}]});
        let answer = read(&completion, &mut Ids::default(), 4).expect("an answer");
        let message = message(&answer);
        let call = &message["tool_calls"][0];
        assert_eq!(call["id"], "call_4_1");
        let arguments = call["function"]["arguments"].as_str().expect("text");
        assert!(serde_json::from_str::<Object>(arguments).is_ok(), "{arguments}");
    }
}
