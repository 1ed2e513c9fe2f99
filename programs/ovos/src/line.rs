//! The connection to the bus: sends messages, hears topics, and remembers who speaks in which session. Read [`Line`].

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bus::{
    BusClient, BusHandler, ClientConfig, Connection, DEFAULT_SESSION_ID, Envelope, Message, Utf8Bytes,
};
use config::BusConfig;
use ovos_toolbox_wire::{Failure, FailureKind, Object};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::open_question::Questions;

/// The name under which OVOS knows the toolbox, as it knows skills.
pub(crate) const SKILL_ID: &str = "ovos-tools.ovos";

/// The key of the context that marks our messages; OVOS copies the context of a request into its answer.
const MARK: &str = "ovos_tools_mark";

/// How the utterances of people arrive, by their old and their new topic.
const UTTERANCES: [&str; 2] = ["recognizer_loop:utterance", "ovos.utterance.handle"];

/// How many sessions are remembered.
const SESSIONS: usize = 64;

/// How many messages may wait for a subscriber.
const WAITING: usize = 256;

/// How long the bus may be away before a call fails.
const BUS_WAIT: Duration = Duration::from_secs(3);

/// How long a service may take to answer.
pub(crate) const ANSWER_WAIT: Duration = Duration::from_secs(2);

/// Who calls.
pub(crate) struct Call {
    /// The session of the request, if a person has spoken in it. Other sessions, such as a door's, have no speaker: their texts are
    /// spoken by the device.
    pub(crate) session_id: Option<String>,
    /// The language of that session.
    pub(crate) lang: Option<String>,
}

/// The connection. Clones share it.
#[derive(Clone)]
pub(crate) struct Line {
    bus: BusClient,
    ears: Arc<Ears>,
    pub(crate) questions: Arc<Questions>,
}

impl Line {
    /// Connects in the background.
    pub(crate) fn start(address: &BusConfig, tasks: &TaskTracker, shutdown: CancellationToken) -> Self {
        let ears = Arc::new(Ears::default());
        let config = ClientConfig {
            extra_ca: address.ssl_cert.clone(),
            drop_above: address.max_message_bytes,
            ..ClientConfig::new(address.url.clone())
        };
        let bus = BusClient::start(config, ears.clone(), tasks, shutdown);
        let questions = Arc::default();
        Self { bus, ears, questions }
    }

    /// A message to the device; for a named session, a reply to the last utterance in it.
    pub(crate) fn message(&self, topic: &str, data: Value, session_id: Option<&str>) -> Message {
        let data = match data {
            Value::Object(data) => data,
            // OVOS understands objects alone; the message still needs our context.
            _ => Object::new(),
        };
        let recent = session_id.and_then(|id| self.ears.said_in(id));
        let mut message = match recent {
            Some(said) => said.reply(topic, data),
            None => {
                let mut message = Message::new(topic, data);
                let session = json!({ "session_id": session_id.unwrap_or(DEFAULT_SESSION_ID) });
                message.context.insert("session".to_owned(), session);
                message.context.insert("source".to_owned(), SKILL_ID.into());
                message
            }
        };
        // The utterance itself may have been handled by now.
        message.context.shift_remove("utterance_id");
        message.context.insert("skill_id".to_owned(), SKILL_ID.into());
        let mark = uuid::Uuid::new_v4().to_string();
        message.context.insert(MARK.to_owned(), mark.into());
        message
    }

    /// The sessions in which something was said since the start, without the default one.
    pub(crate) fn sessions(&self) -> Vec<String> {
        self.ears.said.lock().iter().map(|(id, _)| id.clone()).collect()
    }

    /// Whether something was said in a session.
    pub(crate) fn is_spoken_in(&self, session_id: &str) -> bool {
        self.ears.said.lock().iter().any(|(id, _)| id == session_id)
    }

    /// Hears these topics from now on.
    ///
    /// # Errors
    /// The bus was not connected within [`BUS_WAIT`].
    ///
    /// # Cancel safety
    /// Safe.
    pub(crate) async fn hear<T: Into<String>>(
        &self,
        topics: impl IntoIterator<Item = T>,
    ) -> Result<Subscription, Failure> {
        let mut connection = self.bus.connection();
        let (sender, messages) = mpsc::channel(WAITING);
        let topics: Vec<String> = topics.into_iter().map(Into::into).collect();
        let until = Instant::now() + BUS_WAIT;
        loop {
            match timeout_at(until, connection.wait_for(Connection::is_up)).await {
                Ok(Ok(_)) => {}
                Ok(Err(_)) | Err(_) => return Err(no_bus()),
            }
            let mut open = self.ears.open.lock();
            // A connection that breaks clears the list: what is pushed after that would hear nothing and not notice it.
            if self.bus.connection_now().is_up() {
                open.push(Ear {
                    topics,
                    heard: sender,
                });
                return Ok(Subscription(messages));
            }
        }
    }

    /// Sends a message.
    ///
    /// # Errors
    /// The bus is away: nothing was sent.
    pub(crate) fn send(&self, message: &Message) -> Result<(), Failure> {
        self.bus
            .notify(message.to_text())
            .then_some(())
            .ok_or_else(no_bus)
    }

    /// Asks a question of the device, which is answered under one of these topics. `None` if nothing answers within
    /// [`ANSWER_WAIT`].
    ///
    /// # Errors
    /// The bus is away.
    ///
    /// # Cancel safety
    /// The question may have been sent.
    pub(crate) async fn ask(
        &self,
        topic: &str,
        data: Value,
        answers: &[&str],
    ) -> Result<Option<Message>, Failure> {
        let mut hearing = self.hear(answers.iter().copied()).await?;
        let question = self.message(topic, data, None);
        self.send(&question)?;
        // The bus may have been away before.
        let until = Instant::now() + ANSWER_WAIT;
        hearing.until(until, |message| is_about(&question, message)).await
    }
}

