//! A log of what the vehicle was told and what it did, with times: tests compare a tool's answer with it.
//!
//! Bounded: the oldest entries are dropped first. Start with [`FlightLog`].

use std::collections::VecDeque;

use serde::Serialize;

use crate::{geo::Ned, mode::Mode};

/// Entries kept: more than an hour of setpoints at 20 a second, some tens of megabytes.
const KEPT: usize = 100_000;

/// The acknowledgement of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ack {
    /// Accepted, which does not mean that it will be carried out.
    Accepted,
    /// Not possible now.
    TemporarilyRejected,
    /// Not allowed.
    Denied,
    /// Unknown command.
    Unsupported,
    /// Tried and failed.
    Failed,
}

/// The cause of a mode change or a disarm.
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
    /// The previous mode was completed.
    Completed,
}

/// A logged event.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum What {
    /// An offboard setpoint arrived.
    Setpoint {
        /// Position in metres, if it has one.
        #[serde(skip_serializing_if = "Option::is_none")]
        position: Option<Ned>,
        /// Velocity in metres per second, north east down, if it has one.
        #[serde(skip_serializing_if = "Option::is_none")]
        velocity: Option<Ned>,
        /// Heading in degrees, if it has one.
        #[serde(skip_serializing_if = "Option::is_none")]
        yaw_deg: Option<f64>,
    },
    /// A command arrived and was answered.
    Command {
        /// Its name.
        name: String,
        /// The answer.
        ack: Ack,
    },
    /// The mode changed.
    Mode {
        /// The previous mode.
        from: Mode,
        /// The new mode.
        to: Mode,
        /// The cause.
        cause: Cause,
    },
    /// The vehicle was armed or disarmed.
    Armed {
        /// Whether it is armed now.
        armed: bool,
        /// The cause.
        cause: Cause,
    },
    /// The autopilot sent a status text.
    Text {
        /// MAVLink's severity: 0 emergency to 7 debug.
        severity: u8,
        /// The text.
        text: String,
    },
    /// The vehicle hit an object.
    Collision {
        /// The position of the vehicle.
        position: Ned,
    },
    /// A parameter was set.
    Param {
        /// The parameter's name.
        name: String,
        /// The new value.
        value: f64,
    },
}

/// An entry of the log.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Entry {
    /// Sequence number, from 0.
    pub seq: u64,
    /// Simulated seconds since the start.
    pub t: f64,
    /// Wall clock, seconds since 1970; 0 if no clock was set.
    pub unix: f64,
    /// The event.
    #[serde(flatten)]
    pub what: What,
}

/// The most recent entries.
#[derive(Debug, Clone, Default)]
pub struct FlightLog {
    entries: VecDeque<Entry>,
    next: u64,
    /// Wall clock, seconds since 1970; the owner of a clock sets it.
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

    /// The sequence number of the next entry.
    #[must_use]
    pub fn next_seq(&self) -> u64 {
        self.next
    }
}
