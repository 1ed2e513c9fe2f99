//! The channels of a robot of Feetech servos, and the parts that follow from them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::Deserialize;

use super::layout::{Layout, MotorConfig};
use super::lerobot::load;
use super::wheels::BaseSize;
use crate::adapter::{ActionError, Estop};
use crate::capability::{Bus, BusName};
use crate::model::Model;
use crate::subsystem::Subsystem;

/// The channels of a robot of Feetech servos.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FeetechConfig {
    /// The servo buses, each with every motor on it.
    pub buses: Vec<Bus>,
    /// Other serial ports than those of the buses.
    pub ports: Ports,
    /// Bits per second.
    pub baud: u32,
    /// How long a servo may take to answer, in milliseconds, 2 to 500. An FTDI adapter holds answers for up to 16.
    pub answer_ms: u64,
    /// Changes to single motors, by `<subsystem>.<motor>`: `{"right_arm.elbow": {"reversed": true}}`.
    pub motors: BTreeMap<String, MotorConfig>,
    /// The size of the base.
    pub base: BaseSize,
    /// What `hold` does in an emergency with a joint that does not say where it is within 30 ms.
    pub hold_unheard: Unheard,
    /// LeRobot's calibration file of an arm, by subsystem: `{"right_arm": "/home/me/.../so_follower/mine.json"}`. It says
    /// where the joints' zeros and ends are. It is read, never written.
    pub calibration: BTreeMap<Subsystem, PathBuf>,
    /// Whether calibration may write into the servos: `calibrate_arm` with `write`, `set_home_position`,
    /// `calibrate_hitch` with `set_home`. What was there before is saved first.
    pub allow_calibration_write: bool,
}

impl Default for FeetechConfig {
    fn default() -> Self {
        Self {
            buses: Vec::new(),
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unheard {
    /// The smallest speed that there is, a degree in eleven seconds, with power.
    #[default]
    Slowest,
    /// It lets go: for arms that may fall.
    TorqueOff,
}

/// The serial ports; better a path under /dev/serial/by-id, which stays the same when cables are swapped.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Ports {
    /// Of the bus `left`.
    pub left: Option<String>,
    /// Of the bus `right`.
    pub right: Option<String>,
}

impl FeetechConfig {
    /// The servos of a robot of this kind.
    pub(super) fn layout(&self, robot: &Model) -> Result<Layout, ActionError> {
        let mut layout = Layout::new(robot, &self.motors)?;
        layout.geometry.set_size(self.base);
        Ok(layout)
    }

    /// The layout with its calibration files. A stop without an instance needs none.
    pub(super) fn calibrated(&self, robot: &Model) -> Result<Layout, ActionError> {
        let mut layout = self.layout(robot)?;
        for (arm, path) in &self.calibration {
            load(&mut layout, *arm, path)?;
        }
        layout.check()?;
        Ok(layout)
    }

    pub(super) fn port(&self, bus: BusName) -> String {
        let own = match bus {
            BusName::Left => &self.ports.left,
            BusName::Right => &self.ports.right,
        };
        let of_file = || Some(self.buses.iter().find(|one| one.name == bus)?.port.clone());
        own.clone().or_else(of_file).unwrap_or_default()
    }

    /// # Errors
    /// A bus is there twice, or an answer may take too long or too short.
    pub(super) fn check(&self) -> Result<(), ActionError> {
        let refused = |what: &str| Err(ActionError::Refused(what.to_owned()));
        if self.buses.is_empty() {
            return refused(
                "channels.buses: missing; expected [[channels.buses]] with name, port and motors",
            );
        }
        let names: BTreeSet<BusName> = self.buses.iter().map(|bus| bus.name).collect();
        if names.len() != self.buses.len() {
            return refused("channels.buses: two buses have one name; the names are left and right");
        }
        if !(2..=500).contains(&self.answer_ms) {
            return refused(&format!(
                "channels.answer_ms: {} is out of range, expected 2 to 500",
                self.answer_ms
            ));
        }
        Ok(())
    }
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
