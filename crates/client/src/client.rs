//! A client of the tools API: sends requests under topics and waits for their answers.

mod answers;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use bus::{BusClient, BusHandler, ClientConfig, Connection, Message};
use ovos_toolbox_wire::{Object, Severity};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use url::Url;

use crate::error::ClientError;
use crate::events::Events;
use crate::payload::{
    CancelRequest, CancelResponse, DoorHello, EmptyRequest, EventMessage, ExportRequest, ExportResponse,
    GetRequest, ListRequest, PlanRequest, PlanResponse, ReloadRequest, ReloadResponse, ResumeRequest,
    StatusRequest, StatusResponse, StopRequest, StopResponse, ToolEntry,
};
use crate::received::Received;
use crate::routes::{Arrival, IDENT, Route, Routes};
use crate::statuses::{StatusAnswer, StatusResult, Statuses};
use crate::topic::{self, Topic};

/// How long to wait for a reload, in which every plugin may first be loaded in a process of its own.
pub const RELOAD_WAIT: Duration = Duration::from_secs(60);

/// The longest wait: tokio's clock cannot represent an endless one.
pub(crate) const FOREVER: Duration = Duration::from_secs(30 * 24 * 3600);

/// The largest frame that is read or sent, in bytes.
const LARGEST: usize = 64 << 20;

/// How long [`Client::close`] waits for the bus to take the messages that were sent, before it closes the connection.
const CLOSE_WAIT: Duration = Duration::from_secs(3);

/// Where the bus is.
#[derive(Debug, Clone)]
pub struct Address {
    /// `ws://host:port/route`, or `wss`.
    pub url: Url,
    /// A PEM file of certificates to trust in addition to those of the machine.
    pub certificate: Option<PathBuf>,
}

/// A connection to the bus with a session of its own; clones share it. It connects again by itself when the bus comes back.
///
/// A request is sent at once or not at all, and fails with [`ClientError::Lost`] if the connection breaks before its
/// answer arrives. Each method states how long it waits. Several requests may be under way at the same time, also
/// under one topic.
#[derive(Clone)]
pub struct Client(Arc<Inner>, Arc<Object>);

struct Inner {
    bus: BusClient,
    routes: Arc<Routes>,
    statuses: Statuses,
    address: Address,
    source: String,
    session_id: String,
    /// Begins the ids of the requests.
    ident: String,
    wait: Duration,
    asked: AtomicU64,
    tasks: TaskTracker,
    shutdown: CancellationToken,
    _end: DropGuard,
}

/// What a client is made of beside its connection.
struct Parts {
    config: ClientConfig,
    handler: Arc<dyn BusHandler>,
    routes: Arc<Routes>,
    ident: String,
    tasks: TaskTracker,
    shutdown: CancellationToken,
    end: DropGuard,
}

impl Parts {
    fn new(address: &Address) -> Self {
        let config = ClientConfig {
            drop_above: LARGEST,
            message_limit: LARGEST,
            extra_ca: address.certificate.clone(),
            ..ClientConfig::new(address.url.clone())
        };
        let ident = uuid::Uuid::new_v4().to_string();
        let routes = Routes::new(ident.clone());
        let shutdown = CancellationToken::new();
        Self {
            config,
            handler: routes.clone(),
            routes,
            ident,
            tasks: TaskTracker::new(),
            end: shutdown.clone().drop_guard(),
            shutdown,
        }
    }

    fn client(
        self,
        bus: BusClient,
        session_id: String,
        address: Address,
        source: &str,
        wait: Duration,
    ) -> Client {
        let inner = Inner {
            bus,
            routes: self.routes,
            statuses: Statuses::default(),
            address,
            source: source.to_owned(),
            session_id,
            ident: self.ident,
            wait,
            asked: AtomicU64::new(0),
            tasks: self.tasks,
            shutdown: self.shutdown,
            _end: self.end,
        };
        Client(Arc::new(inner), Arc::default())
    }
}

impl Client {
    /// Connects within `wait`, which also bounds the methods that name no other bound. `source` is the sender of all
    /// requests.
    ///
    /// # Errors
    /// [`ClientError::NoBus`], [`ClientError::NoBusInTime`].
    ///
    /// # Cancel safety
    /// Safe: a dropped attempt leaves nothing behind.
    pub async fn connect(address: Address, source: &str, wait: Duration) -> Result<Self, ClientError> {
        let session_id = format!("ovos-tools-{}", uuid::Uuid::new_v4());
        Self::connect_in(session_id, address, source, wait).await
    }

    /// Connects as [`connect`](Self::connect) does, in a session that other connections may share. A call that was confirmed for
    /// one of them runs for any of them.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    ///
    /// # Cancel safety
    /// Safe: a dropped attempt leaves nothing behind.
    pub async fn connect_in(
        session_id: String,
        address: Address,
        source: &str,
        wait: Duration,
    ) -> Result<Self, ClientError> {
        let parts = Parts::new(&address);
        let Parts { config, handler, .. } = &parts;
        let connected = BusClient::connect(
            config.clone(),
            Arc::clone(handler),
            &parts.tasks,
            parts.shutdown.clone(),
        );
        let bus = match timeout_at(deadline(wait), connected).await {
            Ok(connected) => connected.map_err(ClientError::NoBus)?,
            Err(_) => {
                let url = address.url;
                return Err(ClientError::NoBusInTime { url, wait });
            }
        };
        Ok(parts.client(bus, session_id, address, source, wait))
    }

