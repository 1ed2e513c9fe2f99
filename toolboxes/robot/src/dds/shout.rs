//! One topic, published at once by a new process: the stop after the toolbox's process has died.
//!
//! It has no ROS node and no subscriptions, so that readers hear it sooner.

use std::time::{Duration, Instant};

use futures_util::FutureExt;
use ros_graph::dds::Dds;
use ros_graph::definition::TypeName;
use ros_graph::error::GraphError;
use ros_graph::graph::{Graph, Publisher};
use serde::Serialize;
use std::sync::Arc;

use super::participant::library;
use crate::ros::carrier;
use crate::ros::config::RosConfig;
use crate::ros::error::RosError;

/// How long it publishes once there is a subscriber.
const LASTING: Duration = Duration::from_millis(250);

/// Publishes one topic until a subscriber has heard it.
pub(crate) struct Shout {
    publisher: Arc<dyn Publisher>,
    topic: String,
    config: RosConfig,
    /// Left when this is dropped.
    _dds: Dds,
}

impl Shout {
    /// Joins the domain for a topic by its ROS name.
    pub(crate) fn open(config: &RosConfig, topic: &str, of: &str) -> Result<Self, RosError> {
        let dds = carrier::dds(&config.dds().present().0, library(config)?)?;
        let of: TypeName = of.parse().map_err(GraphError::from)?;
        // The type is known, so that nothing is waited for.
        let publisher = dds.publisher(topic, &of).now_or_never();
        Ok(Self {
            publisher: publisher.unwrap_or(Err(GraphError::Closed))?,
            topic: topic.to_owned(),
            config: config.clone(),
            _dds: dds,
        })
    }

    /// Publishes these messages every `again` until a subscriber has been there for a while; blocks for at most
    /// `patience`. It does not wait for a reader to settle: a message that is lost does no harm.
    pub(crate) fn say<M: Serialize>(
        &self,
        patience: Duration,
        again: Duration,
        messages: impl Fn() -> Vec<M>,
    ) -> Result<(), RosError> {
        let end = Instant::now() + patience;
        let mut since = None;
        loop {
            for message in messages() {
                let value = serde_json::to_value(message).map_err(|error| RosError::Topic {
                    topic: self.topic.clone(),
                    reason: error.to_string(),
                })?;
                match self.publisher.publish(&value) {
                    Err(GraphError::Unheard { .. } | GraphError::OtherType { .. }) => {}
                    // A full queue means that no subscriber acknowledges yet.
                    Ok(()) | Err(GraphError::Lost { .. }) => drop(since.get_or_insert_with(Instant::now)),
                    Err(error) => return Err(error.into()),
                }
            }
            match since {
                Some(since) if since.elapsed() >= LASTING => return Ok(()),
                None if Instant::now() >= end => {
                    return Err(self.config.explain(RosError::NoReader {
                        topic: self.topic.clone(),
                        waited: patience,
                    }));
                }
                _ => std::thread::sleep(again),
            }
        }
    }
}
