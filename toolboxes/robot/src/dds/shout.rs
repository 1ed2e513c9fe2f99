//! One topic, published at once by a new process: the stop after the toolbox's process has died.
//!
//! It has no ROS node, no subscriptions and no thread of its own, so that readers hear it sooner.

use std::time::{Duration, Instant};

use rustdds::DomainParticipant;
use rustdds::no_key::DataWriterCdr;
use serde::Serialize;

use super::{dds_type, join, quality, topic_of, unusable};
use crate::ros::config::RosConfig;
use crate::ros::error::RosError;

/// How long it publishes once there is a subscriber.
const LASTING: Duration = Duration::from_millis(250);
/// Publishes one topic until a subscriber has heard it.
pub(crate) struct Shout<M: Serialize> {
    participant: DomainParticipant,
    writer: DataWriterCdr<M>,
    topic: String,
    dds_type: String,
}

impl<M: Serialize> Shout<M> {
    /// Joins the domain for a topic by its ROS name.
    pub(crate) fn open(config: &RosConfig, topic: &str, kind: (&str, &str)) -> Result<Self, RosError> {
        let participant = join(config)?;
        let quality = quality(true);
        let handle = topic_of(&participant, topic, kind, &quality)?;
        let writer = participant
            .create_publisher(&quality)
            .and_then(|publisher| publisher.create_datawriter_no_key_cdr(&handle, None))
            .map_err(|error| unusable(topic, error))?;
        Ok(Self {
            participant,
            writer,
            topic: topic.to_owned(),
            dds_type: dds_type(kind),
        })
    }

    /// Whether there is a subscriber of this type, settled or not.
    fn is_heard(&self) -> bool {
        let name = super::dds_name(&self.topic).unwrap_or_default();
        let readers = self.participant.discovered_readers();
        let mut readers = readers.iter().map(|reader| &reader.subscription_topic_data);
        readers.any(|reader| reader.topic_name == name && *reader.type_name() == self.dds_type)
    }

    /// Publishes these messages every `again` until a subscriber has been there for a while; blocks for at most
    /// `patience`. It does not wait for a reader to settle: a message that is lost does no harm.
    pub(crate) fn say(
        &self,
        patience: Duration,
        again: Duration,
        messages: impl Fn() -> Vec<M>,
    ) -> Result<(), RosError> {
        let end = Instant::now() + patience;
        let mut heard = None;
        loop {
            for message in messages() {
                // A full queue means that no subscriber acknowledges yet.
                let _ = self.writer.write(message, None);
            }
            if heard.is_none() && self.is_heard() {
                heard = Some(Instant::now());
            }
            match heard {
                Some(heard) if heard.elapsed() >= LASTING => return Ok(()),
                None if Instant::now() >= end => {
                    return Err(RosError::NoReader {
                        topic: self.topic.clone(),
                        waited: patience,
                    });
                }
                _ => std::thread::sleep(again),
            }
        }
    }
}
