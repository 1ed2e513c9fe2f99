//! Servos: scan_motors, motor_status, test_motor, check_torque, enable_torque, check_servos, recover_servo,
//! servo_health_report, enable_degraded_mode.
//!
//! An action that uses a whole serial bus reserves every part on it, so that nothing moves on a busy bus.

use ovos_toolbox_sdk::prelude::*;

use super::arguments::{range, words, yes};
use super::listing::{Listing, Planned};
use crate::capability::{Bus, BusName, Capabilities};
use crate::error::tool_error;
use crate::graph::{Graph, Node, on};
use crate::limits::LARGEST_TEST;
use crate::resolve::test_seconds;
use crate::step::{Recovery, Step};
use crate::subsystem::Subsystem;
use crate::unit::Unit;

pub(super) fn list(listing: &mut Listing<'_>) {
    let status = |robot: &Capabilities| robot.services.motor_status;
    let torque = |robot: &Capabilities| robot.services.torque;
    // A scan changes nothing, but it occupies the bus for seconds: as a read it would hold nothing and starve motion.
    listing.add("scan_motors", Effect::Write, buses, scan_motors);
    listing.add("motor_status", Effect::Read, status, motor_status);
    listing.add("test_motor", Effect::Motion, buses, test_motor);
    listing.add("check_torque", Effect::Read, torque, check_torque);
    listing.add("enable_torque", Effect::Motion, torque, enable_torque);
    listing.add("check_servos", Effect::Read, buses, check_servos);
    listing.add("recover_servo", Effect::Write, buses, recover_servo);
    listing.add("servo_health_report", Effect::Read, buses, servo_health_report);
    listing.add("enable_degraded_mode", Effect::Write, buses, enable_degraded_mode);
}

pub(super) fn buses(robot: &Capabilities) -> bool {
    !robot.buses.is_empty()
}

words!(
    /// A bus or both.
    Buses, Both: Left "left", Right "right", Both "both"
);
words!(
    /// A part with motors, or all of them.
    MotorPart, All: LeftArm "left_arm", RightArm "right_arm", Gantry "gantry", Lift "lift", Base "base", All "all"
);
words!(
    /// A part with servos, or all of them.
    ServoPart, All: All "all", LeftArm "left_arm", RightArm "right_arm", Base "base", Lift "lift", Gantry "gantry",
    Hitch "hitch"
);

impl MotorPart {
    fn subsystem(self) -> Subsystem {
        self.as_str().parse().unwrap_or(Subsystem::All)
    }
}

impl ServoPart {
    fn subsystem(self) -> Subsystem {
        self.as_str().parse().unwrap_or(Subsystem::All)
    }
}

/// An action on a whole bus: on its first part, holding the others.
pub(super) fn on_bus(bus: &Bus, seconds: f64, step: Step) -> Node {
    let parts = bus.subsystems();
    let first = parts.first().copied().unwrap_or(Subsystem::All);
    on(first, seconds, step).holding(parts)
}

pub(super) fn bus_of(unit: &Unit, name: BusName) -> Result<&Bus, ToolError> {
    unit.capabilities()
        .bus(name)
        .ok_or_else(|| tool_error(unit.lacks(format!("the {} servo bus", name.as_str()))))
}

/// Find out which motors answer on the robot's servo buses.
#[derive(Deserialize, JsonSchema)]
struct ScanMotors {
    /// Which bus to scan.
    #[serde(default)]
    bus: Buses,
}

fn scan_motors(unit: &Unit, args: ScanMotors) -> Planned<'_> {
    let scanned = |name| {
        let step = Step::ScanMotors { buses: vec![name] };
        Ok::<_, ToolError>(on_bus(bus_of(unit, name)?, 10.0, step))
    };
    let nodes = match args.bus {
        Buses::Left => vec![scanned(BusName::Left)?],
        Buses::Right => vec![scanned(BusName::Right)?],
        // `both` means every bus of the robot: a layout may have only one.
        Buses::Both => {
            let names = unit.capabilities().buses.iter().map(|bus| bus.name);
            names.map(scanned).collect::<Result<_, _>>()?
        }
    };
    Ok(Graph::new(unit).wave(nodes))
}

/// Read position, speed, load, voltage and temperature of the robot's motors.
#[derive(Deserialize, JsonSchema)]
struct MotorStatus {
    /// Which part of the robot; gantry is the head.
    subsystem: MotorPart,
    /// The id of one motor; every motor of the part when not given.
    #[serde(default)]
    #[schemars(range(min = 1, max = 253))]
    motor_id: Option<u8>,
}

fn motor_status(unit: &Unit, args: MotorStatus) -> Planned<'_> {
    let step = Step::MotorStatus {
        motor_id: args.motor_id,
    };
    Ok(Graph::new(unit).wave([on(args.subsystem.subsystem(), 5.0, step)]))
}

/// Move one motor of the robot by a small angle and back, to see whether it works.
#[derive(Deserialize, JsonSchema)]
struct TestMotor {
    /// On which bus.
    bus: BusName,
    /// Which motor.
    #[schemars(range(min = 1, max = 10))]
    motor_id: u8,
    /// By how many degrees from where it is; positive is the way in which its joint value grows.
    #[serde(default = "ten")]
    #[schemars(range(min = -30.0, max = 30.0))]
    angle: f64,
}

fn ten() -> f64 {
    10.0
}

