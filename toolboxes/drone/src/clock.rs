//! The vehicle's time.
//!
//! A simulated vehicle may fly faster than the wall clock. Every duration in the toolbox is in vehicle time; only this
//! module converts it to wall time. Uses tokio's clock, so that tests can pause it. Read [`Clock`].

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

/// The ratio of vehicle time to wall time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    speed: f64,
    /// Unix time at an instant of tokio's clock; set only by tests that pause that clock.
    virtual_unix: Option<(Instant, f64)>,
}

/// The shortest sleep, so that a fast simulation does not spin.
const TICK: Duration = Duration::from_millis(5);

impl Clock {
    /// `speed` is vehicle seconds per wall second, clamped to 0.1 to 100.
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

    /// Derives the time of day from tokio's clock instead of the system's.
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

    /// Converts vehicle time to wall time.
    pub(crate) fn wall(self, vehicle: Duration) -> Duration {
        vehicle.div_f64(self.speed)
    }

    /// Converts wall time to vehicle time, for programs that run in real time such as mavsdk_server.
    pub(crate) fn vehicle(self, wall: Duration) -> Duration {
        wall.mul_f64(self.speed)
    }

    /// Sleeps for this long in vehicle time.
    ///
    /// # Cancel safety
    /// Safe.
    pub(crate) async fn sleep(self, vehicle: Duration) {
        tokio::time::sleep(self.wall(vehicle).max(TICK)).await;
    }

    /// Vehicle time since `then`.
    pub(crate) fn since(self, then: Instant) -> Duration {
        then.elapsed().mul_f64(self.speed)
    }

    /// The instant at which this much vehicle time will have passed.
    pub(crate) fn after(self, vehicle: Duration) -> Instant {
        Instant::now() + self.wall(vehicle)
    }
}
