//! Whether calls need a vehicle.
//!
//! A simulated vehicle that stands on the ground costs a tenth of a core, also when no call asks for it. After [`PATIENCE`]
//! without a call its connection ends, and the next call begins it again. Read [`Attention`], then `attend`.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

/// How long a simulated vehicle stays connected without a call.
const PATIENCE: Duration = Duration::from_secs(10);

/// The calls that need a vehicle.
pub(super) struct Attention(pub(super) watch::Sender<Need>);

#[derive(Clone, Copy)]
pub(super) struct Need {
    pub(super) calls: usize,
    /// When the last of them ended.
    pub(super) since: Instant,
    pub(super) asleep: bool,
}

impl Attention {
    pub(super) fn new() -> Self {
        Self(watch::Sender::new(Need {
            calls: 0,
            since: Instant::now(),
            asleep: false,
        }))
    }

    /// Falls asleep if no call has needed the vehicle for [`PATIENCE`]. One step, so that no call comes between.
    pub(super) fn fall_asleep(&self) -> bool {
        self.0.send_if_modified(|needed| {
            let unneeded = needed.calls == 0 && needed.since.elapsed() >= PATIENCE;
            needed.asleep |= unneeded;
            unneeded
        })
    }

    /// Resolves when a call needs the vehicle.
    ///
    /// # Cancel safety
    /// Safe.
    pub(super) async fn woken(&self) {
        // An error means that the sender is gone, and this borrows it.
        let _ = self.0.subscribe().wait_for(|needed| !needed.asleep).await;
    }
}
