//! The engine's state for one toolbox: its latch, its reservations and its live generations.
//!
//! It belongs to the service and outlives every generation of its toolbox. Read [`KnownToolbox`].

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};
use tokio::time::timeout;

use super::call::{CallControl, Cause, Refusal};
use super::fact::Fact;
use super::latch::Latch;
use super::limits::Limits;
use super::plan::{Plan, StepTools};
use super::plan_error::PlanError;
use super::reserve::{Request, Reservations, Ticket};
use super::subsystem::{ALL, Claim};
use super::toolbox::{Halt, Toolbox};

/// The number of safe calls that are kept, to be checked against calls that are still being planned.
const SAFE_CALLS: usize = 64;

/// The engine's state for one toolbox, over the life of the service.
pub(crate) struct KnownToolbox {
    pub(crate) toolbox_id: String,
    pub(crate) latch: Latch,
    limits: Mutex<Limits>,
    step_tools: Mutex<Arc<StepTools>>,
    /// Whether the toolbox is installed; an installed toolbox may have no live generation.
    installed: AtomicBool,
    seats: Mutex<Seats>,
    generations: Mutex<Vec<Generation>>,
    /// A call holds this lock from before its planning until it has its place in the queue, so that calls that come at
    /// the same time keep their order. The mutex is fair: it is granted in the order of the requests.
    pub(crate) turn: tokio::sync::Mutex<()>,
    /// Wakes the drain when a lease is dropped.
    returned: Notify,
    /// The number of resumes under way.
    resumes: AtomicUsize,
}

/// Counts a resume as under way, until it is dropped.
pub(crate) struct Resuming<'a>(&'a KnownToolbox);

impl Drop for Resuming<'_> {
    fn drop(&mut self) {
        self.0.resumes.fetch_sub(1, Ordering::SeqCst);
    }
}

struct Seats {
    table: Reservations,
    next: Ticket,
    calls: HashMap<Ticket, Seat>,
    safe: VecDeque<SafeCall>,
}

/// A safe call that took subsystems. A call that was received earlier but claims one of those subsystems later is
/// refused, as if it had been waiting in the queue.
struct SafeCall {
    received: Instant,
    claim: Claim,
    cause: Cause,
}

struct Seat {
    control: Arc<CallControl>,
    granted: Option<oneshot::Sender<()>>,
}

struct Generation {
    number: u64,
    toolbox: Arc<dyn Toolbox>,
    /// The number of calls that hold the generation; shared with their leases, which can outlive this entry.
    leases: Arc<AtomicUsize>,
    retired: bool,
}

impl KnownToolbox {
    pub(crate) fn new(toolbox_id: &str, latch: Latch, limits: Limits) -> Self {
        Self {
            toolbox_id: toolbox_id.to_owned(),
            latch,
            limits: Mutex::new(limits),
            step_tools: Mutex::default(),
            installed: AtomicBool::new(false),
            seats: Mutex::new(Seats {
                table: Reservations::new(limits.max_waiting),
                next: 0,
                calls: HashMap::new(),
                safe: VecDeque::new(),
            }),
            generations: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
            returned: Notify::new(),
            resumes: AtomicUsize::new(0),
        }
    }

