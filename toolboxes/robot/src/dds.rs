//! A participant in a DDS domain, which is what ROS 2 topics and the robots' own interfaces are made of.
//!
//! Owns one participant, its node and one thread on which discovery and subscriptions run, so that neither needs the
//! runtime of whoever uses it. Publishing never blocks. A publisher is ready when a reader has been there for 200 ms:
//! what is published earlier is lost, because the reader does not know the writer yet. Read [`Participant`].

pub mod asked;
pub mod booster;
pub(crate) mod shout;
pub mod unitree;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use futures_util::future::LocalBoxFuture;
use futures_util::{FutureExt, StreamExt};
use ros2_client::qos::{History, WhenFull};
use ros2_client::{
    COMPILED_ROS_DISTRO, Context, MessageTypeName, Name, Node, NodeName, NodeOptions, QosProfile,
};
use rustdds::DomainParticipantBuilder;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::runtime::Builder;
use tokio::sync::mpsc;
use tokio::task::LocalSet;
use tokio_util::sync::CancellationToken;

use crate::ros::{RosConfig, RosError};

/// How long a reader must have been known before something is published for it.
pub const SETTLE: Duration = Duration::from_millis(200);
/// Between two looks at who is there.
const LOOK: Duration = Duration::from_millis(5);

/// A participant in a DDS domain. Dropping it leaves the domain.
pub struct Participant {
    node: Arc<Mutex<Node>>,
    tasks: mpsc::Sender<Task>,
    end: CancellationToken,
    thread: Mutex<Option<JoinHandle<()>>>,
    closed: Arc<AtomicBool>,
    reliable: QosProfile,
}

/// Makes a future on the participant's thread: those of the library stay on the thread that made them.
type Task = Box<dyn FnOnce() -> LocalBoxFuture<'static, ()> + Send>;

/// Tasks that wait to be started: an adapter starts fewer than ten.
const TASKS: usize = 64;

/// Publishes one topic. Clones publish to the same one.
pub struct Publisher<M: Serialize> {
    inner: Arc<Mutex<ros2_client::Publisher<M>>>,
    node: Arc<Mutex<Node>>,
    topic: String,
    /// Since when there is a reader.
    since: Arc<Mutex<Option<Instant>>>,
    closed: Arc<AtomicBool>,
}

impl<M: Serialize> Clone for Publisher<M> {
    fn clone(&self) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
            node: Arc::clone(&self.node),
            topic: self.topic.clone(),
            since: Arc::clone(&self.since),
            closed: Arc::clone(&self.closed),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The library's calls keep its own state; nothing of ours is half done.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Participant {
    /// Joins the domain as a node of this name.
    ///
    /// # Errors
    /// The domain, an interface or the name cannot be used.
    pub fn join(config: &RosConfig, name: &str) -> Result<Self, RosError> {
        config.check()?;
        let failed = |what: &str, why: String| RosError::Join {
            domain: config.domain,
            reason: format!("{what}: {why}"),
        };
        let mut builder = DomainParticipantBuilder::new(config.domain);
        if !config.interfaces.is_empty() {
            builder = builder.with_only_networks(config.interfaces.iter().copied());
        }
        let participant = builder
            .build()
            .map_err(|error| failed("participant", error.to_string()))?;
        let context = Context::from_domain_participant(participant)
            .map_err(|error| failed("context", format!("{error:?}")))?;
        let node_name =
            NodeName::new("/", name).map_err(|error| failed("node name", format!("{error:?}")))?;
        let options = NodeOptions::new()
            .enable_rosout(false)
            .start_parameter_services(false);
        let mut node = context
            .new_node(node_name, options)
            .map_err(|error| failed("node", format!("{error:?}")))?;
        let spinner = node
            .spinner()
            .map_err(|error| failed("spinner", format!("{error:?}")))?;
        let (tasks, started) = mpsc::channel::<Task>(TASKS);
        let end = CancellationToken::new();
        let runtime = Builder::new_current_thread()
            .enable_time()
            .build()
            .map_err(|error| failed("runtime", error.to_string()))?;
        let thread = std::thread::Builder::new()
            .name(format!("dds-{name}"))
            .spawn({
                let end = end.clone();
                move || {
                    LocalSet::new()
                        .block_on(&runtime, end.run_until_cancelled(run(started, spinner)).map(drop))
                }
            })
            .map_err(|error| failed("thread", error.to_string()))?;
        Ok(Self {
            node: Arc::new(Mutex::new(node)),
            tasks,
            end,
            thread: Mutex::new(Some(thread)),
            closed: Arc::new(AtomicBool::new(false)),
            reliable: QosProfile::publisher_default()
                .reliability_reliable(WhenFull::Fail)
                .history(History::KeepLast { depth: 10 }),
        })
    }

