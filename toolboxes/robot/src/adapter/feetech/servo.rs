//! One servo that goes to positions: what it moves, and how degrees or millimetres become steps.
//!
//! Pure. Read [`Servo`].

use crate::capability::{BusName, Motor};
use crate::model::Model;
use crate::subsystem::Subsystem;

/// Steps per turn of an STS3215.
pub(super) const TURN: f64 = 4096.0;
/// The step in the middle of a turn.
const MIDDLE: f64 = 2048.0;

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
    /// Steps per degree or millimetre; negative if the servo turns the other way round.
    pub(crate) scale: f64,
    /// The position in the middle of its turn, in degrees or millimetres.
    pub(crate) middle: f64,
    /// The homing offset that the servo has to have, where a calibration file says so.
    pub(crate) offset: Option<i64>,
}

impl Servo {
    /// A motor of a robot; `None` where it moves no joint, lift or hitch of that robot.
    pub(super) fn new(robot: &Model, bus: BusName, motor: &Motor) -> Option<Self> {
        let (parts, on) = (&robot.capabilities, motor.subsystem);
        let (min, max, home, speed) = match on {
            Subsystem::Lift => {
                let lift = parts.lift.as_ref()?;
                (lift.min, lift.max, lift.home, lift.max_speed)
            }
            Subsystem::Hitch => {
                let hitch = parts.hitch.as_ref()?;
                (hitch.open, hitch.closed, hitch.open, hitch.max_speed)
            }
            _ => {
                let joints = parts.joints(on)?;
                let at = joints.iter().position(|joint| joint.name == motor.name)?;
                let (joint, home) = (joints.get(at)?, robot.home(on)?);
                (joint.min, joint.max, *home.get(at)?, joint.max_speed)
            }
        };
        let middle = motor.middle.unwrap_or_else(|| f64::midpoint(min, max));
        let (scale, zero) = match on {
            // One turn of the servo is the whole way of the lift.
            Subsystem::Lift => {
                let scale = (TURN - 1.0) / (max - min);
                (scale, -min * scale)
            }
            _ => (TURN / 360.0, MIDDLE - TURN / 360.0 * middle),
        };
        Some(Self {
            subsystem: on,
            name: motor.name.clone(),
            bus,
            id: motor.id,
            min,
            max,
            home,
            speed,
            zero,
            scale,
            middle,
            offset: None,
        })
    }

    /// The name in the configuration and in saved settings.
    pub(super) fn key(&self) -> String {
        format!("{}.{}", self.subsystem, self.name)
    }

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

    /// How an error names the servo.
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

/// Rounds to one digit behind the point.
pub(crate) fn tenth(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}
