//! The K1's own interface: functions over two topics, arms over `joint_ctrl`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};

use super::config::BoosterK1Config;
use super::posture::Posture;
use super::routines::{End, Routines};
use super::sent::LastAngles;
use crate::action::Velocity;
use crate::adapter::Notify;
use crate::adapter::part_reading::{JointReading, PartReading};
use crate::adapter::remote::node_name;
use crate::adapter::walker::Hands;
use crate::capability::Joint;
use crate::dds::asked::DdsRequest;
use crate::dds::booster::{LOW_COMMAND, LOW_STATE, LowCmd, LowState, MotorCmd, Rpc, RpcMsg, api, request};
use crate::dds::latest::{Latest, SILENCE};
use crate::dds::{Participant, Publisher, radians};
use crate::ros::RosError;
use crate::subsystem::Subsystem;

/// Joints of a K1.
const JOINTS: usize = 22;
/// Stiffness and damping of an arm's joint, from the vendor's example.
const STIFFNESS: f32 = 60.0;
const DAMPING: f32 = 1.5;
/// The largest weight of our commands for an arm, from the vendor's example, and its change with each command.
const WEIGHT: f32 = 0.5;
const WEIGHT_STEP: f32 = 0.01;
/// How often an end request is sent while the robot does not confirm it, and the pause between two tries.
const TIMES: u32 = 3;
const AGAIN: Duration = Duration::from_millis(200);

pub(in crate::adapter) struct RpcLink {
    pub(super) participant: Participant,
    pub(super) rpc: Rpc,
    commands: Publisher<LowCmd>,
    state: Latest<LowState>,
    /// The last commanded positions of arms and head.
    sent: LastAngles,
    command: Mutex<ArmCommand>,
    /// Whether the arms may obey us. If so, they are given back in the end.
    pub(super) ours: AtomicBool,
    /// Whether the robot has given us the arms and was not away since then.
    pub(super) taken: AtomicBool,
    pub(super) hands: Hands,
    /// The robot's own routines.
    pub(super) routines: Routines,
    posture: Posture,
}

/// The last command to the arms.
struct ArmCommand {
    motors: Vec<MotorCmd>,
    /// Arms that are at home and wait for the other arm.
    home: Vec<Subsystem>,
    /// Whether the robot was away since that command. If so, the weights may still be in force, and the angles may be
    /// wrong.
    stale: bool,
}

impl Default for ArmCommand {
    fn default() -> Self {
        Self {
            motors: vec![MotorCmd::default(); JOINTS],
            home: Vec::new(),
            stale: false,
        }
    }
}

/// Where the joints of an arm or the head begin, and how many there are.
fn joints(on: Subsystem) -> Option<(usize, usize)> {
    match on {
        Subsystem::Gantry => Some((0, 2)),
        Subsystem::LeftArm => Some((2, 4)),
        Subsystem::RightArm => Some((6, 4)),
        _ => None,
    }
}

impl RpcLink {
    pub(super) fn open(name: &str, config: &BoosterK1Config, notify: &Notify) -> Result<Self, RosError> {
        let participant = Participant::join(&config.ros, &node_name(name))?;
        let rpc = Rpc::new(
            &participant,
            Duration::from_millis(config.answer_ms.clamp(100, 5000)),
        )?;
        let commands = participant.publish("/joint_ctrl", LOW_COMMAND)?;
        let state = Latest::of(&participant, "/low_state", LOW_STATE)?;
        let posture = Posture::hear(&participant, notify)?;
        Ok(Self {
            participant,
            rpc,
            commands,
            state,
            sent: LastAngles::default(),
            command: Mutex::default(),
            ours: AtomicBool::new(false),
            taken: AtomicBool::new(false),
            hands: Hands::default(),
            routines: Routines::default(),
            posture,
        })
    }

    pub(super) fn posture(&self) -> &Posture {
        &self.posture
    }

    pub(super) fn sent(&self) -> &LastAngles {
        &self.sent
    }

