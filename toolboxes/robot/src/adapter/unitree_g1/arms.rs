//! The G1's arms joint by joint, over `arm_sdk`, and its hands.
//!
//! Owns the last command to the arms and its weight. One message commands both arms, so a command for one repeats the
//! other's angles. The robot mixes our angles with its own controller's by the weight in joint 29.

use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use serde_json::{Map, Value, json};

use crate::adapter::part_reading::{JointReading, PartReading};
use crate::adapter::walker::Hands;
use crate::capability::Joint;
use crate::dds::latest::{Latest, SILENCE};
use crate::dds::unitree::{HAND_COMMAND, HandCmd, LOW_COMMAND, LOW_STATE, LowCmd, LowState, MotorCmd};
use crate::dds::{Participant, Publisher, radians};
use crate::ros::RosError;
use crate::step::Grip;
use crate::subsystem::Subsystem;

/// The pause between two commands: 50 a second, as in the vendor's example.
pub(super) const STEP: Duration = Duration::from_millis(20);
/// Joints of an arm.
const ARM: usize = 7;
/// The joint number whose angle is the weight; no joint has it.
const WEIGHT: usize = 29;
/// Stiffness and damping, from the vendor's example.
const STIFFNESS: f32 = 60.0;
const DAMPING: f32 = 1.5;
/// Motors of a Dex3 hand, and how far they close, radians. The thumb's first joint stays.
const HAND: [f32; 7] = [0.0, 0.6, 1.0, -1.0, -1.2, -1.0, -1.2];

pub(super) struct Arms {
    commands: Publisher<LowCmd>,
    hands: [Publisher<HandCmd>; 2],
    state: Latest<LowState>,
    told_to_close: Hands,
    command: Mutex<ArmCommand>,
    /// The change of the weight with a command.
    step: f32,
}

/// The state after a command for an arm.
#[derive(Clone, Copy, Debug)]
pub(super) struct Led {
    /// Whether the weight is full.
    pub(super) whole: bool,
    /// The number of commands so far. A command for the other arm has this arm's angles, too.
    pub(super) count: u64,
}

/// Radians of the joints that a command is for.
#[derive(Default)]
struct Upper {
    waist: [f32; 3],
    left: [f32; ARM],
    right: [f32; ARM],
}

#[derive(Default)]
struct ArmCommand {
    /// Radians by joint; `None` for an arm without a command.
    left: Option<[f32; ARM]>,
    right: Option<[f32; ARM]>,
    /// The angles of the waist joints 12 to 14 when the arms were taken. They are commanded with the arms.
    waist: [f32; 3],
    weight: f32,
    /// The time of the last command, and the number of commands.
    last: Option<Instant>,
    count: u64,
    /// Whether the robot was away since then. If so, the weight may still be in force, and the angles may be wrong.
    stale: bool,
    /// Arms that were commanded since they were taken.
    led: Vec<Subsystem>,
    /// Arms that are at home and wait for the other arm.
    home: Vec<Subsystem>,
}

impl ArmCommand {
    /// Commands both arms and the waist to stay where they are.
    fn stay(&mut self, here: &Upper) {
        (self.left, self.right, self.waist) = (Some(here.left), Some(here.right), here.waist);
    }

    /// Drops everything but the number of commands.
    fn forget(&mut self) {
        *self = Self {
            count: self.count,
            ..Self::default()
        };
    }

    /// Whether the next command is due. Both arms may move at the same time, and one command is for both: 50 commands
    /// a second are sent, not 50 for each arm. The weight changes with each command.
    fn is_due(&self) -> bool {
        // A command may be a little early, because a sleep is never exact.
        self.last.is_none_or(|last| last.elapsed() >= STEP * 3 / 4)
    }
}

fn first(on: Subsystem) -> Option<usize> {
    match on {
        Subsystem::LeftArm => Some(15),
        Subsystem::RightArm => Some(22),
        _ => None,
    }
}

impl Arms {
    pub(super) fn new(participant: &Participant, rate: f64) -> Result<Self, RosError> {
        #[allow(clippy::cast_possible_truncation, reason = "between 0.002 and 0.04")]
        let step = (rate.clamp(0.1, 2.0) * STEP.as_secs_f64()) as f32;
        Ok(Self {
            commands: participant.publish("/arm_sdk", LOW_COMMAND)?,
            hands: [
                participant.publish("/dex3/left/cmd", HAND_COMMAND)?,
                participant.publish("/dex3/right/cmd", HAND_COMMAND)?,
            ],
            state: Latest::of(participant, "/lowstate", LOW_STATE)?,
            told_to_close: Hands::default(),
            command: Mutex::default(),
            step,
        })
    }

