//! What the registers of a servo say, and what no servo that works can say.
//!
//! Pure: blocks of registers in, numbers out.

use serde::Serialize;

use super::register::{Family, Register};

/// A servo's measured values.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub(crate) struct Health {
    /// Steps, 4096 a turn.
    pub(crate) position: i64,
    /// Steps a second.
    pub(crate) speed: i64,
    /// Of the greatest torque, -100..100 %.
    pub(crate) load_percent: f64,
    /// Volts.
    pub(crate) voltage: f64,
    /// Degrees Celsius.
    pub(crate) temperature: i64,
    /// Amperes; 6.5 mA a step. Not every servo measures it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) current: Option<f64>,
    pub(crate) moving: bool,
    pub(crate) torque: bool,
    /// The names in the error field of its answer: `overheating`, `overload`.
    pub(crate) alarms: Vec<&'static str>,
}

/// Degrees Celsius that no servo survives.
const MELTED: i64 = 150;

impl Health {
    pub(super) const REGISTERS: &[Register] = &[
        Register::TORQUE,
        Register::POSITION,
        Register::SPEED,
        Register::LOAD,
        Register::VOLTAGE,
        Register::TEMPERATURE,
        Register::STATUS,
        Register::MOVING,
        Register::CURRENT,
    ];

    /// # Errors
    /// What no servo that answers can measure.
    pub(super) fn of(family: Family, first: u8, block: &[u8], error: u8) -> Result<Self, String> {
        let read = |register: Register| {
            let value = register.decode(family, first, block);
            value.ok_or_else(|| format!("no {}", register.name))
        };
        let (voltage, temperature) = (read(Register::VOLTAGE)?, read(Register::TEMPERATURE)?);
        if voltage == 0 || temperature > MELTED {
            return Err(format!(
                "it says {:.1} V and {temperature} °C, which no servo that answers has",
                tenths(voltage)
            ));
        }
        let status = u8::try_from(read(Register::STATUS)?).unwrap_or_default();
        Ok(Self {
            position: read(Register::POSITION)?,
            speed: read(Register::SPEED)?,
            load_percent: tenths(read(Register::LOAD)?),
            voltage: tenths(voltage),
            temperature,
            moving: read(Register::MOVING)? != 0,
            current: read(Register::CURRENT).ok().map(|steps| tenths(steps) * 0.065),
            torque: read(Register::TORQUE)? == 1,
            alarms: Alarms(error | status).names(),
        })
    }
}

/// The operating modes that an STS3215 has: 0 to 3.
const MODES: std::ops::RangeInclusive<i64> = 0..=3;

/// A servo's mode and torque.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mode {
    /// 0: the servo goes to positions; 1: it turns at a speed.
    pub(crate) operating: i64,
    /// The servo has power.
    pub(crate) torque: bool,
}

impl Mode {
    pub(super) const REGISTERS: &[Register] = &[Register::MODE, Register::TORQUE];

    /// `None` where no servo has such a mode.
    pub(super) fn of(family: Family, first: u8, block: &[u8]) -> Option<Self> {
        let operating = Register::MODE.decode(family, first, block)?;
        let torque = Register::TORQUE.decode(family, first, block)? == 1;
        MODES.contains(&operating).then_some(Self { operating, torque })
    }
}

/// What a servo does, and what it was told to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) mode: Mode,
    /// Steps.
    pub(crate) goal: i64,
    /// Steps a second; 0 is as fast as it can, for a servo that goes to positions.
    pub(crate) goal_speed: i64,
    /// Steps.
    pub(crate) position: i64,
    /// Steps a second.
    pub(crate) speed: i64,
}

impl State {
    pub(super) const REGISTERS: &[Register] = &[
        Register::MODE,
        Register::TORQUE,
        Register::GOAL_POSITION,
        Register::GOAL_SPEED,
        Register::POSITION,
        Register::SPEED,
    ];

    /// `None` where no servo has such a mode.
    pub(super) fn of(family: Family, first: u8, block: &[u8]) -> Option<Self> {
        let read = |register: Register| register.decode(family, first, block);
        Some(Self {
            mode: Mode::of(family, first, block)?,
            goal: read(Register::GOAL_POSITION)?,
            goal_speed: read(Register::GOAL_SPEED)?,
            position: read(Register::POSITION)?,
            speed: read(Register::SPEED)?,
        })
    }
}

/// Steps in a turn: no limit is there or beyond.
const TURN: i64 = 4096;

/// What a servo keeps of its calibration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Calibration {
    /// The smallest goal it takes, in steps as it reads its position.
    pub(crate) min: i64,
    /// The largest goal it takes, in steps as it reads its position.
    pub(crate) max: i64,
    /// The steps that it subtracts from the position of its horn, or adds ([`Family::offset_sign`]).
    pub(crate) offset: i64,
}

impl Calibration {
    pub(super) const REGISTERS: &[Register] = &[
        Register::MIN_POSITION,
        Register::MAX_POSITION,
        Register::HOMING_OFFSET,
    ];

    /// `None` where no servo has such limits.
    pub(super) fn of(family: Family, first: u8, block: &[u8]) -> Option<Self> {
        let read = |register: Register| register.decode(family, first, block);
        let limit = |register: Register| read(register).filter(|steps| *steps < TURN);
        Some(Self {
            min: limit(Register::MIN_POSITION)?,
            max: limit(Register::MAX_POSITION)?,
            offset: read(Register::HOMING_OFFSET)?,
        })
    }

    /// Its limits; `None` where it goes to every step.
    pub(crate) fn limits(self) -> Option<(i64, i64)> {
        (self.min < self.max).then_some((self.min, self.max))
    }
}

fn tenths(value: i64) -> f64 {
    // At most 65535 either way: exact.
    i32::try_from(value).map_or(0.0, |value| f64::from(value) / 10.0)
}

/// The bit of an alarm that the answer does not name.
const UNNAMED: u8 = 0x80;

/// The error field of a servo's answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Alarms(pub(crate) u8);

impl Alarms {
    /// Voltage, angle sensor, overheating, overcurrent, electrical shock, overload; an XL servo says in its answers only that there is one.
    pub(crate) fn names(self) -> Vec<&'static str> {
        if self.0 == UNNAMED {
            return vec!["a hardware error (check_servos says which)"];
        }
        [
            (0x01, "voltage"),
            (0x02, "angle sensor"),
            (0x04, "overheating"),
            (0x08, "overcurrent"),
            (0x10, "electrical shock"),
            (0x20, "overload"),
        ]
        .into_iter()
        .filter(|(bit, _)| self.0 & bit != 0)
        .map(|(_, name)| name)
        .collect()
    }

    /// Whether the servo should not go on: everything but a low voltage.
    pub(crate) fn is_severe(self) -> bool {
        self.0 & (0x3E | UNNAMED) != 0
    }
}
