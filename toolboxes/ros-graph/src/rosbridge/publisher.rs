//! What sends on one topic over rosbridge, and whether something listens.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
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

pub(super) struct TopicPublisher {
    rosbridge: Rosbridge,
    topic: String,
    /// The id of its announcement.
    id: String,
    shape: Arc<Shape>,
    heard: Arc<AtomicBool>,
    _watching: DropGuard,
}

impl TopicPublisher {
    /// Announces a topic in a type as the graph writes it.
    pub(super) fn announce(rosbridge: &Rosbridge, topic: &str, written: &str, shape: Arc<Shape>) -> Self {
        let id = rosbridge
            .inner
            .link
            .stand("advertise", topic, json!({"type": written}));
        let (end, heard) = (CancellationToken::new(), Arc::new(AtomicBool::new(false)));
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

/// Keeps up to date whether something listens to a topic. Without rosapi that is not known, and nothing does.
async fn watch_listeners(rosbridge: Rosbridge, topic: String, heard: Arc<AtomicBool>) {
    loop {
        let answer = rosbridge
            .request("/rosapi/subscribers", &json!({"topic": topic}), ROSAPI)
            .await;
        let listeners = answer
            .ok()
            .and_then(|answer| answer["subscribers"].as_array().map(Vec::len));
        heard.store(listeners.unwrap_or_default() > 0, Ordering::SeqCst);
        tokio::time::sleep(LOOK).await;
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
        let link = &self.rosbridge.inner.link;
        if link.is_connected() && !self.heard.load(Ordering::SeqCst) {
            return Err(GraphError::Unheard {
                topic: self.topic.clone(),
            });
        }
        link.send(
            &self.topic,
            json!({"op": "publish", "topic": self.topic, "msg": message}),
        )
    }

    fn ready(&self, patience: Duration) -> Reply<'_, ()> {
        async move {
            let end = Instant::now() + patience;
            while !self.heard.load(Ordering::SeqCst) {
                if Instant::now() >= end {
                    return Err(GraphError::Unheard {
                        topic: self.topic.clone(),
                    });
                }
                tokio::time::sleep(AGAIN).await;
            }
            Ok(())
        }
        .boxed()
    }
}
