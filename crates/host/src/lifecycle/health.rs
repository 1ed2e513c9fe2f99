//! How often the processes of a toolbox died, and how long the next restart waits. Read [`Health`].

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

/// Deaths are counted over this time.
const WINDOW: Duration = Duration::from_secs(60);

/// The delay before the first restart, and the longest.
pub(crate) const FIRST_RESTART: Duration = Duration::from_millis(200);
pub(crate) const MAX_RESTART: Duration = Duration::from_secs(30);

/// The failures of one toolbox's processes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Health {
    pub(crate) restarts: u64,
    /// The reason of the last death.
    pub(crate) last: Option<String>,
    /// When processes died or could not be opened; none older than the window, and no more than `max_failures`.
    failures: VecDeque<Instant>,
    /// The number of ends in a row, which decides the next delay, and the time of the last end.
    streak: u32,
    last_end: Option<Instant>,
}

impl Health {
    /// Notes a failure; true when it was one too many.
    pub(crate) fn failed(&mut self, reason: &str, now: Instant, max_failures: u32) -> bool {
        self.restart_requested(reason, now);
        self.failures.push_back(now);
        while let Some(oldest) = self.failures.front()
            && (now.duration_since(*oldest) > WINDOW || self.failures.len() > 1001)
        {
            self.failures.pop_front();
        }
        max_failures > 0 && self.failures.len() >= max_failures as usize
    }

    /// Notes that a process has ended to be started again. That is no failure, but a process that does so again and
    /// again waits longer.
    pub(crate) fn restart_requested(&mut self, reason: &str, now: Instant) {
        self.last = Some(reason.to_owned());
        // After a process that lived as long as the window, the count starts over.
        if self
            .last_end
            .is_some_and(|last| now.duration_since(last) > WINDOW)
        {
            self.streak = 0;
        }
        self.last_end = Some(now);
        self.streak = self.streak.saturating_add(1);
    }

    /// The delay before the next restart.
    pub(crate) fn wait(&self, first: Duration, max: Duration) -> Duration {
        let doublings = self.streak.saturating_sub(1).min(20);
        first.saturating_mul(1 << doublings).min(max)
    }

    /// Starts over, after a reload.
    pub(crate) fn forgive(&mut self) {
        self.failures.clear();
        self.streak = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest_and_start_again_after_a_quiet_minute() {
        let (mut health, start) = (Health::default(), Instant::now());
        let (first, max) = (Duration::from_millis(200), Duration::from_secs(30));
        let mut waits = Vec::new();
        for second in 0..10 {
            assert!(!health.failed("x", start + Duration::from_secs(second), 0));
            waits.push(health.wait(first, max).as_millis());
        }
        assert_eq!(
            waits,
            [200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000]
        );
        health.failed("x", start + Duration::from_secs(100), 0);
        assert_eq!(health.wait(first, max), first);
    }

    #[test]
    fn a_process_that_asks_to_be_started_again_waits_longer_each_time_and_never_fails() {
        let (mut health, start) = (Health::default(), Instant::now());
        let (first, max) = (Duration::from_millis(200), Duration::from_secs(30));
        for second in 0..3 {
            health.restart_requested("x", start + Duration::from_secs(second));
        }
        assert_eq!(health.wait(first, max).as_millis(), 800);
        assert!(!health.failed("y", start + Duration::from_secs(3), 2));
        health.restart_requested("x", start + Duration::from_secs(100));
        assert_eq!(health.wait(first, max), first);
    }

    #[test]
    fn too_often_is_within_a_minute() {
        let (mut health, start) = (Health::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut fails = |seconds| health.failed("x", at(seconds), 3);
        assert_eq!([fails(0), fails(40), fails(70)], [false, false, false]);
        assert_eq!([fails(90), fails(200)], [true, false]);
    }
}
