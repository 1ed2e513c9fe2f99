//! The jobs that wait for a bus, and the stops that go before them.
//!
//! The queue is bounded. A stop goes to the front and removes the jobs that it ends, under one lock, so that no job from before the
//! stop runs after it. The time at which each turning wheel is stopped stands here, too. Read [`Sender`].

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};
use tokio::sync::oneshot;

use super::error::ServoError;
use super::register::Register;
use super::wire::Wire;
use crate::clock::{Awake, Clock};

/// How many jobs may wait. A whole robot's plan has fewer than ten on a bus, so a longer queue means that the bus
/// hangs.
const QUEUE: usize = 64;
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
    pub(super) name: String,
    pub(super) shared: Arc<Shared>,
}

pub(super) struct Shared {
    pub(super) queue: Mutex<Queue>,
    pub(super) changed: Condvar,
    pub(super) clock: Clock,
    /// The port can come and go, and servos can lose their power.
    pub(super) is_watched: bool,
    pub(super) hurry: Arc<AtomicBool>,
    pub(super) connected: AtomicBool,
}

#[derive(Default)]
pub(super) struct Queue {
    pub(super) stops: VecDeque<Stop>,
    pub(super) jobs: VecDeque<Job>,
    /// When each turning wheel is stopped, unless it is told something else before.
    pub(super) wheels: Vec<(u8, Instant)>,
    /// The part of the newest stop that was not carried out.
    pub(super) owed: Option<Owing>,
    /// Another program has the port: it stays closed until the next stop takes it back.
    pub(super) lent: bool,
    pub(super) closing: bool,
    /// The thread has nothing to do. While it works, what waits in the queue must not hold up the time that it waits for.
    pub(super) sleeps: bool,
    /// From the moment when it is given something until it is awake, the time of a rehearsal stands.
    pub(super) roused: Option<Awake>,
}

/// A stop that is sent again: an emergency stop until it is carried out, another one until the joints move again.
#[derive(Clone)]
pub(super) struct Owing {
    pub(super) then: Then,
    pub(super) emergency: bool,
}

/// The answer of a job. It is waited for until it was taken.
pub(crate) type Pending<R> = oneshot::Receiver<(Result<R, ServoError>, Awake)>;

pub(super) type Work = Box<dyn FnOnce(Result<&mut Wire, ServoError>) + Send>;

pub(super) struct Job {
    pub(super) urgency: Urgency,
    pub(super) work: Work,
}

pub(super) struct Stop {
    /// The wheels that are set to zero speed, together.
    pub(super) wheels: Vec<u8>,
    /// The ends of motion that this stop replaces. Ends of later motion stay.
    pub(super) ends: Vec<(u8, Instant)>,
    pub(super) then: Option<Then>,
    /// If the port is away now, the stop is carried out when the port is back.
    pub(super) emergency: bool,
    pub(super) done: mpsc::SyncSender<Result<(), ServoError>>,
}

/// What the thread does next.
pub(super) enum Next {
    Stop(Stop),
    Job(Job),
    /// The time of these wheels is over.
    End(Vec<(u8, Instant)>),
    /// There is nothing to do but to check the port.
    Look,
    Close,
}

impl Shared {
    pub(super) fn queue(&self) -> MutexGuard<'_, Queue> {
        // Jobs run outside the lock.
        self.queue.lock()
    }

    /// Has the thread look at the queue.
    fn rouse(&self, mut queue: MutexGuard<'_, Queue>) {
        if queue.sleeps {
            queue.roused.get_or_insert_with(|| self.clock.awake());
        }
        drop(queue);
        self.changed.notify_all();
    }

    /// What the thread does next; waits until there is something.
    pub(super) fn next(self: &Arc<Self>, look: Duration) -> Next {
        let mut queue = self.queue();
        let look = self.clock.now() + look;
        loop {
            if let Some(stop) = queue.stops.pop_front() {
                return Next::Stop(stop);
            }
            if queue.closing {
                return Next::Close;
            }
            let now = self.clock.now();
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
            let looks = self.is_watched || queue.owed.is_some();
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
                let shared = Arc::clone(self);
                move || {
                    drop(shared.queue());
                    shared.changed.notify_all();
                }
            };
            queue.sleeps = true;
            self.clock.wait(&self.changed, &mut queue, until, ring);
            queue.sleeps = false;
            queue.roused = None;
        }
    }

    /// Notes that these wheels stand, or that the thread has to try again soon.
    pub(super) fn ended(&self, ends: &[(u8, Instant)], stopped: bool) {
        let mut queue = self.queue();
        if stopped {
            queue.wheels.retain(|wheel| !ends.contains(wheel));
            return;
        }
        let again = self.clock.now() + AGAIN;
        for wheel in &mut queue.wheels {
            if ends.contains(wheel) {
                wheel.1 = again;
            }
        }
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
                    let stopped = wire.still(&wheels);
                    shared.ended(&ends, stopped.is_ok());
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
    /// the port is away, the `then` of an `emergency` is run as soon as it is back, unless [`Sender::forgive`] comes first. A port
    /// that was lent is taken back. Never blocks: [`Stopping::wait`] does.
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
        queue.lent = false;
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

    /// Runs `before` and closes the port, for another program: until the next stop every job is refused. Nothing is lent where
    /// `returns` denies that such a stop is still to come; it is asked under the lock of the queue. Never blocks.
    pub(crate) fn lend(
        &self,
        servos: Vec<u8>,
        before: impl FnOnce(&mut Wire) -> Result<(), ServoError> + Send + 'static,
        returns: impl FnOnce() -> bool + Send + 'static,
    ) -> Result<Pending<()>, ServoError> {
        let (shared, bus) = (Arc::clone(&self.shared), self.name.clone());
        self.send(Urgency::Moves(servos), move |wire| {
            before(wire)?;
            let mut queue = shared.queue();
            // The stop came before the port was lent, and nothing would take it back.
            if !queue.stops.is_empty() || !returns() {
                return Err(ServoError::Stopped { bus });
            }
            queue.lent = true;
            drop(queue);
            wire.exchange().close();
            Ok(())
        })
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
