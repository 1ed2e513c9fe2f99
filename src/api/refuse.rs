//! Error answers to requests that cannot be read, and in place of answers that cannot be sent.
//!
//! They have the shape of the topic's other answers, so that a client which looks only at the published keys finds them.

use std::sync::Arc;

use ovos_toolbox_wire::{FailureKind, Object};
use serde::Serialize;
use serde_json::{Value, json};

use super::error::WireError;
use super::request::Request;
use super::resolve::Name;
use super::state::Api;
use super::topic::Topic;
use bus::Message;
use client::payload::{CancelResponse, RunResponse, StopResponse, StoppedToolbox};

/// The longest value, in bytes, that is repeated in the error that replaces an answer.
const LONGEST_ECHO: usize = 1024;

impl Api {
    /// Answers a request whose data cannot be read as a whole; `request` has the part that could be read. Topics that
    /// need no data are answered as usual.
    ///
    /// # Cancel safety
    /// The answer is lost.
    pub async fn answer_unreadable(self: &Arc<Self>, topic: Topic, request: Request, reason: &str) {
        match topic {
            Topic::List
            | Topic::Reload
            | Topic::Status
            | Topic::Discover
            | Topic::IsReady
            | Topic::AllLoaded
            | Topic::ConfigurationUpdated
            | Topic::ConfigurationPatch
            | Topic::ConfigurationPatchClear => self.handle(topic, request).await,
            // A stop in a run is carried out, whatever else is wrong with the run.
            Topic::Run if !self.stops_among(&request.data).is_empty() => self.handle(topic, request).await,
            // Spelled out, so that the compiler asks for the place of a new topic.
            Topic::Get
            | Topic::Invoke
            | Topic::Run
            | Topic::Plan
            | Topic::Export
            | Topic::Cancel
            | Topic::Resume
            | Topic::Call { .. } => {
                let error = format!("the request's data cannot be read: {reason}");
                self.fail(
                    topic,
                    &request,
                    WireError::new(FailureKind::ValueError, error).text,
                )
                .await;
            }
        }
    }

    /// Answers a request that is not served because too many are under way.
    ///
    /// # Cancel safety
    /// The answer is lost.
    pub async fn answer_busy(&self, topic: Topic, request: &Request) {
        let busy = "too many requests are in progress; try again later";
        self.fail(topic, request, WireError::new(FailureKind::BusyError, busy).text)
            .await;
    }

    /// Answers a request with an error in the shape of its topic's answers.
    async fn fail(&self, topic: Topic, request: &Request, error: String) {
        let data = &request.data;
        let text = |key: &str| Some(data.get(key)?.as_str()?.to_owned());
        let mut answer = Object::new();
        match &topic {
            Topic::Invoke | Topic::Plan => {
                let name = Name::of(data).echo();
                answer.insert("name".to_owned(), name);
            }
            Topic::Run => {
                let answer = RunResponse {
                    error: Some(error),
                    ..RunResponse::default()
                };
                return self.answer(request, &answer).await;
            }
            Topic::Call { toolbox_id } => {
                let id = toolbox_id.clone().or_else(|| text("toolbox_id"));
                let Some(id) = id.filter(|id| self.registry.snapshot().toolbox(id).is_some()) else {
                    // The request may be meant for a toolbox of another service: the contract prescribes silence then.
                    return tracing::debug!(
                        error,
                        "ignored a call of a toolbox that this service does not have"
                    );
                };
                answer.insert("toolbox_id".to_owned(), Value::from(id));
            }
            Topic::Resume => {
                let entry = StoppedToolbox {
                    toolbox_id: text("toolbox_id").unwrap_or_default(),
                    error: Some(error),
                    ..StoppedToolbox::default()
                };
                let toolboxes = vec![entry];
                return self.answer(request, &StopResponse { toolboxes }).await;
            }
            Topic::Cancel => {
                let answer = CancelResponse {
                    call_id: text("call_id").unwrap_or_default(),
                    state: "unknown".to_owned(),
                    error: Some(error),
                    ..CancelResponse::default()
                };
                return self.answer(request, &answer).await;
            }
            // No answer is expected, or one from each toolbox.
            Topic::ConfigurationUpdated
            | Topic::ConfigurationPatch
            | Topic::ConfigurationPatchClear
            | Topic::Discover => return,
            Topic::List
            | Topic::Get
            | Topic::Reload
            | Topic::Export
            | Topic::Status
            | Topic::IsReady
            | Topic::AllLoaded => {}
        }
        answer.insert("error".to_owned(), Value::from(error));
        self.answer(request, &answer).await;
    }

    /// Answers a request that ran into a bug of the service.
    ///
    /// # Cancel safety
    /// The answer is lost.
    pub async fn answer_bug(&self, topic: Topic, request: &Request) {
        let bug = WireError::new(FailureKind::RuntimeError, "bug in the service; its log says more");
        self.fail(topic, request, bug.text).await;
    }
}

/// A frame that replaces an answer which was lost too often: the same message, with an error as its data.
pub(crate) fn instead(answer: &str, reason: &str) -> Option<String> {
    let mut message = Message::parse(answer).ok()?;
    message.data = short(message.data, reason);
    Some(message.to_text())
}

/// An answer that is too large for the bus, without its content; `None` if it has no content.
pub(super) fn without_content<T: Serialize>(answer: &T, bytes: usize, limit: usize) -> Option<Object> {
    let Ok(Value::Object(mut answer)) = serde_json::to_value(answer) else {
        return None;
    };
    answer.shift_remove("content")?;
    let reason = format!(
        "all content: with it the answer is {bytes} bytes, and the limit of the bus is {limit} (websocket.max_msg_size)"
    );
    tracing::warn!("content is left out: {reason}");
    let refused = answer.entry("content_refused").or_insert_with(|| json!([]));
    refused.as_array_mut()?.push(Value::from(reason));
    Some(answer)
}

