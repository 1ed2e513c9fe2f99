//! Cancel, halt and resume of one toolbox, on a thread that does nothing else.
//!
//! Owns their order: halts first, then cancels, then resumes. A halt that finds the thread inside another call gets a
//! thread of its own, so that no call can hold it up. After an emergency halt there is no gentler one until the resume. A
//! resume never lifts a stop that came after it. Read [`Control`] first, then [`Control::call_halt`].

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use ovos_toolbox_wire::{Failure, FailureKind};
use parking_lot::Mutex;
use program::{Refusal, Reply};

use crate::table::{Instance, LaneClosed};
use crate::wake_lock::WakeLock;
use crate::watchdog::{Meter, ToolboxFunction};

/// The number of threads that halts may start while the control thread hangs. More threads would only wait for the same
/// lock.
const MAX_HELPERS: usize = 4;

/// How long an emergency halt waits for a gentle halt that is inside the toolbox: the time that `toolbox.h` allows for
/// a halt.
const GENTLE: Duration = Duration::from_millis(50);

/// The JSON array that stands for every subsystem.
const ALL: &str = r#"["all"]"#;

/// The number of halts that may wait for the control thread. Beyond it, further halts are merged into the last one.
const MAX_HALTS: usize = 64;

/// The control lane of one toolbox.
pub(crate) struct Control {
    state: WakeLock<State>,
    meter: Arc<Meter>,
}

#[derive(Default)]
struct State {
    /// At most `MAX_HALTS`.
    halts: VecDeque<HaltJob>,
    /// Bounded by the runs in flight: the service cancels a run a few times at most.
    cancels: VecDeque<u64>,
    /// Bounded by the number of operators who ask.
    resumes: VecDeque<ResumeJob>,
    /// The number of emergency halts so far.
    stops: u64,
    /// Whether the newest emergency halt has not been resumed.
    stopped: bool,
    /// The number of gentle halts that are inside the toolbox.
    gentle: usize,
    instance: Option<Arc<Instance>>,
    closing: bool,
    /// Whether the control thread is inside the toolbox.
    busy: bool,
    helpers: usize,
    ended: bool,
}

struct HaltJob {
    subsystems: String,
    emergency: bool,
    /// At most `MAX_HALTS`.
    replies: Vec<Reply<()>>,
}

impl HaltJob {
    /// Merges another halt into this one, which then halts everything, because the two may name different subsystems.
    fn merge(&mut self, other: Self) {
        ALL.clone_into(&mut self.subsystems);
        self.emergency |= other.emergency;
        self.replies.extend(other.replies);
        // The first callers have given up: each of them waits only briefly.
        let over = self.replies.len().saturating_sub(MAX_HALTS);
        for reply in self.replies.drain(..over) {
            let text = format!(
                "more than {MAX_HALTS} halts are waiting for the toolbox; it is halted as soon as it returns"
            );
            reply(Err(Failure::new(FailureKind::BusyError, text).into()));
        }
    }

    fn tell(self, result: &Result<(), Refusal>) {
        for reply in self.replies {
            reply(result.clone());
        }
    }
}

struct ResumeJob {
    stops: u64,
    reply: Reply<()>,
}

impl State {
    fn queue(&mut self, job: HaltJob) {
        let full = self.halts.len() >= MAX_HALTS;
        match self.halts.back_mut() {
            Some(last) if full => last.merge(job),
            _ => self.halts.push_back(job),
        }
    }
}

enum Step {
    Halt(HaltJob),
    Cancel(u64),
    Resume(ResumeJob),
}

impl Control {
    pub(crate) fn new(meter: Arc<Meter>) -> Arc<Self> {
        Arc::new(Self {
            state: WakeLock::default(),
            meter,
        })
    }

    /// Starts the thread, now that there is an instance.
    pub(crate) fn run(self: &Arc<Self>, instance: Arc<Instance>, name: &str) -> std::io::Result<()> {
        self.state.lock().instance = Some(instance.clone());
        let lane = Arc::clone(self);
        let spawned = thread::Builder::new()
            .name(format!("tc-{name}"))
            .spawn(move || lane.work(&instance));
        if spawned.is_err() {
            let mut state = self.state.lock();
            state.instance = None;
            state.ended = true;
        }
        spawned.map(drop)
    }

