//! One servo: its registers and the position of its horn.

use std::time::{Duration, Instant};

use crate::Fault;

/// Addresses in the register table of an STS3215.
pub mod register {
    #![allow(missing_docs, reason = "the names are the vendor's")]
    pub const MODEL: u8 = 3;
    pub const ID: u8 = 5;
    pub const STATUS_LEVEL: u8 = 8;
    pub const MIN_POSITION: u8 = 9;
    pub const MAX_POSITION: u8 = 11;
    pub const MAX_TEMPERATURE: u8 = 13;
    pub const MAX_TORQUE: u8 = 16;
    pub const OFFSET: u8 = 31;
    pub const PROTECTIVE_TORQUE: u8 = 34;
    pub const PROTECTION_TIME: u8 = 35;
    pub const OVERLOAD_TORQUE: u8 = 36;
    pub const MODE: u8 = 33;
    pub const TORQUE_ENABLE: u8 = 40;
    pub const ACCELERATION: u8 = 41;
    pub const GOAL_POSITION: u8 = 42;
    pub const GOAL_TIME: u8 = 44;
    pub const GOAL_SPEED: u8 = 46;
    pub const TORQUE_LIMIT: u8 = 48;
    pub const LOCK: u8 = 55;
    pub const PRESENT_POSITION: u8 = 56;
    pub const PRESENT_SPEED: u8 = 58;
    pub const PRESENT_LOAD: u8 = 60;
    pub const VOLTAGE: u8 = 62;
    pub const TEMPERATURE: u8 = 63;
    pub const STATUS: u8 = 65;
    pub const MOVING: u8 = 66;
    pub const CURRENT: u8 = 69;
}
use register as r;

/// Registers below this address survive a power cycle, if the lock was open when they were written.
const KEPT: usize = 40;
/// Steps per turn.
const TURN: f64 = 4096.0;
/// Steps per second at full speed.
const FULL_SPEED: f64 = 3400.0;
/// How far the horn is from its goal where a weight takes the whole torque, in steps. Its controller is proportional (I is 0, as a new
/// servo and LeRobot have it), so that it pushes only where it is off its goal. Not measured: half of the torque is four degrees.
const GIVES: f64 = 90.0;
/// So many steps from its goal a horn at an obstacle does not press.
const RESTS: f64 = 2.0;
/// Steps per second at which a weight turns a horn without power, through 345 to 1 gears. Not measured.
const SINKS: f64 = 400.0;
/// The bits of the status register: too warm, and too much torque for too long.
const OVERHEAT: u8 = 4;
const OVERLOAD: u8 = 32;

/// A simulated STS3215. Angles are steps: 4096 per turn, 2048 in the middle.
///
/// The following behaviour is that of the real servo, according to the vendor's memory table of the STS series and to
/// what LeRobot 0.4 writes into the servos of an SO-101 (`src/lerobot/motors/feetech/feetech.py`):
///
/// - Registers 9 and 11 limit every goal, in the steps that a client reads. A horn at such a limit has no load. If both
///   are 0 there is no limit.
/// - Register 31 is subtracted from the position of the horn; its sign is bit 11.
/// - Registers below 40 survive a power cycle only if lock (55) was 0 when they were written.
/// - The torque limit (48) is a copy of the maximum torque (16) until a client writes it; a new servo has 1000 in 16,
///   LeRobot writes 500 into that of a gripper.
/// - The load (60) is the fraction of the maximum torque in thousandths, with its sign in bit 10: a servo that presses
///   against an obstacle has its torque limit as load.
/// - A weight ([`Servo::weigh`]) pulls the horn off its goal, and turns it where the torque is off, until it comes to a stop.
/// - More load than register 36 (80 %) for longer than 35 (2 s) is an overload: bit 5 of the status, and no more torque than 34
///   (20 %) until the torque is switched off. More degrees than register 13 (70) are bit 2, and no torque. The figures of 34, 35
///   and 36 are those that owners of SO-101 arms report to have read from their servos: 20 %, 200 times 10 ms, 80 % (the vendor's
///   table was not at hand). LeRobot has the addresses, and writes 25 into 36 of a gripper.
#[derive(Clone, Debug)]
pub struct Servo {
    table: [u8; 256],
    kept: [u8; KEPT],
    /// Position of the horn in steps, before the homing offset.
    horn: f64,
    speed: f64,
    /// Direction in which it presses against an obstacle; 0 if it does not.
    presses: f64,
    staged: Option<(u8, Vec<u8>)>,
    /// Mechanical stops of the horn: lowest and highest position.
    stops: (f64, f64),
    /// What pulls the horn towards higher steps, in thousandths of the torque.
    weight: f64,
    /// How long the load was too large.
    strained: Duration,
    fault: Fault,
    seen: Instant,
}

