//! Answers to requests that cannot be read, and in place of answers that cannot be sent.
//!
//! They have the shape of the topic's other answers, so that a client which looks only at the published keys finds them.

use std::sync::Arc;

use ovos_toolbox_wire::Object;
use serde::Serialize;
use serde_json::{Value, json};

use super::cancel::CancelResponse;
use super::error::WireError;
use super::payload::ErrorResponse;
use super::request::call_id;
use super::resolve::Name;
use super::stop::{StopResponse, StoppedToolbox};
use super::{Api, Request, Topic};
use crate::bus::Message;

/// A key of an answer that is longer than this is not repeated in the error that takes the answer's place, in bytes.
const LONGEST_ECHO: usize = 1024;

impl Api {
    /// Answers a request whose data cannot be read, so that its sender does not wait for nothing. What ignores its data
    /// is answered as ever.
    ///
    /// # Cancel safety
    /// The answer is lost.
    pub async fn refuse(self: &Arc<Self>, topic: Topic, request: Request, reason: &str) {
        let error = format!("the request's data cannot be read: {reason}");
        let error = WireError::new("ValueError", error).text;
        let head = &request.head;
        match topic {
            Topic::Invoke | Topic::Plan => self.answer(head, &json!({ "name": "", "error": error })).await,
            Topic::Get | Topic::Export => self.answer(head, &ErrorResponse { error }).await,
            Topic::Cancel => {
                let answer = CancelResponse {
                    state: "unknown".to_owned(),
                    error: Some(error),
                    ..CancelResponse::default()
                };
                self.answer(head, &answer).await;
            }
            Topic::Resume => {
                let entry = StoppedToolbox {
                    error: Some(error),
                    ..StoppedToolbox::default()
                };
                let toolboxes = vec![entry];
                self.answer(head, &StopResponse { toolboxes }).await;
            }
            Topic::Call { toolbox_id: Some(id) } if self.registry.snapshot().toolbox(&id).is_some() => {
                self.answer(head, &json!({ "error": error, "toolbox_id": id }))
                    .await;
            }
            // It may be meant for a toolbox that lives elsewhere, and silence is what the contract asks for then.
            Topic::Call { .. } => tracing::warn!(error, "dropped a call whose toolbox cannot be read"),
            Topic::List
            | Topic::Reload
            | Topic::Status
            | Topic::Discover
            | Topic::IsReady
            | Topic::ConfigurationUpdated
            | Topic::ConfigurationPatch => self.handle(topic, request).await,
        }
    }
}

impl Api {
    /// Answers a request that is not served because too many are under way.
    ///
    /// # Cancel safety
    /// The answer is lost.
    pub async fn turn_away(&self, topic: Topic, request: &Request) {
        let error = WireError::new(
            "BusyError",
            "far too many requests are under way; try again later",
        )
        .text;
        let (head, data) = (&request.head, &request.data);
        let is_call = matches!(topic, Topic::Invoke | Topic::Call { .. });
        let mut answer = Object::new();
        match topic {
            Topic::Invoke | Topic::Plan => {
                let name = match Name::of(data) {
                    Name::Given { echo, .. } => echo,
                    Name::Missing => Value::from(""),
                };
                answer.insert("name".to_owned(), name);
            }
            Topic::Call { toolbox_id } => {
                let id = toolbox_id.or_else(|| Some(data.get("toolbox_id")?.as_str()?.to_owned()));
                let Some(id) = id.filter(|id| self.registry.snapshot().toolbox(id).is_some()) else {
                    return;
                };
                answer.insert("toolbox_id".to_owned(), Value::from(id));
            }
            Topic::Resume => {
                let entry = StoppedToolbox {
                    error: Some(error),
                    ..StoppedToolbox::default()
                };
                let toolboxes = vec![entry];
                return self.answer(head, &StopResponse { toolboxes }).await;
            }
            Topic::Cancel => {
                let answer = CancelResponse {
                    state: "unknown".to_owned(),
                    error: Some(error),
                    ..CancelResponse::default()
                };
                return self.answer(head, &answer).await;
            }
            // Nobody waits for an answer, or for just one.
            Topic::ConfigurationUpdated | Topic::ConfigurationPatch | Topic::Discover => return,
            _ => {}
        }
        if let Ok(Some(call_id)) = call_id(data)
            && is_call
        {
            answer.insert("call_id".to_owned(), Value::from(call_id));
        }
        answer.insert("error".to_owned(), Value::from(error));
        self.answer(head, &answer).await;
    }

    /// Answers a request that ran into a bug of the service.
    ///
    /// # Cancel safety
    /// The answer is lost.
    pub async fn apologise(&self, topic: Topic, head: &Message) {
        let error = WireError::new("RuntimeError", "bug in the service; its log says more").text;
        match topic {
            Topic::Invoke | Topic::Plan => self.answer(head, &json!({ "name": "", "error": error })).await,
            Topic::Call { toolbox_id: Some(id) } => {
                self.answer(head, &json!({ "error": error, "toolbox_id": id }))
                    .await;
            }
            Topic::ConfigurationUpdated | Topic::ConfigurationPatch => {}
            _ => self.answer(head, &ErrorResponse { error }).await,
        }
    }
}

/// A frame to send in place of an answer that was lost too often: the same message with an error for its data.
pub(crate) fn instead(answer: &str, reason: &str) -> Option<String> {
    let mut message = Message::parse(answer).ok()?;
    message.data = short(message.data, reason);
    Some(message.to_text())
}

/// What is sent in place of an answer that the bus would not take.
pub(super) fn too_large<T: Serialize>(answer: &T, bytes: usize, limit: usize) -> Object {
    let answer = match serde_json::to_value(answer) {
        Ok(Value::Object(answer)) => answer,
        _ => Object::new(),
    };
    let reason = format!("the answer has {bytes} bytes, and the bus takes {limit} (websocket.max_msg_size)");
    short(answer, &reason)
}

/// The keys that say what is answered, and an error.
fn short(answer: Object, reason: &str) -> Object {
    let mut small = Object::new();
    for (key, value) in answer {
        if ["name", "toolbox_id", "call_id"].contains(&key.as_str()) {
            let is_short = value.to_string().len() <= LONGEST_ECHO;
            small.insert(key, if is_short { value } else { Value::from("") });
        }
    }
    let error = WireError::new("RuntimeError", reason);
    small.insert("error".to_owned(), Value::from(error.text));
    small
}
