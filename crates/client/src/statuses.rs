//! The last status that a client received. All its users share it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{Instant, timeout_at};

use crate::payload::StatusResponse;
use crate::received::Received;
use crate::routes::{Arrival, Route};
use crate::topic;

/// How long a service has to answer.
pub(crate) const WAIT: Duration = Duration::from_secs(5);

/// The last status that a client received, and the request under way.
#[derive(Default)]
pub(crate) struct Statuses(Mutex<StatusCache>);

#[derive(Default)]
struct StatusCache {
    /// The request under way outlives the call that sent it, so dropping a wait for its answer loses nothing.
    asked: Option<(Route, Instant)>,
    last: Option<StatusResult>,
}

/// The result of a status request.
#[derive(Clone)]
pub(crate) struct StatusResult {
    pub(crate) asked_at: Instant,
    received_at: Instant,
    pub(crate) answer: StatusAnswer,
}

#[derive(Clone)]
pub(crate) enum StatusAnswer {
    Status(Arc<StatusResponse>),
    /// The answer is not a status.
    Other,
    /// No answer in time.
    Nothing,
}

impl Statuses {
    /// Returns the result of a request whose answer was received after `after`. Sends a request if there is none. `None` if the
    /// bus is away.
    ///
    /// # Cancel safety
    /// Safe.
    pub(crate) async fn after(
        &self,
        after: Instant,
        send: impl FnOnce() -> Option<Route>,
    ) -> Option<StatusResult> {
        let mut latest = self.0.lock().await;
        if let Some(result) = latest.last.as_ref().filter(|result| result.received_at > after) {
            return Some(result.clone());
        }
        // A request that is older than this says nothing about a service that has started since.
        let waits = |asked: &(Route, Instant)| asked.1.elapsed() < WAIT;
        if !latest.asked.as_ref().is_some_and(waits) {
            latest.asked = Some((send()?, Instant::now()));
        }
        let (route, asked_at) = latest.asked.as_mut()?;
        let asked_at = *asked_at;
        let arrival = timeout_at(asked_at + WAIT, route.next()).await;
        latest.asked = None;
        let answer = match arrival {
            Ok(Arrival::Answer(data)) => {
                let status: Received<StatusResponse> = Received::new(topic::STATUS.name(), data);
                match status.good() {
                    // A status without a process id does not come from this service.
                    Ok(status) if status.service.pid > 0 => StatusAnswer::Status(Arc::new(status)),
                    Ok(_) | Err(_) => StatusAnswer::Other,
                }
            }
            Ok(Arrival::Progress(_) | Arrival::Lost(_)) => return None,
            Err(_) => StatusAnswer::Nothing,
        };
        let received_at = Instant::now();
        let result = StatusResult {
            asked_at,
            received_at,
            answer,
        };
        latest.last = Some(result.clone());
        Some(result)
    }
}
