//! The service, as a toolbox sees it.
//!
//! Owns events, requests to the bus and the background tasks of an instance. Never blocks. Read [`Host`].

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use ovos_toolbox_abi::{Status, status};
use ovos_toolbox_wire::{Event, Failure, FailureKind, Severity};
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::ToolError;
use crate::gate::Gate;

/// The service, as a toolbox sees it. Clones refer to the same host; after `close` every method does nothing.
///
/// Use `tracing` for logs: events on the instance's runtime or in a call from the host go to the service's log.
#[derive(Clone)]
pub struct Host {
    inner: Arc<Inner>,
}

struct Inner {
    gate: Arc<Gate>,
    requests: Arc<Requests>,
    runtime: tokio::runtime::Handle,
    tasks: TaskTracker,
    closing: CancellationToken,
}

impl Host {
    pub(crate) fn new(
        gate: Arc<Gate>,
        requests: Arc<Requests>,
        runtime: tokio::runtime::Handle,
        tasks: TaskTracker,
        closing: CancellationToken,
    ) -> Self {
        Self {
            inner: Arc::new(Inner {
                gate,
                requests,
                runtime,
                tasks,
                closing,
            }),
        }
    }

    /// Sends an event, which is published on the bus as `ovos.tools.event`.
    pub fn event(&self, kind: &str, data: Value) {
        self.send(&Event {
            kind: kind.to_string(),
            severity: Severity::Info,
            data: Some(data),
        });
    }

    /// Sends an event of any severity.
    pub fn send(&self, event: &Event) {
        self.inner.gate.event(event);
    }

    /// Reports a change of the backend's state, such as `connected` or `lost`, with its reason.
    pub fn backend(&self, state: &str, reason: &str) {
        self.event("backend", json!({"state": state, "reason": reason}));
    }

    /// Reports that the toolbox drives a simulator. A toolbox that does not report this counts as hardware, for which
    /// the service's policy may ask for a confirmation. A toolbox with several machines sends an event `backend` for
    /// each, with `unit`.
    pub fn simulator(&self, reason: &str) {
        let data = json!({"state": "simulated", "reason": reason, "simulated": true});
        self.event("backend", data);
    }

    /// Reports that the machine has stopped itself (its button was pressed): the service latches the toolbox.
    pub fn latched(&self, reason: &str) {
        self.send(&Event {
            kind: "latched".to_string(),
            severity: Severity::Error,
            data: Some(json!({"reason": reason})),
        });
    }

    /// Asks the service to read [`Toolbox::tools`](crate::Toolbox::tools) again.
    pub fn tools_changed(&self) {
        self.event("tools_changed", json!({}));
    }

    /// Sends a request to a bus topic of the manifest's `requests` and waits for the answer's data.
    ///
    /// # Errors
    /// The topic is not in the manifest, too many requests are in progress, no answer came within `timeout`
    /// (`TimeoutError`), or the instance closes.
    ///
    /// # Cancel safety
    /// When dropped, the answer is discarded; the request stays sent.
    pub async fn request(
        &self,
        topic: &str,
        data: impl Serialize,
        timeout: Duration,
    ) -> Result<Value, ToolError> {
        let json = serde_json::to_string(&data)?;
        let timeout_ms = u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX);
        let id = self.inner.gate.request(topic, &json, timeout_ms);
        if id == 0 {
            return Err(ToolError::busy(format!(
                "no request to {topic}: it is not listed in the manifest's `requests`, or too many requests are in progress"
            )));
        }
        let answer = self.inner.requests.expect(id);
        // The host enforces the timeout; this bound is for a host that does not.
        let bound = timeout.saturating_add(Duration::from_secs(1));
        tokio::select! {
            answer = answer => answer.unwrap_or_else(|_| Err(ToolError::cancelled())),
            () = tokio::time::sleep(bound) => {
                self.inner.requests.give_up(id);
                Err(ToolError::new(FailureKind::TimeoutError, format!("no answer from {topic} within {timeout_ms} ms")))
            }
            () = self.inner.closing.cancelled() => Err(ToolError::cancelled()),
        }
    }

    /// Runs a background task on the instance's runtime. The task is dropped at its next await when the instance
    /// closes.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let closing = self.inner.closing.clone();
        self.inner.tasks.spawn_on(
            async move {
                tokio::select! {
                    biased;
                    () = closing.cancelled() => {}
                    () = task => {}
                }
            },
            &self.inner.runtime,
        );
    }

    /// Resolves when the instance closes.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn closing(&self) {
        self.inner.closing.cancelled().await;
    }

    /// Whether the instance is closing, for blocking code that cannot await [`Host::closing`].
    #[must_use]
    pub fn is_closing(&self) -> bool {
        self.inner.closing.is_cancelled()
    }

    pub(crate) fn gate(&self) -> &Gate {
        &self.inner.gate
    }
}

type Answer = Result<Value, ToolError>;

/// The requests waiting for an answer.
#[derive(Default)]
pub(crate) struct Requests {
    state: Mutex<Pending>,
}

#[derive(Default)]
struct Pending {
    waiting: HashMap<u64, oneshot::Sender<Answer>>,
    /// Answers that came before `request` had returned their id, or after the request was given up.
    early: VecDeque<(u64, Answer)>,
}

/// Early answers are taken within microseconds; the rest belongs to requests that were given up.
const EARLY: usize = 64;

impl Requests {
    fn expect(&self, id: u64) -> oneshot::Receiver<Answer> {
        let (sender, receiver) = oneshot::channel();
        let mut state = self.state.lock();
        state.waiting.retain(|_, sender| !sender.is_closed());
        if let Some(index) = state.early.iter().position(|(early, _)| *early == id) {
            if let Some((_, answer)) = state.early.remove(index) {
                // The receiver is alive: this function holds it.
                let _ = sender.send(answer);
            }
        } else {
            state.waiting.insert(id, sender);
        }
        receiver
    }

    fn give_up(&self, id: u64) {
        self.state.lock().waiting.remove(&id);
    }

    pub(crate) fn answer(&self, id: u64, status: Status, json: &str) {
        let answer = if status == status::OK {
            serde_json::from_str(json).map_err(ToolError::from)
        } else {
            Err(match serde_json::from_str::<Failure>(json) {
                Ok(failure) => failure.into(),
                Err(_) => ToolError::msg("the request failed without a reason"),
            })
        };
        let mut state = self.state.lock();
        if let Some(sender) = state.waiting.remove(&id) {
            // Fails when the request was dropped, which discards the answer.
            let _ = sender.send(answer);
            return;
        }
        if state.early.len() == EARLY {
            state.early.pop_front();
        }
        state.early.push_back((id, answer));
    }
}
