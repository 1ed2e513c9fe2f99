//! What an action of a plan does, with the words of its tool.
//!
//! Owns how a step is written as a plan's action name and params. The words (a pose, a direction, a person) are
//! looked up when the action runs, because their meaning may change until then: `resolve` adds the numbers. Read
//! [`Step`].

use ovos_toolbox_sdk::wire::Object;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::capability::BusName;
use crate::spot::Spot;
use crate::subsystem::Subsystem;

/// The name of an action and its params: the variant is the name, in snake case. A variant with several names does
/// the same on several parts, and a plan names the part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(
    missing_docs,
    reason = "the fields are the tools' arguments, which describe them"
)]
pub enum Step {
    /// Waves the arm.
    Wave { style: String },
    /// Moves an arm, the gantry or the lift to its part of a pose.
    MoveToPose { pose: String, speed: f64 },
    /// Moves joints to angles, or a hand above a thing.
    MoveToPosition(Where),
    /// Points the head: at a word or a name, or at degrees to the left and, after a comma, upwards.
    LookAt { target: String },
    /// Nods or shakes the head.
    Nod { r#type: String, intensity: String },
    /// Shows an emotion with an arm or the head.
    #[serde(rename = "arms_gesture", alias = "head_gesture")]
    Gesture { emotion: String, intensity: String },
    /// Points an arm at a person or at degrees to the left; with `nearer` the arm on that side, which goes home afterwards.
    Point {
        target: String,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        nearer: bool,
    },
    /// Opens or closes a gripper.
    Gripper { action: Grip },
    /// Moves the hand to the thing.
    Approach { target: String },
    /// Closes the gripper gently, and makes sure that it holds something where the robot can tell.
    Grasp { action: Grip, force: f64 },
    /// Lifts the thing in the hand, or moves the lift.
    Lift(LiftStep),
    /// Lowers the hand to the place.
    Lower { target: String, height: f64 },
    /// Moves the hand away from the place.
    Retract { target: String },
    /// Drives a distance in metres, or turns by degrees.
    BaseMove {
        direction: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        distance: Option<f64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        degrees: Option<f64>,
    },
    /// Drives for a time.
    Walk {
        direction: String,
        speed: f64,
        duration: f64,
    },
    /// Turns on the spot.
    BaseRotate(Heading),
    /// Remembers where the base stands, or where a hand is.
    RememberPlace { place: String },
    /// Drives the base to a remembered place.
    GoToPlace { place: String },
    /// Drives the base to a point of the frame in which it finds its way.
    NavigateTo(Spot),
    /// Reads what the robot tells of itself.
    Read { what: Reading },
    /// Does one of the robot's own actions or services.
    Own {
        name: String,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        still: bool,
    },
    /// Gives the robot to a program of its owner for so many seconds.
    RunPolicy { policy: String, seconds: f64 },
    /// Shows what a camera sees.
    Look { camera: String },
    /// Reads the remembered places.
    ListPlaces {},
    /// Forgets a place.
    ForgetPlace { place: String },
    /// An arm's or the head's part of a dance.
    #[serde(rename = "dance_sequence", alias = "head_bob")]
    Dance { style: String, duration: f64 },
    /// Makes sure that the base stands still.
    Stop {},
    /// Remembers whether gestures go with speech.
    SetFlag { enabled: bool, style: String },
    /// Remembers how to look for fire.
    SetSafety {
        enabled: bool,
        sensitivity: String,
        auto_alert: bool,
    },
    /// Moves the hitch.
    Hitch {
        action: HitchAction,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        grip_percent: Option<f64>,
    },
    /// Reads what the hitch holds.
    HitchStatus {},
    /// Remembers whether the robot tows a cart.
    SetTowMode { towing: bool },
    /// Checks that the charger charges.
    VerifyCharge {},
    /// Finds the motors that answer.
    ScanMotors { buses: Vec<BusName> },
    /// Reads the values of motors.
    MotorStatus {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        motor_id: Option<u8>,
    },
    /// Moves one motor a little and back.
    TestMotor { bus: BusName, motor_id: u8, angle: f64 },
    /// Reads which motors hold with power.
    CheckTorque {},
    /// Switches the motors' power.
    EnableTorque { enable: bool },
    /// Asks the motors whether they answer.
    PingAll {},
    /// Tries to get a motor back.
    ServoRecover {
        bus: BusName,
        motor_id: u8,
        action: Recovery,
    },
    /// Reads temperatures and loads.
    ReadHealth { bus: BusName, temps: bool, loads: bool },
    /// Goes on without servos, each `<bus>:<id>`: they are neither moved nor asked until the next call of this. A tool
    /// that needs one of them does without it and says so, or is refused.
    SetDegraded {
        missing_servos: Vec<String>,
        continue_anyway: bool,
    },
    /// Reads or measures limits and middles, and writes them where that is asked for. The other names are those of
    /// the setup.
    #[serde(
        alias = "calibrate_gantry",
        alias = "calibrate_lift",
        alias = "calibrate_base",
        alias = "calibrate_hitch"
    )]
    Calibrate {
        mode: String,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        write: bool,
    },
    /// Gives a motor another id.
    SetMotorId {
        bus: BusName,
        current_id: u8,
        new_id: u8,
    },
    /// Makes the present position home; without `write` it only says what that would change.
    SetHomePosition {
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        write: bool,
    },
    /// Checks a subsystem.
    SelfTest { verbose: bool },
    /// Writes settings to a file. The adapter returns them as `data.config`: offsets, homes.
    SaveConfig {
        name: String,
        subsystems: Vec<Subsystem>,
    },
    /// Compares the settings with those of a file; with `write` they are restored. The adapter gets the content of the
    /// file, which its `SaveConfig` returned.
    LoadConfig {
        name: String,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        write: bool,
        #[serde(skip)]
        config: Value,
    },
}

