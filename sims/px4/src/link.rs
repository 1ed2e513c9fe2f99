//! The vehicle's MAVLink interface: messages in, messages out, no sockets and only the vehicle's clock.
//!
//! Answers the requests that mavsdk_server sends to a PX4 vehicle and to a MAVLink camera; all others get MAVLink's
//! "unsupported". Start with [`Link`].

#![allow(
    deprecated,
    reason = "mavsdk_server sends messages that MAVLink has superseded, and the vehicle has to know them"
)]

mod address;
mod camera;
mod commands;
mod events;
mod file_request;
mod files;
pub mod frame;
mod metadata;
mod telemetry;
mod transfer;
mod upload;

use std::collections::BTreeMap;

pub use address::{AUTOPILOT, CAMERA, Outgoing, Peer, SYSTEM};
use mavlink::{MavHeader, dialects::common::MavMessage};

use crate::{
    quirks::Quirk,
    vehicle::{Notice, Setpoint, Vehicle},
};

/// The uid of PX4's own simulation (SITL) as [`SYSTEM`] 1: four and four bytes of "SIMULATIONID".
pub const SITL_UID: u64 = 5_283_920_058_631_409_231;

/// The state of the MAVLink connection.
#[derive(Debug)]
pub struct Link {
    nonce: u64,
    peer: Peer,
    /// Per message id: the simulated time at which it is due, and the requested interval.
    streams: BTreeMap<u32, Stream>,
    upload: Option<upload::Upload>,
    fence_items: Vec<crate::mission::Item>,
    events: events::Events,
    files: files::Files,
    outbox: Vec<Outgoing>,
    /// Messages that are sent at a later simulated time.
    late: Vec<(f64, Outgoing)>,
    /// Number of acknowledgements that were late.
    late_acks: u32,
    texts: u16,
    silent_until: f64,
    received: u64,
}

#[derive(Debug, Clone, Copy)]
struct Stream {
    due: f64,
    asked: Option<f64>,
}

