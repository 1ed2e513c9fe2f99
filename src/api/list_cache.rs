//! The lists that were made of the present tools.

use std::collections::VecDeque;
use std::sync::Arc;

use ovos_toolbox_wire::FailureKind;
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::Semaphore;

use super::error::WireError;
use super::paged::Part;

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
    pub(super) making: Semaphore,
    cached: Mutex<CachedAnswers>,
}

#[derive(Debug, Default)]
struct CachedAnswers {
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
            cached: Mutex::default(),
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
        if let Some(data) = self.cached.lock().find(part.snapshot.number(), &key) {
            return Ok(data);
        }
        let data =
            to_raw_value(&make()?).map_err(|error| WireError::new(FailureKind::InternalError, error))?;
        let data: Arc<RawValue> = Arc::from(data);
        self.cached.lock().keep(part.snapshot.number(), key, &data);
        Ok(data)
    }
}

impl CachedAnswers {
    fn find(&mut self, snapshot: u64, key: &str) -> Option<Arc<RawValue>> {
        if self.snapshot != snapshot {
            return None;
        }
        let at = self
            .answers
            .iter()
            .position(|(cached_key, _)| cached_key == key)?;
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
