//! The asking side of the API: a method for each topic.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use ovos_toolbox_wire::Severity;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::Instant;

use super::connection::Client;
use crate::error::ClientError;
use crate::payload::{
    CancelRequest, CancelResponse, DoorHello, EmptyRequest, EventMessage, ExportRequest, ExportResponse,
    GetRequest, ListRequest, PlanRequest, PlanResponse, ReloadRequest, ReloadResponse, ResumeRequest,
    StatusRequest, StatusResponse, StopRequest, StopResponse, ToolEntry,
};
use crate::statuses::{StatusAnswer, StatusResult};
use crate::topic::{self, Topic};

/// How long to wait for a reload, in which every plugin may first be loaded in a process of its own.
pub const RELOAD_WAIT: Duration = Duration::from_secs(60);

impl Client {
    /// Sends a request under a topic, and returns its answer if that is no error.
    async fn ask_good<Q: Serialize, A: DeserializeOwned>(
        &self,
        topic: Topic<Q, A>,
        request: &Q,
    ) -> Result<A, ClientError> {
        self.ask(topic, request, self.0.wait).await?.good()
    }

    /// The tools, however many there are: they are asked for in pages, as in [`ask_in_pages`](Self::ask_in_pages).
    ///
    /// # Errors
    /// As [`ask`](Self::ask), [`ClientError::Refused`], [`ClientError::Unreadable`].
    ///
    /// # Cancel safety
    /// Safe: it changes nothing.
    pub async fn list(&self, request: &ListRequest) -> Result<Vec<ToolEntry>, ClientError> {
        let answer = self.ask_in_pages(topic::LIST, request, self.0.wait).await?;
        Ok(answer.good()?.tools)
    }

    /// One tool, with its `meta`.
    ///
    /// # Errors
    /// As [`list`](Self::list).
    ///
    /// # Cancel safety
    /// Safe: it changes nothing.
    pub async fn get(&self, name: &str) -> Result<ToolEntry, ClientError> {
        let request = GetRequest {
            name: name.to_owned(),
            detail: true,
            ..GetRequest::default()
        };
        self.ask_good(topic::GET, &request).await
    }

    /// The plan of a call that is not run.
    ///
    /// # Errors
    /// As [`list`](Self::list).
    ///
    /// # Cancel safety
    /// Safe: it changes nothing.
    pub async fn plan(&self, request: &PlanRequest) -> Result<PlanResponse, ClientError> {
        self.ask_good(topic::PLAN, request).await
    }

    /// The tools in the format of a model, asked for in pages as in [`ask_in_pages`](Self::ask_in_pages).
    ///
    /// # Errors
    /// As [`list`](Self::list).
    ///
    /// # Cancel safety
    /// Safe: it changes nothing.
    pub async fn export(&self, request: &ExportRequest) -> Result<ExportResponse, ClientError> {
        self.ask_in_pages(topic::EXPORT, request, self.0.wait)
            .await?
            .good()
    }

    /// The status of the service.
    ///
    /// # Errors
    /// As [`list`](Self::list).
    ///
    /// # Cancel safety
    /// Safe: it changes nothing.
    pub async fn status(&self) -> Result<StatusResponse, ClientError> {
        self.ask_good(topic::STATUS, &StatusRequest::default()).await
    }

    /// What the service does, with the guides of its toolboxes.
    ///
    /// # Errors
    /// As [`list`](Self::list).
    ///
    /// # Cancel safety
    /// Safe: it changes nothing.
    pub async fn guides(&self) -> Result<StatusResponse, ClientError> {
        self.ask_good(topic::STATUS, &StatusRequest { guides: true })
            .await
    }

    /// Whether every toolbox that can be loaded is loaded.
    ///
    /// # Errors
    /// The service does not answer.
    ///
    /// # Cancel safety
    /// Safe: it changes nothing.
    pub async fn all_loaded(&self) -> Result<bool, ClientError> {
        Ok(self.ask_good(topic::ALL_LOADED, &EmptyRequest {}).await?.status)
    }

    /// Returns a status that is at most `age` old. All callers of this method and the calls under way share one status; if it is
    /// too old, the service is asked. `None` if the service does not answer.
    ///
    /// # Cancel safety
    /// Safe: it changes nothing.
    pub async fn recent_status(&self, age: Duration) -> Option<Arc<StatusResponse>> {
        let now = Instant::now();
        match self
            .status_after(now.checked_sub(age).unwrap_or(now))
            .await?
            .answer
        {
            StatusAnswer::Status(status) => Some(status),
            StatusAnswer::Other | StatusAnswer::Nothing => None,
        }
    }

