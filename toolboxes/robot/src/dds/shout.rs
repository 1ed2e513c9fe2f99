//! One topic, published at once by a new process: the stop after the toolbox's process has died.
//!
//! It has no ROS node, no subscriptions and no thread of its own, so that readers hear it sooner.

use std::time::{Duration, Instant};

use rustdds::DomainParticipant;
use rustdds::no_key::DataWriterCdr;
use serde::Serialize;

use super::{dds_type, heard_as, join, quality, topic_of, unusable};
use crate::ros::Kind;
use crate::ros::config::RosConfig;
use crate::ros::error::RosError;

/// How long it publishes once there is a subscriber.
const LASTING: Duration = Duration::from_millis(250);
/// The pause between two looks at the readers.
const LOOK: Duration = Duration::from_millis(5);

/// Publishes one topic until a subscriber has heard it.
pub(crate) struct Shout<M: Serialize> {
    participant: DomainParticipant,
    writer: DataWriterCdr<M>,
    topic: String,
    dds_type: String,
}

/// A domain that was joined, and a topic in it that has no writer of ours yet.
pub(crate) struct Listening {
    participant: DomainParticipant,
    topic: String,
}

impl Listening {
    /// Joins the domain, to find out what others read under a topic's ROS name.
    pub(crate) fn join(config: &RosConfig, topic: &str) -> Result<Self, RosError> {
        Ok(Self {
            participant: join(config)?,
            topic: topic.to_owned(),
        })
    }

    /// Which of these types others read, as soon as they read one; blocks for at most `patience`.
    pub(crate) fn kinds(&self, offered: &[Kind], patience: Duration) -> Result<Vec<Kind>, RosError> {
        let end = Instant::now() + patience;
        loop {
            let types = heard_as(&self.participant, &self.topic);
            let mut kinds = offered.to_vec();
            kinds.retain(|kind| types.contains(&kind.ros_name()));
            if !kinds.is_empty() {
                return Ok(kinds);
            }
            if Instant::now() >= end {
                return Err(RosError::NoReader {
                    topic: self.topic.clone(),
                    waited: patience,
                });
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Announces the topic with this type.
    pub(crate) fn shout<M: Serialize>(&self, kind: Kind) -> Result<Shout<M>, RosError> {
        Shout::over(self.participant.clone(), &self.topic, kind.type_name())
    }
}

impl<M: Serialize> Shout<M> {
    /// Joins the domain for a topic by its ROS name.
    pub(crate) fn open(config: &RosConfig, topic: &str, kind: (&str, &str)) -> Result<Self, RosError> {
        Self::over(join(config)?, topic, kind)
    }

    fn over(participant: DomainParticipant, topic: &str, kind: (&str, &str)) -> Result<Self, RosError> {
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
