//! Which servo moves what, and how degrees become steps.
//!
//! Owns the built-in layouts and the changes a configuration makes to them. Pure. Read [`Layout`].

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::wheels::Wheels;
use crate::action::BusName;
use crate::adapter::ActionError;
use crate::capability::{Base, Bus, Capabilities, Joint, Motor, Services};
use crate::subsystem::Subsystem;

/// Steps of a turn of an STS3215.
const TURN: f64 = 4096.0;
/// The step in the middle of that turn.
const MIDDLE: f64 = 2048.0;
/// How fast an arm's joint turns at speed 1.0, degrees per second: a third of what the servo can without a load.
const ARM_SPEED: f64 = 90.0;

/// A built-in layout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LayoutKind {
    /// Two arms, a three-wheel base, a lift, a hitch and a head: 19 servos on two buses.
    #[default]
    Johnny5,
    /// One SO-101 arm: servos 1 to 6 on the bus `right`, as the right arm.
    So101,
    /// LeKiwi: an SO-101 arm (1 to 6) on three wheels (7 to 9), all on the bus `right`.
    Lekiwi,
}

/// What a configuration changes about one servo. What is missing stays as the layout has it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MotorConfig {
    /// Its id on the bus.
    #[schemars(range(min = 1, max = 253))]
    pub id: Option<u8>,
    /// Which bus it hangs on.
    pub bus: Option<BusName>,
    /// The step, 0 to 4095, at which its joint is at 0 degrees (or millimetres).
    pub zero_step: Option<f64>,
    /// It turns the other way round.
    pub reversed: bool,
    /// Degrees (or millimetres): the smallest it goes to.
    pub min: Option<f64>,
    /// Degrees (or millimetres): the largest it goes to.
    pub max: Option<f64>,
}

/// One servo that goes to positions.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Servo {
    pub(crate) subsystem: Subsystem,
    pub(crate) name: String,
    pub(crate) bus: BusName,
    pub(crate) id: u8,
    /// Degrees or millimetres.
    pub(crate) min: f64,
    pub(crate) max: f64,
    pub(crate) home: f64,
    /// Degrees or millimetres per second at speed 1.0.
    pub(crate) speed: f64,
    /// The step of 0 degrees or millimetres.
    pub(crate) zero: f64,
    /// Steps of a degree or millimetre; negative where it turns the other way round.
    pub(crate) scale: f64,
    /// The position that stands in the middle of its turn, in degrees or millimetres.
    pub(crate) middle: f64,
    /// The homing offset that the servo has to have, where a calibration file says so.
    pub(crate) offset: Option<i64>,
}

/// One wheel.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Wheel {
    pub(crate) name: String,
    pub(crate) bus: BusName,
    pub(crate) id: u8,
    pub(crate) reversed: bool,
}

/// Every servo of a robot.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Layout {
    pub(crate) model: &'static str,
    pub(crate) servos: Vec<Servo>,
    pub(crate) wheels: Vec<Wheel>,
    /// In the order of `wheels`.
    pub(crate) geometry: Wheels,
}

impl Servo {
    /// The step of a position in degrees or millimetres, within what the servo can count to.
    pub(crate) fn steps(&self, value: f64) -> i64 {
        round((self.zero + value * self.scale).clamp(0.0, TURN - 1.0))
    }

    /// The position of a step.
    pub(crate) fn value(&self, steps: i64) -> f64 {
        (exact(steps) - self.zero) / self.scale
    }

    /// Steps per second of a speed in degrees or millimetres per second; at least 1, because 0 means as fast as it can.
    pub(crate) fn rate(&self, speed: f64) -> u16 {
        let rate = (speed * self.scale).abs().clamp(1.0, 3400.0).round();
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "clamped to 1 to 3400"
        )]
        let rate = rate as u16;
        rate
    }

    /// How an error names it.
    pub(crate) fn label(&self) -> String {
        format!(
            "{} {} (servo {} on bus {})",
            self.subsystem,
            self.name,
            self.id,
            self.bus.as_str()
        )
    }
}

