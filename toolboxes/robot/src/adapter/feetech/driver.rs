//! What follows from the channels of a robot of Feetech servos: its parts, what drives it, and its safe stop.

use std::sync::Arc;

use super::config::{FeetechConfig, estop};
use super::device::Feetech;
use super::rehearsal::Rehearsal;
use super::rest::safe_stop;
use crate::adapter::around::SimConfig;
use crate::adapter::{ActionError, Adapter, Notify};
use crate::capability::{Capabilities, Services};
use crate::conduct::Stop;
use crate::driver::{DrivenRobot, Driver, parts_of};
use crate::model::{Model, ModelError};
use crate::subsystem::Subsystem;

impl Driver for FeetechConfig {
    fn equip(&self, parts: &mut Capabilities) {
        parts.buses.clone_from(&self.buses);
        parts.services = Services {
            motor_status: true,
            torque: true,
            calibrate: parts_of(parts, &[]),
            calibration_write: true,
            set_home: parts_of(parts, &[Subsystem::Base, Subsystem::Hitch]),
            self_test: parts_of(parts, &[]),
            config: true,
            charge: false,
            position: parts.base.is_some(),
            lends: true,
            ..Services::default()
        };
    }

    fn fit(&self, mut model: Model) -> Result<Model, ModelError> {
        let wrong = |error: ActionError| ModelError::parse("the channels", error.to_string());
        let unsound = |why: String| ModelError::parse("the channels", why);
        self.check(&model.capabilities).map_err(unsound)?;
        let layout = self.calibrated(&model).map_err(wrong)?;
        let capabilities = layout.capabilities(model.capabilities.clone(), |bus| self.port(bus));
        let mut capabilities = capabilities.map_err(wrong)?;
        capabilities.services.calibration_write = self.allow_calibration_write;
        let dropped = model.narrow(capabilities);
        if !dropped.is_empty() {
            tracing::info!(poses = ?dropped, "left out: beyond the limits of the motors");
        }
        Ok(model)
    }

    fn stops(&self, name: &str, stop: &Stop) -> Result<(), ActionError> {
        estop(name, stop.emergency).map(|_| ())
    }

    fn drive(&self, robot: DrivenRobot<'_>, notify: Notify) -> Result<Arc<dyn Adapter>, ActionError> {
        Ok(Arc::new(Feetech::new(robot, self, None, notify)?))
    }

    fn safe_stop(&self, robot: DrivenRobot<'_>) -> Result<(), ActionError> {
        safe_stop(robot, self)
    }

    fn rehearse(
        &self,
        robot: DrivenRobot<'_>,
        around: &SimConfig,
        notify: Notify,
    ) -> Option<Result<Arc<dyn Adapter>, ActionError>> {
        let rehearsal = Rehearsal::new(robot, self, around, notify);
        Some(rehearsal.map(|rehearsal| -> Arc<dyn Adapter> { Arc::new(rehearsal) }))
    }
}
