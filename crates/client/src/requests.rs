//! Requests of other clients that this client answers, as a door does that offers requests over the bus.

use bus::Message;
use ovos_toolbox_wire::Object;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

/// How many requests with their data may wait to be read.
const WAITING: usize = 64;

/// How many further requests may wait to be answered with the error that there are too many. Requests beyond these are dropped
/// without an answer.
const TURNED_AWAY: usize = 1024;

/// A request.
#[derive(Clone, Debug)]
pub struct Request {
    message: Message,
    refused: Option<String>,
}

impl Request {
    pub(crate) fn new(message: Message) -> Self {
        Self {
            message,
            refused: None,
        }
    }

    /// A request without its data, because of this error.
    pub(crate) fn refused_for(message: Message, error: String) -> Self {
        Self {
            message,
            refused: Some(error),
        }
    }

    /// The error with which to answer the request, `Kind: message`, if its data cannot be read or too many requests wait. The
    /// request has no data then.
    #[must_use]
    pub fn refused(&self) -> Option<&str> {
        self.refused.as_deref()
    }

    /// Its topic.
    #[must_use]
    pub fn topic(&self) -> &str {
        &self.message.kind
    }

    /// Its data.
    #[must_use]
    pub fn data(&self) -> &Object {
        &self.message.data
    }

    /// Its context, which says who makes the request.
    #[must_use]
    pub fn context(&self) -> &Object {
        &self.message.context
    }

    /// The session that the request names; `None` if there is none or it is the default one.
    #[must_use]
    pub fn session_id(&self) -> Option<&str> {
        self.message.session_id()
    }

    pub(crate) fn reply(&self, topic: &str, data: Object, source: &str) -> Message {
        let mut reply = self.message.reply(topic, data);
        reply.context.insert("source".to_owned(), Value::from(source));
        reply
    }
}

/// The requests since the call of [`Client::serve`](crate::Client::serve).
#[derive(Debug)]
pub struct Requests {
    waiting: mpsc::Receiver<Request>,
    turned_away: mpsc::Receiver<Request>,
}

impl Requests {
    /// Waits for the next request; `None` when the client is gone.
    ///
    /// # Cancel safety
    /// Safe: nothing is lost.
    pub async fn next(&mut self) -> Option<Request> {
        tokio::select! {
            biased;
            Some(request) = self.turned_away.recv() => Some(request),
            request = self.waiting.recv() => request,
        }
    }
}

/// The topics that are served.
pub(crate) struct ServedTopics {
    topics: &'static [&'static str],
    waiting: mpsc::Sender<Request>,
    turned_away: mpsc::Sender<Request>,
}

pub(crate) fn serve(topics: &'static [&'static str]) -> (ServedTopics, Requests) {
    let (to_wait, waiting) = mpsc::channel(WAITING);
    let (to_turn_away, turned_away) = mpsc::channel(TURNED_AWAY);
    let served = ServedTopics {
        topics,
        waiting: to_wait,
        turned_away: to_turn_away,
    };
    (served, Requests { waiting, turned_away })
}

impl ServedTopics {
    pub(crate) fn has(&self, topic: &str) -> bool {
        self.topics.contains(&topic)
    }

    pub(crate) fn is_open(&self) -> bool {
        !self.waiting.is_closed()
    }

    pub(crate) fn offer(&self, request: Request) {
        let Err(TrySendError::Full(mut request)) = self.waiting.try_send(request) else {
            return;
        };
        request.message.data = Object::new();
        let error = format!("BusyError: {WAITING} requests are already waiting");
        request.refused.get_or_insert(error);
        if self.turned_away.try_send(request).is_err() {
            tracing::warn!("dropped a request: too many wait");
        }
    }
}