impl Servo {
    /// A new servo with this id, its horn in the middle.
    #[must_use]
    pub fn new(id: u8) -> Self {
        let mut table = [0; 256];
        table[usize::from(r::ID)] = id;
        table[usize::from(r::STATUS_LEVEL)] = 1;
        table[usize::from(r::MAX_TEMPERATURE)] = 70;
        table[usize::from(r::PROTECTIVE_TORQUE)] = 20;
        table[usize::from(r::PROTECTION_TIME)] = 200;
        table[usize::from(r::OVERLOAD_TORQUE)] = 80;
        table[usize::from(r::LOCK)] = 1;
        table[usize::from(r::VOLTAGE)] = 74;
        table[usize::from(r::TEMPERATURE)] = 31;
        let mut servo = Self {
            table,
            kept: [0; KEPT],
            horn: 2048.0,
            speed: 0.0,
            presses: 0.0,
            staged: None,
            stops: (f64::NEG_INFINITY, f64::INFINITY),
            weight: 0.0,
            strained: Duration::ZERO,
            fault: Fault::None,
            seen: Instant::now(),
        };
        servo.set_word(r::MODEL, 777);
        servo.set_word(r::MAX_POSITION, 4095);
        servo.set_word(r::GOAL_POSITION, 2048);
        servo.set_word(r::MAX_TORQUE, 1000);
        servo.set_word(r::TORQUE_LIMIT, 1000);
        servo.kept.copy_from_slice(&servo.table[..KEPT]);
        servo
    }

    /// The same servo with its horn at another position. Its goal register stays in the middle.
    #[must_use]
    pub fn at(mut self, steps: u16) -> Self {
        self.horn = f64::from(steps);
        self
    }

    /// The id it answers to.
    #[must_use]
    pub fn id(&self) -> u8 {
        self.table[usize::from(r::ID)]
    }

    /// What it keeps without power: the registers below 40.
    #[must_use]
    pub fn memory(&self) -> &[u8] {
        &self.kept
    }

    /// The value of one register.
    #[must_use]
    pub fn byte(&self, address: u8) -> u8 {
        self.table[usize::from(address)]
    }

    /// The value of two registers as a little-endian word.
    #[must_use]
    pub fn word(&self, address: u8) -> u16 {
        let at = usize::from(address);
        u16::from_le_bytes([self.table[at], self.table[at + 1]])
    }

    /// Sets one register directly, such as a temperature or a voltage.
    pub fn set_byte(&mut self, address: u8, value: u8) {
        self.table[usize::from(address)] = value;
    }

    /// Sets two registers directly.
    pub fn set_word(&mut self, address: u8, value: u16) {
        let at = usize::from(address);
        self.table[at..at + 2].copy_from_slice(&value.to_le_bytes());
    }

    /// Its fault.
    #[must_use]
    pub fn fault(&self) -> Fault {
        self.fault
    }

    /// Sets or clears its fault.
    pub fn set_fault(&mut self, fault: Fault) {
        self.fault = fault;
    }

    /// The position of its horn, in steps as a client reads them.
    #[must_use]
    pub fn position(&self) -> f64 {
        self.horn - f64::from(signed(self.word(r::OFFSET), 11))
    }

    /// The speed of its horn, in steps per second.
    #[must_use]
    pub fn speed(&self) -> f64 {
        self.speed
    }

    /// Sets the mechanical stops of the horn in steps; the servo cannot move past them. Infinite values remove them.
    pub fn block(&mut self, low: f64, high: f64) {
        self.stops = (low, high);
    }

