//! The topics of a K1 in a graph of ROS, whatever carries it.

use std::collections::HashMap;
use std::future::Future;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use ros_graph::definition::{Kind as TypeKind, TypeName};
use ros_graph::error::GraphError;
use ros_graph::graph::{Graph, Publisher};
use ros_graph::inbox::Bounds;
use tokio::runtime::Runtime;

use super::backend::{Deliver, RosBackend};
use super::carrier::runtime;
use super::error::RosError;
use super::message::{Kind, RosMessage};

/// How long the carrier may take for what it does at once.
const AT_ONCE: Duration = Duration::from_secs(2);
/// The pause before a topic that cannot be heard is tried again.
const AGAIN: Duration = Duration::from_millis(500);

/// What was announced, by topic.
type Announced = HashMap<String, (Kind, Arc<dyn Publisher>)>;

/// Topics over a graph.
pub(super) struct GraphBackend {
    graph: Arc<dyn Graph>,
    publishers: Mutex<Announced>,
    /// `None` when it was closed.
    runtime: Mutex<Option<Runtime>>,
}

impl GraphBackend {
    pub(super) fn over(name: &str, graph: Arc<dyn Graph>) -> Result<Self, RosError> {
        Ok(Self {
            graph,
            publishers: Mutex::default(),
            runtime: Mutex::new(Some(runtime(name)?)),
        })
    }

    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) -> Result<(), RosError> {
        let runtime = self.runtime.lock().unwrap_or_else(PoisonError::into_inner);
        drop(runtime.as_ref().ok_or(RosError::Closed)?.spawn(work));
        Ok(())
    }

    /// Waits for the carrier from any thread, also from one of a runtime.
    fn wait<T: Send + 'static>(
        &self,
        asked: impl Future<Output = Result<T, GraphError>> + Send + 'static,
    ) -> Result<T, RosError> {
        let (answer, answered) = sync_channel(1);
        self.spawn(async move { drop(answer.send(asked.await)) })?;
        Ok(answered
            .recv_timeout(AT_ONCE)
            .unwrap_or(Err(GraphError::Closed))?)
    }

    fn publisher(&self, topic: &str) -> Option<(Kind, Arc<dyn Publisher>)> {
        let publishers = self.publishers.lock().unwrap_or_else(PoisonError::into_inner);
        publishers.get(topic).cloned()
    }
}

fn type_of(kind: Kind) -> TypeName {
    let (package, name) = kind.type_name();
    TypeName::new(package, TypeKind::Message, name)
}

impl RosBackend for GraphBackend {
    fn heard_as(&self, topic: &str) -> Vec<String> {
        let graph = Arc::clone(&self.graph);
        let found = self.wait(async move { graph.entities().await });
        let found = found.into_iter().flat_map(|found| found.topics);
        let types = found.filter(|found| found.name == topic && found.sinks != Some(0));
        types
            .flat_map(|found| found.types)
            .map(|of| of.replace("/msg/", "/"))
            .collect()
    }

    fn advertise(&self, topic: &str, kind: Kind) -> Result<(), RosError> {
        let publishers = || self.publishers.lock().unwrap_or_else(PoisonError::into_inner);
        // The old one goes first: a name never has two types of ours.
        drop(publishers().remove(topic));
        let (graph, name) = (Arc::clone(&self.graph), topic.to_owned());
        let made = self.wait(async move { graph.publisher(&name, &type_of(kind)).await })?;
        publishers().insert(topic.to_owned(), (kind, made));
        Ok(())
    }

    fn publish(&self, topic: &str, message: RosMessage) -> Result<(), RosError> {
        let other = |reason: String| RosError::Topic {
            topic: topic.to_owned(),
            reason,
        };
        let (_, publisher) = self
            .publisher(topic)
            .filter(|(kind, _)| *kind == message.kind())
            .ok_or_else(|| other("it was not announced with this kind of message".to_owned()))?;
        let value = serde_json::to_value(&message).map_err(|error| other(error.to_string()))?;
        match publisher.publish(&value) {
            // What nothing hears is lost, as on any topic.
            Ok(()) | Err(GraphError::Unheard { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn subscribe(&self, topic: &str, kind: Kind, deliver: Deliver) -> Result<(), RosError> {
        let (graph, topic) = (Arc::clone(&self.graph), topic.to_owned());
        self.spawn(async move {
            loop {
                let of = type_of(kind);
                let heard = graph.subscribe(&topic, Some(&of), Bounds::default(), Duration::ZERO);
                if let Ok(mut heard) = heard.await {
                    loop {
                        match heard.next(AT_ONCE).await {
                            Ok(message) => RosMessage::of(kind, message.value).into_iter().for_each(&deliver),
                            Err(GraphError::Silent { .. } | GraphError::Codec(_)) => {}
                            Err(_) => break,
                        }
                    }
                }
                tokio::time::sleep(AGAIN).await;
            }
        })
    }

    fn is_heard(&self, topic: &str) -> bool {
        // Without patience it is answered at once.
        let ready = self
            .publisher(topic)
            .and_then(|(_, publisher)| publisher.ready(Duration::ZERO).now_or_never());
        ready.is_some_and(|ready| ready.is_ok())
    }

    fn close(&self) {
        let runtime = self.runtime.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(runtime) = runtime {
            runtime.shutdown_background();
        }
    }
}

impl Drop for GraphBackend {
    fn drop(&mut self) {
        self.close();
    }
}
