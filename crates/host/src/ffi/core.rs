//! What an instance's threads and callbacks share: its runs, queues, limits and counts.
//!
//! Owns the meaning of what a toolbox says through its host table, as safe code. Read [`Core`] first.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ovos_toolbox_abi::{Status, level, status};
use ovos_toolbox_wire::{Event, Failure, Manifest, Progress};
use parking_lot::Mutex;
use serde_json::Value;

use crate::contract::counts::Counters;
use crate::contract::json;
use crate::contract::services::{HostServices, Limits, Origin, Request};
use crate::ffi::answer;
use crate::ffi::bytes::{Owned, Unreadable};
use crate::ffi::host_queue::HostQueue;
use crate::ffi::journal;
use crate::ffi::rate::Rate;
use crate::ffi::runs::Runs;

/// The shared state of one instance.
pub(crate) struct Core {
    pub(crate) origin: Origin,
    pub(crate) manifest: Arc<Manifest>,
    pub(crate) limits: Limits,
    pub(crate) runs: Arc<Runs>,
    pub(crate) queue: HostQueue,
    pub(crate) counters: Arc<Counters>,
    pub(crate) services: Arc<dyn HostServices>,
    requests: Mutex<HashSet<u64>>,
    logs: Rate,
    progress: Rate,
    events: Rate,
    urgent_events: Rate,
    latches: Rate,
}

impl Core {
    pub(crate) fn new(
        origin: Origin,
        manifest: Arc<Manifest>,
        limits: Limits,
        stop_epoch: u64,
        services: Arc<dyn HostServices>,
    ) -> Arc<Self> {
        let counters = Arc::new(Counters::default());
        Arc::new(Self {
            runs: Runs::new(stop_epoch, Arc::clone(&counters)),
            queue: HostQueue::new(limits.max_queued, limits.max_messages),
            requests: Mutex::default(),
            // Far above what a sane toolbox does, far below what would hurt the service or the bus.
            logs: Rate::new(1000, 500),
            progress: Rate::new(1000, 500),
            events: Rate::new(200, 50),
            urgent_events: Rate::new(200, 100),
            // Of its own: nothing else that a toolbox says may cost the service an emergency stop.
            latches: Rate::new(200, 100),
            origin,
            manifest,
            limits,
            counters,
            services,
        })
    }

    pub(crate) fn log(&self, level: u32, target: &str, message: Result<&str, Unreadable>) {
        if !self.logs.allows() {
            self.counters.dropped_logs.add();
            return;
        }
        let Origin {
            toolbox_id,
            generation,
        } = &self.origin;
        match message {
            Ok(message) => journal::write(level, toolbox_id, *generation, target, message),
            Err(error) => {
                let text = format!("a log line of the toolbox {error}");
                journal::write(level::WARN, toolbox_id, *generation, target, &text);
            }
        }
    }

    pub(crate) fn complete(&self, run: u64, status: Status, json: &Owned) {
        // First the right to end the run, then the work of reading: a second completion finds nothing to do.
        let Some(ending) = self.runs.take(run) else {
            tracing::debug!(
                toolbox = &*self.origin.toolbox_id,
                run,
                "dropped a completion of a run that is not under way"
            );
            return;
        };
        let text = || json.text(self.limits.max_result_bytes);
        ending.send_either(
            || answer::ended(status, text()),
            || answer::run_end(status, text()),
        );
    }

    pub(crate) fn progress(&self, run: u64, json: Result<&str, Unreadable>) {
        let progress = json.ok().and_then(|text| json::read::<Progress>(text).ok());
        let sink = self.runs.progress(run).filter(|_| self.progress.allows());
        match (sink, progress) {
            (Some(sink), Some(progress)) => sink(progress),
            _ => self.counters.dropped_progress.add(),
        }
    }

    pub(crate) fn event(&self, json: Result<&str, Unreadable>) {
        let Some(event) = json.ok().and_then(|text| json::read::<Event>(text).ok()) else {
            self.counters.dropped_events.add();
            self.complain("an event of the toolbox is not an event object");
            return;
        };
        let rate = match event.kind.as_str() {
            "latched" => &self.latches,
            "backend" | "tools_changed" => &self.urgent_events,
            _ => &self.events,
        };
        if rate.allows() {
            self.services.event(&self.origin, event);
        } else {
            self.counters.dropped_events.add();
        }
    }

    pub(crate) fn request(
        &self,
        topic: Result<&str, Unreadable>,
        json: Result<&str, Unreadable>,
        timeout: Duration,
    ) -> u64 {
        /// Unique in the process, so that an answer never reaches another generation's question.
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let topic = topic
            .ok()
            .filter(|t| self.manifest.requests.iter().any(|listed| listed == t));
        let data: Option<Value> = json.ok().and_then(|text| match text {
            "" => Some(Value::Object(serde_json::Map::new())),
            text => json::read(text).ok(),
        });
        let (Some(topic), Some(data)) = (topic, data.filter(Value::is_object)) else {
            self.counters.refused_requests.add();
            self.complain("refused a request: its topic is not in the manifest's `requests`, or its data is not a JSON object");
            return 0;
        };
        let id = {
            let mut requests = self.requests.lock();
            if requests.len() >= self.limits.max_requests {
                self.counters.refused_requests.add();
                return 0;
            }
            let id = NEXT.fetch_add(1, Ordering::Relaxed);
            requests.insert(id);
            id
        };
        self.services.request(
            &self.origin,
            Request {
                id,
                topic: topic.to_owned(),
                data,
                timeout,
            },
        );
        id
    }

    /// Hands the answer to a request over; false when the toolbox did not ask, or was answered already.
    pub(crate) fn respond(&self, request: u64, answer: &Result<Value, Failure>) -> bool {
        let answer = match answer {
            Ok(data) => Ok(data.to_string()),
            Err(failure) => Err(serde_json::to_string(failure).unwrap_or_default()),
        };
        self.respond_text(request, answer)
    }

    /// As [`Core::respond`], with the data, or the failure, as JSON.
    pub(crate) fn respond_text(&self, request: u64, answer: Result<String, String>) -> bool {
        let asked = self.requests.lock().remove(&request);
        if asked {
            let (code, json) = match answer {
                Ok(data) => (status::OK, data),
                Err(failure) => (status::ERR, failure),
            };
            self.queue.push_response(request, code, json);
        }
        asked
    }

    /// A warning about the toolbox, within its own log limit.
    fn complain(&self, text: &str) {
        self.log(level::WARN, "", Ok(text));
    }
}