    /// Hangs a weight on the horn that pulls it towards higher steps (negative: lower), in thousandths of the whole torque.
    pub fn weigh(&mut self, thousandths: f64) {
        self.weight = thousandths;
    }

    /// The alarms in each of its answers.
    #[must_use]
    pub fn alarms(&self) -> u8 {
        self.byte(r::STATUS)
    }

    /// Turns the horn by hand. Does nothing while the torque is on.
    pub fn push(&mut self, steps: f64) {
        if self.byte(r::TORQUE_ENABLE) == 0 {
            self.horn += steps;
        }
    }

    /// Simulates a power cycle: volatile registers are reset.
    pub fn power_cycle(&mut self) {
        let fresh = Self::new(self.id());
        let (kept, horn, stops, fault) = (self.kept, self.horn, self.stops, self.fault);
        *self = Self {
            horn,
            stops,
            fault,
            weight: self.weight,
            ..fresh
        };
        self.table[..KEPT].copy_from_slice(&kept);
        self.set_word(r::TORQUE_LIMIT, self.word(r::MAX_TORQUE));
        self.kept = kept;
    }

    /// The servo after LeRobot's calibration: limits and homing offset.
    #[must_use]
    pub fn calibrated(mut self, low: u16, high: u16, offset: i16) -> Self {
        self.set_word(r::MIN_POSITION, low);
        self.set_word(r::MAX_POSITION, high);
        self.set_word(r::OFFSET, sign_magnitude(f64::from(offset), 11));
        self.kept.copy_from_slice(&self.table[..KEPT]);
        self
    }

    /// Its stored calibration: lower limit, upper limit and homing offset.
    #[must_use]
    pub fn calibration(&self) -> (u16, u16, i32) {
        let offset = signed(self.word(r::OFFSET), 11);
        (self.word(r::MIN_POSITION), self.word(r::MAX_POSITION), offset)
    }

    /// Counts its turns from the present one on, as a Dynamixel does; what is in its way stays where it is.
    pub(crate) fn begin_turn_anew(&mut self) {
        let within = self.horn.rem_euclid(TURN);
        let (low, high) = self.stops;
        let shift = within - self.horn;
        (self.horn, self.stops) = (within, (low + shift, high + shift));
    }

    pub(crate) fn read(&mut self, address: u8, length: u8, now: Instant) -> Vec<u8> {
        self.advance(now);
        let at = usize::from(address);
        self.table[at..(at + usize::from(length)).min(256)].to_vec()
    }

    pub(crate) fn write(&mut self, address: u8, bytes: &[u8], now: Instant) {
        self.advance(now);
        for (offset, &value) in bytes.iter().enumerate() {
            let at = usize::from(address) + offset;
            if at < 5 || (usize::from(r::PRESENT_POSITION)..=70).contains(&at) || at > 255 {
                continue;
            }
            if at == usize::from(r::TORQUE_ENABLE) && value == 128 {
                self.call_this_the_middle();
                continue;
            }
            self.table[at] = value;
            if at < KEPT && self.byte(r::LOCK) == 0 {
                self.kept[at] = value;
            }
        }
        self.advance(now);
    }

    pub(crate) fn stage(&mut self, address: u8, bytes: &[u8]) {
        self.staged = Some((address, bytes.to_vec()));
    }

    pub(crate) fn act(&mut self, now: Instant) {
        if let Some((address, bytes)) = self.staged.take() {
            self.write(address, &bytes, now);
        }
    }

