//! A connection to the bus, and how one request goes over it.
//!
//! Read [`Client`].

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bus::{BusClient, BusHandler, ClientConfig, Connection, Message};
use ovos_toolbox_wire::Object;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use url::Url;

use crate::error::ClientError;
use crate::events::Events;
use crate::received::Received;
use crate::routes::{Arrival, IDENT, Route, Routes};
use crate::statuses::Statuses;
use crate::topic::Topic;

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
pub struct Client(pub(super) Arc<Inner>, Arc<Object>);

pub(super) struct Inner {
    pub(super) bus: BusClient,
    pub(super) routes: Arc<Routes>,
    pub(super) statuses: Statuses,
    pub(super) address: Address,
    pub(super) source: String,
    pub(super) session_id: String,
    /// Begins the ids of the requests.
    pub(super) ident: String,
    pub(super) wait: Duration,
    pub(super) asked: AtomicU64,
    pub(super) tasks: TaskTracker,
    pub(super) shutdown: CancellationToken,
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
pub(super) fn write_data(topic: &str, data: &impl Serialize) -> Result<Object, ClientError> {
    let unwritable = |cause| ClientError::Unwritable {
        topic: topic.to_owned(),
        cause,
    };
    match serde_json::to_value(data).map_err(unwritable)? {
        Value::Object(data) => Ok(data),
        _ => Err(unwritable(serde::ser::Error::custom("it is not an object"))),
    }
}
