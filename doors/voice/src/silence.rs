//! When a silent socket is asked for a sign of life, and when it counts as lost. Pure.

use std::time::Duration;

use tokio::time::Instant;

/// How often is asked, and how long is waited for anything to be heard.
#[derive(Clone, Copy)]
struct Pace {
    ask: Duration,
    lost: Duration,
}

/// While something moves: what moves is cancelled within 5 s.
const MOVING: Pace = Pace {
    ask: Duration::from_secs(2),
    lost: Duration::from_millis(4500),
};

/// Otherwise: a call that comes over a dead socket is never heard of.
const IDLE: Pace = Pace {
    ask: Duration::from_secs(20),
    lost: Duration::from_secs(45),
};

/// What a socket needs.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// Nothing before this moment.
    Nothing(Instant),
    /// A ping.
    Ping,
    /// It counts as lost.
    Lost,
}

/// The silence of one socket.
pub(crate) struct Silence {
    /// When something was heard, or something began to move.
    heard: Instant,
    asked: Instant,
    moves: bool,
}

impl Silence {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            heard: now,
            asked: now,
            moves: false,
        }
    }

    /// A frame came, whatever is in it.
    pub(crate) fn heard(&mut self, now: Instant) {
        self.heard = now;
    }

    /// What is to be done now; a ping counts as sent. `moves`: something moves for this socket.
    pub(crate) fn need(&mut self, moves: bool, now: Instant) -> Need {
        if moves && !self.moves {
            // It may have been silent for a while without being asked.
            self.heard = self.heard.max(now);
            self.asked = now.checked_sub(MOVING.ask).unwrap_or(now);
        }
        self.moves = moves;
        let pace = if moves { MOVING } else { IDLE };
        let (ask, lost) = (self.asked + pace.ask, self.heard + pace.lost);
        if lost <= now {
            return Need::Lost;
        }
        if ask <= now {
            self.asked = now;
            return Need::Ping;
        }
        Need::Nothing(ask.min(lost))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_silent_socket_is_lost_within_five_seconds_while_something_moves() {
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        let mut silence = Silence::new(start);
        // Idle for a while: asked every 20 s.
        assert_eq!(silence.need(false, at(0)), Need::Nothing(at(20_000)));
        assert_eq!(silence.need(false, at(20_000)), Need::Ping);
        // Something begins to move: asked at once, and every 2 s.
        assert_eq!(silence.need(true, at(30_000)), Need::Ping);
        silence.heard(at(30_100));
        assert_eq!(silence.need(true, at(30_100)), Need::Nothing(at(32_000)));
        assert_eq!(silence.need(true, at(32_000)), Need::Ping);
        assert_eq!(silence.need(true, at(34_000)), Need::Ping);
        assert_eq!(silence.need(true, at(34_000)), Need::Nothing(at(34_600)));
        assert_eq!(silence.need(true, at(34_600)), Need::Lost);
        // One that speaks is not.
        silence.heard(at(34_600));
        assert_eq!(silence.need(true, at(34_600)), Need::Nothing(at(36_000)));
        // Nothing moves any more: there is time.
        assert_eq!(silence.need(false, at(60_000)), Need::Ping);
        assert_eq!(silence.need(false, at(79_600)), Need::Lost);
    }
}