#[allow(
    clippy::cast_possible_truncation,
    reason = "clamped to 0 to 4095 or a speed far below 2^53"
)]
pub(crate) fn round(value: f64) -> i64 {
    value.round() as i64
}

#[allow(clippy::cast_precision_loss, reason = "positions have 16 bits")]
pub(crate) fn exact(steps: i64) -> f64 {
    steps as f64
}

/// A joint of degrees whose range has its middle in the middle of the servo's turn.
fn joint(subsystem: Subsystem, bus: BusName, id: u8, name: &str, (min, max): (f64, f64), home: f64) -> Servo {
    let scale = TURN / 360.0;
    let middle = f64::midpoint(min, max);
    Servo {
        subsystem,
        name: name.to_owned(),
        bus,
        id,
        min,
        max,
        home,
        speed: ARM_SPEED,
        zero: MIDDLE - scale * middle,
        scale,
        middle,
        offset: None,
    }
}

fn arm(subsystem: Subsystem, bus: BusName) -> Vec<Servo> {
    vec![
        joint(subsystem, bus, 1, "base", (-150.0, 150.0), 0.0),
        joint(subsystem, bus, 2, "shoulder", (-90.0, 90.0), -45.0),
        joint(subsystem, bus, 3, "elbow", (0.0, 180.0), 90.0),
        joint(subsystem, bus, 4, "wrist_pitch", (-90.0, 90.0), 45.0),
        joint(subsystem, bus, 5, "wrist_roll", (-180.0, 180.0), 0.0),
        joint(subsystem, bus, 6, "gripper", (0.0, 80.0), 0.0),
    ]
}

/// The arm of an SO-101 and of a LeKiwi, with the ranges of its published URDF (`so101_new_calib.urdf`, in degrees about
/// the middle of each joint's way: ±110, ±100, ±96.8, ±95, -157 to 163, and 110 of the gripper), in the angles of Johnny
/// Five's arm, whose elbow counts from 0 stretched to 180 folded and whose closed gripper is at 0.
fn so101(subsystem: Subsystem, bus: BusName) -> Vec<Servo> {
    let roll = joint(subsystem, bus, 5, "wrist_roll", (-180.0, 180.0), 0.0);
    vec![
        joint(subsystem, bus, 1, "base", (-110.0, 110.0), 0.0),
        joint(subsystem, bus, 2, "shoulder", (-100.0, 100.0), -45.0),
        joint(subsystem, bus, 3, "elbow", (-6.8, 186.8), 90.0),
        joint(subsystem, bus, 4, "wrist_pitch", (-95.0, 95.0), 45.0),
        // Its zero is in the middle of the servo's turn, and not in the middle of its range.
        Servo {
            min: -157.0,
            max: 163.0,
            ..roll
        },
        joint(subsystem, bus, 6, "gripper", (0.0, 110.0), 0.0),
    ]
}

fn wheels(bus: BusName, names: [&str; 3]) -> Vec<Wheel> {
    (7..)
        .zip(names)
        .map(|(id, name)| Wheel {
            name: name.to_owned(),
            bus,
            id,
            reversed: false,
        })
        .collect()
}

impl Layout {
    /// A built-in layout with the configuration's changes.
    ///
    /// # Errors
    /// A change names no servo of the layout, or makes two servos of a bus share an id, or leaves a servo no range.
    pub(crate) fn new(
        kind: LayoutKind,
        changes: &BTreeMap<String, MotorConfig>,
    ) -> Result<Self, ActionError> {
        let mut layout = Self::built_in(kind);
        for (name, change) in changes {
            layout.change(name, change)?;
        }
        layout.check()?;
        Ok(layout)
    }

