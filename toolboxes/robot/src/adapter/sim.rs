//! A robot that is not there: a kinematic model with the limits, servos, things and people of a real one.
//!
//! Owns the simulated world. Movement is in closed form on a clock of its own (`axis`, `clock`), so it can run hundreds of
//! times faster than real time and stop exactly when it is told to. Everything it returns is marked as simulated, as the
//! capabilities say. Read [`Sim`].

mod axis;
mod clock;
mod people;
mod servos;
mod trace;
mod upkeep;
mod world;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::action::{Action, Grip, HitchAction, Keyframe, LiftTarget, Primitive, Stage, Velocity};
use crate::adapter::{ActionError, ActionOutput, Adapter, Control, Sighting};
use crate::capability::Capabilities;
use crate::config::Estop;
use crate::model::{Model, ModelError};
use crate::subsystem::Subsystem;
use clock::Clock;
pub use people::Person;
use trace::Trace;
pub use world::Thing;
use world::World;

/// What belongs to the simulator alone.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SimConfig {
    /// Which robot it pretends to be.
    pub model: SimModel,
    /// How many times faster than real time it is.
    #[schemars(range(min = 0.1, max = 2_000.0))]
    pub time_scale: f64,
    /// Every command is appended to this file as a line of JSON.
    pub trace: Option<PathBuf>,
    /// Who is in view.
    pub people: Vec<Person>,
    /// What lies around.
    pub objects: Vec<Thing>,
    /// A cart stands behind the robot.
    pub cart: bool,
    /// A charger stands behind the robot.
    pub charger: bool,
    /// What does not work.
    pub faults: Vec<Fault>,
}

impl Default for SimConfig {
    fn default() -> Self {
        let person = |name: Option<&str>, bearing, speaking| Person {
            name: name.map(str::to_owned),
            bearing,
            distance: 1.5,
            speaking,
        };
        let thing = |name: &str, bearing| Thing {
            name: name.to_string(),
            bearing,
            tilt: 25.0,
            distance: 0.4,
        };
        Self {
            model: SimModel::default(),
            time_scale: 1.0,
            trace: None,
            people: vec![person(Some("Ada"), -20.0, true), person(None, 35.0, false)],
            objects: vec![
                thing("cup", 10.0),
                thing("ball", -15.0),
                thing("box", 0.0),
                thing("table", 0.0),
            ],
            cart: true,
            charger: true,
            faults: Vec::new(),
        }
    }
}

/// Which robot the simulator pretends to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SimModel {
    /// Johnny Five, which has every part.
    #[default]
    #[serde(rename = "johnny5")]
    Johnny5,
    /// Booster K1.
    BoosterK1,
    /// Unitree G1.
    UnitreeG1,
}

/// Something that does not work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// The whole robot is away.
    Offline,
    /// Its emergency button is pressed: a stop cannot be reset.
    Button,
    /// This servo does not answer: `bus:id`.
    Missing(String),
    /// This servo is too warm: `bus:id`.
    Hot(String),
    /// This part does not move.
    Stuck(Subsystem),
}

/// The model that the simulator pretends to be.
///
/// # Errors
/// As the model's.
pub fn model(config: &SimConfig) -> Result<Model, ModelError> {
    let mut model = match config.model {
        SimModel::Johnny5 => Model::johnny5(),
        SimModel::BoosterK1 => Model::booster_k1(),
        SimModel::UnitreeG1 => Model::unitree_g1(),
    }?;
    model.capabilities.simulated = true;
    Ok(model)
}

/// A simulated robot.
pub struct Sim {
    name: String,
    capabilities: Capabilities,
    estop: Estop,
    clock: Clock,
    trace: Trace,
    faults: Vec<Fault>,
    world: Mutex<World>,
}

/// What an action knew when it began: a halt since then ends it.
type Begun = BTreeMap<Subsystem, u64>;

impl Sim {
    /// A robot at home.
    ///
    /// # Errors
    /// The configuration makes no sense, or the trace cannot be written.
    pub fn new(
        name: &str,
        config: &SimConfig,
        capabilities: Capabilities,
        estop: Option<Estop>,
    ) -> Result<Self, ActionError> {
        if !(0.1..=2_000.0).contains(&config.time_scale) {
            return Err(ActionError::OutOfRange {
                what: format!("robots.{name}.sim.time_scale"),
                value: config.time_scale,
                min: 0.1,
                max: 2_000.0,
                unit: "times",
            });
        }
        let trace = Trace::open(config.trace.as_deref())
            .map_err(|error| ActionError::Refused(format!("robots.{name}.sim.trace: {error}")))?;
        let home = model(config).map_err(|error| ActionError::Refused(error.to_string()))?;
        let at_home = |on| home.home(on);
        Ok(Self {
            name: name.to_string(),
            world: Mutex::new(World::new(&capabilities, config, at_home)),
            capabilities,
            estop: estop.unwrap_or(Estop::Hold),
            clock: Clock::new(config.time_scale),
            trace,
            faults: config.faults.clone(),
        })
    }

