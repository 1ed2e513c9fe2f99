//! The K1's own wave and dance, which go on until they are ended.
//!
//! Owns starting and ending them, and the list of those without a confirmed end. The robot would go on for ever, so
//! an entry stays until the robot has confirmed the end. Read [`Routines`].

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use super::BoosterK1;
use super::rpc::RpcLink;
use crate::action::Keyframe;
use crate::adapter::walker::own_time;
use crate::adapter::{ActionError, ActionOutput, Control};
use crate::dds::booster::api;
use crate::ros::RosError;
use crate::step::Step;
use crate::subsystem::Subsystem;

/// Ends a dance.
const STOP_DANCING: i64 = 1000;
/// How often an end is sent while the robot does not confirm it, and the pause between two tries.
const TIMES: u32 = 3;
const AGAIN: Duration = Duration::from_millis(200);

/// The request that ends one of the robot's own routines.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct End {
    pub(super) function: i64,
    pub(super) body: Value,
}

impl End {
    /// Ends a wave of the left (0) or the right hand (1).
    pub(super) fn wave(hand: i64) -> Self {
        Self {
            function: api::WAVE_HAND,
            body: json!({"hand_index": hand, "hand_action": 1}),
        }
    }

    pub(super) fn dance() -> Self {
        Self {
            function: api::DANCE,
            body: json!({ "dance_id": STOP_DANCING }),
        }
    }

    /// Every end, for a stop that does not know which routine runs: a process that has died may have begun it.
    pub(super) fn all() -> [Self; 3] {
        [Self::wave(0), Self::wave(1), Self::dance()]
    }
}

/// The routines that were begun. Clones are the same list.
#[derive(Clone, Default)]
pub(super) struct Routines(Arc<Mutex<List>>);

#[derive(Default)]
struct List {
    begun: Vec<Begun>,
    /// The number of the newest routine.
    number: u64,
}

struct Begun {
    number: u64,
    arm: Subsystem,
    end: End,
    /// Its end was sent and not confirmed yet.
    owed: bool,
}

impl Routines {
    fn list(&self) -> MutexGuard<'_, List> {
        // Every change is one statement.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a routine of an arm. Called before it is begun.
    pub(super) fn begin(&self, arm: Subsystem, end: End) {
        let mut list = self.list();
        list.number += 1;
        let number = list.number;
        list.begun.push(Begun {
            number,
            arm,
            end,
            owed: false,
        });
    }

    /// The ends of every routine that moves one of these parts. A dance moves all of them.
    pub(super) fn of(&self, parts: &[Subsystem]) -> Vec<End> {
        let dance = End::dance();
        self.ends(|begun| parts.contains(&begun.arm) || (begun.end == dance && !parts.is_empty()))
    }

    /// The ends that were sent and not confirmed.
    pub(super) fn owed(&self) -> Vec<End> {
        self.ends(|begun| begun.owed)
    }

    fn ends(&self, which: impl Fn(&Begun) -> bool) -> Vec<End> {
        let mut ends: Vec<End> = Vec::new();
        for begun in self.list().begun.iter().filter(|begun| which(begun)) {
            if !ends.contains(&begun.end) {
                ends.push(begun.end.clone());
            }
        }
        ends
    }

    /// Notes that an end is sent, and returns the number of the newest routine that it ends. Called before it is
    /// sent.
    pub(super) fn ending(&self, end: &End) -> u64 {
        let mut list = self.list();
        for begun in list.begun.iter_mut().filter(|begun| begun.end == *end) {
            begun.owed = true;
        }
        list.number
    }

    /// Removes the routines that this confirmed end has ended. A newer one goes on.
    pub(super) fn ended(&self, end: &End, newest: u64) {
        let mut list = self.list();
        list.begun
            .retain(|begun| begun.end != *end || begun.number > newest);
    }

    /// Whether an end has to be sent again: it was not confirmed, and the same routine was not begun again.
    pub(super) fn is_owed(&self, end: &End) -> bool {
        let list = self.list();
        let mut same = list.begun.iter().filter(|begun| begun.end == *end).peekable();
        same.peek().is_some() && same.all(|begun| begun.owed)
    }
}