    fn built_in(kind: LayoutKind) -> Self {
        use BusName::{Left, Right};
        match kind {
            LayoutKind::Johnny5 => {
                let mut servos = arm(Subsystem::LeftArm, Left);
                servos.extend(arm(Subsystem::RightArm, Right));
                servos.push(Servo {
                    // One turn of the servo is the whole way of the lift.
                    scale: (TURN - 1.0) / 300.0,
                    zero: 0.0,
                    speed: 50.0,
                    ..joint(Subsystem::Lift, Left, 10, "lift", (0.0, 300.0), 150.0)
                });
                servos.push(joint(Subsystem::Hitch, Left, 11, "hitch", (0.0, 80.0), 0.0));
                servos.push(joint(Subsystem::Gantry, Right, 7, "pan", (-90.0, 90.0), 0.0));
                servos.push(joint(Subsystem::Gantry, Right, 8, "tilt", (-45.0, 45.0), 0.0));
                Self {
                    model: "johnny5",
                    servos,
                    wheels: wheels(Left, ["front", "back_left", "back_right"]),
                    geometry: Wheels::new([0.0, 120.0, 240.0]),
                }
            }
            LayoutKind::So101 => Self {
                model: "so101",
                servos: so101(Subsystem::RightArm, Right),
                wheels: Vec::new(),
                geometry: Wheels::new([]),
            },
            LayoutKind::Lekiwi => Self {
                model: "lekiwi",
                servos: so101(Subsystem::RightArm, Right),
                wheels: wheels(Right, ["left", "back", "right"]),
                geometry: Wheels::new([60.0, 180.0, 300.0]),
            },
        }
    }

    fn change(&mut self, name: &str, change: &MotorConfig) -> Result<(), ActionError> {
        if let Some(wheel) = self
            .wheels
            .iter_mut()
            .find(|wheel| format!("base.{}", wheel.name) == name)
        {
            wheel.id = change.id.unwrap_or(wheel.id);
            wheel.bus = change.bus.unwrap_or(wheel.bus);
            wheel.reversed = change.reversed;
            return Ok(());
        }
        let known = self.names().join(", ");
        let Some(servo) = self
            .servos
            .iter_mut()
            .find(|servo| format!("{}.{}", servo.subsystem, servo.name) == name)
        else {
            return Err(ActionError::Refused(format!(
                "johnny5.motors: no motor {name}; known are {known}"
            )));
        };
        servo.id = change.id.unwrap_or(servo.id);
        servo.bus = change.bus.unwrap_or(servo.bus);
        servo.min = change.min.unwrap_or(servo.min);
        servo.max = change.max.unwrap_or(servo.max);
        servo.home = servo
            .home
            .clamp(servo.min.min(servo.max), servo.max.max(servo.min));
        if change.reversed {
            // About the middle of the layout's range, so that it stays where it was, however far the joint may go.
            servo.zero += 2.0 * servo.scale * servo.middle;
            servo.scale = -servo.scale;
        }
        servo.zero = change.zero_step.unwrap_or(servo.zero);
        Ok(())
    }

    fn names(&self) -> Vec<String> {
        let servos = self
            .servos
            .iter()
            .map(|servo| format!("{}.{}", servo.subsystem, servo.name));
        let wheels = self.wheels.iter().map(|wheel| format!("base.{}", wheel.name));
        servos.chain(wheels).collect()
    }

    /// # Errors
    /// Two motors share an id, or a servo has no range or one beyond what it counts to.
    pub(super) fn check(&self) -> Result<(), ActionError> {
        let mut taken: BTreeMap<(BusName, u8), String> = BTreeMap::new();
        for motor in [BusName::Left, BusName::Right]
            .into_iter()
            .flat_map(|bus| self.motors(bus))
        {
            let (bus, motor) = motor;
            let name = format!("{} {}", motor.subsystem, motor.name);
            if let Some(other) = taken.insert((bus, motor.id), name.clone()) {
                return Err(ActionError::Refused(format!(
                    "johnny5.motors: {name} and {other} both have id {} on bus {}",
                    motor.id,
                    bus.as_str()
                )));
            }
        }
        for servo in &self.servos {
            let ends = [servo.min, servo.max].map(|end| servo.zero + end * servo.scale);
            // Half a step for rounding, one for a whole turn.
            if servo.min >= servo.max || ends.iter().any(|end| !(-1.5..=TURN + 0.5).contains(end)) {
                return Err(ActionError::Refused(format!(
                    "johnny5.motors: {} to {} of {} is steps {:.0} to {:.0}, expected 0 to 4095 and min below max",
                    servo.min,
                    servo.max,
                    servo.label(),
                    ends[0],
                    ends[1]
                )));
            }
        }
        Ok(())
    }

