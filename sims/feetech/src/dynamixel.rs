//! Dynamixel's servos XL430-W250 and XL330-M288: another control table and other packets around the same motor.
//!
//! Owns the table and what a write to it does. Figures and behaviour are those of ROBOTIS's e-Manual (the pages of the two servos,
//! "Protocol 2.0"); what is not there says so. Read [`Dynamixel`].

use std::time::Instant;

use crate::frame::{BROADCAST, Frame, Instruction};
use crate::servo::register as motor;
use crate::{Fault, Servo, packet};

/// Addresses in the control table of an XL430-W250 and an XL330-M288.
pub mod control {
    #![allow(missing_docs, reason = "the names are the vendor's")]
    pub const MODEL: u8 = 0;
    pub const FIRMWARE: u8 = 6;
    pub const ID: u8 = 7;
    pub const RETURN_DELAY: u8 = 9;
    pub const DRIVE_MODE: u8 = 10;
    pub const OPERATING_MODE: u8 = 11;
    pub const HOMING_OFFSET: u8 = 20;
    pub const TEMPERATURE_LIMIT: u8 = 31;
    pub const PWM_LIMIT: u8 = 36;
    pub const CURRENT_LIMIT: u8 = 38;
    pub const VELOCITY_LIMIT: u8 = 44;
    pub const MAX_POSITION: u8 = 48;
    pub const MIN_POSITION: u8 = 52;
    pub const SHUTDOWN: u8 = 63;
    pub const TORQUE_ENABLE: u8 = 64;
    pub const STATUS_RETURN_LEVEL: u8 = 68;
    pub const HARDWARE_ERROR: u8 = 70;
    pub const GOAL_PWM: u8 = 100;
    pub const GOAL_CURRENT: u8 = 102;
    pub const GOAL_VELOCITY: u8 = 104;
    pub const PROFILE_VELOCITY: u8 = 112;
    pub const GOAL_POSITION: u8 = 116;
    pub const MOVING: u8 = 122;
    pub const PRESENT_PWM: u8 = 124;
    pub const PRESENT_CURRENT: u8 = 126;
    pub const PRESENT_VELOCITY: u8 = 128;
    pub const PRESENT_POSITION: u8 = 132;
    pub const VOLTAGE: u8 = 144;
    pub const TEMPERATURE: u8 = 146;
}
use control as c;

/// The bytes of the table that are simulated; what lies behind (indirect addresses) is not.
const SIZE: usize = 148;
/// Steps a second for one of velocity: 0.229 turns a minute of 4096 steps.
const VELOCITY: f64 = 0.229 * 4096.0 / 60.0;
/// Of PWM, for the whole torque.
const WHOLE: f64 = 885.0;
/// The bit of an answer's error that says that the servo has an alarm.
const ALERT: u8 = 0x80;

/// What a servo answers to an instruction that it does not carry out: the numbers are those of protocol 2.0.
#[derive(Clone, Copy)]
#[repr(u8)]
enum Refusal {
    Instruction = 2,
    /// A read or a write beyond the table.
    Range = 4,
    /// A value beyond its limits.
    Limit = 6,
    /// A write to what is only read, or to what is kept, with the torque on.
    Access = 7,
}

/// Which servo it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// XL430-W250: 12 V, and it knows no current.
    Xl430,
    /// XL330-M288: 5 V, with the modes that control the current.
    Xl330,
}

/// A simulated servo, its motor and its table. Steps are 4096 a turn.
///
/// - The position is that of the horn **plus** the homing offset. In mode 3 (position) an offset beyond ±1024 is ignored.
/// - In the modes 4 and 5 turns are counted, and limits (48, 52) do not hold. The count begins anew, within one turn of the horn, when the torque is
///   switched, the mode changed or the servo restarted.
/// - The profile velocity (112) counts from the next goal on; 0 is as fast as it can. A change of mode makes it 0, and the goal PWM (100), which limits the
///   torque in every mode, its limit (36).
/// - Addresses below 64 are refused with the torque on.
/// - An alarm among those of register 63 (52: overload, electrical shock, overheating) switches the torque off for good: only a restart ends it. It is
///   said in the highest bit of each answer. When a load is an overload is not in the manual: it is that of the motor ([`Servo`]).
/// - In a sync read each servo waits for the one before it. What it does where that one is silent is not in the manual; here it is silent, too,
///   which is the worst.
#[derive(Clone, Debug)]
pub struct Dynamixel {
    pub(crate) motor: Servo,
    pub(crate) table: ControlTable,
}

