//! One websocket to a speech service. Dialling has a time limit; frames are read one by one, and written by a task of their own.

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{self, Message, Utf8Bytes};
use tokio_tungstenite::{Connector, MaybeTlsStream, WebSocketStream, connect_async_tls_with_config};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::dialect::Opening;

/// How long an attempt to connect may take.
const DIAL_WAIT: Duration = Duration::from_secs(10);

/// How long writing one frame may take. If the service reads nothing for longer, the socket is lost.
const WRITE_WAIT: Duration = Duration::from_secs(2);

/// How long writing the last frames may take when the socket is closed.
const CLOSE_WAIT: Duration = Duration::from_secs(1);

/// The largest message, in bytes; a larger one ends the connection. Messages with audio are below a megabyte.
const LARGEST: usize = 16 << 20;

/// How many frames may wait to be written: an answer to each call that may run, and the list of tools.
const WAITING: usize = 256;

type Stream = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// An open websocket.
pub(crate) struct Socket {
    reading: SplitStream<Stream>,
    waiting: mpsc::Sender<Message>,
    /// Cancelled when a frame could not be written.
    broken: CancellationToken,
    writer: AbortOnDropHandle<()>,
}

/// What arrived on the socket.
#[derive(Debug)]
pub(crate) enum SocketEvent {
    /// A text message.
    Text(Utf8Bytes),
    /// Another message, which shows that the service is alive.
    Sign,
    /// The service ended the conversation.
    Closed(String),
    /// The connection broke, or nothing can be written.
    Lost(String),
}

/// Why a socket could not be opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DialError {
    /// Another attempt does not help.
    #[error("{0}")]
    Refused(String),
    /// Another attempt may help.
    #[error("{0}")]
    Failed(String),
}

/// Returns the TLS configuration, which trusts the certificates of this machine.
pub(crate) fn trust() -> Result<Arc<ClientConfig>, String> {
    let mut roots = RootCertStore::empty();
    let native = rustls_native_certs::load_native_certs();
    for error in &native.errors {
        tracing::warn!(%error, "a certificate of this machine cannot be read");
    }
    roots.add_parsable_certificates(native.certs);
    // Chosen explicitly: the process-wide default may be unset, or set by another library.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// Opens a socket.
///
/// # Errors
/// The text of the error has no header and no key.
///
/// # Cancel safety
/// Safe: a dropped attempt leaves nothing behind.
pub(crate) async fn dial(opening: &Opening, trust: Arc<ClientConfig>) -> Result<Socket, DialError> {
    let host = opening.url.host_str().unwrap_or_default();
    let mut request = opening
        .url
        .as_str()
        .into_client_request()
        .map_err(|error| DialError::Refused(format!("{}: {error}", opening.url)))?;
    for (name, key) in &opening.headers {
        let mut value = HeaderValue::from_str(&key.0).map_err(|_| {
            DialError::Refused(format!(
                "the key for {host} has characters that a key cannot have"
            ))
        })?;
        value.set_sensitive(true);
        request.headers_mut().insert(*name, value);
    }
    let config = WebSocketConfig::default()
        .max_message_size(Some(LARGEST))
        .max_frame_size(Some(LARGEST));
    let connecting =
        connect_async_tls_with_config(request, Some(config), true, Some(Connector::Rustls(trust)));
    match timeout(DIAL_WAIT, connecting).await {
        Ok(Ok((stream, _))) => Ok(Socket::new(stream)),
        Ok(Err(tungstenite::Error::Http(answer))) => {
            let status = answer.status();
            let text = format!("{host} answers {status}");
            Err(match status.as_u16() {
                408 | 429 | 500.. => DialError::Failed(text),
                401 | 403 => DialError::Refused(format!("{text}: is the key right?")),
                404 => DialError::Refused(format!("{text}: there is no such conversation, or it is over")),
                _ => DialError::Refused(text),
            })
        }
        Ok(Err(error)) => Err(DialError::Failed(format!("{host}: {error}"))),
        Err(_) => Err(DialError::Failed(format!(
            "{host} does not answer within {DIAL_WAIT:?}"
        ))),
    }
}

impl Socket {
    fn new(stream: Stream) -> Self {
        let (writing, reading) = stream.split();
        let (waiting, to_write) = mpsc::channel(WAITING);
        let broken = CancellationToken::new();
        let writer = tokio::spawn(write(writing, to_write, broken.clone()));
        Self {
            reading,
            waiting,
            broken,
            writer: AbortOnDropHandle::new(writer),
        }
    }

    /// Waits for the next message.
    ///
    /// # Cancel safety
    /// Safe: nothing is lost.
    pub(crate) async fn next(&mut self) -> SocketEvent {
        let message = tokio::select! {
            message = self.reading.next() => message,
            () = self.broken.cancelled() => return SocketEvent::Lost("it no longer accepts frames".to_owned()),
        };
        match message {
            Some(Ok(Message::Text(text))) => SocketEvent::Text(text),
            Some(Ok(Message::Close(frame))) => {
                let close = frame.map(|frame| (frame.code, frame.reason.to_string()));
                match close {
                    Some((
                        code @ (CloseCode::Away | CloseCode::Error | CloseCode::Restart | CloseCode::Again),
                        reason,
                    )) => SocketEvent::Lost(format!("it closed the connection: {code} {reason}")),
                    Some((code, reason)) => SocketEvent::Closed(format!("{code} {reason}")),
                    None => SocketEvent::Closed("without a reason".to_owned()),
                }
            }
            Some(Ok(_)) => SocketEvent::Sign,
            Some(Err(error)) => SocketEvent::Lost(error.to_string()),
            None => SocketEvent::Lost("the connection ended".to_owned()),
        }
    }

    /// Queues a text to be written. Returns `false` if too many frames wait, or nothing can be written.
    #[must_use]
    pub(crate) fn send_text(&self, text: String) -> bool {
        self.waiting.try_send(Message::text(text)).is_ok()
    }

    /// Sends a ping.
    pub(crate) fn ping(&self) {
        // If the queue is full, the writer notices that the service reads nothing.
        _ = self.waiting.try_send(Message::Ping(Vec::new().into()));
    }

    /// Writes the queued frames and closes the socket.
    ///
    /// # Cancel safety
    /// If dropped, the socket is closed at once.
    pub(crate) async fn close(self) {
        let Self { waiting, writer, .. } = self;
        _ = waiting.try_send(Message::Close(None));
        drop(waiting);
        _ = timeout(CLOSE_WAIT, writer).await;
    }
}

async fn write(
    mut writing: SplitSink<Stream, Message>,
    mut to_write: mpsc::Receiver<Message>,
    broken: CancellationToken,
) {
    while let Some(message) = to_write.recv().await {
        match timeout(WRITE_WAIT, writing.send(message)).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) | Err(_) => return broken.cancel(),
        }
    }
}
