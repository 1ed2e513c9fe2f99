//! One topic, published from nothing and at once: for a stop that nobody is left to say.
//!
//! Less than a node: no announcement to ROS, no subscriptions, no thread of our own, so that it is heard sooner.

use std::time::{Duration, Instant};

use rustdds::no_key::DataWriterCdr;
use rustdds::policy::{History, Reliability};
use rustdds::{DomainParticipant, DomainParticipantBuilder, QosPolicyBuilder, TopicKind};
use serde::Serialize;

use crate::ros::{RosConfig, RosError};

/// Between two times it is said.
const AGAIN: Duration = Duration::from_millis(10);
/// How often it is said after somebody hears.
const TIMES: u32 = 25;

/// Publishes one topic until it was heard.
pub(crate) struct Shout<M: Serialize> {
    participant: DomainParticipant,
    writer: DataWriterCdr<M>,
    topic: String,
}

impl<M: Serialize> Shout<M> {
    /// Joins the domain for a topic by its ROS name.
    pub(crate) fn open(
        config: &RosConfig,
        topic: &str,
        (package, kind): (&str, &str),
    ) -> Result<Self, RosError> {
        config.check()?;
        let failed = |reason: String| RosError::Join {
            domain: config.domain,
            reason,
        };
        let mut builder = DomainParticipantBuilder::new(config.domain);
        if !config.interfaces.is_empty() {
            builder = builder.with_only_networks(config.interfaces.iter().copied());
        }
        let participant = builder.build().map_err(|error| failed(error.to_string()))?;
        let quality = QosPolicyBuilder::new()
            .reliability(Reliability::Reliable {
                max_blocking_time: rustdds::Duration::ZERO,
            })
            .history(History::KeepLast { depth: 10 })
            .build();
        let name = format!("rt{topic}");
        let handle = participant
            .create_topic(
                name.clone(),
                format!("{package}::msg::dds_::{kind}_"),
                &quality,
                TopicKind::NoKey,
            )
            .map_err(|error| failed(error.to_string()))?;
        let publisher = participant
            .create_publisher(&quality)
            .map_err(|error| failed(error.to_string()))?;
        let writer = publisher
            .create_datawriter_no_key_cdr::<M>(&handle, None)
            .map_err(|error| failed(error.to_string()))?;
        Ok(Self {
            participant,
            writer,
            topic: name,
        })
    }

    /// Whether anybody hears, settled or not.
    fn is_heard(&self) -> bool {
        let readers = self.participant.discovered_readers();
        readers
            .iter()
            .any(|reader| reader.subscription_topic_data.topic_name == self.topic)
    }

    /// Says these messages again and again until they were heard for a while; blocks for at most `patience`. Not only
    /// once a reader has settled: each is heard or lost, and the lost ones cost nothing.
    pub(crate) fn say(&self, patience: Duration, messages: impl Fn() -> Vec<M>) -> Result<(), RosError> {
        let end = Instant::now() + patience;
        let mut heard = 0;
        while heard < TIMES {
            if Instant::now() >= end && heard == 0 {
                return Err(RosError::Nobody {
                    topic: self.topic.clone(),
                    waited: patience,
                });
            }
            for message in messages() {
                // A full queue means that nobody acknowledges yet.
                let _ = self.writer.write(message, None);
            }
            heard += u32::from(self.is_heard());
            std::thread::sleep(AGAIN);
        }
        Ok(())
    }
}
