//! Commands and parameters, and their answers.
//!
//! Start with [`Link::run`].

use mavlink::dialects::common::{
    COMMAND_ACK_DATA, COMMAND_INT_DATA, COMMAND_LONG_DATA, MavCmd, MavMessage, MavParamType, MavResult,
    PARAM_REQUEST_READ_DATA, PARAM_SET_DATA, PARAM_VALUE_DATA,
};

use super::address::{AUTOPILOT, CAMERA, Outgoing};
use super::connection::{Link, Stream};
use super::{camera, telemetry};
use crate::{
    log::Ack,
    log::{Cause, What},
    mode::Mode,
    params::Param,
    quirks::Quirk,
    vehicle::{Vehicle, severity},
};

const WAYPOINT_RETURN: u32 = 20;
const LAND: u32 = 21;
const TAKEOFF: u32 = 22;
const SET_MODE: u32 = 176;
const CHANGE_SPEED: u32 = 178;
const TERMINATE: u32 = 185;
const REPOSITION: u32 = 192;
const ARM: u32 = 400;
const RUN_CHECKS: u32 = 401;
const SET_INTERVAL: u32 = 511;
const REQUEST_MESSAGE: u32 = 512;
const REQUEST_CAPABILITIES: u32 = 520;

/// Parameter of a disarm command that also allows it in the air.
const FORCE: f32 = 21196.0;

/// A command from either of MAVLink's two messages.
struct Command {
    id: u32,
    params: [f32; 4],
    /// Latitude and longitude in degrees, if the command has them.
    place: Option<(f64, f64)>,
    alt: f32,
    target: u8,
}

impl Link {
    pub(super) fn command_long(&mut self, vehicle: &mut Vehicle, c: &COMMAND_LONG_DATA) {
        let place = (c.param5.is_finite() && c.param6.is_finite() && (c.param5 != 0.0 || c.param6 != 0.0))
            .then(|| (f64::from(c.param5), f64::from(c.param6)));
        let command = Command {
            id: c.command as u32,
            params: [c.param1, c.param2, c.param3, c.param4],
            place,
            alt: c.param7,
            target: c.target_component,
        };
        self.answer(vehicle, c.command, &command);
    }

    pub(super) fn command_int(&mut self, vehicle: &mut Vehicle, c: &COMMAND_INT_DATA) {
        let has_place = c.x != i32::MAX && c.y != i32::MAX && (c.x != 0 || c.y != 0);
        let command = Command {
            id: c.command as u32,
            params: [c.param1, c.param2, c.param3, c.param4],
            place: has_place.then(|| (f64::from(c.x) / 1e7, f64::from(c.y) / 1e7)),
            alt: c.z,
            target: c.target_component,
        };
        self.answer(vehicle, c.command, &command);
    }

    fn answer(&mut self, vehicle: &mut Vehicle, id: MavCmd, command: &Command) {
        let to_camera = command.target == CAMERA;
        if to_camera && !vehicle.payload.present {
            return;
        }
        let component = if to_camera { CAMERA } else { AUTOPILOT };
        let ack = if to_camera {
            self.run_camera(vehicle, command)
        } else {
            self.run(vehicle, command)
        };
        let message = MavMessage::COMMAND_ACK(COMMAND_ACK_DATA {
            command: id,
            result: match ack {
                Ack::Accepted => MavResult::MAV_RESULT_ACCEPTED,
                Ack::TemporarilyRejected => MavResult::MAV_RESULT_TEMPORARILY_REJECTED,
                Ack::Denied => MavResult::MAV_RESULT_DENIED,
                Ack::Unsupported => MavResult::MAV_RESULT_UNSUPPORTED,
                Ack::Failed => MavResult::MAV_RESULT_FAILED,
            },
            progress: 0,
            result_param2: 0,
            target_system: self.peer.system,
            target_component: self.peer.component,
        });
        if command.id == SET_MODE && vehicle.quirks.has(Quirk::LateModeAcks) {
            self.late_acks += 1;
            let late_s = 0.05 + f64::from(self.late_acks * 149 % 401) / 1000.0;
            self.late
                .push((vehicle.time() + late_s, Outgoing { component, message }));
        } else {
            self.send_from(component, message);
        }
    }

    fn run_camera(&mut self, vehicle: &mut Vehicle, command: &Command) -> Ack {
        // Older requests have one command id per message.
        let message_id = match command.id {
            REQUEST_MESSAGE => command.params[0] as u32,
            521 => 259,
            522 => 260,
            525 => 261,
            527 => 262,
            _ => return camera::command(vehicle, command.id),
        };
        match camera::message(vehicle, message_id) {
            Some(message) => {
                self.send_from(CAMERA, message);
                Ack::Accepted
            }
            None => Ack::Unsupported,
        }
    }

