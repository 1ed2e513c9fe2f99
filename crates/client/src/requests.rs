//! Requests of other clients that this one answers, as a door does that can be asked over the bus.

use bus::Message;
use ovos_toolbox_wire::Object;
use serde_json::Value;
use tokio::sync::mpsc;

/// How many requests may wait to be read; further ones are dropped, and their senders hear nothing.
const WAITING: usize = 64;

/// A request.
#[derive(Clone, Debug)]
pub struct Request(Message);

impl Request {
    pub(crate) fn new(message: Message) -> Self {
        Self(message)
    }

    /// Its topic.
    #[must_use]
    pub fn topic(&self) -> &str {
        &self.0.kind
    }

    /// Its data.
    #[must_use]
    pub fn data(&self) -> &Object {
        &self.0.data
    }

    /// The session that it names; none if there is none or it is the default one.
    #[must_use]
    pub fn session_id(&self) -> Option<&str> {
        self.0.session_id()
    }

    pub(crate) fn reply(&self, topic: &str, data: Object, source: &str) -> Message {
        let mut reply = self.0.reply(topic, data);
        reply.context.insert("source".to_owned(), Value::from(source));
        reply
    }
}

/// The requests since the call of [`Client::serve`](crate::Client::serve).
#[derive(Debug)]
pub struct Requests(mpsc::Receiver<Request>);

impl Requests {
    /// Waits for the next request; `None` when the client is gone.
    ///
    /// # Cancel safety
    /// Safe: nothing is lost.
    pub async fn next(&mut self) -> Option<Request> {
        self.0.recv().await
    }
}

/// Topics that are served.
pub(crate) struct Served {
    topics: &'static [&'static str],
    sender: mpsc::Sender<Request>,
}

pub(crate) fn serve(topics: &'static [&'static str]) -> (Served, Requests) {
    let (sender, receiver) = mpsc::channel(WAITING);
    (Served { topics, sender }, Requests(receiver))
}

impl Served {
    pub(crate) fn has(&self, topic: &str) -> bool {
        self.topics.contains(&topic)
    }

    pub(crate) fn is_open(&self) -> bool {
        !self.sender.is_closed()
    }

    pub(crate) fn offer(&self, request: Request) {
        if self.sender.try_send(request).is_err() {
            tracing::warn!("dropped a request: too many wait");
        }
    }
}