    /// The servos of a subsystem, in the order of its joints.
    pub(crate) fn of(&self, subsystem: Subsystem) -> Vec<&Servo> {
        self.servos
            .iter()
            .filter(|servo| servo.subsystem == subsystem)
            .collect()
    }

    /// Every motor of a bus, wheels too, by id.
    pub(crate) fn motors(&self, bus: BusName) -> Vec<(BusName, Motor)> {
        let servos = self
            .servos
            .iter()
            .map(|servo| (servo.bus, servo.id, servo.subsystem, &servo.name));
        let wheels = self
            .wheels
            .iter()
            .map(|wheel| (wheel.bus, wheel.id, Subsystem::Base, &wheel.name));
        let mut motors: Vec<(BusName, Motor)> = servos
            .chain(wheels)
            .filter(|(of, ..)| *of == bus)
            .map(|(bus, id, subsystem, name)| {
                (
                    bus,
                    Motor {
                        id,
                        subsystem,
                        name: name.clone(),
                    },
                )
            })
            .collect();
        motors.sort_by_key(|(_, motor)| motor.id);
        motors
    }

    /// The motors of a subsystem, wheels too: `(bus, id, name)`.
    pub(crate) fn motors_of(&self, subsystem: Subsystem) -> Vec<(BusName, u8, String)> {
        let all = subsystem == Subsystem::All;
        let servos = self
            .servos
            .iter()
            .filter(|servo| all || servo.subsystem == subsystem)
            .map(|servo| (servo.bus, servo.id, servo.name.clone()));
        let wheels = self
            .wheels
            .iter()
            .filter(|_| all || subsystem == Subsystem::Base)
            .map(|wheel| (wheel.bus, wheel.id, wheel.name.clone()));
        servos.chain(wheels).collect()
    }

    /// The servo with this id on this bus.
    pub(crate) fn servo(&self, bus: BusName, id: u8) -> Option<&Servo> {
        self.servos
            .iter()
            .find(|servo| servo.bus == bus && servo.id == id)
    }

    /// Checks that the servos leave something of the ranges of the parts that they move.
    ///
    /// # Errors
    /// They leave nothing, with the servo.
    pub(crate) fn check_within(&self, johnny5: &Capabilities) -> Result<(), ActionError> {
        let mut own = johnny5.clone();
        for (subsystem, at, servo) in self.in_order() {
            let joint = joint_of(&mut own, subsystem, at).map(|joint| (joint.min, joint.max));
            let lift = johnny5.lift.as_ref().filter(|_| subsystem == Subsystem::Lift);
            let Some((min, max)) = joint.or(lift.map(|lift| (lift.min, lift.max))) else {
                continue;
            };
            if servo.min.max(min) >= servo.max.min(max) {
                return Err(ActionError::Refused(format!(
                    "johnny5.motors: {subsystem}.{}: nothing is left of {min} to {max} within {} to {}",
                    servo.name, servo.min, servo.max
                )));
            }
        }
        Ok(())
    }

    /// Makes the ranges of Johnny Five's joints those of this layout as it was built, whatever a configuration changes.
    pub(crate) fn widen(kind: LayoutKind, capabilities: &mut Capabilities) {
        let layout = Self::built_in(kind);
        for (subsystem, at, servo) in layout.in_order() {
            if let Some(joint) = joint_of(capabilities, subsystem, at) {
                (joint.min, joint.max) = (servo.min, servo.max);
            }
            let arm = match subsystem {
                Subsystem::LeftArm => capabilities.left_arm.as_mut(),
                Subsystem::RightArm => capabilities.right_arm.as_mut(),
                _ => None,
            };
            let hand = arm.and_then(|arm| arm.gripper.as_mut());
            if let Some(hand) = hand.filter(|hand| hand.joint == Some(at)) {
                (hand.closed, hand.open) = (servo.min, servo.max);
            }
        }
    }

