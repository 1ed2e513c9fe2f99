//! What follows from the channels of a K1: its parts, what drives it, and its safe stop.

use std::sync::Arc;

use super::config::{BoosterK1Config, Profile, estop};
use super::{BoosterK1, safe_stop};
use crate::adapter::{ActionError, Adapter, Notify};
use crate::capability::{Capabilities, Gripper, Services};
use crate::conduct::Stop;
use crate::driver::{DrivenRobot, Driver, arms_of, parts_of};
use crate::model::{Model, ModelError};

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
        estop(name, self, stop.emergency).map(|_| ())
    }

    fn drive(&self, robot: DrivenRobot<'_>, notify: Notify) -> Result<Arc<dyn Adapter>, ActionError> {
        Ok(Arc::new(BoosterK1::new(robot, self, notify)?))
    }

    fn safe_stop(&self, robot: DrivenRobot<'_>) -> Result<(), ActionError> {
        safe_stop(robot.name, self, robot.stop.emergency)
    }
}
