//! The requests that wait for messages of the bus.
//!
//! Every request has an id of its own in its context, and an answer has the context of its request: a message answers
//! a request only if both the id and the topic match. A request that was given up has no route, so its late answer is
//! dropped.

use std::collections::HashMap;
use std::sync::Arc;

use bus::{BusHandler, Envelope, Utf8Bytes};
use ovos_toolbox_wire::Object;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::{broadcast, mpsc};

use crate::events::{EVENTS, News};
use crate::payload::EventMessage;
use crate::requests::{Request, ServedTopics};
use crate::topic::{
    EVENT, INVOKE, OLD_USER_STOP, OVOS_SCHEDULER, PREFIX, PROCESS_PREFIX, PROGRESS, RELOADED, RUN, STOP,
    USER_STOP,
};

/// The context key of a request's id.
pub(crate) const IDENT: &str = "ident";

/// How many messages may wait for one request; further progress is dropped.
const WAITING: usize = 256;

/// The places in that queue that are kept free for the answer and for the loss of the connection, and not used for progress.
const RESERVED: usize = 2;

/// What arrived for a request.
pub(crate) enum Arrival {
    Progress(Object),
    Answer(Object),
    /// The connection broke; nothing follows.
    Lost(String),
}

/// The requests that wait for an answer, and the readers of events.
pub(crate) struct Routes {
    /// Begins the ids of this client's requests.
    own: String,
    requests: Mutex<HashMap<String, Pending>>,
    served: Mutex<Vec<ServedTopics>>,
    news: broadcast::Sender<News>,
}

struct Pending {
    topic: &'static str,
    arrivals: mpsc::Sender<Arrival>,
}

impl Routes {
    pub(crate) fn new(own: String) -> Arc<Self> {
        Arc::new(Self {
            own,
            requests: Mutex::default(),
            served: Mutex::default(),
            news: broadcast::Sender::new(EVENTS),
        })
    }

    /// Collects the messages of a request from now on.
    pub(crate) fn open(self: &Arc<Self>, ident: String, topic: &'static str) -> Route {
        let (sender, receiver) = mpsc::channel(WAITING);
        self.requests.lock().insert(
            ident.clone(),
            Pending {
                topic,
                arrivals: sender,
            },
        );
        Route {
            routes: Arc::clone(self),
            ident,
            arrivals: receiver,
        }
    }

    /// Collects the requests under topics that this client answers.
    pub(crate) fn serve(&self, served: ServedTopics) {
        self.served.lock().push(served);
    }

    pub(crate) fn follow(&self) -> broadcast::Receiver<News> {
        self.news.subscribe()
    }

    /// Sends news to the readers of events, if there are any.
    fn publish(&self, news: News) {
        _ = self.news.send(news);
    }

    fn answer(&self, kind: &str, envelope: &Envelope<'_>) {
        let mut requests = self.requests.lock();
        if requests.is_empty() {
            return;
        }
        let Ok(context) = envelope.context_map() else {
            return;
        };
        let Some(ident) = context.get(IDENT).and_then(Value::as_str) else {
            return;
        };
        let Some(pending) = requests.get(ident) else {
            return;
        };
        let is_answer = kind
            .strip_prefix(pending.topic)
            .is_some_and(|rest| rest == ".response");
        let is_progress = kind == PROGRESS && [INVOKE.name(), RUN.name()].contains(&pending.topic);
        if !is_answer && !is_progress {
            return;
        }
        let data = match envelope.data_map() {
            Ok(data) => data,
            Err(error) => return tracing::warn!(kind, %error, "dropped a message that cannot be read"),
        };
        if is_answer {
            if let Some(pending) = requests.remove(ident) {
                _ = pending.arrivals.try_send(Arrival::Answer(data));
            }
        } else if pending.arrivals.capacity() > RESERVED {
            _ = pending.arrivals.try_send(Arrival::Progress(data));
        }
    }
}

