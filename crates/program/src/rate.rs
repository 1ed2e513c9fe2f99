//! A limit on the rate of a toolbox's messages.

use std::time::Instant;

use parking_lot::Mutex;

/// A token bucket.
#[derive(Debug)]
pub(crate) struct Rate {
    burst: f64,
    per_second: f64,
    state: Mutex<(f64, Instant)>,
}

impl Rate {
    pub(crate) fn new(burst: u32, per_second: u32) -> Self {
        Self {
            burst: f64::from(burst),
            per_second: f64::from(per_second),
            state: Mutex::new((f64::from(burst), Instant::now())),
        }
    }

    /// Whether the next message is allowed now.
    pub(crate) fn allows(&self) -> bool {
        self.allows_at(Instant::now(), 1)
    }

    /// Whether a message that counts as so many is allowed now.
    pub(crate) fn allows_many(&self, count: usize) -> bool {
        self.allows_at(Instant::now(), count)
    }

    fn allows_at(&self, now: Instant, count: usize) -> bool {
        let mut state = self.state.lock();
        let (tokens, last) = *state;
        let gained = now.saturating_duration_since(last).as_secs_f64() * self.per_second;
        let tokens = (tokens + gained).min(self.burst);
        // A message that is larger than the bucket is allowed when the bucket is full.
        let wanted = (count as f64).min(self.burst);
        let allowed = tokens >= wanted;
        *state = (if allowed { tokens - wanted } else { tokens }, now);
        allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_flood_is_cut_to_the_burst_and_recovers() {
        let rate = Rate::new(10, 5);
        let start = Instant::now();
        assert_eq!((0..100).filter(|_| rate.allows_at(start, 1)).count(), 10);
        let later = start + Duration::from_secs(1);
        assert_eq!((0..100).filter(|_| rate.allows_at(later, 1)).count(), 5);
        // Half full: too little for a message that takes all of it.
        let later = later + Duration::from_secs(1);
        assert!(!rate.allows_at(later, 11) && rate.allows_at(later, 4) && !rate.allows_at(later, 4));
        assert!(rate.allows_at(later + Duration::from_secs(2), 11));
    }
}
