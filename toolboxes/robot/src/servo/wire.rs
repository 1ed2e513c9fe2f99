//! One serial port and the instructions that go through it, one at a time.
//!
//! Every function blocks until the servo has answered, at most the port's timeout for each try.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustypot::servo::feetech::sts3215;
use rustypot::{CommunicationErrorKind, DynamixelProtocolHandler, SyncReadError};
use serde::Serialize;
use serialport::SerialPort;

use super::ServoError;

/// How often an instruction is tried before its servo counts as silent.
const TRIES: usize = 3;
/// How often the line is looked at while an answer is late.
const LATE_LOOK: Duration = Duration::from_millis(1);

/// A serial bus, opened when it is needed and opened again when it was lost.
pub(crate) struct Wire {
    bus: String,
    path: String,
    baud: u32,
    timeout: Duration,
    port: Option<Box<dyn SerialPort>>,
    handler: DynamixelProtocolHandler,
    /// Set while a stop waits: then a servo that does not answer is not asked again.
    hurry: Arc<AtomicBool>,
    /// An answer did not come in time and may still come.
    late: bool,
}

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
    /// Amperes; 6.5 mA a step.
    pub(crate) current: f64,
    pub(crate) moving: bool,
    pub(crate) torque: bool,
    /// The names in the error field of its answer: `overheating`, `overload`.
    pub(crate) alarms: Vec<&'static str>,
}

/// A servo's mode and torque.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mode {
    /// 0: the servo goes to positions; 1: it turns at a speed.
    pub(crate) operating: i64,
    /// The servo has power.
    pub(crate) torque: bool,
}

impl Mode {
    fn of(block: &[u8]) -> Self {
        Self {
            operating: block.first().copied().map_or(0, i64::from),
            torque: block.last() == Some(&1),
        }
    }
}

/// What a servo keeps of its calibration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Calibration {
    /// The smallest goal it takes, in steps as it reads its position.
    pub(crate) min: i64,
    /// The largest goal it takes, in steps as it reads its position.
    pub(crate) max: i64,
    /// The steps that it subtracts from the position of its horn.
    pub(crate) offset: i64,
}

impl Calibration {
    fn of(block: &[u8]) -> Self {
        let word = |register: u8| {
            let at = usize::from(register - MIN_POSITION);
            let byte = |at: usize| block.get(at).copied().unwrap_or(0);
            u16::from_le_bytes([byte(at), byte(at + 1)])
        };
        Self {
            min: i64::from(word(MIN_POSITION)),
            max: i64::from(word(MAX_POSITION)),
            offset: signed(word(HOMING_OFFSET), 11),
        }
    }

    /// Its limits; `None` where it goes to every step.
    pub(crate) fn limits(self) -> Option<(i64, i64)> {
        (self.min < self.max).then_some((self.min, self.max))
    }
}

impl Wire {
    pub(crate) fn new(bus: &str, path: &str, baud: u32, timeout: Duration, hurry: Arc<AtomicBool>) -> Self {
        Self {
            bus: bus.to_owned(),
            path: path.to_owned(),
            baud,
            timeout,
            port: None,
            handler: DynamixelProtocolHandler::v1(),
            hurry,
            late: false,
        }
    }

    /// Opens the port when it is closed, and returns whether it did. Sends nothing.
    pub(crate) fn connect(&mut self) -> Result<bool, ServoError> {
        if self.port.is_some() {
            return Ok(false);
        }
        let open = serialport::new(&self.path, self.baud)
            .timeout(self.timeout)
            .open();
        let port = open.map_err(|error| ServoError::NoPort {
            bus: self.bus.clone(),
            path: self.path.clone(),
            reason: error.to_string(),
        })?;
        let _ = port.clear(serialport::ClearBuffer::All);
        self.port = Some(port);
        Ok(true)
    }

    pub(crate) fn is_open(&self) -> bool {
        self.port.is_some()
    }

    /// Whether the device behind the open port is still there.
    pub(crate) fn check(&mut self) -> bool {
        if self
            .port
            .as_ref()
            .is_some_and(|port| port.bytes_to_read().is_err())
        {
            self.port = None;
        }
        self.port.is_some()
    }

