//! What the manager needs of a toolbox, wherever it runs.
//!
//! The engine drives [`Toolbox`]; opening, listing, replacing and closing go through [`Hosted`]. `InProcess` and
//! `ChildToolbox` implement it, and nothing outside this folder asks which of them it has. Read [`Hosted`].

use std::sync::Arc;

use futures_util::future::BoxFuture;
use ovos_toolbox_wire::{Failure, Manifest};
use protocol::Counts;
use serde_json::Value;

use crate::contract::services::Origin;
use crate::contract::tools::ToolSet;
use engine::Toolbox;

/// One open copy of a toolbox. Dropping it closes it in the background.
pub trait Hosted: Toolbox {
    /// Which copy of which toolbox this is.
    fn origin(&self) -> &Origin;

    /// What the toolbox says about itself.
    fn manifest(&self) -> &Arc<Manifest>;

    /// What was dropped so far.
    fn counts(&self) -> Counts;

    /// Its process, where it has one of its own.
    fn pid(&self) -> Option<u32>;

    /// Runs that have not ended and were not given up.
    fn open_runs(&self) -> usize;

    /// The newest emergency stop it knows of.
    fn stop_epoch(&self) -> u64;

    /// Whether it was stopped in an emergency and has not agreed to a resume since.
    fn is_stopped(&self) -> bool;

    /// Makes an older generation's stop known to this one. Never goes back.
    fn raise_stop_epoch(&self, to: u64);

    /// Asks for the tools; those that cannot be used are listed with the reason. Fails with what the toolbox said, or
    /// when it takes longer than `limits.open`.
    fn tools(&self) -> BoxFuture<'_, Result<ToolSet, Failure>>;

    /// Asks whether it may be closed now; the error says why not. One that does not answer within `limits.open` has no
    /// say.
    fn may_close(&self) -> BoxFuture<'_, Result<(), Failure>>;

    /// Hands over a bus message, if the toolbox subscribes to its topic. Never waits; the newest messages win.
    fn message(&self, topic: &str, data: &str);

    /// Hands over the answer to a request; false when it is not this copy's or was answered already.
    fn respond(&self, request: u64, answer: &Result<Value, Failure>) -> bool;

    /// Closes it: no new work, what is queued is cancelled, what is under way finishes, then `close`. True when that was
    /// done within `limits.close`. The closing goes on when the future is dropped.
    fn close(&self) -> BoxFuture<'_, bool>;

    /// Resolves when it has ended: to what happened, when it died by itself. A toolbox in this process cannot, and never
    /// resolves.
    fn died(&self) -> BoxFuture<'static, Option<Death>>;
}

/// How a toolbox's process ended without being asked to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Death {
    /// The signal, the exit code or the limit it broke, and the last lines it wrote.
    pub reason: String,
    /// Whether a motion was under way.
    pub moving: bool,
}
