//! What an instance's threads and callbacks share: its runs, its queue, its requests and its limits.
//!
//! Owns the meaning of what a toolbox says through its host table, as safe code. Read [`Core`] first.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ovos_toolbox_abi::{Status, status};
use ovos_toolbox_wire::{Failure, Manifest};
use parking_lot::Mutex;
use protocol::{Answer, Raw};
use serde_json::Value;

use crate::contract::json;
use crate::contract::services::{Limits, Request};
use crate::ffi::answer;
use crate::ffi::bytes::{Owned, Unreadable};
use crate::ffi::host_queue::{HostQueue, Job, Refused};
use crate::ffi::runs::Runs;
use crate::ffi::unasked::Unasked;

/// The shared state of one instance.
pub(crate) struct Core {
    pub(crate) unasked: Unasked,
    pub(crate) limits: Limits,
    pub(crate) runs: Runs,
    pub(crate) queue: HostQueue,
    manifest: Arc<Manifest>,
    requests: Mutex<HashSet<u64>>,
}

impl Core {
    pub(crate) fn new(
        unasked: Unasked,
        manifest: Arc<Manifest>,
        limits: Limits,
        stop_epoch: u64,
    ) -> Arc<Self> {
        Arc::new(Self {
            runs: Runs::new(stop_epoch, unasked.counters.clone()),
            queue: HostQueue::new(limits.max_queued, limits.max_messages),
            requests: Mutex::default(),
            unasked,
            limits,
            manifest,
        })
    }

    pub(crate) fn id(&self) -> &str {
        &self.unasked.origin.toolbox_id
    }

    /// Takes no new work and cancels what is queued; what is under way finishes, then the toolbox is closed.
    pub(crate) fn begin_close(&self) {
        for job in self.queue.close() {
            // A start is its run, which is ended below.
            if let Job::Ask { question, .. } = job {
                question(Err(self.refusal(Refused::Closed)));
            }
        }
        self.runs.cancel_queued();
    }

    /// Why something was not taken.
    pub(crate) fn refusal(&self, refused: Refused) -> Failure {
        let id = self.id();
        match refused {
            Refused::Closed => Failure::new("ToolboxClosed", format!("toolbox `{id}` is closed")),
            Refused::Full => {
                let text = format!(
                    "toolbox `{id}` has {} calls waiting for its thread; try again later",
                    self.limits.max_queued
                );
                Failure::new("BusyError", text)
            }
        }
    }

    pub(crate) fn complete(&self, run: u64, status: Status, json: &Owned) {
        // First the right to end the run, then the work of reading: a second completion finds nothing to do.
        let Some(tell) = self.runs.take(run) else {
            tracing::debug!(
                toolbox = self.id(),
                run,
                "dropped a completion of a run that is not under way"
            );
            return;
        };
        tell(answer::run_end(status, json.text(self.limits.max_result_bytes)));
    }

    pub(crate) fn progress(&self, run: u64, json: Result<&str, Unreadable>) {
        self.unasked.progress(self.runs.progress(run), json);
    }

    pub(crate) fn request(
        &self,
        topic: Result<&str, Unreadable>,
        json: Result<&str, Unreadable>,
        timeout: Duration,
    ) -> u64 {
        /// Unique in the process, so that an answer never reaches another generation's question.
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let refused = || {
            self.unasked.counters.refused_requests.add();
            0
        };
        let topic = topic
            .ok()
            .filter(|t| self.manifest.requests.iter().any(|listed| listed == t));
        let data: Option<Value> = json.ok().and_then(|text| match text {
            "" => Some(Value::Object(serde_json::Map::new())),
            text => json::read(text).ok(),
        });
        let (Some(topic), Some(data)) = (topic, data.filter(Value::is_object)) else {
            self.unasked.complain(
                "refused a request: its topic is not in the manifest's `requests`, or its data is not a JSON object",
            );
            return refused();
        };
        let id = {
            let mut requests = self.requests.lock();
            if requests.len() >= self.limits.max_requests {
                return refused();
            }
            let id = NEXT.fetch_add(1, Ordering::Relaxed);
            requests.insert(id);
            id
        };
        let request = Request {
            id,
            topic: topic.to_owned(),
            data,
            timeout,
        };
        self.unasked.services.request(&self.unasked.origin, request);
        id
    }

    /// Hands the answer to a request over, unless the toolbox did not ask or was answered already.
    pub(crate) fn respond(&self, request: u64, answer: Answer<Raw<Value>>) {
        if self.requests.lock().remove(&request) {
            let (code, json) = match answer {
                Answer::Ok(data) => (status::OK, data.into_text()),
                Answer::Error(failure) => (status::ERR, failure.into_text()),
            };
            self.queue.push_response(request, code, json);
        }
    }
}
