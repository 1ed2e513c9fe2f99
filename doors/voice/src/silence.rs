//! Decides when a silent socket is pinged, and when it counts as lost. Pure.

use std::time::Duration;

use tokio::time::Instant;

/// How often a silent socket is pinged, and how long the silence may last.
#[derive(Clone, Copy)]
struct Pace {
    ask: Duration,
    lost: Duration,
}

/// The pace while something moves. After a loss, everything that moves is cancelled within 5 s.
const MOVING: Pace = Pace {
    ask: Duration::from_secs(2),
    lost: Duration::from_millis(4500),
};

/// The pace at other times. A call on a dead socket would never be received.
const IDLE: Pace = Pace {
    ask: Duration::from_secs(20),
    lost: Duration::from_secs(45),
};

/// What to do about a socket.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SocketTask {
    /// Do nothing before this moment.
    Nothing(Instant),
    /// Send a ping.
    Ping,
    /// The socket counts as lost.
    Lost,
}

/// The silence of one socket.
pub(crate) struct Silence {
    /// When a frame last arrived, or something began to move.
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

    /// Records that a frame arrived, whatever its content.
    pub(crate) fn note_frame(&mut self, now: Instant) {
        self.heard = now;
    }

    /// Returns what to do now; a ping counts as sent. `moves`: something moves for this socket.
    pub(crate) fn need(&mut self, moves: bool, now: Instant) -> SocketTask {
        if moves && !self.moves {
            // Before this, the socket may have been silent for a while without a ping.
            self.heard = self.heard.max(now);
            self.asked = now.checked_sub(MOVING.ask).unwrap_or(now);
        }
        self.moves = moves;
        let pace = if moves { MOVING } else { IDLE };
        let (ask, lost) = (self.asked + pace.ask, self.heard + pace.lost);
        if lost <= now {
            return SocketTask::Lost;
        }
        if ask <= now {
            self.asked = now;
            return SocketTask::Ping;
        }
        SocketTask::Nothing(ask.min(lost))
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
        // When nothing moves, it is pinged every 20 s.
        assert_eq!(silence.need(false, at(0)), SocketTask::Nothing(at(20_000)));
        assert_eq!(silence.need(false, at(20_000)), SocketTask::Ping);
        // Something begins to move: it is pinged at once, and then every 2 s.
        assert_eq!(silence.need(true, at(30_000)), SocketTask::Ping);
        silence.note_frame(at(30_100));
        assert_eq!(silence.need(true, at(30_100)), SocketTask::Nothing(at(32_000)));
        assert_eq!(silence.need(true, at(32_000)), SocketTask::Ping);
        assert_eq!(silence.need(true, at(34_000)), SocketTask::Ping);
        assert_eq!(silence.need(true, at(34_000)), SocketTask::Nothing(at(34_600)));
        assert_eq!(silence.need(true, at(34_600)), SocketTask::Lost);
        // A socket on which frames arrive is not lost.
        silence.note_frame(at(34_600));
        assert_eq!(silence.need(true, at(34_600)), SocketTask::Nothing(at(36_000)));
        // Nothing moves any more, so the slower pace applies.
        assert_eq!(silence.need(false, at(60_000)), SocketTask::Ping);
        assert_eq!(silence.need(false, at(79_600)), SocketTask::Lost);
    }
}
