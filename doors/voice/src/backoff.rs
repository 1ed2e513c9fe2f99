//! Decides how long to wait before a lost socket is opened again, and when to give up. Pure.

use std::time::Duration;

use tokio::time::Instant;

const FIRST: Duration = Duration::from_millis(250);
const LONGEST: Duration = Duration::from_secs(10);

/// How long the door tries to open a lost socket again.
const GIVE_UP: Duration = Duration::from_secs(120);

/// The time after which a socket counts as working. If a socket is lost earlier, and brought no new call, the earlier delays and
/// time limit stay in force. Otherwise a service that accepts and drops every socket would be dialled for ever.
const WORKS: Duration = Duration::from_secs(30);

/// The delays double. Each is shortened at random by up to half, so that many doors do not reconnect at the same moment.
pub(crate) struct Backoff {
    wait: Duration,
    opened: Instant,
    give_up: Option<Instant>,
}

impl Backoff {
    /// Starts with the first open socket.
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            wait: FIRST,
            opened: now,
            give_up: None,
        }
    }

    /// Records that a socket is open again.
    pub(crate) fn opened(&mut self, now: Instant) {
        self.opened = now;
    }

    /// Records that the socket brought a new call: it works, however long it lives.
    pub(crate) fn works(&mut self) {
        self.wait = FIRST;
        self.give_up = None;
    }

    /// Records that the socket is lost.
    pub(crate) fn lost(&mut self, now: Instant) {
        if now.duration_since(self.opened) >= WORKS {
            self.works();
        }
        self.give_up.get_or_insert(now + GIVE_UP);
    }

    /// Returns the next delay; `None` to give up.
    pub(crate) fn wait(&mut self, now: Instant) -> Option<Duration> {
        let whole = self.wait;
        self.wait = (whole * 2).min(LONGEST);
        let wait = whole.mul_f64(1.0 - fastrand::f64() / 2.0);
        let in_time = self.give_up.is_none_or(|end| now + wait < end);
        in_time.then_some(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn waits_double_up_to_a_bound_and_begin_anew_after_a_socket_that_worked() {
        let start = Instant::now();
        let mut backoff = Backoff::new(start);
        backoff.lost(start);
        for whole in [250, 500, 1000, 2000, 4000, 8000, 10_000, 10_000] {
            let wait = backoff.wait(start).expect("a wait").as_millis();
            assert!((whole / 2..=whole).contains(&wait), "{wait} of {whole}");
        }
        backoff.opened(start);
        backoff.lost(start + WORKS);
        assert!(backoff.wait(start + WORKS).expect("a wait") <= FIRST);
    }

    #[tokio::test(start_paused = true)]
    async fn sockets_that_are_taken_and_dropped_are_given_up() {
        const LIVED: Duration = Duration::from_secs(1);
        let start = Instant::now();
        let mut backoff = Backoff::new(start);
        let mut now = start;
        let mut dials = 0;
        loop {
            backoff.lost(now);
            let Some(wait) = backoff.wait(now) else { break };
            now += wait;
            backoff.opened(now);
            now += LIVED;
            dials += 1;
            assert!(dials < 100, "it never ends");
        }
        // The last socket may be opened just before the time limit.
        assert!(now - start < GIVE_UP + LIVED, "{:?}", now - start);
        assert!(dials > 5, "{dials}");
    }
}
