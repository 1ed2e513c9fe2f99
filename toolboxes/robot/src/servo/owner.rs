//! The thread that owns a serial port.
//!
//! It opens the port, does what waits in the queue, and stops every turning wheel at its time, even where the caller is gone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ovos_toolbox_sdk::Essential;
use parking_lot::{Condvar, Mutex};

use super::error::ServoError;
use super::exchange::Exchange;
use super::queue::{Next, Owing, Queue, Sender, Shared, Urgency};
use super::register::Family;
use super::rehearsed::{RehearsedPort, SimulatedLine};
use super::voices::Voices;
use super::wire::Wire;
use crate::clock::Clock;

/// How often an idle bus checks its port.
const LOOK: Duration = Duration::from_millis(250);
/// How long a stop listens to the servos. A halt returns within 50 ms.
pub(crate) const LISTENS: Duration = Duration::from_millis(30);

/// A serial bus and the thread that owns it. Dropping it ends the thread.
pub(crate) struct ServoBus {
    sender: Sender,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// Where a bus ends.
pub(crate) enum Line<'a> {
    /// At a serial port, by its path and its bits per second.
    Serial(&'a str, u32),
    /// At simulated servos.
    Rehearsed(SimulatedLine),
}

impl ServoBus {
    /// Starts the thread, which opens the port soon. `timeout` bounds each answer of a servo; `changed` hears when the
    /// port comes and goes, and when not one of `servos` answers any more.
    pub(crate) fn start(
        name: &str,
        line: Line<'_>,
        timeout: Duration,
        family: Family,
        (servos, wheels): (Vec<u8>, Vec<u8>),
        changed: Changed,
    ) -> std::io::Result<Self> {
        let hurry = Arc::new(AtomicBool::new(false));
        let shared = Arc::new(Shared {
            queue: Mutex::new(Queue::default()),
            changed: Condvar::new(),
            clock: match &line {
                Line::Serial(..) => Clock::default(),
                Line::Rehearsed(stage) => stage.clock.clone(),
            },
            is_watched: matches!(line, Line::Serial(..)),
            hurry: Arc::clone(&hurry),
            connected: AtomicBool::new(false),
        });
        let owner = Owner {
            wire: match line {
                Line::Serial(path, baud) => {
                    Wire::new(Exchange::new(name, path, baud, timeout, hurry).of(family))
                }
                Line::Rehearsed(stage) => Wire::new(Exchange::over(
                    name,
                    Box::new(RehearsedPort::new(stage)),
                    timeout,
                    hurry,
                )),
            },
            wheels,
            changed,
            there: None,
            again: shared.clock.now(),
            voices: Voices::new(servos, shared.clock.clone()),
        };
        let thread = std::thread::Builder::new().name(format!("bus-{name}")).spawn({
            let (shared, name) = (Arc::clone(&shared), name.to_owned());
            move || {
                // Without this thread nothing on the bus can be stopped.
                let _essential = Essential::new(format!("the servo bus {name}"));
                run(&shared, owner, &name);
            }
        })?;
        Ok(Self {
            sender: Sender {
                name: name.to_owned(),
                shared,
            },
            thread: Mutex::new(Some(thread)),
        })
    }

    pub(crate) fn sender(&self) -> &Sender {
        &self.sender
    }

