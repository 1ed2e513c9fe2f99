//! `ovos.tools.status` and the status topics.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use super::keys::flag;
use super::request::Request;
use super::state::Api;
use super::stop::EVERYTHING;
use client::payload::{AllLatched, CallStatus, StatusResponse};

/// Whether a request for the status asks for the guides of toolboxes. An unreadable flag counts as absent: a status is never refused.
pub(super) fn asks_for_guides(request: &Request) -> bool {
    flag(&request.data, "guides").unwrap_or(false)
}

impl Api {
    /// The answer to `ovos.tools.status`, with or without the guides of toolboxes.
    pub(super) fn status_for(&self, guides: bool) -> StatusResponse {
        if guides {
            self.status_with_guides()
        } else {
            self.status()
        }
    }

    /// What the service knows of itself, without the guides of its toolboxes: it is asked for often.
    #[must_use]
    pub fn status(&self) -> StatusResponse {
        let mut status = self.status_with_guides();
        for toolbox in &mut status.toolboxes {
            toolbox.guide = None;
        }
        status
    }

    fn status_with_guides(&self) -> StatusResponse {
        let latched = self.engine.latched();
        let mut status = self.toolboxes.status();
        for toolbox in &mut status.toolboxes {
            if let Some(stop) = latched.get(&toolbox.toolbox_id) {
                toolbox.latched = true;
                toolbox.stop_id = Some(stop.stop_id.clone());
                toolbox.stop_reason = Some(stop.reason.clone());
            }
        }
        status.service.ready = self.serves_all();
        status.all_latched = self.engine.latch(EVERYTHING).map(|stop| AllLatched {
            stop_id: stop.stop_id,
            stop_reason: stop.reason,
        });
        status.calls = self.call_statuses();
        status.counters = self.counted();
        status
    }

    /// Whether the service is ready and every toolbox is loaded or has failed.
    pub(super) fn serves_all(&self) -> bool {
        self.ready.load(Ordering::Relaxed) && *self.all_loaded.borrow()
    }

    fn call_statuses(&self) -> Vec<CallStatus> {
        let status = |call: &std::sync::Arc<engine::CallControl>| CallStatus {
            call_id: call.call_id.clone(),
            name: call.tool.clone(),
            toolbox_id: call.toolbox_id.clone(),
            phase: call.phase().as_str().to_owned(),
            effect: call.effect,
            session_id: call.session_id.clone(),
            subsystems: call.subsystems(),
            elapsed_ms: u64::try_from(call.received.elapsed().as_millis()).unwrap_or(u64::MAX),
            generation: call.generation(),
        };
        self.engine.calls().iter().map(status).collect()
    }

    fn counted(&self) -> BTreeMap<String, u64> {
        let counts = self.engine.facts().counts();
        let rows = [
            ("requests", self.requests.load(Ordering::Relaxed)),
            ("calls", counts.calls),
            ("failed_calls", counts.failed_calls),
            ("stops", counts.stops),
        ];
        rows.map(|(name, count)| (name.to_owned(), count)).into()
    }
}
