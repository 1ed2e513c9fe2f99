//! How steadily the vehicle hovers, from telemetry.
//!
//! Collects positions while no setpoint moves the vehicle, and computes their scatter. Read [`Hover::rms_m`].

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use super::telemetry::Telemetry;
use crate::geo::{Ned, distance, length};

/// Time over which positions count, vehicle time.
pub(super) const WINDOW: Duration = Duration::from_secs(10);
/// Shortest time that gives a result.
const LEAST: Duration = Duration::from_secs(3);
/// A vehicle faster than this does not hover, metres per second.
const HOVERS_MPS: f64 = 1.0;

/// Positions of the vehicle while it hovered.
#[derive(Debug, Default)]
pub(super) struct Hover {
    seen: VecDeque<(Instant, Ned)>,
    /// Whether a setpoint is moving it.
    moves: bool,
    rms_m: Option<f64>,
}

impl Hover {
    /// Adds the position from a message; `wall` converts vehicle time to wall time.
    pub(super) fn update(&mut self, heard: &Telemetry, wall: impl Fn(Duration) -> Duration) {
        let Some(local) = heard.local else { return };
        let (ned, velocity) = local.value;
        if self.seen.back().is_some_and(|(at, _)| *at == local.at) {
            return;
        }
        let flies = heard.armed == Some(true) && heard.in_air == Some(true);
        if self.moves || !flies || length(velocity) > HOVERS_MPS {
            self.seen.clear();
            return;
        }
        self.seen.push_back((local.at, ned));
        while let Some((at, _)) = self.seen.front()
            && local.at.duration_since(*at) > wall(WINDOW)
        {
            self.seen.pop_front();
        }
        let hovered = self.seen.front().map(|(at, _)| local.at.duration_since(*at));
        if hovered >= Some(wall(LEAST)) {
            self.rms_m = self.scatter();
        }
    }

    /// Says whether a setpoint moves the vehicle from now on.
    pub(super) fn moves(&mut self, moves: bool) {
        if self.moves != moves {
            self.moves = moves;
            self.seen.clear();
        }
    }

    /// The scatter of the last sufficiently long hover, metres RMS about the mean.
    pub(super) fn rms_m(&self) -> Option<f64> {
        self.rms_m
    }

    fn scatter(&self) -> Option<f64> {
        let count = self.seen.len() as f64;
        let mut middle: Ned = [0.0; 3];
        for (_, ned) in &self.seen {
            middle = std::array::from_fn(|axis| middle[axis] + ned[axis] / count);
        }
        let squares = self.seen.iter().map(|(_, ned)| distance(*ned, middle).powi(2));
        (count > 0.0).then(|| (squares.sum::<f64>() / count).sqrt())
    }
}
