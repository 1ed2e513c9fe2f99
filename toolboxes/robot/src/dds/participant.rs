//! The graph that was joined, and the threads on which its subscriptions run.
//!
//! Read [`Participant`].

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use futures_util::FutureExt;
use ovos_toolbox_sdk::Essential;
use parking_lot::Mutex;
use ros_graph::dds::Dds;
use ros_graph::definition::TypeName;
use ros_graph::error::GraphError;
use ros_graph::graph::{Graph, Subscription};
use ros_graph::inbox::{Bounds, Unread};
use ros_graph::library::Library;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::runtime::Runtime;

use crate::ros::carrier;
use crate::ros::config::RosConfig;
use crate::ros::error::RosError;

/// How long the carrier may take for what it does at once.
const AT_ONCE: Duration = Duration::from_secs(2);
/// The pause before a topic that cannot be heard is tried again.
const AGAIN: Duration = Duration::from_millis(500);

/// The vendors' own messages.
const VENDORS: &str = include_str!("../../interfaces/vendors.txt");

/// A participant in a graph. Dropping it leaves the graph.
pub struct Participant {
    carrier: Carrier,
    /// `None` when it was closed.
    runtime: Mutex<Option<Runtime>>,
    closed: Arc<AtomicBool>,
}

/// What carries the graph.
#[derive(Clone)]
enum Carrier {
    Dds(Dds),
    Linked(Arc<dyn Graph>),
}

impl Carrier {
    fn graph(&self) -> &dyn Graph {
        match self {
            Self::Dds(dds) => dds,
            Self::Linked(graph) => graph.as_ref(),
        }
    }

    async fn hear(
        &self,
        topic: &str,
        of: &TypeName,
        reliable: bool,
        bounds: Bounds,
    ) -> Result<Subscription, GraphError> {
        match self {
            Self::Dds(dds) => dds.hear(topic, of, reliable, bounds),
            Self::Linked(graph) => graph.subscribe(topic, Some(of), bounds, Duration::ZERO).await,
        }
    }
}

/// Publishes one topic. Clones publish to the same one.
pub struct Publisher<M> {
    publisher: Arc<dyn ros_graph::graph::Publisher>,
    topic: String,
    closed: Arc<AtomicBool>,
    message: PhantomData<fn(M)>,
}

impl<M> Clone for Publisher<M> {
    fn clone(&self) -> Self {
        Self {
            publisher: Arc::clone(&self.publisher),
            topic: self.topic.clone(),
            closed: Arc::clone(&self.closed),
            message: PhantomData,
        }
    }
}

impl Participant {
    /// Joins a domain over DDS as a node of this name; the vendors' messages are in no installation of ROS.
    ///
    /// # Errors
    /// The domain, an interface or the name cannot be used.
    pub fn join(config: &RosConfig, name: &str) -> Result<Self, RosError> {
        let dds = carrier::dds(&config.dds(), library(config)?)?;
        dds.announce(name)?;
        Self::over(name, Carrier::Dds(dds))
    }

    /// Joins a graph of standard messages: by the carrier that was linked in, over DDS otherwise.
    ///
    /// # Errors
    /// As of [`Participant::join`].
    pub(crate) fn join_graph(config: &RosConfig, name: &str) -> Result<Self, RosError> {
        match carrier::linked(config)? {
            Some(join) => Self::over(name, Carrier::Linked(join(name, library(config)?)?)),
            None => Self::join(config, name),
        }
    }

    fn over(name: &str, carrier: Carrier) -> Result<Self, RosError> {
        let participant = Self {
            carrier,
            runtime: Mutex::new(Some(carrier::runtime(name)?)),
            closed: Arc::default(),
        };
        if let Carrier::Dds(dds) = &participant.carrier {
            let (left, closed) = (dds.left(), Arc::clone(&participant.closed));
            participant.start(async move {
                left.await;
                assert!(
                    closed.load(Ordering::SeqCst),
                    "the thread of the domain has ended"
                );
            })?;
        }
        Ok(participant)
    }

    /// Publishes a topic by its ROS name, in a type such as `geometry_msgs/msg/Twist`.
    ///
    /// # Errors
    /// The name cannot be used, or others hear it in other types alone.
    pub fn publish<M: Serialize>(&self, topic: &str, of: &str) -> Result<Publisher<M>, RosError> {
        let of: TypeName = of.parse().map_err(GraphError::from)?;
        let (carrier, name) = (self.carrier.clone(), topic.to_owned());
        let publisher = self.wait(async move { carrier.graph().publisher(&name, &of).await })?;
        Ok(Publisher {
            publisher,
            topic: topic.to_owned(),
            closed: Arc::clone(&self.closed),
            message: PhantomData,
        })
    }

    /// The types under which others read a topic: `geometry_msgs/Twist`.
    pub(crate) fn heard_as(&self, topic: &str) -> Vec<String> {
        // A carrier that has a domain or a node knows them at once.
        let found = self.carrier.graph().heard_as(topic).now_or_never();
        let types = found.and_then(Result::ok).unwrap_or_default();
        types.iter().map(|of| of.replace("/msg/", "/")).collect()
    }

