//! One client of the embedded bus: a reader that relays its frames, and a writer task that sends its queue.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tungstenite::Utf8Bytes;

use super::gate::{self, Verdict};
use super::hub::{Batch, Hub, Order, Outbox};
use super::partial_messages::PartialMessages;
use super::seats::Seat;
use crate::in_process_link::InProcessLink;
use crate::websocket::frame::{self, Control, Data, End, Event, FrameError, FrameReader, OpCode};
use crate::websocket::handshake::{self, HandshakeError};
use crate::websocket::socket::{Duplex, QuickAck};

/// The first frame sent to a new client, byte for byte the same as from the Python bus.
const GREETING: &str =
    r#"{"type": "connected", "data": {}, "context": {"session": {"session_id": "default"}}}"#;

/// Longest time for the opening handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// How long a client has to read the rest of its queue after the close frame is queued.
const CLOSE_WAIT: Duration = Duration::from_millis(500);

/// Messages of more bytes than this take long to look at.
const LONG: usize = 64 << 10;

/// Takes the handshake of a client, and serves it until it disconnects, its queue overflows, its seat goes to another, or the
/// bus shuts down.
pub(super) async fn serve(
    hub: Arc<Hub>,
    socket: TcpStream,
    from: SocketAddr,
    seat: Seat,
    shutdown: CancellationToken,
    tracker: TaskTracker,
) {
    let mut stream = QuickAck::new(socket);
    let config = hub.config();
    let rest = tokio::select! {
        () = shutdown.cancelled() => return,
        () = seat.eviction().cancelled() => return,
        read = timeout(HANDSHAKE, handshake::answer(&mut stream, &config.route, hub.origin_policy())) => match read {
            Ok(Ok(rest)) => rest,
            Ok(Err(HandshakeError::Foreign(foreign))) => return hub.refused(from, &foreign),
            Ok(Err(error)) => return tracing::debug!(client = %from, %error, "no websocket"),
            Err(_) => return tracing::debug!(client = %from, "no handshake within {HANDSHAKE:?}"),
        },
    };
    seat.joined();
    attend(hub, stream, from, Some(seat), rest, shutdown, tracker).await;
}

/// Relays what a client sends, and sends what is relayed to it, until it is gone. The client of this process has no seat.
/// `rest` was received behind the handshake.
pub(super) async fn attend(
    hub: Arc<Hub>,
    stream: impl Duplex + 'static,
    from: SocketAddr,
    seat: Option<Seat>,
    rest: BytesMut,
    shutdown: CancellationToken,
    tracker: TaskTracker,
) {
    // The seat is free when the socket is closed, so it is dropped after everything that follows.
    let seat = &seat;
    let gone = seat
        .as_ref()
        .map(|seat| seat.eviction().clone())
        .unwrap_or_default();
    let (reading, writing) = tokio::io::split(stream);
    let outbox = Arc::new(Outbox::new(from, gone));
    let mut greeting = Vec::new();
    frame::encode(&mut greeting, OpCode::Data(Data::Text), GREETING.as_bytes(), None);
    // Queued before the client joins, so that the greeting is its first frame.
    outbox.push(&Batch::single(greeting), Order::Last, hub.config());
    hub.join(Arc::clone(&outbox));
    tracing::debug!(client = %from, "joined the bus");

    let writing = write(writing, Arc::clone(&outbox));
    let writer = match &hub.config().workers {
        Some(workers) => tracker.spawn_on(writing, workers),
        None => tracker.spawn(writing),
    };
    let mut reader = Reader {
        frames: FrameReader::new(End::Server, hub.config().max_message, rest),
        hub: &hub,
        outbox: &outbox,
        from,
        seat: seat.as_ref(),
        began: None,
        counts: false,
    };
    let last = tokio::select! {
        () = outbox.gone.cancelled() => None,
        () = shutdown.cancelled() => Some(close(1001, "the bus is shutting down")),
        last = reader.run(reading) => last,
    };
    hub.leave(&outbox);
    if let Some(seat) = seat {
        hub.unfinished().forget(seat.number());
    }
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
    /// `None` for the client of this process.
    seat: Option<&'a Seat>,
    /// When the message began that is not finished yet.
    began: Option<Instant>,
    /// Whether that message counts among the unfinished ones of all clients.
    counts: bool,
}

