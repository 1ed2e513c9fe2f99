//! What follows from the channels of a base: its parts, what drives it, and its safe stop.

use std::sync::Arc;
use std::time::Duration;

use ros_graph::velocity::Velocity;

use super::base::RosBase;
use super::channels::RosBaseConfig;
use super::emergency;
use super::goals::cancel_all;
use super::link::join;
use crate::adapter::{ActionError, Adapter, Estop, Notify};
use crate::capability::{Capabilities, OwnTool, Services};
use crate::conduct::Stop;
use crate::driver::{DrivenRobot, Driver, parts_of};
use crate::model::{Model, ModelError};
use crate::ros::{RosError, carrier};
use crate::subsystem::Subsystem;

/// How long the stop without an instance looks for the base.
const PATIENCE: Duration = Duration::from_secs(3);

impl Driver for RosBaseConfig {
    fn equip(&self, parts: &mut Capabilities) {
        let own = self.tools.iter().map(|(name, tool)| OwnTool {
            name: name.clone(),
            about: tool.about.clone(),
            effect: tool.effect,
            seconds: tool.seconds,
        });
        parts.services = Services {
            motor_status: self.joints.is_some(),
            self_test: parts_of(parts, &[]),
            position: self.odometry.is_some(),
            navigates: self.navigate.is_some(),
            battery: self.battery.is_some(),
            way_ahead: self.scan.is_some(),
            own: own.collect(),
            ..Services::default()
        };
    }

    fn in_graph(&self) -> bool {
        true
    }

    fn fit(&self, model: Model) -> Result<Model, ModelError> {
        self.check()?;
        let parts = model.capabilities.subsystems();
        match parts.iter().find(|part| **part != Subsystem::Base) {
            Some(part) => Err(ModelError::parse(
                "the channels",
                format!("parts.{part}: the driver ros moves a base, and nothing else; leave it out"),
            )),
            None => Ok(model),
        }
    }

    fn stops(&self, name: &str, stop: &Stop) -> Result<(), ActionError> {
        match stop.emergency {
            None | Some(Estop::Hold) => Ok(()),
            Some(_) => Err(ActionError::NotSupported {
                robot: name.to_owned(),
                what: "estop other than hold: a base stands; the vendor's own stop is channels.emergency"
                    .to_owned(),
            }),
        }
    }

    fn drive(&self, robot: DrivenRobot<'_>, notify: Notify) -> Result<Arc<dyn Adapter>, ActionError> {
        self.stops(robot.name, robot.stop)?;
        Ok(Arc::new(RosBase::new(robot, self, notify)))
    }

    fn safe_stop(&self, robot: DrivenRobot<'_>) -> Result<(), ActionError> {
        let failed = |error: RosError| ActionError::NotConnected {
            robot: robot.name.to_owned(),
            reason: format!("{error}; press the robot's own button"),
        };
        let runtime = carrier::runtime(robot.name).map_err(failed)?;
        let stopped: Result<(), RosError> = runtime.block_on(async {
            let graph = join(robot.name, self, carrier::visit).await?;
            let (config, actions) = (self.velocity(), self.actions());
            let zero = Velocity::shout_zero(graph.as_ref(), &config, PATIENCE);
            // At the same time: a goal outlives what has sent it, and moves the base again.
            let (zero, cancelled) = tokio::join!(zero, cancel_all(graph.as_ref(), &actions, PATIENCE));
            let again = Velocity::shout_zero(graph.as_ref(), &config, PATIENCE).await;
            let vendor = match &self.emergency {
                Some(vendor) => emergency::ask(graph.as_ref(), &vendor.service, &vendor.on, PATIENCE).await,
                None => Ok(()),
            };
            Ok(zero.and(cancelled).and(again).and(vendor)?)
        });
        runtime.shutdown_background();
        stopped.map_err(failed)
    }
}
