//! What a bus of servos is asked and told, register by register.
//!
//! A write counts when the register reads as it was written, and the goal speeds that are ours are known. Every function blocks until
//! the servo has answered, at most the port's timeout for each try, and not while a stop waits. Read [`Wire`].

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::error::ServoError;
use super::exchange::{Block, Exchange, Patience, TRIES};
use super::frame;
use super::health::{Alarms, Calibration, Health, Mode, State};
use super::register::{Family, Register, Span};

/// How long a scan listens to each id.
const SCANNED: Duration = Duration::from_millis(5);

/// The mode of an XL servo that goes to positions within one turn, as the servo has it.
const SINGLE_TURN: u8 = 3;
/// The steps of one turn.
const TURN: std::ops::RangeInclusive<i64> = 0..=4095;

/// A serial bus.
pub(crate) struct Wire {
    exchange: Exchange,
    /// The servos whose goal speed is one of ours.
    sped: BTreeSet<u8>,
}

impl Wire {
    pub(crate) fn new(exchange: Exchange) -> Self {
        Self {
            exchange,
            sped: BTreeSet::new(),
        }
    }

    /// The questions and answers of this bus.
    pub(crate) fn exchange(&mut self) -> &mut Exchange {
        &mut self.exchange
    }

    /// Runs the part of a stop that asks servos: no question waits beyond `lasting`.
    pub(crate) fn bounded<R>(&mut self, lasting: Duration, work: impl FnOnce(&mut Self) -> R) -> R {
        self.exchange.bind(Some(lasting));
        let done = work(self);
        self.exchange.bind(None);
        done
    }