    /// What tells whether that which others publish on a topic of this type is heard by now.
    ///
    /// # Errors
    /// The name of the type cannot be used.
    pub(crate) fn hears(
        &self,
        topic: &str,
        of: &str,
    ) -> Result<impl Fn() -> bool + Send + Sync + 'static, RosError> {
        let (carrier, topic) = (self.carrier.clone(), topic.to_owned());
        let of: TypeName = of.parse().map_err(GraphError::from)?;
        Ok(move || matches!(&carrier, Carrier::Dds(dds) if dds.is_written(&topic, &of)))
    }

    /// Hears every message of a topic; `deliver` runs on a thread of the participant and returns soon.
    ///
    /// # Errors
    /// The name of the type cannot be used, or the participant is closed.
    pub fn subscribe<M: DeserializeOwned + 'static>(
        &self,
        topic: &str,
        of: &str,
        reliable: bool,
        deliver: impl Fn(M) + Send + Sync + 'static,
    ) -> Result<(), RosError> {
        let name = topic.to_owned();
        self.follow(topic, of, reliable, move |unread| match read(unread) {
            Ok(message) => deliver(message),
            Err(error) => tracing::warn!(topic = name, error, "a message that cannot be read"),
        })
    }

    /// Hears every message of a topic, unread; `deliver` runs on a thread of the participant and returns soon.
    ///
    /// # Errors
    /// As of [`Participant::subscribe`].
    pub(crate) fn follow(
        &self,
        topic: &str,
        of: &str,
        reliable: bool,
        deliver: impl Fn(Unread) + Send + Sync + 'static,
    ) -> Result<(), RosError> {
        let carrier = self.carrier.clone();
        let (topic, of): (String, TypeName) = (topic.to_owned(), of.parse().map_err(GraphError::from)?);
        self.start(async move {
            loop {
                if let Ok(heard) = carrier.hear(&topic, &of, reliable, Bounds::default()).await {
                    listen(heard, &deliver).await;
                }
                tokio::time::sleep(AGAIN).await;
            }
        })
    }

    /// Runs a task on a thread of the participant; it ends with the participant.
    ///
    /// # Errors
    /// The participant is closed.
    pub fn start(&self, task: impl Future<Output = ()> + Send + 'static) -> Result<(), RosError> {
        let runtime = self.runtime.lock();
        drop(runtime.as_ref().ok_or(RosError::Closed)?.spawn(essential(task)));
        Ok(())
    }

    /// Waits for the carrier from any thread, also from one of a runtime.
    fn wait<T: Send + 'static>(
        &self,
        asked: impl Future<Output = Result<T, GraphError>> + Send + 'static,
    ) -> Result<T, RosError> {
        let (answer, answered) = sync_channel(1);
        self.start(async move { drop(answer.send(asked.await)) })?;
        Ok(answered
            .recv_timeout(AT_ONCE)
            .unwrap_or(Err(GraphError::Closed))?)
    }

    /// Ends the threads; nothing is heard or published afterwards.
    pub fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        let runtime = self.runtime.lock().take();
        if let Some(runtime) = runtime {
            runtime.shutdown_background();
        }
    }
}

impl Drop for Participant {
    fn drop(&mut self) {
        self.close();
    }
}

/// The types of the standard messages, and of the vendors'.
pub(super) fn library(config: &RosConfig) -> Result<Library, RosError> {
    let mut library = Library::shipped(config.distro).map_err(GraphError::from)?;
    library.add_texts(VENDORS).map_err(GraphError::from)?;
    Ok(library)
}

/// A robot that is not heard any more looks alive: a panic of a task ends the process.
async fn essential(task: impl Future<Output = ()>) {
    let _essential = Essential::new("a task of the DDS participant");
    task.await;
}

/// Delivers what is heard until the subscription has failed.
async fn listen(mut heard: Subscription, deliver: &impl Fn(Unread)) {
    loop {
        match heard.unread(AT_ONCE).await {
            Ok(unread) => deliver(unread),
            Err(GraphError::Silent { .. } | GraphError::Lost { .. }) => {}
            Err(_) => return,
        }
    }
}

/// The message of what came.
pub(super) fn read<M: DeserializeOwned>(unread: Unread) -> Result<M, String> {
    let value = unread().map_err(|error| error.to_string())?;
    serde_json::from_value(value).map_err(|error| error.to_string())
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
        let value = serde_json::to_value(message).map_err(|error| RosError::Topic {
            topic: self.topic.clone(),
            reason: error.to_string(),
        })?;
        match self.publisher.publish(&value) {
            // What nothing hears is lost, as on any topic.
            Ok(()) | Err(GraphError::Unheard { .. } | GraphError::OtherType { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl<M> Publisher<M> {
    /// Whether a reader has been there for long enough to hear what is published now.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.publisher.check_listener().is_ok()
    }
}
