//! A participant in a DDS domain, which is what ROS 2 topics and the robots' own interfaces are made of.
//!
//! Owns one participant, the ROS node that it announces, and one thread on which discovery and subscriptions run, so
//! that neither needs the runtime of its caller. Publishing never blocks. A publisher is ready when a reader has been
//! there for 200 ms: an earlier message is lost, because the reader does not know the writer yet. Read
//! [`Participant`].

pub mod asked;
pub mod booster;
pub(crate) mod latest;
mod node;
mod peers;
pub(crate) mod shout;
pub mod unitree;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use futures_util::future::LocalBoxFuture;
use futures_util::{FutureExt, StreamExt};
use ovos_toolbox_sdk::Essential;
use rustdds::dds::WriteError;
use rustdds::no_key::{DataWriterCdr, SimpleDataReaderCdr};
use rustdds::policy::{Durability, History, Reliability};
use rustdds::{
    DomainParticipant, DomainParticipantBuilder, QosPolicies, QosPolicyBuilder, RTPSEntity, Timestamp, Topic,
    TopicKind,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::runtime::Builder;
use tokio::sync::mpsc;
use tokio::task::LocalSet;
use tokio_util::sync::CancellationToken;

use self::node::Announcement;
use self::peers::{Matched, lock};
pub use self::peers::{Peers, SETTLE};
use crate::ros::config::RosConfig;
use crate::ros::error::RosError;

/// The pause between two looks at the readers.
const LOOK: Duration = Duration::from_millis(5);

/// A participant in a DDS domain. Dropping it leaves the domain.
pub struct Participant {
    participant: DomainParticipant,
    publisher: rustdds::Publisher,
    subscriber: rustdds::Subscriber,
    node: Mutex<Announcement>,
    matched: Matched,
    tasks: mpsc::Sender<Task>,
    end: CancellationToken,
    thread: Mutex<Option<JoinHandle<()>>>,
    closed: Arc<AtomicBool>,
}

/// Makes a future on the participant's thread: a future of the library stays on the thread that made it.
type Task = Box<dyn FnOnce() -> LocalBoxFuture<'static, ()> + Send>;

/// Tasks that wait to be started: an adapter starts fewer than ten.
const TASKS: usize = 64;

/// Publishes one topic. Clones publish to the same one.
pub struct Publisher<M: Serialize> {
    writer: Arc<Mutex<DataWriterCdr<M>>>,
    readers: Peers,
    topic: String,
    closed: Arc<AtomicBool>,
}

impl<M: Serialize> Clone for Publisher<M> {
    fn clone(&self) -> Self {
        Self {
            writer: Arc::clone(&self.writer),
            readers: self.readers.clone(),
            topic: self.topic.clone(),
            closed: Arc::clone(&self.closed),
        }
    }
}

impl Participant {
    /// Joins the domain as a node of this name.
    ///
    /// # Errors
    /// The domain, an interface or the name cannot be used.
    pub fn join(config: &RosConfig, name: &str) -> Result<Self, RosError> {
        let failed = |what: &str, why: String| RosError::Join {
            domain: config.domain,
            reason: format!("{what}: {why}"),
        };
        let participant = join(config)?;
        let quality = quality(true);
        let publisher = participant
            .create_publisher(&quality)
            .map_err(|error| failed("publisher", error.to_string()))?;
        let subscriber = participant
            .create_subscriber(&quality)
            .map_err(|error| failed("subscriber", error.to_string()))?;
        let node = Announcement::new(&participant, name, config.distro)
            .map_err(|error| failed("node", error.to_string()))?;
        let (tasks, started) = mpsc::channel::<Task>(TASKS);
        let end = CancellationToken::new();
        let runtime = Builder::new_current_thread()
            .enable_time()
            .build()
            .map_err(|error| failed("runtime", error.to_string()))?;
        let matched = Matched::default();
        let thread = std::thread::Builder::new()
            .name(format!("dds-{name}"))
            .spawn({
                let (participant, matched, end) = (participant.clone(), matched.clone(), end.clone());
                move || {
                    let work = run(started, participant, matched);
                    LocalSet::new().block_on(&runtime, end.run_until_cancelled(work).map(drop))
                }
            })
            .map_err(|error| failed("thread", error.to_string()))?;
        Ok(Self {
            participant,
            publisher,
            subscriber,
            node: Mutex::new(node),
            matched,
            tasks,
            end,
            thread: Mutex::new(Some(thread)),
            closed: Arc::new(AtomicBool::new(false)),
        })
    }

    /// Publishes a topic by its ROS name: `/cmd_vel` is `rt/cmd_vel` in DDS.
    ///
    /// # Errors
    /// The name cannot be used.
    pub fn publish<M: Serialize>(&self, topic: &str, kind: (&str, &str)) -> Result<Publisher<M>, RosError> {
        let handle = topic_of(&self.participant, topic, kind, &quality(true))?;
        let writer = self
            .publisher
            .create_datawriter_no_key_cdr(&handle, None)
            .map_err(|error| unusable(topic, error))?;
        let guid = writer.guid();
        lock(&self.node).writes(guid);
        Ok(Publisher {
            writer: Arc::new(Mutex::new(writer)),
            readers: self.matched.of(guid, dds_type(kind)),
            topic: topic.to_owned(),
            closed: Arc::clone(&self.closed),
        })
    }

    /// The types under which others read a topic, as ROS writes them: `geometry_msgs/Twist`.
    #[must_use]
    pub fn heard_as(&self, topic: &str) -> Vec<String> {
        heard_as(&self.participant, topic)
    }

    /// Hears a topic by its ROS name; `deliver` runs on the participant's thread and returns soon. Returns the topic's
    /// writers; dropping them changes nothing.
    ///
    /// # Errors
    /// The name cannot be used.
    pub fn subscribe<M: DeserializeOwned + Send + 'static>(
        &self,
        topic: &str,
        kind: (&str, &str),
        reliable: bool,
        deliver: impl Fn(M) + Send + Sync + 'static,
    ) -> Result<Peers, RosError> {
        let handle = topic_of(&self.participant, topic, kind, &quality(reliable))?;
        let reader: SimpleDataReaderCdr<M> = self
            .subscriber
            .create_simple_datareader_no_key(&handle, None)
            .map_err(|error| unusable(topic, error))?;
        lock(&self.node).reads(reader.guid());
        let writers = self.matched.of(reader.guid(), dds_type(kind));
        let name = topic.to_owned();
        self.start(move || async move {
            let mut stream = Box::pin(reader.as_async_stream());
            while let Some(message) = stream.next().await {
                match message {
                    Ok(message) => deliver(message.into_value()),
                    Err(error) => tracing::warn!(topic = name, %error, "a message that cannot be read"),
                }
            }
        })?;
        Ok(writers)
    }

    /// Runs a task on the participant's thread; it ends with the participant.
    ///
    /// # Errors
    /// The participant is closed.
    pub fn start<F: Future<Output = ()> + 'static>(
        &self,
        task: impl FnOnce() -> F + Send + 'static,
    ) -> Result<(), RosError> {
        self.tasks
            .try_send(Box::new(move || Box::pin(task())))
            .map_err(|_| RosError::Closed)
    }

    /// Ends the thread; nothing is heard or published afterwards.
    pub fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.end.cancel();
        if let Some(thread) = lock(&self.thread).take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Participant {
    fn drop(&mut self) {
        self.close();
    }
}

