//! Where requests are served, in the order in which they came.
//!
//! Owns the way from a frame to the API: parsing, the order of calls, the bound on requests under way. Read
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

use super::router::Deliveries;
use crate::api::{Api, Request, Topic};
use crate::bus::{Envelope, Message, Utf8Bytes};

/// Frames above this are taken apart on a blocking thread: parsing them would hold up the tasks beside them.
pub(super) const LARGE: usize = 64 << 10;

/// A request that was read and not yet looked at.
pub(super) struct Arrived {
    pub(super) text: Utf8Bytes,
    pub(super) received: Instant,
    /// The service does not end before it is answered.
    pub(super) owed: TaskTrackerToken,
}

/// What a request needs to be served.
pub(super) struct Desk {
    pub(super) api: Arc<Api>,
    pub(super) deliveries: Arc<dyn Deliveries>,
    pub(super) shutdown: CancellationToken,
    pub(super) answer_as_phal: bool,
    /// Bounds the requests under way, list and get included: four times the calls, so that calls run into their own
    /// limit, which answers, before this one, which makes the queue wait.
    pub(super) permits: Arc<Semaphore>,
}

impl Desk {
    /// Serves a request; a bug that shows in one request costs that one only.
    async fn serve_guarded(&self, text: Utf8Bytes, received: Instant) {
        let served = AssertUnwindSafe(self.serve(text.clone(), received)).catch_unwind();
        if served.await.is_ok() {
            return;
        }
        tracing::error!("bug in the service: a request was not served");
        if let Parsed::Whole { head, .. } | Parsed::HeadOnly { head, .. } = parse(&text)
            && let Some(topic) = Topic::of(&head.kind, self.answer_as_phal)
        {
            self.api.apologise(topic, &head).await;
        }
    }

    async fn serve(&self, text: Utf8Bytes, received: Instant) {
        let parsed = if text.len() > LARGE {
            tokio::task::spawn_blocking(move || parse(&text))
                .await
                .unwrap_or(Parsed::Unusable)
        } else {
            parse(&text)
        };
        // Of a type that stands twice the last one counts; the reader took the first.
        let topic = match &parsed {
            Parsed::Whole { head, .. } | Parsed::HeadOnly { head, .. } => {
                Topic::of(&head.kind, self.answer_as_phal)
            }
            Parsed::Unusable => None,
        };
        let Some(topic) = topic else { return };
        match parsed {
            Parsed::Whole { head, data } => match topic {
                Topic::ConfigurationUpdated => self.deliveries.configuration_updated(),
                Topic::ConfigurationPatch => self.deliveries.configuration_patched(&head, &data),
                topic => self.api.handle(topic, Request { head, data, received }).await,
            },
            Parsed::HeadOnly { head, reason } => {
                let data = Object::new();
                self.api
                    .refuse(topic, Request { head, data, received }, &reason)
                    .await;
            }
            Parsed::Unusable => {}
        }
    }
}

/// Serves requests in the order in which they came: each is taken as far as it gets without waiting, which is past the
/// point where a call takes its turn, before the next one is looked at. What has to wait then goes on in a task of its own.
pub(super) async fn serve_requests(desk: Arc<Desk>, mut queue: mpsc::Receiver<Arrived>, owed: TaskTracker) {
    loop {
        let arrived = tokio::select! {
            arrived = queue.recv() => arrived,
            () = desk.shutdown.cancelled() => return,
        };
        let Some(arrived) = arrived else { return };
        let Ok(permit) = desk.permits.clone().acquire_owned().await else {
            return;
        };
        let desk = desk.clone();
        let mut served = Box::pin(async move {
            let Arrived { text, received, owed } = arrived;
            // Calls are ended and answered before this token falls; what is left then has nobody to answer to.
            tokio::select! {
                () = desk.serve_guarded(text, received) => {}
                () = desk.shutdown.cancelled() => {}
            }
            drop((permit, owed));
        });
        // Without the budget that tokio gives a task: out of it a call would pass its turn to the next one.
        if futures_util::poll!(tokio::task::unconstrained(&mut served)).is_pending() {
            owed.spawn(served);
        }
    }
}

