//! A pose by its name, and a place for a hand.

use std::collections::BTreeMap;

use crate::step::Stage;
use crate::subsystem::Subsystem;

/// Where the subsystems of a named pose go.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pose {
    /// Joint angles of arms and gantry, in degrees.
    pub joints: BTreeMap<Subsystem, Vec<f64>>,
    /// Millimetres.
    pub lift: Option<f64>,
}

/// Where a hand goes to pick something or to put it down, as angles of an arm.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "as the stages")]
pub struct Place {
    pub above: Vec<f64>,
    pub at: Vec<f64>,
    pub lifted: Vec<f64>,
    pub retracted: Vec<f64>,
}

impl Place {
    /// The angles of a stage.
    #[must_use]
    pub fn of(&self, stage: Stage) -> &[f64] {
        match stage {
            Stage::Above => &self.above,
            Stage::At => &self.at,
            Stage::Lifted => &self.lifted,
            Stage::Retracted => &self.retracted,
        }
    }
}