/// The work of the participant's thread: discovery, and the tasks that are started.
async fn run(mut started: mpsc::Receiver<Task>, participant: DomainParticipant, matched: Matched) {
    tokio::task::spawn_local(essential(matched.follow(participant)));
    while let Some(task) = started.recv().await {
        tokio::task::spawn_local(essential(task()));
    }
}

/// A robot that is not heard any more looks alive: a panic of a task ends the process.
async fn essential(task: impl Future<Output = ()>) {
    let _essential = Essential::new("a task of the DDS participant");
    task.await;
}

/// Joins the domain of a configuration.
fn join(config: &RosConfig) -> Result<DomainParticipant, RosError> {
    config.check()?;
    let mut builder = DomainParticipantBuilder::new(config.domain);
    if !config.interfaces.is_empty() {
        builder = builder.with_only_networks(config.interfaces.iter().copied());
    }
    builder.build().map_err(|error| RosError::Join {
        domain: config.domain,
        reason: error.to_string(),
    })
}

/// The quality of service that ROS uses by default; a reader that is not reliable hears reliable and other writers
/// alike.
fn quality(reliable: bool) -> QosPolicies {
    let reliability = match reliable {
        // A write fails at once where no subscriber acknowledges.
        true => Reliability::Reliable {
            max_blocking_time: rustdds::Duration::ZERO,
        },
        false => Reliability::BestEffort,
    };
    QosPolicyBuilder::new()
        .reliability(reliability)
        .durability(Durability::Volatile)
        .history(History::KeepLast { depth: 10 })
        .build()
}