impl RpcLink {
    /// Ends the robot's own routines of these parts, where there are any.
    pub(super) fn end(&self, parts: &[Subsystem]) -> Result<(), RosError> {
        self.end_each(&self.routines.of(parts))
    }

    /// Ends every routine of the robot's own, including one of a process that has died.
    pub(super) fn end_all(&self) -> Result<(), RosError> {
        self.end_each(&End::all())
    }

    /// Sends the unconfirmed ends again to a robot that comes back.
    pub(super) fn end_owed(&self) -> Result<(), RosError> {
        self.end_each(&self.routines.owed())
    }

    /// Every end is sent, even after one that failed.
    fn end_each(&self, ends: &[End]) -> Result<(), RosError> {
        let said: Vec<_> = ends.iter().map(|end| self.say_end(end)).collect();
        said.into_iter().collect()
    }

    /// Sends an end now, and again until the robot confirms it.
    fn say_end(&self, end: &End) -> Result<(), RosError> {
        let newest = self.routines.ending(end);
        let mut asked = self.rpc.ask(end.function, &end.body)?;
        let (rpc, routines, end) = (self.rpc.clone(), self.routines.clone(), end.clone());
        // The end is sent already. Without this task it stays on the list, and the next halt sends it again.
        let _ = self.participant.start(move || async move {
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

impl BoosterK1 {
    /// Performs the robot's own wave or dance; `None` for every other step.
    pub(super) async fn built_in(
        &self,
        link: &RpcLink,
        on: Subsystem,
        step: &Step,
        frames: &[Keyframe],
        control: &Control,
    ) -> Result<Option<ActionOutput>, ActionError> {
        let time = own_time(frames, 0.6, 6.0);
        let is_own = match step {
            Step::Wave { .. } => on.is_arm(),
            Step::Dance { .. } => true,
            _ => false,
        };
        if is_own && link.are_ours() {
            return Err(ActionError::Refused(
                "the arms are led joint by joint: send them home (go_to_pose home) before the robot's own wave or dance"
                    .to_owned(),
            ));
        }
        match (step, on) {
            (Step::Wave { .. }, Subsystem::LeftArm | Subsystem::RightArm) => {
                let hand = i64::from(on == Subsystem::RightArm);
                let begin = json!({"hand_index": hand, "hand_action": 0});
                self.own(link, on, &begin, End::wave(hand), time, control).await?;
                Ok(Some(
                    ActionOutput::said("waved").note("the robot's own wave: it knows no style"),
                ))
            }
            // The robot dances with its whole body. The right arm's part of the plan starts and ends the dance.
            (Step::Dance { style, duration }, Subsystem::RightArm) => {
                let begin = json!({ "dance_id": dance(style) });
                let time = Duration::from_secs_f64(*duration);
                self.own(link, on, &begin, End::dance(), time, control).await?;
                Ok(Some(ActionOutput::said("danced").note("the robot's own dance")))
            }
            (Step::Dance { duration, .. }, _) => {
                control.sleep(Duration::from_secs_f64(*duration)).await?;
                Ok(Some(ActionOutput::along(format!("{on} danced along"))))
            }
            _ => Ok(None),
        }
    }

    /// Lets the robot perform a routine of its own for a while. It would go on for ever, so a halt of the arm ends
    /// it.
    async fn own(
        &self,
        link: &RpcLink,
        on: Subsystem,
        begin: &Value,
        end: End,
        time: Duration,
        control: &Control,
    ) -> Result<(), ActionError> {
        let begun = self.remote.ask(control, || {
            link.routines.begin(on, end.clone());
            link.ask(end.function, begin)
        });
        if let Err(error) = begun.await {
            // The robot may have heard the request even where no answer came.
            let _ = control.command(|| link.end(&[on]));
            return Err(error);
        }
        control.sleep(time).await?;
        let mut newest = 0;
        let ended = self.remote.ask(control, || {
            newest = link.routines.ending(&end);
            link.ask(end.function, &end.body)
        });
        if let Err(error) = ended.await {
            let _ = control.command(|| link.end(&[on]));
            return Err(error);
        }
        link.routines.ended(&end, newest);
        Ok(())
    }
}

/// The robot's dance for a style: our choice among its own.
fn dance(style: &str) -> i64 {
    match style {
        "silly" => 1,
        "groovy" => 2,
        "victory" => 6,
        _ => 7,
    }
}
