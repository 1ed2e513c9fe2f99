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
mod connection;
mod events;
mod file_request;
mod files;
pub mod frame;
mod metadata;
mod setpoints;
mod telemetry;
mod transfer;
mod upload;

pub use address::{AUTOPILOT, CAMERA, Outgoing, Peer, SYSTEM};
pub use connection::Link;
use connection::STREAMS;
use mavlink::{MavHeader, dialects::common::MavMessage};
use setpoints::{global_setpoint, local_setpoint};

use crate::{quirks::Quirk, vehicle::Vehicle};

/// The uid of PX4's own simulation (SITL) as [`SYSTEM`] 1: four and four bytes of "SIMULATIONID".
pub const SITL_UID: u64 = 5_283_920_058_631_409_231;

impl Link {
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
}