    /// Advances the horn to its position at `now` and updates the registers.
    pub fn advance(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.seen);
        self.seen = now;
        let from = self.horn;
        self.turn(passed);
        let (low, high) = self.stops;
        // A horn beyond a stop that was set later may only move back.
        let stopped = self.horn.clamp(low.min(from), high.max(from));
        let pushes = (self.horn >= high && self.speed > 0.0) || (self.horn <= low && self.speed < 0.0);
        self.presses = 0.0;
        let powered = self.has_power();
        if (stopped - self.horn).abs() > 0.0 || pushes {
            // At its goal a weight rests on the obstacle. A wheel has no goal.
            let towards = match self.byte(r::MODE) {
                1 => self.speed,
                _ => self.goal() - stopped,
            };
            let presses = powered && towards.abs() > RESTS;
            self.presses = if presses { towards.signum() } else { 0.0 };
            (self.horn, self.speed) = (stopped, 0.0);
        }
        let (mut position, speed) = (self.position(), self.speed);
        if self.byte(r::MODE) == 1 {
            // In wheel mode the position wraps from 4095 to 0.
            position = position.rem_euclid(TURN);
        }
        self.set_word(r::PRESENT_POSITION, sign_magnitude(position, 15));
        self.set_word(r::PRESENT_SPEED, sign_magnitude(speed, 15));
        self.set_byte(r::MOVING, u8::from(speed != 0.0));
        let limit = self.torque();
        let carried = if powered { -self.weight } else { 0.0 };
        let load = (speed / FULL_SPEED * 200.0 + carried).clamp(-limit, limit) + self.presses * limit;
        let load = load.clamp(-limit, limit);
        self.set_word(r::PRESENT_LOAD, sign_magnitude(load, 10));
        self.set_word(r::CURRENT, u16::from(load != 0.0) * 20);
        let too_large = f64::from(self.byte(r::OVERLOAD_TORQUE)) * 10.0;
        self.strained = match powered {
            // Its protection ends when its torque is switched off.
            false => Duration::ZERO,
            true if self.is_overloaded() || load.abs() > too_large => self.strained + passed,
            true => Duration::ZERO,
        };
        let mut alarms = match self.fault {
            Fault::Error(bits) => bits,
            _ => 0,
        };
        alarms |= if self.is_overloaded() { OVERLOAD } else { 0 };
        alarms |= if self.is_hot() { OVERHEAT } else { 0 };
        self.set_byte(r::STATUS, alarms);
    }

    fn is_hot(&self) -> bool {
        self.byte(r::TEMPERATURE) > self.byte(r::MAX_TEMPERATURE)
    }

    fn is_overloaded(&self) -> bool {
        let time = Duration::from_millis(10 * u64::from(self.byte(r::PROTECTION_TIME)));
        !time.is_zero() && self.strained >= time
    }

    fn has_power(&self) -> bool {
        self.byte(r::TORQUE_ENABLE) != 0 && !self.is_hot()
    }

    /// The most torque that it has now, in thousandths.
    fn torque(&self) -> f64 {
        let limit = f64::from(self.word(r::TORQUE_LIMIT).min(1000));
        match self.is_overloaded() {
            true => limit.min(f64::from(self.byte(r::PROTECTIVE_TORQUE)) * 10.0),
            false => limit,
        }
    }

    fn turn(&mut self, passed: Duration) {
        let seconds = passed.as_secs_f64();
        if !self.has_power() || self.weight.abs() > self.torque() {
            let (low, high) = self.stops;
            let end = if self.weight < 0.0 { low } else { high };
            // What has nowhere to come to a stop is held by something else.
            let sinks = self.weight.abs() > 0.0 && end.is_finite();
            self.speed = if sinks { SINKS.copysign(self.weight) } else { 0.0 };
            self.horn += self.speed * seconds;
            return;
        }
        let goal_speed = f64::from(signed(self.word(r::GOAL_SPEED), 15));
        if self.byte(r::MODE) == 1 {
            self.speed = goal_speed.clamp(-FULL_SPEED, FULL_SPEED);
            self.horn += self.speed * seconds;
            return;
        }
        let left = self.goal() + self.weight / 1000.0 * GIVES - self.horn;
        let limit = if goal_speed == 0.0 {
            FULL_SPEED
        } else {
            goal_speed.abs().min(FULL_SPEED)
        };
        if left.abs() <= limit * seconds || left == 0.0 {
            self.horn += left;
            self.speed = 0.0;
        } else {
            self.speed = limit * left.signum();
            self.horn += self.speed * seconds;
        }
    }

    /// Where the horn goes, within the limits of its memory.
    fn goal(&self) -> f64 {
        let (low, high) = (
            f64::from(self.word(r::MIN_POSITION)),
            f64::from(self.word(r::MAX_POSITION)),
        );
        let goal = f64::from(signed(self.word(r::GOAL_POSITION), 15));
        let goal = if low < high { goal.clamp(low, high) } else { goal };
        goal + f64::from(signed(self.word(r::OFFSET), 11))
    }

    fn call_this_the_middle(&mut self) {
        let offset = self.horn - 2048.0;
        self.set_word(r::OFFSET, sign_magnitude(offset.clamp(-2047.0, 2047.0), 11));
        self.set_word(r::GOAL_POSITION, 2048);
        let at = usize::from(r::OFFSET);
        self.kept[at..at + 2].copy_from_slice(&self.table[at..at + 2]);
    }
}

