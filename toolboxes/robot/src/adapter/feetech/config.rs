//! The channels of a robot of servos on serial buses, and the parts that follow from them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::Deserialize;

use super::layout::{Layout, MotorConfig};
use super::lerobot::load;
use super::servo::exact;
use super::wheels::{BaseSize, Wheels};
use crate::adapter::{ActionError, Estop};
use crate::capability::{Bus, BusName, Capabilities, Motor};
use crate::model::Model;
use crate::model::error::nearest;
use crate::model::soundness::{number, words};
use crate::servo::Family;
use crate::subsystem::Subsystem;

/// The channels of a robot of Feetech servos.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FeetechConfig {
    /// Whose servos they are: what the word of the driver says.
    #[serde(skip)]
    pub(crate) family: Family,
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
    /// The size of the base, of a robot that has one.
    pub base: Option<BaseSize>,
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
            family: Family::default(),
            buses: Vec::new(),
            ports: Ports::default(),
            baud: 1_000_000,
            answer_ms: 20,
            motors: BTreeMap::new(),
            base: None,
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
    /// The smallest speed that there is, a degree in eleven seconds, with power. Dynamixel's servos take no speed without a goal, and let go.
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
        if let Some(size) = self.base {
            layout.geometry.set_size(size);
        }
        Ok(layout)
    }

    /// The layout with its calibration files. A stop without an instance needs none.
    pub(super) fn calibrated(&self, robot: &Model) -> Result<Layout, ActionError> {
        let mut layout = self.layout(robot)?;
        for (arm, path) in &self.calibration {
            load(&mut layout, self.family, *arm, path)?;
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

    /// Checks the buses against the parts that their motors move.
    ///
    /// # Errors
    /// A bus, a motor or a number cannot be meant, with its key; a part has no motor, or a motor no part.
    pub(super) fn check(&self, parts: &Capabilities) -> Result<(), String> {
        if self.buses.is_empty() {
            return Err(
                "channels.buses: missing; expected [[channels.buses]] with name, port and motors".to_owned(),
            );
        }
        if self.family == Family::Xl && parts.base.is_some() {
            return Err("parts.base: the driver dynamixel moves joints alone; leave it out".to_owned());
        }
        let names: BTreeSet<BusName> = self.buses.iter().map(|bus| bus.name).collect();
        if names.len() != self.buses.len() {
            return Err("channels.buses: two buses have one name; the names are left and right".to_owned());
        }
        self.check_ports(&names)?;
        number(
            "channels.answer_ms",
            exact(i64::try_from(self.answer_ms).unwrap_or(i64::MAX)),
            2.0,
            500.0,
            "ms",
        )?;
        number(
            "channels.baud",
            f64::from(self.baud),
            9_600.0,
            1_000_000.0,
            "bits a second",
        )?;
        if let Some(size) = self.base {
            number("channels.base.wheel_radius", size.wheel_radius, 0.005, 1.0, "m")?;
            number("channels.base.base_radius", size.base_radius, 0.01, 5.0, "m")?;
        }
        let motors: Vec<&Motor> = self.buses.iter().flat_map(|bus| &bus.motors).collect();
        motors
            .iter()
            .try_for_each(|motor| moves_something(motor, parts))?;
        for part in parts.subsystems() {
            is_moved(part, parts, &motors)?;
        }
        if parts.base.is_some() && self.base.is_none() {
            return Err(
                "channels.base: missing; expected wheel_radius, the radius of a wheel, and base_radius, from the centre of the base to a \
                 wheel, both in metres as measured: how far the base has gone is counted with them"
                    .to_owned(),
            );
        }
        match self
            .calibration
            .keys()
            .find(|arm| !parts.has(**arm) || !arm.is_arm())
        {
            Some(part) => Err(format!(
                "channels.calibration.{part}: expected an arm that the robot has"
            )),
            None => Ok(()),
        }
    }

    fn check_ports(&self, names: &BTreeSet<BusName>) -> Result<(), String> {
        for (name, port) in [
            (BusName::Left, &self.ports.left),
            (BusName::Right, &self.ports.right),
        ] {
            if port.is_some() && !names.contains(&name) {
                return Err(format!(
                    "channels.ports.{0}: the robot has no bus {0}; leave it out",
                    name.as_str()
                ));
            }
            if names.contains(&name) && self.port(name).trim().is_empty() {
                return Err(format!(
                    "channels.buses: bus {} has no port; expected a path such as /dev/ttyACM0",
                    name.as_str()
                ));
            }
        }
        if names.len() == 2 && self.port(BusName::Left) == self.port(BusName::Right) {
            return Err(format!(
                "channels.buses: left and right are both on {}; give each a port of its own, or put all motors on one bus",
                self.port(BusName::Left)
            ));
        }
        Ok(())
    }
}

/// Checks that a motor moves something that the robot has.
fn moves_something(motor: &Motor, parts: &Capabilities) -> Result<(), String> {
    let on = motor.subsystem;
    let key = format!("channels.buses: motor {on}.{}", motor.name);
    if on == Subsystem::All || !parts.has(on) {
        let has: Vec<&str> = parts.subsystems().into_iter().map(Subsystem::as_str).collect();
        return Err(format!("{key}: the robot has no {on}; it has {}", has.join(", ")));
    }
    match (on == Subsystem::Base, motor.bearing) {
        (true, None) => {
            return Err(format!(
                "{key}: bearing is missing; expected where the wheel stands, in degrees counter-clockwise from straight ahead"
            ));
        }
        (true, Some(bearing)) => number(&format!("{key}: bearing"), bearing, -360.0, 360.0, "degrees")?,
        (false, Some(_)) => return Err(format!("{key}: bearing is for wheels; leave it out")),
        (false, None) => {}
    }
    if let Some(middle) = motor.middle {
        if on == Subsystem::Base {
            return Err(format!("{key}: middle is for joints; leave it out"));
        }
        number(
            &format!("{key}: middle"),
            middle,
            -1_000.0,
            1_000.0,
            "degrees or mm",
        )?;
    }
    let Some(joints) = parts.joints(on) else {
        return Ok(());
    };
    if joints.iter().any(|joint| joint.name == motor.name) {
        return Ok(());
    }
    let known = || joints.iter().map(|joint| joint.name.as_str());
    let near =
        nearest(&motor.name, known()).map_or_else(String::new, |near| format!("; did you mean {near}?"));
    Err(format!(
        "{key}: {on} has no joint of that name; its joints are {}{near}",
        known().collect::<Vec<_>>().join(", ")
    ))
}

/// Checks that a part has the motors that it needs, each once.
fn is_moved(part: Subsystem, parts: &Capabilities, motors: &[&Motor]) -> Result<(), String> {
    let of_part: Vec<&&Motor> = motors.iter().filter(|motor| motor.subsystem == part).collect();
    words(
        &format!("channels.buses: motor {part}"),
        of_part.iter().map(|motor| motor.name.as_str()),
    )?;
    let example = |name: &str| {
        format!("expected {{ id = 1, subsystem = \"{part}\", name = \"{name}\" }} in channels.buses")
    };
    if let Some(joints) = parts.joints(part) {
        if parts
            .arm(part)
            .and_then(|arm| arm.gripper.as_ref())
            .is_some_and(|gripper| gripper.joint.is_none())
        {
            return Err(format!(
                "parts.{part}.gripper.joint: missing; expected which of the arm's joints it is, counted from 0"
            ));
        }
        let still = joints
            .iter()
            .find(|joint| of_part.iter().all(|motor| motor.name != joint.name));
        return still.map_or(Ok(()), |joint| {
            Err(format!(
                "parts.{part}: no motor moves the joint {}; {}",
                joint.name,
                example(&joint.name)
            ))
        });
    }
    if part != Subsystem::Base {
        return match of_part.len() {
            1 => Ok(()),
            0 => Err(format!(
                "parts.{part}: no motor moves it; {}",
                example(part.as_str())
            )),
            more => Err(format!("channels.buses: {more} motors move {part}, expected one")),
        };
    }
    let wheels = Wheels::new(of_part.iter().filter_map(|motor| motor.bearing));
    let sideways = parts.base.as_ref().is_some_and(|base| base.max_lateral > 0.0);
    wheels.check(sideways)
}

/// What an emergency stop does: torque off by default.
pub(super) fn estop(robot: &str, estop: Option<Estop>) -> Result<Estop, ActionError> {
    match estop.unwrap_or(Estop::TorqueOff) {
        Estop::Damp => Err(ActionError::NotSupported {
            robot: robot.to_owned(),
            what: "estop damp: these servos either hold or let go; expected hold or torque_off".to_owned(),
        }),
        estop => Ok(estop),
    }
}
