//! The right of an action to command the machine.
//!
//! Owns how a command is sent only while the action has the right. Read [`Control`].

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::error::ActionError;

/// The right of one action to command the machine.
///
/// Clones are the same right. In tests: [`Control::free`].
#[derive(Clone)]
pub struct Control {
    right: Arc<dyn Right>,
    /// It is part of a longer way, which tells its own progress.
    quiet: bool,
}

/// The source of the right: the SDK's context, or a test.
pub trait Right: Send + Sync {
    /// Runs `send` unless the action has lost the right, and returns whether it ran. A halt waits for `send`.
    fn pass(&self, send: &mut dyn FnMut()) -> bool;
    /// Resolves when the action is cancelled or halted.
    fn cancelled(&self) -> BoxFuture<'static, ()>;
    /// Whether the action is cancelled or halted.
    fn is_cancelled(&self) -> bool;
    /// Whether the service holds the toolbox in emergency stop. The adapter may not know it: its process may be newer
    /// than the stop.
    fn is_latched(&self) -> bool {
        false
    }
    /// Reports how far the action is.
    fn progress(&self, fraction: f64, message: &str);
    /// Which action of which call has the right, for logs.
    fn label(&self) -> String {
        String::new()
    }
}

impl Control {
    /// A control that asks `right`.
    #[must_use]
    pub fn new(right: Arc<dyn Right>) -> Self {
        Self { right, quiet: false }
    }

    /// A control that is never cancelled.
    #[must_use]
    pub fn free() -> Self {
        Self::new(Arc::new(Free))
    }

    /// The same right, for a part of what the action does: it tells no progress.
    #[must_use]
    pub fn quiet(&self) -> Self {
        Self {
            quiet: true,
            ..self.clone()
        }
    }

    /// Sends one command to the machine: runs `send`, which must be short and must not block, unless the action was
    /// cancelled or halted. [`Adapter::halt`](crate::adapter::Adapter::halt) is called after the last such closure has returned and none follows.
    ///
    /// # Errors
    /// [`ActionError::Cancelled`]: nothing was sent.
    pub fn command<R>(&self, send: impl FnOnce() -> R) -> Result<R, ActionError> {
        let mut send = Some(send);
        let mut sent = None;
        self.right.pass(&mut || sent = send.take().map(|send| send()));
        sent.ok_or(ActionError::Cancelled)
    }

    /// Waits for `work` unless the action is cancelled first.
    ///
    /// # Errors
    /// [`ActionError::Cancelled`]: `work` was dropped.
    ///
    /// # Cancel safety
    /// As `work`.
    pub async fn unless_cancelled<R>(&self, work: impl Future<Output = R>) -> Result<R, ActionError> {
        let cancelled = self.right.cancelled();
        tokio::select! {
            biased;
            () = cancelled => Err(ActionError::Cancelled),
            done = work => Ok(done),
        }
    }

    /// Waits, on the real clock.
    ///
    /// # Errors
    /// [`ActionError::Cancelled`]: the action was cancelled meanwhile.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn sleep(&self, time: Duration) -> Result<(), ActionError> {
        self.unless_cancelled(tokio::time::sleep(time)).await
    }

    /// Whether the action was cancelled or halted.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.right.is_cancelled()
    }

    /// Whether the service holds the toolbox in emergency stop.
    #[must_use]
    pub fn is_latched(&self) -> bool {
        self.right.is_latched()
    }

    /// `<call id>/<action id>`, for logs; empty in tests.
    #[must_use]
    pub fn label(&self) -> String {
        self.right.label()
    }

    /// Says how far the action is, 0.0 to 1.0.
    pub fn progress(&self, fraction: f64, message: &str) {
        if !self.quiet {
            self.right.progress(fraction, message);
        }
    }
}

struct Free;

impl Right for Free {
    fn pass(&self, send: &mut dyn FnMut()) -> bool {
        send();
        true
    }

    fn cancelled(&self) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }

    fn is_cancelled(&self) -> bool {
        false
    }

    fn progress(&self, _: f64, _: &str) {}
}