/// Decodes a sign-magnitude word; `bit` is the sign.
fn signed(word: u16, bit: u8) -> i32 {
    let sign = 1u16 << bit;
    let magnitude = i32::from(word & (sign - 1));
    if word & sign == 0 { magnitude } else { -magnitude }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped to what fits below the sign bit"
)]
fn sign_magnitude(value: f64, bit: u8) -> u16 {
    let sign = 1u16 << bit;
    let magnitude = value.abs().round().min(f64::from(sign - 1)) as u16;
    if value < 0.0 && magnitude > 0 {
        magnitude | sign
    } else {
        magnitude
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(servo: &mut Servo, milliseconds: u64) -> f64 {
        let then = servo.seen + Duration::from_millis(milliseconds);
        servo.advance(then);
        servo.position()
    }

    #[test]
    fn it_goes_where_it_is_told_at_the_speed_it_is_told() {
        let mut servo = Servo::new(1);
        servo.set_word(r::GOAL_POSITION, 3048);
        servo.set_word(r::GOAL_SPEED, 1000);
        assert!(
            (after(&mut servo, 500) - 2048.0).abs() < 1e-9,
            "no torque, no motion"
        );
        servo.set_byte(r::TORQUE_ENABLE, 1);
        assert!((after(&mut servo, 500) - 2548.0).abs() < 1.0);
        assert_eq!(servo.byte(r::MOVING), 1);
        assert!((after(&mut servo, 600) - 3048.0).abs() < 1e-9);
        assert_eq!(servo.byte(r::MOVING), 0);
    }

    #[test]
    fn it_presses_on_what_is_in_the_way() {
        let mut servo = Servo::new(6);
        servo.block(1900.0, f64::INFINITY);
        servo.set_word(r::GOAL_POSITION, 1000);
        servo.set_word(r::GOAL_SPEED, 1000);
        servo.set_byte(r::TORQUE_ENABLE, 1);
        assert!((after(&mut servo, 1000) - 1900.0).abs() < 1e-9);
        assert_eq!(servo.byte(r::MOVING), 0);
        assert_eq!(servo.word(r::PRESENT_LOAD), 1000 | 0x400);
        servo.set_word(r::TORQUE_LIMIT, 300);
        let _ = after(&mut servo, 1);
        assert_eq!(servo.word(r::PRESENT_LOAD), 300 | 0x400);
        servo.block(f64::NEG_INFINITY, f64::INFINITY);
        assert!((after(&mut servo, 1000) - 1000.0).abs() < 1e-9);
    }

    #[test]
    fn a_weight_pulls_it_off_its_goal_and_sinks_without_power() {
        let mut servo = Servo::new(2);
        servo.block(1000.0, 3000.0);
        servo.weigh(500.0);
        servo.set_byte(r::TORQUE_ENABLE, 1);
        assert!((after(&mut servo, 1000) - 2048.0 - GIVES / 2.0).abs() < 1e-9);
        assert_eq!(servo.word(r::PRESENT_LOAD), 500 | 0x400);
        // It cannot hold what is heavier than its torque.
        servo.set_word(r::TORQUE_LIMIT, 400);
        let sunk = after(&mut servo, 500);
        assert!(sunk > 2250.0, "{sunk}");
        servo.set_byte(r::TORQUE_ENABLE, 0);
        assert!((after(&mut servo, 5000) - 3000.0).abs() < 1e-9);
        assert_eq!(servo.word(r::PRESENT_LOAD), 0);
    }

    #[test]
    fn what_it_cannot_bear_for_long_is_an_alarm_until_its_torque_is_off() {
        let mut servo = Servo::new(6);
        servo.block(1900.0, f64::INFINITY);
        servo.set_word(r::GOAL_POSITION, 1000);
        servo.set_byte(r::TORQUE_ENABLE, 1);
        for (milliseconds, alarms, load) in [
            (1000, 0, 1000),
            (900, 0, 1000),
            (200, OVERLOAD, 1000),
            (100, OVERLOAD, 200),
        ] {
            let _ = after(&mut servo, milliseconds);
            assert_eq!(servo.alarms(), alarms);
            assert_eq!(servo.word(r::PRESENT_LOAD), load | 0x400);
        }
        servo.set_byte(r::TORQUE_ENABLE, 0);
        let _ = after(&mut servo, 1);
        assert_eq!(servo.alarms(), 0);
        servo.set_byte(r::TEMPERATURE, 71);
        servo.set_byte(r::TORQUE_ENABLE, 1);
        let rests = after(&mut servo, 1);
        assert_eq!(servo.alarms(), OVERHEAT);
        assert!((after(&mut servo, 500) - rests).abs() < 1e-9);
    }

    #[test]
    fn its_own_limits_end_its_way_without_a_load() {
        // A gripper as LeRobot configures it: offset 100, limits in the steps that a client reads.
        let mut servo = Servo::new(6).at(2600).calibrated(2031, 3476, 100);
        assert!((servo.position() - 2500.0).abs() < 1e-9);
        for (goal, end) in [(1000, 2031.0), (4000, 3476.0)] {
            servo.set_word(r::GOAL_POSITION, goal);
            servo.set_byte(r::TORQUE_ENABLE, 1);
            assert!((after(&mut servo, 3000) - end).abs() < 1e-9, "{goal}");
            assert_eq!(servo.word(r::PRESENT_LOAD), 0, "{goal}");
        }
        servo.power_cycle();
        assert_eq!(servo.calibration(), (2031, 3476, 100));
    }

    #[test]
    fn its_torque_limit_comes_from_its_memory_with_the_power() {
        let mut servo = Servo::new(6);
        servo.write(r::LOCK, &[0], Instant::now());
        servo.write(r::MAX_TORQUE, &500u16.to_le_bytes(), Instant::now());
        servo.write(r::TORQUE_LIMIT, &900u16.to_le_bytes(), Instant::now());
        servo.power_cycle();
        assert_eq!(servo.word(r::TORQUE_LIMIT), 500);
    }

    #[test]
    fn a_wheel_turns_until_it_is_told_not_to() {
        let mut servo = Servo::new(7);
        servo.set_byte(r::MODE, 1);
        servo.set_byte(r::TORQUE_ENABLE, 1);
        servo.set_word(r::GOAL_SPEED, 500 | 0x8000);
        assert!((after(&mut servo, 10_000) + 2952.0).abs() < 1.0);
        assert_eq!(servo.word(r::PRESENT_SPEED), 500 | 0x8000);
        assert_eq!(servo.word(r::PRESENT_POSITION), 4096 - 2952);
        servo.set_word(r::GOAL_SPEED, 0);
        let rests = after(&mut servo, 1);
        assert!((after(&mut servo, 1000) - rests).abs() < 1e-9);
    }

    #[test]
    fn an_id_written_under_the_lock_is_forgotten_with_the_power() {
        for (lock, after_power) in [(1, 3), (0, 9)] {
            let mut servo = Servo::new(3);
            servo.write(r::LOCK, &[lock], Instant::now());
            servo.write(r::ID, &[9], Instant::now());
            assert_eq!(servo.id(), 9);
            servo.power_cycle();
            assert_eq!(servo.id(), after_power, "lock {lock}");
        }
    }

    #[test]
    fn torque_128_calls_the_present_position_the_middle() {
        let mut servo = Servo::new(1).at(1500);
        servo.write(r::TORQUE_ENABLE, &[128], Instant::now());
        assert!((servo.position() - 2048.0).abs() < 1e-9);
        assert_eq!(servo.byte(r::TORQUE_ENABLE), 0);
    }
}
