//! What ends a run from outside. The first reason stands.

use tokio::sync::watch;

use crate::end::End;

/// The reason, once there is one.
#[derive(Clone)]
pub(crate) struct Interrupt(watch::Sender<Option<End>>);

impl Interrupt {
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(None))
    }

    /// Ends the run.
    pub(crate) fn raise(&self, end: End) {
        self.0.send_if_modified(|raised| {
            let first = raised.is_none();
            if first {
                *raised = Some(end);
            }
            first
        });
    }

    pub(crate) fn raised(&self) -> Option<End> {
        self.0.borrow().clone()
    }

    /// Waits for the reason.
    ///
    /// # Cancel safety
    /// Safe.
    pub(crate) async fn wait(&self) -> End {
        let mut raised = self.0.subscribe();
        loop {
            if let Some(end) = raised.borrow_and_update().clone() {
                return end;
            }
            // The sender is a field: it does not go away.
            _ = raised.changed().await;
        }
    }
}