    fn command(&self) -> MutexGuard<'_, ArmCommand> {
        self.command.lock()
    }

    /// Drops everything that was known of a robot that went away. It may come back restarted, so it is asked for the
    /// arms again and has to report their positions.
    pub(super) fn left(&self) {
        self.posture.forget();
        self.taken.store(false, Ordering::SeqCst);
        self.state.forget();
        self.sent.forget();
        self.command().stale = true;
    }

    /// After the robot was away, commands our arms to their present positions: a restarted robot would swing them to
    /// the old positions. Returns false if the robot does not report the positions.
    fn refresh(&self, command: &mut ArmCommand) -> bool {
        if !command.stale {
            return true;
        }
        let state = self.state.lock();
        let Some(state) = state.as_ref().filter(|state| state.at.elapsed() <= SILENCE) else {
            return false;
        };
        let measured = &state.message.motor_state_serial;
        let ours = command.motors.iter_mut().zip(measured);
        let mut ours: Vec<_> = ours.filter(|(motor, _)| motor.weight > 0.0).collect();
        if !ours.iter().all(|(_, measured)| measured.q.is_finite()) {
            return false;
        }
        for (motor, measured) in &mut ours {
            motor.q = measured.q;
        }
        command.stale = false;
        true
    }

    pub(super) fn ask(&self, api: i64, body: &Value) -> Result<DdsRequest, RosError> {
        self.rpc.ask(api, body)
    }

    pub(super) fn ask_velocity(&self, velocity: &Velocity) -> Result<DdsRequest, RosError> {
        self.rpc.ask(api::MOVE, &move_body(velocity))
    }

    pub(super) fn say(&self, velocity: &Velocity) -> Result<(), RosError> {
        self.rpc.send(api::MOVE, &move_body(velocity))
    }

    /// Lets all motors give way. The arms hang then and no longer obey us. The next command takes them from their
    /// present position.
    pub(super) fn damp(&self) -> Result<(), RosError> {
        let damped = self.rpc.send(api::CHANGE_MODE, &json!({"mode": 0}));
        *self.command() = ArmCommand::default();
        self.sent.forget();
        damped.and(self.give_back())
    }

    /// Whether the arms may obey us.
    pub(super) fn are_ours(&self) -> bool {
        self.ours.load(Ordering::SeqCst)
    }

    /// Whether the arms may be given back, now that this arm is at home: the other arm is at home, too, or does not
    /// obey us.
    pub(super) fn may_fade(&self, on: Subsystem) -> bool {
        let mut command = self.command();
        if !command.home.contains(&on) {
            command.home.push(on);
        }
        let obeys = |arm: Subsystem| {
            joints(arm).is_some_and(|(first, count)| {
                let mut motors = command.motors.iter().skip(first).take(count);
                motors.any(|motor| motor.weight > 0.0)
            })
        };
        let arms = [Subsystem::LeftArm, Subsystem::RightArm];
        arms.into_iter()
            .all(|arm| command.home.contains(&arm) || !obeys(arm))
    }

    /// Lowers the arms' weight by a step, and returns whether the weight is now 0.
    pub(super) fn fade(&self) -> Result<bool, RosError> {
        let mut command = self.command();
        for motor in &mut command.motors {
            motor.weight = (motor.weight - WEIGHT_STEP).max(0.0);
        }
        let none = command.motors.iter().all(|motor| motor.weight <= 0.0);
        let message = LowCmd {
            cmd_type: 1,
            motor_cmd: command.motors.clone(),
        };
        if none {
            *command = ArmCommand::default();
        }
        self.commands.publish(message)?;
        drop(command);
        Ok(none)
    }

    /// Gives the arms back to the robot's own controller, if they may obey us.
    fn give_back(&self) -> Result<(), RosError> {
        self.taken.store(false, Ordering::SeqCst);
        match self.ours.swap(false, Ordering::SeqCst) {
            true => self
                .rpc
                .send(api::UPPER_BODY_CUSTOM_CONTROL, &json!({"start": false})),
            false => Ok(()),
        }
    }

    pub(super) fn is_silent(&self) -> bool {
        self.rpc.requests().is_ready() && self.state.is_silent()
    }

    pub(super) fn is_there(&self) -> bool {
        self.rpc.requests().is_ready() && !self.state.is_silent()
    }

    /// Where an arm or the head is.
    pub(super) fn reading(&self, on: Subsystem, names: &[Joint]) -> PartReading {
        let state = self.state.lock();
        PartReading::new(on, names, |number, _| {
            let (first, _) = joints(on).filter(|(_, count)| number < *count)?;
            let state = state.as_ref()?;
            let motor = state.message.motor_state_serial.get(first + number)?;
            // The robot's yaw of the head is positive counterclockwise, our pan is positive to the right.
            let sign = match (on, number) {
                (Subsystem::Gantry, 0) => -1.0,
                _ => 1.0,
            };
            JointReading::new(sign * f64::from(motor.q).to_degrees(), state.at)
        })
    }

    /// Sends an arm to angles in degrees and raises its weight by a step; returns whether the weight is full. The
    /// command repeats the other arm's last angles.
    pub(super) fn arm(&self, on: Subsystem, positions: &[f64]) -> Result<bool, RosError> {
        let Some((first, count)) = joints(on) else {
            return Ok(true);
        };
        let mut command = self.command();
        if !self.refresh(&mut command) {
            return Err(RosError::Topic {
                topic: "/low_state".to_owned(),
                reason: "nothing was heard there since the robot was away".to_owned(),
            });
        }
        command.home.retain(|home| *home != on);
        for (motor, position) in command.motors.iter_mut().skip(first).take(count).zip(positions) {
            *motor = MotorCmd {
                q: radians(*position),
                kp: STIFFNESS,
                kd: DAMPING,
                weight: (motor.weight + WEIGHT_STEP).min(WEIGHT),
                ..MotorCmd::default()
            };
        }
        let mut arm = command.motors.iter().skip(first).take(count);
        let whole = arm.all(|motor| motor.weight >= WEIGHT);
        let message = LowCmd {
            cmd_type: 1,
            motor_cmd: command.motors.clone(),
        };
        // Published under the lock: one command is for both arms, and an older one must not follow a newer one.
        self.commands.publish(message)?;
        drop(command);
        Ok(whole)
    }

    /// Holds an arm that obeys us, or the head, where it is measured. Where that is not known, an arm is held where it was last
    /// sent, and the head where it should be by now; a head that is not under way is told nothing.
    pub(super) fn hold(&self, on: Subsystem, measured: Option<Vec<f64>>) -> Result<(), RosError> {
        if on == Subsystem::Gantry {
            return match measured.or_else(|| self.sent.under_way(on)).as_deref() {
                Some([pan, tilt]) => self.rpc.send(api::ROTATE_HEAD, &head_body(*pan, *tilt)),
                _ => Ok(()),
            };
        }
        match measured {
            _ if !self.taken.load(Ordering::SeqCst) => Ok(()),
            Some(positions) => self.arm(on, &positions).map(drop),
            None => self.repeat(),
        }
    }

    /// Sends the last command to the arms again, unless the robot was away since then.
    fn repeat(&self) -> Result<(), RosError> {
        let command = self.command();
        if command.stale {
            return Ok(());
        }
        self.commands.publish(LowCmd {
            cmd_type: 1,
            motor_cmd: command.motors.clone(),
        })
    }

    pub(super) fn close(&self) {
        if self.ours.load(Ordering::SeqCst) {
            let _ = self.give_back();
            std::thread::sleep(Duration::from_millis(20));
        }
        self.participant.close();
    }
}

