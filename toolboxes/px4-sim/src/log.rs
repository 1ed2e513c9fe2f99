//! What the vehicle was told and what it did, with times: the truth a test compares a tool's words with.
//!
//! Bounded: the oldest entries go first. Start with [`FlightLog`].

use std::collections::VecDeque;

use serde::Serialize;

use crate::{geo::Ned, mode::Mode, vehicle::Ack};

/// Entries kept: more than an hour of set points at 20 a second, some tens of megabytes.
const KEPT: usize = 100_000;

/// Who changed a mode or disarmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// A command from the companion computer.
    Command,
    /// The pilot's remote control.
    Pilot,
    /// A ground station.
    GroundStation,
    /// The autopilot's own safety rules.
    Failsafe,
    /// The mode before had come to its end.
    Completed,
}

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum What {
    /// An offboard set point arrived.
    Setpoint {
        /// Position in metres, when it is one of position.
        #[serde(skip_serializing_if = "Option::is_none")]
        position: Option<Ned>,
        /// Velocity in metres per second, north east down, when it is one of velocity.
        #[serde(skip_serializing_if = "Option::is_none")]
        velocity: Option<Ned>,
        /// Heading in degrees, when it has one.
        #[serde(skip_serializing_if = "Option::is_none")]
        yaw_deg: Option<f64>,
    },
    /// A command arrived and was answered.
    Command {
        /// What it was.
        name: String,
        /// The answer.
        ack: Ack,
    },
    /// The mode changed.
    Mode {
        /// From.
        from: Mode,
        /// To.
        to: Mode,
        /// By whom.
        cause: Cause,
    },
    /// Armed or disarmed.
    Armed {
        /// Which.
        armed: bool,
        /// By whom.
        cause: Cause,
    },
    /// The autopilot said something.
    Text {
        /// MAVLink's number: 0 emergency to 7 debug.
        severity: u8,
        /// What.
        text: String,
    },
    /// It flew into something.
    Collision {
        /// Where.
        position: Ned,
    },
    /// A parameter was set.
    Param {
        /// Which.
        name: String,
        /// To what.
        value: f64,
    },
}

/// An entry of the log.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Entry {
    /// Counts from 0.
    pub seq: u64,
    /// Simulated seconds since the start.
    pub t: f64,
    /// Seconds since 1970 by the wall clock; 0 where nobody told the log.
    pub unix: f64,
    /// What happened.
    #[serde(flatten)]
    pub what: What,
}

/// The last entries.
#[derive(Debug, Clone, Default)]
pub struct FlightLog {
    entries: VecDeque<Entry>,
    next: u64,
    /// Seconds since 1970, told by whoever owns a clock.
    pub unix: f64,
}

impl FlightLog {
    /// Adds an entry at simulated time `t`.
    pub fn push(&mut self, t: f64, what: What) {
        if self.entries.len() == KEPT {
            self.entries.pop_front();
        }
        self.entries.push_back(Entry {
            seq: self.next,
            t,
            unix: self.unix,
            what,
        });
        self.next += 1;
    }

    /// The entries from this sequence number on.
    pub fn since(&self, seq: u64) -> impl Iterator<Item = &Entry> {
        let first = self.entries.front().map_or(0, |entry| entry.seq);
        let skip = usize::try_from(seq.saturating_sub(first)).unwrap_or(usize::MAX);
        self.entries.iter().skip(skip)
    }

    /// The sequence number the next entry gets.
    #[must_use]
    pub fn next_seq(&self) -> u64 {
        self.next
    }
}
