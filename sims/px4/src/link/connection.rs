//! The state of the connection: its peer, its streams, and what waits to be sent.
//!
//! Start with [`Link`].

use std::collections::BTreeMap;

use mavlink::dialects::common::MavMessage;

use super::address::{AUTOPILOT, CAMERA, Outgoing, Peer};
use super::{camera, events, files, telemetry, upload};
#[cfg(doc)]
use crate::quirks::Quirk;
use crate::vehicle::{Notice, Vehicle};

/// The state of the MAVLink connection.
#[derive(Debug)]
pub struct Link {
    pub(super) nonce: u64,
    pub(super) peer: Peer,
    /// Per message id: the simulated time at which it is due, and the requested interval.
    pub(super) streams: BTreeMap<u32, Stream>,
    pub(super) upload: Option<upload::Upload>,
    pub(super) fence_items: Vec<crate::mission::Item>,
    pub(super) events: events::Events,
    pub(super) files: files::Files,
    pub(super) outbox: Vec<Outgoing>,
    /// Messages that are sent at a later simulated time.
    pub(super) late: Vec<(f64, Outgoing)>,
    /// Number of acknowledgements that were late.
    pub(super) late_acks: u32,
    pub(super) texts: u16,
    pub(super) silent_until: f64,
    pub(super) received: u64,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Stream {
    pub(super) due: f64,
    pub(super) asked: Option<f64>,
}

/// Message id, interval in seconds, and interval with [`Quirk::SlowStreams`].
pub(super) const STREAMS: &[(u32, f64, f64)] = &[
    (telemetry::HEARTBEAT, 0.1, 1.0),
    (telemetry::SYS_STATUS, 0.1, 1.0),
    (telemetry::GPS_RAW_INT, 0.2, 1.0),
    (telemetry::ATTITUDE, 0.1, 0.1),
    (telemetry::ATTITUDE_QUATERNION, 0.1, 0.1),
    (telemetry::LOCAL_POSITION_NED, 0.05, 0.05),
    (telemetry::GLOBAL_POSITION_INT, 0.05, 0.1),
    (telemetry::MISSION_CURRENT, 0.2, 1.0),
    (telemetry::VFR_HUD, 0.2, 0.5),
    (telemetry::DISTANCE_SENSOR, 0.1, 0.1),
    (telemetry::ALTITUDE, 0.2, 0.5),
    (telemetry::BATTERY_STATUS, 0.1, 2.0),
    (telemetry::HOME_POSITION, 1.0, 1.0),
    (telemetry::EXTENDED_SYS_STATE, 0.1, 1.0),
    (telemetry::RC_CHANNELS, 0.2, 1.0),
    (telemetry::CURRENT_MODE, 2.0, 2.0),
    (camera::HEARTBEAT, 1.0, 1.0),
];

impl Link {
    /// A connection of a vehicle with the uid `nonce`.
    #[must_use]
    pub fn new(nonce: u64) -> Self {
        let idle = Stream {
            due: 0.0,
            asked: None,
        };
        Self {
            nonce,
            peer: Peer {
                system: 0,
                component: 0,
            },
            streams: STREAMS.iter().map(|(id, ..)| (*id, idle)).collect(),
            upload: None,
            fence_items: Vec::new(),
            events: events::Events::default(),
            files: files::Files::default(),
            outbox: Vec::new(),
            late: Vec::new(),
            late_acks: 0,
            texts: 0,
            silent_until: f64::NEG_INFINITY,
            received: 0,
        }
    }

    /// Sends and receives nothing until this simulated time.
    pub fn silence_until(&mut self, time: f64) {
        self.silent_until = time;
    }

    /// Resets all streams when the vehicle's time restarts.
    pub fn reboot(&mut self) {
        *self = Self::new(self.nonce);
    }

    /// Number of messages received.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Adds a heartbeat, whatever is due.
    pub fn beat(&mut self, vehicle: &Vehicle) {
        self.stream(vehicle, telemetry::HEARTBEAT);
    }

    /// Takes the messages to be sent, in order.
    pub fn take(&mut self) -> Vec<Outgoing> {
        std::mem::take(&mut self.outbox)
    }

    pub(super) fn send(&mut self, message: MavMessage) {
        self.send_from(AUTOPILOT, message);
    }

    pub(super) fn send_all(&mut self, messages: Vec<MavMessage>) {
        for message in messages {
            self.send(message);
        }
    }

    pub(super) fn send_from(&mut self, component: u8, message: MavMessage) {
        self.outbox.push(Outgoing { component, message });
    }

    pub(super) fn stream(&mut self, vehicle: &Vehicle, id: u32) {
        if id == camera::HEARTBEAT {
            if vehicle.payload.present {
                self.send_from(CAMERA, camera::heartbeat());
            }
            return;
        }
        self.send_all(telemetry::message(vehicle, self.nonce, id));
    }

    pub(super) fn send_notice(&mut self, notice: Notice) {
        match notice {
            Notice::Text(severity, text) => {
                self.texts = self.texts.wrapping_add(1).max(1);
                self.send_all(telemetry::text(severity, &text, self.texts));
            }
            Notice::Reached(seq) => self.send(telemetry::reached(seq)),
            Notice::Photo(photo) => self.send_from(CAMERA, camera::captured(&photo)),
        }
    }
}
