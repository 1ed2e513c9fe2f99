//! What the engine drives: a toolbox, whether it lives in this process, in a child or in a test.
//!
//! This trait is the engine's only view of the plugin side, so the engine cannot tell which kind it drives and knows
//! neither JSON frames nor libraries. Read [`Toolbox`]; everything else here is an argument of its methods.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::BoxFuture;
use ovos_toolbox_wire::{Action, Completion, Conclusion, Failure, Object, Progress, Report, Start};

/// Names one run of one action, for the life of the service. Never used again.
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

/// Where an action's progress goes. Called from any thread; must not block.
pub type ProgressSink = Arc<dyn Fn(Progress) + Send + Sync>;

/// Which motion to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Halt {
    /// `["all"]` for everything.
    pub subsystems: Vec<String>,
    /// An emergency stop, rather than holding position.
    pub emergency: bool,
    /// Every start of an older epoch is dropped from now on. Unchanged by a halt that is no emergency.
    pub stop_epoch: u64,
}

/// How a run ended, as the engine needs to know it.
#[derive(Clone, Debug, PartialEq)]
pub enum Ended {
    /// The toolbox said so.
    Reported(Completion),
    /// The toolbox confirmed that it ended the run because it was asked to (`TB_CANCELLED`), or the run was cancelled
    /// before it was started.
    Cancelled,
    /// The toolbox went away (crash, close) while it ran; the failure says what happened.
    Lost(Failure),
    /// The toolbox had died before the run reached it. The next copy can run it instead.
    NeverBegun(Failure),
}

/// Why a question to a toolbox has no answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Unanswered {
    /// The toolbox failed, refused or went away; the failure says what happened.
    Failed(Failure),
    /// The toolbox had died before the question reached it. The next copy can be asked instead.
    NeverAsked(Failure),
}

impl Unanswered {
    /// What happened.
    #[must_use]
    pub fn into_failure(self) -> Failure {
        match self {
            Self::Failed(failure) | Self::NeverAsked(failure) => failure,
        }
    }
}

impl From<Failure> for Unanswered {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// A live toolbox.
///
/// Methods return at once; the futures carry the results. Nothing here blocks the caller's thread, so a toolbox that
/// hangs costs only those who wait for it.
pub trait Toolbox: Send + Sync + 'static {
    /// The actions of a call, before anything runs; `None` where the toolbox has no plan for this tool.
    ///
    /// The caller bounds the wait.
    fn plan<'a>(
        &'a self,
        tool: &'a str,
        args: &'a Object,
    ) -> BoxFuture<'a, Result<Option<Vec<Action>>, Unanswered>>;

    /// Starts an action. The future resolves when the run has ended, and never before.
    ///
    /// # Cancel safety
    /// Dropping the future gives the run up: its completion is counted and dropped when it comes. It does not end the
    /// run; [`Toolbox::cancel`] asks for that.
    fn start(&self, run: RunId, start: Start, progress: Option<ProgressSink>) -> BoxFuture<'static, Ended>;

    /// Asks a run to end. Idempotent; an unknown run is fine. A run that was not started yet never will be.
    fn cancel(&self, run: RunId);

    /// The tool's answer, made from the report; `None` where the toolbox leaves that to the service.
    ///
    /// The caller bounds the wait.
    fn conclude<'a>(
        &'a self,
        tool: &'a str,
        args: &'a Object,
        report: &'a Report,
    ) -> BoxFuture<'a, Result<Option<Conclusion>, Failure>>;

    /// Sends the command that ends motion. It is on its way when this method returns; the future brings the toolbox's
    /// word that it was sent. If a start was in progress, the toolbox is halted again when that start has returned. After
    /// an emergency halt a gentle one does nothing until the toolbox has agreed to a resume, whichever was asked for first.
    ///
    /// # Cancel safety
    /// Dropping the future gives up the toolbox's word; the halt stays on its way.
    fn halt(&self, halt: Halt) -> BoxFuture<'static, Result<(), Failure>>;

    /// Asks whether the latch may be lifted. A toolbox may refuse and never moves.
    fn resume(&self) -> BoxFuture<'static, Result<(), Failure>>;
}