    /// Whether servo `id` answers.
    pub(crate) fn ping(&mut self, id: u8) -> Result<bool, ServoError> {
        match self.read(id, Register::ID) {
            Ok(_) => Ok(true),
            Err(ServoError::Silent { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// A register of one servo.
    pub(crate) fn read(&mut self, id: u8, register: Register) -> Result<i64, ServoError> {
        let (value, _) = self.read_with(id, register, self.exchange.usual())?;
        Ok(value)
    }

    fn read_with(&mut self, id: u8, register: Register, patience: Patience) -> Result<(i64, u8), ServoError> {
        let family = self.family();
        let span = Span::over(family, &[register]);
        let block = self.exchange.block(id, span, patience)?;
        let value = register
            .decode(family, span.first, &block.bytes)
            .unwrap_or_default();
        Ok((value, block.error))
    }

    /// Whose servos hang on the bus.
    pub(crate) fn family(&self) -> Family {
        self.exchange.family()
    }

    /// Writes a register; it counts when it reads as it was written.
    pub(crate) fn write(&mut self, id: u8, register: Register, value: i64) -> Result<(), ServoError> {
        let bytes = self.encode(id, register, value)?;
        let mut has = value;
        for _ in 0..TRIES {
            if self.exchange.is_called_off() {
                return Err(self.exchange.stopped());
            }
            self.write_once(id, register, &bytes)?;
            has = self.read(id, register)?;
            // A number may be rounded on its way.
            if register.encode(self.family(), has).as_ref() == Some(&bytes) {
                if register == Register::GOAL_SPEED {
                    self.sped.remove(&id);
                }
                return Ok(());
            }
        }
        let alarms = Alarms(u8::try_from(self.read(id, Register::STATUS)?).unwrap_or_default()).names();
        let why = match alarms.is_empty() {
            true => String::new(),
            false => format!(
                "; it reports {}: recover_servo with action reboot restarts it",
                alarms.join(" and ")
            ),
        };
        Err(self.wrong(
            id,
            format!(
                "{} was written {value} three times and reads {has}{why}",
                register.name
            ),
        ))
    }

    fn write_once(&mut self, id: u8, register: Register, bytes: &[u8]) -> Result<(), ServoError> {
        let family = self.family();
        self.exchange
            .send(&frame::write(family, id, register.at(family).address, bytes))?;
        // The servo's turn on the line; whether this was its answer or a late one does not matter.
        self.exchange.acknowledged(id)?;
        Ok(())
    }

    fn encode(&self, id: u8, register: Register, value: i64) -> Result<Vec<u8>, ServoError> {
        register
            .encode(self.family(), value)
            .ok_or_else(|| self.wrong(id, format!("{value} does not fit {}", register.name)))
    }

    fn wrong(&self, id: u8, reason: String) -> ServoError {
        ServoError::Value {
            bus: self.exchange.bus().to_owned(),
            id,
            reason,
        }
    }

    /// One register of several servos in one instruction; the servos that did not answer are missing. With each value
    /// come the alarms of its servo.
    pub(crate) fn read_each(
        &mut self,
        ids: &[u8],
        register: Register,
    ) -> Result<BTreeMap<u8, (i64, Alarms)>, ServoError> {
        let family = self.family();
        let span = Span::over(family, &[register]);
        let found = self.exchange.blocks(ids, span, self.exchange.usual())?.blocks;
        let value = |(id, block): (u8, Block)| {
            let value = register.decode(family, span.first, &block.bytes)?;
            Some((id, (value, Alarms(block.error))))
        };
        Ok(found.into_iter().filter_map(value).collect())
    }

    /// The mode and torque of several servos, in one instruction; servos that did not answer are missing.
    pub(crate) fn modes(&mut self, ids: &[u8]) -> Result<BTreeMap<u8, Mode>, ServoError> {
        self.each(ids, Mode::REGISTERS, Mode::of)
    }

    /// What several servos keep of their calibration, in one instruction; those that did not answer are missing.
    pub(crate) fn calibrations(&mut self, ids: &[u8]) -> Result<BTreeMap<u8, Calibration>, ServoError> {
        self.each(ids, Calibration::REGISTERS, Calibration::of)
    }

    /// What several servos do and are told to do, in one instruction; those that did not answer are missing.
    pub(crate) fn states(&mut self, ids: &[u8]) -> Result<BTreeMap<u8, State>, ServoError> {
        self.each(ids, State::REGISTERS, State::of)
    }

    fn each<R>(
        &mut self,
        ids: &[u8],
        registers: &[Register],
        read: impl Fn(Family, u8, &[u8]) -> Option<R>,
    ) -> Result<BTreeMap<u8, R>, ServoError> {
        let family = self.family();
        let span = Span::over(family, registers);
        let found = self.exchange.blocks(ids, span, self.exchange.usual())?.blocks;
        let one = |(id, block): (u8, Block)| Some((id, read(family, span.first, &block.bytes)?));
        Ok(found.into_iter().filter_map(one).collect())
    }

    /// One register of several servos in one instruction, which no servo answers.
    pub(crate) fn write_each(&mut self, register: Register, values: &[(u8, i64)]) -> Result<(), ServoError> {
        // An instruction for no servo cannot be encoded.
        if values.is_empty() {
            return Ok(());
        }
        let mut blocks = Vec::with_capacity(values.len());
        for (id, value) in values {
            blocks.push((*id, self.encode(*id, register, *value)?));
        }
        let (family, place) = (self.family(), register.at(self.family()));
        self.exchange
            .send(&frame::sync_write(family, place.address, place.width, &blocks))
    }

    /// Zero speed for these wheels, twice: no servo answers this instruction, and one can be lost.
    pub(crate) fn still(&mut self, wheels: &[u8]) -> Result<(), ServoError> {
        let zero: Vec<(u8, i64)> = wheels.iter().map(|id| (*id, 0)).collect();
        self.write_each(Register::GOAL_SPEED, &zero)?;
        self.write_each(Register::GOAL_SPEED, &zero)
    }

    /// Goal position and greatest speed of several servos in one instruction, so that they start together.
    pub(crate) fn go(&mut self, goals: &[(u8, i64, u16)]) -> Result<(), ServoError> {
        if goals.is_empty() {
            return Ok(());
        }
        let mut blocks = Vec::with_capacity(goals.len());
        let family = self.family();
        for (id, steps, speed) in goals {
            let goal = self.encode(*id, Register::GOAL_POSITION, *steps)?;
            let speed = self.encode(*id, Register::GOAL_SPEED, i64::from(*speed))?;
            // They stand side by side in the table.
            let block = match family {
                // Between them is the time; 0: as the speed says.
                Family::Sts => [goal, vec![0, 0], speed].concat(),
                // A profile begins with its goal, at the velocity that is there then.
                Family::Xl => [speed, goal].concat(),
            };
            blocks.push((*id, block));
        }
        self.sped.extend(goals.iter().map(|(id, ..)| *id));
        let both = Span::over(family, &[Register::GOAL_POSITION, Register::GOAL_SPEED]);
        self.exchange
            .send(&frame::sync_write(family, both.first, both.length, &blocks))
    }

    /// Whether a joint that moves slows down when it is told another speed without a goal. An XL servo takes it with its next goal alone.
    pub(crate) fn slows(&self) -> bool {
        self.family() == Family::Sts
    }

    /// The smallest speed that there is, in steps a second: a degree in eleven seconds, or a degree and a half in one.
    pub(crate) fn slowest(&self) -> i64 {
        match self.family() {
            Family::Sts => 1,
            Family::Xl => 16,
        }
    }

    /// Checks that the joints count their turns as we do when they get torque.
    ///
    /// An XL servo counts turns from where its torque was switched, its mode changed or it was restarted: a joint whose range has the end of a turn of
    /// its servo in it may read a turn more or less after that, and would go to its goal the long way round.
    ///
    /// # Errors
    /// Where a joint stands, a turn would be lost, or its drive mode or its mode makes something else of what we write.
    pub(crate) fn check_turns(&mut self, ids: &[u8]) -> Result<(), ServoError> {
        if self.family() == Family::Sts {
            return Ok(());
        }
        const REGISTERS: &[Register] = &[
            Register::DRIVE_MODE,
            Register::HOMING_OFFSET,
            Register::TORQUE,
            Register::POSITION,
        ];
        let found = self.each(ids, REGISTERS, |family, first, block| {
            let read = |register: Register| register.decode(family, first, block);
            Some((
                // Behind the drive mode comes the mode as the servo has it.
                (read(Register::DRIVE_MODE)?, *block.get(1)?),
                (read(Register::HOMING_OFFSET)?, read(Register::TORQUE)? == 1),
                read(Register::POSITION)?,
            ))
        })?;
        for (id, ((drive, mode), (offset, is_on), position)) in found {
            // With its torque on it goes on counting.
            let is_within = TURN.contains(&position) && (is_on || TURN.contains(&(position - offset)));
            let why = match (drive, mode) {
                (1.., _) => format!(
                    "its drive mode (register 10) is {drive}, expected 0: in this mode it turns the other way round, takes times for \
                     speeds, or switches its torque on by itself"
                ),
                (_, SINGLE_TURN) if offset.abs() > 1024 => format!(
                    "it is in mode 3, which ignores its homing offset of {offset}; recover_servo with action reconfigure makes it \
                     count turns"
                ),
                _ if !is_within => format!(
                    "it reads step {position} with the homing offset {offset}, so its count wraps round inside the range of its joint; \
                     expected 0 to 4095, with and without the offset. Move the joint by hand to its middle and restart the servo \
                     (recover_servo, action reboot); if that does not help, turn its horn and calibrate it again"
                ),
                _ => continue,
            };
            return Err(self.wrong(id, why));
        }
        Ok(())
    }

    /// A greatest speed for several joints, whatever their goals are.
    pub(crate) fn slow(&mut self, joints: &[u8], speed: u16) -> Result<(), ServoError> {
        let speeds: Vec<(u8, i64)> = joints.iter().map(|id| (*id, i64::from(speed))).collect();
        self.sped.extend(joints);
        self.write_each(Register::GOAL_SPEED, &speeds)
    }

    /// Counts the goal speed of these servos as one of ours: a process of ours that has died may have left it.
    pub(crate) fn suspect(&mut self, ids: &[u8]) {
        self.sped.extend(ids);
    }

    /// The servos whose goal speed is one of ours: for a joint 0 means its own greatest speed, which other programs expect.
    pub(crate) fn sped(&self) -> Vec<u8> {
        self.sped.iter().copied().collect()
    }

    /// Gives these servos their own greatest speed back.
    pub(crate) fn unspeed(&mut self, ids: &[u8]) -> Result<(), ServoError> {
        let zero: Vec<(u8, i64)> = ids.iter().map(|id| (*id, 0)).collect();
        self.write_each(Register::GOAL_SPEED, &zero)?;
        for (id, (speed, _)) in self.read_each(ids, Register::GOAL_SPEED)? {
            if speed == 0 {
                self.sped.remove(&id);
            }
        }
        Ok(())
    }

    /// The error for a servo that has to go to positions and is in another mode.
    pub(crate) fn turns(&self, id: u8, mode: i64) -> ServoError {
        ServoError::Turns {
            bus: self.exchange.bus().to_owned(),
            id,
            mode,
        }
    }

    /// The error for servos of which a stop knows only what it sent to them.
    pub(crate) fn unconfirmed(&self, ids: &[u8], what: &'static str) -> ServoError {
        ServoError::Unconfirmed {
            bus: self.exchange.bus().to_owned(),
            ids: ids.iter().map(u8::to_string).collect::<Vec<_>>().join(", "),
            what,
        }
    }

    /// Everything a servo says about itself, in one instruction.
    pub(crate) fn health(&mut self, id: u8) -> Result<Health, ServoError> {
        let family = self.family();
        let span = Span::over(family, Health::REGISTERS);
        let block = self.exchange.block(id, span, self.exchange.usual())?;
        Health::of(family, span.first, &block.bytes, block.error).map_err(|reason| ServoError::Garbled {
            bus: self.exchange.bus().to_owned(),
            id,
            reason,
        })
    }

    /// Which of these ids answer, with their model numbers. Keep the list short: a stop waits for it.
    pub(crate) fn scan(&mut self, ids: &[u8]) -> Result<BTreeMap<u8, u16>, ServoError> {
        let mut found = BTreeMap::new();
        let patience = Patience {
            wait: SCANNED,
            tries: 1,
        };
        for &id in ids {
            match self.read_with(id, Register::MODEL, patience) {
                Ok((model, _)) => drop(found.insert(id, u16::try_from(model).unwrap_or_default())),
                Err(ServoError::Silent { .. } | ServoError::Garbled { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    /// Gives a servo another id for good.
    pub(crate) fn change_id(&mut self, id: u8, new: u8) -> Result<(), ServoError> {
        if self.family() == Family::Xl {
            // Its torque is its lock.
            self.write(id, Register::TORQUE, 0)?;
            self.write_once(id, Register::ID, &[new])?;
            return self.read(new, Register::ID).map(drop);
        }
        self.write(id, Register::LOCK, 0)?;
        self.write_once(id, Register::ID, &[new])?;
        self.read(new, Register::ID)?;
        self.write(new, Register::LOCK, 1)
    }

    /// Writes a register that the servo keeps without power. A servo takes it only with its torque off and its lock
    /// open.
    pub(crate) fn keep(&mut self, id: u8, register: Register, value: i64) -> Result<(), ServoError> {
        self.write(id, Register::TORQUE, 0)?;
        if self.family() == Family::Xl {
            return self.write(id, register, value);
        }
        self.write(id, Register::LOCK, 0)?;
        let written = self.write(id, register, value);
        // Also where a stop came between: then it is not waited for.
        self.write_once(id, Register::LOCK, &[1])?;
        written?;
        match self.read(id, Register::LOCK)? {
            1 => Ok(()),
            has => Err(self.wrong(id, format!("lock was written 1 and reads {has}"))),
        }
    }

    /// Restarts a servo. Returns false where it did not answer: its firmware may not know the instruction.
    pub(crate) fn reboot(&mut self, id: u8) -> Result<bool, ServoError> {
        self.exchange.send(&frame::reboot(self.exchange.family(), id))?;
        self.sped.remove(&id);
        self.exchange.acknowledged(id)
    }
}