    /// Whether servo `id` answers.
    pub(crate) fn ping(&mut self, id: u8) -> Result<bool, ServoError> {
        match self.ask(id, |handler, port| match handler.ping(port, id) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Box::new(CommunicationErrorKind::TimeoutError)),
            Err(error) => Err(error),
        }) {
            Ok(()) => Ok(true),
            Err(ServoError::Silent { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// A register by its name, signed where the register is.
    pub(crate) fn read(&mut self, id: u8, register: &'static str) -> Result<i64, ServoError> {
        self.ask(id, |handler, port| {
            sts3215::DEFINITION.read_register(handler, port, id, register)
        })
    }

    /// Writes a register and waits for the servo's acknowledgement.
    pub(crate) fn write(&mut self, id: u8, register: &'static str, value: i64) -> Result<(), ServoError> {
        self.ask(id, |handler, port| {
            sts3215::DEFINITION.write_register(handler, port, id, register, value)
        })
    }

    /// One register of several servos in one instruction; the servos that did not answer are missing. With each value
    /// come the alarms of its servo.
    pub(crate) fn read_each(
        &mut self,
        ids: &[u8],
        register: &'static str,
    ) -> Result<BTreeMap<u8, (i64, Alarms)>, ServoError> {
        if ids.is_empty() {
            return Ok(BTreeMap::new());
        }
        let together = self.ask(ids[0], |handler, port| {
            sts3215::DEFINITION.sync_read_register_with_error(handler, port, ids, register)
        });
        match together {
            Ok(values) => {
                let values = values
                    .into_iter()
                    .map(|(value, error)| (value, Alarms(error.byte())));
                return Ok(ids.iter().copied().zip(values).collect());
            }
            Err(ServoError::Silent { .. } | ServoError::Garbled { .. }) => {}
            Err(error) => return Err(error),
        }
        // One missing servo makes the whole answer useless, so each servo is asked alone.
        let mut values = BTreeMap::new();
        for &id in ids {
            let one = self.ask(id, |handler, port| {
                sts3215::DEFINITION.read_register_with_error(handler, port, id, register)
            });
            match one {
                Ok((value, error)) => drop(values.insert(id, (value, Alarms(error.byte())))),
                Err(ServoError::Silent { .. } | ServoError::Garbled { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(values)
    }

    /// The mode and torque of several servos, in one instruction; servos that did not answer are missing.
    pub(crate) fn modes(&mut self, ids: &[u8]) -> Result<BTreeMap<u8, Mode>, ServoError> {
        let blocks = self.blocks(ids, OPERATING_MODE, MODES)?;
        Ok(blocks
            .into_iter()
            .map(|(id, block)| (id, Mode::of(&block)))
            .collect())
    }

    /// What several servos keep of their calibration, in one instruction; those that did not answer are missing.
    pub(crate) fn calibrations(&mut self, ids: &[u8]) -> Result<BTreeMap<u8, Calibration>, ServoError> {
        let blocks = self.blocks(ids, MIN_POSITION, CALIBRATION)?;
        Ok(blocks
            .into_iter()
            .map(|(id, block)| (id, Calibration::of(&block)))
            .collect())
    }

    /// The same registers of several servos in one instruction; those that did not answer are missing.
    fn blocks(&mut self, ids: &[u8], address: u8, length: u8) -> Result<BTreeMap<u8, Vec<u8>>, ServoError> {
        let Some(&first) = ids.first() else {
            return Ok(BTreeMap::new());
        };
        let together = self.ask(first, |handler, port| {
            handler.sync_read(port, ids, address, length)
        });
        match together {
            Ok(blocks) => return Ok(ids.iter().copied().zip(blocks).collect()),
            Err(ServoError::Silent { .. } | ServoError::Garbled { .. }) => {}
            Err(error) => return Err(error),
        }
        let mut found = BTreeMap::new();
        for &id in ids {
            match self.ask(id, |handler, port| handler.read(port, id, address, length)) {
                Ok(block) => drop(found.insert(id, block)),
                Err(ServoError::Silent { .. } | ServoError::Garbled { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    /// One register of several servos in one instruction, which no servo answers.
    pub(crate) fn write_each(
        &mut self,
        register: &'static str,
        values: &[(u8, i64)],
    ) -> Result<(), ServoError> {
        // An instruction for no servo cannot be encoded.
        let Some(&(first, _)) = values.first() else {
            return Ok(());
        };
        let (ids, values): (Vec<u8>, Vec<i64>) = values.iter().copied().unzip();
        self.send(first, |handler, port| {
            sts3215::DEFINITION.sync_write_register(handler, port, &ids, register, &values)
        })
    }

    /// Goal position and greatest speed of several servos in one instruction, so that they start together.
    pub(crate) fn go(&mut self, goals: &[(u8, i64, u16)]) -> Result<(), ServoError> {
        let Some(&(first, _, _)) = goals.first() else {
            return Ok(());
        };
        let ids: Vec<u8> = goals.iter().map(|(id, _, _)| *id).collect();
        let mut blocks = Vec::with_capacity(goals.len());
        for (id, steps, speed) in goals {
            let word = position(*steps).ok_or_else(|| ServoError::Value {
                bus: self.bus.clone(),
                id: *id,
                reason: format!("{steps} steps is not a position: expected -32767..32767"),
            })?;
            // Position, time (0: as the speed says) and speed stand side by side in the table.
            let mut block = word.to_le_bytes().to_vec();
            block.extend([0, 0]);
            block.extend(speed.to_le_bytes());
            blocks.push(block);
        }
        self.send(first, |handler, port| {
            handler.sync_write(port, &ids, GOAL_POSITION, &blocks)
        })
    }

    /// The error for a servo that has to go to positions and is in another mode.
    pub(crate) fn turns(&self, id: u8, mode: i64) -> ServoError {
        ServoError::Turns {
            bus: self.bus.clone(),
            id,
            mode,
        }
    }

    /// Everything a servo says about itself, in one instruction.
    pub(crate) fn health(&mut self, id: u8) -> Result<Health, ServoError> {
        let torque = self.read(id, "torque_enable")? == 1;
        let (bytes, error) = self.ask(id, |handler, port| {
            handler.read_with_error(port, id, PRESENT_POSITION, 15)
        })?;
        let word = |at: usize| {
            u16::from_le_bytes([
                bytes.get(at).copied().unwrap_or(0),
                bytes.get(at + 1).copied().unwrap_or(0),
            ])
        };
        let byte = |at: usize| bytes.get(at).copied().unwrap_or(0);
        Ok(Health {
            position: signed(word(0), 15),
            speed: signed(word(2), 15),
            load_percent: tenths(signed(word(4), 10)),
            voltage: f64::from(byte(6)) / 10.0,
            temperature: i64::from(byte(7)),
            moving: byte(10) != 0,
            current: f64::from(word(13)) * 0.0065,
            torque,
            alarms: Alarms(error.byte() | byte(9)).names(),
        })
    }

    /// Which of these ids answer, with their model numbers. Keep the list short: a stop waits for it.
    pub(crate) fn scan(&mut self, ids: &[u8]) -> Result<BTreeMap<u8, u16>, ServoError> {
        self.ask(ids.first().copied().unwrap_or(0), |handler, port| {
            sts3215::DEFINITION.scan(handler, port, ids)
        })
    }

    /// Gives a servo another id for good.
    pub(crate) fn change_id(&mut self, id: u8, new: u8) -> Result<(), ServoError> {
        self.ask(id, |handler, port| {
            sts3215::DEFINITION.change_id(handler, port, id, new)
        })?;
        self.write(new, "lock", 1)
    }

    /// Writes a register that the servo keeps without power. A servo takes it only with its torque off and its lock
    /// open.
    pub(crate) fn keep(&mut self, id: u8, register: &'static str, value: i64) -> Result<(), ServoError> {
        self.write(id, "torque_enable", 0)?;
        self.write(id, "lock", 0)?;
        let written = self.write(id, register, value);
        self.write(id, "lock", 1)?;
        written
    }

    /// Restarts a servo. Returns false where it did not answer: its firmware may not know the instruction.
    pub(crate) fn reboot(&mut self, id: u8) -> Result<bool, ServoError> {
        match self.ask(id, |handler, port| match handler.reboot(port, id) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Box::new(CommunicationErrorKind::TimeoutError)),
            Err(error) => Err(error),
        }) {
            Ok(()) => Ok(true),
            Err(ServoError::Silent { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Sends an instruction and waits for the answer.
    fn ask<R>(
        &mut self,
        id: u8,
        instruction: impl Fn(
            &DynamixelProtocolHandler,
            &mut dyn SerialPort,
        ) -> Result<R, Box<dyn std::error::Error>>,
    ) -> Result<R, ServoError> {
        self.attempt(id, true, instruction)
    }

    /// Sends an instruction without an answer. It does not wait for a late answer to another instruction.
    fn send(
        &mut self,
        id: u8,
        instruction: impl Fn(
            &DynamixelProtocolHandler,
            &mut dyn SerialPort,
        ) -> Result<(), Box<dyn std::error::Error>>,
    ) -> Result<(), ServoError> {
        self.attempt(id, false, instruction)
    }

    fn attempt<R>(
        &mut self,
        id: u8,
        is_answered: bool,
        instruction: impl Fn(
            &DynamixelProtocolHandler,
            &mut dyn SerialPort,
        ) -> Result<R, Box<dyn std::error::Error>>,
    ) -> Result<R, ServoError> {
        self.connect()?;
        let mut failed = None;
        for _ in 0..TRIES {
            if is_answered {
                self.clear_late();
            }
            let Some(port) = self.port.as_mut() else { break };
            match instruction(&self.handler, port.as_mut()) {
                Ok(answer) => return Ok(answer),
                Err(error) => failed = Some(error),
            }
            self.late |= is_answered;
            // The library reports a lost port as a silent servo, so the device is checked.
            if let Some(Err(lost)) = self.port.as_ref().map(|port| port.bytes_to_read()) {
                self.port = None;
                return Err(ServoError::PortLost {
                    bus: self.bus.clone(),
                    path: self.path.clone(),
                    reason: lost.to_string(),
                });
            }
            if self.hurry.load(Ordering::SeqCst) {
                break;
            }
        }
        let Some(error) = failed else {
            return Err(ServoError::Closed {
                bus: self.bus.clone(),
            });
        };
        Err(self.explain(id, error.as_ref()))
    }

    /// Waits for a late answer and drops it, because it would be taken for the answer to the next question. The wait is
    /// at most as long as the first one; a stop does not wait.
    fn clear_late(&mut self) {
        let Some(port) = self.port.as_mut().filter(|_| self.late) else {
            return;
        };
        let end = Instant::now() + self.timeout;
        while Instant::now() < end {
            if self.hurry.load(Ordering::SeqCst) {
                // The next question after the stop waits for the late answer.
                return;
            }
            match port.bytes_to_read() {
                Ok(0) => std::thread::sleep(LATE_LOOK),
                Ok(_) | Err(_) => break,
            }
        }
        // The rest of the answer follows within a millisecond at 1 Mbit/s.
        std::thread::sleep(LATE_LOOK);
        let _ = port.clear(serialport::ClearBuffer::Input);
        self.late = false;
    }

    fn silent(&self, id: u8) -> ServoError {
        ServoError::Silent {
            bus: self.bus.clone(),
            id,
            waited: self.timeout,
        }
    }

    fn explain(&self, id: u8, error: &(dyn std::error::Error + 'static)) -> ServoError {
        if let Some(one) = error.downcast_ref::<SyncReadError>() {
            return self.explain(one.id, one.cause.as_ref());
        }
        let bus = self.bus.clone();
        if let Some(io) = error.downcast_ref::<std::io::Error>() {
            return match io.kind() {
                std::io::ErrorKind::TimedOut => self.silent(id),
                _ => ServoError::Garbled {
                    bus,
                    id,
                    reason: io.to_string(),
                },
            };
        }
        match error.downcast_ref::<CommunicationErrorKind>() {
            Some(CommunicationErrorKind::TimeoutError) => self.silent(id),
            Some(kind) => ServoError::Garbled {
                bus,
                id,
                reason: kind.to_string().to_lowercase(),
            },
            None => ServoError::Value {
                bus,
                id,
                reason: error.to_string(),
            },
        }
    }
}

/// The register of the mode; the torque switch is seven bytes after it.
const OPERATING_MODE: u8 = 33;
const MODES: u8 = 8;
/// The limits and the homing offset are within 24 bytes.
const MIN_POSITION: u8 = 9;
const MAX_POSITION: u8 = 11;
const HOMING_OFFSET: u8 = 31;
const CALIBRATION: u8 = 24;
const GOAL_POSITION: u8 = 42;
const PRESENT_POSITION: u8 = 56;

/// A position as the register has it: 15 bits and a sign.
fn position(steps: i64) -> Option<u16> {
    let magnitude = u16::try_from(steps.unsigned_abs())
        .ok()
        .filter(|magnitude| *magnitude < 0x8000)?;
    Some(if steps < 0 { magnitude | 0x8000 } else { magnitude })
}

fn signed(word: u16, bit: u8) -> i64 {
    let sign = 1u16 << bit;
    let magnitude = i64::from(word & (sign - 1));
    if word & sign == 0 { magnitude } else { -magnitude }
}

fn tenths(value: i64) -> f64 {
    // At most 1023 either way: exact.
    i32::try_from(value).map_or(0.0, |value| f64::from(value) / 10.0)
}

/// The error field of a servo's answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Alarms(pub(crate) u8);

impl Alarms {
    /// Voltage, angle sensor, overheating, overcurrent, overload.
    pub(crate) fn names(self) -> Vec<&'static str> {
        [
            (0x01, "voltage"),
            (0x02, "angle sensor"),
            (0x04, "overheating"),
            (0x08, "overcurrent"),
            (0x20, "overload"),
        ]
        .into_iter()
        .filter(|(bit, _)| self.0 & bit != 0)
        .map(|(_, name)| name)
        .collect()
    }

    /// Whether the servo should not go on: everything but a low voltage.
    pub(crate) fn is_severe(self) -> bool {
        self.0 & 0x2E != 0
    }
}