    /// Publishes a topic by its ROS name: `/cmd_vel` is `rt/cmd_vel` in DDS.
    ///
    /// # Errors
    /// The name cannot be used.
    pub fn publish<M: Serialize>(
        &self,
        topic: &str,
        (package, kind): (&str, &str),
    ) -> Result<Publisher<M>, RosError> {
        let mut node = lock(&self.node);
        let handle = topic_of(&node, topic, package, kind, &self.reliable)?;
        let inner = node
            .create_publisher(&handle, None)
            .map_err(|error| RosError::Topic {
                topic: topic.to_owned(),
                reason: format!("{error:?}"),
            })?;
        drop(node);
        Ok(Publisher {
            inner: Arc::new(Mutex::new(inner)),
            node: Arc::clone(&self.node),
            topic: topic.to_owned(),
            since: Arc::new(Mutex::new(None)),
            closed: Arc::clone(&self.closed),
        })
    }

    /// Hears a topic by its ROS name; `deliver` runs on the participant's thread and returns soon.
    ///
    /// # Errors
    /// The name cannot be used.
    pub fn subscribe<M: DeserializeOwned + Send + 'static>(
        &self,
        topic: &str,
        (package, kind): (&str, &str),
        reliable: bool,
        deliver: impl Fn(M) + Send + Sync + 'static,
    ) -> Result<(), RosError> {
        let failed = |reason: String| RosError::Topic {
            topic: topic.to_owned(),
            reason,
        };
        let quality = match reliable {
            true => self.reliable.clone(),
            // Hears reliable and other writers alike.
            false => self.reliable.clone().reliability_best_effort(),
        };
        let mut node = lock(&self.node);
        let handle = topic_of(&node, topic, package, kind, &quality)?;
        let subscription = node
            .create_subscription::<M>(&handle, None)
            .map_err(|error| failed(format!("{error:?}")))?;
        drop(node);
        let name = topic.to_owned();
        self.start(move || async move {
            let mut stream = Box::pin(subscription.async_stream());
            while let Some(message) = stream.next().await {
                match message {
                    Ok((message, _)) => deliver(message),
                    Err(error) => tracing::warn!(topic = name, ?error, "a message that cannot be read"),
                }
            }
        })
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

/// What the participant's thread does: discovery, and whatever is started.
async fn run(mut started: mpsc::Receiver<Task>, spinner: ros2_client::dds::Spinner) {
    tokio::task::spawn_local(async move {
        if let Err(error) = spinner.spin().await {
            tracing::warn!(?error, "discovery has ended");
        }
    });
    while let Some(task) = started.recv().await {
        tokio::task::spawn_local(task());
    }
}

fn topic_of(
    node: &Node,
    topic: &str,
    package: &str,
    kind: &str,
    quality: &QosProfile,
) -> Result<rustdds::Topic, RosError> {
    let failed = |reason: String| RosError::Topic {
        topic: topic.to_owned(),
        reason,
    };
    let name = Name::parse(topic).map_err(|error| failed(format!("{error:?}")))?;
    node.create_topic(&name, MessageTypeName::new(package, kind), quality)
        .map_err(|error| failed(format!("{error:?}")))
}

impl<M: Serialize> Publisher<M> {
    /// Sends a message to whoever is there. Never blocks.
    ///
    /// # Errors
    /// The participant is closed, or the message could not be sent.
    pub fn publish(&self, message: M) -> Result<(), RosError> {
        if self.closed.load(Ordering::SeqCst) {
            return Err(RosError::Closed);
        }
        lock(&self.inner)
            .publish(message)
            .map_err(|error| RosError::Topic {
                topic: self.topic.clone(),
                reason: why(&error),
            })
    }

    /// How many readers there are.
    #[must_use]
    pub fn readers(&self) -> usize {
        let guid = lock(&self.inner);
        let readers = guid.get_subscription_count(&lock(&self.node));
        let mut since = lock(&self.since);
        match (readers, *since) {
            (0, _) => *since = None,
            (_, None) => *since = Some(Instant::now()),
            _ => {}
        }
        readers
    }

    /// Whether a reader has been there for long enough to hear what is published now.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.readers() > 0 && lock(&self.since).is_some_and(|since| since.elapsed() >= SETTLE)
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
                return Err(RosError::Nobody {
                    topic: self.topic.clone(),
                    waited: patience,
                });
            }
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    }
}

fn why<D>(error: &ros2_client::WriteError<D>) -> String {
    // The error carries the whole message.
    match error {
        ros2_client::WriteError::WouldBlock { .. } => "the queue is full: nobody acknowledges".to_owned(),
        ros2_client::WriteError::Poisoned { .. } | ros2_client::WriteError::Internal { .. } => {
            "the participant has failed".to_owned()
        }
        _ => "it was not accepted".to_owned(),
    }
}

/// Which ROS 2 distribution this build speaks, such as `humble`.
#[must_use]
pub fn distro() -> &'static str {
    COMPILED_ROS_DISTRO.as_str()
}
