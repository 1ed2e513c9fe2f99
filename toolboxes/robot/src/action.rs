//! What a robot is told to do, in numbers an adapter can use as they are.
//!
//! Owns the typed form of an action. Everything a name stood for (a pose, a direction, a place, an emotion) has been
//! looked up and every number was checked against the robot's limits before an adapter sees it: adapters translate,
//! they do not decide. Units: degrees, millimetres for the lift, metres and m/s, rad/s, seconds. Read [`Primitive`].

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::subsystem::Subsystem;

/// One thing to do with one subsystem.
#[derive(Clone, Debug, PartialEq)]
pub struct Action {
    /// What is moved or asked. [`Subsystem::All`] for what concerns the whole robot.
    pub subsystem: Subsystem,
    /// What is done.
    pub primitive: Primitive,
    /// How long it should take by the robot's speeds; the service ends it after its timeout, which is longer.
    pub expected: Duration,
}

/// What is done. Joint angles are in degrees, in the order of the subsystem's joints in
/// [`Capabilities`](crate::capability::Capabilities); `speed` is the fraction 0.1 to 1.0 of each joint's largest.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Primitive {
    /// The joints of a named pose, on an arm or the gantry (the lift has [`Primitive::Lift`]).
    MoveToPose {
        /// The pose's name, for messages and for robots that have it built in.
        pose: String,
        /// Where each joint goes.
        positions: Vec<f64>,
        /// 0.1 to 1.0.
        speed: f64,
    },
    /// Joint angles that the caller gave.
    MoveToPosition {
        /// Where each joint goes.
        positions: Vec<f64>,
        /// 0.1 to 1.0.
        speed: f64,
    },
    /// A step of picking or placing: the joint angles are those of the taught place, or of the pose that stands for it.
    /// Where the gripper is one of the arm's joints, that joint stays as it is, whatever its angle here.
    Reach {
        /// The object or place.
        target: String,
        /// Which step.
        stage: Stage,
        /// Where each joint goes.
        positions: Vec<f64>,
        /// 0.1 to 1.0.
        speed: f64,
    },
    /// An arm's gripper.
    Gripper {
        /// Open, close or the other of both.
        action: Grip,
        /// 0.0 to 1.0 of the gripper's force; the adapter's own where it is missing.
        force: Option<f64>,
    },
    /// Moves the base at a constant velocity for a time, then stops it. Whatever happens, the velocity ends.
    Drive {
        /// Which tool asked: some robots have their own way to walk or to turn.
        kind: DriveKind,
        /// The velocity, within the base's limits.
        velocity: Velocity,
        /// How long.
        duration: Duration,
    },
    /// The lift.
    Lift {
        /// Up or down by so much, or to a height.
        to: LiftTarget,
    },
    /// The hitch.
    Hitch {
        /// What to do with it.
        action: HitchAction,
        /// 0 open to 100 closed, where the caller gave one.
        grip_percent: Option<f64>,
    },
    /// Points the head.
    LookAt {
        /// What for.
        target: String,
        /// Degrees, negative to the left.
        pan: f64,
        /// Degrees, positive downwards.
        tilt: f64,
        /// 0.1 to 1.0.
        speed: f64,
    },
    /// Keyframes of an arm or the head: wave, nod, gesture, dance, point. A robot that has the routine built in may do
    /// its own instead, within `expected`.
    Routine {
        /// Which one.
        routine: Routine,
        /// Where the joints go, one after the other. Never empty.
        frames: Vec<Keyframe>,
    },
    /// Makes sure that the base stands still.
    Stop,
    /// Which motors answer.
    ScanMotors {
        /// The buses to scan.
        buses: Vec<BusName>,
    },
    /// Position, speed, load, voltage and temperature of motors.
    MotorStatus {
        /// One motor, or all of the subsystem.
        motor_id: Option<u8>,
    },
    /// Moves one motor a little and back.
    TestMotor {
        /// On which bus.
        bus: BusName,
        /// Which one.
        motor_id: u8,
        /// Degrees, -30 to 30.
        angle: f64,
    },
    /// Which motors hold with power.
    CheckTorque,
    /// Switches the power of the motors.
    EnableTorque {
        /// On or off.
        enable: bool,
    },
    /// Pings the motors of the subsystem.
    PingAll,
    /// Tries to get a motor back.
    ServoRecover {
        /// On which bus.
        bus: BusName,
        /// Which one.
        motor_id: u8,
        /// How.
        action: Recovery,
    },
    /// Temperatures and loads of a bus.
    ReadHealth {
        /// Which bus.
        bus: BusName,
        /// With temperatures.
        temps: bool,
        /// With loads.
        loads: bool,
    },
    /// Finds the limits or the middle of the subsystem's motors.
    Calibrate {
        /// The tool's mode: full, quick, offsets_only, center_only, wheel_test, drive_test, range_test, set_home,
        /// find_limits or home_only.
        mode: String,
        /// What was measured is written into the motors.
        write: bool,
    },
    /// Gives a motor another id.
    SetMotorId {
        /// On which bus.
        bus: BusName,
        /// Now.
        current_id: u8,
        /// Afterwards.
        new_id: u8,
    },
    /// What is now is home.
    SetHome,
    /// Checks the subsystem, with small movements.
    SelfTest {
        /// With every value that was measured.
        verbose: bool,
    },
    /// Returns what [`Primitive::LoadConfig`] takes, as `data.config`: offsets, homes. The file is not its business.
    SaveConfig {
        /// Of these.
        subsystems: Vec<Subsystem>,
    },
    /// Takes what a [`Primitive::SaveConfig`] of this kind of robot has returned.
    LoadConfig {
        /// The value of `data.config`.
        config: Value,
    },
    /// Goes on without these servos: they are neither moved nor asked until the next call of this.
    SetDegraded {
        /// `<bus>:<id>` each, such as `left:5`.
        missing: Vec<String>,
        /// False: a tool that needs one of them is refused. True: it does without and says so.
        go_on: bool,
    },
    /// Whether it drives with a cart: slower, no strafing.
    SetTow {
        /// On or off.
        towing: bool,
    },
    /// Whether the hitch holds something, and how hard.
    HitchStatus,
    /// Whether the charger's contacts carry current.
    VerifyCharge,
}