impl Dynamixel {
    /// A new servo with this id, its horn in the middle.
    #[must_use]
    pub fn new(id: u8, model: Model) -> Self {
        let mut table = ControlTable {
            bytes: [0; SIZE],
            model,
        };
        let (number, limits, voltage, shutdown, warmest) = match model {
            Model::Xl430 => (1060, [265, 0], 111, 52, 72),
            Model::Xl330 => (1200, [445, 1750], 50, 53, 70),
        };
        for (address, width, value) in [
            (c::MODEL, 2, number),
            // Where the drive mode got its last bit.
            (c::FIRMWARE, 1, 46),
            (c::ID, 1, i32::from(id)),
            (c::RETURN_DELAY, 1, 250),
            (c::OPERATING_MODE, 1, 3),
            (c::TEMPERATURE_LIMIT, 1, warmest),
            (c::PWM_LIMIT, 2, 885),
            (c::CURRENT_LIMIT, 2, limits[1]),
            (c::VELOCITY_LIMIT, 4, limits[0]),
            (c::MAX_POSITION, 4, 4095),
            (c::SHUTDOWN, 1, shutdown),
            (c::STATUS_RETURN_LEVEL, 1, 2),
            (c::GOAL_PWM, 2, 885),
            (c::GOAL_CURRENT, 2, limits[1]),
            (c::GOAL_POSITION, 4, 2048),
            (c::VOLTAGE, 2, voltage),
        ] {
            table.set(address, width, value);
        }
        let mut motor = Servo::new(id);
        motor.set_word(motor::MAX_POSITION, 0);
        Self { motor, table }
    }

    /// The same servo with its horn at another step.
    #[must_use]
    pub fn at(mut self, steps: u16) -> Self {
        self.motor = self.motor.at(steps);
        self
    }

    /// The servo after LeRobot's calibration and set-up of a Koch arm: limits, homing offset, mode.
    #[must_use]
    pub fn calibrated(mut self, low: i32, high: i32, offset: i32, mode: u8) -> Self {
        self.table.set(c::MIN_POSITION, 4, low);
        self.table.set(c::MAX_POSITION, 4, high);
        self.table.set(c::HOMING_OFFSET, 4, offset);
        self.table.set(c::OPERATING_MODE, 1, i32::from(mode));
        self.table.set(c::RETURN_DELAY, 1, 0);
        self
    }
}

/// The control table of a servo.
#[derive(Clone, Debug)]
pub struct ControlTable {
    bytes: [u8; SIZE],
    model: Model,
}

impl ControlTable {
    /// A number, signed by its highest bit.
    #[must_use]
    pub fn number(&self, address: u8, width: usize) -> i32 {
        let at = usize::from(address);
        let bytes = self.bytes.get(at..at + width).unwrap_or_default();
        let unsigned = bytes
            .iter()
            .rev()
            .fold(0u32, |number, byte| number << 8 | u32::from(*byte));
        let unused = 32 - 8 * u32::try_from(width).unwrap_or(4);
        // The sign fills what the number leaves.
        (unsigned << unused).cast_signed() >> unused
    }

    /// A number that has no sign.
    #[must_use]
    pub fn byte(&self, address: u8) -> u8 {
        self.bytes.get(usize::from(address)).copied().unwrap_or_default()
    }

    /// Sets a number directly, such as an alarm.
    pub fn set(&mut self, address: u8, width: usize, value: i32) {
        let at = usize::from(address);
        if let Some(bytes) = self.bytes.get_mut(at..at + width) {
            bytes.copy_from_slice(&value.to_le_bytes()[..width]);
        }
    }

    /// What is added to the position of the horn.
    fn offset(&self) -> i32 {
        let offset = self.number(c::HOMING_OFFSET, 4);
        match self.byte(c::OPERATING_MODE) {
            3 if offset.abs() > 1024 => 0,
            _ => offset,
        }
    }

    fn has_torque(&self) -> bool {
        self.byte(c::TORQUE_ENABLE) != 0
    }

    /// Measures the motor.
    fn refresh(&mut self, servo: &mut Servo, now: Instant) {
        servo.advance(now);
        self.set(c::PRESENT_POSITION, 4, whole(servo.position()) + self.offset());
        self.set(c::PRESENT_VELOCITY, 4, whole(servo.speed() / VELOCITY));
        self.set(c::MOVING, 1, i32::from(servo.speed().abs() > 10.0 * VELOCITY));
        let word = servo.word(motor::PRESENT_LOAD);
        let load = f64::from(word & 0x3FF) * if word & 0x400 == 0 { 1.0 } else { -1.0 };
        self.set(c::PRESENT_PWM, 2, whole(load / 1000.0 * WHOLE));
        // An XL430 has its load here, in thousandths.
        let current = match self.model {
            Model::Xl430 => load,
            Model::Xl330 => load * f64::from(self.number(c::CURRENT_LIMIT, 2)) / 1000.0,
        };
        self.set(c::PRESENT_CURRENT, 2, whole(current));
        let warm = servo.byte(motor::TEMPERATURE);
        self.set(c::TEMPERATURE, 1, i32::from(warm));
        // An alarm stays until the servo is restarted.
        let overload = servo.alarms() & 0x20;
        let overheating = if warm > self.byte(c::TEMPERATURE_LIMIT) {
            0x04
        } else {
            0
        };
        let set = match servo.fault() {
            Fault::Error(bits) => bits,
            _ => 0,
        };
        let alarms = self.byte(c::HARDWARE_ERROR) | overload | overheating | set;
        self.set(c::HARDWARE_ERROR, 1, i32::from(alarms));
        if alarms & self.byte(c::SHUTDOWN) != 0 && self.has_torque() {
            self.set(c::TORQUE_ENABLE, 1, 0);
            servo.set_byte(motor::TORQUE_ENABLE, 0);
        }
    }

