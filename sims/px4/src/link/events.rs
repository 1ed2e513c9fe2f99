//! Arming checks as events: ids and packed arguments, whose texts are in [`super::metadata`].
//!
//! A report is a summary, an event for each failing check, and a second summary. Events have sequence numbers, so that
//! a listener detects a lost event and requests it. Start with [`Events::poll`].

use std::collections::VecDeque;

use mavlink::dialects::common::{
    CURRENT_EVENT_SEQUENCE_DATA, EVENT_DATA, MavEventCurrentSequenceFlags, MavEventErrorReason, MavMessage,
    REQUEST_EVENT_DATA, RESPONSE_EVENT_ERROR_DATA,
};

use super::address::{AUTOPILOT, Peer};
use crate::{
    mode::Mode,
    vehicle::{
        Vehicle,
        checks::{Bars, Check, PARTS},
    },
};

/// The event that starts a report.
pub(super) const ARMING_SUMMARY: &str = "commander_arming_check_summary";
/// The event that ends a report.
pub(super) const HEALTH_SUMMARY: &str = "commander_health_summary";

/// PX4's number and name of each flight mode; reports have a bit for each.
pub(super) const NAV_STATES: &[(Mode, u8, &str)] = &[
    (Mode::Manual, 0, "manual"),
    (Mode::Altctl, 1, "altctl"),
    (Mode::Posctl, 2, "posctl"),
    (Mode::Mission, 3, "mission"),
    (Mode::Hold, 4, "loiter"),
    (Mode::Return, 5, "rtl"),
    (Mode::Acro, 10, "acro"),
    (Mode::Offboard, 14, "offboard"),
    (Mode::Stabilized, 15, "stab"),
    (Mode::Takeoff, 17, "takeoff"),
    (Mode::Land, 18, "land"),
    (Mode::Follow, 19, "follow_target"),
];

/// The sequence number before the first event, as in PX4, so that it soon wraps, so that it soon wraps.
const FIRST: u16 = u16::MAX - 10;
/// Number of events that can be requested again.
const KEPT: usize = 35;
/// Shortest interval between reports of a change, seconds.
const REPORT_S: f64 = 2.0;
/// Interval at which the sequence number is sent, seconds.
const COUNT_S: f64 = 3.0;
/// Log level of an event for programs.
const PROTOCOL: u8 = 8;

/// The part of an event's id that follows from its name: 24 bits of FNV-1a.
pub(super) fn sub_id(name: &str) -> u32 {
    let hash = name.bytes().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    hash & 0x00ff_ffff
}