    pub(crate) fn resuming(&self) -> Resuming<'_> {
        self.resumes.fetch_add(1, Ordering::SeqCst);
        Resuming(self)
    }

    pub(crate) fn is_resuming(&self) -> bool {
        self.resumes.load(Ordering::SeqCst) > 0
    }

    pub(crate) fn limits(&self) -> Limits {
        *self.limits.lock()
    }

    pub(crate) fn set_step_tools(&self, tools: StepTools) {
        *self.step_tools.lock() = Arc::new(tools);
    }

    pub(crate) fn step_tools(&self) -> Arc<StepTools> {
        self.step_tools.lock().clone()
    }

    // --- generations

    pub(crate) fn set_installed(&self, installed: bool) {
        self.installed.store(installed, Ordering::SeqCst);
    }

    /// Whether a stop can reach the toolbox: it is installed, or has a live generation, which may be closing.
    pub(crate) fn is_installed(&self) -> bool {
        self.installed.load(Ordering::SeqCst) || !self.generations.lock().is_empty()
    }

    /// Returns whether the generation is new.
    pub(crate) fn attach(&self, number: u64, toolbox: Arc<dyn Toolbox>, limits: Limits) -> bool {
        *self.limits.lock() = limits;
        self.seats.lock().table.bound(limits.max_waiting);
        let mut generations = self.generations.lock();
        if let Some(known) = generations.iter_mut().find(|g| g.number == number) {
            known.retired = false;
            return false;
        }
        if self.latch.holder().is_some() {
            // The new generation does not know of the stop. `halt` sends the halt at once; its confirmation is not
            // needed.
            drop(toolbox.halt(Halt {
                subsystems: vec![ALL.to_owned()],
                emergency: true,
                stop_epoch: self.latch.epoch(),
            }));
        }
        generations.push(Generation {
            number,
            toolbox,
            leases: Arc::default(),
            retired: false,
        });
        true
    }

    /// Holds a generation for a call; `None` when it is unknown or takes no new calls.
    pub(crate) fn lease(self: &Arc<Self>, number: u64) -> Option<Lease> {
        let mut generations = self.generations.lock();
        let generation = generations
            .iter_mut()
            .find(|g| g.number == number && !g.retired)?;
        generation.leases.fetch_add(1, Ordering::SeqCst);
        Some(Lease {
            known: self.clone(),
            number,
            toolbox: generation.toolbox.clone(),
            leases: generation.leases.clone(),
        })
    }

    /// Refuses new calls for a generation, and waits until its calls have ended.
    pub(crate) async fn drained(&self, number: u64) {
        loop {
            let mut returned = std::pin::pin!(self.returned.notified());
            // Registered before the check, so that a lease that is dropped in between is not missed.
            returned.as_mut().enable();
            if self.retire(number) == 0 {
                return;
            }
            returned.await;
        }
    }

    /// Refuses new calls for a generation; returns the number of calls that hold it.
    fn retire(&self, number: u64) -> usize {
        let mut generations = self.generations.lock();
        generations
            .iter_mut()
            .find(|g| g.number == number)
            .map_or(0, |generation| {
                generation.retired = true;
                generation.leases.load(Ordering::SeqCst)
            })
    }

    /// Returns whether the generation was live.
    pub(crate) fn detach(&self, number: u64) -> bool {
        let mut generations = self.generations.lock();
        let before = generations.len();
        generations.retain(|g| g.number != number);
        generations.len() < before
    }

    /// All live generations, newest first. Those that are being drained are included, because they can still move
    /// something.
    pub(crate) fn live(&self) -> Vec<Arc<dyn Toolbox>> {
        self.generations
            .lock()
            .iter()
            .rev()
            .map(|g| g.toolbox.clone())
            .collect()
    }

    // --- reservations

    /// Takes the claim, or a place in the queue for it.
    ///
    /// # Errors
    /// The queue is full, or a safe call that was received later has taken a subsystem.
    pub(crate) fn claim(
        self: &Arc<Self>,
        control: &Arc<CallControl>,
        claim: Claim,
        safe: bool,
    ) -> Result<ClaimTicket, Refusal> {
        let wanted = claim.clone();
        let (granted, grant) = oneshot::channel();
        let (ticket, request) = self
            .take_seat(control, claim, safe, granted)
            .map_err(Refusal::Ended)?;
        let reservation = Reservation {
            known: self.clone(),
            ticket,
        };
        match request {
            Request::Granted => Ok(ClaimTicket {
                reservation,
                place: None,
            }),
            Request::Queued(ahead) => Ok(ClaimTicket {
                reservation,
                place: Some(QueuePlace {
                    wanted,
                    ahead,
                    grant,
                    safe,
                }),
            }),
            Request::Refused(holders) => Err(Refusal::QueueFull {
                subsystems: wanted.to_vec(),
                limit: self.limits().max_waiting,
                holders: self.describe(&holders),
            }),
        }
    }

    fn take_seat(
        &self,
        control: &Arc<CallControl>,
        claim: Claim,
        safe: bool,
        granted: oneshot::Sender<()>,
    ) -> Result<(Ticket, Request), Cause> {
        let preempts = || Cause::Preempted {
            tool: control.tool.clone(),
            call_id: control.call_id.clone(),
        };
        let mut seats = self.seats.lock();
        if safe {
            seats.remember(SafeCall {
                received: control.received,
                claim: claim.clone(),
                cause: preempts(),
            });
        } else if let Some(cause) = seats.preempted(control.received, &claim) {
            return Err(cause);
        }
        seats.next += 1;
        let ticket = seats.next;
        let (displaced, request) = if safe {
            let displaced = seats.displaced_by(&claim);
            (displaced, seats.table.request_first(ticket, claim))
        } else {
            (Vec::new(), seats.table.request(ticket, claim))
        };
        seats.calls.insert(
            ticket,
            Seat {
                control: control.clone(),
                granted: Some(granted),
            },
        );
        drop(seats);
        for other in displaced {
            other.end(preempts());
        }
        Ok((ticket, request))
    }

    fn waited_too_long(&self, wanted: &Claim, limit: Duration) -> Refusal {
        let holders = self.seats.lock().table.holders(wanted);
        Refusal::WaitTooLong {
            subsystems: wanted.to_vec(),
            limit,
            holders: self.describe(&holders),
        }
    }

    fn describe(&self, tickets: &[Ticket]) -> Vec<String> {
        let seats = self.seats.lock();
        let describe = |ticket| {
            let control = &seats.calls.get(ticket)?.control;
            Some(format!("`{}` (call {})", control.tool, control.call_id))
        };
        tickets.iter().filter_map(describe).collect()
    }

    fn release(&self, ticket: Ticket) {
        let mut seats = self.seats.lock();
        seats.calls.remove(&ticket);
        for granted in seats.table.release(ticket) {
            if let Some(granted) = seats.calls.get_mut(&granted).and_then(|seat| seat.granted.take()) {
                // The receiver may be gone already; the drop of its `Reservation` releases the subsystems then.
                _ = granted.send(());
            }
        }
    }
}

