//! What follows from the channels of a K1: its parts, what drives it, and its safe stop.

use std::sync::Arc;
use std::time::Duration;

use super::config::{self, BoosterK1Config, Profile};
use super::robot::BoosterK1;
use super::rpc;
use crate::adapter::contract::{Adapter, Notify};
use crate::capability::{Capabilities, Gripper, Services};
use crate::conduct::{Estop, Stop};
use crate::dds::booster::{REQUEST, REQUESTS};
use crate::dds::shout::Shout;
use crate::driver::{DrivenRobot, Driver, arms_of, parts_of};
use crate::error::ActionError;
use crate::model::{Model, ModelError};
use crate::ros::carrier;

/// How long the stop looks for the robot.
const PATIENCE: Duration = Duration::from_secs(3);
/// The pause between two stops.
const AGAIN: Duration = Duration::from_millis(10);

impl Driver for BoosterK1Config {
    fn equip(&self, parts: &mut Capabilities) {
        parts.services = Services {
            motor_status: true,
            self_test: parts_of(parts, &[]),
            ..Services::default()
        };
    }

    fn fit(&self, mut model: Model) -> Result<Model, ModelError> {
        if self.profile == Profile::BoosterRpc {
            arms_of(&model.capabilities, 4)?;
        }
        let mut capabilities = model.capabilities.clone();
        let gripper = Gripper {
            joint: None,
            open: 100.0,
            closed: 0.0,
            max_speed: 100.0,
        };
        for arm in [&mut capabilities.left_arm, &mut capabilities.right_arm]
            .into_iter()
            .flatten()
        {
            // No topic moves a gripper.
            arm.gripper = (self.profile == Profile::BoosterRpc && self.gripper).then(|| gripper.clone());
        }
        model.narrow(capabilities);
        Ok(model)
    }

    fn stops(&self, name: &str, stop: &Stop) -> Result<(), ActionError> {
        config::estop(name, self, stop.emergency).map(|_| ())
    }

    fn drive(&self, robot: DrivenRobot<'_>, notify: Notify) -> Result<Arc<dyn Adapter>, ActionError> {
        Ok(Arc::new(BoosterK1::new(robot, self, notify)?))
    }

    fn safe_stop(&self, robot: DrivenRobot<'_>) -> Result<(), ActionError> {
        safe_stop(robot.name, self, robot.stop.emergency)
    }
}

/// Brings the robot to rest without an instance: joins its network and, as soon as the robot hears it, repeats a stop
/// for a while.
///
/// # Errors
/// The robot did not hear.
fn safe_stop(name: &str, config: &BoosterK1Config, estop: Option<Estop>) -> Result<(), ActionError> {
    let failed = |reason: String| ActionError::NotConnected {
        robot: name.to_owned(),
        reason,
    };
    let damp = config::estop(name, config, estop)? == Estop::Damp;
    let stopped = match config.profile {
        Profile::Topics => carrier::stand(&config.ros, name, &config.velocity(), PATIENCE),
        Profile::BoosterRpc => Shout::open(&config.ros, REQUESTS, REQUEST)
            .and_then(|shout| shout.say(PATIENCE, AGAIN, || rpc::stops(damp))),
    };
    stopped.map_err(|error| failed(format!("{error}; press the robot's own button")))
}