/// A request, as far as it could be read.
enum Parsed {
    Whole { head: Message, data: Object },
    HeadOnly { head: Message, reason: String },
    Unusable,
}

fn parse(text: &str) -> Parsed {
    let envelope = match Envelope::parse(text) {
        Ok(envelope) => envelope,
        Err(error) => {
            tracing::warn!(%error, "dropped a malformed request");
            return Parsed::Unusable;
        }
    };
    let head = match envelope.head() {
        Ok(head) => head,
        Err(error) => {
            tracing::warn!(kind = %envelope.kind, %error, "dropped a request with a malformed context");
            return Parsed::Unusable;
        }
    };
    match envelope.data_map() {
        Ok(data) => Parsed::Whole { head, data },
        Err(error) => Parsed::HeadOnly {
            head,
            reason: error.to_string(),
        },
    }
}

#[cfg(test)]
#[allow(clippy::unimplemented, reason = "a bug to run into")]
mod tests {
    use std::collections::HashMap;

    use futures_util::future::BoxFuture;

    use super::*;
    use crate::api::{
        BusStatus, FailedFile, Outbox, ReloadOutcome, ServiceStatus, Settings, ToolboxStatus, Toolboxes,
    };
    use crate::engine::Engine;
    use crate::registry::Registry;

    /// Has a bug wherever it is asked.
    struct Broken;

    impl Toolboxes for Broken {
        fn reload(&self) -> BoxFuture<'_, ReloadOutcome> {
            unimplemented!()
        }
        fn toolboxes(&self) -> Vec<ToolboxStatus> {
            unimplemented!()
        }
        fn failed_files(&self) -> Vec<FailedFile> {
            unimplemented!()
        }
        fn service(&self) -> ServiceStatus {
            unimplemented!()
        }
        fn bus(&self) -> BusStatus {
            unimplemented!()
        }
        fn pending_config(&self) -> Vec<String> {
            unimplemented!()
        }
        fn latches_changed(&self) -> BoxFuture<'_, ()> {
            unimplemented!()
        }
    }

    impl Deliveries for Broken {
        fn deliver(&self, _: &Message) {}
        fn configuration_updated(&self) {
            unimplemented!()
        }
        fn configuration_patched(&self, _: &Message, _: &Object) {}
    }

    struct Sent(mpsc::UnboundedSender<String>);

    impl Outbox for Sent {
        fn answer(&self, frame: String) -> BoxFuture<'_, ()> {
            self.0.send(frame).unwrap();
            Box::pin(async {})
        }
        fn notify(&self, _: String) {}
    }

    #[tokio::test]
    async fn a_bug_that_shows_in_one_request_costs_that_one_only() {
        let (sent, mut answers) = mpsc::unbounded_channel();
        let settings = Settings {
            operator_tools: false,
            max_answer_bytes: 1 << 20,
        };
        let engine = Arc::new(Engine::new(8, HashMap::new()));
        let registry = Arc::new(Registry::default());
        let api = Api::new(engine, registry, Arc::new(Broken), Arc::new(Sent(sent)), settings);
        let desk = Arc::new(Desk {
            api: Arc::new(api),
            deliveries: Arc::new(Broken),
            shutdown: CancellationToken::new(),
            answer_as_phal: false,
            permits: Arc::new(Semaphore::new(8)),
        });
        let (requests, queue) = mpsc::channel(8);
        let owed = TaskTracker::new();
        for kind in ["configuration.updated", "ovos.tools.status", "ovos.tools.list"] {
            let arrived = Arrived {
                text: format!(r#"{{"type": "{kind}"}}"#).into(),
                received: Instant::now(),
                owed: owed.token(),
            };
            requests.try_send(arrived).ok().unwrap();
        }
        drop(requests);
        serve_requests(desk, queue, owed.clone()).await;
        owed.close();
        owed.wait().await;
        let mut expect = |kind: &str, contains: &str| {
            let frame = answers.try_recv().expect("an answer");
            assert!(frame.contains(kind) && frame.contains(contains), "{frame}");
        };
        expect("ovos.tools.status.response", "bug in the service");
        expect("ovos.tools.list.response", "tools");
        assert!(answers.try_recv().is_err());
    }
}
