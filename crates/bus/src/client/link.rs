//! One connection: a reader task and a writer, which run until either of them ends.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tungstenite::Utf8Bytes;

use super::delivery::{Delivery, UnprovenAnswer};
use super::dial::Line;
use super::handler::BusHandler;
use super::resend;
use super::shared::{Outgoing, OutgoingKind, Queues, Shared};
use crate::websocket::frame::{self, Control, Data, End, Event, FrameReader, OpCode};
use crate::websocket::socket::Duplex;

/// Messages are joined into writes of about this many bytes.
const BATCH: usize = 256 * 1024;

/// How long the bus may take to close its side, or to take the close frame, at the shutdown.
const CLOSE_WAIT: Duration = Duration::from_millis(500);

/// How long reading waits for the answers that are sent again. The kernel takes them within a millisecond; a bus that
/// does not read them must not delay a stop.
const AGAIN_FIRST: Duration = Duration::from_millis(100);

/// How a connection ended.
pub(super) struct ConnectionEnd {
    /// The code of a close frame, or the error of a read or a write.
    pub(super) reason: String,
    /// Answers whose write did not complete; they still count as unwritten.
    pub(super) unwritten: usize,
}

/// Runs a connection to its end. Answers whose write was interrupted are then recorded in the delivery.
pub(super) async fn hold(
    shared: &Arc<Shared>,
    handler: &Arc<dyn BusHandler>,
    line: Line,
    outgoing: &mut Queues,
    again: &mut VecDeque<UnprovenAnswer>,
    tracker: &TaskTracker,
    shutdown: &CancellationToken,
) -> ConnectionEnd {
    let (reading, writing) = tokio::io::split(line.stream);
    let (over, sent_again) = (CancellationToken::new(), CancellationToken::new());
    // Bounded: while the writer is blocked, further pongs are dropped.
    let (pongs, pongs_owed) = mpsc::channel(8);
    let limit = shared.config.message_limit.max(shared.config.drop_above);
    let reader = Reader {
        shared: Arc::clone(shared),
        handler: Arc::clone(handler),
        frames: FrameReader::new(End::Client, limit, line.read),
        pongs,
    };
    let reader = {
        let (over, sent_again) = (over.clone(), sent_again.clone());
        tracker.spawn(async move {
            let _over = over.clone().drop_guard();
            let _ = timeout(AGAIN_FIRST, sent_again.cancelled()).await;
            reader.run(reading, over).await
        })
    };
    let mut writer = Writer {
        shared,
        handler: handler.as_ref(),
        stream: writing,
        connection: shared.counters.lock().connections,
        out: Vec::new(),
        answers: 0,
    };
    let written = tokio::select! {
        biased;
        () = over.cancelled() => Ok(()),
        written = writer.run(outgoing, again, &sent_again, pongs_owed, shutdown) => written,
        // A bus that reads nothing must not delay the shutdown.
        () = overdue(shutdown) => Err(io::ErrorKind::TimedOut.into()),
    };
    let unwritten = writer.answers;
    // At the shutdown the close frame is written, and the bus answers it. After a failed write, the bus may have said why it
    // closed the connection.
    if written.is_ok() == shutdown.is_cancelled() {
        tokio::select! { () = over.cancelled() => {} () = sleep(CLOSE_WAIT) => {} }
    }
    over.cancel();
    let reason = match (written, reader.await) {
        (
            Err(_),
            Ok(ReadEnd {
                reason,
                is_close: true,
            }),
        )
        | (Ok(()), Ok(ReadEnd { reason, .. })) => reason,
        (Err(error), _) => error.to_string(),
        (Ok(()), Err(error)) => format!("the reader failed: {error}"),
    };
    ConnectionEnd { reason, unwritten }
}

async fn overdue(shutdown: &CancellationToken) {
    shutdown.cancelled().await;
    sleep(2 * CLOSE_WAIT).await;
}

/// How reading ended.
struct ReadEnd {
    reason: String,
    /// Whether it was a close frame.
    is_close: bool,
}

impl ReadEnd {
    fn broken(reason: impl ToString) -> Self {
        Self {
            reason: reason.to_string(),
            is_close: false,
        }
    }
}

struct Reader {
    shared: Arc<Shared>,
    handler: Arc<dyn BusHandler>,
    frames: FrameReader,
    pongs: mpsc::Sender<Bytes>,
}

impl Reader {
    async fn run(mut self, mut stream: ReadHalf<Box<dyn Duplex>>, over: CancellationToken) -> ReadEnd {
        loop {
            loop {
                match self.frames.next() {
                    Ok(Some(event)) => {
                        if let Some(reason) = self.handle(event) {
                            let is_close = true;
                            return ReadEnd { reason, is_close };
                        }
                    }
                    Ok(None) => break,
                    Err(error) => return ReadEnd::broken(error),
                }
            }
            let read = tokio::select! {
                read = stream.read_buf(self.frames.space()) => read,
                () = over.cancelled() => return ReadEnd::broken("closed by this side"),
            };
            match read {
                Ok(0) => return ReadEnd::broken("end of stream"),
                Ok(_) => *self.shared.last_heard() = Instant::now(),
                Err(error) => return ReadEnd::broken(error),
            }
        }
    }

