//! The configuration of the simulated robot.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::people::Person;
use crate::subsystem::Subsystem;

/// What belongs to the simulator alone.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SimConfig {
    /// Which robot it pretends to be. Now: `kind` and `"simulated": true` of the robot.
    pub model: Option<SimModel>,
    /// How many times faster than real time it is while all of the robot waits. No wait is skipped for 1.
    #[schemars(range(min = 1.0, max = 2_000.0))]
    pub time_scale: f64,
    /// Every command is appended to this file as a line of JSON.
    pub trace: Option<PathBuf>,
    /// Who is in view.
    pub people: Vec<Person>,
    /// What lies around.
    pub objects: Vec<Thing>,
    /// A cart stands behind the robot.
    pub cart: bool,
    /// A charger stands behind the robot.
    pub charger: bool,
    /// What does not work.
    pub faults: Vec<Fault>,
}

impl Default for SimConfig {
    fn default() -> Self {
        let person = |name: Option<&str>, bearing, speaking| Person {
            name: name.map(str::to_owned),
            bearing,
            distance: 1.5,
            speaking,
        };
        let thing = |name: &str, bearing, at| Thing {
            name: name.to_string(),
            bearing,
            tilt: 25.0,
            distance: 0.4,
            at: Some(at),
        };
        Self {
            model: None,
            time_scale: 1.0,
            trace: None,
            people: vec![person(Some("Ada"), -20.0, true), person(None, 35.0, false)],
            objects: vec![
                thing("cup", 10.0, [0.24, -0.04, 0.04]),
                thing("ball", -15.0, [0.22, 0.06, 0.03]),
                thing("box", 0.0, [0.26, 0.0, 0.05]),
                thing("table", 0.0, [0.2, 0.0, 0.03]),
            ],
            cart: true,
            charger: true,
            faults: Vec::new(),
        }
    }
}

/// Which robot the simulator pretends to be, where `kind` does not say it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SimModel {
    /// Johnny Five, which has every part.
    #[default]
    #[serde(rename = "johnny5")]
    Johnny5,
    /// Booster K1.
    BoosterK1,
    /// Unitree G1.
    UnitreeG1,
}

/// Something that lies around.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Thing {
    /// What it is called.
    pub name: String,
    /// Degrees from straight ahead, negative to the left.
    pub bearing: f64,
    /// Degrees, positive downwards.
    #[serde(default)]
    pub tilt: f64,
    /// Metres.
    #[serde(default = "near")]
    pub distance: f64,
    /// Where it is in the frame of an arm's base, in metres: x ahead, y to the left, z upwards. For an arm that can be sent to points.
    #[serde(default)]
    pub at: Option<[f64; 3]>,
}

fn near() -> f64 {
    0.4
}

/// Something that does not work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// The whole robot is away.
    Offline,
    /// Its emergency button is pressed: a stop cannot be reset.
    Button,
    /// This servo does not answer: `bus:id`.
    Missing(String),
    /// This servo is too warm: `bus:id`.
    Hot(String),
    /// This part does not move.
    Stuck(Subsystem),
}

impl SimModel {
    /// The robot's file.
    #[must_use]
    pub fn kind(self) -> &'static str {
        match self {
            Self::Johnny5 => "johnny5",
            Self::BoosterK1 => "booster_k1_topics",
            Self::UnitreeG1 => "unitree_g1",
        }
    }
}
