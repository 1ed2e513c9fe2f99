//! Unitree's own messages and numbers, as its SDK has them on the wire.

#![allow(missing_docs, reason = "names and fields are the vendor's")]

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::asked::{DdsRequest, OpenRequests, Verdict};
use super::number::float;
use super::participant::{Participant, Publisher};
use crate::ros::error::RosError;

pub const REQUEST: &str = "unitree_api/msg/Request";
pub const RESPONSE: &str = "unitree_api/msg/Response";
pub const LOW_COMMAND: &str = "unitree_hg/msg/LowCmd";
pub const LOW_STATE: &str = "unitree_hg/msg/LowState";
pub const HAND_COMMAND: &str = "unitree_hg/msg/HandCmd";
pub const SPORT_MODE_STATE: &str = "unitree_go/msg/SportModeState";

/// Numbers of the functions of the services `sport` and `arm`.
pub mod api {
    pub const GET_FSM_ID: i64 = 7001;
    pub const SET_FSM_ID: i64 = 7101;
    pub const SET_VELOCITY: i64 = 7105;
    pub const ARM_ACTION: i64 = 7106;
}

/// Numbers of the functions of a Go2's service `sport`.
pub mod go2 {
    pub const DAMP: i64 = 1001;
    pub const BALANCE_STAND: i64 = 1002;
    pub const STOP_MOVE: i64 = 1003;
    pub const STAND_UP: i64 = 1004;
    pub const STAND_DOWN: i64 = 1005;
    pub const RECOVERY_STAND: i64 = 1006;
    pub const MOVE: i64 = 1008;
    pub const HELLO: i64 = 1016;
    pub const STRETCH: i64 = 1017;
    pub const HEART: i64 = 1036;
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RequestIdentity {
    pub id: i64,
    pub api_id: i64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RequestPolicy {
    pub noreply: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RequestHeader {
    pub identity: RequestIdentity,
    pub policy: RequestPolicy,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Request {
    pub header: RequestHeader,
    pub parameter: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ResponseStatus {
    pub code: i32,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ResponseHeader {
    pub identity: RequestIdentity,
    pub status: ResponseStatus,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Response {
    pub header: ResponseHeader,
    pub data: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MotorCmd {
    pub mode: u8,
    pub q: f32,
    pub dq: f32,
    pub tau: f32,
    pub kp: f32,
    pub kd: f32,
    pub reserve: u32,
}

/// The motors of a command.
pub const MOTORS: usize = 35;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LowCmd {
    pub mode_pr: u8,
    pub mode_machine: u8,
    pub motor_cmd: Vec<MotorCmd>,
    pub reserve: [u32; 4],
    pub crc: u32,
}

impl Default for LowCmd {
    fn default() -> Self {
        Self {
            mode_pr: 0,
            mode_machine: 0,
            motor_cmd: vec![MotorCmd::default(); MOTORS],
            reserve: [0; 4],
            crc: 0,
        }
    }
}

impl LowCmd {
    /// The command with its checksum.
    #[must_use]
    pub fn sealed(mut self) -> Self {
        self.crc = self.checksum();
        self
    }

    /// The checksum of the vendor's C struct without its last field.
    #[must_use]
    pub fn checksum(&self) -> u32 {
        let mut bytes = Vec::with_capacity(1000);
        bytes.extend([self.mode_pr, self.mode_machine, 0, 0]);
        for motor in &self.motor_cmd {
            bytes.extend([motor.mode, 0, 0, 0]);
            for value in [motor.q, motor.dq, motor.tau, motor.kp, motor.kd] {
                bytes.extend(value.to_le_bytes());
            }
            bytes.extend(motor.reserve.to_le_bytes());
        }
        for word in self.reserve {
            bytes.extend(word.to_le_bytes());
        }
        checksum(&bytes)
    }
}

/// CRC-32, polynomial 0x04C11DB7, from all ones, each little-endian word from its highest bit, not reflected, not
/// inverted at the end. Trailing bytes that make no word are left out.
#[must_use]
pub fn checksum(bytes: &[u8]) -> u32 {
    bytes.chunks_exact(4).fold(u32::MAX, |crc, word| {
        let word = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
        (0..32).rev().fold(crc, |crc, bit| {
            let differs = (crc >> 31) ^ (word >> bit) & 1 == 1;
            (crc << 1) ^ if differs { 0x04C1_1DB7 } else { 0 }
        })
    })
}

/// A motor, as far as it is read here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
pub struct MotorState {
    /// Radians.
    #[serde(deserialize_with = "float")]
    pub q: f32,
    #[serde(deserialize_with = "float")]
    pub tau_est: f32,
    pub temperature: [i16; 2],
    #[serde(deserialize_with = "float")]
    pub vol: f32,
    pub motorstate: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct LowState {
    pub mode_machine: u8,
    pub motor_state: Vec<MotorState>,
}

/// What a Go2 says of its orientation.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct Go2Imu {
    /// Radians.
    pub rpy: [f32; 3],
}

/// What a Go2 says of where it is, and how fast.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct SportModeState {
    pub imu_state: Go2Imu,
    /// Metres, counted from where it was switched on.
    pub position: [f32; 3],
    /// Metres a second.
    pub velocity: [f32; 3],
    /// Radians a second.
    pub yaw_speed: f32,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct HandCmd {
    pub motor_cmd: Vec<MotorCmd>,
}

/// Asks one of the services of a G1 or a Go2.
#[derive(Clone)]
pub struct Rpc {
    service: &'static str,
    requests: Publisher<Request>,
    /// Whether the robot's answers are heard.
    heard: Arc<dyn Fn() -> bool + Send + Sync>,
    waiting: OpenRequests,
    next: Arc<AtomicI64>,
    timeout: Duration,
}

impl Rpc {
    /// Announces requests and hears responses of a service: `sport`, `arm`.
    ///
    /// # Errors
    /// The topics cannot be used.
    pub fn new(
        participant: &Participant,
        service: &'static str,
        timeout: Duration,
    ) -> Result<Self, RosError> {
        let requests = participant.publish(&format!("/api/{service}/request"), REQUEST)?;
        let waiting = OpenRequests::default();
        let answered = waiting.clone();
        let deliver = move |response: Response| {
            answered.answered(&response.header.identity.id.to_string(), verdict(&response));
        };
        let answers = format!("/api/{service}/response");
        participant.subscribe(&answers, RESPONSE, true, deliver)?;
        Ok(Self {
            service,
            requests,
            heard: Arc::new(participant.hears(&answers, RESPONSE)?),
            waiting,
            // The ids differ from those of another process that asks the same robot.
            next: Arc::new(AtomicI64::new(fastrand::i64(1 << 40..1 << 60))),
            timeout,
        })
    }

    /// Whether the robot hears requests and we hear its answers. Before that, a request or an answer may be lost.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.requests.is_ready() && (self.heard)()
    }

    #[must_use]
    pub fn requests(&self) -> &Publisher<Request> {
        &self.requests
    }

    fn next_id(&self) -> i64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Sends a request and does not wait for its answer. Never blocks.
    ///
    /// # Errors
    /// It could not be sent.
    pub fn send(&self, api_id: i64, parameter: &Value) -> Result<(), RosError> {
        self.requests
            .publish(request(self.next_id(), api_id, parameter, true))
    }

    /// Sends a request and returns the pending answer. Never blocks.
    ///
    /// # Errors
    /// It could not be sent.
    pub fn ask(&self, api_id: i64, parameter: &Value) -> Result<DdsRequest, RosError> {
        let request = request(self.next_id(), api_id, parameter, false);
        let asked = self.waiting.expect(
            request.header.identity.id.to_string(),
            format!("Unitree {} function {api_id}", self.service),
            format!("/api/{}/request", self.service),
            self.timeout,
        );
        self.requests.publish(request)?;
        Ok(asked)
    }
}

/// A request of a service.
pub(crate) fn request(id: i64, api_id: i64, parameter: &Value, noreply: bool) -> Request {
    Request {
        header: RequestHeader {
            identity: RequestIdentity { id, api_id },
            policy: RequestPolicy { noreply },
        },
        parameter: parameter.to_string(),
    }
}

fn verdict(response: &Response) -> Verdict {
    match response.header.status.code {
        0 => Ok(serde_json::from_str(&response.data).unwrap_or_default()),
        code => Err((code.into(), meaning(code))),
    }
}

fn meaning(code: i32) -> &'static str {
    match code {
        3103 => "not registered",
        3104 => "the robot's own timeout",
        3202 => "internal error of the robot",
        3203 => "not implemented by this firmware",
        3204 => "wrong parameter",
        3205..=3207 => "another client holds the lease",
        7301 => "not available in the robot's state: stand it up and start its motion control",
        7302 => "no such state",
        7303 => "no such task",
        7400 => "the arms are busy: a gesture runs, or they are driven over arm_sdk",
        7401 => "the arms hold another action",
        7402 => "no such action",
        7404 => "not in this state: start the robot's motion control",
        _ => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition of the algorithm, a bit at a time as the vendor writes it, as an independent second opinion.
    fn as_defined(words: &[u32]) -> u32 {
        let mut crc = 0xFFFF_FFFFu32;
        for &word in words {
            let mut bit = 1u32 << 31;
            for _ in 0..32 {
                crc = if crc & 0x8000_0000 == 0 {
                    crc << 1
                } else {
                    (crc << 1) ^ 0x04C1_1DB7
                };
                if word & bit != 0 {
                    crc ^= 0x04C1_1DB7;
                }
                bit >>= 1;
            }
        }
        crc
    }

    #[test]
    fn the_checksum_is_the_one_of_the_definition() {
        for words in [
            vec![],
            vec![0],
            vec![1],
            vec![0xDEAD_BEEF, 7],
            (0..250u32).map(|n| n.wrapping_mul(0x9E37_79B9)).collect(),
        ] {
            let bytes: Vec<u8> = words.iter().flat_map(|word: &u32| word.to_le_bytes()).collect();
            assert_eq!(checksum(&bytes), as_defined(&words), "{words:x?}");
        }
        // CRC-32/MPEG-2 of "123456789" is 0x0376E6E7; here of its first eight bytes, word by word from the highest bit.
        assert_eq!(checksum(b"43218765"), as_defined(&[0x3132_3334, 0x3536_3738]));
    }

    #[test]
    fn a_command_is_250_words_and_its_checksum() {
        let empty = LowCmd::default();
        assert_eq!(empty.checksum(), checksum(&[0; 1000]));
        let mut moved = LowCmd::default();
        moved.motor_cmd[34].kd = 1.5;
        assert_ne!(moved.checksum(), empty.checksum());
        let sealed = moved.clone().sealed();
        assert_eq!(sealed.crc, moved.checksum());
        assert_eq!(moved.motor_cmd.len(), MOTORS);
    }
}