    /// Sends a halt; it is on its way when this returns. `subsystems` is a JSON array.
    pub(crate) fn halt(self: &Arc<Self>, subsystems: String, emergency: bool, reply: Reply<()>) {
        let job = HaltJob {
            subsystems,
            emergency,
            replies: vec![reply],
        };
        let mut state = self.state.lock();
        if state.closing {
            drop(state);
            return job.tell(&Err(closed()));
        }
        let mut overtook = VecDeque::new();
        if emergency {
            state.stops += 1;
            state.stopped = true;
            overtook = std::mem::take(&mut state.resumes);
        }
        // The thread may hang in a halt that is queued before this one.
        let behind = state.busy || !state.halts.is_empty();
        if behind
            && state.helpers < MAX_HELPERS
            && let Some(instance) = state.instance.clone()
        {
            state.helpers += 1;
            drop(state);
            self.halt_beside(instance, job);
        } else {
            state.queue(job);
            state.wake();
        }
        for resume in overtook {
            (resume.reply)(Err(overtaken().into()));
        }
    }

    /// Whether there was an emergency halt that has not been resumed.
    pub(crate) fn is_stopped(&self) -> bool {
        self.state.lock().stopped
    }

    /// Asks a run to end.
    pub(crate) fn cancel(&self, run: u64) {
        let mut state = self.state.lock();
        if !state.closing {
            state.cancels.push_back(run);
            state.wake();
        }
    }

    /// Asks whether the latch may be lifted.
    pub(crate) fn resume(&self, reply: Reply<()>) {
        let mut state = self.state.lock();
        if state.closing {
            drop(state);
            reply(Err(closed()));
        } else {
            let stops = state.stops;
            state.resumes.push_back(ResumeJob { stops, reply });
            state.wake();
        }
    }

    /// Takes no more commands, carries out the queued ones, and waits until no call into the toolbox is under way
    /// through this lane.
    pub(crate) fn close(&self) -> LaneClosed {
        let mut state = self.state.lock();
        state.closing = true;
        if state.instance.is_none() {
            return LaneClosed(());
        }
        state.wake();
        let mut state = self.state.lock();
        while !(state.ended && state.helpers == 0) {
            state = state.wait();
        }
        state.instance = None;
        LaneClosed(())
    }

    /// Halts once more, after a start that was under way when the halt came. An emergency halt that was resumed since
    /// then is repeated as a gentle one: the motion of that start has to end, but nothing would lift another emergency.
    pub(crate) fn halt_again(
        &self,
        subsystems: &str,
        emergency: bool,
        halt: impl Fn(&str, bool) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.call_halt(subsystems, emergency && self.is_stopped(), halt)
    }

    /// Calls `halt` of the toolbox; every halt comes this way. After an emergency halt, a gentle halt is left out,
    /// because it would undo what the backend does in an emergency (such as releasing torque). If a gentle halt is
    /// inside the toolbox when the emergency comes, the emergency halt waits for it for [`GENTLE`]; after that it is
    /// called beside the gentle halt, and again when the gentle halt has returned.
    fn call_halt(
        &self,
        subsystems: &str,
        emergency: bool,
        halt: impl Fn(&str, bool) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut state = self.state.lock();
        if emergency {
            let began = Instant::now();
            while state.gentle > 0 && began.elapsed() < GENTLE {
                state = state.wait_for(GENTLE.saturating_sub(began.elapsed()));
            }
            drop(state);
            return halt(subsystems, true);
        }
        if state.stopped {
            return Ok(());
        }
        state.gentle += 1;
        drop(state);
        let result = halt(subsystems, false);
        let mut state = self.state.lock();
        state.gentle -= 1;
        let overtaken = state.stopped;
        state.wake();
        if overtaken { halt(ALL, true) } else { result }
    }

    fn halt_beside(self: &Arc<Self>, instance: Arc<Instance>, job: HaltJob) {
        let lane = Arc::clone(self);
        // If the thread cannot be started, the closure is lost, so the job is passed through a slot.
        let slot = Arc::new(Mutex::new(Some(job)));
        let taken = Arc::clone(&slot);
        let spawned = thread::Builder::new().name("tc-halt".to_owned()).spawn(move || {
            let job = taken.lock().take();
            if let Some(job) = job {
                let halt = |subsystems: &str, emergency| instance.halt(subsystems, emergency);
                let result = lane.call_halt(&job.subsystems, job.emergency, halt);
                job.tell(&result.map_err(Refusal::from));
            }
            drop(instance);
            let mut state = lane.state.lock();
            state.helpers -= 1;
            state.wake();
        });
        if let Err(error) = spawned {
            tracing::error!(%error, "cannot start a thread for a halt: the halt waits until the toolbox returns from its current call");
            let job = slot.lock().take();
            let mut state = self.state.lock();
            state.helpers -= 1;
            if let Some(job) = job {
                state.queue(job);
            }
            state.wake();
        }
    }

