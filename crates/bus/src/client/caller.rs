//! The bus client of the command line: connects once, sends a request, waits for the answer.
//!
//! The bus has no correlation ids: a caller uses a session of its own and takes the first answer in that session.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, timeout_at};
use url::Url;

use super::dial::{Dial, DialError, Dialer};
use crate::envelope::Envelope;
use crate::message::Message;
use crate::websocket::frame::{self, End, Event, FrameError, FrameReader, Opcode};
use crate::websocket::socket::Duplex;

/// Largest message a caller reads, in bytes.
const MESSAGE_LIMIT: usize = 64 << 20;

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The connection failed.
    #[error("{0}{advice}", advice = advice(.0))]
    NoBus(#[source] DialError),
    /// The bus did not accept the connection in time.
    #[error(
        "no bus at {url}: no answer within {wait:?}; start one with `ovos-tools bus` or ovos-messagebus, or name another with --bus"
    )]
    NoBusInTime {
        /// The bus.
        url: Url,
        /// How long the caller waited.
        wait: Duration,
    },
    /// The bus closed the connection before the answer arrived.
    #[error("the bus at {url} closed the connection: {cause}")]
    Lost {
        /// The bus.
        url: Url,
        /// Why, as far as known.
        cause: String,
    },
    /// No answer arrived in time.
    #[error("no answer to {topic} on {url} within {wait:?}: is ovos-tools running on this bus")]
    NoAnswer {
        /// The bus.
        url: Url,
        /// The topic of the request.
        topic: String,
        /// How long the caller waited.
        wait: Duration,
    },
}

fn advice(error: &DialError) -> &'static str {
    match error {
        DialError::Unreachable { .. } | DialError::TimedOut(_) | DialError::NotABus { .. } => {
            "; start one with `ovos-tools bus` or ovos-messagebus, or name another with --bus"
        }
        DialError::Tls { .. } => "; name its certificate as an extra CA file if it signs itself",
        DialError::Address(_) | DialError::ExtraCa { .. } | DialError::NoTrust(_) => "",
    }
}

/// A connection with a session of its own.
pub struct Caller {
    url: Url,
    stream: Box<dyn Duplex>,
    frames: FrameReader,
    session_id: String,
}

impl Caller {
    /// Connects within `wait`.
    ///
    /// # Errors
    /// [`CallError::NoBus`], [`CallError::NoBusInTime`].
    ///
    /// # Cancel safety
    /// Safe: a dropped attempt leaves nothing behind.
    pub async fn connect(url: Url, extra_ca: Option<PathBuf>, wait: Duration) -> Result<Self, CallError> {
        let mut dialer = Dialer::new(url.clone(), extra_ca);
        let line = match timeout_at(Instant::now() + wait, dialer.dial()).await {
            Ok(dialled) => dialled.map_err(CallError::NoBus)?,
            Err(_) => return Err(CallError::NoBusInTime { url, wait }),
        };
        let frames = FrameReader::new(End::Client, MESSAGE_LIMIT, line.read);
        let session_id = format!("ovos-tools-{}", uuid::Uuid::new_v4());
        Ok(Self {
            url,
            stream: line.stream,
            frames,
            session_id,
        })
    }

    /// The session id of all requests of this caller.
    pub fn session_id(&self) -> &str {
        &self.session_id
    }

    /// Sends a request and waits for `<topic>.response` in this caller's session. Every other message in the session,
    /// such as progress, is passed to `other`.
    ///
    /// # Errors
    /// [`CallError::NoAnswer`] after `wait`, [`CallError::Lost`].
    ///
    /// # Cancel safety
    /// If dropped, the request may have been sent; a later request for the same topic may then receive its answer.
    pub async fn request(
        &mut self,
        topic: &str,
        data: Map<String, Value>,
        wait: Duration,
        mut other: impl FnMut(Message),
    ) -> Result<Message, CallError> {
        let deadline = Instant::now() + wait;
        let late = |url: &Url| CallError::NoAnswer {
            url: url.clone(),
            topic: topic.to_owned(),
            wait,
        };
        match timeout_at(deadline, self.send(topic, data)).await {
            Ok(sent) => sent?,
            Err(_) => return Err(late(&self.url)),
        }
        let answer = format!("{topic}.response");
        loop {
            let message = match timeout_at(deadline, self.next()).await {
                Ok(message) => message?,
                Err(_) => return Err(late(&self.url)),
            };
            if message.session_id() != Some(self.session_id.as_str()) || message.kind == topic {
                continue;
            }
            if message.kind == answer {
                return Ok(message);
            }
            other(message);
        }
    }

    /// Sends a message in this caller's session without waiting for an answer.
    ///
    /// # Errors
    /// [`CallError::Lost`].
    ///
    /// # Cancel safety
    /// Not safe: if dropped half-way, the connection cannot be used any more.
    pub async fn send(&mut self, topic: &str, data: Map<String, Value>) -> Result<(), CallError> {
        let mut message = Message::new(topic, data);
        message.context.insert("source".into(), "ovos-tools-cli".into());
        message
            .context
            .insert("session".into(), json!({"session_id": self.session_id}));
        let mut out = Vec::new();
        frame::encode(
            &mut out,
            Opcode::Text,
            message.to_text().as_bytes(),
            frame::draw_mask(),
        );
        self.write(&out).await
    }

    /// Returns the next message on the bus, including those for others. Skips frames that are not messages.
    ///
    /// # Errors
    /// [`CallError::Lost`].
    ///
    /// # Cancel safety
    /// Safe, except while a ping is being answered.
    pub async fn next(&mut self) -> Result<Message, CallError> {
        loop {
            let text = match self
                .frames
                .next()
                .map_err(|error: FrameError| self.lost(error.to_string()))?
            {
                Some(Event::Text(text)) => text,
                Some(Event::Ping(payload)) => {
                    let mut out = Vec::new();
                    frame::encode(&mut out, Opcode::Pong, &payload, frame::draw_mask());
                    self.write(&out).await?;
                    continue;
                }
                Some(Event::Close(code)) => {
                    return Err(self.lost(code.map_or("no code".to_owned(), |code| format!("code {code}"))));
                }
                Some(Event::Binary(_) | Event::NotUtf8(_) | Event::Pong) => continue,
                None => {
                    match self.stream.read_buf(self.frames.space()).await {
                        Ok(0) => return Err(self.lost("end of stream".to_owned())),
                        Ok(_) => {}
                        Err(error) => return Err(self.lost(error.to_string())),
                    }
                    continue;
                }
            };
            if let Ok(message) = Envelope::parse(&text).and_then(|envelope| envelope.message()) {
                return Ok(message);
            }
        }
    }

    async fn write(&mut self, bytes: &[u8]) -> Result<(), CallError> {
        let written = async {
            self.stream.write_all(bytes).await?;
            self.stream.flush().await
        };
        let outcome = written.await;
        outcome.map_err(|error| self.lost(error.to_string()))
    }

    fn lost(&self, cause: String) -> CallError {
        CallError::Lost {
            url: self.url.clone(),
            cause,
        }
    }
}
