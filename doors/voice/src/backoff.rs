//! How long to wait before a lost socket is opened again.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(250);
const LONGEST: Duration = Duration::from_secs(10);

/// The waits double, and each is shortened by up to its half at random, so that many doors do not come back at once.
pub(crate) struct Backoff(Duration);

impl Backoff {
    pub(crate) fn new() -> Self {
        Self(FIRST)
    }

    /// The next wait.
    pub(crate) fn wait(&mut self) -> Duration {
        let whole = self.0;
        self.0 = (whole * 2).min(LONGEST);
        whole.mul_f64(1.0 - fastrand::f64() / 2.0)
    }

    /// The socket works: the waits begin anew.
    pub(crate) fn reset(&mut self) {
        self.0 = FIRST;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_bound_and_begin_anew() {
        let mut backoff = Backoff::new();
        for whole in [250, 500, 1000, 2000, 4000, 8000, 10_000, 10_000] {
            let wait = backoff.wait().as_millis();
            assert!((whole / 2..=whole).contains(&wait), "{wait} of {whole}");
        }
        backoff.reset();
        assert!(backoff.wait() <= FIRST);
    }
}