impl RpcLink {
    /// Ends the robot's own routines of these parts, if there are any.
    pub(super) fn end(&self, parts: &[Subsystem]) -> Result<(), RosError> {
        self.end_each(&self.routines.of(parts))
    }

    /// Ends every routine of the robot's own, including one that was begun by a process that has died.
    pub(super) fn end_all(&self) -> Result<(), RosError> {
        self.end_each(&End::all())
    }

    /// Sends the unconfirmed end requests again to a robot that comes back.
    pub(super) fn end_owed(&self) -> Result<(), RosError> {
        self.end_each(&self.routines.owed())
    }

    /// Sends every end request, even after one that failed.
    fn end_each(&self, ends: &[End]) -> Result<(), RosError> {
        let sent: Vec<_> = ends.iter().map(|end| self.say_end(end)).collect();
        sent.into_iter().collect()
    }

    /// Sends an end request now, and again until the robot confirms it.
    fn say_end(&self, end: &End) -> Result<(), RosError> {
        let newest = self.routines.ending(end);
        let mut asked = self.rpc.ask(end.function, &end.body)?;
        let (rpc, routines, end) = (self.rpc.clone(), self.routines.clone(), end.clone());
        // The end request is sent already. If this task cannot be started, the request stays on the list, and the next
        // halt sends it again.
        let _ = self.participant.start(async move {
            for time in 1..=TIMES {
                let Err(error) = asked.answer().await else {
                    routines.ended(&end, newest);
                    return;
                };
                tracing::warn!(%error, time, "the end of what the robot does of its own");
                tokio::time::sleep(AGAIN).await;
                if time == TIMES || !routines.is_owed(&end) {
                    return;
                }
                match rpc.ask(end.function, &end.body) {
                    Ok(again) => asked = again,
                    Err(_) => return,
                }
            }
        });
        Ok(())
    }
}

/// The requests of a stop without an instance: walking ends first, then power, then the robot's own routines.
pub(super) fn stops(damp: bool) -> Vec<RpcMsg> {
    let mut stops = vec![request(api::MOVE, &move_body(&Velocity::default()), false).1];
    if damp {
        stops.push(request(api::CHANGE_MODE, &json!({"mode": 0}), false).1);
    }
    stops.extend(End::all().map(|end| request(end.function, &end.body, false).1));
    stops
}

fn move_body(velocity: &Velocity) -> Value {
    json!({"vx": velocity.x, "vy": velocity.y, "vyaw": velocity.turn})
}

/// The body that turns the head to angles in degrees, converted to the robot's radians. The robot's yaw is positive
/// counterclockwise, our pan is positive to the right.
pub(super) fn head_body(pan: f64, tilt: f64) -> Value {
    json!({"pitch": tilt.to_radians(), "yaw": -pan.to_radians()})
}
