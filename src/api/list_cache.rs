//! A cache of lists: the data of answers that were made of the present tools.

use std::collections::VecDeque;
use std::sync::Arc;

use ovos_toolbox_wire::FailureKind;
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::Semaphore;

use super::error::WireError;
use super::pages::Part;

/// How many long lists are made, or wait to be sent, at a time: each takes as much memory as the bus takes in one message.
const MAX_UNDER_WAY: usize = 2;

/// The size of all answers that are kept together.
const CACHE_BYTES: usize = 8 << 20;

/// The largest answer that is kept.
const ANSWER_BYTES: usize = 2 << 20;

/// The longest key of an answer that is kept: a request may name many tools.
const KEY_BYTES: usize = 256;

/// The lists that were made of the present tools, and a bound on those that are being made.
#[derive(Debug)]
pub(super) struct ListCache {
    /// One for each long list that is made or waits to be sent.
    pub(super) permits: Semaphore,
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

impl Default for ListCache {
    fn default() -> Self {
        Self {
            permits: Semaphore::new(MAX_UNDER_WAY),
            cached: Mutex::default(),
        }
    }
}

impl ListCache {
    /// Returns the data of an answer: what was made for such a request before, or what `make` makes now. The key holds everything
    /// in the request that the answer depends on, beside its part.
    ///
    /// # Errors
    /// That of `make`, or the data cannot be written as JSON.
    pub(super) fn get_or_make<T: Serialize>(
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
        if snapshot < self.snapshot || size > ANSWER_BYTES || key.len() > KEY_BYTES {
            return;
        }
        self.bytes += size;
        self.answers.push_back((key, data.clone()));
        while self.bytes > CACHE_BYTES
            && let Some((_, oldest)) = self.answers.pop_front()
        {
            self.bytes -= oldest.get().len();
        }
    }
}
