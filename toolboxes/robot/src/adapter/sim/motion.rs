//! Movements in the simulated world: each starts under the world's lock and ends on the simulator's clock.

use serde_json::json;

use super::axis::thousandth;
use super::config::Fault;
use super::{Begun, Sim, world};
use crate::action::{Keyframe, LiftTarget, Velocity};
use crate::adapter::{ActionError, ActionOutput, Control};
use crate::step::{Grip, HitchAction};
use crate::subsystem::Subsystem;

impl Sim {
    /// Moves all joints of a part.
    pub(super) async fn go(
        &self,
        on: Subsystem,
        to: &[f64],
        speed: f64,
        hold: f64,
        begun: &Begun,
        control: &Control,
    ) -> Result<(), ActionError> {
        let to: Vec<Option<f64>> = self.world().tighten(&self.capabilities, on, to, self.clock.now());
        self.leg(on, &to, speed, hold, begun, control).await
    }

    /// Moves the joints of a part that have a goal, and waits for them.
    pub(super) async fn leg(
        &self,
        on: Subsystem,
        to: &[Option<f64>],
        speed: f64,
        hold: f64,
        begun: &Begun,
        control: &Control,
    ) -> Result<(), ActionError> {
        if self.faults.contains(&Fault::Stuck(on)) {
            return Err(self.broken(format!("{on} does not move")));
        }
        let end = control.command(|| self.set_out(on, to, speed, begun, control))??;
        self.wait(on, end + hold, begun, control).await
    }

    fn set_out(
        &self,
        on: Subsystem,
        to: &[Option<f64>],
        speed: f64,
        begun: &Begun,
        control: &Control,
    ) -> Result<f64, ActionError> {
        let mut world = self.world();
        world.may_move(on, begun)?;
        let to = world.heed_servos(on, to);
        let now = self.clock.now();
        world.servos.power(on, true);
        let axes = world
            .axes
            .get_mut(&on)
            .ok_or_else(|| self.lacks(on.to_string()))?;
        let seconds = axes.set_out(now, &to, speed);
        self.trace.line(|| {
            let (from, to) = axes.way();
            json!({"t": now, "do": "move", "on": on, "from": from, "to": to, "seconds": seconds, "for": control.label()})
        });
        Ok(now + seconds)
    }

    /// Waits until the simulated time; a halt of the part ends the wait.
    pub(super) async fn wait(
        &self,
        on: Subsystem,
        until: f64,
        begun: &Begun,
        control: &Control,
    ) -> Result<(), ActionError> {
        control.unless_cancelled(self.clock.until(until)).await?;
        self.world().may_move(on, begun)
    }

    pub(super) async fn play(
        &self,
        on: Subsystem,
        frames: &[Keyframe],
        begun: &Begun,
        control: &Control,
    ) -> Result<ActionOutput, ActionError> {
        for (done, frame) in (1_u32..).zip(frames) {
            self.go(on, &frame.positions, frame.speed, frame.hold, begun, control)
                .await?;
            let all = u32::try_from(frames.len()).unwrap_or(u32::MAX);
            control.progress(f64::from(done) / f64::from(all), "moving");
        }
        Ok(self.arrived(on, &format!("{on} done")))
    }

    pub(super) async fn drive(
        &self,
        velocity: Velocity,
        seconds: f64,
        begun: &Begun,
        control: &Control,
    ) -> Result<ActionOutput, ActionError> {
        if self.faults.contains(&Fault::Stuck(Subsystem::Base)) {
            return Err(self.broken("base does not move"));
        }
        let end = control.command(|| self.set_off(velocity, seconds, begun, control))??;
        self.wait(Subsystem::Base, end, begun, control).await?;
        let place = self.world().base.place(self.clock.now());
        Ok(ActionOutput::said("base moved")
            .with("x_m", thousandth(place.x))
            .with("y_m", thousandth(place.y))
            .with("heading_degrees", place.heading_degrees()))
    }

    fn set_off(
        &self,
        velocity: Velocity,
        seconds: f64,
        begun: &Begun,
        control: &Control,
    ) -> Result<f64, ActionError> {
        let mut world = self.world();
        world.may_move(Subsystem::Base, begun)?;
        if world.hitched.as_deref() == Some(world::CHARGER) {
            return Err(self.broken("held by the charger: undock first"));
        }
        let now = self.clock.now();
        world.servos.power(Subsystem::Base, true);
        world.base.drive(now, velocity, seconds);
        self.trace.line(|| {
            json!({"t": now, "do": "drive", "on": "base", "velocity": [velocity.x, velocity.y, velocity.turn], "seconds": seconds, "for": control.label()})
        });
        Ok(now + seconds)
    }