fn test_motor(unit: &Unit, args: TestMotor) -> Planned<'_> {
    range("motor_id", f64::from(args.motor_id), 1.0, 10.0)?;
    let angle = range("angle", args.angle, -LARGEST_TEST, LARGEST_TEST)?;
    let step = Step::TestMotor {
        bus: args.bus,
        motor_id: args.motor_id,
        angle,
    };
    let bus = bus_of(unit, args.bus)?;
    let motor = bus.motors.iter().find(|motor| motor.id == args.motor_id);
    let seconds = motor.map_or(0.0, |motor| {
        test_seconds(unit, motor.subsystem, Some(&motor.name), angle)
    });
    Ok(Graph::new(unit).wave([on_bus(bus, 5.0, step).lasting(seconds)]))
}

/// Find out which of the robot's motors hold their position with power.
#[derive(Deserialize, JsonSchema)]
struct CheckTorque {
    /// Which part of the robot; gantry is the head.
    subsystem: MotorPart,
}

fn check_torque(unit: &Unit, args: CheckTorque) -> Planned<'_> {
    Ok(Graph::new(unit).wave([on(args.subsystem.subsystem(), 5.0, Step::CheckTorque {})]))
}

/// Switch the power of the robot's motors on or off. An arm without power falls.
#[derive(Deserialize, JsonSchema)]
struct EnableTorque {
    /// Which part of the robot; gantry is the head.
    subsystem: MotorPart,
    /// On or off.
    #[serde(default = "yes")]
    enable: bool,
}

fn enable_torque(unit: &Unit, args: EnableTorque) -> Planned<'_> {
    let step = Step::EnableTorque { enable: args.enable };
    Ok(Graph::new(unit).wave([on(args.subsystem.subsystem(), 5.0, step)]))
}

/// Ping every servo of the robot.
#[derive(Deserialize, JsonSchema)]
struct CheckServos {
    /// Which part of the robot; gantry is the head.
    #[serde(default)]
    subsystem: ServoPart,
}

fn check_servos(unit: &Unit, args: CheckServos) -> Planned<'_> {
    let part = args.subsystem.subsystem();
    if part != Subsystem::All {
        return Ok(Graph::new(unit).wave([on(part, 10.0, Step::PingAll {})]));
    }
    // Buses are asked side by side, the parts of one bus one after the other.
    let buses = unit.capabilities().buses.iter();
    let nodes = buses.flat_map(|bus| {
        let parts = bus.subsystems();
        parts
            .clone()
            .into_iter()
            .map(move |part| on(part, 10.0, Step::PingAll {}).holding(parts.clone()))
    });
    Ok(Graph::new(unit).wave(nodes))
}

/// Try to get a servo of the robot back that does not answer or reports an error.
#[derive(Deserialize, JsonSchema)]
struct RecoverServo {
    /// On which bus.
    bus: BusName,
    /// Which motor.
    #[schemars(range(min = 1, max = 11))]
    motor_id: u8,
    /// What to try.
    #[serde(default = "ping")]
    action: Recovery,
}

fn ping() -> Recovery {
    Recovery::Ping
}

fn recover_servo(unit: &Unit, args: RecoverServo) -> Planned<'_> {
    range("motor_id", f64::from(args.motor_id), 1.0, 11.0)?;
    let step = Step::ServoRecover {
        bus: args.bus,
        motor_id: args.motor_id,
        action: args.action,
    };
    Ok(Graph::new(unit).wave([on_bus(bus_of(unit, args.bus)?, 5.0, step)]))
}

/// Report the health of the robot's servos: which answer, how warm and how loaded they are, and what to look at.
#[derive(Deserialize, JsonSchema)]
struct ServoHealthReport {
    /// Include temperatures.
    #[serde(default = "yes")]
    include_temps: bool,
    /// Include loads.
    #[serde(default = "yes")]
    include_loads: bool,
}

fn servo_health_report(unit: &Unit, args: ServoHealthReport) -> Planned<'_> {
    let read = |bus: &Bus| {
        let step = Step::ReadHealth {
            bus: bus.name,
            temps: args.include_temps,
            loads: args.include_loads,
        };
        on_bus(bus, 10.0, step)
    };
    Ok(Graph::new(unit).wave(unit.capabilities().buses.iter().map(read)))
}

/// Have the robot go on without broken servos, which are neither moved nor asked any more. An empty list ends it.
#[derive(Deserialize, JsonSchema)]
struct EnableDegradedMode {
    /// The servos to do without, each as bus:id, such as "left:5".
    missing_servos: Vec<String>,
    /// Whether tools that need one of them do without it; otherwise they are refused.
    #[serde(default = "yes")]
    continue_anyway: bool,
}

fn enable_degraded_mode(unit: &Unit, args: EnableDegradedMode) -> Planned<'_> {
    for servo in &args.missing_servos {
        let known = parse_servo(servo).and_then(|(bus, id)| {
            unit.capabilities()
                .bus(bus)?
                .motors
                .iter()
                .find(|motor| motor.id == id)
        });
        if known.is_none() {
            let given: String = servo.chars().take(40).collect();
            return Err(ToolError::bad_args(format!(
                "missing_servos: expected a servo of this robot as bus:id, such as left:5, got {given:?}"
            )));
        }
    }
    let step = Step::SetDegraded {
        missing_servos: args.missing_servos,
        continue_anyway: args.continue_anyway,
    };
    Ok(Graph::new(unit).wave([on(Subsystem::All, 5.0, step)]))
}

/// `left:5` is bus left, motor 5.
#[must_use]
pub fn parse_servo(text: &str) -> Option<(BusName, u8)> {
    let (bus, id) = text.split_once(':')?;
    let bus = match bus {
        "left" => BusName::Left,
        "right" => BusName::Right,
        _ => return None,
    };
    Some((bus, id.parse().ok()?))
}
