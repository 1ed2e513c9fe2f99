//! What a K1 does over its own interface: arms, head, hands, and the robot's own wave and dance.

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};

use super::robot::BoosterK1;
use super::routines::End;
use super::rpc::{RpcLink, head_body};
use crate::action::Keyframe;
use crate::adapter::walker::own_time;
use crate::adapter::{ActionError, ActionOutput, Control};
use crate::dds::booster::api;
use crate::ros::path::Path;
use crate::step::{Grip, Step};
use crate::subsystem::Subsystem;

/// The pause between two commands while an arm is given back.
const STEP: Duration = Duration::from_millis(20);
/// The number of the walking mode.
const WALKING: i64 = 2;

impl BoosterK1 {
    /// Asks for something that moves, and waits for the answer.
    async fn ask(
        &self,
        link: &RpcLink,
        control: &Control,
        api: i64,
        body: &Value,
    ) -> Result<Value, ActionError> {
        self.remote.ask(control, || link.ask(api, body)).await
    }

    /// Puts the robot into its walking mode, unless it is already in that mode.
    pub(super) async fn walk_mode(&self, link: &RpcLink, control: &Control) -> Result<(), ActionError> {
        let mode = self.ask(link, control, api::GET_MODE, &Value::Null).await?;
        if mode["mode"] == WALKING {
            return Ok(());
        }
        self.ask(link, control, api::CHANGE_MODE, &json!({"mode": WALKING}))
            .await
            .map(drop)
    }

    /// Asks the robot to let the arms obey us.
    pub(super) async fn take_arms(&self, link: &RpcLink, control: &Control) -> Result<(), ActionError> {
        if !link.taken.load(Ordering::SeqCst) {
            link.ours.store(true, Ordering::SeqCst);
            self.ask(
                link,
                control,
                api::UPPER_BODY_CUSTOM_CONTROL,
                &json!({"start": true}),
            )
            .await?;
            link.taken.store(true, Ordering::SeqCst);
        }
        Ok(())
    }

    /// Gives the arms back to the robot's own controller, once all arms that obey us are at home.
    pub(super) async fn return_arms(
        &self,
        link: &RpcLink,
        on: Subsystem,
        control: &Control,
    ) -> Result<(), ActionError> {
        if !on.is_arm() || !link.are_ours() {
            return Ok(());
        }
        while link.may_fade(on) {
            if self.remote.command(control, || link.fade())? {
                let body = json!({"start": false});
                self.ask(link, control, api::UPPER_BODY_CUSTOM_CONTROL, &body)
                    .await?;
                link.taken.store(false, Ordering::SeqCst);
                link.ours.store(false, Ordering::SeqCst);
                break;
            }
            control.sleep(STEP).await?;
        }
        Ok(())
    }

    /// Turns the head. The robot itself controls the movement.
    pub(super) async fn head(
        &self,
        link: &RpcLink,
        positions: &[f64],
        path: &Path,
        control: &Control,
    ) -> Result<(), ActionError> {
        let [pan, tilt] = positions else {
            return Err(self.remote.lacks("a head of other than two joints"));
        };
        let time = path.time().max(Duration::from_millis(200));
        let mut body = head_body(*pan, *tilt);
        body["time_millis"] = json!(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        let turned = self.remote.ask(control, || {
            link.sent().set_off(Subsystem::Gantry, path.clone());
            link.ask(api::ROTATE_HEAD_WITH_TIME, &body)
        });
        let turned = turned.await;
        if matches!(turned, Err(ActionError::Hardware { .. })) {
            // The robot has refused: the head does not move.
            link.sent().remove(Subsystem::Gantry);
        }
        turned?;
        control.sleep(time).await
    }

    pub(super) async fn clench(
        &self,
        link: &RpcLink,
        on: Subsystem,
        action: Grip,
        force: Option<f64>,
        control: &Control,
    ) -> Result<ActionOutput, ActionError> {
        let key = match on {
            Subsystem::LeftArm => Subsystem::LeftArm,
            _ => Subsystem::RightArm,
        };
        let close = link.hands.closes(key, action);
        // The robot's parser takes only whole numbers.
        let force = crate::adapter::feetech::round(force.unwrap_or(0.5) * 1000.0);
        let body = json!({
            "motion_param": {"position": if close { 0 } else { 1000 }, "force": force, "speed": 500},
            "mode": 0,
            "hand_index": i64::from(key == Subsystem::RightArm),
        });
        self.ask(link, control, api::CONTROL_GRIPPER, &body).await?;
        link.hands.note(key, close);
        control.sleep(Duration::from_secs(1)).await?;
        Ok(ActionOutput::new(format!(
            "gripper of {on} was told to {}",
            if close { "close" } else { "open" }
        ))
        .with("closed", close))
    }

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
                "this toolbox controls the joints of the arms: call go_to_pose with pose home first, then the robot's own wave or dance"
                    .to_owned(),
            ));
        }
        match (step, on) {
            (Step::Wave { .. }, Subsystem::LeftArm | Subsystem::RightArm) => {
                let hand = i64::from(on == Subsystem::RightArm);
                let begin = json!({"hand_index": hand, "hand_action": 0});
                self.own(link, on, &begin, End::wave(hand), time, control).await?;
                Ok(Some(
                    ActionOutput::new("waved").note("the robot's own wave: it knows no style"),
                ))
            }
            // The robot dances with its whole body. The right arm's part of the plan starts and ends the dance.
            (Step::Dance { style, duration }, Subsystem::RightArm) => {
                let begin = json!({ "dance_id": dance(style) });
                let time = Duration::from_secs_f64(*duration);
                self.own(link, on, &begin, End::dance(), time, control).await?;
                Ok(Some(ActionOutput::new("danced").note("the robot's own dance")))
            }
            (Step::Dance { duration, .. }, _) => {
                control.sleep(Duration::from_secs_f64(*duration)).await?;
                Ok(Some(ActionOutput::along(format!("{on} danced along"))))
            }
            _ => Ok(None),
        }
    }

    /// Lets the robot perform a routine of its own for a while. The routine would go on for ever, so a halt of the arm
    /// ends it.
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

/// The robot's dance for a style: our choice among the robot's dances.
fn dance(style: &str) -> i64 {
    match style {
        "silly" => 1,
        "groovy" => 2,
        "victory" => 6,
        _ => 7,
    }
}