/// Whether a message was derived from one of ours.
pub(crate) fn is_about(ours: &Message, message: &Message) -> bool {
    let mark = ours.context.get(MARK);
    mark.is_some() && message.context.get(MARK) == mark
}

fn no_bus() -> Failure {
    let text = "the messagebus is disconnected, so nothing was sent; try again when it is back";
    Failure::new(FailureKind::RuntimeError, text)
}

/// Seconds since 1970, as OVOS writes times.
pub(crate) fn now() -> f64 {
    SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_secs_f64()
}

/// The messages under some topics.
pub(crate) struct Subscription(mpsc::Receiver<Message>);

impl Subscription {
    /// The first message that fits. `None` if there is none in time.
    ///
    /// # Errors
    /// The connection to the bus broke.
    ///
    /// # Cancel safety
    /// Safe: nothing that fits is lost.
    pub(crate) async fn until(
        &mut self,
        end: Instant,
        mut fits: impl FnMut(&Message) -> bool,
    ) -> Result<Option<Message>, Failure> {
        loop {
            match timeout_at(end, self.0.recv()).await {
                Err(_) => return Ok(None),
                Ok(Some(message)) if fits(&message) => return Ok(Some(message)),
                Ok(Some(_)) => {}
                Ok(None) => {
                    let text = "the connection to the bus broke, so it is not known what became of it";
                    return Err(Failure::new(FailureKind::RuntimeError, text));
                }
            }
        }
    }
}

/// Those who hear, and what was said last in each named session, the newest at the end.
#[derive(Default)]
struct Ears {
    open: Mutex<Vec<Ear>>,
    said: Mutex<Vec<(String, Message)>>,
}

struct Ear {
    topics: Vec<String>,
    heard: mpsc::Sender<Message>,
}

impl Ears {
    fn said_in(&self, session_id: &str) -> Option<Message> {
        let messages = self.said.lock();
        messages
            .iter()
            .find(|(id, _)| id == session_id)
            .map(|(_, messages)| messages.clone())
    }

    fn remember(&self, said: &Message) {
        let Some(id) = said.session_id() else { return };
        let head = Message {
            data: Object::new(),
            ..said.clone()
        };
        let mut messages = self.said.lock();
        messages.retain(|(other, _)| other != id);
        if messages.len() == SESSIONS {
            messages.remove(0);
        }
        messages.push((id.to_owned(), head));
    }
}

impl BusHandler for Ears {
    fn frame(&self, text: Utf8Bytes) {
        let Some(kind) = Envelope::kind_of(&text) else {
            return;
        };
        let is_said = UTTERANCES.contains(&&*kind);
        let mut open = self.open.lock();
        open.retain(|ear| !ear.heard.is_closed());
        let wants = |ear: &&Ear| ear.topics.iter().any(|topic| *topic == *kind);
        if !is_said && !open.iter().any(|ear| wants(&ear)) {
            return;
        }
        let Ok(message) = Message::parse(&text) else {
            return;
        };
        for ear in open.iter().filter(wants) {
            // If its queue is full, this message is lost.
            _ = ear.heard.try_send(message.clone());
        }
        if is_said {
            self.remember(&message);
        }
    }

    fn connected(&self) {}

    fn disconnected(&self, _: &str) {
        self.open.lock().clear();
    }

    fn instead(&self, _: &str, _: &str) -> Option<String> {
        None
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use futures_util::{SinkExt as _, StreamExt as _};
    use tokio::net::TcpListener;
    use tokio_tungstenite::tungstenite::Message as Frame;

    use super::*;

    #[test]
    fn only_a_message_with_our_mark_is_about_ours() {
        let message = |mark: Option<&str>| {
            let mut message = Message::new("t", Object::new());
            if let Some(mark) = mark {
                message.context.insert(MARK.to_owned(), mark.into());
            }
            message
        };
        for (ours, theirs, expected) in [
            (Some("a"), Some("a"), true),
            (Some("a"), Some("b"), false),
            (Some("a"), None, false),
            (None, None, false),
        ] {
            let found = is_about(&message(ours), &message(theirs));
            assert_eq!(found, expected, "{ours:?} {theirs:?}");
        }
    }

    /// The clock moves only where the test moves it.
    #[tokio::test(start_paused = true)]
    async fn the_time_to_answer_begins_when_the_question_is_sent() {
        // The clock does not move by itself while a blocking task runs.
        let (let_go, held) = mpsc::channel::<()>();
        let holds = tokio::task::spawn_blocking(move || _ = held.recv());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let shutdown = CancellationToken::new();
        let address = BusConfig {
            url: format!("ws://{}", listener.local_addr().unwrap())
                .parse()
                .unwrap(),
            ssl_cert: None,
            max_message_bytes: 1 << 20,
        };
        let line = Line::start(&address, &TaskTracker::new(), shutdown.clone());
        let asking = tokio::spawn(async move { line.ask("question", json!({}), &["answer"]).await });
        let (stream, _) = listener.accept().await.unwrap();
        tokio::time::advance(BUS_WAIT - Duration::from_millis(500)).await;
        let mut bus = tokio_tungstenite::accept_async(stream).await.unwrap();
        let question = bus.next().await.unwrap().unwrap();
        let question = Message::parse(question.to_text().unwrap()).unwrap();
        let answer = question.reply("answer", Object::new());
        bus.send(Frame::text(answer.to_text())).await.unwrap();
        let answer = asking.await.unwrap().unwrap();
        assert_eq!(answer.map(|answer| answer.kind), Some("answer".to_owned()));
        shutdown.cancel();
        drop(let_go);
        holds.await.unwrap();
    }
}
