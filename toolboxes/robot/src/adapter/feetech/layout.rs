//! Which servo moves what.
//!
//! Owns the servos and wheels of a robot's model, and the changes that a configuration makes to them. Pure. Read
//! [`Layout`].

use std::collections::BTreeMap;

use serde::Deserialize;

use super::servo::{Servo, TURN};
use super::wheels::Wheels;
use crate::adapter::ActionError;
use crate::capability::{Bus, BusName, Capabilities, Motor};
use crate::conduct::Stop;
use crate::model::Model;
use crate::subsystem::Subsystem;

/// What a configuration changes about one servo. What is missing stays as the layout has it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MotorConfig {
    /// Its id on the bus.
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

/// One wheel.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Wheel {
    pub(crate) name: String,
    pub(crate) bus: BusName,
    pub(crate) id: u8,
    pub(crate) reversed: bool,
}

/// Motors that come to rest together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) motors: Vec<u8>,
    /// Those that go to positions.
    pub(crate) joints: Vec<u8>,
}

/// Every servo of a robot.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Layout {
    pub(crate) model: String,
    pub(crate) servos: Vec<Servo>,
    pub(crate) wheels: Vec<Wheel>,
    /// In the order of `wheels`.
    pub(crate) geometry: Wheels,
}

impl Layout {
    /// The servos of a robot with the configuration's changes.
    ///
    /// # Errors
    /// A change names no servo of the layout, or makes two servos of a bus share an id, or leaves a servo no range.
    pub(crate) fn new(robot: &Model, changes: &BTreeMap<String, MotorConfig>) -> Result<Self, ActionError> {
        let mut layout = Self::built_in(robot);
        for (name, change) in changes {
            layout.change(name, change)?;
        }
        layout.check()?;
        Ok(layout)
    }

    fn built_in(robot: &Model) -> Self {
        let (mut servos, mut wheels, mut bearings) = (Vec::new(), Vec::new(), Vec::new());
        for part in [
            Subsystem::LeftArm,
            Subsystem::RightArm,
            Subsystem::Lift,
            Subsystem::Hitch,
            Subsystem::Gantry,
            Subsystem::Base,
        ] {
            let buses = robot.capabilities.buses.iter();
            let motors = buses.flat_map(|bus| bus.motors.iter().map(move |motor| (bus.name, motor)));
            let mut motors: Vec<_> = motors.filter(|(_, motor)| motor.subsystem == part).collect();
            // In the order of the joints, however they stand in the file.
            let joints = robot.capabilities.joints(part).unwrap_or_default();
            motors.sort_by_key(|(_, motor)| joints.iter().position(|joint| joint.name == motor.name));
            for (bus, motor) in motors {
                servos.extend(Servo::new(robot, bus, motor));
                if let Some(bearing) = motor.bearing {
                    bearings.push(bearing);
                    wheels.push(Wheel {
                        name: motor.name.clone(),
                        bus,
                        id: motor.id,
                        reversed: false,
                    });
                }
            }
        }
        Self {
            model: robot.capabilities.model.clone(),
            servos,
            wheels,
            geometry: Wheels::new(bearings),
        }
    }

