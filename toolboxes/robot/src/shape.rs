//! What a robot's file says of an arm's shape: a URDF, and what in it is which joint of the arm.
//!
//! Owns the table `geometry` of an arm, in metres and the arm's own degrees. Pure. Read [`GeometryTable`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The table `geometry` of an arm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GeometryTable {
    /// The text of the URDF. Meshes and masses are not read.
    pub urdf: String,
    /// The link that stands still, whose frame is the arm's; by default the URDF's first.
    #[serde(default)]
    pub base: Option<String>,
    /// The point that goes to where the hand is sent.
    pub tip: LinkPoint,
    /// The point that goes to a thing, between the fingers; by default the tip.
    #[serde(default)]
    pub grasp: Option<LinkPoint>,
    /// The joints of the arm that the URDF has, by their name in the arm.
    pub joints: BTreeMap<String, JointTable>,
    /// How high the table is on which the arm stands. Without it nothing is below the arm.
    #[serde(default)]
    pub table: Option<f64>,
    /// How far every point stays above the table.
    #[serde(default = "five_millimetres")]
    pub clearance: f64,
    /// How close to a point the hand has to come to be there.
    #[serde(default = "five_millimetres")]
    pub tolerance: f64,
    /// Points of links that stay above the table, with the tip and the hand.
    #[serde(default)]
    pub points: BTreeMap<String, Vec<[f64; 3]>>,
}

/// A point of a link, in the link's frame.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkPoint {
    /// Its name in the URDF.
    pub link: String,
    /// Metres.
    #[serde(default)]
    pub at: [f64; 3],
}

/// What a joint of the arm is in the URDF.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JointTable {
    /// Its name in the URDF.
    pub urdf: String,
    /// The arm's angle, in degrees, at which the URDF's is zero.
    #[serde(default)]
    pub zero: f64,
    /// It counts the other way round.
    #[serde(default)]
    pub reversed: bool,
}

fn five_millimetres() -> f64 {
    0.005
}