/// What a robot tells of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the words say it")]
pub enum Reading {
    Battery,
    WayAhead,
    Joints,
}

impl Reading {
    /// Its word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Battery => "battery",
            Self::WayAhead => "way_ahead",
            Self::Joints => "joints",
        }
    }
}

/// How far the base turns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
#[allow(missing_docs, reason = "as for the steps")]
pub enum Heading {
    /// By degrees; counterclockwise is positive.
    By { degrees: f64, speed: f64 },
    /// Towards a person or a thing that is located when it turns.
    To { target: String, speed: f64 },
}

/// Where joints go.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
#[allow(missing_docs, reason = "as for the steps")]
pub enum Where {
    /// To angles in degrees.
    Angles { positions: Vec<f64>, speed: f64 },
    /// Above a thing or place; the offset is in metres. `at` is where it is in the frame of the arm's base, where the call says so.
    Above {
        target: String,
        offset: [f64; 3],
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<[f64; 3]>,
    },
    /// To a point in the frame of the arm's base, in metres: the tip, or what is between the fingers. The hand stays as it is.
    Point {
        point: [f64; 3],
        speed: f64,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        grasp: bool,
    },
}

/// The thing that is lifted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
#[allow(missing_docs, reason = "as for the steps")]
pub enum LiftStep {
    /// The thing in the hand, by metres.
    Hand { target: String, height: f64 },
    /// The lift.
    Lift {
        action: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        distance_mm: Option<f64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        position_mm: Option<f64>,
    },
}

/// What a gripper does: it lets go, closes until it holds something, or does the other of these than last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Grip {
    /// Open.
    Open,
    /// Close.
    Close,
    /// Toggle.
    Toggle,
}

/// What the hitch does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum HitchAction {
    /// Lets go.
    Open,
    /// Closes.
    Close,
    /// Opens what is closed and closes what is open.
    Toggle,
    /// Closes and makes sure that it holds something.
    Dock,
    /// Opens and makes sure that it holds nothing.
    Release,
}

/// How to get a motor back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Recovery {
    /// Ask whether it is there.
    Ping,
    /// Restart it.
    Reboot,
    /// Clear its error.
    ResetError,
    /// Write its settings again.
    Reconfigure,
}

/// A step of picking or placing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// 0.1 m above the thing or place.
    Above,
    /// At the thing or place.
    At,
    /// 0.15 m higher, with what was grasped.
    Lifted,
    /// Away from the thing or place.
    Retracted,
}