    /// Stops the wheels that still turn and ends the thread.
    pub(crate) fn close(&self) {
        self.sender.shared.queue().closing = true;
        self.sender.shared.changed.notify_all();
        let thread = self.thread.lock().take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }
}

impl Drop for ServoBus {
    fn drop(&mut self) {
        self.close();
    }
}

/// Called on the bus's thread when the port has appeared or gone; never blocks.
pub(crate) type Changed = Box<dyn Fn(&Result<(), ServoError>) + Send>;

struct Owner {
    wire: Wire,
    /// Every wheel on the bus: stopped whenever the port was opened anew.
    wheels: Vec<u8>,
    changed: Changed,
    /// What `changed` has heard last.
    there: Option<bool>,
    voices: Voices,
    /// When an emergency stop that could not be confirmed is sent again.
    again: Instant,
}

fn run(shared: &Arc<Shared>, mut owner: Owner, name: &str) {
    let _awake = shared.clock.awake();
    loop {
        #[cfg(debug_assertions)]
        panic_where_asked(name);
        match shared.next(LOOK) {
            Next::Stop(stop) => {
                let stopped = owner.open(shared).and_then(|()| owner.wire.still(&stop.wheels));
                shared.ended(&stop.ends, stopped.is_ok());
                let done = match &stop.then {
                    Some(then) => stopped.and_then(|()| owner.wire.bounded(LISTENS, |wire| then(wire))),
                    None => stopped,
                };
                let done = owner.report(shared, done);
                let mut queue = shared.queue();
                let emergency = stop.emergency;
                let unheard = matches!(done, Err(ServoError::Unconfirmed { .. }));
                // A gentler stop does not take the place of an emergency stop.
                if emergency || unheard && queue.owed.as_ref().is_none_or(|owed| !owed.emergency) {
                    let then = stop.then.filter(|_| done.is_err());
                    queue.owed = then.map(|then| Owing { then, emergency });
                    owner.again = shared.clock.now() + LOOK;
                }
                let _ = stop.done.try_send(done);
                shared.hurry.store(!queue.stops.is_empty(), Ordering::SeqCst);
            }
            Next::Job(job) => {
                if let Urgency::Moves(_) = job.urgency {
                    shared.queue().owed.take_if(|owed| !owed.emergency);
                }
                let connected = owner.connect(shared);
                (job.work)(connected.map(|()| &mut owner.wire));
            }
            Next::End(ends) => {
                let wheels: Vec<u8> = ends.iter().map(|(id, _)| *id).collect();
                tracing::warn!(bus = name, ?wheels, "the time of these wheels is over");
                let stopped = owner.connect(shared).and_then(|()| owner.wire.still(&wheels));
                shared.ended(&ends, stopped.is_ok());
            }
            Next::Look => {
                if owner.connect(shared).is_ok() && shared.is_watched {
                    owner.call_out();
                }
            }
            Next::Close => break,
        }
        owner.hear(shared);
    }
    // No other thread can write any more: the last command on this bus stops the wheels that still turn.
    let queue = std::mem::take(&mut *shared.queue());
    let wheels: Vec<u8> = queue.wheels.iter().map(|(id, _)| *id).collect();
    if !wheels.is_empty() {
        let _ = owner.wire.still(&wheels);
    }
    for job in queue.jobs {
        (job.work)(Err(ServoError::Closed { bus: name.to_owned() }));
    }
}

/// For tests, and in no release: panics as soon as there is the file that this variable names, and removes it before.
#[cfg(debug_assertions)]
fn panic_where_asked(bus: &str) {
    if let Some(file) = std::env::var_os("OVOS_TEST_PANICS_AT_FILE")
        && std::fs::remove_file(file).is_ok()
    {
        panic!("asked to by a test, on the bus {bus}");
    }
}

impl Owner {
    /// Opens the port when it is not open, and stops the wheels then: they kept turning while the port was away. An
    /// emergency stop from that time ends the joints' motion now.
    fn connect(&mut self, shared: &Shared) -> Result<(), ServoError> {
        let connected = self.open(shared).and_then(|()| self.make_good(shared));
        self.report(shared, connected)
    }

    /// Opens the port as [`Owner::connect`] does; an emergency stop that was not carried out waits.
    fn open(&mut self, shared: &Shared) -> Result<(), ServoError> {
        if shared.queue().lent {
            return Err(self.wire.exchange().lent());
        }
        let was = self.wire.exchange().check();
        let connected = match self.wire.exchange().connect() {
            Ok(_) if was => Ok(()),
            Ok(_) => self.wire.still(&self.wheels),
            Err(error) => Err(error),
        };
        if !was {
            self.again = shared.clock.now();
            self.voices.forget();
        }
        // Set before the notice goes out, so that a reader of the notice finds the bus connected.
        shared.connected.store(self.is_there(), Ordering::SeqCst);
        connected
    }

    fn is_there(&mut self) -> bool {
        self.wire.exchange().is_open() && !self.voices.are_silent()
    }

    /// Asks on an idle bus whether a servo is there: the adapter has power of its own, so that its port stays open when the
    /// servos lose theirs.
    fn call_out(&mut self) {
        for id in self.voices.to_ask() {
            match self.wire.ping(id) {
                Ok(true) => break,
                Ok(false) => self.voices.unanswered(id),
                Err(_) => return,
            }
        }
    }

    /// Takes note of the servos that were heard, and reports a bus that has fallen silent or speaks again.
    fn hear(&mut self, shared: &Shared) {
        let ids = self.wire.exchange().take_heard();
        self.voices.answered(&ids);
        let silent = self.wire.exchange().is_open() && self.voices.are_silent();
        let result = if silent {
            Err(self.wire.exchange().mute())
        } else {
            Ok(())
        };
        let _ = self.report(shared, result);
    }

    /// Reports a port that has come or gone.
    fn report(&mut self, shared: &Shared, result: Result<(), ServoError>) -> Result<(), ServoError> {
        let there = self.is_there();
        shared.connected.store(there, Ordering::SeqCst);
        if let Err(ServoError::Lent { .. }) = result {
            // It is reported by the one who lends it, and when it is back.
            self.there = None;
            return result;
        }
        // A port that is closed is reported with its error, by the one who has tried to open it.
        if !there && result.is_ok() {
            return result;
        }
        if self.there.replace(there) != Some(there) {
            match &result {
                Err(error) if !there => (self.changed)(&Err(error.clone())),
                _ => (self.changed)(&Ok(())),
            }
        }
        result
    }

    /// Carries out a stop that waited for the port, or that a servo did not confirm. It is tried again now and
    /// then until it succeeds.
    fn make_good(&mut self, shared: &Shared) -> Result<(), ServoError> {
        if shared.clock.now() < self.again {
            return Ok(());
        }
        let Some(owed) = shared.queue().owed.clone() else {
            return Ok(());
        };
        self.again = shared.clock.now() + LOOK;
        match self.wire.bounded(LISTENS, |wire| (owed.then)(wire)) {
            Ok(()) => {
                shared.queue().owed = None;
                Ok(())
            }
            Err(error) if self.wire.exchange().is_open() => {
                tracing::warn!(%error, "a stop is still not carried out");
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}
