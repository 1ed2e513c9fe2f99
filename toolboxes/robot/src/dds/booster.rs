//! Booster's own messages and numbers, as its SDK 1.6 has them on the wire.

#![allow(missing_docs, reason = "names and fields are the vendor's")]

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::asked::{DdsRequest, OpenRequests, Verdict};
use super::number::float;
use super::participant::{Participant, Publisher};
use crate::ros::error::RosError;

pub const REQUESTS: &str = "/LocoApiTopicReq";
pub const RESPONSES: &str = "/LocoApiTopicResp";
pub const REQUEST: &str = "booster_msgs/msg/RpcReqMsg";
pub const RESPONSE: &str = "booster_msgs/msg/RpcRespMsg";
pub const LOW_STATE: &str = "booster_interface/msg/LowState";
pub const LOW_COMMAND: &str = "booster_interface/msg/LowCmd";
pub const FALL_DOWN: &str = "/fall_down";
pub const FALL_DOWN_STATE: &str = "booster_interface/msg/FallDownState";

/// Numbers of the functions of the K1's motion service.
pub mod api {
    pub const CHANGE_MODE: i64 = 2000;
    pub const MOVE: i64 = 2001;
    pub const ROTATE_HEAD: i64 = 2004;
    pub const WAVE_HAND: i64 = 2005;
    pub const CONTROL_GRIPPER: i64 = 2010;
    pub const DANCE: i64 = 2016;
    pub const GET_MODE: i64 = 2017;
    pub const GET_STATUS: i64 = 2018;
    pub const UPPER_BODY_CUSTOM_CONTROL: i64 = 2030;
    pub const ROTATE_HEAD_WITH_TIME: i64 = 2043;
}

/// A request, or the response to one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RpcMsg {
    pub uuid: String,
    pub header: String,
    pub body: String,
}

/// A joint, as far as it is read here.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MotorState {
    /// Radians.
    #[serde(deserialize_with = "float")]
    pub q: f32,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LowState {
    pub motor_state_serial: Vec<MotorState>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FallDownState {
    /// 0 ready, 1 falling, 2 fallen, 3 getting up.
    pub fall_down_state: u32,
    pub is_recovery_available: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MotorCmd {
    pub mode: i8,
    pub q: f32,
    pub dq: f32,
    pub tau: f32,
    pub kp: f32,
    pub kd: f32,
    pub weight: f32,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LowCmd {
    /// 0 parallel, 1 serial.
    pub cmd_type: i8,
    pub motor_cmd: Vec<MotorCmd>,
}

/// Asks the K1's motion service.
#[derive(Clone)]
pub struct Rpc {
    requests: Publisher<RpcMsg>,
    waiting: OpenRequests,
    timeout: Duration,
}

impl Rpc {
    /// Announces requests and hears responses.
    ///
    /// # Errors
    /// The topics cannot be used.
    pub fn new(participant: &Participant, timeout: Duration) -> Result<Self, RosError> {
        let requests = participant.publish(REQUESTS, REQUEST)?;
        let waiting = OpenRequests::default();
        let answered = waiting.clone();
        participant.subscribe(RESPONSES, RESPONSE, true, move |response: RpcMsg| {
            answered.answered(&response.uuid, verdict(&response));
        })?;
        Ok(Self {
            requests,
            waiting,
            timeout,
        })
    }

    #[must_use]
    pub fn requests(&self) -> &Publisher<RpcMsg> {
        &self.requests
    }

    /// Sends a request and does not wait for its answer. Never blocks.
    ///
    /// # Errors
    /// It could not be sent.
    pub fn send(&self, api_id: i64, body: &Value) -> Result<(), RosError> {
        self.requests.publish(request(api_id, body, false).1)
    }

    /// Sends a request and returns the pending answer. Never blocks.
    ///
    /// # Errors
    /// It could not be sent.
    pub fn ask(&self, api_id: i64, body: &Value) -> Result<DdsRequest, RosError> {
        let (uuid, message) = request(api_id, body, true);
        let what = format!("K1 function {api_id}");
        let asked = self.waiting.expect(uuid, what, REQUESTS.to_owned(), self.timeout);
        self.requests.publish(message)?;
        Ok(asked)
    }
}

fn verdict(response: &RpcMsg) -> Verdict {
    let header: Value = serde_json::from_str(&response.header).unwrap_or_default();
    match header["status"].as_i64().unwrap_or(-1) {
        0 => Ok(serde_json::from_str(&response.body).unwrap_or_default()),
        status => Err((status, meaning(status))),
    }
}

pub(crate) fn request(api_id: i64, body: &Value, expect_response: bool) -> (String, RpcMsg) {
    let uuid = uuid::Uuid::from_u128(fastrand::u128(..)).to_string();
    // The header has the keys of today's SDK and of older firmwares; each robot reads the keys that it knows.
    let header =
        json!({"api_id": api_id, "call_mode": 0, "req_id": uuid, "expect_response": expect_response})
            .to_string();
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    (uuid.clone(), RpcMsg { uuid, header, body })
}

fn meaning(status: i64) -> &'static str {
    match status {
        100 => "the robot's own timeout",
        400 => "bad request",
        409 => "something else is under way",
        429 => "too frequent",
        500 => "internal error of the robot",
        501 => "refused",
        502 => "it cannot change to that state from here",
        _ => "unknown",
    }
}
