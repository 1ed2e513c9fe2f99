//! The delays between attempts to connect. Pure.

use std::time::Duration;

/// Delays that double from `first` to `max`. Each varies at random by up to 20 % either way, so that the clients of a
/// restarted bus do not all reconnect at the same moment.
#[derive(Debug)]
pub(super) struct Backoff {
    first: Duration,
    max: Duration,
    next: Duration,
}

impl Backoff {
    pub(super) fn new(first: Duration, max: Duration) -> Self {
        Self {
            first,
            max,
            next: first.min(max),
        }
    }

    /// Starts over with the first delay.
    pub(super) fn reset(&mut self) {
        self.next = self.first.min(self.max);
    }

    /// Returns the next delay; `spread` in 0..=1 selects the point within ±20 %.
    pub(super) fn wait(&mut self, spread: f64) -> Duration {
        let wait = self.next.mul_f64(0.8 + 0.4 * spread.clamp(0.0, 1.0));
        self.next = self.next.saturating_mul(2).min(self.max);
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest_and_start_over() {
        let mut backoff = Backoff::new(Duration::from_secs(5), Duration::from_secs(60));
        let waits: Vec<f64> = (0..6).map(|_| backoff.wait(0.5).as_secs_f64()).collect();
        assert_eq!(waits, [5.0, 10.0, 20.0, 40.0, 60.0, 60.0]);
        backoff.reset();
        assert_eq!(backoff.wait(0.0), Duration::from_secs(4));
        assert_eq!(backoff.wait(1.0), Duration::from_secs(12));
    }
}
