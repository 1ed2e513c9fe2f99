//! The transport of ROS topics.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::config::RosConfig;
use super::error::RosError;
use super::message::{Float64MultiArray, JointState, Kind, RosMessage, Twist, TwistStamped};
use crate::dds::{Participant, Publisher};

/// Hears a message, on the backend's thread; returns soon.
pub type Deliver = Box<dyn Fn(RosMessage) + Send + Sync>;

/// Carries ROS topics. One instance has one node.
pub trait RosBackend: Send + Sync {
    /// The types under which others read a topic, as ROS writes them: `geometry_msgs/Twist`. Looked at before a topic
    /// is announced, so that no name gets a second type.
    fn heard_as(&self, topic: &str) -> Vec<String>;

    /// Announces a topic, reliable and volatile, keeping the last ten; a topic that was announced as another type is not
    /// any more.
    ///
    /// # Errors
    /// The name cannot be used.
    fn advertise(&self, topic: &str, kind: Kind) -> Result<(), RosError>;

    /// Publishes on an announced topic. Never blocks.
    ///
    /// # Errors
    /// It was not announced, is of another kind, or the backend is closed.
    fn publish(&self, topic: &str, message: RosMessage) -> Result<(), RosError>;

    /// Hears a topic.
    ///
    /// # Errors
    /// The name cannot be used.
    fn subscribe(&self, topic: &str, kind: Kind, deliver: Deliver) -> Result<(), RosError>;

    /// Whether an announced topic has a subscriber of the same type, for long enough to hear what is published now.
    fn is_heard(&self, topic: &str) -> bool;

    /// Ends threads and leaves the network.
    fn close(&self);
}

/// The built-in backend: DDS, without a ROS installation.
pub struct DdsBackend {
    participant: Participant,
    publishers: Mutex<HashMap<String, Typed>>,
}

enum Typed {
    Twist(Publisher<Twist>),
    TwistStamped(Publisher<TwistStamped>),
    Float64MultiArray(Publisher<Float64MultiArray>),
    JointState(Publisher<JointState>),
}

impl DdsBackend {
    /// Joins the domain.
    ///
    /// # Errors
    /// As [`Participant::join`].
    pub fn join(config: &RosConfig, node: &str) -> Result<Self, RosError> {
        Ok(Self {
            participant: Participant::join(config, node)?,
            publishers: Mutex::default(),
        })
    }

    fn typed<R>(&self, topic: &str, with: impl FnOnce(Option<&Typed>) -> R) -> R {
        let publishers = self.publishers.lock().unwrap_or_else(PoisonError::into_inner);
        with(publishers.get(topic))
    }
}

impl RosBackend for DdsBackend {
    fn heard_as(&self, topic: &str) -> Vec<String> {
        self.participant.heard_as(topic)
    }

    fn advertise(&self, topic: &str, kind: Kind) -> Result<(), RosError> {
        let name = kind.type_name();
        // The old writer goes first: a name never has two types of ours.
        drop(
            self.publishers
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .remove(topic),
        );
        let typed = match kind {
            Kind::Twist => Typed::Twist(self.participant.publish(topic, name)?),
            Kind::TwistStamped => Typed::TwistStamped(self.participant.publish(topic, name)?),
            Kind::Float64MultiArray => Typed::Float64MultiArray(self.participant.publish(topic, name)?),
            Kind::JointState => Typed::JointState(self.participant.publish(topic, name)?),
        };
        let mut publishers = self.publishers.lock().unwrap_or_else(PoisonError::into_inner);
        publishers.insert(topic.to_owned(), typed);
        Ok(())
    }

    fn publish(&self, topic: &str, message: RosMessage) -> Result<(), RosError> {
        self.typed(topic, |typed| match (typed, message) {
            (Some(Typed::Twist(publisher)), RosMessage::Twist(message)) => publisher.publish(message),
            (Some(Typed::TwistStamped(publisher)), RosMessage::TwistStamped(message)) => {
                publisher.publish(message)
            }
            (Some(Typed::Float64MultiArray(publisher)), RosMessage::Float64MultiArray(message)) => {
                publisher.publish(message)
            }
            (Some(Typed::JointState(publisher)), RosMessage::JointState(message)) => {
                publisher.publish(message)
            }
            _ => Err(RosError::Topic {
                topic: topic.to_owned(),
                reason: "it was not announced with this kind of message".to_owned(),
            }),
        })
    }

    fn subscribe(&self, topic: &str, kind: Kind, deliver: Deliver) -> Result<(), RosError> {
        let name = kind.type_name();
        let participant = &self.participant;
        let heard = match kind {
            Kind::Twist => {
                participant.subscribe(topic, name, true, move |twist| deliver(RosMessage::Twist(twist)))
            }
            Kind::TwistStamped => participant.subscribe(topic, name, true, move |twist| {
                deliver(RosMessage::TwistStamped(twist))
            }),
            Kind::Float64MultiArray => participant.subscribe(topic, name, true, move |array| {
                deliver(RosMessage::Float64MultiArray(array))
            }),
            // Sensors may be published without guarantee.
            Kind::JointState => participant.subscribe(topic, name, false, move |joints| {
                deliver(RosMessage::JointState(joints))
            }),
        };
        heard.map(drop)
    }

    fn is_heard(&self, topic: &str) -> bool {
        self.typed(topic, |typed| match typed {
            Some(Typed::Twist(publisher)) => publisher.is_ready(),
            Some(Typed::TwistStamped(publisher)) => publisher.is_ready(),
            Some(Typed::Float64MultiArray(publisher)) => publisher.is_ready(),
            Some(Typed::JointState(publisher)) => publisher.is_ready(),
            None => false,
        })
    }

    fn close(&self) {
        self.participant.close();
    }
}