    fn work(self: &Arc<Self>, instance: &Instance) {
        while let Some(step) = self.next() {
            match step {
                Step::Halt(job) => {
                    let halt = |subsystems: &str, emergency| {
                        self.meter
                            .during(ToolboxFunction::Halt, || instance.halt(subsystems, emergency))
                    };
                    let result = self.call_halt(&job.subsystems, job.emergency, halt);
                    job.tell(&result.map_err(Refusal::from));
                }
                Step::Cancel(run) => self
                    .meter
                    .during(ToolboxFunction::Cancel, || instance.cancel(run)),
                Step::Resume(job) => {
                    let result = self.resume_now(instance, job.stops);
                    (job.reply)(result.map_err(Refusal::from));
                }
            }
        }
        let mut state = self.state.lock();
        state.ended = true;
        state.wake();
    }

    /// Resumes the toolbox, unless a stop came before; stops it again if a stop came meanwhile.
    fn resume_now(&self, instance: &Instance, stops: u64) -> Result<(), Failure> {
        let result = self.meter.during(ToolboxFunction::Resume, || instance.resume());
        {
            let mut state = self.state.lock();
            if state.stops == stops {
                state.stopped &= result.is_err();
                return result;
            }
        }
        let halt = |subsystems: &str, emergency| {
            self.meter
                .during(ToolboxFunction::Halt, || instance.halt(subsystems, emergency))
        };
        if let Err(failure) = self.call_halt(ALL, true, halt) {
            tracing::error!(%failure, "halt after a resume that a stop overtook failed");
        }
        Err(overtaken())
    }

    fn next(&self) -> Option<Step> {
        let mut state = self.state.lock();
        state.busy = false;
        loop {
            let step = if let Some(job) = state.halts.pop_front() {
                Some(Step::Halt(job))
            } else if let Some(run) = state.cancels.pop_front() {
                Some(Step::Cancel(run))
            } else {
                state.resumes.pop_front().map(Step::Resume)
            };
            if step.is_some() {
                state.busy = true;
                return step;
            }
            if state.closing {
                return None;
            }
            state = state.wait();
        }
    }
}

/// The JSON array of the subsystems. A list of strings can always be written as JSON; if that should fail, everything
/// is halted.
pub(crate) fn json_of(subsystems: &[String]) -> String {
    serde_json::to_string(subsystems).unwrap_or_else(|_| ALL.to_owned())
}

fn closed() -> Refusal {
    Refusal::Closed(Failure::new(FailureKind::ToolboxClosed, "the toolbox is closed"))
}

fn overtaken() -> Failure {
    Failure::new(
        FailureKind::EmergencyStop,
        "a newer stop came before this resume finished: resume the newer stop",
    )
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn halts_that_pile_up_become_one_of_everything() {
        let (mut state, (sender, receiver)) = (State::default(), mpsc::channel());
        for number in 0..200 {
            let sender = sender.clone();
            state.queue(HaltJob {
                subsystems: format!(r#"["arm{number}"]"#),
                emergency: number == 150,
                replies: vec![Box::new(move |result: Result<(), Refusal>| {
                    sender.send((number, result.is_ok())).unwrap();
                })],
            });
        }
        assert_eq!(state.halts.len(), MAX_HALTS);
        let last = state.halts.pop_back().unwrap();
        assert_eq!((last.subsystems.as_str(), last.emergency), (r#"["all"]"#, true));
        assert_eq!(last.replies.len(), MAX_HALTS);
        last.tell(&Ok(()));
        let replies: Vec<(usize, bool)> = receiver.try_iter().collect();
        // Of the halts that were merged into the last one, the oldest were answered at once.
        let expected = (MAX_HALTS - 1..200).map(|number| (number, number >= 200 - MAX_HALTS));
        assert_eq!(replies, expected.collect::<Vec<_>>());
    }
}
