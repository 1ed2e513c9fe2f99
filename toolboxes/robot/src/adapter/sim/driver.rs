//! A simulator in the place of a robot's hardware: under its own driver, or in the place of the driver.

use std::sync::Arc;

use super::config::SimConfig;
use crate::adapter::sim::Sim;
use crate::adapter::{ActionError, Adapter, Notify};
use crate::capability::Capabilities;
use crate::driver::{DrivenRobot, Driver};
use crate::model::{Model, ModelError};

/// A simulator in the place of a robot's hardware.
pub struct SimDriver {
    /// The world around the robot.
    pub config: SimConfig,
    /// The robot's own driver.
    pub own: Box<dyn Driver>,
    /// Its own driver drives simulated hardware where it can.
    pub rehearsed: bool,
}

impl Driver for SimDriver {
    fn equip(&self, parts: &mut Capabilities) {
        self.own.equip(parts);
        parts.simulated = true;
        parts.services.charge = !self.rehearsed && parts.hitch.is_some();
    }

    fn fit(&self, model: Model) -> Result<Model, ModelError> {
        match self.rehearsed {
            true => self.own.fit(model),
            false => Ok(model),
        }
    }

    fn drive(&self, robot: DrivenRobot<'_>, notify: Notify) -> Result<Arc<dyn Adapter>, ActionError> {
        let rehearsal = self
            .rehearsed
            .then(|| self.own.rehearse(robot, &self.config, notify));
        match rehearsal.flatten() {
            Some(rehearsal) => rehearsal,
            None => Ok(Arc::new(Sim::new(robot, &self.config)?)),
        }
    }

    fn safe_stop(&self, _: DrivenRobot<'_>) -> Result<(), ActionError> {
        // A simulated robot has ended with its process.
        Ok(())
    }
}