fn is_user_stop(kind: &str) -> bool {
    [USER_STOP, OLD_USER_STOP].contains(&kind)
}

impl Routes {
    /// The bus sends each message to its sender, too.
    fn user_stop(&self, envelope: &Envelope<'_>) {
        let head = envelope.head().ok();
        let ident = head.as_ref().and_then(|head| head.context.get(IDENT)?.as_str());
        if ident.is_some_and(|ident| ident.starts_with(&self.own)) {
            return;
        }
        let session_id = head.as_ref().and_then(|head| head.session_id());
        self.publish(News::UserStop {
            session_id: session_id.map(str::to_owned),
        });
    }

    /// Whether a message under a topic that belongs to others is served here, or answers what was asked.
    fn is_of_others(&self, kind: &str) -> bool {
        let request = kind.strip_suffix(".response");
        self.served.lock().iter().any(|served| served.has(kind))
            || request == Some(OVOS_SCHEDULER.name()) && !self.requests.lock().is_empty()
    }

    /// Whether a message is a request that this client answers.
    fn offer(&self, kind: &str, envelope: &Envelope<'_>) -> bool {
        let mut served = self.served.lock();
        served.retain(ServedTopics::is_open);
        let Some(served) = served.iter().find(|served| served.has(kind)) else {
            return false;
        };
        match (envelope.message(), envelope.head()) {
            (Ok(message), _) => served.offer(Request::new(message)),
            (Err(error), Ok(head)) => {
                served.offer(Request::refused_for(head, format!("ValueError: {error}")))
            }
            (Err(error), Err(_)) => tracing::warn!(kind, %error, "dropped a request that cannot be read"),
        }
        true
    }
}

impl BusHandler for Routes {
    fn frame(&self, text: Utf8Bytes) {
        let is_ours = |kind: &str| {
            let is_of_tools = kind.starts_with(PREFIX) || kind.starts_with(PROCESS_PREFIX);
            is_of_tools || is_user_stop(kind) || self.is_of_others(kind)
        };
        if !Envelope::kind_of(&text).is_some_and(|kind| is_ours(&kind)) {
            return;
        }
        let Ok(envelope) = Envelope::parse(&text) else {
            return;
        };
        let kind = envelope.kind.as_ref();
        if is_user_stop(kind) {
            return self.user_stop(&envelope);
        }
        if kind == STOP.name() {
            self.publish(News::EmergencyStop);
            return;
        }
        if self.offer(kind, &envelope) {
            return;
        }
        if kind == EVENT {
            let data = envelope.data_map().unwrap_or_default();
            match serde_json::from_value::<EventMessage>(Value::Object(data)) {
                Ok(event) => self.publish(News::Event(event)),
                Err(error) => tracing::warn!(%error, "dropped an event that cannot be read"),
            }
            return;
        }
        if kind == RELOADED {
            self.publish(News::Reloaded);
        }
        self.answer(kind, &envelope);
    }

    fn connected(&self) {
        self.publish(News::Connected);
    }

    fn disconnected(&self, reason: &str) {
        for (_, pending) in self.requests.lock().drain() {
            _ = pending.arrivals.try_send(Arrival::Lost(reason.to_owned()));
        }
        self.publish(News::Disconnected {
            reason: reason.to_owned(),
        });
    }

    fn instead(&self, _: &str, _: &str) -> Option<String> {
        None
    }
}

/// The messages of one request; dropping it gives the request up.
pub(crate) struct Route {
    routes: Arc<Routes>,
    ident: String,
    arrivals: mpsc::Receiver<Arrival>,
}

impl Route {
    /// The next message of the request.
    ///
    /// # Cancel safety
    /// Safe.
    pub(crate) async fn next(&mut self) -> Arrival {
        let closed = || Arrival::Lost("this request was already answered".to_owned());
        self.arrivals.recv().await.unwrap_or_else(closed)
    }
}

impl Drop for Route {
    fn drop(&mut self) {
        self.routes.requests.lock().remove(&self.ident);
    }
}