    fn change(&mut self, name: &str, change: &MotorConfig) -> Result<(), ActionError> {
        if let Some(wheel) = self
            .wheels
            .iter_mut()
            .find(|wheel| format!("base.{}", wheel.name) == name)
        {
            if change.zero_step.or(change.min).or(change.max).is_some() {
                return Err(ActionError::Refused(format!(
                    "channels.motors: {name}: zero_step, min and max are for joints; a wheel has id, bus and reversed"
                )));
            }
            wheel.id = change.id.unwrap_or(wheel.id);
            wheel.bus = change.bus.unwrap_or(wheel.bus);
            wheel.reversed = change.reversed;
            return Ok(());
        }
        let known = self.names().join(", ");
        let Some(servo) = self.servos.iter_mut().find(|servo| servo.key() == name) else {
            return Err(ActionError::Refused(format!(
                "channels.motors: no motor {name}; known are {known}"
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
            // The servo is mirrored about the middle of the layout's range, so that this middle keeps its step, however
            // far the joint may go.
            servo.zero += 2.0 * servo.scale * servo.middle;
            servo.scale = -servo.scale;
        }
        servo.zero = change.zero_step.unwrap_or(servo.zero);
        match change.zero_step.filter(|step| !(0.0..TURN).contains(step)) {
            Some(step) => Err(ActionError::Refused(format!(
                "channels.motors: {name}: zero_step {step} is out of range, expected 0 to 4095"
            ))),
            None => Ok(()),
        }
    }

    fn names(&self) -> Vec<String> {
        let servos = self.servos.iter().map(Servo::key);
        let wheels = self.wheels.iter().map(|wheel| format!("base.{}", wheel.name));
        servos.chain(wheels).collect()
    }

    /// # Errors
    /// Two motors share an id, or a servo has no range, or a servo's range goes beyond the steps that it can count.
    pub(super) fn check(&self) -> Result<(), ActionError> {
        let mut taken: BTreeMap<(BusName, u8), String> = BTreeMap::new();
        let of_bus = |bus| self.motors(bus).into_iter().map(move |motor| (bus, motor));
        let one = self.wheels.first();
        let apart = one.and_then(|one| Some((one, self.wheels.iter().find(|other| other.bus != one.bus)?)));
        if let Some((one, other)) = apart {
            return Err(ActionError::Refused(format!(
                "channels.motors: base.{} is on bus {}, and base.{} on bus {}: put all wheels on one",
                one.name,
                one.bus.as_str(),
                other.name,
                other.bus.as_str()
            )));
        }
        for (bus, motor) in [BusName::Left, BusName::Right].into_iter().flat_map(of_bus) {
            let name = format!("{} {}", motor.subsystem, motor.name);
            if !(1..=253).contains(&motor.id) {
                return Err(ActionError::Refused(format!(
                    "channels.motors: {name} has id {} on bus {}, expected 1 to 253",
                    motor.id,
                    bus.as_str()
                )));
            }
            if let Some(other) = taken.insert((bus, motor.id), name.clone()) {
                return Err(ActionError::Refused(format!(
                    "channels.motors: {name} and {other} both have id {} on bus {}",
                    motor.id,
                    bus.as_str()
                )));
            }
        }
        for servo in &self.servos {
            let ends = [servo.min, servo.max].map(|end| servo.zero + end * servo.scale);
            // Half a step for rounding, one for a whole turn.
            // Turned round or not a number.
            let is_range = servo.min < servo.max;
            if !is_range || ends.iter().any(|end| !(-1.5..=TURN + 0.5).contains(end)) {
                return Err(ActionError::Refused(format!(
                    "channels.motors: {} to {} of {} is steps {:.0} to {:.0}, expected 0 to 4095 and min below max",
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
    pub(crate) fn motors(&self, bus: BusName) -> Vec<Motor> {
        let servos = self
            .servos
            .iter()
            .map(|servo| (servo.bus, servo.id, servo.subsystem, &servo.name));
        let wheels = self
            .wheels
            .iter()
            .map(|wheel| (wheel.bus, wheel.id, Subsystem::Base, &wheel.name));
        let mut motors: Vec<Motor> = servos
            .chain(wheels)
            .filter(|(of, ..)| *of == bus)
            .map(|(_, id, subsystem, name)| Motor {
                id,
                subsystem,
                name: name.clone(),
                middle: None,
                bearing: None,
            })
            .collect();
        motors.sort_by_key(|motor| motor.id);
        motors
    }

    /// The ids of every motor of a bus, in order.
    pub(crate) fn ids(&self, bus: BusName) -> Vec<u8> {
        self.motors(bus).iter().map(|motor| motor.id).collect()
    }

    /// Motors of a bus in the order in which they come to rest; `joints` are those among them that go to positions.
    pub(crate) fn groups(&self, bus: BusName, ids: &[u8], joints: &[u8], stop: &Stop) -> Vec<Group> {
        let mut groups: BTreeMap<usize, Group> = BTreeMap::new();
        for motor in self.motors(bus).iter().filter(|motor| ids.contains(&motor.id)) {
            let group = groups.entry(stop.place(motor.subsystem)).or_default();
            group.motors.push(motor.id);
            group.joints.extend(joints.iter().filter(|id| **id == motor.id));
        }
        groups.into_values().collect()
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

    /// What the robot can do with these servos. `port` names the device of a bus.
    ///
    /// # Errors
    /// A servo leaves nothing of the range of the part that it moves.
    pub(crate) fn capabilities(
        &self,
        mut own: Capabilities,
        port: impl Fn(BusName) -> String,
    ) -> Result<Capabilities, ActionError> {
        let bus = |name| Bus {
            name,
            port: port(name),
            motors: self.motors(name),
        };
        own.buses = [BusName::Left, BusName::Right].map(bus).into();
        own.buses.retain(|bus| !bus.motors.is_empty());
        // No servo can tell whether the robot charges.
        own.services.charge = false;
        for servo in &self.servos {
            let Some([min, max]) = range_mut(&mut own, servo) else {
                continue;
            };
            if servo.min.max(*min) >= servo.max.min(*max) {
                return Err(ActionError::Refused(format!(
                    "channels.motors: {}: nothing is left of {min} to {max} within {} to {}",
                    servo.key(),
                    servo.min,
                    servo.max
                )));
            }
            (*min, *max) = (servo.min.max(*min), servo.max.min(*max));
        }
        if let Some(lift) = &mut own.lift {
            lift.home = lift.home.max(lift.min).min(lift.max);
        }
        own.fit_grippers();
        Ok(own)
    }

    /// Takes over the ranges and speeds of the robot's narrowed capabilities.
    pub(crate) fn narrow(&mut self, capabilities: &Capabilities) {
        for servo in &mut self.servos {
            if let Some(joint) = capabilities
                .joints(servo.subsystem)
                .and_then(|joints| joints.iter().find(|joint| joint.name == servo.name))
            {
                (servo.min, servo.max, servo.speed) = (joint.min, joint.max, joint.max_speed);
            }
            if let (Subsystem::Lift, Some(lift)) = (servo.subsystem, &capabilities.lift) {
                (servo.min, servo.max, servo.speed, servo.home) =
                    (lift.min, lift.max, lift.max_speed, lift.home);
            }
            if let (Subsystem::Hitch, Some(hitch)) = (servo.subsystem, &capabilities.hitch) {
                servo.speed = hitch.max_speed;
            }
            servo.home = servo.home.clamp(servo.min, servo.max);
        }
    }
}

/// The range of the joint or the lift that a servo moves.
fn range_mut<'a>(robot: &'a mut Capabilities, servo: &Servo) -> Option<[&'a mut f64; 2]> {
    if servo.subsystem == Subsystem::Lift {
        let lift = robot.lift.as_mut()?;
        return Some([&mut lift.min, &mut lift.max]);
    }
    let joints = robot.joints_mut(servo.subsystem)?.iter_mut();
    let joint = joints.into_iter().find(|joint| joint.name == servo.name)?;
    Some([&mut joint.min, &mut joint.max])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_layout_is_sound() {
        for (kind, servos, wheels) in [("johnny5", 16, 3), ("so101", 6, 0), ("lekiwi", 6, 3)] {
            let layout = Layout::new(&model(kind), &BTreeMap::new()).unwrap();
            assert_eq!(
                (layout.servos.len(), layout.wheels.len()),
                (servos, wheels),
                "{kind:?}"
            );
        }
    }

    /// A built-in robot with its buses.
    fn model(kind: &str) -> Model {
        let kind = crate::shelf::Shelf::default().find(kind).unwrap();
        let driver = kind.driver(&ovos_toolbox_sdk::wire::Object::new(), "").unwrap();
        kind.model(driver.as_ref())
    }

    #[test]
    fn degrees_and_steps_agree() {
        let layout = Layout::new(&model("johnny5"), &BTreeMap::new()).unwrap();
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
            Layout::new(&model("johnny5"), &changes)
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