    /// What of a Johnny Five's parts such a robot has. `port` names the device of a bus.
    pub(crate) fn capabilities(
        &self,
        johnny5: Capabilities,
        port: impl Fn(BusName) -> String,
    ) -> Capabilities {
        let has = |subsystem: Subsystem| !self.motors_of(subsystem).is_empty();
        let of = |list: &[Subsystem]| list.iter().copied().filter(|one| has(*one)).collect::<Vec<_>>();
        let buses = [BusName::Left, BusName::Right].into_iter().filter_map(|bus| {
            let motors: Vec<Motor> = self.motors(bus).into_iter().map(|(_, motor)| motor).collect();
            (!motors.is_empty()).then(|| Bus {
                name: bus,
                port: port(bus),
                motors,
            })
        });
        let mut own = Capabilities {
            model: self.model.to_owned(),
            buses: buses.collect(),
            left_arm: johnny5.left_arm.filter(|_| has(Subsystem::LeftArm)),
            right_arm: johnny5.right_arm.filter(|_| has(Subsystem::RightArm)),
            gantry: johnny5.gantry.filter(|_| has(Subsystem::Gantry)),
            lift: johnny5.lift.filter(|_| has(Subsystem::Lift)),
            hitch: johnny5.hitch.filter(|_| has(Subsystem::Hitch)),
            base: johnny5.base.filter(|_| has(Subsystem::Base)).map(|base| Base {
                // What an STS3215 on a wheel of 5 cm can, nearly.
                max_linear: 0.3,
                max_lateral: 0.3,
                usual_linear: 0.2,
                ..base
            }),
            services: Services {
                calibrate: of(&johnny5.services.calibrate),
                set_home: of(&johnny5.services.set_home),
                self_test: of(&johnny5.services.self_test),
                // No servo can tell.
                charge: false,
                ..johnny5.services
            },
            ..johnny5
        };
        for (subsystem, at, servo) in self.in_order() {
            if let Some(joint) = joint_of(&mut own, subsystem, at) {
                joint.min = joint.min.max(servo.min);
                joint.max = joint.max.min(servo.max);
            }
            if let (Subsystem::Lift, Some(lift)) = (subsystem, &mut own.lift) {
                lift.min = lift.min.max(servo.min);
                lift.max = lift.max.min(servo.max);
                lift.home = lift.home.max(lift.min).min(lift.max);
            }
        }
        own.fit_grippers();
        own
    }

    /// Takes over the ranges and speeds of what the robot may do.
    pub(crate) fn narrow(&mut self, capabilities: &Capabilities) {
        let mut capabilities = capabilities.clone();
        let order: Vec<(Subsystem, usize)> = self
            .in_order()
            .map(|(subsystem, at, _)| (subsystem, at))
            .collect();
        for (servo, (subsystem, at)) in self.servos.iter_mut().zip(order) {
            if let Some(joint) = joint_of(&mut capabilities, subsystem, at) {
                (servo.min, servo.max, servo.speed) = (joint.min, joint.max, joint.max_speed);
            }
            if let (Subsystem::Lift, Some(lift)) = (subsystem, &capabilities.lift) {
                (servo.min, servo.max, servo.speed, servo.home) =
                    (lift.min, lift.max, lift.max_speed, lift.home);
            }
            if let (Subsystem::Hitch, Some(hitch)) = (subsystem, &capabilities.hitch) {
                servo.speed = hitch.max_speed;
            }
            servo.home = servo.home.clamp(servo.min, servo.max);
        }
    }