    fn write(&mut self, servo: &mut Servo, address: u8, bytes: &[u8], now: Instant) -> Result<(), Refusal> {
        let last = usize::from(address) + bytes.len();
        if last > SIZE {
            return Err(Refusal::Range);
        }
        let is_only_read = |at: usize| at < 7 || matches!(at, 69 | 70) || at >= usize::from(c::MOVING) - 2;
        let is_kept = usize::from(address) < usize::from(c::TORQUE_ENABLE);
        if (usize::from(address)..last).any(is_only_read) || is_kept && self.has_torque() {
            return Err(Refusal::Access);
        }
        self.refresh(servo, now);
        let before = self.clone();
        self.bytes[usize::from(address)..last].copy_from_slice(bytes);
        let writes = |number: u8| (usize::from(address)..last).contains(&usize::from(number));
        if !self.is_within_limits(writes) {
            *self = before;
            return Err(Refusal::Limit);
        }
        servo.set_byte(motor::ID, self.byte(c::ID));
        if self.byte(c::OPERATING_MODE) != before.byte(c::OPERATING_MODE) {
            servo.begin_turn_anew();
            self.set(c::PROFILE_VELOCITY, 4, 0);
            let limit = self.number(c::PWM_LIMIT, 2);
            self.set(c::GOAL_PWM, 2, limit);
            servo.set_byte(motor::MODE, u8::from(self.byte(c::OPERATING_MODE) == 1));
        }
        if self.byte(c::HARDWARE_ERROR) & self.byte(c::SHUTDOWN) != 0 {
            self.set(c::TORQUE_ENABLE, 1, 0);
        }
        if self.byte(c::TORQUE_ENABLE) != before.byte(c::TORQUE_ENABLE) {
            servo.begin_turn_anew();
        }
        servo.set_byte(motor::TORQUE_ENABLE, self.byte(c::TORQUE_ENABLE));
        let torque = f64::from(self.number(c::GOAL_PWM, 2).abs()) / WHOLE * 1000.0;
        servo.set_word(motor::TORQUE_LIMIT, unsigned(torque));
        let (speed, number) = match self.byte(c::OPERATING_MODE) {
            1 => (c::GOAL_VELOCITY, c::GOAL_VELOCITY),
            _ => (c::PROFILE_VELOCITY, c::GOAL_POSITION),
        };
        if writes(number) {
            servo.set_word(
                motor::GOAL_SPEED,
                magnitude(f64::from(self.number(speed, 4)) * VELOCITY),
            );
            let goal = self.number(c::GOAL_POSITION, 4) - self.offset();
            servo.set_word(motor::GOAL_POSITION, magnitude(f64::from(goal)));
        }
        self.refresh(servo, now);
        Ok(())
    }

    /// Whether what was written may be: what stands in the table besides may be beyond limits that were written later.
    fn is_within_limits(&self, writes: impl Fn(u8) -> bool) -> bool {
        let knows_current = self.model == Model::Xl330;
        let goal = self.number(c::GOAL_POSITION, 4);
        let ends = self.number(c::MIN_POSITION, 4)..=self.number(c::MAX_POSITION, 4);
        let (mode, goal) = match self.byte(c::OPERATING_MODE) {
            1 | 16 => (true, true),
            3 => (true, ends.contains(&goal)),
            4 => (true, goal.abs() < 1 << 20),
            5 => (knows_current, goal.abs() < 1 << 20),
            0 => (knows_current, true),
            _ => (false, true),
        };
        let pwm = self.number(c::GOAL_PWM, 2).abs() <= self.number(c::PWM_LIMIT, 2);
        let velocity = (0..=32_767).contains(&self.number(c::PROFILE_VELOCITY, 4));
        [
            (c::OPERATING_MODE, mode),
            (c::GOAL_POSITION, goal),
            (c::GOAL_PWM, pwm),
            (c::PROFILE_VELOCITY, velocity),
        ]
        .into_iter()
        .all(|(number, fits)| fits || !writes(number))
    }

