//! The calls that keep a vehicle connected. Read [`Vehicle::attend`].

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::link_state::Link;
use super::unit::Vehicle;
use crate::config::Backend;

/// How long a woken vehicle's reports may take.
const WELL: Duration = Duration::from_secs(5);

/// Interval of the look whether it may rest.
const LOOK: Duration = Duration::from_secs(1);

/// A call that needs a vehicle, until it is dropped.
pub(crate) struct Attendance {
    vehicle: Arc<Vehicle>,
    /// Whether the vehicle was asleep.
    pub(crate) woken: bool,
}

impl Drop for Attendance {
    fn drop(&mut self) {
        self.vehicle.attention.0.send_modify(|needed| {
            needed.calls -= 1;
            needed.since = Instant::now();
        });
    }
}

impl Vehicle {
    /// Keeps the vehicle connected, and connects it if it was asleep.
    pub(crate) fn attend(self: &Arc<Self>) -> Attendance {
        let mut woken = false;
        self.attention.0.send_modify(|needed| {
            needed.calls += 1;
            woken = std::mem::take(&mut needed.asleep);
        });
        if woken {
            self.set_link(Link::Connecting("the simulator is starting".to_string()));
        }
        Attendance {
            vehicle: Arc::clone(self),
            woken,
        }
    }

    /// Waits until a vehicle that was asleep is connected and reports that it is well, as it did before: its first reports name
    /// only some of its sensors.
    ///
    /// # Cancel safety
    /// Safe.
    pub(crate) async fn wait_awake(&self, at_most: Duration) {
        self.wait_link(at_most).await;
        let mut reports = self.heard.subscribe();
        let well =
            reports.wait_for(|telemetry| telemetry.health.is_some_and(|health| health.missing().is_empty()));
        if self.link() == Link::Up {
            // After a timeout the caller's guards name what is missing.
            let _ = tokio::time::timeout(at_most.min(WELL), well).await;
        }
    }

    /// Resolves when the vehicle has fallen asleep; never for one that this toolbox has not started, or that could fly.
    ///
    /// # Cancel safety
    /// Safe.
    pub(super) async fn unneeded(&self) {
        loop {
            tokio::time::sleep(LOOK).await;
            let stands = self.link() == Link::Up && {
                let telemetry = self.heard.borrow();
                telemetry.link_ok() && telemetry.on_ground() && !telemetry.may_move()
            };
            if self.config.backend == Backend::Px4Sim && stands && self.attention.fall_asleep() {
                return;
            }
        }
    }
}