    /// Every servo with its subsystem and its place among the joints of it.
    fn in_order(&self) -> impl Iterator<Item = (Subsystem, usize, &Servo)> {
        let mut next: BTreeMap<Subsystem, usize> = BTreeMap::new();
        self.servos.iter().map(move |servo| {
            let at = next.entry(servo.subsystem).or_default();
            *at += 1;
            (servo.subsystem, *at - 1, servo)
        })
    }
}

fn joint_of(capabilities: &mut Capabilities, on: Subsystem, at: usize) -> Option<&mut Joint> {
    match on {
        Subsystem::LeftArm => capabilities.left_arm.as_mut()?.joints.get_mut(at),
        Subsystem::RightArm => capabilities.right_arm.as_mut()?.joints.get_mut(at),
        Subsystem::Gantry => capabilities.gantry.as_mut()?.get_mut(at),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_layout_is_sound() {
        for (kind, servos, wheels) in [
            (LayoutKind::Johnny5, 16, 3),
            (LayoutKind::So101, 6, 0),
            (LayoutKind::Lekiwi, 6, 3),
        ] {
            let layout = Layout::new(kind, &BTreeMap::new()).unwrap();
            assert_eq!(
                (layout.servos.len(), layout.wheels.len()),
                (servos, wheels),
                "{kind:?}"
            );
        }
    }

    #[test]
    fn degrees_and_steps_agree() {
        let layout = Layout::new(LayoutKind::Johnny5, &BTreeMap::new()).unwrap();
        for (subsystem, joint, value, steps) in [
            (Subsystem::LeftArm, 0, 0.0, 2048),
            (Subsystem::LeftArm, 0, 90.0, 3072),
            (Subsystem::LeftArm, 2, 90.0, 2048),
            (Subsystem::LeftArm, 2, 0.0, 1024),
            (Subsystem::LeftArm, 4, 180.0, 4095),
            (Subsystem::LeftArm, 4, -180.0, 0),
            (Subsystem::Lift, 0, 300.0, 4095),
            (Subsystem::Lift, 0, 0.0, 0),
            (Subsystem::Gantry, 1, -45.0, 1536),
        ] {
            let servo = layout.of(subsystem)[joint];
            assert_eq!(servo.steps(value), steps, "{} at {value}", servo.label());
            assert!((servo.value(steps) - value).abs() < 0.1, "{}", servo.label());
        }
    }

    #[test]
    fn a_change_is_made_or_refused_with_a_reason() {
        let change = |name: &str, json: serde_json::Value| {
            let changes = BTreeMap::from([(name.to_owned(), serde_json::from_value(json).unwrap())]);
            Layout::new(LayoutKind::Johnny5, &changes)
        };
        let reversed = change("right_arm.elbow", serde_json::json!({"reversed": true})).unwrap();
        assert_eq!(reversed.of(Subsystem::RightArm)[2].steps(0.0), 3072);
        assert_eq!(reversed.of(Subsystem::RightArm)[2].steps(90.0), 2048);
        let narrower = change(
            "right_arm.elbow",
            serde_json::json!({"reversed": true, "max": 120.0}),
        )
        .unwrap();
        assert_eq!(narrower.of(Subsystem::RightArm)[2].steps(0.0), 3072);
        assert_eq!(narrower.of(Subsystem::RightArm)[2].steps(90.0), 2048);
        for (name, json, reason) in [
            ("right_arm.nose", serde_json::json!({}), "no motor right_arm.nose"),
            (
                "gantry.pan",
                serde_json::json!({"id": 3}),
                "both have id 3 on bus right",
            ),
            (
                "base.front",
                serde_json::json!({"id": 11}),
                "both have id 11 on bus left",
            ),
            (
                "lift.lift",
                serde_json::json!({"max": 400.0}),
                "expected 0 to 4095",
            ),
            (
                "left_arm.base",
                serde_json::json!({"min": 200.0}),
                "min below max",
            ),
        ] {
            let error = change(name, json).unwrap_err().to_string();
            assert!(error.contains(reason), "{name}: {error}");
        }
    }
}