    /// Handles one event. Returns the reason if the connection has to end.
    fn handle(&self, event: Event) -> Option<String> {
        match event {
            Event::Text(text) => self.text(text),
            // Some buses relay binary frames unchanged, and Python clients read them as text too.
            Event::Binary(data) => match Utf8Bytes::try_from(data) {
                Ok(text) => self.text(text),
                Err(error) => self.dropped(&error.to_string()),
            },
            Event::NotUtf8(size) => self.dropped(&format!("{size} bytes that are not UTF-8")),
            Event::Ping(payload) => drop(self.pongs.try_send(payload)),
            Event::Pong => {}
            Event::Close(Some(code)) => {
                return Some(format!("the bus closed the connection with code {code}"));
            }
            Event::Close(None) => return Some("the bus closed the connection without a code".to_owned()),
        }
        None
    }

    fn text(&self, text: Utf8Bytes) {
        let (size, limit) = (text.len(), self.shared.config.drop_above);
        if size > limit {
            return self.dropped(&format!("{size} bytes, {limit} are accepted"));
        }
        self.shared.delivery(|delivery| delivery.echoed(&text));
        self.handler.frame(text);
    }

    fn dropped(&self, cause: &str) {
        self.shared.counters.lock().frames_dropped += 1;
        tracing::warn!(cause, "dropped a frame from the bus");
    }
}

struct Writer<'a> {
    shared: &'a Shared,
    handler: &'a dyn BusHandler,
    stream: WriteHalf<Box<dyn Duplex>>,
    /// The number of this connection.
    connection: u64,
    out: Vec<u8>,
    /// Number of answers in `out`.
    answers: usize,
}

impl Writer<'_> {
    /// Sends the answers in `again`, then queued messages until the shutdown, then a close frame.
    async fn run(
        &mut self,
        outgoing: &mut Queues,
        again: &mut VecDeque<UnprovenAnswer>,
        sent_again: &CancellationToken,
        mut pongs: mpsc::Receiver<Bytes>,
        shutdown: &CancellationToken,
    ) -> io::Result<()> {
        let sent = self.send_again(again).await;
        sent_again.cancel();
        sent?;
        loop {
            tokio::select! {
                biased;
                Some(payload) = pongs.recv() => {
                    frame::encode(&mut self.out, OpCode::Control(Control::Pong), &payload, frame::draw_mask());
                }
                () = self.shared.ping.notified() => {
                    frame::encode(&mut self.out, OpCode::Control(Control::Ping), &[], frame::draw_mask());
                }
                Some(message) = outgoing.urgent.recv() => self.put(message),
                Some(message) = outgoing.rest.recv() => self.put(message),
                () = shutdown.cancelled() => break,
            }
            while self.out.len() < BATCH {
                let Some(message) = outgoing.try_next() else { break };
                self.put(message);
            }
            self.write().await?;
        }
        frame::encode_close(&mut self.out, 1000, "", frame::draw_mask());
        match timeout(CLOSE_WAIT, self.write()).await {
            Ok(outcome) => outcome,
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        }
    }

    async fn send_again(&mut self, again: &mut VecDeque<UnprovenAnswer>) -> io::Result<()> {
        if !again.is_empty() {
            tracing::warn!(
                answers = again.len(),
                "sending answers again that may not have arrived"
            );
        }
        while let Some(answer) = again.pop_front() {
            let was_error = answer.is_error;
            let next = resend::next(answer, self.handler, self.shared.config.drop_above);
            if !was_error && next.as_ref().is_none_or(|next| next.is_error) {
                self.shared.counters.lock().answers_given_up += 1;
            }
            match next {
                Some(answer) => {
                    self.shared.counters.lock().answers_resent += 1;
                    self.put_answer(answer);
                }
                None => self.shared.remove_unwritten(1),
            }
            if self.out.len() >= BATCH || again.is_empty() {
                self.write().await?;
            }
        }
        Ok(())
    }

    fn put(&mut self, message: Outgoing) {
        match message.kind {
            OutgoingKind::Answer | OutgoingKind::UrgentAnswer => {
                if let (OutgoingKind::UrgentAnswer, Some(own)) = (message.kind, &self.shared.config.own) {
                    own.sends_urgent(&message.text);
                }
                self.put_answer(UnprovenAnswer {
                    text: message.text,
                    writes: 0,
                    is_error: false,
                });
            }
            OutgoingKind::Notice { connection } if connection == self.connection => {
                frame::encode(
                    &mut self.out,
                    OpCode::Data(Data::Text),
                    message.text.as_ref(),
                    frame::draw_mask(),
                );
            }
            OutgoingKind::Notice { .. } => {
                self.shared.counters.lock().notices_dropped += 1;
            }
        }
    }

    fn put_answer(&mut self, answer: UnprovenAnswer) {
        frame::encode(
            &mut self.out,
            OpCode::Data(Data::Text),
            answer.text.as_ref(),
            frame::draw_mask(),
        );
        self.answers += 1;
        let given_up = self.shared.delivery(|delivery| delivery.writing(answer));
        if given_up > 0 {
            let total = {
                let mut counters = self.shared.counters.lock();
                counters.answers_given_up += given_up;
                counters.answers_given_up
            };
            tracing::error!(
                given_up,
                total,
                "dropped an answer: too many are unconfirmed, because this bus echoes no messages"
            );
        }
    }

    async fn write(&mut self) -> io::Result<()> {
        self.stream.write_all(&self.out).await?;
        self.stream.flush().await?;
        self.shared.delivery(Delivery::written);
        self.shared.remove_unwritten(std::mem::take(&mut self.answers));
        self.out.clear();
        if self.out.capacity() > 4 * BATCH {
            self.out = Vec::new();
        }
        Ok(())
    }
}
