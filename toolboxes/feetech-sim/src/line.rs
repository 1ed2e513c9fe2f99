//! The bus: servos on one pseudo terminal, and the thread that simulates them.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::Timespec;

use crate::frame::{self, BROADCAST, Frame, Instruction};
use crate::servo::Servo;
use crate::terminal::Terminal;
use crate::{Fault, register};

/// A bus of servos behind a path that a client opens like a serial port. Dropping it closes the terminal.
pub struct Line {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    path: PathBuf,
}

struct Shared {
    state: Mutex<State>,
    heard: Condvar,
    closing: AtomicBool,
    plugged: AtomicBool,
}

struct State {
    servos: Vec<Servo>,
    frames: Vec<Frame>,
    /// How many of the next answers are delayed, and by how much.
    late: (usize, Duration),
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // Every change is one assignment, so a panicking test leaves valid state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Line {
    /// Starts a bus on a path that the system chooses, `/dev/pts/<n>`.
    ///
    /// # Errors
    /// No pseudo terminal is available.
    pub fn start(servos: impl IntoIterator<Item = Servo>) -> io::Result<Self> {
        let terminal = Terminal::open()?;
        let path = terminal.path().to_owned();
        Ok(Self::play(terminal, path, servos, None))
    }

    /// Starts a bus behind a symbolic link, which stays the same after [`Line::unplug`] and [`Line::plug`].
    ///
    /// # Errors
    /// No pseudo terminal is available, or the link cannot be made.
    pub fn start_at(link: &Path, servos: impl IntoIterator<Item = Servo>) -> io::Result<Self> {
        let terminal = Terminal::open()?;
        std::os::unix::fs::symlink(terminal.path(), link)?;
        Ok(Self::play(
            terminal,
            link.to_owned(),
            servos,
            Some(link.to_owned()),
        ))
    }

