//! The configuration of a robot of Feetech servos, and the parts that follow from it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::layout::{Layout, LayoutKind, MotorConfig};
use super::lerobot::load;
use super::wheels::BaseSize;
use crate::adapter::{ActionError, Estop};
use crate::capability::BusName;
use crate::model::{Model, ModelError};
use crate::subsystem::Subsystem;

/// What belongs to this adapter alone.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Johnny5Config {
    /// Which servos there are.
    pub layout: LayoutKind,
    /// The serial ports.
    pub ports: Ports,
    /// Bits per second.
    pub baud: u32,
    /// How long a servo may take to answer, in milliseconds. An FTDI adapter holds answers for up to 16.
    #[schemars(range(min = 2, max = 500))]
    pub answer_ms: u64,
    /// Changes to single motors, by `<subsystem>.<motor>`: `{"right_arm.elbow": {"reversed": true}}`.
    pub motors: BTreeMap<String, MotorConfig>,
    /// The size of the base.
    pub base: BaseSize,
    /// What `estop: hold` does with a joint that does not say where it is within 30 ms.
    pub hold_unheard: Unheard,
    /// LeRobot's calibration file of an arm, by subsystem: `{"right_arm": "/home/me/.../so_follower/mine.json"}`. It says
    /// where the joints' zeros and ends are. It is read, never written.
    pub calibration: BTreeMap<Subsystem, PathBuf>,
    /// Whether calibration may write into the servos: `calibrate_arm` with `write`, `set_home_position`,
    /// `calibrate_hitch` with `set_home`. What was there before is saved first.
    pub allow_calibration_write: bool,
}

impl Default for Johnny5Config {
    fn default() -> Self {
        Self {
            layout: LayoutKind::default(),
            ports: Ports::default(),
            baud: 1_000_000,
            answer_ms: 20,
            motors: BTreeMap::new(),
            base: BaseSize::default(),
            hold_unheard: Unheard::default(),
            calibration: BTreeMap::new(),
            allow_calibration_write: false,
        }
    }
}

/// What ends the motion of a joint that does not answer a stop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unheard {
    /// The smallest speed that there is, a degree in eleven seconds, with power.
    #[default]
    Slowest,
    /// It lets go: for arms that may fall.
    TorqueOff,
}

/// The serial ports; better a path under /dev/serial/by-id, which stays the same when cables are swapped.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Ports {
    /// Of the bus `left`: left arm, base, lift and hitch.
    pub left: String,
    /// Of the bus `right`: right arm and head; the only one of the other layouts.
    pub right: String,
}

impl Default for Ports {
    fn default() -> Self {
        Self {
            left: "/dev/ttyACM0".to_owned(),
            right: "/dev/ttyACM1".to_owned(),
        }
    }
}

impl Johnny5Config {
    pub(super) fn layout(&self) -> Result<Layout, ActionError> {
        let robot = self.layout.model();
        let robot = robot.map_err(|error| ActionError::Refused(error.to_string()))?;
        let mut layout = Layout::new(&robot, &self.motors)?;
        layout.geometry.set_size(self.base);
        Ok(layout)
    }

    /// The layout with its calibration files. A stop without an instance needs none.
    pub(super) fn calibrated(&self) -> Result<Layout, ActionError> {
        let mut layout = self.layout()?;
        for (arm, path) in &self.calibration {
            load(&mut layout, *arm, path)?;
        }
        layout.check()?;
        Ok(layout)
    }

    pub(super) fn port(&self, bus: BusName) -> String {
        match bus {
            BusName::Left => self.ports.left.clone(),
            BusName::Right => self.ports.right.clone(),
        }
    }
}

/// The parts, poses and routines of a robot of this layout.
///
/// # Errors
/// A change to its motors or a calibration file cannot be used.
pub fn model(config: &Johnny5Config) -> Result<Model, ModelError> {
    let mut model = config.layout.model()?;
    let wrong = |error: ActionError| ModelError::Parse {
        name: "of the configuration".to_owned(),
        message: error.to_string(),
    };
    let layout = config.calibrated().map_err(wrong)?;
    let capabilities = layout.capabilities(model.capabilities.clone(), |bus| config.port(bus));
    let mut capabilities = capabilities.map_err(wrong)?;
    capabilities.services.calibration_write = config.allow_calibration_write;
    let dropped = model.narrow(capabilities);
    if !dropped.is_empty() {
        tracing::info!(poses = ?dropped, "left out: beyond the limits of the motors");
    }
    Ok(model)
}

/// What an emergency stop does: torque off by default.
pub(super) fn estop(robot: &str, estop: Option<Estop>) -> Result<Estop, ActionError> {
    match estop.unwrap_or(Estop::TorqueOff) {
        Estop::Damp => Err(ActionError::NotSupported {
            robot: robot.to_owned(),
            what: "estop damp: Feetech servos either hold or let go; expected hold or torque_off".to_owned(),
        }),
        estop => Ok(estop),
    }
}
