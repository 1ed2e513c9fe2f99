//! The right of calls to command the vehicle, and why it ends.
//!
//! Pure state, no IO. Read [`Right`].

use std::sync::{Arc, OnceLock};

use tokio_util::sync::CancellationToken;

use crate::guard::OverrideCause;

/// Why running calls were ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum EndReason {
    /// A halt: cancelled, timed out, or an emergency stop.
    Halted,
    /// Another party has taken over, and how.
    Override(OverrideCause),
    /// The battery is below the reserve; says what is done about it.
    Battery(String),
    /// The toolbox is closing.
    Closed,
}

/// A right to command that can be withdrawn. All motion calls share one, all safe calls another.
#[derive(Clone, Debug)]
pub(crate) struct Right {
    number: u64,
    token: CancellationToken,
    why: Arc<OnceLock<EndReason>>,
}

impl Right {
    pub(super) fn new(number: u64) -> Self {
        Self {
            number,
            token: CancellationToken::new(),
            why: Arc::default(),
        }
    }

    /// Withdraws this right from all calls that hold it, and replaces it with a new one for the calls that follow.
    pub(super) fn withdraw(&mut self, why: &EndReason) {
        let old = std::mem::replace(self, Self::new(self.number + 1));
        // The first reason counts.
        let _ = old.why.set(why.clone());
        old.token.cancel();
    }

    /// Resolves when the right is withdrawn.
    ///
    /// # Cancel safety
    /// Safe.
    pub(crate) async fn withdrawn(&self) -> EndReason {
        self.token.cancelled().await;
        self.why.get().cloned().unwrap_or(EndReason::Halted)
    }

    pub(crate) fn is_withdrawn(&self) -> bool {
        self.token.is_cancelled()
    }

    pub(crate) fn why(&self) -> EndReason {
        self.why.get().cloned().unwrap_or(EndReason::Halted)
    }
}
