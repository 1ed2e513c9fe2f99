//! The connection to a rosbridge: one task that keeps it, and what is entered here about what may come.
//!
//! A connection that breaks is made again, and subscriptions and announcements with it. What waited for an answer is
//! lost then, and what waited to be sent is dropped: a velocity is not sent late.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async_with_config};
use tokio_util::sync::CancellationToken;

use crate::error::GraphError;

/// A message has at most so many bytes: a picture of 24 MB in base64.
const LARGEST: usize = 32 << 20;
/// Messages that wait to be sent.
const QUEUE: usize = 256;
/// Calls and goals that wait for their ends.
const OPEN: usize = 1024;
/// The pause before a connection is tried again, from the first to the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));
/// A connection is pinged this often, and is lost when nothing came for [`SILENCE`].
const PING: Duration = Duration::from_secs(2);
const SILENCE: Duration = Duration::from_secs(6);
/// The number of the first connection.
const FIRST: u64 = 1;
/// How long one attempt to connect may take.
const CONNECTING: Duration = Duration::from_secs(5);

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// Takes the messages of a topic.
pub(super) type Deliver = Box<dyn Fn(Value, usize) + Send + Sync>;

#[derive(Default)]
struct Entries {
    last: u64,
    answers: HashMap<String, oneshot::Sender<Value>>,
    goals: HashMap<String, mpsc::UnboundedSender<Value>>,
    topics: HashMap<String, Vec<Weak<Deliver>>>,
    /// What is said again on a new connection, by its id.
    standing: HashMap<String, Value>,
}

pub(super) struct Link {
    pub(super) url: String,
    queue: mpsc::Sender<Value>,
    entries: Arc<Mutex<Entries>>,
    /// The number of the connection that stands.
    connection: watch::Receiver<Option<u64>>,
    end: CancellationToken,
}

impl Drop for Link {
    fn drop(&mut self) {
        self.end.cancel();
    }
}

fn lock(entries: &Mutex<Entries>) -> MutexGuard<'_, Entries> {
    entries.lock()
}

impl Link {
    /// Connects; later connections are made by a task that ends with the link.
    pub(super) async fn connect(url: &str) -> Result<Self, GraphError> {
        let socket = open(url).await.map_err(|reason| GraphError::Join {
            carrier: url.to_owned(),
            reason,
        })?;
        let (queue, outgoing) = mpsc::channel(QUEUE);
        let (state, connection) = watch::channel(Some(FIRST));
        let (entries, end) = (Arc::new(Mutex::new(Entries::default())), CancellationToken::new());
        let work = keep(url.to_owned(), socket, outgoing, Arc::clone(&entries), state);
        let ended = end.clone();
        tokio::spawn(async move { ended.run_until_cancelled(work).await });
        Ok(Self {
            url: url.to_owned(),
            queue,
            entries,
            connection,
            end,
        })
    }

    pub(super) fn is_connected(&self) -> bool {
        self.connection().is_some()
    }

    /// The number of the connection that stands, which no other one of the link has.
    pub(super) fn connection(&self) -> Option<u64> {
        *self.connection.borrow()
    }

    fn lost(&self, name: &str) -> GraphError {
        GraphError::Lost {
            name: name.to_owned(),
            reason: format!("the connection to {} is broken", self.url),
        }
    }

    /// Sends a message, never waiting.
    pub(super) fn send(&self, name: &str, message: Value) -> Result<(), GraphError> {
        if !self.is_connected() {
            return Err(self.lost(name));
        }
        self.queue.try_send(message).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => GraphError::Busy {
                what: "messages that wait to be sent",
                limit: QUEUE,
            },
            mpsc::error::TrySendError::Closed(_) => GraphError::Closed,
        })
    }

    /// Says something of a topic under an id of its own, now and on every later connection, until that id is withdrawn.
    pub(super) fn stand(&self, op: &str, topic: &str, mut message: Value) -> String {
        let mut entries = lock(&self.entries);
        entries.last += 1;
        let id = format!("{op}:{topic}:{}", entries.last);
        message["op"] = json!(op);
        message["id"] = json!(id);
        message["topic"] = json!(topic);
        entries.standing.insert(id.clone(), message.clone());
        drop(entries);
        // Where there is no connection the next one begins with it.
        let _ = self.send(topic, message);
        id
    }

    /// Takes back what stands under an id by saying `op`; what others said of the topic stands.
    pub(super) fn withdraw(&self, op: &str, topic: &str, id: &str) {
        lock(&self.entries).standing.remove(id);
        let _ = self.send(topic, json!({"op": op, "id": id, "topic": topic}));
    }

    /// Hands what comes on a topic to `deliver` for as long as that lives.
    pub(super) fn hear(&self, topic: &str, deliver: &Arc<Deliver>) {
        let mut entries = lock(&self.entries);
        let readers = entries.topics.entry(topic.to_owned()).or_default();
        readers.retain(|deliver| deliver.strong_count() > 0);
        readers.push(Arc::downgrade(deliver));
    }

    /// Sends a message with an id of its own, and waits for the message that has the same.
    pub(super) async fn ask(
        &self,
        name: &str,
        mut message: Value,
        patience: Duration,
    ) -> Result<Value, GraphError> {
        let (id, answer) = self.expect()?;
        message["id"] = json!(id);
        self.send(name, message)?;
        match tokio::time::timeout(patience, answer).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(_)) => Err(self.lost(name)),
            Err(_) => Err(GraphError::NoAnswer {
                service: name.to_owned(),
                waited: patience,
            }),
        }
    }

    fn expect(&self) -> Result<(String, oneshot::Receiver<Value>), GraphError> {
        let (sender, answer) = oneshot::channel();
        let mut entries = lock(&self.entries);
        entries.answers.retain(|_, waiting| !waiting.is_closed());
        if entries.answers.len() >= OPEN {
            return Err(GraphError::Busy {
                what: "calls without an answer",
                limit: OPEN,
            });
        }
        entries.last += 1;
        let id = format!("ask:{}", entries.last);
        entries.answers.insert(id.clone(), sender);
        Ok((id, answer))
    }

    /// Whether the end of a goal may still come.
    pub(super) fn follows(&self, goal: &str) -> bool {
        lock(&self.entries).goals.contains_key(goal)
    }

    /// Sends a goal, and returns its id with what is said of it; that ends with the connection.
    pub(super) fn goal(
        &self,
        name: &str,
        mut message: Value,
    ) -> Result<(String, mpsc::UnboundedReceiver<Value>), GraphError> {
        let (sender, messages) = mpsc::unbounded_channel();
        let mut entries = lock(&self.entries);
        entries.goals.retain(|_, goal| !goal.is_closed());
        if entries.goals.len() >= OPEN {
            return Err(GraphError::Busy {
                what: "goals without an end",
                limit: OPEN,
            });
        }
        entries.last += 1;
        let id = format!("goal:{}:{}", fastrand::u32(..), entries.last);
        entries.goals.insert(id.clone(), sender);
        drop(entries);
        message["id"] = json!(id);
        self.send(name, message)?;
        Ok((id, messages))
    }
}

