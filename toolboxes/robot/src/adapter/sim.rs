//! A simulated robot: a kinematic model with the limits, servos, things and people of a real one.
//!
//! Owns the simulated world. Movement is in closed form on the simulator's clock (`axis`, `clock`), so it can run
//! hundreds of times faster than real time and stops exactly on command. Its capabilities mark every result as
//! simulated. Read [`Sim`].

mod axis;
mod clock;
mod config;
pub mod driver;
mod motion;
pub(in crate::adapter) mod people;
mod servos;
mod trace;
mod upkeep;
mod world;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use crate::action::{Action, Motion, Velocity};
use crate::adapter::{ActionError, ActionOutput, Adapter, Control, Estop, Sighting};
use crate::bearing::half_circle;
use crate::capability::Capabilities;
use crate::driver::DrivenRobot;
use crate::step::{Stage, Step};
use crate::subsystem::Subsystem;
use axis::thousandth;
use clock::Clock;
pub use config::{Fault, SimConfig, SimModel, Thing};
pub use people::Person;
use trace::Trace;
use world::World;

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

/// The count of halts when an action began. A later halt ends the action.
type Begun = BTreeMap<Subsystem, u64>;

impl Sim {
    /// A robot at home.
    ///
    /// # Errors
    /// A number is out of range, or the trace cannot be written.
    pub fn new(robot: DrivenRobot<'_>, config: &SimConfig) -> Result<Self, ActionError> {
        let name = robot.name;
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
        let at_home = |on| robot.model.home(on);
        Ok(Self {
            name: name.to_string(),
            world: Mutex::new(World::new(robot.capabilities, config, at_home)),
            capabilities: robot.capabilities.clone(),
            estop: robot.stop.emergency.unwrap_or(Estop::Hold),
            clock: Clock::new(config.time_scale),
            trace,
            faults: config.faults.clone(),
        })
    }

    fn world(&self) -> MutexGuard<'_, World> {
        // Every change keeps the world valid.
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
        if needs_servos(action) {
            self.check_servos(on)?;
        }
        match &action.motion {
            Some(Motion::Joints { positions, speed }) => {
                if let Some((target, stage)) = action.step.reach() {
                    let to = self.without_gripper(on, positions);
                    self.leg(on, &to, *speed, 0.0, &begun, control).await?;
                    self.world().reach(on, target, stage == Stage::At);
                    return Ok(self.arrived(on, &format!("{on} reached for {target}")));
                }
                self.go(on, positions, *speed, 0.0, &begun, control).await?;
                let said = match &action.step {
                    Step::MoveToPose { pose, .. } => format!("{on} in pose {pose}"),
                    Step::LookAt { target } => format!("looking at {target}"),
                    _ => format!("{on} moved"),
                };
                Ok(self.arrived(on, &said))
            }
            Some(Motion::Frames(frames)) => self.play(on, frames, &begun, control).await,
            Some(Motion::Drive { velocity, duration }) => {
                self.drive(*velocity, duration.as_secs_f64(), &begun, control)
                    .await
            }
            Some(Motion::Lift(to)) => self.lift(*to, &begun, control).await,
            None => self.upkeep(on, &action.step, &begun, control).await,
        }
    }

    /// Refuses a part with a servo that does not answer, unless the servo was given up.
    fn check_servos(&self, on: Subsystem) -> Result<(), ActionError> {
        let world = self.world();
        for (bus, servo) in world.servos.of(on) {
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

    fn holds(&self, arm: Subsystem) -> Option<bool> {
        Some(self.world().held.contains_key(&arm))
    }

    fn locate(&self, what: &str) -> Option<Sighting> {
        let world = self.world();
        let turned = world.base.place(self.clock.now()).heading_degrees();
        let thing = world.thing(what).map(|thing| Sighting {
            bearing: half_circle(thing.bearing + turned),
            tilt: thing.tilt,
            distance: thing.distance,
        });
        thing.or_else(|| world.people.locate(what, turned))
    }

    fn recognise(&self, tool: &str, args: &Value) -> Option<Value> {
        let mut world = self.world();
        let turned = world.base.place(self.clock.now()).heading_degrees();
        world.people.answer(tool, args, turned)
    }
}

/// Whether a part with a lost servo cannot do the action. Diagnostics and recovery need no servos.
fn needs_servos(action: &Action) -> bool {
    let step = &action.step;
    action.motion.is_some()
        || step.grip().is_some()
        || matches!(
            step,
            Step::Hitch { .. }
                | Step::HitchStatus {}
                | Step::Calibrate { .. }
                | Step::EnableTorque { enable: true }
        )
}