/// A step of picking or placing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// 0.1 m above it.
    Above,
    /// At it.
    At,
    /// 0.15 m higher, with what was grasped.
    Lifted,
    /// Away from it.
    Retracted,
}

/// What a gripper does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Grip {
    /// Lets go.
    Open,
    /// Closes until it holds something.
    Close,
    /// Opens what is closed and closes what is open.
    Toggle,
}

/// Which tool drives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DriveKind {
    /// A distance.
    Move,
    /// An angle.
    Rotate,
    /// A velocity for a time.
    Walk,
}

/// How fast the base moves, seen from the robot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Velocity {
    /// Forwards, m/s.
    pub x: f64,
    /// To the left, m/s.
    pub y: f64,
    /// Counterclockwise, rad/s.
    pub turn: f64,
}

/// Where the lift goes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LiftTarget {
    /// So many millimetres up (negative: down) from where it is, ending at its limits.
    By(f64),
    /// This height in millimetres.
    To(f64),
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

/// A movement that means something.
#[derive(Clone, Debug, PartialEq)]
pub enum Routine {
    /// Waves an arm.
    Wave {
        /// friendly, excited, royal or shy.
        style: String,
    },
    /// Nods or shakes the head.
    Nod {
        /// yes, no or maybe.
        kind: String,
    },
    /// Shows an emotion with an arm or the head.
    Gesture {
        /// happy, sad and so on.
        emotion: String,
    },
    /// A part of a dance.
    Dance {
        /// happy, silly, groovy or victory.
        style: String,
        /// How long the whole dance is.
        duration: Duration,
    },
    /// Points an arm.
    Point {
        /// Degrees from straight ahead, negative to the left.
        bearing: f64,
    },
}

/// One position on the way of a routine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Keyframe {
    /// Where each joint goes, in degrees.
    pub positions: Vec<f64>,
    /// 0.1 to 1.0.
    pub speed: f64,
    /// How long it stays there, in seconds.
    #[serde(default)]
    pub hold: f64,
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

/// A serial bus with servos.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum BusName {
    /// The one of the left arm.
    Left,
    /// The one of the right arm.
    Right,
}

impl BusName {
    /// The name in arguments and results.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Left => "left",
            Self::Right => "right",
        }
    }
}

impl Primitive {
    /// Whether it can move something or lets it sink: what is refused in emergency stop.
    #[must_use]
    pub fn moves(&self) -> bool {
        !matches!(
            self,
            Self::Stop
                | Self::ScanMotors { .. }
                | Self::MotorStatus { .. }
                | Self::CheckTorque
                | Self::PingAll
                | Self::ReadHealth { .. }
                | Self::SaveConfig { .. }
                | Self::SetDegraded { .. }
                | Self::SetTow { .. }
                | Self::HitchStatus
                | Self::VerifyCharge
        )
    }

    /// The joint angles and the speed of a plain joint movement; `None` for everything else.
    #[must_use]
    pub fn joints(&self) -> Option<(&[f64], f64)> {
        match self {
            Self::MoveToPose { positions, speed, .. }
            | Self::MoveToPosition { positions, speed }
            | Self::Reach { positions, speed, .. } => Some((positions, *speed)),
            _ => None,
        }
    }
}
