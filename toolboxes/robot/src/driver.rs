//! What every driver is: the channels of a robot's file, and what follows from them.
//!
//! Owns the trait. A driver's type is what the table `channels` of a file is read into; what it drives is an
//! [`Adapter`]. Read [`Driver`].

use std::sync::Arc;

use crate::adapter::around::SimConfig;
use crate::adapter::{ActionError, Adapter, Notify};
use crate::capability::Capabilities;
use crate::conduct::Stop;
use crate::model::{Model, ModelError};
use crate::subsystem::Subsystem;

/// The channels over which a kind of robot is reached, as a file and the configuration give them.
pub trait Driver: Send + Sync {
    /// Adds to the parts what these channels know of them: the buses, and what the robot can do besides moving.
    fn equip(&self, parts: &mut Capabilities);

    /// The robot as these channels can move it: parts that they do not reach are gone, limits that they have narrow.
    ///
    /// # Errors
    /// The channels do not fit the parts, with the key that is wrong.
    fn fit(&self, model: Model) -> Result<Model, ModelError>;

    /// Checks that the robot can be stopped as its file says.
    ///
    /// # Errors
    /// It cannot, with what it can.
    fn stops(&self, name: &str, stop: &Stop) -> Result<(), ActionError> {
        let _ = (name, stop);
        Ok(())
    }

    /// Whether the robot is in a graph of ROS, whose topics its cameras may name.
    fn in_graph(&self) -> bool {
        false
    }

    /// Makes what drives the robot. Touches no hardware.
    ///
    /// # Errors
    /// The channels cannot be used, or what `stop` asks for cannot be done.
    fn drive(&self, robot: DrivenRobot<'_>, notify: Notify) -> Result<Arc<dyn Adapter>, ActionError>;

    /// Makes what drives the robot with simulated hardware in the place of its own; `None` where there is none of its kind.
    ///
    /// # Errors
    /// As [`Driver::drive`].
    fn rehearse(
        &self,
        robot: DrivenRobot<'_>,
        around: &SimConfig,
        notify: Notify,
    ) -> Option<Result<Arc<dyn Adapter>, ActionError>> {
        let _ = (robot, around, notify);
        None
    }

    /// Brings the robot to rest without an instance. Blocks.
    ///
    /// # Errors
    /// The robot was not reached, with the reason.
    fn safe_stop(&self, robot: DrivenRobot<'_>) -> Result<(), ActionError>;
}

/// The robot that is driven.
#[derive(Clone, Copy)]
pub struct DrivenRobot<'a> {
    /// Its name in the configuration.
    pub name: &'a str,
    /// Its kind, equipped and not yet narrowed: servos count from the middle of these ranges.
    pub model: &'a Model,
    /// Its parts, fitted to the channels and narrowed by the configuration.
    pub capabilities: &'a Capabilities,
    /// How it is stopped.
    pub stop: &'a Stop,
}

/// Checks that the arms have as many joints as a vendor's channels move.
///
/// # Errors
/// An arm has more or fewer.
pub(crate) fn arms_of(parts: &Capabilities, joints: usize) -> Result<(), ModelError> {
    for arm in [Subsystem::LeftArm, Subsystem::RightArm] {
        let found = parts.joints(arm).map_or(joints, <[_]>::len);
        if found != joints {
            return Err(ModelError::parse(
                "the channels",
                format!("parts.{arm}: these channels move {joints} joints of an arm, and it has {found}"),
            ));
        }
    }
    Ok(())
}

/// The parts in the order in which tools name them, less `without`.
pub(crate) fn parts_of(parts: &Capabilities, without: &[Subsystem]) -> Vec<Subsystem> {
    let order = [
        Subsystem::LeftArm,
        Subsystem::RightArm,
        Subsystem::Gantry,
        Subsystem::Lift,
        Subsystem::Base,
        Subsystem::Hitch,
    ];
    let there = |part: &Subsystem| parts.has(*part) && !without.contains(part);
    order.into_iter().filter(there).collect()
}