impl Seats {
    fn remember(&mut self, safe: SafeCall) {
        if self.safe.len() == SAFE_CALLS {
            self.safe.pop_front();
        }
        self.safe.push_back(safe);
    }

    /// The newest safe call that preempts a call that was received before it and claims its subsystems only now.
    fn preempted(&self, received: Instant, claim: &Claim) -> Option<Cause> {
        let newest_first = self.safe.iter().rev();
        let mut later = newest_first.filter(|safe| received < safe.received);
        Some(later.find(|safe| safe.claim.conflicts(claim))?.cause.clone())
    }

    /// The calls that hold or wait for a subsystem of a safe call. They may be safe themselves: the newest safe call
    /// wins.
    fn displaced_by(&self, claim: &Claim) -> Vec<Arc<CallControl>> {
        let control = |ticket| Some(self.calls.get(ticket)?.control.clone());
        self.table.in_the_way(claim).iter().filter_map(control).collect()
    }
}

/// A granted claim, or a place in the queue.
pub(crate) struct ClaimTicket {
    reservation: Reservation,
    place: Option<QueuePlace>,
}

struct QueuePlace {
    wanted: Claim,
    ahead: usize,
    grant: oneshot::Receiver<()>,
    safe: bool,
}

impl ClaimTicket {
    /// Waits until the claim is granted.
    ///
    /// # Errors
    /// The wait took too long, or the call was ended meanwhile.
    ///
    /// # Cancel safety
    /// Dropping the future gives up the place in the queue.
    pub(crate) async fn wait_until_granted(self, control: &CallControl) -> Result<Reservation, Refusal> {
        let Some(QueuePlace {
            wanted,
            ahead,
            grant,
            safe,
        }) = self.place
        else {
            return Ok(self.reservation);
        };
        control.show(|call| Fact::Waiting { call, ahead });
        let entry = &self.reservation.known;
        let limit = entry.limits().max_wait;
        // A safe call keeps its place, unless a cause ends safe actions, too.
        let ended = if safe { control.hard() } else { control.soft() };
        tokio::select! {
            biased;
            () = ended.cancelled() => Err(Refusal::Ended(control.cause().unwrap_or(Cause::Shutdown))),
            granted = timeout(limit, grant) => match granted {
                Ok(_) => Ok(self.reservation),
                Err(_) => Err(entry.waited_too_long(&wanted, limit)),
            }
        }
    }
}

/// Subsystems that a call holds or waits for; released when dropped.
pub(crate) struct Reservation {
    known: Arc<KnownToolbox>,
    ticket: Ticket,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.known.release(self.ticket);
    }
}

/// A call's hold on a generation. The generation is closed only after the drop of its leases, or after the drain's time
/// limit.
pub struct Lease {
    known: Arc<KnownToolbox>,
    number: u64,
    toolbox: Arc<dyn Toolbox>,
    leases: Arc<AtomicUsize>,
}

impl Lease {
    /// The toolbox of that generation.
    #[must_use]
    pub fn toolbox(&self) -> &Arc<dyn Toolbox> {
        &self.toolbox
    }

    /// The number of the generation.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.number
    }

    /// The number of emergency stops of the toolbox so far.
    #[must_use]
    pub fn stop_epoch(&self) -> u64 {
        self.known.latch.epoch()
    }

    /// Checks the steps of a plan that was made elsewhere, as [`Engine::plan`](super::engine::Engine::plan) does.
    ///
    /// # Errors
    /// [`Plan::check_steps`].
    pub fn check_steps(&self, plan: &Plan) -> Result<(), PlanError> {
        plan.check_steps(&self.known.step_tools())
    }

    pub(crate) fn known_toolbox(&self) -> &Arc<KnownToolbox> {
        &self.known
    }
}

impl std::fmt::Debug for Lease {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Lease({} generation {})", self.known.toolbox_id, self.number)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.leases.fetch_sub(1, Ordering::SeqCst);
        self.known.returned.notify_waiters();
    }
}