    pub(super) fn brake(&self) {
        let mut world = self.world();
        let now = self.clock.now();
        world.base.stop(now);
        self.trace.line(|| json!({"t": now, "do": "brake", "on": "base"}));
    }

    pub(super) async fn lift(
        &self,
        to: LiftTarget,
        begun: &Begun,
        control: &Control,
    ) -> Result<ActionOutput, ActionError> {
        let on = Subsystem::Lift;
        let lift = self
            .capabilities
            .lift
            .as_ref()
            .ok_or_else(|| self.lacks("lift"))?;
        let at = self.position(on);
        let wanted = match to {
            LiftTarget::By(by) => at + by,
            LiftTarget::To(to) => to,
        };
        let to = wanted.clamp(lift.min, lift.max);
        self.leg(on, &[Some(to)], 1.0, 0.0, begun, control).await?;
        let output = self.arrived(on, &format!("lift at {to:.0} mm"));
        if (to - wanted).abs() > 1e-6 {
            return Ok(output.ends_at("position_mm", wanted, to));
        }
        Ok(output)
    }

    pub(super) async fn grip(
        &self,
        on: Subsystem,
        action: Grip,
        force: Option<f64>,
        begun: &Begun,
        control: &Control,
    ) -> Result<ActionOutput, ActionError> {
        let gripper = self.capabilities.arm(on).and_then(|arm| arm.gripper.as_ref());
        let gripper = gripper.ok_or_else(|| self.lacks(format!("a gripper at {on}")))?;
        let open = match action {
            Grip::Open => true,
            Grip::Close => false,
            Grip::Toggle => !self.world().hand_is_open(on, gripper, self.clock.now()),
        };
        let holds = if open { None } else { self.world().in_reach(on) };
        let closed = if holds.is_some() {
            // A thing is as wide as a quarter of the opening.
            gripper.closed + (gripper.open - gripper.closed) / 4.0
        } else {
            gripper.closed
        };
        let to = if open { gripper.open } else { closed };
        match gripper.joint {
            Some(joint) => {
                let mut joints = vec![None; joint + 1];
                joints[joint] = Some(to);
                self.leg(on, &joints, 1.0, 0.0, begun, control).await?;
            }
            None => {
                control.command(|| self.world().hands.insert(on, to))?;
                let seconds = (gripper.open - gripper.closed).abs() / gripper.max_speed;
                self.wait(on, self.clock.now() + seconds, begun, control).await?;
            }
        }
        let mut world = self.world();
        let output = ActionOutput::said(if open { "hand open" } else { "hand closed" }).with("open", open);
        if open {
            let dropped = world.let_go(on);
            return Ok(output.with("released", json!(dropped)));
        }
        let held = world.grasp(on, holds);
        if held.is_none() && force.is_some() {
            let there = world
                .reached
                .get(on.as_str())
                .cloned()
                .unwrap_or_else(|| "nothing".to_string());
            return Err(ActionError::Refused(format!(
                "{on} has closed on nothing: no {there} there"
            )));
        }
        Ok(output.with("holding", json!(held)))
    }

    pub(super) async fn hitch(
        &self,
        action: HitchAction,
        grip_percent: Option<f64>,
        begun: &Begun,
        control: &Control,
    ) -> Result<ActionOutput, ActionError> {
        let on = Subsystem::Hitch;
        let hitch = self
            .capabilities
            .hitch
            .as_ref()
            .ok_or_else(|| self.lacks("hitch"))?;
        let is_open = (self.position(on) - hitch.open).abs() < (hitch.closed - hitch.open).abs() / 4.0;
        let close = match action {
            HitchAction::Close | HitchAction::Dock => true,
            HitchAction::Open | HitchAction::Release => false,
            HitchAction::Toggle => is_open,
        };
        let part = match grip_percent {
            Some(percent) if close => percent / 100.0,
            _ => f64::from(u8::from(close)),
        };
        let to = hitch.open + (hitch.closed - hitch.open) * part;
        self.leg(on, &[Some(to)], 1.0, 0.0, begun, control).await?;
        let holding = self.world().hitch(close, action == HitchAction::Dock);
        if action == HitchAction::Dock && holding.is_none() {
            return Err(ActionError::Refused(
                "the hitch has closed on nothing: no charger behind the robot".to_string(),
            ));
        }
        let said = if close { "hitch closed" } else { "hitch open" };
        Ok(self.arrived(on, said).with("holding", json!(holding)))
    }

    pub(super) fn without_gripper(&self, on: Subsystem, positions: &[f64]) -> Vec<Option<f64>> {
        let gripper = self
            .capabilities
            .arm(on)
            .and_then(|arm| arm.gripper.as_ref()?.joint);
        let joints = positions.iter().enumerate();
        joints
            .map(|(index, to)| (Some(index) != gripper).then_some(*to))
            .collect()
    }
}
