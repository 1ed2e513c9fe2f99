//! The part that the K1 and the G1 share: a robot on a network that walks.
//!
//! Owns which method of the robot does an action, and joining, halting and leaving. Each robot's file owns how it
//! leads its arms, performs its own routines and reads its motors. Read [`Walker`].

use std::future::Future;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};

use super::contract::{ActionOutput, Adapter};
use super::control::Control;
use super::part_reading::{FRESH, PartReading, SilentJoint};
use super::remote::{Link, Remote, until};
use crate::action::{Action, Keyframe, Motion};
use crate::capability::Capabilities;
use crate::error::ActionError;
use crate::ros::RosError;
use crate::step::{Grip, Step};
use crate::subsystem::Subsystem;

pub(super) type Outcome<T = ActionOutput> = Result<T, ActionError>;

/// A robot on a network that walks. Futures may be dropped at any await, as [`Adapter::execute`] may.
pub(super) trait Walker: Send + Sync {
    /// The robot's side of the connection.
    type Link: Link;

    fn remote(&self) -> &Remote<Self::Link>;

    /// A function that joins the robot's network.
    fn opener(&self) -> impl Fn() -> Result<Self::Link, RosError> + Send + 'static;

    /// The last measured or the last commanded angles of an arm or the head, in degrees, however old.
    fn last_known(&self, on: Subsystem) -> Option<Vec<f64>>;

    /// Leads an arm or the head to joint angles.
    fn go(
        &self,
        on: Subsystem,
        positions: &[f64],
        speed: f64,
        control: &Control,
    ) -> impl Future<Output = Outcome> + Send;

    /// Gives the arms back to the robot's own controller, now that this arm is at home.
    fn give_back(&self, on: Subsystem, control: &Control) -> impl Future<Output = Outcome<()>> + Send;

    /// Performs the robot's own routine for a step; `None` where it has none.
    fn perform(
        &self,
        on: Subsystem,
        step: &Step,
        frames: &[Keyframe],
        control: &Control,
    ) -> impl Future<Output = Outcome<Option<ActionOutput>>> + Send;

    /// Brings the robot into the state in which it walks.
    fn set_off(&self, control: &Control) -> impl Future<Output = Outcome<()>> + Send;

    /// Opens or closes a hand.
    fn grip(
        &self,
        on: Subsystem,
        action: Grip,
        force: Option<f64>,
        control: &Control,
    ) -> impl Future<Output = Outcome> + Send;

    /// The values of a part or of one motor, with their key in results; `None` where the robot reports none.
    fn status(
        &self,
        link: &Self::Link,
        on: Subsystem,
        motor_id: Option<u8>,
    ) -> Outcome<Option<(&'static str, Value)>>;

    /// Asks whether the robot answers; moves nothing.
    fn self_test(&self, on: Subsystem, control: &Control) -> impl Future<Output = Outcome> + Send;

    /// Ends the motion of arms and head, after the base was told to stand. Every command is sent, even after one that
    /// failed.
    fn stop(&self, link: &Self::Link, concerned: &[Subsystem], emergency: bool) -> Result<(), RosError>;

    /// Hands the robot over to its own controller, and leaves the network.
    fn leave(&self, link: &Self::Link) -> impl Future<Output = ()> + Send;
}

async fn run(robot: &impl Walker, action: &Action, control: &Control) -> Outcome {
    let (remote, on) = (robot.remote(), action.subsystem);
    match &action.motion {
        Some(Motion::Joints { positions, speed }) => {
            let done = robot.go(on, positions, *speed, control).await?;
            if matches!(&action.step, Step::MoveToPose { pose, .. } if pose == "home") {
                robot.give_back(on, control).await?;
            }
            return Ok(done);
        }
        Some(Motion::Frames(frames)) => {
            if let Some(done) = robot.perform(on, &action.step, frames, control).await? {
                return Ok(done);
            }
            let mut notes = Vec::new();
            for frame in frames {
                let there = robot.go(on, &frame.positions, frame.speed, control).await?;
                notes.extend(there.notes);
                let hold = Duration::try_from_secs_f64(frame.hold).unwrap_or_default();
                control.sleep(hold).await?;
            }
            // These end at home: the robot's own actions need its arms.
            if matches!(
                action.step,
                Step::Wave { .. } | Step::Gesture { .. } | Step::Dance { .. }
            ) {
                robot.give_back(on, control).await?;
            }
            return Ok(ActionOutput {
                notes,
                ..ActionOutput::new(format!("{on} did it"))
            });
        }
        Some(Motion::Drive { velocity, duration }) => {
            robot.set_off(control).await?;
            return remote.drive(*velocity, *duration, control).await;
        }
        Some(Motion::Lift(_) | Motion::GoTo(_)) | None => {}
    }
    if let Some((grip, force)) = action.step.grip() {
        return robot.grip(on, grip, force, control).await;
    }
    let motor_id = match &action.step {
        Step::MotorStatus { motor_id } => *motor_id,
        Step::PingAll {} => None,
        Step::SelfTest { .. } => return robot.self_test(on, control).await,
        Step::Stop {} => {
            remote.there(control).await?;
            remote.stand(control).await?;
            return Ok(ActionOutput::new("the robot stands"));
        }
        other => return Err(remote.lacks(other.name().replace('_', " "))),
    };
    let link = remote.there(control).await?;
    let Some((key, told)) = robot.status(link, on, motor_id)? else {
        return Err(remote.lacks(format!("motor status of {on}: the robot says nothing about it")));
    };
    Ok(ActionOutput::new(format!("what the robot says of {on}")).with(key, told))
}

impl<W: Walker> Adapter for W {
    fn capabilities(&self) -> &Capabilities {
        self.remote().capabilities()
    }

