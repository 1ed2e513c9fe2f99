//! The shape of a model or poses file.
//!
//! Owns the types that serde reads; the model checks the values. Read [`ModelFile`].

use std::collections::BTreeMap;

use serde::Deserialize;

use super::routine::Sequence;
use super::{ModelError, Pose};
use crate::capability::Capabilities;
use crate::subsystem::Subsystem;

/// A file. A user's has no `capabilities`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ModelFile {
    pub(super) capabilities: Option<Capabilities>,
    /// For each joint 1 or -1: the factor from a right-arm angle to the left-arm angle.
    pub(super) mirror: Option<Vec<f64>>,
    pub(super) point: Option<Point>,
    #[serde(default)]
    pub(super) poses: BTreeMap<String, PoseText>,
    #[serde(default)]
    pub(super) keyframes: BTreeMap<String, Vec<f64>>,
    #[serde(default)]
    pub(super) places: BTreeMap<String, PlaceText>,
    #[serde(default)]
    pub(super) waves: BTreeMap<String, Sequence>,
    #[serde(default)]
    pub(super) nods: BTreeMap<String, Sequence>,
    #[serde(default)]
    pub(super) gestures: BTreeMap<String, Sequence>,
    #[serde(default)]
    pub(super) dances: BTreeMap<String, Sequence>,
}

/// How an arm points: which joint turns it sideways.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Point {
    /// Counted from 0.
    pub(super) joint: usize,
    /// Degrees of the joint for a degree to the right.
    pub(super) per_degree: f64,
    /// How far to either side it points, in degrees.
    pub(super) reach: f64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PoseText {
    left_arm: Option<Vec<f64>>,
    right_arm: Option<Vec<f64>>,
    gantry: Option<Vec<f64>>,
    lift: Option<f64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PlaceText {
    pub(super) above: Vec<f64>,
    pub(super) at: Vec<f64>,
    pub(super) lifted: Vec<f64>,
    pub(super) retracted: Vec<f64>,
}

impl ModelFile {
    pub(super) fn parse(name: &str, text: &str) -> Result<Self, ModelError> {
        toml::from_str(text).map_err(|error| ModelError::Parse {
            name: match error.span() {
                Some(span) => at(
                    name,
                    text.get(..span.start).unwrap_or_default().lines().count().max(1),
                ),
                None => name.to_string(),
            },
            message: error.message().replace('\n', "; "),
        })
    }

    pub(super) fn take_capabilities(&mut self, name: &str) -> Result<Capabilities, ModelError> {
        self.capabilities.take().ok_or_else(|| ModelError::Parse {
            name: name.to_string(),
            message: "expected a table `capabilities`".to_string(),
        })
    }
}

/// A place in a file.
fn at(name: &str, line: usize) -> String {
    format!("{name}, line {line}")
}

/// An error of an entry, with the line at which the entry begins.
pub(super) fn located(mut error: ModelError, text: &str) -> ModelError {
    let (name, what) = match &mut error {
        ModelError::Read { .. } => return error,
        ModelError::Parse { name, message } => {
            let entry = message.split_once(':').map_or("capabilities", |(entry, _)| entry);
            (name, entry.to_owned())
        }
        ModelError::Position { name, what, .. } => (name, what.clone()),
    };
    let begins = |line: &str| {
        // `wave = {...}` in a table, or `[poses.wave]`.
        let line = line.trim().trim_start_matches('[');
        let key = line.split(['=', ']']).next().unwrap_or_default();
        let last = key.rsplit('.').next().unwrap_or_default();
        last.trim().trim_matches(['"', '\'']) == what
    };
    if let Some(line) = text.lines().position(begins) {
        *name = at(name, line + 1);
    }
    error
}

impl PoseText {
    pub(super) fn into_pose(self) -> Pose {
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
