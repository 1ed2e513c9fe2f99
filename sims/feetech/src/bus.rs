//! The servos of a bus and what becomes of their answers, without a terminal and in any time.

use std::time::{Duration, Instant};

use crate::delivery::{Delivery, Lateness};
use crate::dynamixel::{self, ControlTable, Dynamixel};
use crate::frame::{self, BROADCAST, Frame, Instruction};
use crate::servo::Servo;
use crate::{Fault, packet, register};

/// Servos on one line. Bytes go in, answers come out when they are due; the caller says what time it is.
#[derive(Debug, Default)]
pub struct Bus {
    pub(crate) servos: Vec<Servo>,
    /// Those of the servos, in their order, where they are Dynamixels: then the bus speaks protocol 2.0.
    pub(crate) tables: Vec<ControlTable>,
    pub(crate) frames: Vec<Frame>,
    /// How many of the next answers are delayed, and by how much.
    pub(crate) late: (usize, Duration),
    delivery: Delivery,
    /// The beginning of an instruction.
    bytes: Vec<u8>,
    /// The answers on their way, in the order in which they are due.
    waiting: Vec<QueuedAnswer>,
    /// When the last answer of the line is due.
    last: Option<Instant>,
}

#[derive(Debug)]
struct QueuedAnswer {
    due: Instant,
    id: u8,
    bytes: Vec<u8>,
}

impl Bus {
    /// A bus of these servos.
    #[must_use]
    pub fn new(servos: impl IntoIterator<Item = Servo>) -> Self {
        Self {
            servos: servos.into_iter().collect(),
            ..Self::default()
        }
    }

    /// A bus of Dynamixel's servos.
    #[must_use]
    pub fn dynamixel(servos: impl IntoIterator<Item = Dynamixel>) -> Self {
        let (servos, tables) = servos.into_iter().map(|one| (one.motor, one.table)).unzip();
        Self {
            servos,
            tables,
            ..Self::default()
        }
    }

    /// What becomes of the answers from now on.
    pub fn set_delivery(&mut self, delivery: Delivery) {
        self.delivery = delivery;
    }

    /// The servo of this id, as it is `now`.
    pub fn servo(&mut self, id: u8, now: Instant) -> Option<&mut Servo> {
        let servo = self.servos.iter_mut().find(|servo| servo.id() == id)?;
        servo.advance(now);
        Some(servo)
    }

    /// Every instruction received so far.
    #[must_use]
    pub fn frames(&self) -> &[Frame] {
        &self.frames
    }

    /// Returns the instructions so far and forgets them, so that a bus that runs for long does not grow.
    pub fn take_frames(&mut self) -> Vec<Frame> {
        std::mem::take(&mut self.frames)
    }

    /// Receives bytes; returns whether an instruction is complete.
    pub fn hear(&mut self, bytes: &[u8], now: Instant) -> bool {
        self.bytes.extend_from_slice(bytes);
        let mut has_answer = false;
        let take_instruction = match self.tables.is_empty() {
            true => frame::take_instruction,
            false => packet::take_instruction,
        };
        while let Some(frame) = take_instruction(&mut self.bytes, now) {
            has_answer = true;
            let answers = match self.tables.as_mut_slice() {
                [] => obeyed(&mut self.servos, &frame, now),
                tables => dynamixel::obeyed(&mut self.servos, tables, &frame, now),
            };
            self.post(answers, &frame, now);
            self.frames.push(frame);
        }
        has_answer
    }

