//! The four documented ROS 2 topics.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use super::config::{BoosterK1Config, Topics, VelocityType};
use super::sent::LastAngles;
use crate::action::Velocity;
use crate::adapter::remote::node_name;
use crate::capability::Capabilities;
use crate::dds::latest::LastWord;
use crate::ros::message::{Float64MultiArray, Twist, TwistStamped, Vector3};
use crate::ros::network::join;
use crate::ros::{Kind, RosBackend, RosError, RosMessage};
use crate::subsystem::Subsystem;

/// A K1 behind its four topics.
pub(in crate::adapter) struct TopicsLink {
    backend: Arc<dyn RosBackend>,
    topics: Topics,
    velocity_type: VelocityType,
    /// The topics that were announced, each with the type that the robot reads.
    announced: Mutex<BTreeMap<String, Kind>>,
    capabilities: Capabilities,
    /// Joint angles in radians, by the robot's names.
    joints: Arc<Mutex<HashMap<String, f64>>>,
    last_word: LastWord,
    /// The last commanded positions of arms and head.
    sent: LastAngles,
}

impl TopicsLink {
    pub(super) fn open(
        name: &str,
        config: &BoosterK1Config,
        capabilities: Capabilities,
    ) -> Result<Self, RosError> {
        let backend = join(&config.ros, &node_name(name))?;
        let topics = config.topics.clone();
        let joints = Arc::new(Mutex::new(HashMap::new()));
        let heard = Arc::clone(&joints);
        let last_word = LastWord::default();
        let word = last_word.clone();
        let deliver = Box::new(move |message| {
            if let RosMessage::JointState(state) = message {
                word.heard();
                let mut known = heard.lock().unwrap_or_else(PoisonError::into_inner);
                known.extend(state.name.into_iter().zip(state.position));
            }
        });
        backend.subscribe(&topics.joints, Kind::JointState, deliver)?;
        Ok(Self {
            backend,
            topics,
            velocity_type: config.velocity_type,
            announced: Mutex::default(),
            capabilities,
            joints,
            last_word,
            sent: LastAngles::default(),
        })
    }

    pub(super) fn sent(&self) -> &LastAngles {
        &self.sent
    }

    /// Drops the positions of a robot that went away; it has to report them again.
    pub(super) fn left(&self) {
        self.sent.forget();
        self.joints.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    pub(super) fn velocity(&self, velocity: &Velocity) -> Result<(), RosError> {
        let twist = Twist {
            linear: Vector3 {
                x: velocity.x,
                y: velocity.y,
                z: 0.0,
            },
            angular: Vector3 {
                z: velocity.turn,
                ..Vector3::default()
            },
        };
        let topic = &self.topics.velocity;
        let message = match self.announced(topic) {
            Some(Kind::TwistStamped) => RosMessage::TwistStamped(TwistStamped::now(twist)),
            _ => RosMessage::Twist(twist),
        };
        self.backend.publish(topic, message)
    }

    fn announced(&self, topic: &str) -> Option<Kind> {
        let announced = self.announced.lock().unwrap_or_else(PoisonError::into_inner);
        announced.get(topic).copied()
    }

    /// Announces a topic with the one of these types that the robot reads.
    fn announce(&self, topic: &str, offered: &[Kind]) -> Result<(), RosError> {
        let found = self.backend.heard_as(topic);
        let mut kinds = offered.to_vec();
        kinds.retain(|kind| found.contains(&kind.ros_name()));
        let other = |remedy| RosError::OtherType {
            topic: topic.to_owned(),
            found: found.join(" and "),
            expected: offered
                .iter()
                .map(|kind| kind.ros_name())
                .collect::<Vec<_>>()
                .join(" or "),
            remedy,
        };
        let kind = match kinds.as_slice() {
            [kind] => *kind,
            [] if found.is_empty() => {
                return Err(RosError::Unheard {
                    topic: topic.to_owned(),
                });
            }
            [] => return Err(other("name the robot's own topic in `topics`")),
            _ => return Err(other("say in velocity_type which of them the robot obeys")),
        };
        let mut announced = self.announced.lock().unwrap_or_else(PoisonError::into_inner);
        if announced.get(topic) != Some(&kind) {
            self.backend.advertise(topic, kind)?;
            announced.insert(topic.to_owned(), kind);
        }
        Ok(())
    }

    /// Why the robot cannot be told a velocity.
    pub(super) fn fits(&self) -> Result<(), RosError> {
        self.announce(&self.topics.velocity, self.velocity_type.kinds())
    }

    /// Sends an arm or the head to angles in degrees; fails where nothing on the robot hears it.
    pub(super) fn lead(&self, on: Subsystem, positions: &[f64]) -> Result<(), RosError> {
        self.hears(on)?;
        self.positions(on, positions)
    }

    /// Whether something on the robot moves an arm or the head.
    pub(super) fn hears(&self, on: Subsystem) -> Result<(), RosError> {
        let topic = self.topic(on);
        self.announce(topic, &[Kind::Float64MultiArray])?;
        match self.backend.is_heard(topic) {
            true => Ok(()),
            false => Err(RosError::Unheard {
                topic: topic.to_owned(),
            }),
        }
    }

    /// Sends an arm or the head to angles in degrees, even where nothing hears it any more. One that was never told
    /// anything is told nothing.
    pub(super) fn positions(&self, on: Subsystem, positions: &[f64]) -> Result<(), RosError> {
        if self.announced(self.topic(on)).is_none() {
            return Ok(());
        }
        let label = match on {
            Subsystem::Gantry => "head",
            arm => arm.as_str(),
        };
        let array = Float64MultiArray::labelled(label, positions.to_vec());
        self.backend
            .publish(self.topic(on), RosMessage::Float64MultiArray(array))
    }

    fn topic(&self, on: Subsystem) -> &str {
        match on {
            Subsystem::Gantry => &self.topics.head,
            _ => &self.topics.arm,
        }
    }

    /// Whether the robot hears velocities. A robot that does not hear them cannot be stopped, so every action waits
    /// until it does.
    pub(super) fn is_there(&self) -> bool {
        self.hears_velocity() && !self.last_word.is_silent()
    }

    pub(super) fn is_silent(&self) -> bool {
        self.hears_velocity() && self.last_word.is_silent()
    }

    fn hears_velocity(&self) -> bool {
        // Arms and head are announced early, so that the robot knows their writers when they are needed.
        for topic in [&self.topics.head, &self.topics.arm] {
            if self.announced(topic).is_none() {
                let _ = self.announce(topic, &[Kind::Float64MultiArray]);
            }
        }
        self.fits().is_ok() && self.backend.is_heard(&self.topics.velocity)
    }

    /// The measured angles of an arm or the head, where the robot names its joints as the model does
    /// (`left_arm_elbow`).
    pub(super) fn measured(&self, on: Subsystem) -> Option<Vec<f64>> {
        let joints = self.capabilities.joints(on)?;
        let known = self.joints.lock().unwrap_or_else(PoisonError::into_inner);
        joints
            .iter()
            .map(|joint| {
                known
                    .get(&format!("{on}_{}", joint.name))
                    .map(|angle| angle.to_degrees())
            })
            .collect()
    }

    pub(super) fn close(&self) {
        self.backend.close();
    }
}
