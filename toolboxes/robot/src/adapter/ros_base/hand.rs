//! Hands: a command of either kind, and what the hand's joint says then.

use std::time::{Duration, Instant};

use parking_lot::MutexGuard;
use ros_graph::graph::GoalStatus;
use serde_json::{Value, json};

use super::arms::LAG;
use super::base::{Outcome, RosBase};
use super::channels::{GRIPPERS, HandChannel, unforced};
use super::goals::type_of;
use super::link::BaseLink;
use crate::adapter::remote::until;
use crate::adapter::{ActionError, ActionOutput, Control};
use crate::ros::RosError;
use crate::step::Grip;
use crate::subsystem::Subsystem;

/// The part of its width, from closed to open, within which a hand is where it was told to go, or has not moved.
const MARGIN: f64 = 0.05;
/// Openings, as parts of its width, that say the same.
const AGREES: f64 = 0.01;
/// A hand rests that has said the same for so long.
const RESTS: Duration = Duration::from_millis(200);
/// The pause between two looks at it.
const LOOK: Duration = Duration::from_millis(10);
/// The least part of its force that a hand is sent: none at all means something else to every controller.
const LEAST_FORCE: f64 = 0.05;
/// The part of its force with which a hand closes by default.
const USUAL_FORCE: f64 = 0.5;
/// How long a hand may take besides its way.
const PATIENCE: Duration = Duration::from_secs(2);

/// How far a hand is open, each from 0 to 1.
#[derive(Clone, Copy, Debug)]
struct Openings {
    /// Where it is when it is told to open, and to close.
    ends: (f64, f64),
    before: f64,
    now: f64,
}

impl Openings {
    fn middle(&self) -> f64 {
        f64::midpoint(self.ends.0, self.ends.1)
    }
}

/// What a hand was told, and what its controller says of it.
#[derive(Clone, Copy, Debug)]
struct Report {
    close: bool,
    stalled: bool,
    reached: bool,
    /// It held something before.
    held: bool,
}

impl RosBase {
    fn hand(&self, on: Subsystem) -> Option<&HandChannel> {
        self.config.arms.get(&on)?.gripper.as_ref()
    }

    /// How far a hand is open, 0 to 1, and when that was told.
    pub(super) fn opening(&self, link: &BaseLink, on: Subsystem) -> Option<(Instant, f64)> {
        let hand = self.hand(on)?;
        let (at, position) = link.readings.joints.fresh(&hand.joint)?;
        Some((at, (position - hand.closed) / (hand.open - hand.closed)))
    }

    /// Whether a hand holds something; `None` where that is not known.
    pub(super) fn holding(&self, on: Subsystem) -> Option<bool> {
        let (_, open) = self.opening(self.remote.link()?, on)?;
        let known = self.hands().get(&on).copied();
        match known {
            // It has closed further, or was opened, since it closed on something.
            Some(held) => Some(held.is_some_and(|held| (open - held).abs() <= MARGIN)),
            None => (open <= MARGIN).then_some(false),
        }
    }

