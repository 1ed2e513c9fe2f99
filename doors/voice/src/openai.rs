//! OpenAI's Realtime API, as the types of its SDK 3.54.0 describe it. Pure.
//!
//! A WebRTC or SIP call that runs elsewhere is joined by its id. A function call runs only when the response that contains it is
//! complete: the events before that also arrive for responses that the user interrupted. A stop runs as soon as its item is
//! complete, whatever happens to its response.

use serde_json::{Value, json};
use url::Url;

use crate::dialect::{
    Dialect, Key, Meaning, Opening, ShownTool, Target, VoiceCall, arguments, id, is_plain, tool_name,
};
use crate::outcome::Outcome;

/// The id of the event that tells the tools. An error names the event that caused it.
const TOOLS: &str = "ovos-tools";

/// The dialect `openai`.
pub(crate) struct OpenAi {
    /// The URL of the service, such as `wss://api.openai.com`.
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
                "{call:?} is not a call_id: expected letters, digits, - and _"
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
            "response.created"
                | "response.output_item.done"
                | "response.done"
                | "conversation.item.truncated"
                | "output_audio_buffer.cleared"
                | "error"
        )
    }

    fn parse(&self, frame: &Value) -> Vec<Meaning> {
        match frame.get("type").and_then(Value::as_str) {
            Some("response.created") => vec![Meaning::Floor { taken: true }],
            Some("response.output_item.done") => {
                let turn = frame.get("response_id").and_then(Value::as_str);
                let item = frame.get("item").filter(|item| is_complete_call(item));
                item.map(|item| Meaning::IfStop(voice_call(item, turn)))
                    .into_iter()
                    .collect()
            }
            Some("response.done") => frame.get("response").map(of_response).unwrap_or_default(),
            Some("conversation.item.truncated" | "output_audio_buffer.cleared") => vec![Meaning::Interrupted],
            Some("error") => {
                let error = |key: &str| frame.pointer(&format!("/error/{key}")).and_then(Value::as_str);
                if error("code") == Some("conversation_already_has_active_response") {
                    return vec![Meaning::SpokeTooSoon];
                }
                let message = error("message").unwrap_or("an error without a message");
                let is_of_tools = error("event_id") == Some(TOOLS)
                    || error("param").is_some_and(|param| param.starts_with("session.tools"));
                if is_of_tools {
                    return vec![Meaning::ToolsRefused(message.to_owned())];
                }
                vec![Meaning::Complaint(message.to_owned())]
            }
            _ => Vec::new(),
        }
    }

    fn answer(&self, call: &VoiceCall, outcome: &Outcome) -> Vec<String> {
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
        vec![json!({"type": "conversation.item.create", "item": item}).to_string()]
    }

    fn report(&self, call: &VoiceCall, outcome: &Outcome) -> Vec<String> {
        self.text_frames(&outcome.sentence(&call.name))
    }

    fn text_frames(&self, text: &str) -> Vec<String> {
        let text = format!("Tell the user: {text}");
        let item =
            json!({"type": "message", "role": "system", "content": [{"type": "input_text", "text": text}]});
        vec![json!({"type": "conversation.item.create", "item": item}).to_string()]
    }

    fn speak(&self) -> Option<String> {
        Some(json!({"type": "response.create"}).to_string())
    }

    fn tools_changed(&self, tools: &[ShownTool]) -> Vec<String> {
        let tools = tools.iter().map(|tool| {
            json!({
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.arguments,
            })
        });
        let tools: Vec<Value> = tools.collect();
        vec![
            json!({
                "type": "session.update",
                "event_id": TOOLS,
                "session": {"type": "realtime", "tools": tools},
            })
            .to_string(),
        ]
    }
}

/// Returns the meaning of the end of a response.
fn of_response(response: &Value) -> Vec<Meaning> {
    let text = |key: &str| response.get(key).and_then(Value::as_str);
    let turn = text("id");
    let items = response.get("output").and_then(Value::as_array);
    let calls: Vec<&Value> = items.into_iter().flatten().filter(|item| is_call(item)).collect();
    let complete = calls.iter().copied().filter(|item| is_complete_call(item));
    let mut meanings = vec![Meaning::Floor { taken: false }];
    if text("status") == Some("completed") {
        meanings.extend(complete.flat_map(|item| parse_function_call(item, turn)));
        return meanings;
    }
    // A stop counts even if its response is not complete.
    meanings.extend(complete.map(|item| Meaning::IfStop(voice_call(item, turn))));
    let reason = response.pointer("/status_details/reason").and_then(Value::as_str);
    meanings.extend((reason == Some("turn_detected")).then_some(Meaning::Interrupted));
    let ids: Vec<String> = calls.iter().filter_map(|item| id(item.get("call_id"))).collect();
    meanings.extend((!ids.is_empty()).then_some(Meaning::Cancel(ids)));
    meanings
}

fn is_call(item: &Value) -> bool {
    item.get("type").and_then(Value::as_str) == Some("function_call")
}

/// Whether an item is a complete call. An item without a status is part of a response that has one.
fn is_complete_call(item: &Value) -> bool {
    let status = item.get("status").and_then(Value::as_str);
    is_call(item) && matches!(status, None | Some("completed"))
}

fn parse_function_call(item: &Value, turn: Option<&str>) -> Vec<Meaning> {
    let call = voice_call(item, turn);
    if !call.id.is_empty() {
        return vec![Meaning::Call(call)];
    }
    let complaint = "a function_call without a usable call_id cannot be answered".to_owned();
    vec![Meaning::IfStop(call), Meaning::Complaint(complaint)]
}

fn voice_call(item: &Value, turn: Option<&str>) -> VoiceCall {
    let id = id(item.get("call_id"));
    VoiceCall {
        wants_answer: id.is_some(),
        id: id.unwrap_or_default(),
        name: tool_name(item.get("name")),
        arguments: arguments(item.get("arguments")).map_err(|expected| format!("arguments: {expected}")),
        turn: turn.map(str::to_owned),
    }
}

#[cfg(test)]
#[path = "openai_tests.rs"]
mod tests;
