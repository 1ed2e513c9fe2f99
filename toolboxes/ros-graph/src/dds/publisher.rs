//! What sends on one topic of DDS.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustdds::dds::WriteError;
use rustdds::{RTPSEntity, Timestamp};
use serde_json::Value;

use super::names::dds_type;
use super::participant::Participant;
use super::peers::{Endpoint, MUTE, SETTLE, of_topic, types};
use super::raw::{Raw, Writer, is_known};
use crate::cdr::{Cdr, Order};
use crate::error::GraphError;
use crate::graph::Publisher;
use crate::shape::Shape;

pub(super) struct TopicPublisher {
    pub(super) participant: Arc<Participant>,
    pub(super) writer: Mutex<Writer>,
    pub(super) shape: Arc<Shape>,
    pub(super) cdr: Cdr,
    pub(super) topic: String,
    pub(super) dds_topic: String,
    pub(super) made: Instant,
    /// Whether the readers have known the writer since there were some.
    pub(super) known: AtomicBool,
}

impl TopicPublisher {
    /// Whether a reader of the type is there, has been for long enough, and knows the writer.
    fn readers(&self) -> Result<bool, GraphError> {
        if self.participant.is_closed() {
            return Err(GraphError::Closed);
        }
        let endpoints = self.participant.peers.now();
        let readers = of_topic(&endpoints.readers, &self.dds_topic);
        let own = dds_type(&self.shape.name);
        let ours: Vec<&&Endpoint> = readers.iter().filter(|reader| reader.dds_type == own).collect();
        if ours.is_empty() {
            self.known.store(false, Ordering::SeqCst);
            return Err(match readers.is_empty() {
                true => GraphError::Unheard {
                    topic: self.topic.clone(),
                },
                false => GraphError::OtherType {
                    name: self.topic.clone(),
                    expected: self.shape.name.to_string(),
                    found: types(&readers).into_iter().collect(),
                },
            });
        }
        let have_been = |time: Duration| {
            self.made.elapsed() >= time && ours.iter().any(|reader| reader.since.elapsed() >= time)
        };
        let is_known = || is_known(&self.writer.lock());
        // What was said a moment ago is not acknowledged yet, and makes no reader a stranger.
        let known = have_been(SETTLE) && (self.known.load(Ordering::SeqCst) || have_been(MUTE) || is_known());
        self.known.fetch_or(known, Ordering::SeqCst);
        Ok(known)
    }
}

impl Drop for TopicPublisher {
    fn drop(&mut self) {
        let writer = self.writer.get_mut();
        self.participant.node.gone(writer.guid());
    }
}

impl Publisher for TopicPublisher {
    fn publish(&self, value: &Value) -> Result<(), GraphError> {
        self.readers()?;
        let bytes = self.cdr.encode(&self.shape, value)?;
        let raw = Raw {
            bytes,
            order: Order::Little,
        };
        let writer = self.writer.lock();
        writer
            .write(raw, Some(Timestamp::now()))
            .map_err(|error| GraphError::Lost {
                name: self.topic.clone(),
                // The error carries the whole message.
                reason: match error {
                    WriteError::WouldBlock { .. } => "no subscriber acknowledges what was sent",
                    _ => "the message was not accepted",
                }
                .to_owned(),
            })
    }

    fn check_listener(&self) -> Result<(), GraphError> {
        match self.readers()? {
            true => Ok(()),
            false => Err(GraphError::Unheard {
                topic: self.topic.clone(),
            }),
        }
    }
}
