//! A bus on a free port, and websocket clients of another implementation.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use ovos_tools_bus::{BusHandler, EmbeddedBus, Message, ServerConfig, Utf8Bytes};
use serde_json::Map;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message as Frame;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async_with_config};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

/// Far longer than any step here takes; a test that waits this long has failed.
pub(crate) const DEADLINE: Duration = Duration::from_secs(20);

pub(crate) const GREETING: &str =
    r#"{"type": "connected", "data": {}, "context": {"session": {"session_id": "default"}}}"#;

/// Awaits a future; fails the test after `DEADLINE`.
pub(crate) async fn soon<F: Future>(what: &str, future: F) -> F::Output {
    timeout(DEADLINE, future)
        .await
        .unwrap_or_else(|_| panic!("{what}: not within {DEADLINE:?}"))
}

/// An embedded bus that shuts down when this value is dropped.
pub(crate) struct Bus {
    pub(crate) url: String,
    pub(crate) address: SocketAddr,
    tasks: TaskTracker,
    shutdown: CancellationToken,
    _guard: DropGuard,
}

impl Bus {
    pub(crate) async fn start(config: ServerConfig) -> Bus {
        let bus = EmbeddedBus::bind(config).await.unwrap();
        let shutdown = CancellationToken::new();
        let (url, address) = (bus.url(), bus.local_addr());
        let tasks = TaskTracker::new();
        tasks.spawn(bus.run(shutdown.clone()));
        Bus {
            url,
            address,
            tasks,
            _guard: shutdown.clone().drop_guard(),
            shutdown,
        }
    }

    /// Shuts the bus down and waits for its tasks.
    pub(crate) async fn stop(self) {
        self.shutdown.cancel();
        self.tasks.close();
        soon("the bus ends", self.tasks.wait()).await;
    }
}

pub(crate) fn any_port() -> ServerConfig {
    ServerConfig {
        port: 0,
        ..ServerConfig::default()
    }
}

/// A client from tokio-tungstenite.
pub(crate) struct Peer(pub(crate) WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Peer {
    /// Connects and reads the greeting.
    pub(crate) async fn join(url: &str) -> Peer {
        let config = WebSocketConfig::default().max_frame_size(Some(64 << 20));
        let (stream, _) = soon("connect", connect_async_with_config(url, Some(config), true))
            .await
            .unwrap();
        let mut peer = Peer(stream);
        assert_eq!(peer.text().await, GREETING);
        peer
    }

    pub(crate) async fn send(&mut self, frame: impl Into<Frame>) {
        soon("send", self.0.send(frame.into())).await.unwrap();
    }

    /// The next text frame; anything else fails the test.
    pub(crate) async fn text(&mut self) -> String {
        loop {
            match soon("a text frame", self.0.next()).await {
                Some(Ok(Frame::Text(text))) => return text.to_string(),
                Some(Ok(Frame::Pong(_) | Frame::Ping(_))) => {}
                other => panic!("expected a text frame, got {other:?}"),
            }
        }
    }

    /// Reads until the other end closes; returns its close code.
    pub(crate) async fn closed(&mut self) -> Option<u16> {
        loop {
            match soon("the end of the connection", self.0.next()).await {
                Some(Ok(Frame::Close(close))) => return close.map(|close| close.code.into()),
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return None,
            }
        }
    }
}

/// An event that a bus client reported to its handler.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    Frame(String),
    Connected,
    Disconnected,
}

pub(crate) struct Recorder(mpsc::UnboundedSender<Heard>);

impl Recorder {
    pub(crate) fn new() -> (Arc<Recorder>, Hearing) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Arc::new(Recorder(sender)), Hearing(receiver))
    }
}

impl BusHandler for Recorder {
    fn frame(&self, text: Utf8Bytes) {
        let _ = self.0.send(Heard::Frame(text.to_string()));
    }

    fn connected(&self) {
        let _ = self.0.send(Heard::Connected);
    }

    fn disconnected(&self, _reason: &str) {
        let _ = self.0.send(Heard::Disconnected);
    }

    fn instead(&self, answer: &str, reason: &str) -> Option<String> {
        let mut message = Message::parse(answer).ok()?;
        message.data = Map::from_iter([("error".to_owned(), reason.into())]);
        Some(message.to_text())
    }
}

pub(crate) struct Hearing(mpsc::UnboundedReceiver<Heard>);

impl Hearing {
    pub(crate) async fn next(&mut self) -> Heard {
        soon("something from the bus", self.0.recv()).await.unwrap()
    }

    /// The next frame other than a greeting.
    pub(crate) async fn frame(&mut self) -> String {
        loop {
            match self.next().await {
                Heard::Frame(text) if text == GREETING => {}
                Heard::Frame(text) => return text,
                other => panic!("expected a frame, got {other:?}"),
            }
        }
    }

    /// Skips events until `wanted` arrives.
    pub(crate) async fn until(&mut self, wanted: Heard) {
        while self.next().await != wanted {}
    }
}
