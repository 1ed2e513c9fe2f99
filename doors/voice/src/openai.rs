//! OpenAI's Realtime API, as the types of its SDK 3.54.0 describe it. Pure.
//!
//! A WebRTC or SIP call that runs elsewhere is joined by its id. A function call is run only when the response that it is part
//! of is complete: the events before that also come for responses that the user interrupted.

use serde_json::{Value, json};
use url::Url;

use crate::dialect::{Asked, Dialect, Heard, Key, Opening, Shown, Target, arguments, id, is_plain};
use crate::outcome::Outcome;

/// `dialect: "openai"`.
pub(crate) struct OpenAi {
    /// Such as `wss://api.openai.com`.
    pub(crate) url: Url,
}

impl Dialect for OpenAi {
    fn name(&self) -> &'static str {
        "openai"
    }

    fn open(&self, target: &Target, key: Option<&Key>) -> Result<Opening, String> {
        let Target::Joined(call) = target else {
            return Err("this door opens no Realtime session of its own: name a call with --call".to_owned());
        };
        if !is_plain(call) {
            return Err(format!(
                "{call:?} is no call_id: expected letters, digits, - and _"
            ));
        }
        let mut url = self.url.clone();
        url.set_path("/v1/realtime");
        url.query_pairs_mut().append_pair("call_id", call);
        let headers = key.map(|Key(key)| ("Authorization", Key(format!("Bearer {key}"))));
        Ok(Opening {
            url,
            headers: headers.into_iter().collect(),
        })
    }

    fn reads(&self, kind: &str) -> bool {
        matches!(
            kind,
            "response.done" | "conversation.item.truncated" | "output_audio_buffer.cleared" | "error"
        )
    }

    fn parse(&self, frame: &Value) -> Vec<Heard> {
        match frame.get("type").and_then(Value::as_str) {
            Some("response.done") => frame.get("response").map(done).unwrap_or_default(),
            Some("conversation.item.truncated" | "output_audio_buffer.cleared") => vec![Heard::Interrupted],
            Some("error") => {
                let message = frame.pointer("/error/message").and_then(Value::as_str);
                vec![Heard::Complaint(
                    message.unwrap_or("an error without a message").to_owned(),
                )]
            }
            _ => Vec::new(),
        }
    }

    fn answer(&self, call: &Asked, outcome: &Outcome, is_last: bool) -> Vec<String> {
        let output = match outcome {
            Outcome::Result(result) => result.to_string(),
            Outcome::Failure {
                kind,
                message,
                sentence,
            } => json!({
                "success": false,
                "message": sentence,
                "data": {"error": {"kind": kind, "message": message}},
            })
            .to_string(),
        };
        let item = json!({"type": "function_call_output", "call_id": call.id, "output": output});
        let mut frames = vec![json!({"type": "conversation.item.create", "item": item}).to_string()];
        // Only one response can be under way.
        if is_last {
            frames.push(speak());
        }
        frames
    }

    fn report(&self, call: &Asked, outcome: &Outcome) -> Vec<String> {
        let told = format!("Tell the user: {}", outcome.told(&call.name));
        let item =
            json!({"type": "message", "role": "system", "content": [{"type": "input_text", "text": told}]});
        vec![
            json!({"type": "conversation.item.create", "item": item}).to_string(),
            speak(),
        ]
    }

    fn tools_changed(&self, tools: &[Shown]) -> Vec<String> {
        let tools = tools.iter().map(|tool| {
            json!({
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.arguments,
            })
        });
        let tools: Vec<Value> = tools.collect();
        vec![json!({"type": "session.update", "session": {"type": "realtime", "tools": tools}}).to_string()]
    }
}

/// The voice answers to what it was told.
fn speak() -> String {
    json!({"type": "response.create"}).to_string()
}

/// What the end of a response says.
fn done(response: &Value) -> Vec<Heard> {
    let text = |key: &str| response.get(key).and_then(Value::as_str);
    let turn = text("id");
    let items = response.get("output").and_then(Value::as_array);
    let calls = items
        .into_iter()
        .flatten()
        .filter(|item| item.get("type").and_then(Value::as_str) == Some("function_call"));
    if text("status") != Some("completed") {
        let reason = response.pointer("/status_details/reason").and_then(Value::as_str);
        let interrupted = (reason == Some("turn_detected")).then_some(Heard::Interrupted);
        let ids: Vec<String> = calls.filter_map(|item| id(item.get("call_id"))).collect();
        let taken_back = (!ids.is_empty()).then_some(Heard::Cancel(ids));
        return interrupted.into_iter().chain(taken_back).collect();
    }
    calls
        // An item without a status is part of a response that has one.
        .filter(|item| {
            matches!(
                item.get("status").and_then(Value::as_str),
                None | Some("completed")
            )
        })
        .map(|item| called(item, turn))
        .collect()
}

fn called(item: &Value, turn: Option<&str>) -> Heard {
    let Some(id) = id(item.get("call_id")) else {
        return Heard::Complaint("a function_call without a usable call_id cannot be answered".to_owned());
    };
    let name = item.get("name").and_then(Value::as_str).unwrap_or_default();
    Heard::Call(Asked {
        id,
        name: name.to_owned(),
        arguments: arguments(item.get("arguments")).map_err(|expected| format!("arguments: {expected}")),
        wants_answer: true,
        turn: turn.map(str::to_owned),
    })
}

#[cfg(test)]
#[path = "openai_tests.rs"]
mod tests;
