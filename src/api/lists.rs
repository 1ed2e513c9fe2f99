//! Answers that hold many tools: `ovos.tools.list`, `ovos.tools.export` and `ovos.persona.tools.discover`.
//!
//! The data of an answer depends only on the request and on one snapshot of the registry, so it is kept until the next snapshot.
//! The threads of the runtime serve stops, so long lists are made on threads for blocking work, at most two at a time. Read
//! [`Api::answer_list`].

use std::sync::Arc;

use serde_json::value::RawValue;

use super::error::{OrError, WireError};
use super::pages::Part;
use super::refuse;
use super::request::Request;
use super::state::Api;
use super::topic::Topic;

/// The largest size of all tools together at which a list is made on a thread of the runtime.
const INLINE_BYTES: usize = 64 << 10;

impl Api {
    /// Answers a request for a list.
    ///
    /// # Cancel safety
    /// The answer is lost.
    pub(super) async fn answer_list(self: &Arc<Self>, topic: Topic, request: Request) {
        if self.registry.snapshot().bytes() <= INLINE_BYTES {
            for frame in self.list_frames(&topic, &request) {
                self.outbox.answer(frame).await;
            }
            return;
        }
        // The semaphore is never closed.
        let Ok(_place) = self.list_cache.permits.acquire().await else {
            return;
        };
        let api = self.clone();
        let frames = tokio::task::spawn_blocking(move || api.list_frames(&topic, &request)).await;
        match frames {
            Ok(frames) => {
                for frame in frames {
                    self.outbox.answer(frame).await;
                }
            }
            // Without frames the task has panicked, or the runtime shuts down.
            Err(error) => tracing::error!(%error, "bug in the service: a list was not made"),
        }
    }

    fn list_frames(&self, topic: &Topic, request: &Request) -> Vec<String> {
        let one = |answer: Result<Arc<RawValue>, WireError>| match answer {
            Ok(data) => self.list_frame(request, data),
            Err(error) => self.frame_of(request, &OrError::<()>::Bad { error: error.text }),
        };
        let frames: Vec<Option<String>> = match topic {
            Topic::List => vec![one(self.list(request))],
            Topic::Export => vec![one(self.export(request))],
            _ => match self.discover(request) {
                Ok(answers) => answers
                    .into_iter()
                    .map(|data| self.list_frame(request, data))
                    .collect(),
                Err(error) => vec![self.frame_of(request, &OrError::<()>::Bad { error: error.text })],
            },
        };
        frames.into_iter().flatten().collect()
    }

    /// The frame of a list, or of an error that says how to ask for one that is too large.
    fn list_frame(&self, request: &Request, data: Arc<RawValue>) -> Option<String> {
        let (bytes, limit) = (data.get().len(), self.settings.max_answer_bytes);
        if bytes <= limit {
            return self.frame_of(request, &data);
        }
        // Only the keys that name the list are read.
        #[derive(serde::Deserialize)]
        struct OfToolbox {
            toolbox_id: Option<String>,
        }
        let of = serde_json::from_str::<OfToolbox>(data.get()).ok();
        let mut answer = refuse::list_too_large(bytes, limit);
        if let Some(toolbox_id) = of.and_then(|of| of.toolbox_id) {
            answer.insert("toolbox_id".to_owned(), toolbox_id.into());
        }
        self.frame_of(request, &answer)
    }

    /// The cursor of the next page, if there is one.
    pub(super) fn next_cursor(&self, part: &Part, next: Option<usize>) -> Option<String> {
        next.map(|next| self.open_pages.cursor(&part.snapshot, next))
    }
}
