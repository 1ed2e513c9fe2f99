//! Arms: each movement is a trajectory of one point, and has ended where the joint states say so.

use std::f64::consts::PI;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::base::{Outcome, RosBase};
use super::channels::{ArmChannel, TRAJECTORY};
use super::goals::type_of;
use super::link::BaseLink;
use crate::action::Keyframe;
use crate::adapter::remote::until;
use crate::adapter::{ActionError, ActionOutput, Control};
use crate::capability::Joint;
use crate::geometry::Search;
use crate::model::travel;
use crate::ros::RosError;
use crate::step::{Stage, Step};
use crate::subsystem::Subsystem;

/// The shortest time that a trajectory takes.
const SHORTEST: Duration = Duration::from_millis(200);
/// How long the joint states may lag behind the controller that says that the goal is reached.
pub(super) const LAG: Duration = Duration::from_secs(1);
/// How much longer than planned a controller is waited for that says nothing: a robot may slow its trajectories down.
const PATIENCE: f64 = 0.5;

impl RosBase {
    /// The joints of an arm, and how they are moved.
    fn arm(&self, on: Subsystem) -> Outcome<(&ArmChannel, &[Joint])> {
        let channel = self.config.arms.get(&on);
        channel
            .zip(self.remote.capabilities().joints(on))
            .ok_or_else(|| self.remote.lacks(on.to_string()))
    }

    /// The angles of an arm in degrees, and how old the oldest of them is.
    ///
    /// # Errors
    /// A joint was not told for a second; the text says which.
    fn angles(&self, link: &BaseLink, on: Subsystem) -> Result<(Duration, Vec<f64>), String> {
        let joints = self.remote.capabilities().joints(on).unwrap_or_default();
        let mut oldest = Duration::ZERO;
        let mut angles = Vec::with_capacity(joints.len());
        for joint in joints {
            let reading = link.readings.joints.get(&joint.name);
            let (age, _) =
                reading.ok_or_else(|| format!("no position of {} has ever arrived", joint.name))?;
            let (_, position) = link.readings.joints.fresh(&joint.name).ok_or_else(|| {
                format!(
                    "no position of {} has arrived for {:.1} s",
                    joint.name,
                    age.as_secs_f64()
                )
            })?;
            oldest = oldest.max(age);
            angles.push(position.to_degrees());
        }
        Ok((oldest, angles))
    }

    /// The angles of an arm, told since this was asked: a way that begins elsewhere is another way.
    async fn angles_now(&self, link: &BaseLink, on: Subsystem, control: &Control) -> Outcome<Vec<f64>> {
        let asked = Instant::now();
        let angles = until(control, LAG, || match self.angles(link, on)? {
            (age, angles) if age <= asked.elapsed() => Ok(angles),
            _ => Err(format!(
                "no joint positions of {on} have arrived since the command"
            )),
        });
        angles.await?.map_err(|why| self.untold(&why))
    }

    fn untold(&self, why: &str) -> ActionError {
        let topic = self.config.joints().unwrap_or_default();
        self.remote
            .away(&format!("{why} on {topic}: check what publishes it on the robot"))
    }

    /// The last positions of a part's joints, for `state`: degrees, to a hundredth for those of arms.
    pub(super) fn positions(&self, on: Subsystem) -> Map<String, Value> {
        let Some(link) = self.remote.link() else {
            return Map::new();
        };
        let Some(joints) = self.remote.capabilities().joints(on) else {
            return link.readings.joints.all().map(|(_, all)| all).unwrap_or_default();
        };
        let each = joints.iter().filter_map(|joint| {
            let (_, position) = link.readings.joints.get(&joint.name)?;
            Some((joint.name.clone(), hundredth(position.to_degrees()).into()))
        });
        each.collect()
    }

    /// Where an arm is, and how far its hand is open.
    pub(super) async fn status(&self, on: Subsystem, control: &Control) -> Outcome {
        let link = self.remote.there(control).await?;
        let (age, _) = self.angles(link, on).map_err(|why| self.untold(&why))?;
        let output = ActionOutput::new(format!("where {on} is"))
            .with("positions", self.positions(on))
            .with("age_s", (age.as_secs_f64() * 10.0).round() / 10.0);
        Ok(match self.opening(link, on) {
            Some((_, open)) => output.with("gripper_percent", (open * 100.0).round()),
            None => output,
        })
    }

    /// Leads an arm to joint angles in degrees.
    pub(super) async fn lead(
        &self,
        on: Subsystem,
        (positions, speed): (&[f64], f64),
        step: &Step,
        control: &Control,
    ) -> Outcome {
        let moved = self.follow_trajectory(on, (positions, speed), control).await?;
        if matches!(step.reach(), Some((_, Stage::Lifted))) && self.holding(on) == Some(false) {
            return Err(ActionError::Refused(format!("{on} has lost what it held")));
        }
        Ok(moved)
    }

    /// Checks that the straight ways in the joints through these positions are above the table, within the limits of the arm's shape. An
    /// arm without a shape is not checked.
    fn check_way(&self, on: Subsystem, from: &[f64], through: &[&[f64]]) -> Outcome<()> {
        let Some((shape, joints)) = self.shapes.get(&on).zip(self.remote.capabilities().joints(on)) else {
            return Ok(());
        };
        let search = Search {
            shape,
            joints,
            fingers: None,
        };
        let mut from = from;
        for to in through {
            search
                .check(from, to)
                .map_err(|why| ActionError::Refused(format!("{on} cannot go there: {why}")))?;
            from = to;
        }
        Ok(())
    }