    /// Returns the result of a status request whose answer was received after `after`.
    pub(crate) async fn status_after(&self, after: Instant) -> Option<StatusResult> {
        let ask = || self.send(topic::STATUS.name(), &EmptyRequest {}).ok();
        self.0.statuses.after(after, ask).await
    }

    /// Loads added and changed plugins, drops removed ones, and returns what changed. Waits up to [`RELOAD_WAIT`].
    ///
    /// # Errors
    /// As [`list`](Self::list).
    ///
    /// # Cancel safety
    /// If dropped, the reload may continue.
    pub async fn reload(&self) -> Result<ReloadResponse, ClientError> {
        let request = ReloadRequest { detail: true };
        self.ask(topic::RELOAD, &request, RELOAD_WAIT).await?.good()
    }

    /// Cancels a call that is under way. An answer with `cancelled: false` is no error: it tells why nothing was
    /// cancelled.
    ///
    /// # Errors
    /// As [`ask`](Self::ask), [`ClientError::Unreadable`].
    ///
    /// # Cancel safety
    /// If dropped, the cancel may have been sent.
    pub async fn cancel(&self, call_id: &str) -> Result<CancelResponse, ClientError> {
        let call_id = call_id.to_owned();
        self.ask(topic::CANCEL, &CancelRequest { call_id }, self.0.wait)
            .await?
            .read()
    }

    /// Cancels a call without waiting for an answer. [`close`](Self::close) returns only after the cancel was sent.
    ///
    /// # Errors
    /// [`ClientError::NotSent`]: nothing was sent.
    pub fn cancel_unheard(&self, call_id: &str) -> Result<(), ClientError> {
        let call_id = call_id.to_owned();
        self.send(topic::CANCEL.name(), &CancelRequest { call_id })
            .map(drop)
    }

    /// Emergency stop of a toolbox, or of everything. The stop is confirmed only if every entry of the answer is
    /// `ok`.
    ///
    /// # Errors
    /// As [`list`](Self::list). After any of these errors the stop may still have happened.
    ///
    /// # Cancel safety
    /// If dropped, the stop may have been sent.
    pub async fn stop(&self, toolbox_id: Option<&str>) -> Result<StopResponse, ClientError> {
        let toolbox_id = toolbox_id.map(str::to_owned);
        self.ask_good(topic::STOP, &StopRequest { toolbox_id }).await
    }

    /// Ends the calls of this client's session, as a user does by saying "stop". It latches nothing and has no answer: the answers
    /// of the calls tell that they ended.
    ///
    /// # Errors
    /// [`ClientError::NotSent`]: nothing was sent.
    pub fn user_stop(&self) -> Result<(), ClientError> {
        self.send(topic::USER_STOP, &EmptyRequest {}).map(drop)
    }

    /// Tells the service that this client is a door. From now on the service ends the calls of this client if something moves for
    /// it and it does not call [`beat`](Self::beat).
    ///
    /// # Errors
    /// [`ClientError::NotSent`]: nothing was sent.
    pub fn hello(&self, name: &str) -> Result<(), ClientError> {
        let name = name.to_owned();
        self.send(topic::DOOR_HELLO, &DoorHello { name }).map(drop)
    }

    /// Publishes an `ovos.tools.event` of this door. It is about no toolbox, so `service` stands in the place of one.
    ///
    /// # Errors
    /// [`ClientError::NotSent`]: nothing was sent.
    pub fn event(&self, kind: &str, severity: Severity, data: Value) -> Result<(), ClientError> {
        let since = SystemTime::UNIX_EPOCH.elapsed();
        let event = EventMessage {
            toolbox_id: "service".to_owned(),
            kind: kind.to_owned(),
            severity,
            data: Some(data),
            ts: since.map_or(0.0, |since| since.as_secs_f64()),
        };
        self.send(topic::EVENT, &event).map(drop)
    }

    /// Tells the service that this door still runs. Call it before a call that moves something, and every 250 ms while the call
    /// runs.
    ///
    /// # Errors
    /// [`ClientError::NotSent`]: nothing was sent.
    pub fn beat(&self) -> Result<(), ClientError> {
        self.send(topic::DOOR_BEAT, &EmptyRequest {}).map(drop)
    }

    /// Lifts an emergency stop: that of a toolbox, or with `all` that of everything that the stop holds. For operators, not for
    /// models.
    ///
    /// # Errors
    /// As [`list`](Self::list).
    ///
    /// # Cancel safety
    /// If dropped, the resume may have been sent.
    pub async fn resume(&self, toolbox_id: &str, stop_id: &str) -> Result<StopResponse, ClientError> {
        let request = ResumeRequest {
            toolbox_id: toolbox_id.to_owned(),
            stop_id: stop_id.to_owned(),
        };
        self.ask_good(topic::RESUME, &request).await
    }
}
