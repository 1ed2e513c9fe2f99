//! The bus: servos on one pseudo terminal, and the thread that simulates them.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};
use rustix::event::Timespec;

use crate::Fault;
use crate::bus::Bus;
use crate::delivery::Delivery;
use crate::dynamixel::{ControlTable, Dynamixel};
use crate::frame::Frame;
use crate::servo::Servo;
use crate::terminal::Terminal;

/// A bus of servos behind a path that a client opens like a serial port. Dropping it closes the terminal.
pub struct Line {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    path: PathBuf,
}

struct Shared {
    state: Mutex<Bus>,
    heard: Condvar,
    closing: AtomicBool,
    plugged: AtomicBool,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, Bus> {
        self.state.lock()
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
        Ok(Self::play(terminal, path, Bus::new(servos), None))
    }

    /// Starts a bus of Dynamixel's servos on a path that the system chooses.
    ///
    /// # Errors
    /// No pseudo terminal is available.
    pub fn dynamixel(servos: impl IntoIterator<Item = Dynamixel>) -> io::Result<Self> {
        let terminal = Terminal::open()?;
        let path = terminal.path().to_owned();
        Ok(Self::play(terminal, path, Bus::dynamixel(servos), None))
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
            Bus::new(servos),
            Some(link.to_owned()),
        ))
    }

    fn play(terminal: Terminal, path: PathBuf, bus: Bus, link: Option<PathBuf>) -> Self {
        let shared = Arc::new(Shared {
            state: Mutex::new(bus),
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
            self.shared.heard.wait_for(&mut state, left);
        }
    }

    /// Reads or changes a servo. `None` if there is none with this id.
    pub fn servo<R>(&self, id: u8, change: impl FnOnce(&mut Servo) -> R) -> Option<R> {
        let mut state = self.shared.state();
        state.servo(id, Instant::now()).map(change)
    }

    /// Reads or changes the control table of a Dynamixel. `None` if there is none with this id.
    pub fn table<R>(&self, id: u8, change: impl FnOnce(&mut ControlTable) -> R) -> Option<R> {
        let mut state = self.shared.state();
        let at = state.servos.iter().position(|servo| servo.id() == id)?;
        state.tables.get_mut(at).map(change)
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

    /// What becomes of all answers from now on.
    pub fn deliver(&self, delivery: Delivery) {
        self.shared.state().set_delivery(delivery);
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
    while !shared.closing.load(Ordering::SeqCst) {
        if !shared.plugged.load(Ordering::SeqCst) {
            // Removes the link first: the system may give this terminal's number to another program, which a client of
            // this bus must not open.
            if let (true, Some(link)) = (terminal.is_some(), link) {
                let _ = std::fs::remove_file(link);
            }
            terminal = None;
            shared.state().cut_off();
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
        let mut bus = shared.state();
        let has_answer = bus.hear(&read, Instant::now());
        let due = bus.say(Instant::now());
        drop(bus);
        if has_answer {
            shared.heard.notify_all();
        }
        let _ = open.write(&due);
    }
    if let Some(link) = link {
        let _ = std::fs::remove_file(link);
    }
}