/// Message id, interval in seconds, and interval with [`Quirk::SlowStreams`].
const STREAMS: &[(u32, f64, f64)] = &[
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

    /// Handles a message; [`Link::take`] returns the answers.
    pub fn handle(&mut self, vehicle: &mut Vehicle, header: MavHeader, message: &MavMessage) {
        if vehicle.time() < self.silent_until {
            return;
        }
        self.received += 1;
        self.peer = Peer {
            system: u8::try_from(header.system_id).unwrap_or(0),
            component: header.component_id,
        };
        match message {
            MavMessage::HEARTBEAT(_) => vehicle.hear_station(),
            MavMessage::COMMAND_LONG(command) => self.command_long(vehicle, command),
            MavMessage::COMMAND_INT(command) => self.command_int(vehicle, command),
            MavMessage::SET_POSITION_TARGET_LOCAL_NED(target) => local_setpoint(vehicle, target),
            MavMessage::SET_POSITION_TARGET_GLOBAL_INT(target) => global_setpoint(vehicle, target),
            MavMessage::PARAM_SET(set) => self.param_set(vehicle, set),
            MavMessage::PARAM_REQUEST_READ(read) => self.param_read(vehicle, read),
            MavMessage::PARAM_REQUEST_LIST(_) => self.param_list(vehicle),
            MavMessage::TIMESYNC(sync) if sync.tc1 == 0 => {
                self.send(telemetry::timesync(vehicle, sync.ts1, self.peer));
            }
            MavMessage::PING(ping) if ping.target_system == 0 => {
                self.send(telemetry::pong(ping, self.peer));
            }
            MavMessage::FILE_TRANSFER_PROTOCOL(request) => self.file_request(vehicle, request),
            MavMessage::REQUEST_EVENT(request) => {
                let events = self.events.again(request, self.peer);
                self.send_all(events);
            }
            message => self.transfer(vehicle, message),
        }
    }

    /// Adds the messages that are due at the vehicle's time.
    pub fn poll(&mut self, vehicle: &mut Vehicle) {
        let now = vehicle.time();
        self.retry_upload(now);
        let due = self.late.extract_if(.., |(at, _)| *at <= now);
        self.outbox.extend(due.map(|(_, message)| message));
        let slow = vehicle.quirks.has(Quirk::SlowStreams);
        for (id, fast, slowly) in STREAMS {
            let usual = if slow { *slowly } else { *fast };
            let Some(stream) = self.streams.get_mut(id) else {
                continue;
            };
            let interval = stream.asked.unwrap_or(usual);
            if !interval.is_finite() || now < stream.due {
                continue;
            }
            stream.due = (stream.due + interval).max(now);
            self.stream(vehicle, *id);
        }
        let events = self.events.poll(vehicle);
        self.send_all(events);
        for notice in vehicle.take_notices() {
            self.send_notice(notice);
        }
        if now < self.silent_until {
            self.outbox.clear();
        }
    }

    /// Adds a heartbeat, whatever is due.
    pub fn beat(&mut self, vehicle: &Vehicle) {
        self.stream(vehicle, telemetry::HEARTBEAT);
    }

    /// Takes the messages to be sent, in order.
    pub fn take(&mut self) -> Vec<Outgoing> {
        std::mem::take(&mut self.outbox)
    }

    fn send(&mut self, message: MavMessage) {
        self.send_from(AUTOPILOT, message);
    }

    fn send_all(&mut self, messages: Vec<MavMessage>) {
        for message in messages {
            self.send(message);
        }
    }

    fn send_from(&mut self, component: u8, message: MavMessage) {
        self.outbox.push(Outgoing { component, message });
    }

    fn stream(&mut self, vehicle: &Vehicle, id: u32) {
        if id == camera::HEARTBEAT {
            if vehicle.payload.present {
                self.send_from(CAMERA, camera::heartbeat());
            }
            return;
        }
        self.send_all(telemetry::message(vehicle, self.nonce, id));
    }

    fn send_notice(&mut self, notice: Notice) {
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

/// Bits of a setpoint's type mask: which parts are ignored.
mod ignore {
    pub(super) const POSITION: u16 = 0x007;
    pub(super) const VELOCITY: u16 = 0x038;
    pub(super) const YAW: u16 = 0x400;
    pub(super) const YAW_RATE: u16 = 0x800;
}

/// Frames relative to the body: forward, right, down.
const BODY_FRAMES: [u32; 3] = [8, 9, 12];

fn local_setpoint(vehicle: &mut Vehicle, t: &mavlink::dialects::common::SET_POSITION_TARGET_LOCAL_NED_DATA) {
    let mask = t.type_mask.bits();
    let body = BODY_FRAMES.contains(&(t.coordinate_frame as u32));
    let velocity = [f64::from(t.vx), f64::from(t.vy), f64::from(t.vz)];
    let place = [f64::from(t.x), f64::from(t.y), f64::from(t.z)];
    let yaw = (mask & ignore::YAW == 0 && t.yaw.is_finite()).then(|| f64::from(t.yaw));
    let yaw_rate = if mask & ignore::YAW_RATE == 0 && t.yaw_rate.is_finite() {
        f64::from(t.yaw_rate)
    } else {
        0.0
    };
    let moves = mask & ignore::VELOCITY == 0;
    let setpoint = if mask & ignore::POSITION == 0 {
        Setpoint::Position {
            place,
            velocity: moves.then_some(velocity),
            yaw,
        }
    } else if !moves {
        return;
    } else if body {
        Setpoint::BodyVelocity { velocity, yaw_rate }
    } else {
        Setpoint::Velocity {
            velocity,
            yaw,
            yaw_rate,
        }
    };
    take_finite(vehicle, setpoint);
}

fn global_setpoint(
    vehicle: &mut Vehicle,
    t: &mavlink::dialects::common::SET_POSITION_TARGET_GLOBAL_INT_DATA,
) {
    if t.type_mask.bits() & ignore::POSITION != 0 {
        return;
    }
    let (north, east) = vehicle
        .home
        .to_local(f64::from(t.lat_int) / 1e7, f64::from(t.lon_int) / 1e7);
    // Frames 0 and 5 carry altitudes above sea level, the others above home.
    let above_sea = matches!(t.coordinate_frame as u32, 0 | 5);
    let height = if above_sea {
        f64::from(t.alt) - vehicle.home.alt
    } else {
        f64::from(t.alt) + vehicle.home_amsl() - vehicle.home.alt
    };
    let yaw = (t.type_mask.bits() & ignore::YAW == 0 && t.yaw.is_finite()).then(|| f64::from(t.yaw));
    let place = [north, east, -height];
    take_finite(
        vehicle,
        Setpoint::Position {
            place,
            velocity: None,
            yaw,
        },
    );
}

/// PX4 drops a setpoint that contains NaN or infinity.
fn take_finite(vehicle: &mut Vehicle, setpoint: Setpoint) {
    let numbers = match setpoint {
        Setpoint::Position { place, .. } => place,
        Setpoint::Velocity { velocity, .. } | Setpoint::BodyVelocity { velocity, .. } => velocity,
    };
    if numbers.iter().all(|number| number.is_finite()) {
        vehicle.take_setpoint(setpoint);
    }
}
