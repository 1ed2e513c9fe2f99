//! The standard ROS 2 messages that the adapters use, as they are on the wire.

#![allow(missing_docs, reason = "the fields are those of the ROS 2 messages")]

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::clock::since_1970;

/// One of the messages below.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum RosMessage {
    Twist(Twist),
    TwistStamped(TwistStamped),
    Float64MultiArray(Float64MultiArray),
    JointState(JointState),
}

impl RosMessage {
    /// Its type.
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Self::Twist(_) => Kind::Twist,
            Self::TwistStamped(_) => Kind::TwistStamped,
            Self::Float64MultiArray(_) => Kind::Float64MultiArray,
            Self::JointState(_) => Kind::JointState,
        }
    }

    /// The message of a value; `None` where it is not of the type.
    pub(crate) fn of(kind: Kind, value: Value) -> Option<Self> {
        let read = match kind {
            Kind::Twist => serde_json::from_value(value).map(Self::Twist),
            Kind::TwistStamped => serde_json::from_value(value).map(Self::TwistStamped),
            Kind::Float64MultiArray => serde_json::from_value(value).map(Self::Float64MultiArray),
            Kind::JointState => serde_json::from_value(value).map(Self::JointState),
        };
        read.ok()
    }
}

/// The type of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Twist,
    TwistStamped,
    Float64MultiArray,
    JointState,
}

impl Kind {
    /// The type as ROS writes it: `geometry_msgs/Twist`.
    #[must_use]
    pub fn ros_name(self) -> String {
        let (package, name) = self.type_name();
        format!("{package}/{name}")
    }

    /// Package and name of the type.
    #[must_use]
    pub fn type_name(self) -> (&'static str, &'static str) {
        match self {
            Self::Twist => ("geometry_msgs", "Twist"),
            Self::TwistStamped => ("geometry_msgs", "TwistStamped"),
            Self::Float64MultiArray => ("std_msgs", "Float64MultiArray"),
            Self::JointState => ("sensor_msgs", "JointState"),
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Vector3 {
    pub x: f64,
    pub y: f64,
    pub z: f64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Twist {
    pub linear: Vector3,
    pub angular: Vector3,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MultiArrayDimension {
    pub label: String,
    pub size: u32,
    pub stride: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MultiArrayLayout {
    pub dim: Vec<MultiArrayDimension>,
    pub data_offset: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Float64MultiArray {
    pub layout: MultiArrayLayout,
    pub data: Vec<f64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Time {
    pub sec: i32,
    pub nanosec: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Header {
    pub stamp: Time,
    pub frame_id: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JointState {
    pub header: Header,
    pub name: Vec<String>,
    pub position: Vec<f64>,
    pub velocity: Vec<f64>,
    pub effort: Vec<f64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TwistStamped {
    pub header: Header,
    pub twist: Twist,
}

impl TwistStamped {
    /// A velocity of the robot's own frame, of now.
    #[must_use]
    pub fn now(twist: Twist) -> Self {
        let since = since_1970();
        let stamp = Time {
            sec: i32::try_from(since.as_secs()).unwrap_or(i32::MAX),
            nanosec: since.subsec_nanos(),
        };
        let frame_id = "base_link".to_owned();
        Self {
            header: Header { stamp, frame_id },
            twist,
        }
    }
}

impl Float64MultiArray {
    /// Values under a label, which says what they are: an arm's name.
    #[must_use]
    pub fn labelled(label: &str, data: Vec<f64>) -> Self {
        let size = u32::try_from(data.len()).unwrap_or(u32::MAX);
        Self {
            layout: MultiArrayLayout {
                dim: vec![MultiArrayDimension {
                    label: label.to_owned(),
                    size,
                    stride: size,
                }],
                data_offset: 0,
            },
            data,
        }
    }
}
