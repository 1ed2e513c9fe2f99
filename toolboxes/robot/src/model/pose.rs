//! A pose by its name, and a place for a hand.

use std::collections::BTreeMap;

use crate::subsystem::Subsystem;

/// Where the subsystems of a named pose go.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pose {
    /// Joint angles of arms and gantry, in degrees.
    pub joints: BTreeMap<Subsystem, Vec<f64>>,
    /// Millimetres.
    pub lift: Option<f64>,
}

/// Where a hand goes to pick something or to put it down.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Place {
    pub(crate) above: Vec<f64>,
    pub(crate) at: Vec<f64>,
    pub(crate) lifted: Vec<f64>,
    pub(crate) retracted: Vec<f64>,
}
