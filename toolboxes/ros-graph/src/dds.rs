//! The graph over DDS, as ROS 2 has it, without a ROS installation.
//!
//! One participant and one thread. Types are looked up in a [`Library`](crate::library::Library); what is not there is
//! asked from the graph, where the robot has Jazzy or newer. Read [`Dds`].

mod action;
mod config;
mod domain;
mod filling;
mod names;
mod node;
mod participant;
mod peers;
mod publisher;
mod raw;
mod service;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use parking_lot::Mutex;
use serde_json::{Value, json};

pub use self::config::DdsConfig;
pub use self::domain::Dds;
use self::names::{dds_name, dds_type};
use self::participant::Quality;
pub use self::peers::SETTLE;
use self::peers::{of_topic, types};
use self::publisher::TopicPublisher;
use crate::definition::{Definition, TypeName};
use crate::error::GraphError;
use crate::graph::{Entities, Goal, Graph, Publisher, Reply, Subscription, one_type};
use crate::inbox::{Bounds, Inbox};
use crate::shape::Shape;

impl Dds {
    /// Hears a topic in a type that is known here, whether or not something publishes it yet. What is not `reliable` hears every
    /// publisher, and none waits for it.
    ///
    /// # Errors
    /// The name cannot be used, or the type has no definition here.
    pub fn hear(
        &self,
        topic: &str,
        of: &TypeName,
        reliable: bool,
        bounds: Bounds,
    ) -> Result<Subscription, GraphError> {
        let quality = Quality {
            reliable,
            keeps: false,
            depth: 10,
        };
        self.listen(topic, of.clone(), &self.known(of)?, Some(quality), bounds)
    }

    /// Whether what a publisher of this topic and type says is heard: it has been there for long enough.
    #[must_use]
    pub fn is_written(&self, topic: &str, of: &TypeName) -> bool {
        let endpoints = self.inner.participant.peers.now();
        let dds_topic = dds_name("rt", topic, "").unwrap_or_default();
        let mut writers = of_topic(&endpoints.writers, &dds_topic).into_iter();
        writers.any(|writer| writer.dds_type == dds_type(of) && writer.since.elapsed() >= SETTLE)
    }

    /// Hears a topic in this quality, or in one that every publisher offers.
    fn listen(
        &self,
        topic: &str,
        of: TypeName,
        shape: &Arc<Shape>,
        quality: Option<Quality>,
        bounds: Bounds,
    ) -> Result<Subscription, GraphError> {
        let dds_topic = dds_name("rt", topic, "")?;
        let inbox = Arc::new(Inbox::new(bounds));
        let filling = self.filling(&dds_topic, shape, &inbox);
        let guard = match quality {
            Some(quality) => filling.begin(quality)?,
            None => filling.fit()?,
        };
        let (peers, own) = (self.inner.participant.peers.clone(), dds_type(&of));
        let sources = move || {
            let endpoints = peers.now();
            of_topic(&endpoints.writers, &dds_topic)
                .iter()
                .any(|writer| writer.dds_type == own)
        };
        Ok(Subscription::new(
            topic,
            of,
            inbox,
            Box::new(sources),
            Box::new(guard),
        ))
    }
}

impl Graph for Dds {
    fn entities(&self) -> Reply<'_, Entities> {
        async move { Ok(self.list()) }.boxed()
    }

    fn definitions<'a>(&'a self, of: &'a TypeName) -> Reply<'a, Vec<Definition>> {
        self.describe(of).boxed()
    }

    fn subscribe<'a>(
        &'a self,
        topic: &'a str,
        of: Option<&'a TypeName>,
        bounds: Bounds,
        patience: Duration,
    ) -> Reply<'a, Subscription> {
        async move {
            let dds_topic = dds_name("rt", topic, "")?;
            let written = || {
                let endpoints = self.inner.participant.peers.now();
                let writers = of_topic(&endpoints.writers, &dds_topic);
                let hash = writers.iter().find_map(|writer| writer.hash.clone());
                (!writers.is_empty()).then(|| (types(&writers), hash))
            };
            // A topic that nothing publishes yet is heard as well, where its type is given.
            let patience = if of.is_some() { Duration::ZERO } else { patience };
            let (found, hash) = match (self.wait(patience, written).await, of) {
                (Some(written), _) => written,
                (None, Some(_)) => (BTreeSet::new(), None),
                (None, None) => {
                    return Err(GraphError::absent("topic", topic, patience));
                }
            };
            let of = one_type(topic, of, &found)?;
            let shape = self.shape(&of, &of, hash).await?;
            self.listen(topic, of, &shape, None, bounds)
        }
        .boxed()
    }

    fn heard_as<'a>(&'a self, topic: &'a str) -> Reply<'a, BTreeSet<String>> {
        async move {
            let endpoints = self.inner.participant.peers.now();
            Ok(types(&of_topic(&endpoints.readers, &dds_name("rt", topic, "")?)))
        }
        .boxed()
    }

    fn publisher<'a>(&'a self, topic: &'a str, of: &'a TypeName) -> Reply<'a, Arc<dyn Publisher>> {
        async move {
            let dds_topic = dds_name("rt", topic, "")?;
            let endpoints = self.inner.participant.peers.now();
            let readers = of_topic(&endpoints.readers, &dds_topic);
            one_type(topic, Some(of), &types(&readers))?;
            let hash = readers.iter().find_map(|reader| reader.hash.clone());
            let shape = self.shape(of, of, hash).await?;
            let quality = Quality {
                reliable: true,
                keeps: false,
                depth: 10,
            };
            let writer = self
                .inner
                .participant
                .writer(&dds_topic, &dds_type(of), quality)?;
            let publisher: Arc<dyn Publisher> = Arc::new(TopicPublisher {
                participant: Arc::clone(&self.inner.participant),
                writer: Mutex::new(writer),
                shape,
                cdr: self.inner.cdr,
                topic: topic.to_owned(),
                dds_topic,
                made: Instant::now(),
                known: AtomicBool::new(false),
            });
            Ok(publisher)
        }
        .boxed()
    }

    fn call<'a>(&'a self, service: &'a str, request: &'a Value, patience: Duration) -> Reply<'a, Value> {
        self.ask(service, None, request, patience).boxed()
    }

    fn send_goal<'a>(&'a self, action: &'a str, goal: &'a Value, patience: Duration) -> Reply<'a, Goal> {
        action::send(self, action, goal, patience).boxed()
    }

    fn cancel_all<'a>(&'a self, action: &'a str, patience: Duration) -> Reply<'a, ()> {
        async move { action::cancel(self, action, &json!({}), patience).await }.boxed()
    }
}