/// Every action name, so that each has a handler.
pub const NAMES: [&str; 52] = [
    "wave",
    "move_to_pose",
    "move_to_position",
    "look_at",
    "nod",
    "arms_gesture",
    "head_gesture",
    "point",
    "gripper",
    "approach",
    "grasp",
    "lift",
    "lower",
    "retract",
    "base_move",
    "walk",
    "base_rotate",
    "remember_place",
    "go_to_place",
    "list_places",
    "look",
    "navigate_to",
    "read",
    "own",
    "run_policy",
    "forget_place",
    "dance_sequence",
    "head_bob",
    "stop",
    "set_flag",
    "set_safety",
    "hitch",
    "hitch_status",
    "set_tow_mode",
    "verify_charge",
    "scan_motors",
    "motor_status",
    "test_motor",
    "check_torque",
    "enable_torque",
    "ping_all",
    "servo_recover",
    "read_health",
    "set_degraded",
    "calibrate",
    "calibrate_gantry",
    "calibrate_lift",
    "calibrate_base",
    "calibrate_hitch",
    "set_motor_id",
    "set_home_position",
    "self_test",
];

/// The names of the actions that read and write files.
pub const FILE_NAMES: [&str; 2] = ["save_config", "load_config"];

/// The id of the action with which `tow_cart` closes its hitch, for the step after it.
pub const CLOSE_HITCH: &str = "close_hitch";

impl Step {
    /// The action's name.
    #[must_use]
    pub fn name(&self) -> String {
        // Serde writes a variant's name only with its params, which are small.
        self.clone().into_parts().0
    }

    /// Whether the step can move a part or let it sink. Such a step is refused in emergency stop.
    #[must_use]
    pub fn moves(&self) -> bool {
        !matches!(
            self,
            Self::Stop {}
                | Self::Read { .. }
                | Self::Own { still: true, .. }
                | Self::RememberPlace { .. }
                | Self::ListPlaces {}
                | Self::Look { .. }
                | Self::ForgetPlace { .. }
                | Self::ScanMotors { .. }
                | Self::MotorStatus { .. }
                | Self::CheckTorque {}
                | Self::PingAll {}
                | Self::ReadHealth { .. }
                | Self::SaveConfig { .. }
                | Self::SetDegraded { .. }
                | Self::SetTowMode { .. }
                | Self::HitchStatus {}
                | Self::VerifyCharge {}
        )
    }

    /// The object or place that a hand goes to in picking or placing, and which part of the way this is.
    #[must_use]
    pub fn reach(&self) -> Option<(&str, Stage)> {
        Some(match self {
            Self::MoveToPosition(Where::Above { target, .. }) => (target, Stage::Above),
            Self::Approach { target } | Self::Lower { target, .. } => (target, Stage::At),
            Self::Lift(LiftStep::Hand { target, .. }) => (target, Stage::Lifted),
            Self::Retract { target } => (target, Stage::Retracted),
            _ => return None,
        })
    }

    /// Whether a gripper that is one of the arm's joints stays as it is.
    #[must_use]
    pub fn keeps_hand(&self) -> bool {
        self.reach().is_some() || matches!(self, Self::MoveToPosition(Where::Point { .. }))
    }

    /// The action of a hand, and the force from 0.0 to 1.0 where it has to hold something.
    #[must_use]
    pub fn grip(&self) -> Option<(Grip, Option<f64>)> {
        match self {
            Self::Gripper { action } => Some((*action, None)),
            Self::Grasp { action, force } => Some((*action, Some(*force))),
            _ => None,
        }
    }

    /// Whether it changes what the motors keep of their calibration.
    #[must_use]
    pub fn writes_calibration(&self) -> bool {
        match self {
            Self::Calibrate { write, .. }
            | Self::SetHomePosition { write }
            | Self::LoadConfig { write, .. } => *write,
            _ => false,
        }
    }

    /// The action's name and params.
    #[must_use]
    pub fn into_parts(self) -> (String, Object) {
        let written = serde_json::to_value(self);
        if let Ok(Value::Object(outer)) = written
            && let Some((name, Value::Object(params))) = outer.into_iter().next()
        {
            return (name, params);
        }
        // Serde writes every struct variant as a map of one map: tests/plans.rs writes each of them.
        (String::new(), Object::new())
    }

    /// The step of an action.
    ///
    /// # Errors
    /// The name is unknown, or the params do not fit it.
    pub fn from_parts(name: &str, params: Object) -> Result<Self, serde_json::Error> {
        let mut outer = Object::new();
        outer.insert(name.to_string(), Value::Object(params));
        serde_json::from_value(Value::Object(outer))
    }
}