    fn run(&mut self, vehicle: &mut Vehicle, command: &Command) -> Ack {
        let [p1, p2, p3, p4] = command.params;
        match command.id {
            ARM if p1 > 0.5 => vehicle.arm(),
            ARM => vehicle.disarm(p2 == FORCE, Cause::Command),
            TERMINATE if p1 > 0.5 => vehicle.disarm(true, Cause::Command),
            TAKEOFF => vehicle.takeoff(),
            LAND => vehicle.land(),
            WAYPOINT_RETURN => vehicle.set_mode(Mode::Return, Cause::Command),
            SET_MODE => match Mode::from_numbers(p2 as u8, p3 as u8) {
                Some(mode) => vehicle.set_mode(mode, Cause::Command),
                None => Ack::Denied,
            },
            REPOSITION => {
                let alt = command.alt.is_finite().then(|| f64::from(command.alt));
                let yaw = p4.is_finite().then(|| f64::from(p4));
                vehicle.reposition(command.place, alt, yaw)
            }
            CHANGE_SPEED => Ack::Accepted,
            RUN_CHECKS => {
                let report = self.events.report(vehicle);
                self.send_all(report);
                Ack::Accepted
            }
            SET_INTERVAL => self.set_interval(vehicle, p1 as u32, f64::from(p2)),
            REQUEST_CAPABILITIES => self.request(vehicle, telemetry::AUTOPILOT_VERSION),
            REQUEST_MESSAGE => self.request(vehicle, p1 as u32),
            _ => Ack::Unsupported,
        }
    }

    fn request(&mut self, vehicle: &Vehicle, id: u32) -> Ack {
        let messages = telemetry::message(vehicle, self.nonce, id);
        if messages.is_empty() {
            return Ack::Denied;
        }
        self.send_all(messages);
        Ack::Accepted
    }

    fn set_interval(&mut self, vehicle: &Vehicle, id: u32, microseconds: f64) -> Ack {
        let Some(stream) = self.streams.get_mut(&id) else {
            return Ack::Denied;
        };
        // 0 requests the default interval, a negative number none.
        let rate = if microseconds == 0.0 {
            None
        } else if microseconds < 0.0 {
            Some(f64::INFINITY)
        } else {
            Some((microseconds / 1e6).max(0.01))
        };
        *stream = Stream {
            due: vehicle.time(),
            asked: rate,
        };
        Ack::Accepted
    }

    pub(super) fn param_set(&mut self, vehicle: &mut Vehicle, set: &PARAM_SET_DATA) {
        let name = set.param_id.to_str().unwrap_or_default().to_owned();
        let value = match set.param_type {
            MavParamType::MAV_PARAM_TYPE_INT32 => Param::Int(set.param_value.to_bits().cast_signed()),
            _ => Param::Float(set.param_value),
        };
        match vehicle.params.set(&name, value) {
            Ok(()) => {
                let number = match value {
                    Param::Int(value) => f64::from(value),
                    Param::Float(value) => f64::from(value),
                };
                let time = vehicle.time();
                vehicle.log.push(
                    time,
                    What::Param {
                        name: name.clone(),
                        value: number,
                    },
                );
            }
            Err(error) => vehicle.say(severity::WARNING, format!("[pm] {error}")),
        }
        self.send_param(vehicle, &name);
    }

    pub(super) fn param_read(&mut self, vehicle: &mut Vehicle, read: &PARAM_REQUEST_READ_DATA) {
        let by_index = usize::try_from(read.param_index)
            .ok()
            .and_then(|index| vehicle.params.iter().nth(index).map(|(name, _)| name.to_owned()));
        let name = by_index.unwrap_or_else(|| read.param_id.to_str().unwrap_or_default().to_owned());
        if vehicle.params.get(&name).is_none() {
            vehicle.say(severity::WARNING, format!("[pm] unknown param: {name}"));
        }
        self.send_param(vehicle, &name);
    }

    pub(super) fn param_list(&mut self, vehicle: &Vehicle) {
        let names: Vec<_> = vehicle.params.iter().map(|(name, _)| name).collect();
        for name in names {
            self.send_param(vehicle, name);
        }
    }

    fn send_param(&mut self, vehicle: &Vehicle, name: &str) {
        let (Some(value), Some(index)) = (vehicle.params.get(name), vehicle.params.index(name)) else {
            return;
        };
        let (param_value, param_type) = match value {
            Param::Int(value) => (
                f32::from_bits(value.cast_unsigned()),
                MavParamType::MAV_PARAM_TYPE_INT32,
            ),
            Param::Float(value) => (value, MavParamType::MAV_PARAM_TYPE_REAL32),
        };
        self.send(MavMessage::PARAM_VALUE(PARAM_VALUE_DATA {
            param_value,
            param_count: vehicle.params.iter().len() as u16,
            param_index: index as u16,
            param_id: name.into(),
            param_type,
        }));
    }
}