    /// Returns a clone that adds these keys to the context of each request, for example those for whom it asks.
    #[must_use]
    pub fn with_context(&self, keys: Object) -> Self {
        Self(self.0.clone(), Arc::new(keys))
    }

    /// Starts a client that connects in the background, as soon as there is a bus. Until then nothing can be sent:
    /// [`ClientError::NotSent`]. `source` and `wait` are those of [`connect`](Self::connect).
    #[must_use]
    pub fn start(address: Address, source: &str, wait: Duration) -> Self {
        let session_id = format!("ovos-tools-{}", uuid::Uuid::new_v4());
        let parts = Parts::new(&address);
        let Parts { config, handler, .. } = &parts;
        let bus = BusClient::start(
            config.clone(),
            Arc::clone(handler),
            &parts.tasks,
            parts.shutdown.clone(),
        );
        parts.client(bus, session_id, address, source, wait)
    }

    /// Waits until there is a connection to the bus.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn connected(&self) {
        // The sender lives as long as the connection's task; after that there is none.
        _ = self.0.bus.connection().wait_for(Connection::is_up).await;
    }

    /// The session of all requests of this client.
    #[must_use]
    pub fn session_id(&self) -> &str {
        &self.0.session_id
    }

    /// Sends a request under a topic and returns its answer without parsing it.
    ///
    /// # Errors
    /// [`ClientError::NotSent`], [`ClientError::TooLarge`]: nothing was sent. [`ClientError::NoAnswer`] after `wait`,
    /// [`ClientError::Lost`].
    ///
    /// # Cancel safety
    /// If dropped, the request may have been sent; its answer is dropped.
    pub async fn ask<Q: Serialize, A>(
        &self,
        topic: Topic<Q, A>,
        request: &Q,
        wait: Duration,
    ) -> Result<Received<A>, ClientError> {
        let end = deadline(wait);
        let topic = topic.name();
        let mut route = self.send(topic, request)?;
        loop {
            match timeout_at(end, route.next()).await {
                Ok(Arrival::Answer(data)) => return Ok(Received::new(topic, data)),
                Ok(Arrival::Progress(_)) => {}
                Ok(Arrival::Lost(cause)) => return Err(self.lost(cause)),
                Err(_) => return Err(self.no_answer(topic, wait)),
            }
        }
    }

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

    /// Follows the events of toolboxes, the ends of reloads and the state of the connection, from now on.
    #[must_use]
    pub fn events(&self) -> Events {
        Events(self.0.routes.follow())
    }

    /// Closes the connection for all clones, after the bus has taken all messages. Without this call the connection ends with the
    /// last clone, and messages sent just before may be lost.
    ///
    /// # Cancel safety
    /// If dropped, the connection still ends, with the last clone.
    pub async fn close(&self) {
        self.0.shutdown.cancel();
        self.0.tasks.close();
        if timeout(CLOSE_WAIT, self.0.tasks.wait()).await.is_err() {
            tracing::warn!(
                url = bus::shown(&self.0.address.url),
                "the connection to the bus did not end in time"
            );
        }
    }

    /// Sends a request, and returns the route of its answer and progress.
    pub(crate) fn send<Q: Serialize>(&self, topic: &'static str, request: &Q) -> Result<Route, ClientError> {
        let inner = &self.0;
        let data = write_data(topic, request)?;
        let number = inner.asked.fetch_add(1, Ordering::Relaxed);
        let ident = format!("{}/{number}", inner.ident);
        let mut message = Message::new(topic, data);
        let context = &mut message.context;
        context.extend((*self.1).clone());
        context.insert("source".to_owned(), Value::from(inner.source.as_str()));
        context.insert("session".to_owned(), json!({"session_id": inner.session_id}));
        context.insert(IDENT.to_owned(), Value::from(ident.as_str()));
        let text = message.to_text();
        if text.len() > LARGEST {
            return Err(ClientError::TooLarge {
                topic: topic.to_owned(),
                size: text.len(),
                limit: LARGEST,
            });
        }
        // The route is opened before the request is sent, so that it receives every answer.
        let route = inner.routes.open(ident, topic);
        if !inner.bus.notify(text) {
            let url = inner.address.url.clone();
            return Err(ClientError::NotSent { url });
        }
        Ok(route)
    }

    pub(crate) fn lost(&self, cause: String) -> ClientError {
        let url = self.0.address.url.clone();
        ClientError::Lost { url, cause }
    }

    pub(crate) fn no_answer(&self, topic: &'static str, wait: Duration) -> ClientError {
        let url = self.0.address.url.clone();
        ClientError::NoAnswer { url, topic, wait }
    }

    pub(crate) fn restarted(&self) -> ClientError {
        let url = self.0.address.url.clone();
        ClientError::Restarted { url }
    }

    pub(crate) fn no_service(&self, wait: Duration) -> ClientError {
        let url = self.0.address.url.clone();
        ClientError::NoService { url, wait }
    }
}

/// The end of a wait that begins now.
pub(crate) fn deadline(wait: Duration) -> Instant {
    Instant::now() + wait.min(FOREVER)
}

/// Returns the data of a message.
///
/// # Errors
/// [`ClientError::Unwritable`]: it is not a JSON object.
fn write_data(topic: &str, data: &impl Serialize) -> Result<Object, ClientError> {
    let unwritable = |cause| ClientError::Unwritable {
        topic: topic.to_owned(),
        cause,
    };
    match serde_json::to_value(data).map_err(unwritable)? {
        Value::Object(data) => Ok(data),
        _ => Err(unwritable(serde::ser::Error::custom("it is not an object"))),
    }
}
