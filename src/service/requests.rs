//! Serves requests in the order in which they arrived.
//!
//! Owns the path from a frame to the API: parsing, the order of calls, the bound on requests in progress. Read
//! [`serve_requests`].

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use futures_util::FutureExt;
use ovos_toolbox_wire::Object;
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::deliveries::Deliveries;
use crate::api::{Api, Request, Topic};
use bus::{Envelope, Message, Utf8Bytes};

/// Frames longer than this are parsed on a thread for blocking work: parsing them on a thread of the runtime would delay its
/// other tasks.
pub(super) const LARGE_FRAME_BYTES: usize = 64 << 10;

/// A request in the queue, not parsed yet.
pub(super) struct QueuedRequest {
    /// The topic of its type.
    pub(super) topic: Topic,
    pub(super) text: Utf8Bytes,
    pub(super) received: Instant,
    /// Held until the request is answered: the shutdown waits for it.
    pub(super) unanswered: TaskTrackerToken,
}

/// Serves requests.
pub(super) struct RequestServer {
    pub(super) api: Arc<Api>,
    pub(super) deliveries: Arc<dyn Deliveries>,
    pub(super) shutdown: CancellationToken,
    pub(super) answer_as_phal: bool,
    /// Bounds the requests in progress, list and get included. The bound is four times the limit of calls, and at least 64, so
    /// that calls reach their own limit first: that limit answers with an error, while this one only makes the queue wait.
    pub(super) permits: Arc<Semaphore>,
}

impl RequestServer {
    /// Serves a request; a panic affects only this request.
    async fn serve_guarded(&self, topic: Topic, text: Utf8Bytes, received: Instant) {
        let served = AssertUnwindSafe(self.serve(topic.clone(), text.clone(), received)).catch_unwind();
        if served.await.is_ok() {
            return;
        }
        tracing::error!("bug in the service: a request was not served");
        if let Some(ParsedRequest { head, data, .. }) = parse(&text) {
            let request = Request::new(head, data, received);
            self.api.answer_bug(topic, &request).await;
        }
    }

    async fn serve(&self, routed: Topic, text: Utf8Bytes, received: Instant) {
        let Some(ParsedRequest {
            head,
            data,
            unreadable,
        }) = parse_without_blocking(text.clone()).await
        else {
            return;
        };
        // If the key `type` occurs twice, the last one counts; the router read the first.
        let is_routed = Envelope::kind_of(&text).is_some_and(|first| first == head.kind);
        let last = || Topic::of(&head.kind, self.answer_as_phal);
        let Some(topic) = is_routed.then_some(routed).or_else(last) else {
            return;
        };
        match (topic, unreadable) {
            // Neither of these needs its data.
            (Topic::ConfigurationUpdated, _) => self.deliveries.configuration_updated(),
            (Topic::ConfigurationPatchClear, _) => self.deliveries.configuration_patches_cleared(),
            (Topic::ConfigurationPatch, None) => self.deliveries.configuration_patched(&head, &data),
            (topic, Some(reason)) => {
                let request = Request::new(head, data, received);
                self.api.answer_unreadable(topic, request, &reason).await;
            }
            (topic, None) => self.api.handle(topic, Request::new(head, data, received)).await,
        }
    }
}

/// Serves requests in the order in which they arrived. Each request is polled once before the next one is taken, which
/// brings a call past the point where it takes its place in the queue. A request that has to wait continues in a task
/// of its own.
pub(super) async fn serve_requests(
    server: Arc<RequestServer>,
    mut queue: mpsc::Receiver<QueuedRequest>,
    unanswered: TaskTracker,
) {
    loop {
        let queued = tokio::select! {
            queued = queue.recv() => queued,
            () = server.shutdown.cancelled() => return,
        };
        let Some(queued) = queued else { return };
        let Ok(permit) = server.permits.clone().acquire_owned().await else {
            return;
        };
        let server = server.clone();
        let mut served = Box::pin(async move {
            let QueuedRequest {
                topic,
                text,
                received,
                unanswered,
            } = queued;
            // Calls are ended and answered before this token is cancelled; a request that remains is not answered.
            tokio::select! {
                () = server.serve_guarded(topic, text, received) => {}
                () = server.shutdown.cancelled() => {}
            }
            drop((permit, unanswered));
        });
        // Exempt from tokio's cooperative budget: with the budget used up, a call would yield before it took its
        // place, and the next call would overtake it.
        if futures_util::poll!(tokio::task::unconstrained(&mut served)).is_pending() {
            unanswered.spawn(served);
        }
    }
}

/// Answers the requests that did not fit into the queue.
pub(super) async fn refuse_surplus(server: Arc<RequestServer>, mut queue: mpsc::Receiver<QueuedRequest>) {
    loop {
        let queued = tokio::select! {
            queued = queue.recv() => queued,
            () = server.shutdown.cancelled() => return,
        };
        let Some(QueuedRequest {
            topic,
            text,
            received,
            unanswered,
        }) = queued
        else {
            return;
        };
        let Some(ParsedRequest { head, data, .. }) = parse_without_blocking(text).await else {
            continue;
        };
        let request = Request::new(head, data, received);
        match topic {
            Topic::ConfigurationUpdated => server.deliveries.configuration_updated(),
            Topic::ConfigurationPatchClear => server.deliveries.configuration_patches_cleared(),
            topic => tokio::select! {
                () = server.api.answer_busy(topic, &request) => {}
                () = server.shutdown.cancelled() => return,
            },
        }
        drop(unanswered);
    }
}

/// A parsed request.
pub(super) struct ParsedRequest {
    pub(super) head: Message,
    pub(super) data: Object,
    /// Why the data cannot be parsed as a whole; then `data` has the entries whose values are neither objects nor lists.
    unreadable: Option<String>,
}

/// Parses a request without blocking this task: a large one on a thread for blocking work. `None` as for [`parse`].
async fn parse_without_blocking(text: Utf8Bytes) -> Option<ParsedRequest> {
    if text.len() <= LARGE_FRAME_BYTES {
        return parse(&text);
    }
    tokio::task::spawn_blocking(move || parse(&text)).await.ok()?
}

/// Parses a request; `None` if it cannot be answered.
pub(super) fn parse(text: &str) -> Option<ParsedRequest> {
    let envelope = Envelope::parse(text)
        .inspect_err(|error| tracing::warn!(%error, "dropped a malformed request"))
        .ok()?;
    let kind = &envelope.kind;
    let head = envelope
        .head()
        .inspect_err(|error| tracing::warn!(%kind, %error, "dropped a request with a malformed context"))
        .ok()?;
    let (data, unreadable) = match envelope.data_map() {
        Ok(data) => (data, None),
        Err(error) => (envelope.plain_data(), Some(error.to_string())),
    };
    Some(ParsedRequest {
        head,
        data,
        unreadable,
    })
}