impl Reader<'_> {
    /// Relays until the client disconnects. Returns the close frame to send, or none if the connection is already
    /// gone.
    async fn run(&mut self, mut stream: impl AsyncRead + Unpin) -> Option<Vec<u8>> {
        loop {
            let last = self.relay().await;
            if last.is_some() {
                return last;
            }
            self.note_unfinished();
            let overdue = self.began.map(|began| began + self.hub.config().frame_wait);
            let read = tokio::select! {
                read = stream.read_buf(self.frames.space()) => read,
                () = sleep_until(overdue.unwrap_or_else(Instant::now)), if overdue.is_some() => {
                    tracing::warn!(client = %self.from, "disconnected a client that did not finish a message");
                    return Some(close(1008, "message not finished in time"));
                }
            };
            match read {
                Ok(0) => return None,
                Ok(_) => {}
                Err(error) => {
                    tracing::debug!(client = %self.from, %error, "reading failed");
                    return None;
                }
            }
        }
    }

    /// Bounds an unfinished message in time and, with those of other clients, in size. The client of this process begins
    /// no message that it does not finish.
    fn note_unfinished(&mut self) {
        let Some(seat) = self.seat else { return };
        let bytes = self.frames.unfinished();
        match (bytes, self.began) {
            (0, _) => self.began = None,
            (_, None) => self.began = Some(Instant::now()),
            (_, Some(_)) => {}
        }
        let all: &PartialMessages = self.hub.unfinished();
        all.set(
            (seat.number(), self.from),
            bytes,
            &mut self.counts,
            seat.eviction(),
        );
    }

    /// Whether a message goes before what waits for the clients.
    fn overtakes(&self, own: Option<&InProcessLink>, text: &Utf8Bytes) -> bool {
        own.is_some_and(|own| {
            if self.seat.is_none() {
                own.is_urgent_answer(text)
            } else {
                own.is_urgent_request(text)
            }
        })
    }

    /// Decides about a message; about a long one beside the task that reads.
    async fn judge(&self, text: &Utf8Bytes) -> Verdict {
        let workers = self.hub.config().workers.as_ref().filter(|_| text.len() > LONG);
        let judged = match workers {
            Some(workers) => {
                let text = text.clone();
                workers.spawn_blocking(move || gate::judge(&text)).await.ok()
            }
            None => None,
        };
        // Without workers, and when they end before the bus does.
        judged.unwrap_or_else(|| gate::judge(text))
    }

    /// Relays all complete messages in the buffer as one batch. Returns the close frame if the connection has to end.
    async fn relay(&mut self) -> Option<Vec<u8>> {
        let own = self.hub.config().own.clone();
        let mut out = Vec::new();
        let mut messages = 0;
        let mut got_text = false;
        let last = loop {
            let text = match self.frames.next() {
                Ok(None) => break None,
                Ok(Some(Event::Text(text))) => text,
                Ok(Some(Event::Binary(data))) => match Utf8Bytes::try_from(data) {
                    Ok(text) => text,
                    Err(error) => {
                        tracing::warn!(client = %self.from, %error, "dropped a binary frame that is not text");
                        continue;
                    }
                },
                Ok(Some(Event::Ping(payload))) => {
                    self.note_message();
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
            got_text = true;
            match self.judge(&text).await {
                Verdict::Relay if self.overtakes(own.as_deref(), &text) => {
                    let mut urgent = Vec::new();
                    frame::encode(&mut urgent, OpCode::Data(Data::Text), text.as_ref(), None);
                    self.hub.relay(&Batch::single(urgent), Order::Overtakes);
                    continue;
                }
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
        if got_text {
            // A message has ended, so what is unfinished now has begun after it.
            self.began = None;
            self.note_message();
        }
        if messages > 0 {
            let bytes = out.into();
            self.hub.relay(&Batch { bytes, messages }, Order::Last);
        }
        last
    }

    fn note_message(&self) {
        if let Some(seat) = self.seat {
            seat.note_message();
        }
    }

    fn pong(&self, payload: &[u8]) {
        let mut out = Vec::new();
        frame::encode(&mut out, OpCode::Control(Control::Pong), payload, None);
        // A client that does not read its pongs fills its queue and is disconnected like any slow client.
        if !self
            .outbox
            .push(&Batch::single(out), Order::Last, self.hub.config())
        {
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
async fn write(mut stream: impl AsyncWrite + Unpin, outbox: Arc<Outbox>) {
    let outcome = tokio::select! {
        () = outbox.gone.cancelled() => Ok(()),
        outcome = write_all(&mut stream, &outbox) => outcome,
    };
    if outcome.is_err() {
        outbox.gone.cancel();
    }
}

async fn write_all(stream: &mut (impl AsyncWrite + Unpin), outbox: &Outbox) -> io::Result<()> {
    let mut batches = Vec::new();
    let mut out = BytesMut::new();
    while outbox.take(&mut batches).await {
        if let [batch] = batches.as_slice() {
            stream.write_all(batch).await?;
        } else {
            batches.iter().for_each(|batch| out.extend_from_slice(batch));
            stream.write_all(&out).await?;
            out.clear();
        }
        batches.clear();
    }
    stream.shutdown().await
}
