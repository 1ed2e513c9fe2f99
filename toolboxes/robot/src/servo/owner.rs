//! The thread that owns a serial port.
//!
//! Jobs wait in a bounded queue. A stop goes to the front and removes the jobs that it ends, under one lock, so that
//! no job from before the stop runs after it. Every turning wheel has a time at which this thread stops it, even
//! where the caller is gone.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ovos_toolbox_sdk::Essential;
use tokio::sync::oneshot;

use super::error::ServoError;
use super::register::Register;
use super::rehearsed::{RehearsedPort, SimulatedLine};
use super::voices::Voices;
use super::wire::Wire;
use crate::clock::{Awake, Clock};

/// How many jobs may wait. A whole robot's plan has fewer than ten on a bus, so a longer queue means that the bus
/// hangs.
const QUEUE: usize = 64;
/// How often an idle bus checks its port.
const LOOK: Duration = Duration::from_millis(250);
/// How long a stop listens to the servos. A halt returns within 50 ms.
pub(crate) const LISTENS: Duration = Duration::from_millis(30);
/// How often the thread tries to reach wheels that must stop and cannot be reached.
const AGAIN: Duration = Duration::from_millis(50);

/// How a stop treats a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// The job moves nothing, and a stop leaves it in the queue.
    Quiet,
    /// The job moves these servos, and a stop of any of them removes it from the queue.
    Moves(Vec<u8>),
}

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

/// The job after the stop of the wheels. It may run more than once where the port is away at first.
pub(crate) type Then = Arc<dyn Fn(&mut Wire) -> Result<(), ServoError> + Send + Sync>;

/// A stop on its way.
pub(crate) struct Stopping {
    bus: String,
    waiting: mpsc::Receiver<Result<(), ServoError>>,
}

impl Stopping {
    /// Blocks until the stop was sent, at most until `deadline`. A late stop is still sent.
    pub(crate) fn wait(self, deadline: Instant) -> Result<(), ServoError> {
        let patience = deadline.saturating_duration_since(Instant::now());
        let late = |_| Err(ServoError::Unsent { bus: self.bus });
        self.waiting.recv_timeout(patience).unwrap_or_else(late)
    }
}

/// Sends jobs to a bus. Clones send to the same bus.
#[derive(Clone)]
pub(crate) struct Sender {
    name: String,
    shared: Arc<Shared>,
}

struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
    clock: Clock,
    /// The port can come and go, and servos can lose their power.
    is_watched: bool,
    hurry: Arc<AtomicBool>,
    connected: AtomicBool,
}

#[derive(Default)]
struct Queue {
    stops: VecDeque<Stop>,
    jobs: VecDeque<Job>,
    /// When each turning wheel is stopped, unless it is told something else before.
    wheels: Vec<(u8, Instant)>,
    /// The part of the newest stop that was not carried out.
    owed: Option<Owing>,
    closing: bool,
    /// The thread has nothing to do. While it works, what waits in the queue must not hold up the time that it waits for.
    sleeps: bool,
    /// From the moment when it is given something until it is awake, the time of a rehearsal stands.
    roused: Option<Awake>,
}

/// A stop that is sent again: an emergency stop until it is carried out, another one until the joints move again.
#[derive(Clone)]
struct Owing {
    then: Then,
    emergency: bool,
}

/// The answer of a job. It is waited for until it was taken.
pub(crate) type Pending<R> = oneshot::Receiver<(Result<R, ServoError>, Awake)>;

/// Called on the bus's thread when the port has appeared or gone; never blocks.
pub(crate) type Changed = Box<dyn Fn(&Result<(), ServoError>) + Send>;

type Work = Box<dyn FnOnce(Result<&mut Wire, ServoError>) + Send>;

struct Job {
    urgency: Urgency,
    work: Work,
}

struct Stop {
    /// The wheels that are set to zero speed, together.
    wheels: Vec<u8>,
    /// The ends of motion that this stop replaces. Ends of later motion stay.
    ends: Vec<(u8, Instant)>,
    then: Option<Then>,
    /// If the port is away now, the stop is carried out when the port is back.
    emergency: bool,
    done: mpsc::SyncSender<Result<(), ServoError>>,
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        // Jobs run outside the lock, and no code under it panics half way.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the thread look at the queue.
    fn rouse(&self, mut queue: MutexGuard<'_, Queue>) {
        if queue.sleeps {
            queue.roused.get_or_insert_with(|| self.clock.awake());
        }
        drop(queue);
        self.changed.notify_all();
    }
}