    fn play(
        terminal: Terminal,
        path: PathBuf,
        servos: impl IntoIterator<Item = Servo>,
        link: Option<PathBuf>,
    ) -> Self {
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                servos: servos.into_iter().collect(),
                frames: Vec::new(),
                late: (0, Duration::ZERO),
            }),
            heard: Condvar::new(),
            closing: AtomicBool::new(false),
            plugged: AtomicBool::new(true),
        });
        let thread = std::thread::spawn({
            let shared = Arc::clone(&shared);
            move || run(&shared, terminal, link.as_deref())
        });
        Self {
            shared,
            thread: Some(thread),
            path,
        }
    }

    /// The path for a client to open.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Every instruction received so far.
    #[must_use]
    pub fn frames(&self) -> Vec<Frame> {
        self.shared.state().frames.clone()
    }

    /// Returns the instructions so far and clears them.
    #[must_use]
    pub fn take_frames(&self) -> Vec<Frame> {
        std::mem::take(&mut self.shared.state().frames)
    }

    /// Waits until `seen` returns a value for the instructions so far; `None` after `limit`.
    pub fn wait<R>(&self, limit: Duration, mut seen: impl FnMut(&[Frame]) -> Option<R>) -> Option<R> {
        let end = Instant::now() + limit;
        let mut state = self.shared.state();
        loop {
            if let Some(found) = seen(&state.frames) {
                return Some(found);
            }
            let left = end.checked_duration_since(Instant::now())?;
            let waited = self.shared.heard.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Reads or changes a servo. `None` if there is none with this id.
    pub fn servo<R>(&self, id: u8, change: impl FnOnce(&mut Servo) -> R) -> Option<R> {
        let mut state = self.shared.state();
        let servo = state.servos.iter_mut().find(|servo| servo.id() == id)?;
        servo.advance(Instant::now());
        Some(change(servo))
    }

    /// Sets the fault of a servo.
    pub fn break_servo(&self, id: u8, fault: Fault) {
        self.servo(id, |servo| servo.set_fault(fault));
    }

    /// Delays the next `answers` by `by`, as on a busy machine: at a load of 10, two consecutive answers came 20 ms
    /// late or more in 3 of 150 calls. Answers keep their order: later answers wait for a delayed one.
    pub fn delay(&self, answers: usize, by: Duration) {
        self.shared.state().late = (answers, by);
    }

    /// Whether any servo is turning.
    #[must_use]
    pub fn moves(&self) -> bool {
        let mut state = self.shared.state();
        state.servos.iter_mut().any(|servo| {
            servo.advance(Instant::now());
            servo.speed() != 0.0
        })
    }

    /// Simulates a pulled cable: programs that have the path open are cut off.
    pub fn unplug(&self) {
        self.shared.plugged.store(false, Ordering::SeqCst);
    }

    /// Reconnects the cable. Only a bus behind a link ([`Line::start_at`]) can be found again.
    pub fn plug(&self) {
        self.shared.plugged.store(true, Ordering::SeqCst);
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.shared.closing.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Interval at which the bus checks its cable.
const TICK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 2_000_000,
};

fn run(shared: &Shared, terminal: Terminal, link: Option<&Path>) {
    let mut terminal = Some(terminal);
    let mut bytes = Vec::new();
    // The answers in their order, each with its earliest time of sending.
    let mut answers: VecDeque<(Instant, Vec<u8>)> = VecDeque::new();
    while !shared.closing.load(Ordering::SeqCst) {
        if !shared.plugged.load(Ordering::SeqCst) {
            // Removes the link first: the system may give this terminal's number to another program, which a client of
            // this bus must not open.
            if let (true, Some(link)) = (terminal.is_some(), link) {
                let _ = std::fs::remove_file(link);
            }
            terminal = None;
            bytes.clear();
            answers.clear();
            std::thread::sleep(Duration::from_millis(2));
            continue;
        }
        let Some(open) = &terminal else {
            terminal = Terminal::open().ok();
            if let (Some(open), Some(link)) = (&terminal, link) {
                let _ = std::os::unix::fs::symlink(open.path(), link);
            }
            continue;
        };
        let Ok(read) = open.read(&TICK) else { continue };
        bytes.extend(read);
        while let Some(frame) = frame::next(&mut bytes) {
            let mut state = shared.state();
            let answer = hear(&mut state, &frame);
            state.frames.push(frame);
            let due = match (&mut state.late, answer.is_empty()) {
                ((0, _), _) | (_, true) => Instant::now(),
                ((left, by), false) => {
                    *left -= 1;
                    Instant::now() + *by
                }
            };
            drop(state);
            shared.heard.notify_all();
            answers.push_back((due, answer));
            say(open, &mut answers);
        }
        say(open, &mut answers);
    }
    if let Some(link) = link {
        let _ = std::fs::remove_file(link);
    }
}

/// Sends the answers that are due.
fn say(open: &Terminal, answers: &mut VecDeque<(Instant, Vec<u8>)>) {
    while let Some((due, answer)) = answers.pop_front() {
        if due > Instant::now() {
            answers.push_front((due, answer));
            return;
        }
        let _ = open.write(&answer);
    }
}

/// Executes the instruction on every addressed servo; returns their answers in order.
fn hear(state: &mut State, frame: &Frame) -> Vec<u8> {
    if let (Instruction::SyncRead, [address, length, ids @ ..]) =
        (frame.instruction, frame.parameters.as_slice())
    {
        let mut answers = Vec::new();
        for id in ids {
            for servo in present(state).filter(|servo| servo.id() == *id) {
                let read = servo.read(*address, *length);
                answers.extend(answer(servo, *id, &read));
            }
        }
        return answers;
    }
    if frame.instruction == Instruction::SyncWrite {
        for (id, address, bytes) in frame.writes() {
            present(state)
                .filter(|servo| servo.id() == id)
                .for_each(|servo| servo.write(address, &bytes));
        }
        return Vec::new();
    }
    let mut answers = Vec::new();
    for servo in present(state).filter(|servo| frame.id == BROADCAST || servo.id() == frame.id) {
        // The answer to a change of the id still carries the old id.
        let id = servo.id();
        let read = obey(servo, frame);
        let wanted = match frame.instruction {
            Instruction::Ping => true,
            Instruction::Read => frame.id != BROADCAST,
            _ => frame.id != BROADCAST && servo.byte(register::STATUS_LEVEL) != 0,
        };
        if let (true, Some(read)) = (wanted, read) {
            answers.extend(answer(servo, id, &read));
        }
    }
    answers
}

fn present(state: &mut State) -> impl Iterator<Item = &mut Servo> {
    state
        .servos
        .iter_mut()
        .filter(|servo| servo.fault() != Fault::Absent)
}

/// The answer of one servo; `None` for an unknown instruction.
fn obey(servo: &mut Servo, frame: &Frame) -> Option<Vec<u8>> {
    let parameters = frame.parameters.as_slice();
    match (frame.instruction, parameters) {
        (Instruction::Ping, _) => {}
        (Instruction::Read, [address, length, ..]) => return Some(servo.read(*address, *length)),
        (Instruction::Write, [address, bytes @ ..]) => servo.write(*address, bytes),
        (Instruction::RegWrite, [address, bytes @ ..]) => servo.stage(*address, bytes),
        (Instruction::Action, _) => servo.act(),
        (Instruction::Reboot, _) => servo.power_cycle(),
        _ => return None,
    }
    Some(Vec::new())
}

fn answer(servo: &Servo, id: u8, parameters: &[u8]) -> Vec<u8> {
    let error = match servo.fault() {
        Fault::Error(bits) => bits,
        _ => 0,
    };
    let mut bytes = frame::status(id, error, parameters);
    match servo.fault() {
        Fault::Mute | Fault::Absent => return Vec::new(),
        Fault::BadChecksum => {
            if let Some(checksum) = bytes.last_mut() {
                *checksum ^= 0x55;
            }
        }
        Fault::Noise => drop(bytes.splice(0..0, [0x13, 0x37])),
        Fault::None | Fault::Error(_) => {}
    }
    bytes
}
