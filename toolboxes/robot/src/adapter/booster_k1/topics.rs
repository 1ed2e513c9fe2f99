//! The four documented ROS 2 topics.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};

use super::config::{BoosterK1Config, TWIST_STAMPED, Topics, VelocityType};
use super::sent::LastAngles;
use crate::action::Velocity;
use crate::adapter::part_reading::{JointReading, PartReading};
use crate::adapter::remote::node_name;
use crate::capability::{Capabilities, Joint};
use crate::clock::since_1970;
use crate::dds::latest::LastWord;
use crate::dds::{Participant, Publisher};
use crate::ros::RosError;
use crate::subsystem::Subsystem;

/// The type of positions, which are degrees.
const POSITIONS: &str = "std_msgs/Float64MultiArray";

/// A K1 behind its four topics.
pub(in crate::adapter) struct TopicsLink {
    participant: Participant,
    topics: Topics,
    velocity_type: VelocityType,
    /// The topics that were announced, each with the type that the robot reads.
    announced: Mutex<BTreeMap<String, (&'static str, Publisher<Value>)>>,
    /// Joints of the model, by the robot's names. Several nodes may tell of some joints each, so each joint has its own time.
    joints: Arc<Mutex<HashMap<String, JointReading>>>,
    last_word: LastWord,
    /// The last commanded positions of arms and head.
    sent: LastAngles,
}

/// sensor_msgs/JointState, as far as it is read here.
#[derive(Deserialize)]
struct JointState {
    name: Vec<String>,
    position: Vec<Value>,
}

impl TopicsLink {
    pub(super) fn open(name: &str, config: &BoosterK1Config, parts: &Capabilities) -> Result<Self, RosError> {
        let participant = Participant::join_graph(&config.ros, &node_name(name))?;
        let topics = config.topics.clone();
        let joints = Arc::new(Mutex::new(HashMap::new()));
        let latest = Arc::clone(&joints);
        let names = names(parts);
        let last_word = LastWord::default();
        let word = last_word.clone();
        participant.subscribe(
            &topics.joints,
            "sensor_msgs/JointState",
            false,
            move |state: JointState| {
                word.note();
                let (mut known, now) = (latest.lock(), Instant::now());
                for (name, angle) in state.name.into_iter().zip(&state.position) {
                    let angle = angle.as_f64().filter(|_| names.contains(&name));
                    let reading = angle.and_then(|angle| JointReading::new(angle.to_degrees(), now));
                    if let Some(reading) = reading {
                        known.insert(name, reading);
                    }
                }
            },
        )?;
        Ok(Self {
            participant,
            topics,
            velocity_type: config.velocity_type,
            announced: Mutex::default(),
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
        self.joints.lock().clear();
    }

    pub(super) fn velocity(&self, velocity: &Velocity) -> Result<(), RosError> {
        let twist = json!({
            "linear": {"x": velocity.x, "y": velocity.y, "z": 0.0}, "angular": {"x": 0.0, "y": 0.0, "z": velocity.turn}
        });
        let topic = &self.topics.velocity;
        let Some((kind, publisher)) = self.announced(topic) else {
            return Err(RosError::Unheard { topic: topic.clone() });
        };
        publisher.publish(match kind {
            TWIST_STAMPED => {
                let now = since_1970();
                let stamp = json!({"sec": now.as_secs(), "nanosec": now.subsec_nanos()});
                json!({"header": {"stamp": stamp, "frame_id": "base_link"}, "twist": twist})
            }
            _ => twist,
        })
    }

    fn announced(&self, topic: &str) -> Option<(&'static str, Publisher<Value>)> {
        let announced = self.announced.lock();
        announced.get(topic).cloned()
    }

    /// Announces a topic with the one of these types that the robot reads.
    fn announce(&self, topic: &str, offered: &'static [&'static str]) -> Result<Publisher<Value>, RosError> {
        let found = self.participant.heard_as(topic);
        let mut kinds = offered.to_vec();
        kinds.retain(|kind| found.iter().any(|found| found == kind));
        let other = |remedy| RosError::OtherType {
            topic: topic.to_owned(),
            found: found.join(" and "),
            expected: offered.join(" or "),
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
        let mut announced = self.announced.lock();
        if let Some((_, publisher)) = announced.get(topic).filter(|(known, _)| *known == kind) {
            return Ok(publisher.clone());
        }
        // The old one goes first: a name never has two types of ours.
        announced.remove(topic);
        let publisher: Publisher<Value> = self.participant.publish(topic, kind)?;
        announced.insert(topic.to_owned(), (kind, publisher.clone()));
        Ok(publisher)
    }

    /// Why the robot cannot be told a velocity.
    pub(super) fn fits(&self) -> Result<(), RosError> {
        self.announce(&self.topics.velocity, self.velocity_type.kinds())
            .map(drop)
    }

    /// Sends an arm or the head to angles in degrees; fails where nothing on the robot hears it.
    pub(super) fn lead(&self, on: Subsystem, positions: &[f64]) -> Result<(), RosError> {
        self.hears(on)?;
        self.positions(on, positions)
    }

    /// Whether something on the robot moves an arm or the head.
    pub(super) fn hears(&self, on: Subsystem) -> Result<(), RosError> {
        let topic = self.topic(on);
        match self.announce(topic, &[POSITIONS])?.is_ready() {
            true => Ok(()),
            false => Err(RosError::Unheard {
                topic: topic.to_owned(),
            }),
        }
    }

    /// Sends an arm or the head to angles in degrees, even where nothing hears it any more. One that was never told
    /// anything is told nothing.
    pub(super) fn positions(&self, on: Subsystem, positions: &[f64]) -> Result<(), RosError> {
        let Some((_, publisher)) = self.announced(self.topic(on)) else {
            return Ok(());
        };
        let label = match on {
            Subsystem::Gantry => "head",
            arm => arm.as_str(),
        };
        let size = positions.len();
        let values = json!({"label": label, "size": size, "stride": size});
        publisher.publish(json!({"layout": {"dim": [values], "data_offset": 0}, "data": positions}))
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
                let _ = self.announce(topic, &[POSITIONS]);
            }
        }
        let velocity = self.announce(&self.topics.velocity, self.velocity_type.kinds());
        velocity.is_ok_and(|publisher| publisher.is_ready())
    }

    /// Where an arm or the head is, as far as the robot names its joints as the model does (`left_arm_elbow`).
    pub(super) fn reading(&self, on: Subsystem, joints: &[Joint]) -> PartReading {
        let known = self.joints.lock();
        PartReading::new(on, joints, |_, joint| {
            known.get(&format!("{on}_{joint}")).copied()
        })
    }

    pub(super) fn close(&self) {
        self.participant.close();
    }
}

/// The robot's names of all joints of a model.
fn names(parts: &Capabilities) -> HashSet<String> {
    let all = [Subsystem::Gantry, Subsystem::LeftArm, Subsystem::RightArm];
    let of = |on: Subsystem| {
        let joints = parts.joints(on).unwrap_or_default().iter();
        joints.map(move |joint| format!("{on}_{}", joint.name))
    };
    all.into_iter().flat_map(of).collect()
}
