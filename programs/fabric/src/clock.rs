//! The clock of this machine: monotonic, and it goes on while the machine sleeps. Clocks of two machines are never compared; see
//! [`HostClock`].

use rustix::time::{ClockId, clock_gettime};

use crate::messages::LEASE_MS;

/// Milliseconds since this machine started, time asleep included.
pub(crate) fn now_ms() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    let millis = u64::try_from(now.tv_nsec / 1_000_000).unwrap_or(0);
    seconds * 1000 + millis
}

/// What a mount knows of the clock of its host: the host's time in an answer, and when here the question left and the answer came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HostClock {
    /// The host's time in its answer.
    pub(crate) host: u64,
    /// When the question was sent, by the clock here.
    pub(crate) sent: u64,
    /// When the answer came, by the clock here.
    pub(crate) received: u64,
}

impl HostClock {
    /// Whether the answer came before a lease that was asked for with the question could end: later it says nothing of now.
    pub(crate) fn is_timely(self) -> bool {
        self.received < self.sent + LEASE_MS
    }

    /// A time of the host that is not later than its clock shows at `here`, so that what it ends never ends too late.
    pub(crate) fn at(self, here: u64) -> u64 {
        let passed = here.saturating_sub(self.received);
        self.host + passed
    }

    /// A time of the host that is not later than its clock showed when the question was sent.
    pub(crate) fn when_sent(self) -> u64 {
        self.host.saturating_sub(self.received.saturating_sub(self.sent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_of_the_host_never_runs_ahead_of_its_clock() {
        // Whatever the network took for either way, the estimates are at or before the host's clock.
        for (there, back) in [(0, 0), (5, 5), (0, 80), (80, 0), (200, 10)] {
            let (offset, sent) = (70_000, 1000);
            let host_at = |here: u64| here + offset;
            let clock = HostClock {
                host: host_at(sent + there),
                sent,
                received: sent + there + back,
            };
            for later in [0, 1, 500] {
                let here = clock.received + later;
                assert!(clock.at(here) <= host_at(here), "{clock:?}");
                assert!(clock.at(here) + there + back >= host_at(here), "{clock:?}");
            }
            assert!(clock.when_sent() <= host_at(sent), "{clock:?}");
        }
    }
}
