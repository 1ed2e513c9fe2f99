//! The shape of a robot's file, and of a file of poses.
//!
//! Owns the types that serde reads: an unknown key is an error. The model checks the values. Read [`RobotFile`].

use std::collections::BTreeMap;

use serde::Deserialize;

use super::error::ModelError;
use super::pose::{Place, Pose};
use super::routine::Sequence;
use crate::camera::CameraTable;
use crate::capability::{Arm, Base, Capabilities, Hitch, Joint, Lift, Own};
use crate::conduct::Stop;
use crate::subsystem::Subsystem;

/// A file. One of poses has none of the first eight keys.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RobotFile {
    /// The robot's name: that of its file, without the ending; `-` and `_` are the same.
    pub(crate) name: Option<String>,
    /// What it is, in a line.
    pub(crate) description: Option<String>,
    /// What drives it.
    pub(crate) driver: Option<String>,
    /// What it has, with the limits.
    pub(crate) parts: Option<Parts>,
    /// How it performs some routines in its own way.
    pub(crate) own: Option<Own>,
    /// How its driver reaches it. The driver reads it.
    pub(crate) channels: Option<toml::Table>,
    /// How it is stopped.
    pub(crate) stop: Option<Stop>,
    /// Its cameras, by name.
    #[serde(default)]
    pub(crate) cameras: BTreeMap<String, CameraTable>,
    /// For each joint 1 or -1: the factor from a right-arm angle to the left-arm angle.
    pub(crate) mirror: Option<Vec<f64>>,
    pub(crate) point: Option<Point>,
    #[serde(default)]
    pub(crate) poses: BTreeMap<String, PoseText>,
    #[serde(default)]
    pub(crate) keyframes: BTreeMap<String, Vec<f64>>,
    #[serde(default)]
    pub(crate) places: BTreeMap<String, PlaceText>,
    #[serde(default)]
    pub(crate) waves: BTreeMap<String, Sequence>,
    #[serde(default)]
    pub(crate) nods: BTreeMap<String, Sequence>,
    #[serde(default)]
    pub(crate) gestures: BTreeMap<String, Sequence>,
    #[serde(default)]
    pub(crate) dances: BTreeMap<String, Sequence>,
}

/// What a robot has. A part that is left out is missing.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Parts {
    left_arm: Option<Arm>,
    right_arm: Option<Arm>,
    /// The head: pan first, then tilt.
    gantry: Option<Vec<Joint>>,
    lift: Option<Lift>,
    hitch: Option<Hitch>,
    base: Option<Base>,
}

/// How an arm points: which joint turns it sideways.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Point {
    /// Counted from 0.
    pub(crate) joint: usize,
    /// Degrees of the joint for a degree to the right.
    pub(crate) per_degree: f64,
    /// How far to either side it points, in degrees.
    pub(crate) reach: f64,
}

/// A pose: joint angles in degrees, the lift in millimetres.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PoseText {
    left_arm: Option<Vec<f64>>,
    right_arm: Option<Vec<f64>>,
    gantry: Option<Vec<f64>>,
    lift: Option<f64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlaceText {
    above: Vec<f64>,
    at: Vec<f64>,
    lifted: Vec<f64>,
    retracted: Vec<f64>,
}

impl RobotFile {
    pub(crate) fn parse(name: &str, text: &str) -> Result<Self, ModelError> {
        toml::from_str(text).map_err(|error| ModelError::toml(name, text, &error))
    }

    /// The first key that a file of poses has not.
    pub(crate) fn foreign(&self) -> Option<&'static str> {
        let there = [
            ("name", self.name.is_some()),
            ("description", self.description.is_some()),
            ("driver", self.driver.is_some()),
            ("parts", self.parts.is_some()),
            ("own", self.own.is_some()),
            ("channels", self.channels.is_some()),
            ("stop", self.stop.is_some()),
            ("cameras", !self.cameras.is_empty()),
        ];
        there.into_iter().find(|(_, there)| *there).map(|(key, _)| key)
    }
}

impl Parts {
    pub(crate) fn into_capabilities(self, model: &str, own: Own) -> Capabilities {
        Capabilities {
            model: model.to_owned(),
            left_arm: self.left_arm,
            right_arm: self.right_arm,
            gantry: self.gantry,
            lift: self.lift,
            hitch: self.hitch,
            base: self.base,
            own,
            ..Capabilities::default()
        }
    }
}

impl PoseText {
    pub(crate) fn into_pose(self) -> Pose {
        let joints = [
            (Subsystem::LeftArm, self.left_arm),
            (Subsystem::RightArm, self.right_arm),
            (Subsystem::Gantry, self.gantry),
        ];
        Pose {
            joints: joints
                .into_iter()
                .filter_map(|(on, angles)| Some((on, angles?)))
                .collect(),
            lift: self.lift,
        }
    }
}

impl PlaceText {
    pub(crate) fn into_place(self) -> Place {
        Place {
            above: self.above,
            at: self.at,
            lifted: self.lifted,
            retracted: self.retracted,
        }
    }
}