/// The topic of a ROS name, with the name and type that ROS gives it in DDS.
fn topic_of(
    participant: &DomainParticipant,
    name: &str,
    kind: (&str, &str),
    quality: &QosPolicies,
) -> Result<Topic, RosError> {
    let dds_name = dds_name(name)?;
    participant
        .create_topic(dds_name, dds_type(kind), quality, TopicKind::NoKey)
        .map_err(|error| unusable(name, error))
}

/// `geometry_msgs/Twist` is `geometry_msgs::msg::dds_::Twist_`.
fn dds_type((package, kind): (&str, &str)) -> String {
    format!("{package}::msg::dds_::{kind}_")
}

/// The types under which others read a topic, as ROS writes them, each once.
fn heard_as(participant: &DomainParticipant, topic: &str) -> Vec<String> {
    let Ok(name) = dds_name(topic) else {
        return Vec::new();
    };
    let readers = participant.discovered_readers();
    let readers = readers.iter().map(|reader| &reader.subscription_topic_data);
    let types = readers.filter(|reader| reader.topic_name == name).map(|reader| {
        let dds_type = reader.type_name().replace("::msg::dds_::", "/");
        dds_type.strip_suffix('_').unwrap_or(&dds_type).to_owned()
    });
    types.collect::<BTreeSet<String>>().into_iter().collect()
}

/// `/cmd_vel` and `cmd_vel` are `rt/cmd_vel`: our nodes are in the root namespace.
fn dds_name(name: &str) -> Result<String, RosError> {
    let relative = name.strip_prefix('/').unwrap_or(name);
    let is_word = |word: &str| {
        word.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && word
                .chars()
                .all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
    };
    match relative.split('/').all(is_word) {
        true => Ok(format!("rt/{relative}")),
        false => Err(unusable(
            name,
            "expected words of letters, digits and underscores with / between them, such as /robot/cmd_vel",
        )),
    }
}

/// Degrees as the radians of the robots' messages.
#[allow(
    clippy::cast_possible_truncation,
    reason = "an angle has no more digits than a float"
)]
pub(crate) fn radians(degrees: f64) -> f32 {
    degrees.to_radians() as f32
}

fn unusable(topic: &str, reason: impl ToString) -> RosError {
    RosError::Topic {
        topic: topic.to_owned(),
        reason: reason.to_string(),
    }
}

impl<M: Serialize> Publisher<M> {
    /// Sends a message to the subscribers that are there. Never blocks.
    ///
    /// # Errors
    /// The participant is closed, or the message could not be sent.
    pub fn publish(&self, message: M) -> Result<(), RosError> {
        if self.closed.load(Ordering::SeqCst) {
            return Err(RosError::Closed);
        }
        lock(&self.writer)
            .write(message, Some(Timestamp::now()))
            .map_err(|error| unusable(&self.topic, why(&error)))
    }

    /// Whether a reader has been there for long enough to hear what is published now.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.readers.are_ready()
    }

    /// Waits until a reader has been there for long enough.
    ///
    /// # Errors
    /// There was none within `patience`.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn ready(&self, patience: Duration) -> Result<(), RosError> {
        let end = Instant::now() + patience;
        while !self.is_ready() {
            if Instant::now() >= end {
                return Err(RosError::NoReader {
                    topic: self.topic.clone(),
                    waited: patience,
                });
            }
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    }
}

fn why<D>(error: &WriteError<D>) -> &'static str {
    // The error carries the whole message.
    match error {
        WriteError::WouldBlock { .. } => "the queue is full: no subscriber acknowledges",
        WriteError::Poisoned { .. } | WriteError::Internal { .. } => "the participant has failed",
        _ => "it was not accepted",
    }
}
