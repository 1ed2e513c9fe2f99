//! What follows from the channels of a Go2: its parts, what drives it, and its safe stop.

use std::sync::Arc;
use std::time::Duration;

use ovos_toolbox_sdk::wire::Effect;
use serde_json::json;

use super::config::UnitreeGo2Config;
use super::robot::UnitreeGo2;
use super::sport::ROUTINES;
use crate::adapter::{ActionError, Adapter, Estop, Notify};
use crate::capability::{Capabilities, OwnTool, Services};
use crate::conduct::Stop;
use crate::dds::shout::Shout;
use crate::dds::unitree::{REQUEST, go2, request};
use crate::driver::{DrivenRobot, Driver, parts_of};
use crate::model::{Model, ModelError};
use crate::ros::RosError;
use crate::subsystem::Subsystem;

impl Driver for UnitreeGo2Config {
    fn equip(&self, parts: &mut Capabilities) {
        let own = ROUTINES.iter().map(|routine| OwnTool {
            name: routine.name.to_owned(),
            about: routine.about.to_owned(),
            effect: Effect::Motion,
            #[allow(clippy::cast_precision_loss, reason = "one or two")]
            seconds: routine.seconds * routine.functions.len() as f64,
        });
        parts.services = Services {
            self_test: parts_of(parts, &[]),
            own: own.collect(),
            ..Services::default()
        };
    }

    fn fit(&self, model: Model) -> Result<Model, ModelError> {
        let parts = model.capabilities.subsystems();
        match parts.iter().find(|part| **part != Subsystem::Base) {
            Some(part) => Err(ModelError::parse(
                "the channels",
                format!("parts.{part}: a Go2 has a base, and nothing else; leave it out"),
            )),
            None => Ok(model),
        }
    }

    fn stops(&self, name: &str, stop: &Stop) -> Result<(), ActionError> {
        match stop.emergency {
            None | Some(Estop::Hold | Estop::Damp) => Ok(()),
            Some(_) => Err(ActionError::NotSupported {
                robot: name.to_owned(),
                what: "estop torque_off: expected hold (it stands) or damp (it lies down)".to_owned(),
            }),
        }
    }

    fn drive(&self, robot: DrivenRobot<'_>, notify: Notify) -> Result<Arc<dyn Adapter>, ActionError> {
        self.stops(robot.name, robot.stop)?;
        Ok(Arc::new(UnitreeGo2::new(robot, self, notify)))
    }

    /// Joins the robot's network and, as soon as the robot hears it, repeats a stop for a while.
    fn safe_stop(&self, robot: DrivenRobot<'_>) -> Result<(), ActionError> {
        let damps = robot.stop.emergency == Some(Estop::Damp);
        // Each request has a new id, which differs from those of the process that has died.
        let ask = |function| request(fastrand::i64(1..1 << 40), function, &json!({}), true);
        let stops = || {
            let damp = damps.then(|| ask(go2::DAMP));
            [ask(go2::STOP_MOVE)].into_iter().chain(damp).collect()
        };
        Shout::open(&self.ros, "/api/sport/request", REQUEST)
            .and_then(|sport| sport.say(Duration::from_secs(3), Duration::from_millis(10), stops))
            .map_err(|error: RosError| ActionError::NotConnected {
                robot: robot.name.to_owned(),
                reason: format!("{error}; use the robot's remote control"),
            })
    }
}