    fn post(&mut self, answers: Vec<(u8, Vec<u8>)>, frame: &Frame, now: Instant) {
        let mut delay = Duration::ZERO;
        if let ((left @ 1.., by), false) = (&mut self.late, answers.is_empty()) {
            *left -= 1;
            delay = *by;
        }
        for (id, bytes) in answers {
            let due = now + delay + self.delivery.delay(id, now);
            // A servo answers in order, and so does the whole line, unless a servo itself is late.
            let before = match self.delivery.late {
                Lateness::InTurn { .. } => self
                    .waiting
                    .iter()
                    .filter(|other| other.id == id)
                    .map(|other| other.due)
                    .max(),
                _ => self.last,
            };
            let due = before.map_or(due, |before| before.max(due));
            self.last = Some(self.last.map_or(due, |last| last.max(due)));
            for (later, bytes) in self.delivery.deliver(id, bytes, &frame.parameters) {
                self.waiting.push(QueuedAnswer {
                    due: due + later,
                    id,
                    bytes,
                });
            }
        }
        self.waiting.sort_by_key(|waiting| waiting.due);
    }

    /// When the next answer is due.
    #[must_use]
    pub fn next_due(&self) -> Option<Instant> {
        self.waiting.first().map(|waiting| waiting.due)
    }

    /// The answers that are due `now`.
    pub fn say(&mut self, now: Instant) -> Vec<u8> {
        let due = self
            .waiting
            .iter()
            .take_while(|waiting| waiting.due <= now)
            .count();
        self.waiting
            .drain(..due)
            .flat_map(|waiting| waiting.bytes)
            .collect()
    }

    /// Forgets what is on its way, as when the cable is pulled.
    pub(crate) fn cut_off(&mut self) {
        self.bytes.clear();
        self.waiting.clear();
        self.last = None;
    }
}

/// Executes the instruction on every addressed servo; returns their answers in order, each with its servo.
fn obeyed(servos: &mut [Servo], frame: &Frame, now: Instant) -> Vec<(u8, Vec<u8>)> {
    if let (Instruction::SyncRead, [address, length, ids @ ..]) =
        (frame.instruction, frame.parameters.as_slice())
    {
        let mut answers = Vec::new();
        for id in ids {
            for servo in present(servos).filter(|servo| servo.id() == *id) {
                let read = servo.read(*address, *length, now);
                answers.push((*id, answer(servo, *id, &read)));
            }
        }
        return answers;
    }
    if frame.instruction == Instruction::SyncWrite {
        for (id, address, bytes) in frame.writes() {
            present(servos)
                .filter(|servo| servo.id() == id)
                .for_each(|servo| servo.write(address, &bytes, now));
        }
        return Vec::new();
    }
    let mut answers = Vec::new();
    for servo in present(servos).filter(|servo| frame.id == BROADCAST || servo.id() == frame.id) {
        // The answer to a change of the id still carries the old id.
        let id = servo.id();
        let read = obey(servo, frame, now);
        let wanted = match frame.instruction {
            Instruction::Ping => true,
            Instruction::Read => frame.id != BROADCAST,
            _ => frame.id != BROADCAST && servo.byte(register::STATUS_LEVEL) != 0,
        };
        if let (true, Some(read)) = (wanted, read) {
            answers.push((id, answer(servo, id, &read)));
        }
    }
    answers
}

fn present(servos: &mut [Servo]) -> impl Iterator<Item = &mut Servo> {
    servos.iter_mut().filter(|servo| servo.fault() != Fault::Absent)
}

/// The answer of one servo; `None` for an unknown instruction.
fn obey(servo: &mut Servo, frame: &Frame, now: Instant) -> Option<Vec<u8>> {
    let parameters = frame.parameters.as_slice();
    servo.advance(now);
    match (frame.instruction, parameters) {
        (Instruction::Ping, _) => {}
        (Instruction::Read, [address, length, ..]) => return Some(servo.read(*address, *length, now)),
        (Instruction::Write, [address, bytes @ ..]) => servo.write(*address, bytes, now),
        (Instruction::RegWrite, [address, bytes @ ..]) => servo.stage(*address, bytes),
        (Instruction::Action, _) => servo.act(now),
        (Instruction::Reboot, _) => servo.power_cycle(),
        _ => return None,
    }
    Some(Vec::new())
}

fn answer(servo: &Servo, id: u8, parameters: &[u8]) -> Vec<u8> {
    servo
        .fault()
        .distort(frame::encode_status(id, servo.alarms(), parameters))
}