    fn connect(&self) -> BoxFuture<'_, Result<(), ActionError>> {
        self.remote().connect(self.opener()).boxed()
    }

    fn execute<'a>(
        &'a self,
        action: &'a Action,
        control: &'a Control,
    ) -> BoxFuture<'a, Result<ActionOutput, ActionError>> {
        let halt = || self.halt(&[action.subsystem], false);
        self.remote()
            .attend(action, control, run(self, action, control), halt)
            .boxed()
    }

    fn state(&self, subsystem: Subsystem) -> Value {
        let positions = self
            .capabilities()
            .named_positions(subsystem, |one| self.last_known(one));
        json!({"positions": positions, "connected": self.remote().is_there()})
    }

    fn halt(&self, subsystems: &[Subsystem], emergency: bool) -> Result<(), ActionError> {
        let Some((link, concerned, stands)) = self.remote().halt(subsystems, emergency) else {
            return self.remote().unseen();
        };
        let stopped = self.stop(link, &concerned, emergency);
        let sent = stands.and(stopped).map_err(|error| self.remote().failed(error));
        match emergency {
            true => sent.and_then(|()| self.remote().check_there()),
            false => sent,
        }
    }

    fn reset(&self) -> Result<(), ActionError> {
        self.remote().reset()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        async {
            self.remote().close();
            if let Some(link) = self.remote().link() {
                self.leave(link).await;
            }
        }
        .boxed()
    }
}

/// How long a part may need after the last command before it has to have moved.
const FOLLOWS: Duration = Duration::from_secs(1);
/// Degrees of a way below which a joint that follows loosely and one that does not move look alike.
const SHORT: f64 = 10.0;

/// Where a stop holds a part: where it is measured just now. `None` where that is not known, which the log says: then the part is
/// held where it was last sent.
pub(super) fn place_to_hold<L: Link>(
    remote: &Remote<L>,
    on: Subsystem,
    reading: &PartReading,
) -> Option<Vec<f64>> {
    match reading.within(FRESH) {
        Ok(measured) => Some(measured),
        // It was never told: there is no measured position of this part.
        Err(SilentJoint::Never { .. }) => None,
        Err(silent) => {
            let robot = remote.name();
            tracing::warn!(robot, part = %on, %silent, "no measured position: the stop holds this part at its last target");
            None
        }
    }
}

/// Waits until the part that was led from `from` to `to` has followed, by what the robot has told of its joints after the last
/// command: a command that was sent is no movement.
///
/// # Errors
/// A joint has gone less than a quarter of its way, or was not told since. A robot that mixes our angles with those of its own
/// controller may stay behind by more than half.
pub(super) async fn followed<L: Link>(
    remote: &Remote<L>,
    on: Subsystem,
    (from, to): (&[f64], &[f64]),
    reading: impl Fn() -> PartReading,
    control: &Control,
) -> Outcome<()> {
    let joints = remote.capabilities().joints(on).unwrap_or_default();
    let sent = Instant::now();
    let behind = || {
        let at = match reading().within(sent.elapsed()) {
            Ok(at) => at,
            Err(silent) => return Some(format!("{on} was commanded, but {silent}")),
        };
        let mut joints = joints.iter().zip(from).zip(to).zip(&at);
        joints.find_map(|(((joint, from), to), at)| {
            let (way, gone) = (to - from, at - from);
            let follows = way.abs() < SHORT || gone / way >= 0.25;
            (!follows).then(|| {
                format!(
                    "{on} {} does not move: it is at {at:.0} degrees, not at {to:.0}",
                    joint.name
                )
            })
        })
    };
    let moved = until(control, FOLLOWS, || behind().map_or(Ok(()), Err)).await?;
    moved.map_err(|what| ActionError::Hardware {
        robot: remote.name().to_owned(),
        what,
    })
}

/// How long a robot's own routine runs in place of these frames: for each frame `each` seconds at full speed and the
/// frame's hold, in total at least a second and at most `longest`.
pub(super) fn own_time(frames: &[Keyframe], each: f64, longest: f64) -> Duration {
    let time = |frame: &Keyframe| frame.hold + each / frame.speed.max(0.1);
    Duration::from_secs_f64(frames.iter().map(time).sum::<f64>().clamp(1.0, longest))
}

/// The hands that were told to close. No robot reports whether a hand is closed.
#[derive(Default)]
pub(super) struct Hands(Mutex<Vec<Subsystem>>);

impl Hands {
    fn closed(&self) -> MutexGuard<'_, Vec<Subsystem>> {
        self.0.lock()
    }

    /// Whether this action closes the hand.
    pub(super) fn closes(&self, hand: Subsystem, action: Grip) -> bool {
        match action {
            Grip::Open => false,
            Grip::Close => true,
            Grip::Toggle => !self.closed().contains(&hand),
        }
    }

    /// The hand was told to close or to open.
    pub(super) fn note(&self, hand: Subsystem, close: bool) {
        let mut closed = self.closed();
        closed.retain(|other| *other != hand);
        if close {
            closed.push(hand);
        }
    }
}
