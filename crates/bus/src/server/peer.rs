//! One client of the embedded bus: a reader that relays its frames, and a writer task that sends its queue.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tungstenite::Utf8Bytes;

use super::gate::{self, Verdict};
use super::hub::{Batch, Hub, Outbox};
use crate::websocket::frame::{self, Control, Data, End, Event, FrameError, FrameReader, OpCode};
use crate::websocket::handshake;
use crate::websocket::socket::QuickAck;

/// The first frame sent to a new client, byte for byte the same as from the Python bus.
const GREETING: &str =
    r#"{"type": "connected", "data": {}, "context": {"session": {"session_id": "default"}}}"#;

/// Longest time for the opening handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// How long a client has to read the rest of its queue after the close frame is queued.
const CLOSE_WAIT: Duration = Duration::from_millis(500);

/// Queued batches are joined into writes of about this many bytes.
const GATHER: usize = 256 * 1024;

/// Serves one client until it disconnects, its queue overflows, or the bus shuts down.
pub(super) async fn serve(
    hub: Arc<Hub>,
    socket: TcpStream,
    from: SocketAddr,
    shutdown: CancellationToken,
    tracker: TaskTracker,
) {
    let mut stream = QuickAck::new(socket);
    let read = tokio::select! {
        () = shutdown.cancelled() => return,
        read = timeout(HANDSHAKE, handshake::answer(&mut stream, &hub.config().route)) => match read {
            Ok(Ok(read)) => read,
            Ok(Err(error)) => return tracing::debug!(client = %from, %error, "no websocket"),
            Err(_) => return tracing::debug!(client = %from, "no handshake within {HANDSHAKE:?}"),
        },
    };
    let (reading, writing) = tokio::io::split(stream);
    let outbox = Arc::new(Outbox::new(from, CancellationToken::new()));
    let mut greeting = Vec::new();
    frame::encode(&mut greeting, OpCode::Data(Data::Text), GREETING.as_bytes(), None);
    // Queued before the client joins, so that the greeting is its first frame.
    outbox.push(
        &Batch {
            bytes: greeting.into(),
            messages: 1,
        },
        hub.config(),
    );
    hub.join(Arc::clone(&outbox));
    tracing::debug!(client = %from, "joined the bus");

    let writer = tracker.spawn(write(writing, Arc::clone(&outbox)));
    let mut reader = Reader {
        frames: FrameReader::new(End::Server, hub.config().max_message, read),
        hub: &hub,
        outbox: &outbox,
        from,
    };
    let last = tokio::select! {
        () = outbox.gone.cancelled() => None,
        () = shutdown.cancelled() => Some(close(1001, "the bus ends")),
        last = reader.run(reading) => last,
    };
    hub.leave(&outbox);
    match last {
        Some(last) => outbox.close(last),
        None => outbox.gone.cancel(),
    }
    if timeout(CLOSE_WAIT, writer).await.is_err() {
        outbox.gone.cancel();
    }
    tracing::debug!(client = %from, "left the bus");
}

struct Reader<'a> {
    frames: FrameReader,
    hub: &'a Hub,
    outbox: &'a Outbox,
    from: SocketAddr,
}

impl Reader<'_> {
    /// Relays until the client disconnects. Returns the close frame to send, or none if the connection is already
    /// gone.
    async fn run(&mut self, mut stream: ReadHalf<QuickAck>) -> Option<Vec<u8>> {
        loop {
            let last = self.relay();
            if last.is_some() {
                return last;
            }
            match stream.read_buf(self.frames.space()).await {
                Ok(0) => return None,
                Ok(_) => {}
                Err(error) => {
                    tracing::debug!(client = %self.from, %error, "reading failed");
                    return None;
                }
            }
        }
    }

    /// Relays all complete messages in the buffer as one batch. Returns the close frame if the connection has to end.
    fn relay(&mut self) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        let mut messages = 0;
        let last = loop {
            let text = match self.frames.next() {
                Ok(None) => break None,
                Ok(Some(Event::Text(text))) => text,
                Ok(Some(Event::Binary(data))) => match Utf8Bytes::try_from(data) {
                    Ok(text) => text,
                    Err(error) => {
                        tracing::warn!(client = %self.from, %error, "dropped a binary frame that is no text");
                        continue;
                    }
                },
                Ok(Some(Event::Ping(payload))) => {
                    self.pong(&payload);
                    continue;
                }
                Ok(Some(Event::Pong)) => continue,
                Ok(Some(Event::Close(code))) => break Some(close(code.unwrap_or(1000), "")),
                Ok(Some(Event::NotUtf8(_))) => {
                    tracing::warn!(client = %self.from, "disconnected a client that sent text that is not UTF-8");
                    break Some(close(1007, "not UTF-8"));
                }
                Err(error) => {
                    tracing::warn!(client = %self.from, %error, "disconnected a client");
                    let code = if matches!(error, FrameError::TooBig { .. }) {
                        1009
                    } else {
                        1002
                    };
                    break Some(close(code, if code == 1009 { "message too big" } else { "" }));
                }
            };
            match gate::judge(&text) {
                Verdict::Relay => frame::encode(&mut out, OpCode::Data(Data::Text), text.as_ref(), None),
                Verdict::Reject(notice) => {
                    tracing::warn!(client = %self.from, "dropped a message with a malformed session");
                    frame::encode(&mut out, OpCode::Data(Data::Text), notice.as_bytes(), None);
                }
                Verdict::TooDeep(depth) => {
                    tracing::warn!(client = %self.from, depth, "dropped a message that is nested too deep");
                    continue;
                }
            }
            messages += 1;
        };
        if messages > 0 {
            self.hub.relay(&Batch {
                bytes: out.into(),
                messages,
            });
        }
        last
    }

    fn pong(&self, payload: &[u8]) {
        let mut out = Vec::new();
        frame::encode(&mut out, OpCode::Control(Control::Pong), payload, None);
        // A client that does not read its pongs fills its queue and is disconnected like any slow client.
        if !self.outbox.push(
            &Batch {
                bytes: out.into(),
                messages: 1,
            },
            self.hub.config(),
        ) {
            self.outbox.gone.cancel();
        }
    }
}

fn close(code: u16, reason: &str) -> Vec<u8> {
    let mut out = Vec::new();
    frame::encode_close(&mut out, code, reason, None);
    out
}

/// Sends queued batches until the outbox is closed or the client is gone.
async fn write(mut stream: WriteHalf<QuickAck>, outbox: Arc<Outbox>) {
    let outcome = tokio::select! {
        () = outbox.gone.cancelled() => Ok(()),
        outcome = write_all(&mut stream, &outbox) => outcome,
    };
    if outcome.is_err() {
        outbox.gone.cancel();
    }
}

async fn write_all(stream: &mut WriteHalf<QuickAck>, outbox: &Outbox) -> io::Result<()> {
    let mut batches = Vec::new();
    let mut out = BytesMut::new();
    while outbox.take(&mut batches).await {
        if let [batch] = batches.as_slice() {
            stream.write_all(batch).await?;
        } else {
            for batch in &batches {
                out.extend_from_slice(batch);
                if out.len() >= GATHER {
                    stream.write_all(&out).await?;
                    out.clear();
                }
            }
            stream.write_all(&out).await?;
            out.clear();
        }
        batches.clear();
    }
    stream.shutdown().await
}
