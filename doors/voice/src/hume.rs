//! Hume's Empathic Voice Interface, as the types of its SDK 0.14.1 and its documentation describe it. Pure.
//!
//! A chat that runs elsewhere is joined through its control plane, which carries everything but audio. (The client in the SDK
//! omits the chat's id from that path.) A chat of our own is opened so that others can join it in the same way.

use ovos_toolbox_wire::Object;
use serde_json::{Value, json};
use url::Url;

use crate::dialect::{
    Dialect, Key, Meaning, Opening, ShownTool, Target, VoiceCall, arguments, id, is_plain, tool_name,
};
use crate::outcome::Outcome;

/// The dialect `hume`.
pub(crate) struct Hume {
    /// The URL of the service, such as `wss://api.hume.ai`.
    pub(crate) url: Url,
    /// The configuration of a chat of our own.
    pub(crate) config_id: Option<String>,
}

impl Dialect for Hume {
    fn name(&self) -> &'static str {
        "hume"
    }

    fn open(&self, target: &Target, key: Option<&Key>) -> Result<Opening, String> {
        let mut url = self.url.clone();
        match target {
            Target::Joined(chat) if !is_plain(chat) => {
                return Err(format!(
                    "{chat:?} is not a chat_id: expected letters, digits, - and _"
                ));
            }
            Target::Joined(chat) => url.set_path(&format!("/v0/evi/chat/{chat}/connect")),
            Target::Own { resumes } => {
                url.set_path("/v0/evi/chat");
                let mut query = url.query_pairs_mut();
                query.append_pair("allow_connection", "true");
                if let Some(config_id) = &self.config_id {
                    query.append_pair("config_id", config_id);
                }
                if let Some(group) = resumes {
                    query.append_pair("resumed_chat_group_id", group);
                }
            }
        }
        let headers = key.map(|key| ("X-Hume-Api-Key", key.clone()));
        Ok(Opening {
            url,
            headers: headers.into_iter().collect(),
        })
    }

    fn reads(&self, kind: &str) -> bool {
        matches!(
            kind,
            "chat_metadata" | "tool_call" | "user_interruption" | "error"
        )
    }

    fn parse(&self, frame: &Value) -> Vec<Meaning> {
        let text = |key: &str| frame.get(key).and_then(Value::as_str);
        if text("type") == Some("tool_call") && text("tool_type") != Some("builtin") {
            return parse_tool_call(frame);
        }
        let meaning = match text("type") {
            Some("chat_metadata") => id(frame.get("chat_id")).map(|chat| Meaning::Chat {
                id: chat,
                group: id(frame.get("chat_group_id")),
            }),
            Some("user_interruption") => Some(Meaning::Interrupted),
            Some("error") => {
                let part = |key: &str| text(key).unwrap_or("?");
                let text = format!("{} {}: {}", part("code"), part("slug"), part("message"));
                // An error does not name the message that caused it, but its kind does.
                let words = format!("{} {}", part("slug"), part("message")).to_lowercase();
                let is_of_tools = ["tools", "session_settings", "session settings"]
                    .iter()
                    .any(|word| words.contains(word));
                Some(if is_of_tools {
                    Meaning::ToolsRefused(text)
                } else {
                    Meaning::Complaint(text)
                })
            }
            // Every other `tool_call` is for a tool that the service runs itself.
            _ => None,
        };
        meaning.into_iter().collect()
    }

    fn answer(&self, call: &VoiceCall, outcome: &Outcome) -> Vec<String> {
        let frame = match outcome {
            Outcome::Result(result) => json!({
                "type": "tool_response",
                "tool_call_id": call.id,
                "content": result.to_string(),
                "tool_name": call.name,
                "tool_type": "function",
            }),
            // The model reads `content`; only logs have `error`.
            Outcome::Failure {
                kind,
                message,
                sentence,
            } => json!({
                "type": "tool_error",
                "tool_call_id": call.id,
                "error": message,
                "content": sentence,
                "code": kind,
                "level": "warn",
                "tool_type": "function",
            }),
        };
        vec![frame.to_string()]
    }

    fn report(&self, call: &VoiceCall, outcome: &Outcome) -> Vec<String> {
        self.text_frames(&outcome.sentence(&call.name))
    }

    fn text_frames(&self, text: &str) -> Vec<String> {
        // The voice speaks this text unchanged.
        let frame = json!({"type": "assistant_input", "text": text});
        vec![frame.to_string()]
    }

    fn tools_changed(&self, tools: &[ShownTool]) -> Vec<String> {
        let tools = tools.iter().map(|tool| {
            json!({
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.arguments.to_string(),
            })
        });
        let tools: Vec<Value> = tools.collect();
        vec![json!({"type": "session_settings", "tools": tools}).to_string()]
    }
}

/// Reads a `tool_call`. One without a usable id cannot be answered, and is carried out only if it is a stop.
fn parse_tool_call(frame: &Value) -> Vec<Meaning> {
    let arguments: Result<Object, String> =
        arguments(frame.get("parameters")).map_err(|expected| format!("parameters: {expected}"));
    let id = id(frame.get("tool_call_id"));
    let call = VoiceCall {
        wants_answer: id.is_some() && frame.get("response_required") != Some(&Value::Bool(false)),
        name: tool_name(frame.get("name")),
        arguments,
        turn: None,
        id: id.clone().unwrap_or_default(),
    };
    if id.is_some() {
        return vec![Meaning::Call(call)];
    }
    let complaint = "a tool_call without a usable tool_call_id cannot be answered".to_owned();
    vec![Meaning::IfStop(call), Meaning::Complaint(complaint)]
}

#[cfg(test)]
#[path = "hume_tests.rs"]
mod tests;
