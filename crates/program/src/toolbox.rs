//! What a program does for its toolbox. Read [`Toolbox`].

use ovos_toolbox_wire::{Conclusion, Failure, FailureKind, Object, Plan, Report, Start, ToolList};
use protocol::{Answer, Functions, Raw};
use serde_json::Value;

use crate::notices::Later;
use crate::run::Run;

/// A toolbox, as the lanes of its program use it.
///
/// The thread of a lane calls each method, so every method returns at once: work belongs to threads of the toolbox. The control
/// lane calls [`cancel`](Toolbox::cancel), [`withdraw`](Toolbox::withdraw), [`halt`](Toolbox::halt), [`resume`](Toolbox::resume)
/// and [`stopped`](Toolbox::stopped), beside whatever the data lane calls; the data lane calls the others, one at a time. Every
/// question is answered by a call of its `reply`, on any thread and at any time. What a method does by default suits a toolbox
/// whose [`Functions`] do not name it.
pub trait Toolbox: Send + Sync + 'static {
    /// Begins the work of the toolbox, and says which optional functions it has. No other method was called before. The
    /// default has none of them.
    fn begin(&self, opened: Reply<Functions>) {
        opened(Ok(Functions::default()));
    }

    /// The tools.
    fn tools(&self, reply: Reply<Raw<ToolList>>);

    /// The actions of a call; `null` where the toolbox has no plan for the tool.
    fn plan(&self, _tool: String, _args: Raw<Object>, reply: Reply<Raw<Option<Plan>>>) {
        reply(Ok(Raw::of(&None)));
    }

    /// Starts an action. The run ends when the toolbox calls [`Run::end`].
    fn start(&self, run: Run, start: Raw<Start>);

    /// Asks a run to end. If it has not begun it never begins, and what this returns reports its end, on the data lane.
    fn cancel(&self, _run: u64) -> Option<Later> {
        None
    }

    /// As [`Toolbox::cancel`], for a run for which no caller waits any longer: if it has begun, it goes on.
    fn withdraw(&self, _run: u64) -> Option<Later> {
        None
    }

    /// The result of a call, from its report; `null` where the toolbox leaves it to the service.
    fn conclude(
        &self,
        _tool: String,
        _args: Raw<Object>,
        _report: Raw<Report>,
        reply: Reply<Raw<Option<Conclusion>>>,
    ) {
        reply(Ok(Raw::of(&None)));
    }

    /// Ends motion; answered when the commands that end it are sent.
    fn halt(&self, _halt: Halt, reply: Reply<()>) {
        reply(Ok(()));
    }

    /// Asks whether an emergency stop may be lifted.
    fn resume(&self, reply: Reply<()>) {
        reply(Ok(()));
    }

    /// A newer emergency stop became known. No start that was planned before it arrives from now on.
    fn stopped(&self, _stop_epoch: u64) {}

    /// A bus message to which the toolbox subscribed.
    fn message(&self, _topic: String, _data: Raw<Value>) {}

    /// The answer to a request of the toolbox.
    fn respond(&self, _request: u64, _answer: Answer<Raw<Value>>) {}

    /// Asks whether a reload may close the toolbox now.
    fn may_close(&self, reply: Reply<Raw<()>>) {
        reply(Ok(Raw::of(&())));
    }

    /// Takes no new work, ends what is queued as cancelled, lets what is under way finish, and closes the toolbox; `closed` is
    /// told whether that was in time. Called once, by either lane.
    fn close(&self, closed: Box<dyn FnOnce(bool) + Send>) {
        closed(true);
    }

    /// The service is gone: the emergency halt of everything that comes next is of this program's own making.
    fn lost_service(&self) {}

    /// The service is gone, and everything was halted: `close` comes next, and the process ends in 2 s.
    fn leave(&self) {}

    /// Begins to bring the hardware to rest from outside this process: a halt was not confirmed, and this process is about to
    /// end.
    fn safe_stop(&self) {}

    /// Whether a call into foreign code is under way, which might not return.
    fn is_inside(&self) -> bool {
        false
    }

    /// The foreign function that has not returned for so long that the process has to be replaced.
    fn overdue(&self) -> Option<&'static str> {
        None
    }
}

/// Receives an answer; called once, from any thread.
pub type Reply<T> = Box<dyn FnOnce(Result<T, Refusal>) + Send>;

/// The command that ends motion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Halt {
    /// The subsystems; `["all"]` for everything.
    pub subsystems: Vec<String>,
    /// Whether this is an emergency stop; otherwise the machine holds its position.
    pub emergency: bool,
    /// The number of the emergency stop; counts only if this is one.
    pub stop_epoch: u64,
}

/// Why an order was not carried out.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{0}")]
pub enum Refusal {
    /// The toolbox failed or refused.
    Failed(Failure),
    /// The toolbox is closed.
    Closed(Failure),
}

impl Refusal {
    /// The refusal of a toolbox that is not open.
    pub(crate) fn not_open() -> Self {
        Self::Closed(Failure::new(
            FailureKind::ToolboxClosed,
            "the toolbox is not open",
        ))
    }
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// The answer for a result.
pub(crate) fn answer<T>(result: Result<T, Refusal>) -> Answer<T> {
    match result {
        Ok(value) => Answer::Ok(value),
        Err(Refusal::Failed(failure)) => Answer::Error(Raw::of(&failure)),
        Err(Refusal::Closed(failure)) => Answer::Lost(Raw::of(&failure)),
    }
}