async fn open(url: &str) -> Result<Socket, String> {
    let config = WebSocketConfig::default()
        .max_message_size(Some(LARGEST))
        .max_frame_size(Some(LARGEST));
    let connecting = connect_async_with_config(url, Some(config), true);
    match tokio::time::timeout(CONNECTING, connecting).await {
        Ok(Ok((socket, _))) => Ok(socket),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("no connection within {CONNECTING:?}")),
    }
}

async fn keep(
    url: String,
    first: Socket,
    mut outgoing: mpsc::Receiver<Value>,
    entries: Arc<Mutex<Entries>>,
    connection: watch::Sender<Option<u64>>,
) {
    let mut socket = Some(first);
    let mut number = FIRST;
    let mut pause = PAUSES.0;
    loop {
        let current = match socket.take() {
            Some(socket) => Ok(socket),
            None => {
                let opened = open(&url).await;
                // What was meant for the old connection is not sent late.
                while outgoing.try_recv().is_ok() {}
                opened
            }
        };
        match current {
            Ok(current) => {
                pause = PAUSES.0;
                // What is withdrawn from here on is said to this connection, after what stands.
                connection.send_replace(Some(number));
                let standing: Vec<Value> = lock(&entries).standing.values().cloned().collect();
                let reason = serve(current, standing, &mut outgoing, &entries).await;
                connection.send_replace(None);
                number += 1;
                tracing::warn!(url, reason, "the connection to rosbridge is lost");
                let mut entries = lock(&entries);
                entries.answers.clear();
                entries.goals.clear();
            }
            Err(reason) => tracing::debug!(url, reason, "no connection to rosbridge"),
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSES.1);
    }
}

/// Serves a connection until it breaks, and says why it did.
async fn serve(
    mut socket: Socket,
    standing: Vec<Value>,
    outgoing: &mut mpsc::Receiver<Value>,
    entries: &Mutex<Entries>,
) -> String {
    for message in standing {
        if let Err(error) = socket.send(Message::text(message.to_string())).await {
            return error.to_string();
        }
    }
    let mut ping = tokio::time::interval(PING);
    let mut last_message = tokio::time::Instant::now();
    loop {
        let sent = tokio::select! {
            message = socket.next() => match message {
                Some(Ok(message)) => {
                    last_message = tokio::time::Instant::now();
                    if let Message::Text(text) = message {
                        take(entries, &text);
                    }
                    continue;
                }
                Some(Err(error)) => return error.to_string(),
                None => return "it was closed".to_owned(),
            },
            message = outgoing.recv() => match message {
                Some(message) => Message::text(message.to_string()),
                None => return "this program has left the ROS graph".to_owned(),
            },
            _ = ping.tick() => match last_message.elapsed() {
                quiet if quiet > SILENCE => return format!("nothing came for {quiet:?}"),
                _ => Message::Ping(Vec::new().into()),
            },
        };
        match tokio::time::timeout(SILENCE, socket.send(sent)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return error.to_string(),
            Err(_) => return "it accepts no more data".to_owned(),
        }
    }
}

/// One message of the rosbridge.
fn take(entries: &Mutex<Entries>, text: &str) {
    let Ok(mut message) = serde_json::from_str::<Value>(text) else {
        tracing::warn!("rosbridge sent a message that is not JSON");
        return;
    };
    let id = message["id"].as_str().unwrap_or_default().to_owned();
    match message["op"].as_str().unwrap_or_default() {
        "publish" => {
            let topic = message["topic"].as_str().unwrap_or_default().to_owned();
            let readers = lock(entries).topics.get(&topic).cloned().unwrap_or_default();
            let value = message["msg"].take();
            for deliver in readers.iter().filter_map(Weak::upgrade) {
                deliver(value.clone(), text.len());
            }
        }
        "service_response" => {
            let waiting = lock(entries).answers.remove(&id);
            if let Some(waiting) = waiting {
                let _ = waiting.send(message);
            }
        }
        "action_feedback" => {
            if let Some(goal) = lock(entries).goals.get(&id) {
                let _ = goal.send(message);
            }
        }
        "action_result" => {
            if let Some(goal) = lock(entries).goals.remove(&id) {
                let _ = goal.send(message);
            }
        }
        "status" => tracing::warn!(id, said = %message["msg"], "rosbridge complains"),
        _ => {}
    }
}