impl ServoBus {
    /// Starts the thread, which opens the port soon. `timeout` bounds each answer of a servo; `changed` hears when the
    /// port comes and goes, and when not one of `servos` answers any more.
    pub(crate) fn start(
        name: &str,
        line: Line<'_>,
        timeout: Duration,
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
                Line::Serial(path, baud) => Wire::new(name, path, baud, timeout, hurry),
                Line::Rehearsed(stage) => {
                    Wire::over(name, Box::new(RehearsedPort::new(stage)), timeout, hurry)
                }
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
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
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

impl Sender {
    /// Whether the port was open, and a servo answered, when it was last used.
    pub(crate) fn is_connected(&self) -> bool {
        self.shared.connected.load(Ordering::SeqCst)
    }

    /// Puts a job into the queue; the answer comes through the receiver. Never blocks.
    pub(crate) fn send<R: Send + 'static>(
        &self,
        urgency: Urgency,
        job: impl FnOnce(&mut Wire) -> Result<R, ServoError> + Send + 'static,
    ) -> Result<Pending<R>, ServoError> {
        let (answer, receiver) = oneshot::channel();
        let clock = self.shared.clock.clone();
        let work: Work = Box::new(move |wire| {
            let _ = answer.send((wire.and_then(job), clock.awake()));
        });
        let mut queue = self.shared.queue();
        self.check(&queue)?;
        queue.jobs.push_back(Job { urgency, work });
        self.shared.rouse(queue);
        Ok(receiver)
    }

    /// Turns wheels for at most `lasting`; then this bus stops them. Never blocks.
    pub(crate) fn drive(&self, speeds: Vec<(u8, i64)>, lasting: Duration) -> Result<Pending<()>, ServoError> {
        let ids: Vec<u8> = speeds.iter().map(|(id, _)| *id).collect();
        let (answer, receiver) = oneshot::channel();
        let end = self.shared.clock.now() + lasting;
        let ends: Vec<(u8, Instant)> = ids.iter().map(|id| (*id, end)).collect();
        let (bus, shared, wheels) = (self.name.clone(), Arc::clone(&self.shared), ids.clone());
        let work: Work = Box::new(move |wire| {
            let done = wire.and_then(|wire| {
                if speeds.iter().all(|(_, speed)| *speed == 0) {
                    let stopped = still(wire, &wheels);
                    ended(&shared, &ends, stopped.is_ok());
                    return stopped;
                }
                // The job waited so long that the wheels were stopped already. They must not start now.
                if shared.clock.now() >= end {
                    return Err(ServoError::Stopped { bus });
                }
                wire.write_each(Register::GOAL_SPEED, &speeds)
            });
            let _ = answer.send((done, shared.clock.awake()));
        });
        let mut queue = self.shared.queue();
        self.check(&queue)?;
        // The end is set before the wheels turn, so that they never turn without an end.
        queue.wheels.retain(|(id, _)| !ids.contains(id));
        queue.wheels.extend(ids.iter().map(|id| (*id, end)));
        queue.jobs.push_back(Job {
            urgency: Urgency::Moves(ids),
            work,
        });
        self.shared.rouse(queue);
        Ok(receiver)
    }

    /// Takes the jobs that move `servos` out of the queue, stops `wheels` and runs `then`, before everything else. Where
    /// the port is away, the `then` of an `emergency` is run as soon as it is back, unless [`Sender::forgive`] comes first.
    /// Never blocks: [`Stopping::wait`] does.
    pub(crate) fn stop(
        &self,
        servos: &[u8],
        wheels: Vec<u8>,
        then: Option<Then>,
        emergency: bool,
    ) -> Stopping {
        let (done, waiting) = mpsc::sync_channel(1);
        let mut queue = self.shared.queue();
        let moved = |job: &Job| matches!(&job.urgency, Urgency::Moves(ids) if ids.iter().any(|id| servos.contains(id)));
        let (ended, kept) = std::mem::take(&mut queue.jobs)
            .into_iter()
            .partition::<VecDeque<Job>, _>(moved);
        queue.jobs = kept;
        let ends = queue
            .wheels
            .iter()
            .filter(|(id, _)| wheels.contains(id))
            .copied()
            .collect();
        queue.stops.push_back(Stop {
            wheels,
            ends,
            then,
            emergency,
            done,
        });
        self.shared.hurry.store(true, Ordering::SeqCst);
        self.shared.rouse(queue);
        for job in ended {
            (job.work)(Err(ServoError::Stopped {
                bus: self.name.clone(),
            }));
        }
        Stopping {
            bus: self.name.clone(),
            waiting,
        }
    }

    /// Drops an emergency stop that still waits for the port.
    pub(crate) fn forgive(&self) {
        self.shared.queue().owed = None;
    }

    fn check(&self, queue: &Queue) -> Result<(), ServoError> {
        let bus = self.name.clone();
        if queue.closing {
            return Err(ServoError::Closed { bus });
        }
        if queue.jobs.len() >= QUEUE {
            return Err(ServoError::Busy {
                bus,
                waiting: queue.jobs.len(),
            });
        }
        Ok(())
    }
}

/// What the thread does next.
enum Next {
    Stop(Stop),
    Job(Job),
    /// The time of these wheels is over.
    End(Vec<(u8, Instant)>),
    /// There is nothing to do but to check the port.
    Look,
    Close,
}

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
        match next(shared) {
            Next::Stop(stop) => {
                let stopped = owner
                    .open(shared)
                    .and_then(|()| still(&mut owner.wire, &stop.wheels));
                ended(shared, &stop.ends, stopped.is_ok());
                let done = match &stop.then {
                    Some(then) => stopped.and_then(|()| owner.wire.bounded(LISTENS, |wire| then(wire))),
                    None => stopped,
                };
                let done = owner.told(shared, done);
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
                let stopped = owner
                    .connect(shared)
                    .and_then(|()| still(&mut owner.wire, &wheels));
                ended(shared, &ends, stopped.is_ok());
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
        let _ = still(&mut owner.wire, &wheels);
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
        self.told(shared, connected)
    }

    /// Opens the port as [`Owner::connect`] does; an emergency stop that was not carried out waits.
    fn open(&mut self, shared: &Shared) -> Result<(), ServoError> {
        let was = self.wire.check();
        let connected = match self.wire.connect() {
            Ok(_) if was => Ok(()),
            Ok(_) => still(&mut self.wire, &self.wheels),
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

    fn is_there(&self) -> bool {
        self.wire.is_open() && !self.voices.are_silent()
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
        let heard = self.wire.take_heard();
        self.voices.heard(&heard);
        let silent = self.wire.is_open() && self.voices.are_silent();
        let told = if silent { Err(self.wire.mute()) } else { Ok(()) };
        let _ = self.told(shared, told);
    }

    /// Reports a port that has come or gone.
    fn told(&mut self, shared: &Shared, result: Result<(), ServoError>) -> Result<(), ServoError> {
        let there = self.is_there();
        shared.connected.store(there, Ordering::SeqCst);
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
            Err(error) if self.wire.is_open() => {
                tracing::warn!(%error, "a stop is still not carried out");
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}

fn next(shared: &Arc<Shared>) -> Next {
    let mut queue = shared.queue();
    let look = shared.clock.now() + LOOK;
    loop {
        if let Some(stop) = queue.stops.pop_front() {
            return Next::Stop(stop);
        }
        if queue.closing {
            return Next::Close;
        }
        let now = shared.clock.now();
        let over: Vec<(u8, Instant)> = queue
            .wheels
            .iter()
            .filter(|(_, end)| *end <= now)
            .copied()
            .collect();
        if !over.is_empty() {
            return Next::End(over);
        }
        if let Some(job) = queue.jobs.pop_front() {
            return Next::Job(job);
        }
        // A line of simulated servos is always there: an idle one sleeps.
        let looks = shared.is_watched || queue.owed.is_some();
        if looks && look <= now {
            return Next::Look;
        }
        let until = queue
            .wheels
            .iter()
            .map(|(_, end)| *end)
            .chain(looks.then_some(look))
            .min();
        let ring = {
            let shared = Arc::clone(shared);
            move || {
                drop(shared.queue());
                shared.changed.notify_all();
            }
        };
        queue.sleeps = true;
        queue = shared.clock.wait(&shared.changed, queue, until, ring);
        queue.sleeps = false;
        queue.roused = None;
    }
}

/// Zero speed for these wheels, twice: no servo answers this instruction, and one can be lost.
fn still(wire: &mut Wire, wheels: &[u8]) -> Result<(), ServoError> {
    let zero: Vec<(u8, i64)> = wheels.iter().map(|id| (*id, 0)).collect();
    wire.write_each(Register::GOAL_SPEED, &zero)?;
    wire.write_each(Register::GOAL_SPEED, &zero)
}

/// Notes that these wheels stand, or that the thread has to try again soon.
fn ended(shared: &Shared, ends: &[(u8, Instant)], stopped: bool) {
    let mut queue = shared.queue();
    if stopped {
        queue.wheels.retain(|wheel| !ends.contains(wheel));
        return;
    }
    let again = shared.clock.now() + AGAIN;
    for wheel in &mut queue.wheels {
        if ends.contains(wheel) {
            wheel.1 = again;
        }
    }
}
