//! From the data of an answer to its frame. Read [`Api::answer`].

use std::sync::Arc;

use ovos_toolbox_wire::Object;
use serde::Serialize;

use super::refuse;
use super::request::Request;
use super::state::Api;
use bus::{Message, OWN_KEY};

impl Api {
    /// Answers a request, with the `call_id` that it gave; the answer to an urgent one goes before others.
    pub(super) async fn answer<T: Serialize + Sync>(&self, request: &Request, data: &T) {
        match self.frame_of(request, data) {
            Some(frame) if request.urgent => self.outbox.answer_urgent(frame).await,
            Some(frame) => self.outbox.answer(frame).await,
            None => {}
        }
    }

    /// Answers with what may be long, made on a thread for blocking work.
    pub(super) async fn answer_apart<T: Serialize>(
        self: &Arc<Self>,
        request: Request,
        data: impl FnOnce(&Self) -> T + Send + 'static,
    ) {
        let api = self.clone();
        let frame = tokio::task::spawn_blocking(move || api.frame_of(&request, &data(&api))).await;
        if let Ok(Some(frame)) = frame {
            self.outbox.answer(frame).await;
        }
    }

    /// The frame of an answer, or what is sent in place of one that is too large.
    pub(super) fn frame_of<T: Serialize>(&self, request: &Request, data: &T) -> Option<String> {
        let kind = format!("{}.response", request.head.kind);
        let limit = self.settings.max_answer_bytes;
        match frame(&request.head, request.call_id(), &kind, data) {
            Ok(frame) if frame.len() <= limit => Some(frame),
            Ok(large) => {
                let bytes = large.len();
                let instead = [
                    refuse::without_content(data, bytes, limit),
                    refuse::without_results(data, bytes, limit),
                    refuse::without_tools(data, bytes, limit),
                    Some(refuse::too_large(data, bytes, limit)),
                ];
                let mut frames = instead.iter().flatten();
                let small = frames.find_map(|data| {
                    let frame = frame(&request.head, request.call_id(), &kind, data).ok()?;
                    (frame.len() <= limit).then_some(frame)
                });
                if small.is_none() {
                    tracing::error!(%kind, limit, "a request's context alone is larger than the bus takes");
                }
                small
            }
            Err(error) => {
                tracing::error!(%kind, %error, "an answer cannot be written as JSON");
                None
            }
        }
    }
}

/// Serializes a reply to the sender of `head`. This is the one place that puts the request's `call_id` into an answer, so that a
/// client can tell its own answers under every topic.
pub(super) fn frame<T: Serialize>(
    head: &Message,
    call_id: Option<&str>,
    kind: &str,
    data: &T,
) -> Result<String, serde_json::Error> {
    let mut derived = head.reply(kind, Object::new());
    // The request may be a reply to an answer that was sent again, and so carry that answer's mark. This answer is sent for the
    // first time.
    derived.context.shift_remove(OWN_KEY);
    // Written key by key into one text: the data may be text that was made when its toolbox was loaded, to which serde could not
    // add a key.
    let mut frame = b"{\"type\":".to_vec();
    serde_json::to_writer(&mut frame, kind)?;
    frame.extend_from_slice(b",\"data\":");
    serde_json::to_writer(&mut frame, data)?;
    if let Some(call_id) = call_id
        && frame.pop_if(|last| *last == b'}').is_some()
    {
        let comma = if frame.ends_with(b"{") { "" } else { "," };
        // The characters that a call_id may have need no escape.
        frame.extend_from_slice(format!("{comma}\"call_id\":\"{call_id}\"}}").as_bytes());
    }
    frame.extend_from_slice(b",\"context\":");
    serde_json::to_writer(&mut frame, &derived.context)?;
    frame.push(b'}');
    String::from_utf8(frame).map_err(serde::ser::Error::custom)
}