    fn hands(&self) -> MutexGuard<'_, std::collections::BTreeMap<Subsystem, Option<f64>>> {
        self.hands.lock()
    }

    /// Opens or closes a hand. One that closes with a force has to hold something.
    pub(super) async fn grip(
        &self,
        on: Subsystem,
        (grip, force): (Grip, Option<f64>),
        control: &Control,
    ) -> Outcome {
        let parts = self.remote.capabilities().arm(on);
        let (Some(hand), Some(part)) = (self.hand(on), parts.and_then(|arm| arm.gripper.as_ref())) else {
            return Err(self.remote.lacks(format!("gripper of {on}")));
        };
        let link = self.remote.there(control).await?;
        let untold = || {
            self.remote.away(&format!(
                "no position of {} has arrived on {} for a second: check what publishes it, or correct the name of the joint",
                hand.joint,
                self.config.joints().unwrap_or_default()
            ))
        };
        let (_, before) = until(control, LAG, || self.opening(link, on).ok_or(()))
            .await?
            .map_err(|()| untold())?;
        let ends = (part.open / 100.0, part.closed / 100.0);
        let openings = Openings {
            ends,
            before,
            now: before,
        };
        let close = match grip {
            Grip::Open => false,
            Grip::Close => true,
            Grip::Toggle => before > openings.middle(),
        };
        let share = if close { ends.1 } else { ends.0 };
        let to = hand.closed + (hand.open - hand.closed) * share;
        let served = control.unless_cancelled(type_of(link.graph.as_ref(), &hand.action, &GRIPPERS));
        let of = served
            .await?
            .map_err(|error| self.remote.failed(RosError::Graph(error)))?;
        let effort = hand
            .force
            .map(|full| full * force.unwrap_or(USUAL_FORCE).max(LEAST_FORCE));
        let command = match (of.as_deref() == Some(GRIPPERS[1]), effort) {
            (true, effort) => json!({
                "name": [hand.joint], "position": [to], "effort": effort.into_iter().collect::<Vec<f64>>(),
            }),
            (false, Some(effort)) => json!({"position": to, "max_effort": effort}),
            (false, None) => return Err(ActionError::Refused(unforced(on, &hand.action))),
        };
        let way = Duration::try_from_secs_f64((part.open - part.closed).abs() / part.max_speed);
        let limit = way.unwrap_or_default() + PATIENCE;
        // It is first asked when the goal was accepted.
        let mut start = None;
        let watch = |_: Option<&Value>| match () {
            () if self.opening(link, on).is_none() => Err(untold()),
            () if start.get_or_insert_with(Instant::now).elapsed() > limit => Err(self.trouble(format!(
                "{} has not said within {:.1} s that it has ended; its goal was cancelled",
                hand.action,
                limit.as_secs_f64()
            ))),
            () => Ok(None),
        };
        let held = self.holding(on) == Some(true);
        self.hands().remove(&on);
        let goal = json!({"command": command});
        let end = self.pursue((&hand.action, on), goal, watch, control).await?;
        let stalled = end.result["stalled"] == true;
        // What stalls a hand that closes is what it holds; some controllers give such a goal up.
        if !(close && stalled && end.status == GoalStatus::Aborted) {
            self.reached(&hand.action, &end)?;
        }
        let ended = Instant::now();
        let report = Report {
            close,
            stalled,
            reached: end.result["reached_goal"] == true,
            held,
        };
        // It may lag behind its controller: it has come to rest where it agrees with itself for a while.
        let mut rests: Option<(Instant, f64)> = None;
        let (now, holds) = loop {
            let (at, now) = self.opening(link, on).ok_or_else(untold)?;
            match rests {
                _ if at < ended => {}
                Some((since, before)) if (now - before).abs() <= AGREES => {
                    let judged = self.judge(on, Openings { now, ..openings }, report);
                    if let (true, Ok(holds)) = (at.duration_since(since) >= RESTS, judged) {
                        break (now, holds);
                    }
                }
                _ => rests = Some((at, now)),
            }
            if ended.elapsed() >= LAG {
                let (_, now) = rests.ok_or_else(untold)?;
                break (now, self.judge(on, Openings { now, ..openings }, report)?);
            }
            control.sleep(LOOK).await?;
        };
        self.hands().insert(on, holds.then_some(now));
        if close && force.is_some() && !holds {
            return Err(ActionError::Refused(format!("{on} has closed on nothing")));
        }
        let word = match (close, holds) {
            (true, true) => "closed and holds something",
            (true, false) => "closed",
            (false, _) if now < ends.0 - MARGIN => "opened as far as it goes",
            (false, _) => "open",
        };
        Ok(ActionOutput::new(format!("gripper of {on} is {word}"))
            .with("closed", close)
            .with("holding", holds)
            .with("gripper_percent", (now * 100.0).round()))
    }

    /// Whether a hand holds something: what it was told to close further than holds it open, or stalls it where nothing of its own ends
    /// its way.
    ///
    /// # Errors
    /// It has not done what it says.
    fn judge(&self, on: Subsystem, hand: Openings, report: Report) -> Outcome<bool> {
        let trouble = |what: &str| {
            Err(self.trouble(format!(
                "the gripper of {on} {what}: its joint says that it is open by {:.0} %, and it was told {:.0} %",
                hand.now * 100.0,
                if report.close { hand.ends.1 } else { hand.ends.0 } * 100.0
            )))
        };
        if !report.close {
            return match hand.now < hand.middle() {
                true => trouble("did not open"),
                false => Ok(false),
            };
        }
        let is_short = hand.now > hand.ends.1 + MARGIN;
        // At the end of its own way every hand stalls.
        let is_held_open = is_short || (report.stalled && hand.ends.1 > MARGIN);
        let has_moved = hand.before - hand.now >= MARGIN;
        match is_held_open {
            true if !has_moved && !report.held => trouble("did not close"),
            true if !report.stalled && report.reached => trouble("says that it is closed, and is not"),
            holds => Ok(holds),
        }
    }
}
