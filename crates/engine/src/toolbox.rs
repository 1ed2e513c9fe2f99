//! The interface between the engine and a toolbox, which lives in this process, in a child process or in a test.
//!
//! This trait is the engine's only view of the plugin side, so the engine cannot tell these apart and knows neither
//! JSON frames nor libraries. Read [`Toolbox`]; the other types are arguments and results of its methods.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::{BoxFuture, ready};
use ovos_toolbox_wire::{Completion, Conclusion, Failure, Object, Plan, Progress, Report, Start};
use serde_json::Value;

/// The number of one run of one action, unique for the life of the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunId(pub u64);

/// Hands out run ids.
#[derive(Debug, Default)]
pub(crate) struct RunIds(AtomicU64);

impl RunIds {
    pub(crate) fn next(&self) -> RunId {
        RunId(self.0.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

/// Receives an action's progress. Called from any thread; must not block.
pub type ProgressSink = Arc<dyn Fn(Progress) + Send + Sync>;

/// A command that ends motion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Halt {
    /// The subsystems to halt; `["all"]` for everything.
    pub subsystems: Vec<String>,
    /// Whether this is an emergency stop; otherwise the machine holds its position.
    pub emergency: bool,
    /// Starts of an older epoch are dropped from now on. A halt that is no emergency carries the current epoch.
    pub stop_epoch: u64,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub enum RunResult {
    /// The toolbox reported the end.
    Reported(Completion),
    /// The toolbox reported an output, and content beside it: the items as the toolbox gave them, not checked yet.
    Shown {
        /// What the action returns.
        output: Value,
        /// Pictures and other media.
        content: Vec<Value>,
    },
    /// The toolbox confirmed that it ended the run as it was asked to (`TB_CANCELLED`), or the run was cancelled before
    /// it was started.
    Cancelled,
    /// The toolbox went away (crash, close) during the run; the failure is the reason.
    Lost(Failure),
    /// The toolbox died before the run reached it. The next generation can run it instead.
    NeverBegun(Failure),
}

/// Why a toolbox gave no answer; the failure is the reason.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{0}")]
pub enum NoAnswer {
    /// The toolbox failed or refused, or did not answer in time.
    Failed(Failure),
    /// The toolbox was closed before it answered.
    Closed(Failure),
    /// The toolbox died before it answered.
    Died(Failure),
    /// The toolbox died before the request reached it. The next generation can be asked instead.
    NeverAsked(Failure),
}

impl NoAnswer {
    /// The reason.
    #[must_use]
    pub fn into_failure(self) -> Failure {
        match self {
            Self::Failed(failure)
            | Self::Closed(failure)
            | Self::Died(failure)
            | Self::NeverAsked(failure) => failure,
        }
    }
}

impl From<Failure> for NoAnswer {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// A live toolbox.
///
/// Methods return at once; the futures carry the results. No method blocks the caller's thread, so a toolbox that hangs
/// delays only its own callers.
pub trait Toolbox: Send + Sync + 'static {
    /// Plans a call before anything runs; `None` where the toolbox has no plan for this tool.
    ///
    /// The caller bounds the wait.
    fn plan<'a>(
        &'a self,
        _tool: &'a str,
        _args: &'a Object,
    ) -> BoxFuture<'a, Result<Option<Plan>, NoAnswer>> {
        Box::pin(ready(Ok(None)))
    }

    /// Starts an action. The future resolves when the run has ended, and never before.
    ///
    /// # Cancel safety
    /// Dropping the future abandons the run: its completion is counted and dropped when it comes. It does not end the
    /// run; [`Toolbox::cancel`] asks for that.
    fn start(
        &self,
        run: RunId,
        start: Start,
        progress: Option<ProgressSink>,
    ) -> BoxFuture<'static, RunResult>;

    /// Asks a run to end. Idempotent; an unknown run is ignored. A run that has not started yet never starts.
    fn cancel(&self, run: RunId);

    /// Makes the tool's result from the report; `None` where the toolbox leaves it to the service.
    ///
    /// The caller bounds the wait.
    fn conclude<'a>(
        &'a self,
        _tool: &'a str,
        _args: &'a Object,
        _report: &'a Report,
    ) -> BoxFuture<'a, Result<Option<Conclusion>, Failure>> {
        Box::pin(ready(Ok(None)))
    }

    /// Sends the command that ends motion. The command is sent when this method returns; the future resolves with the
    /// toolbox's confirmation. If a start was in progress, the toolbox is halted again when that start has returned.
    /// After an emergency halt, a gentle one does nothing until the toolbox has agreed to a resume, whichever was
    /// requested first.
    ///
    /// # Cancel safety
    /// Dropping the future loses the confirmation; the halt is still sent.
    fn halt(&self, halt: Halt) -> BoxFuture<'static, Result<(), NoAnswer>>;

    /// Asks whether the latch may be lifted. A toolbox may refuse, and never moves on a resume.
    fn resume(&self) -> BoxFuture<'static, Result<(), NoAnswer>>;
}