/// The answer to a run that is too large for the bus, with the status of each step but without the results; `None` if
/// the answer has no results of steps.
pub(super) fn without_results<T: Serialize>(answer: &T, bytes: usize, limit: usize) -> Option<Object> {
    let Ok(Value::Object(mut answer)) = serde_json::to_value(answer) else {
        return None;
    };
    let reason = format!(
        "with all results the answer is {bytes} bytes, and the limit of the bus is {limit} (websocket.max_msg_size)"
    );
    let steps = answer.get_mut("steps")?.as_array_mut()?;
    let steps = steps.iter_mut().filter_map(Value::as_object_mut);
    let mut left_out = false;
    for step in steps.filter(|step| step.contains_key("result")) {
        for key in ["result", "content"] {
            step.shift_remove(key);
        }
        step.insert("result_left_out".to_owned(), Value::from(reason.as_str()));
        left_out = true;
    }
    left_out.then_some(answer)
}

/// The answer in place of a list that is too large for the bus. Its key `limit` tells a program what the error tells a person.
pub(super) fn list_too_large(bytes: usize, limit: usize) -> Object {
    /// How many tools a client should ask for at a time; a page ends also where it becomes long.
    const PAGE: u32 = 500;
    let reason = format!(
        "the answer is {bytes} bytes, and the limit of the bus is {limit} (websocket.max_msg_size): request it in pages, with \
         `\"limit\": {PAGE}` and then the `next_cursor` of each answer as `cursor`"
    );
    let error = WireError::new(FailureKind::RuntimeError, reason).text;
    Object::from_iter([
        ("error".to_owned(), Value::from(error)),
        ("limit".to_owned(), Value::from(PAGE)),
    ])
}

/// The answer to a reload that is too large for the bus, without its list of tools; `None` if it has none.
pub(super) fn without_tools<T: Serialize>(answer: &T, bytes: usize, limit: usize) -> Option<Object> {
    let Ok(Value::Object(mut answer)) = serde_json::to_value(answer) else {
        return None;
    };
    answer.get("loaded")?;
    answer.shift_remove("tools")?;
    let reason = format!(
        "with all tools the answer is {bytes} bytes, and the limit of the bus is {limit} \
         (websocket.max_msg_size); ovos.tools.list gives them in pages (`limit`)"
    );
    answer.insert("tools_left_out".to_owned(), Value::from(reason));
    Some(answer)
}

/// The data that replaces an answer which is too large for the bus.
pub(super) fn too_large<T: Serialize>(answer: &T, bytes: usize, limit: usize) -> Object {
    let answer = match serde_json::to_value(answer) {
        Ok(Value::Object(answer)) => answer,
        _ => Object::new(),
    };
    let reason =
        format!("the answer is {bytes} bytes, and the limit of the bus is {limit} (websocket.max_msg_size)");
    short(answer, &reason)
}

/// An error, with the keys that identify the request.
fn short(answer: Object, reason: &str) -> Object {
    let mut small = Object::new();
    for (key, value) in answer {
        if ["name", "toolbox_id", "call_id"].contains(&key.as_str()) {
            let is_short = value.to_string().len() <= LONGEST_ECHO;
            small.insert(key, if is_short { value } else { Value::from("") });
        }
    }
    let error = WireError::new(FailureKind::RuntimeError, reason);
    small.insert("error".to_owned(), Value::from(error.text));
    small
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_is_too_long_loses_its_results_and_not_what_became_of_its_steps() {
        let long = "x".repeat(100);
        let ran = json!({"ok": true, "steps": [
            {"id": "a", "status": "completed", "result": long, "content": [{"data": long}]},
            {"id": "b", "status": "failed", "error": "no"},
        ]});
        let left = Value::Object(without_results(&ran, 20, 10).unwrap());
        let reason = left["steps"][0]["result_left_out"].as_str().unwrap();
        assert!(
            reason.contains("is 20 bytes, and the limit of the bus is 10"),
            "{reason}"
        );
        assert_eq!(
            left,
            json!({"ok": true, "steps": [
                {"id": "a", "status": "completed", "result_left_out": reason},
                {"id": "b", "status": "failed", "error": "no"},
            ]})
        );
        for other in [json!({"result": 1}), json!({"steps": [{"id": "a", "plan": {}}]})] {
            assert_eq!(without_results(&other, 20, 10), None, "{other}");
        }
    }

    #[test]
    fn an_answer_that_is_too_long_loses_its_content_and_not_its_result() {
        let item = json!({"type": "text", "mime_type": "text/plain", "data": "hello"});
        for (answer, refused) in [
            (json!({"result": 1}), None),
            (json!({"error": "e", "content_refused": ["a"]}), None),
            (json!({"result": 1, "content": [item]}), Some(1)),
            (
                json!({"result": 1, "content": [item], "content_refused": ["a"]}),
                Some(2),
            ),
        ] {
            let without = without_content(&answer, 20, 10);
            assert_eq!(without.is_some(), refused.is_some(), "{answer}");
            let (Some(without), Some(refused)) = (without, refused) else {
                continue;
            };
            let reasons = without["content_refused"].as_array().unwrap();
            assert_eq!(reasons.len(), refused, "{reasons:?}");
            assert!(
                reasons[refused - 1].as_str().unwrap().contains("20 bytes"),
                "{reasons:?}"
            );
            assert_eq!(without["result"], 1);
            assert!(!without.contains_key("content"));
        }
    }
}
