//! Simulated time: real time, faster or slower.
//!
//! Owns the only clock of the simulator. Monotonic. Read [`Clock`].

use std::time::{Duration, Instant};

/// Seconds since the simulator was made, on its own clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    begun: Instant,
    scale: f64,
}

impl Clock {
    pub(super) fn new(scale: f64) -> Self {
        Self {
            begun: Instant::now(),
            scale,
        }
    }

    pub(super) fn now(&self) -> f64 {
        self.begun.elapsed().as_secs_f64() * self.scale
    }

    /// Resolves when the clock has reached `time`.
    ///
    /// # Cancel safety
    /// Safe.
    pub(super) async fn until(&self, time: f64) {
        loop {
            let left = (time - self.now()) / self.scale;
            if left <= 0.0 {
                return;
            }
            tokio::time::sleep(Duration::from_secs_f64(left)).await;
        }
    }
}