    fn world(&self) -> MutexGuard<'_, World> {
        // A panic in the middle of a change would have been a bug; the world is still a world.
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lacks(&self, what: impl Into<String>) -> ActionError {
        ActionError::NotSupported {
            robot: self.name.clone(),
            what: what.into(),
        }
    }

    fn broken(&self, what: impl Into<String>) -> ActionError {
        ActionError::Hardware {
            robot: self.name.clone(),
            what: what.into(),
        }
    }

    async fn perform(&self, action: &Action, control: &Control) -> Result<ActionOutput, ActionError> {
        if self.faults.contains(&Fault::Offline) {
            return Err(ActionError::NotConnected {
                robot: self.name.clone(),
                reason: "the configuration says offline".to_string(),
            });
        }
        let on = action.subsystem;
        let begun = self.world().halts.clone();
        if needs_servos(&action.primitive) {
            self.check_servos(on)?;
        }
        match &action.primitive {
            Primitive::MoveToPose {
                positions,
                speed,
                pose,
                ..
            } => {
                self.go(on, positions, *speed, 0.0, &begun, control).await?;
                Ok(self.arrived(on, &format!("{on} in pose {pose}")))
            }
            Primitive::MoveToPosition { positions, speed } => {
                self.go(on, positions, *speed, 0.0, &begun, control).await?;
                Ok(self.arrived(on, &format!("{on} moved")))
            }
            Primitive::Reach {
                target,
                stage,
                positions,
                speed,
            } => {
                let to = self.without_gripper(on, positions);
                self.leg(on, &to, *speed, 0.0, &begun, control).await?;
                self.world().reach(on, target, *stage == Stage::At);
                Ok(self.arrived(on, &format!("{on} reached for {target}")))
            }
            Primitive::LookAt {
                target,
                pan,
                tilt,
                speed,
            } => {
                self.go(on, &[*pan, *tilt], *speed, 0.0, &begun, control).await?;
                Ok(self.arrived(on, &format!("looking at {target}")))
            }
            Primitive::Routine { frames, .. } => self.play(on, frames, &begun, control).await,
            Primitive::Gripper { action, force } => self.grip(on, *action, *force, &begun, control).await,
            Primitive::Drive {
                velocity, duration, ..
            } => {
                self.drive(*velocity, duration.as_secs_f64(), &begun, control)
                    .await
            }
            Primitive::Lift { to } => self.lift(*to, &begun, control).await,
            Primitive::Hitch { action, grip_percent } => {
                self.hitch(*action, *grip_percent, &begun, control).await
            }
            Primitive::Stop => {
                self.brake();
                Ok(ActionOutput::said("the base stands still"))
            }
            other => self.upkeep(on, other, &begun, control).await,
        }
    }

