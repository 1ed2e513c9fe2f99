//! The vehicle's time.
//!
//! A simulated vehicle may fly faster than the wall clock runs. Every duration in the toolbox is the vehicle's; this
//! is the one place that knows how long that is for us. Built on tokio's clock, so that tests can pause it. Read
//! [`Clock`].

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

/// How fast the vehicle's time runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    speed: f64,
    /// Unix time at a moment of tokio's clock, where that clock is the only one: in tests that pause it.
    virtual_unix: Option<(Instant, f64)>,
}

/// The shortest wait worth asking the timer for.
const TICK: Duration = Duration::from_millis(5);

impl Clock {
    /// `speed` vehicle seconds pass in one of ours; at least 0.1, at most 100.
    pub(crate) fn new(speed: f64) -> Self {
        Self {
            speed: if speed.is_finite() {
                speed.clamp(0.1, 100.0)
            } else {
                1.0
            },
            virtual_unix: None,
        }
    }

    /// Takes the time of day from tokio's clock, too.
    pub(crate) fn virtual_from(mut self, unix_s: f64) -> Self {
        self.virtual_unix = Some((Instant::now(), unix_s));
        self
    }

    /// Seconds since 1970.
    pub(crate) fn unix(self) -> f64 {
        match self.virtual_unix {
            Some((then, unix_s)) => unix_s + then.elapsed().as_secs_f64(),
            None => SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0.0, |since| since.as_secs_f64()),
        }
    }

    /// How long `vehicle` takes here.
    pub(crate) fn wall(self, vehicle: Duration) -> Duration {
        vehicle.div_f64(self.speed)
    }

    /// How much of the vehicle's time passes within `wall` here: for what somebody else does on real time.
    pub(crate) fn vehicle(self, wall: Duration) -> Duration {
        wall.mul_f64(self.speed)
    }

    /// Waits for so much of the vehicle's time.
    ///
    /// # Cancel safety
    /// Safe.
    pub(crate) async fn sleep(self, vehicle: Duration) {
        tokio::time::sleep(self.wall(vehicle).max(TICK)).await;
    }

    /// How much of the vehicle's time has passed since then.
    pub(crate) fn since(self, then: Instant) -> Duration {
        then.elapsed().mul_f64(self.speed)
    }

    /// When so much of the vehicle's time will have passed.
    pub(crate) fn after(self, vehicle: Duration) -> Instant {
        Instant::now() + self.wall(vehicle)
    }
}