    pub(super) async fn routine(&self, on: Subsystem, frames: &[Keyframe], control: &Control) -> Outcome {
        let link = self.remote.there(control).await?;
        // All of it before the first of it.
        let from = self.angles_now(link, on, control).await?;
        let through: Vec<&[f64]> = frames.iter().map(|frame| frame.positions.as_slice()).collect();
        self.check_way(on, &from, &through)?;
        for (done, frame) in (1u32..).zip(frames) {
            self.follow_trajectory(on, (&frame.positions, frame.speed), &control.quiet())
                .await?;
            control
                .sleep(Duration::try_from_secs_f64(frame.hold).unwrap_or_default())
                .await?;
            let all = u32::try_from(frames.len()).unwrap_or(u32::MAX);
            control.progress(
                f64::from(done) / f64::from(all),
                &format!("{on}: keyframe {done} of {all}"),
            );
        }
        Ok(ActionOutput::new(format!("{on} did it")))
    }

    async fn follow_trajectory(
        &self,
        on: Subsystem,
        (to, speed): (&[f64], f64),
        control: &Control,
    ) -> Outcome {
        let link = self.remote.there(control).await?;
        let (arm, joints) = self.arm(on)?;
        let action = arm.trajectory.as_str();
        let paced = self.remote.capabilities().paced_joints(on).unwrap_or_default();
        let served = control.unless_cancelled(type_of(link.graph.as_ref(), action, &[TRAJECTORY]));
        served
            .await?
            .map_err(|error| self.remote.failed(RosError::Graph(error)))?;
        let from = self.angles_now(link, on, control).await?;
        self.check_way(on, &from, &[to])?;
        let seconds = travel(&paced, &from, to, speed);
        let time = Duration::try_from_secs_f64(seconds)
            .unwrap_or_default()
            .max(SHORTEST);
        let late = Duration::try_from_secs_f64(arm.late).unwrap_or_default();
        let limit = time.mul_f64(1.0 + PATIENCE) + late + LAG;
        // It is first asked when the goal was accepted, which may take longer than a short movement.
        let mut start = None;
        let watch = |feedback: Option<&Value>| {
            self.angles(link, on).map_err(|why| self.untold(&why))?;
            if start.get_or_insert_with(Instant::now).elapsed() > limit {
                return Err(self.trouble(format!(
                    "{action} has not said within {:.1} s that a movement of {:.1} s has ended; its goal was cancelled",
                    limit.as_secs_f64(),
                    time.as_secs_f64()
                )));
            }
            Ok(feedback
                .and_then(|feedback| gone(feedback, joints, &from, to))
                .map(|done| (done, "moving".to_owned())))
        };
        let goal = trajectory(arm, joints, to, time);
        let end = self.pursue((action, on), goal, watch, control).await?;
        self.reached(action, &end)?;
        let ended = Instant::now();
        let arrived = until(control, LAG, || {
            let (age, there) = self.angles(link, on)?;
            if age > ended.elapsed() {
                return Err("nothing since then".to_owned());
            }
            let mut each = joints.iter().zip(&there).zip(to);
            match each.find(|((_, at), to)| (*at - *to).abs() > arm.goal_tolerance) {
                Some(((joint, at), to)) => {
                    Err(format!("{} is at {at:.1} degrees, not at {to:.1}", joint.name))
                }
                None => Ok(()),
            }
        });
        arrived.await?.map_err(|what| {
            self.trouble(format!(
                "{action} says that its goal is reached, and {} says: {what}",
                self.config.joints().unwrap_or_default()
            ))
        })?;
        Ok(ActionOutput::new(format!("{on} is there")).with("positions", self.positions(on)))
    }
}

/// The goal that brings an arm from where it is to angles in degrees in a time.
fn trajectory(arm: &ArmChannel, joints: &[Joint], to: &[f64], time: Duration) -> Value {
    let radians: Vec<f64> = to.iter().map(|degrees| degrees.to_radians()).collect();
    let tolerance = |degrees: f64| -> Vec<Value> {
        let each = joints.iter();
        each.map(|joint| json!({"name": joint.name, "position": degrees * PI / 180.0}))
            .collect()
    };
    let seconds = |time: Duration| json!({"sec": time.as_secs(), "nanosec": time.subsec_nanos()});
    let names: Vec<&str> = joints.iter().map(|joint| joint.name.as_str()).collect();
    json!({
        "trajectory": {
            "joint_names": names,
            "points": [{
                "velocities": vec![0.0; radians.len()],
                "positions": radians,
                "time_from_start": seconds(time),
            }],
        },
        "path_tolerance": tolerance(arm.path_tolerance),
        "goal_tolerance": tolerance(arm.goal_tolerance),
        "goal_time_tolerance": seconds(Duration::try_from_secs_f64(arm.late).unwrap_or_default()),
    })
}

/// Which part of its way the joint with the longest way has gone, as the controller's feedback says it: in an order of its own.
fn gone(feedback: &Value, joints: &[Joint], from: &[f64], to: &[f64]) -> Option<f64> {
    let (names, actual) = (&feedback["joint_names"], &feedback["actual"]["positions"]);
    let each = joints.iter().zip(from.iter().zip(to));
    let (joint, from, way) = each
        .map(|(joint, (from, to))| (joint, from, to - from))
        .max_by(|(.., one), (.., other)| one.abs().total_cmp(&other.abs()))?;
    let place = names.as_array()?.iter().position(|name| *name == *joint.name)?;
    let at = actual.get(place)?.as_f64()?.to_degrees();
    (way.abs() > 0.1).then_some((at - from) / way)
}

fn hundredth(value: f64) -> f64 {
    (value * 100.0).round() / 100.0 + 0.0
}
