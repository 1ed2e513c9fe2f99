//! A simulator in the place of a robot's hardware.

use std::sync::Arc;

use super::config::SimConfig;
use crate::adapter::stand_in::StandIn;
use crate::adapter::{ActionError, Adapter, Notify};
use crate::capability::Capabilities;
use crate::driver::{DrivenRobot, Driver};
use crate::model::{Model, ModelError};

/// A simulator in the place of a robot's hardware: under the robot's own driver where that can be.
pub(crate) struct SimDriver {
    /// What is around the robot.
    pub(crate) config: SimConfig,
    /// The robot's own driver.
    pub(crate) own: Box<dyn Driver>,
    /// It is the robot of the catalogue: it can do everything that a robot of its file can be built for.
    pub(crate) in_catalogue: bool,
}

impl Driver for SimDriver {
    fn equip(&self, parts: &mut Capabilities) {
        self.own.equip(parts);
        parts.simulated = true;
    }

    fn fit(&self, model: Model) -> Result<Model, ModelError> {
        if !self.in_catalogue {
            return self.own.fit(model);
        }
        if model.capabilities.buses.is_empty() {
            return Ok(model);
        }
        let mut model = self.own.fit(model)?;
        let mut parts = model.capabilities.clone();
        // The charger says that it charges, and no servo is worn out by what is written.
        parts.services.charge = parts.hitch.is_some();
        parts.services.calibration_write = true;
        model.narrow(parts);
        Ok(model)
    }

    fn stops(&self, name: &str, stop: &crate::conduct::Stop) -> Result<(), ActionError> {
        self.own.stops(name, stop)
    }

    fn drive(&self, robot: DrivenRobot<'_>, notify: Notify) -> Result<Arc<dyn Adapter>, ActionError> {
        match self.own.rehearse(robot, &self.config, notify) {
            Some(rehearsal) => rehearsal,
            None => Ok(Arc::new(StandIn::new(robot, &self.config)?)),
        }
    }

    fn safe_stop(&self, _: DrivenRobot<'_>) -> Result<(), ActionError> {
        // A simulated robot has ended with its process.
        Ok(())
    }
}
