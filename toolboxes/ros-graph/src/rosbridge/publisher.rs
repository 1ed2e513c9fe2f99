//! What sends on one topic over rosbridge, and whether something listens.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use serde_json::{Value, json};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::values::outgoing;
use super::{AGAIN, ROSAPI, Rosbridge};
use crate::error::GraphError;
use crate::graph::{Publisher, Reply};
use crate::shape::Shape;

/// How often the listeners of a topic are looked at.
const LOOK: Duration = Duration::from_millis(500);

/// The number of the connection over which rosapi named a listener last; none is 0. It says nothing of a later connection.
type Heard = Arc<AtomicU64>;

/// The number of no connection.
const NOBODY: u64 = 0;

pub(super) struct TopicPublisher {
    rosbridge: Rosbridge,
    topic: String,
    /// The id of its announcement.
    id: String,
    shape: Arc<Shape>,
    heard: Heard,
    _watching: DropGuard,
}

impl TopicPublisher {
    /// Announces a topic in a type as the graph writes it.
    pub(super) fn announce(rosbridge: &Rosbridge, topic: &str, written: &str, shape: Arc<Shape>) -> Self {
        let id = rosbridge
            .inner
            .link
            .stand("advertise", topic, json!({"type": written}));
        let (end, heard) = (CancellationToken::new(), Heard::default());
        tokio::spawn({
            let (rosbridge, topic, heard, end) = (
                rosbridge.clone(),
                topic.to_owned(),
                Arc::clone(&heard),
                end.clone(),
            );
            async move {
                end.run_until_cancelled(watch_listeners(rosbridge, topic, heard))
                    .await
            }
        });
        Self {
            rosbridge: rosbridge.clone(),
            topic: topic.to_owned(),
            id,
            shape,
            heard,
            _watching: end.drop_guard(),
        }
    }
}

/// Keeps up to date whether something listens to a topic. Only an answer of rosapi changes what is known: one that is late, or an
/// error, tells nothing of the listeners. Without rosapi nothing is ever known to listen.
async fn watch_listeners(rosbridge: Rosbridge, topic: String, heard: Heard) {
    loop {
        let connection = rosbridge.inner.link.connection();
        let answer = rosbridge
            .request("/rosapi/subscribers", &json!({"topic": topic}), ROSAPI)
            .await;
        if let (Some(connection), Ok(answer)) = (connection, answer)
            && let Some(listeners) = answer["subscribers"].as_array()
        {
            let known = if listeners.is_empty() { NOBODY } else { connection };
            heard.store(known, Ordering::SeqCst);
        }
        tokio::time::sleep(LOOK).await;
    }
}

impl TopicPublisher {
    /// # Errors
    /// Nothing is known to listen.
    fn check_listener(&self) -> Result<(), GraphError> {
        match self.rosbridge.inner.link.connection() {
            Some(connection) if self.heard.load(Ordering::SeqCst) == connection => Ok(()),
            _ => Err(GraphError::Unheard {
                topic: self.topic.clone(),
            }),
        }
    }
}

impl Drop for TopicPublisher {
    fn drop(&mut self) {
        let link = &self.rosbridge.inner.link;
        link.withdraw("unadvertise", &self.topic, &self.id);
    }
}

impl Publisher for TopicPublisher {
    fn publish(&self, value: &Value) -> Result<(), GraphError> {
        let message = outgoing(self.rosbridge.inner.cdr, &self.shape, value)?;
        // It may be a stop, which is sent whatever is known of the listeners.
        self.rosbridge.inner.link.send(
            &self.topic,
            json!({"op": "publish", "topic": self.topic, "msg": message}),
        )?;
        self.check_listener()
    }

    fn ready(&self, patience: Duration) -> Reply<'_, ()> {
        async move {
            let end = Instant::now() + patience;
            loop {
                let heard = self.check_listener();
                if heard.is_ok() || Instant::now() >= end {
                    return heard;
                }
                tokio::time::sleep(AGAIN).await;
            }
        }
        .boxed()
    }
}