    fn command(&self) -> MutexGuard<'_, ArmCommand> {
        self.command.lock()
    }

    /// Where an arm is.
    pub(super) fn reading(&self, on: Subsystem, joints: &[Joint]) -> PartReading {
        let state = self.state.lock();
        PartReading::new(on, joints, |number, _| {
            let first = first(on).filter(|_| number < ARM)?;
            let state = state.as_ref()?;
            let motor = state.message.motor_state.get(first + number)?;
            JointReading::new(f64::from(motor.q).to_degrees(), state.at)
        })
    }

    /// Where all joints are that a command is for.
    ///
    /// # Errors
    /// The robot has not told one of them for a second.
    fn here(&self) -> Result<Upper, RosError> {
        let silent = |reason: String| RosError::Topic {
            topic: "/lowstate".to_owned(),
            reason,
        };
        let state = self.state.lock();
        let state = state.as_ref().filter(|state| state.at.elapsed() <= SILENCE);
        let state = state.ok_or_else(|| silent("nothing was heard there for a second".to_owned()))?;
        let angle = |motor: usize| {
            let q = state.message.motor_state.get(motor).map(|motor| motor.q);
            let angle = q.filter(|angle| angle.is_finite());
            angle.ok_or_else(|| silent(format!("it does not say where motor {motor} is")))
        };
        let mut upper = Upper::default();
        let waist = upper.waist.iter_mut().zip(12..);
        let left = upper.left.iter_mut().zip(15..);
        let right = upper.right.iter_mut().zip(22..);
        for (joint, motor) in waist.chain(left).chain(right) {
            *joint = angle(motor)?;
        }
        Ok(upper)
    }

    /// The values of motors: of an arm, of the legs and the waist (base), or of all.
    pub(super) fn status(&self, on: Subsystem, motor: Option<u8>) -> Map<String, Value> {
        let motors = match on {
            Subsystem::LeftArm => 15..22,
            Subsystem::RightArm => 22..29,
            Subsystem::Base => 0..15,
            Subsystem::All => 0..29,
            _ => 0..0,
        };
        let state = self.state.lock();
        let Some(state) = state.as_ref().map(|state| &state.message) else {
            return Map::new();
        };
        motors
            .filter(|index| motor.is_none_or(|motor| usize::from(motor) == *index))
            .filter_map(|index| {
                let motor = state.motor_state.get(index)?;
                let values = json!({
                    "position": (f64::from(motor.q).to_degrees() * 10.0).round() / 10.0,
                    "torque_nm": motor.tau_est,
                    "temperature": motor.temperature[0],
                    "voltage": motor.vol,
                    "error": motor.motorstate,
                });
                Some((index.to_string(), values))
            })
            .collect()
    }

    /// Whether the robot has stopped sending its state.
    pub(super) fn is_silent(&self) -> bool {
        self.state.is_silent()
    }

    /// Whether the arms obey us, wholly or in part.
    pub(super) fn are_ours(&self) -> bool {
        self.command().weight > 0.0
    }

    /// Drops the command of arms that hang. The next command takes them from their present position.
    pub(super) fn forget(&self) {
        self.command().forget();
    }

    /// Drops the positions of a robot that went away; it has to report them again.
    pub(super) fn left(&self) {
        self.state.forget();
        let mut command = self.command();
        command.stale = command.weight > 0.0;
    }

    /// After the robot was away, commands both arms to their present positions: a restarted robot would swing them to
    /// the old positions. The weight is kept, because it may still be in force after a gap in the network.
    ///
    /// # Errors
    /// The robot has not reported the positions.
    fn refresh(&self, command: &mut ArmCommand) -> Result<(), RosError> {
        if command.stale {
            command.stay(&self.here()?);
            command.home.clear();
            command.stale = false;
        }
        Ok(())
    }

    /// Commands an arm to angles in degrees, and raises the weight by a step.
    pub(super) fn lead(&self, on: Subsystem, positions: &[f64]) -> Result<Led, RosError> {
        let mut command = self.command();
        if command.weight <= 0.0 {
            // The weight is for all of these joints. A joint without an angle and stiffness would hang.
            command.stay(&self.here()?);
        }
        self.refresh(&mut command)?;
        match on {
            Subsystem::LeftArm => command.left = Some(array(positions)),
            _ => command.right = Some(array(positions)),
        }
        command.home.retain(|home| *home != on);
        if !command.led.contains(&on) {
            command.led.push(on);
        }
        if command.is_due() {
            command.weight = (command.weight + self.step).min(1.0);
            self.send(&mut command)?;
        }
        Ok(Led {
            whole: command.weight >= 1.0,
            count: command.count,
        })
    }

    /// Holds arms that obey us: these where they are measured, in degrees, and all others where they were last sent.
    pub(super) fn hold(&self, measured: &[(Subsystem, Vec<f64>)]) -> Result<(), RosError> {
        let mut command = self.command();
        // No command was sent since the robot was away, and a restarted robot leads its arms itself.
        if command.weight <= 0.0 || command.stale {
            return Ok(());
        }
        for (on, positions) in measured {
            match on {
                Subsystem::LeftArm => command.left = Some(array(positions)),
                _ => command.right = Some(array(positions)),
            }
        }
        self.send(&mut command)
    }

    /// Whether the arms may be given back, now that this arm is at home: the other arm is at home, too, or had no
    /// command.
    pub(super) fn may_fade(&self, on: Subsystem) -> bool {
        let mut command = self.command();
        if !command.home.contains(&on) {
            command.home.push(on);
        }
        command.led.iter().all(|arm| command.home.contains(arm))
    }

    /// Lowers the weight by a step, and returns whether the weight is now 0.
    pub(super) fn fade(&self) -> Result<bool, RosError> {
        let mut command = self.command();
        if self.refresh(&mut command).is_err() {
            // The robot is away and cannot take the arms back. It gets no old command when it comes back.
            command.forget();
            return Ok(true);
        }
        if !command.is_due() {
            return Ok(false);
        }
        command.weight = (command.weight - self.step).max(0.0);
        self.send(&mut command)?;
        if command.weight <= 0.0 {
            command.forget();
            return Ok(true);
        }
        Ok(false)
    }

    fn send(&self, command: &mut ArmCommand) -> Result<(), RosError> {
        let mut message = LowCmd {
            // The robot expects its own kind in every command.
            mode_machine: self
                .state
                .lock()
                .as_ref()
                .map_or(0, |state| state.message.mode_machine),
            ..LowCmd::default()
        };
        let (left, right) = (
            command.left.as_ref().map(<[f32; ARM]>::as_slice),
            command.right.as_ref().map(<[f32; ARM]>::as_slice),
        );
        for (first, angles) in [(12, Some(command.waist.as_slice())), (15, left), (22, right)] {
            for (joint, q) in angles.into_iter().flatten().enumerate() {
                if let Some(motor) = message.motor_cmd.get_mut(first + joint) {
                    *motor = MotorCmd {
                        mode: 1,
                        q: *q,
                        kp: STIFFNESS,
                        kd: DAMPING,
                        ..MotorCmd::default()
                    };
                }
            }
        }
        if let Some(weight) = message.motor_cmd.get_mut(WEIGHT) {
            weight.q = command.weight;
        }
        command.last = Some(Instant::now());
        command.count += 1;
        self.commands.publish(message.sealed())
    }

    /// Opens or closes a hand, and returns whether it closes.
    pub(super) fn grip(&self, on: Subsystem, action: Grip) -> Result<bool, RosError> {
        let close = self.told_to_close.closes(on, action);
        self.told_to_close.note(on, close);
        let left = on == Subsystem::LeftArm;
        // The right hand is the left one's mirror image.
        let sign = if left { 1.0 } else { -1.0 };
        let motors = HAND.iter().enumerate().map(|(motor, angle)| MotorCmd {
            // The motor's number and the bit for "on", as the vendor packs them.
            mode: u8::try_from(motor).unwrap_or(0) | 0x10,
            q: if close { sign * angle } else { 0.0 },
            kp: 0.5,
            kd: 0.1,
            ..MotorCmd::default()
        });
        let command = HandCmd {
            motor_cmd: motors.collect(),
        };
        self.hands[usize::from(!left)].publish(command)?;
        Ok(close)
    }
}

/// The angles of an arm, converted from degrees to radians.
fn array(degrees: &[f64]) -> [f32; ARM] {
    let mut angles = [0.0; ARM];
    for (angle, degrees) in angles.iter_mut().zip(degrees) {
        *angle = radians(*degrees);
    }
    angles
}
