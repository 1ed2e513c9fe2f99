//! Answers that hold many tools: `ovos.tools.list`, `ovos.tools.export` and `ovos.persona.tools.discover`.
//!
//! They are made of the tools of one snapshot of the registry, so what was made is kept until the next one. Long ones are
//! made on threads for blocking work, at most two at a time: the threads of the runtime serve stops. Read
//! [`Api::answer_list`].

use std::collections::VecDeque;
use std::sync::Arc;

use ovos_toolbox_wire::FailureKind;
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::Semaphore;

use super::error::{OrError, WireError};
use super::paged::Part;
use super::{Api, Request, Topic, refuse};

/// With more bytes of tools than this, a list is made on a thread for blocking work.
const LARGE: usize = 64 << 10;

/// How many long lists are made, or wait for room on their way out, at a time: they take as much memory as the bus takes
/// in one message.
const AT_A_TIME: usize = 2;

/// How many bytes of answers are kept, and of one.
const KEPT: usize = 8 << 20;
const KEPT_ONE: usize = 2 << 20;

/// The longest description of a request whose answer is kept, in bytes.
const LONGEST_KEY: usize = 256;

/// The lists that are made, and those that were made of the present tools.
#[derive(Debug)]
pub(super) struct Lists {
    making: Semaphore,
    made: Mutex<Made>,
}

#[derive(Debug, Default)]
struct Made {
    /// The snapshot of which they were made.
    snapshot: u64,
    /// The data of answers by request, the ones that were asked for last at the end.
    answers: VecDeque<(String, Arc<RawValue>)>,
    bytes: usize,
}

impl Default for Lists {
    fn default() -> Self {
        Self {
            making: Semaphore::new(AT_A_TIME),
            made: Mutex::default(),
        }
    }
}

impl Lists {
    /// The data of an answer: what was made for such a request before, or what `make` makes now. The key says everything of
    /// the request that the answer depends on, beside its part.
    pub(super) fn data<T: Serialize>(
        &self,
        part: &Part,
        key: impl FnOnce() -> String,
        make: impl FnOnce() -> Result<T, WireError>,
    ) -> Result<Arc<RawValue>, WireError> {
        let key = format!("{} {} {:?}", key(), part.first, part.limit);
        if let Some(made) = self.made.lock().find(part.snapshot.number(), &key) {
            return Ok(made);
        }
        let data =
            to_raw_value(&make()?).map_err(|error| WireError::new(FailureKind::InternalError, error))?;
        let data: Arc<RawValue> = Arc::from(data);
        self.made.lock().keep(part.snapshot.number(), key, &data);
        Ok(data)
    }
}

impl Made {
    fn find(&mut self, snapshot: u64, key: &str) -> Option<Arc<RawValue>> {
        if self.snapshot != snapshot {
            return None;
        }
        let at = self.answers.iter().position(|(made, _)| made == key)?;
        let found = self.answers.remove(at)?;
        let data = found.1.clone();
        self.answers.push_back(found);
        Some(data)
    }

    fn keep(&mut self, snapshot: u64, key: String, data: &Arc<RawValue>) {
        // Numbers grow: the rest of a list that was begun earlier is not kept.
        if snapshot > self.snapshot {
            *self = Self {
                snapshot,
                ..Self::default()
            };
        }
        let size = data.get().len();
        if snapshot < self.snapshot || size > KEPT_ONE || key.len() > LONGEST_KEY {
            return;
        }
        self.bytes += size;
        self.answers.push_back((key, data.clone()));
        while self.bytes > KEPT
            && let Some((_, oldest)) = self.answers.pop_front()
        {
            self.bytes -= oldest.get().len();
        }
    }
}

impl Api {
    /// Answers a request for a list.
    ///
    /// # Cancel safety
    /// The answer is lost.
    pub(super) async fn answer_list(self: &Arc<Self>, topic: Topic, request: Request) {
        if self.registry.snapshot().bytes() <= LARGE {
            for frame in self.list_frames(&topic, &request) {
                self.outbox.answer(frame).await;
            }
            return;
        }
        // The semaphore is never closed.
        let Ok(_place) = self.lists.making.acquire().await else {
            return;
        };
        let api = self.clone();
        let made = tokio::task::spawn_blocking(move || api.list_frames(&topic, &request)).await;
        match made {
            Ok(frames) => {
                for frame in frames {
                    self.outbox.answer(frame).await;
                }
            }
            // Only the shutdown of the runtime, or a panic, ends it.
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
}