    /// Moves all joints of a part.
    async fn go(
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

    /// Moves joints of a part, those that have somewhere to go, and waits for them.
    async fn leg(
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
    async fn wait(
        &self,
        on: Subsystem,
        until: f64,
        begun: &Begun,
        control: &Control,
    ) -> Result<(), ActionError> {
        control.unless_cancelled(self.clock.until(until)).await?;
        self.world().may_move(on, begun)
    }

    async fn play(
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

    async fn drive(
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
            .with("heading_degrees", thousandth(place.heading.to_degrees())))
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

    fn brake(&self) {
        let mut world = self.world();
        let now = self.clock.now();
        world.base.stop(now);
        self.trace.line(|| json!({"t": now, "do": "brake", "on": "base"}));
    }

    async fn lift(
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
            return Ok(output.note(format!("the lift ends at {to:.0} mm")));
        }
        Ok(output)
    }

    async fn grip(
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
            // Around a thing as wide as a quarter of the opening.
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

    async fn hitch(
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

    /// What keeps a part from moving: a servo that does not answer and was not given up.
    fn check_servos(&self, on: Subsystem) -> Result<(), ActionError> {
        let world = self.world();
        for (bus, servo) in world.servos.of(on).filter(|_| on != Subsystem::All) {
            let at = format!("{}:{} ({})", bus.as_str(), servo.id, servo.name);
            if servo.ignored && !world.go_on {
                return Err(ActionError::Refused(format!(
                    "{on} needs servo {at}, which is out of order"
                )));
            }
            if servo.missing && !servo.ignored {
                return Err(self.broken(format!("servo {at} does not answer; see recover_servo")));
            }
        }
        Ok(())
    }

    fn without_gripper(&self, on: Subsystem, positions: &[f64]) -> Vec<Option<f64>> {
        let gripper = self
            .capabilities
            .arm(on)
            .and_then(|arm| arm.gripper.as_ref()?.joint);
        let joints = positions.iter().enumerate();
        joints
            .map(|(index, to)| (Some(index) != gripper).then_some(*to))
            .collect()
    }

    fn position(&self, on: Subsystem) -> f64 {
        let world = self.world();
        let axes = world.axes.get(&on);
        axes.and_then(|axes| axes.positions(self.clock.now()).first().copied())
            .unwrap_or_default()
    }

    fn positions(&self, on: Subsystem) -> Vec<f64> {
        let world = self.world();
        let axes = world.axes.get(&on);
        let positions = axes
            .map(|axes| axes.positions(self.clock.now()))
            .unwrap_or_default();
        positions.into_iter().map(thousandth).collect()
    }

    fn arrived(&self, on: Subsystem, said: &str) -> ActionOutput {
        ActionOutput::said(said).with("positions", self.positions(on))
    }
}

impl Adapter for Sim {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn connect(&self) -> BoxFuture<'_, Result<(), ActionError>> {
        Box::pin(async {
            if self.faults.contains(&Fault::Offline) {
                return Err(ActionError::NotConnected {
                    robot: self.name.clone(),
                    reason: "the configuration says offline".to_string(),
                });
            }
            Ok(())
        })
    }

    fn execute<'a>(
        &'a self,
        action: &'a Action,
        control: &'a Control,
    ) -> BoxFuture<'a, Result<ActionOutput, ActionError>> {
        Box::pin(async move {
            let on = action.subsystem;
            self.trace
                .line(|| json!({"t": self.clock.now(), "do": "begin", "on": on, "for": control.label()}));
            let done = self.perform(action, control).await;
            self.trace.line(
                || json!({"t": self.clock.now(), "do": "end", "on": on, "for": control.label(), "ok": done.is_ok()}),
            );
            done
        })
    }

    fn state(&self, subsystem: Subsystem) -> Value {
        let connected = !self.faults.contains(&Fault::Offline);
        let mut state = json!({"mode": "simulation", "connected": connected});
        let now = self.clock.now();
        let world = self.world();
        if subsystem == Subsystem::Base {
            let place = world.base.place(now);
            let Velocity { x, y, turn } = world.base.velocity(now);
            state["pose"] = json!([place.x, place.y, place.heading]);
            state["velocities"] = json!([x, y, turn]);
        } else if let Some(axes) = world.axes.get(&subsystem) {
            state["positions"] = json!(axes.positions(now));
            state["moving"] = json!(axes.is_moving(now));
        }
        state
    }

    fn halt(&self, subsystems: &[Subsystem], emergency: bool) -> Result<(), ActionError> {
        let mut world = self.world();
        let now = self.clock.now();
        for on in subsystems.iter().flat_map(|on| on.each()) {
            world.halt(on, now);
            if emergency && self.estop == Estop::TorqueOff {
                world.servos.power(on, false);
            }
        }
        world.stopped |= emergency;
        self.trace.line(|| {
            let rest_in = Subsystem::EACH
                .map(|on| world.rests_in(on, now))
                .into_iter()
                .fold(0.0, f64::max);
            json!({"t": now, "do": "halt", "on": subsystems, "emergency": emergency, "rest_in": rest_in})
        });
        Ok(())
    }

    fn reset(&self) -> Result<(), ActionError> {
        if self.faults.contains(&Fault::Button) {
            return Err(ActionError::Refused(format!(
                "{}: the emergency button is still pressed",
                self.name
            )));
        }
        self.world().stopped = false;
        self.trace.line(|| json!({"t": self.clock.now(), "do": "reset"}));
        Ok(())
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    fn locate(&self, what: &str) -> Option<Sighting> {
        let world = self.world();
        let thing = world.thing(what).map(|thing| Sighting {
            bearing: thing.bearing,
            tilt: thing.tilt,
            distance: thing.distance,
        });
        thing.or_else(|| world.people.locate(what))
    }

    fn recognise(&self, tool: &str, args: &Value) -> Option<Value> {
        self.world().people.answer(tool, args)
    }
}

/// What cannot be done with a part that has lost a servo; the rest is how to find out and get it back.
fn needs_servos(primitive: &Primitive) -> bool {
    primitive.joints().is_some()
        || matches!(
            primitive,
            Primitive::Gripper { .. }
                | Primitive::Drive { .. }
                | Primitive::Lift { .. }
                | Primitive::Hitch { .. }
                | Primitive::LookAt { .. }
                | Primitive::Routine { .. }
                | Primitive::Calibrate { .. }
        )
}

/// Three decimals are what anybody wants to read.
fn thousandth(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0 + 0.0
}