    fn restart(&mut self, servo: &mut Servo) {
        let fresh = Dynamixel::new(self.byte(c::ID), self.model).table;
        let kept = usize::from(c::TORQUE_ENABLE);
        self.bytes[kept..].copy_from_slice(&fresh.bytes[kept..]);
        let limit = self.number(c::PWM_LIMIT, 2);
        self.set(c::GOAL_PWM, 2, limit);
        servo.set_byte(motor::TORQUE_ENABLE, 0);
        servo.begin_turn_anew();
    }
}

/// Executes the instruction on every addressed servo; returns their answers in order, each with its servo.
pub(crate) fn obeyed(
    servos: &mut [Servo],
    tables: &mut [ControlTable],
    frame: &Frame,
    now: Instant,
) -> Vec<(u8, Vec<u8>)> {
    let mut both = servos.iter_mut().zip(tables).collect::<Vec<_>>();
    both.retain(|(servo, _)| servo.fault() != Fault::Absent);
    let mut answers = Vec::new();
    match (frame.instruction, frame.parameters.as_slice()) {
        (Instruction::SyncRead, [address, length, ids @ ..]) => {
            for id in ids {
                let asked = both.iter_mut().find(|(servo, _)| servo.id() == *id);
                let Some((servo, table)) = asked.filter(|(servo, _)| servo.fault() != Fault::Mute) else {
                    break;
                };
                let read = read(table, servo, *address, *length, now);
                answers.push((*id, answer(servo, table, *id, read)));
            }
        }
        (Instruction::SyncWrite, _) => {
            for (id, address, bytes) in frame.writes() {
                for (servo, table) in both.iter_mut().filter(|(servo, _)| servo.id() == id) {
                    // Nobody hears why it was refused.
                    _ = table.write(servo, address, &bytes, now);
                }
            }
        }
        _ => {
            for (servo, table) in both {
                let id = servo.id();
                if frame.id != BROADCAST && id != frame.id {
                    continue;
                }
                let done = obey(servo, table, frame, now);
                let level = table.byte(c::STATUS_RETURN_LEVEL);
                let is_heard = match frame.instruction {
                    Instruction::Ping => true,
                    Instruction::Read => frame.id != BROADCAST && level > 0,
                    _ => frame.id != BROADCAST && level > 1,
                };
                if is_heard {
                    answers.push((id, answer(servo, table, id, done)));
                }
            }
        }
    }
    answers
}

fn obey(
    servo: &mut Servo,
    table: &mut ControlTable,
    frame: &Frame,
    now: Instant,
) -> Result<Vec<u8>, Refusal> {
    match (frame.instruction, frame.parameters.as_slice()) {
        (Instruction::Ping, _) => Ok([&table.bytes[..2], &[table.byte(c::FIRMWARE)]].concat()),
        (Instruction::Read, [address, length, ..]) => read(table, servo, *address, *length, now),
        (Instruction::Write, [address, bytes @ ..]) => {
            table.write(servo, *address, bytes, now).map(|()| Vec::new())
        }
        (Instruction::Reboot, _) => {
            table.restart(servo);
            Ok(Vec::new())
        }
        _ => Err(Refusal::Instruction),
    }
}

fn read(
    table: &mut ControlTable,
    servo: &mut Servo,
    address: u8,
    length: u8,
    now: Instant,
) -> Result<Vec<u8>, Refusal> {
    table.refresh(servo, now);
    let at = usize::from(address);
    let bytes = table.bytes.get(at..at + usize::from(length));
    bytes.map(<[u8]>::to_vec).ok_or(Refusal::Range)
}

fn answer(servo: &Servo, table: &ControlTable, id: u8, done: Result<Vec<u8>, Refusal>) -> Vec<u8> {
    let alert = match table.byte(c::HARDWARE_ERROR) {
        0 => 0,
        _ => ALERT,
    };
    servo.fault().distort(match done {
        Ok(parameters) => packet::encode_status(id, alert, &parameters),
        Err(refusal) => packet::encode_status(id, alert | refusal as u8, &[]),
    })
}

#[allow(clippy::cast_possible_truncation, reason = "steps and thousandths")]
fn whole(value: f64) -> i32 {
    value.round() as i32
}

/// As the motor has its numbers: a sign in the highest bit.
fn magnitude(value: f64) -> u16 {
    unsigned(value.abs()) | if value < 0.0 { 0x8000 } else { 0 }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped to what fits"
)]
fn unsigned(value: f64) -> u16 {
    value.round().clamp(0.0, 32_767.0) as u16
}