/// The failing checks.
#[derive(Debug, PartialEq, Eq)]
struct Report(Vec<&'static Check>);

/// The sent events and the last report.
#[derive(Debug)]
pub(super) struct Events {
    sequence: u16,
    kept: VecDeque<EVENT_DATA>,
    reported: Option<Report>,
    reported_at: f64,
    counted_at: f64,
}

impl Default for Events {
    fn default() -> Self {
        Self {
            sequence: FIRST,
            kept: VecDeque::new(),
            reported: None,
            reported_at: f64::NEG_INFINITY,
            counted_at: f64::NEG_INFINITY,
        }
    }
}

impl Events {
    /// The messages that are due: the sequence number, and a report after a change.
    pub(super) fn poll(&mut self, vehicle: &Vehicle) -> Vec<MavMessage> {
        let now = vehicle.time();
        let mut messages = Vec::new();
        if now - self.counted_at >= COUNT_S {
            self.counted_at = now;
            messages.push(self.count());
        }
        if now - self.reported_at >= REPORT_S && self.reported.as_ref() != Some(&Report::of(vehicle)) {
            messages.extend(self.report(vehicle));
        }
        messages
    }

    /// A report on the present state of all checks.
    pub(super) fn report(&mut self, vehicle: &Vehicle) -> Vec<MavMessage> {
        let report = Report::of(vehicle);
        let mut events = vec![report.arming_summary()];
        events.extend(report.0.iter().map(|check| failure(check)));
        events.push(report.health_summary());
        (self.reported, self.reported_at) = (Some(report), vehicle.time());
        events
            .into_iter()
            .map(|event| self.number(event, vehicle))
            .collect()
    }

    /// The events of a request, or for each that is gone the error that says so.
    pub(super) fn again(&self, request: &REQUEST_EVENT_DATA, peer: Peer) -> Vec<MavMessage> {
        if ![0, AUTOPILOT].contains(&request.target_component) {
            return Vec::new();
        }
        let count = request.last_sequence.wrapping_sub(request.first_sequence);
        let wanted = (0..=count)
            .take(KEPT)
            .map(|i| request.first_sequence.wrapping_add(i));
        wanted.map(|sequence| self.find(sequence, peer)).collect()
    }

    fn find(&self, sequence: u16, peer: Peer) -> MavMessage {
        if let Some(event) = self.kept.iter().find(|event| event.sequence == sequence) {
            return MavMessage::EVENT(event.clone());
        }
        MavMessage::RESPONSE_EVENT_ERROR(RESPONSE_EVENT_ERROR_DATA {
            sequence,
            sequence_oldest_available: self.kept.front().map_or(self.sequence, |event| event.sequence),
            target_system: peer.system,
            target_component: peer.component,
            reason: MavEventErrorReason::MAV_EVENT_ERROR_REASON_UNAVAILABLE,
        })
    }

    fn count(&self) -> MavMessage {
        MavMessage::CURRENT_EVENT_SEQUENCE(CURRENT_EVENT_SEQUENCE_DATA {
            sequence: self.sequence,
            flags: if self.kept.is_empty() {
                MavEventCurrentSequenceFlags::MAV_EVENT_CURRENT_SEQUENCE_FLAGS_RESET
            } else {
                MavEventCurrentSequenceFlags::empty()
            },
        })
    }

    fn number(&mut self, event: EVENT_DATA, vehicle: &Vehicle) -> MavMessage {
        self.sequence = self.sequence.wrapping_add(1);
        let event = EVENT_DATA {
            event_time_boot_ms: vehicle.boot_ms(),
            sequence: self.sequence,
            ..event
        };
        if self.kept.len() == KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back(event.clone());
        MavMessage::EVENT(event)
    }
}

impl Report {
    fn of(vehicle: &Vehicle) -> Self {
        Self(vehicle.failing_checks())
    }

    fn arming_summary(&self) -> EVENT_DATA {
        let can_arm = self.modes(|check| check.bars != Bars::Nothing);
        let can_run = self.modes(|check| check.bars == Bars::Flight);
        let needs = |check: &Check| !check.health;
        event(ARMING_SUMMARY, PROTOCOL)
            .with(&[0])
            .with(&self.parts(0..=3, needs).to_le_bytes())
            .with(&self.parts(4..=4, needs).to_le_bytes())
            .with(&can_arm.to_le_bytes())
            .with(&can_run.to_le_bytes())
            .data
    }

    fn health_summary(&self) -> EVENT_DATA {
        let present = PARTS.iter().skip(1).fold(0, |bits, (part, ..)| bits | bit(*part));
        let broken = |check: &Check| check.health;
        event(HEALTH_SUMMARY, PROTOCOL)
            .with(&[0])
            .with(&present.to_le_bytes())
            .with(&self.parts(0..=3, broken).to_le_bytes())
            .with(&self.parts(4..=4, broken).to_le_bytes())
            .data
    }

    /// The modes that are not concerned by any failing check that `bars` selects.
    fn modes(&self, bars: impl Fn(&Check) -> bool) -> u32 {
        modes_where(|mode| !self.0.iter().any(|check| bars(check) && check.concerns(mode)))
    }

    /// The components of the failing checks at these levels that `counts` selects.
    fn parts(&self, levels: std::ops::RangeInclusive<u8>, counts: impl Fn(&Check) -> bool) -> u32 {
        let failing = self.0.iter();
        failing
            .filter(|check| counts(check) && levels.contains(&check.severity))
            .fold(0, |bits, check| bits | bit(check.part))
    }
}

fn failure(check: &Check) -> EVENT_DATA {
    let modes = modes_where(|mode| check.concerns(mode));
    let event_data = event(check.name, check.severity)
        .with(&modes.to_le_bytes())
        .with(&[check.part]);
    if check.is_numbered() {
        event_data.with(&[0]).data
    } else {
        event_data.data
    }
}

fn modes_where(holds: impl Fn(Mode) -> bool) -> u32 {
    let modes = NAV_STATES.iter().filter(|(mode, ..)| holds(*mode));
    modes.fold(0, |bits, (_, number, _)| bits | bit(*number))
}

fn bit(number: u8) -> u32 {
    1 << number
}

/// An event with its arguments packed little-endian without gaps.
struct PackedEvent {
    data: EVENT_DATA,
    length: usize,
}

/// An event of the autopilot for every receiver, with the same external and internal level.
fn event(name: &str, level: u8) -> PackedEvent {
    PackedEvent {
        data: EVENT_DATA {
            id: u32::from(AUTOPILOT) << 24 | sub_id(name),
            log_levels: level << 4 | level,
            ..EVENT_DATA::DEFAULT
        },
        length: 0,
    }
}

impl PackedEvent {
    fn with(mut self, argument: &[u8]) -> Self {
        let end = self.length + argument.len();
        self.data.arguments[self.length..end].copy_from_slice(argument);
        self.length = end;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_numbered_as_px4_numbers_them() {
        // PX4 SITL sends 26788467, which is this id with component 1.
        assert_eq!(sub_id("check_modes_global_pos"), 10_011_251);
        assert_eq!(event("check_modes_global_pos", 3).data.id, 26_788_467);
    }
}
