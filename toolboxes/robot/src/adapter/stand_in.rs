//! The stand-in of a robot on a network that is simulated: its joints and its base, and nothing else.
//!
//! A K1 or a G1 keeps its balance and moves its motors by itself, behind an interface that a simulator would have to copy whole. So
//! this drives nothing: each part goes to where it is told at its largest speed, and the base at the velocity that it is told. It
//! has no motors to look at, feels nothing and cannot tell what a hand holds. Read [`StandIn`].

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};

use super::around::{FRAME, Fault, Place, SimConfig, Surroundings, thousandth};
use crate::action::{Action, Motion, Velocity};
use crate::adapter::{ActionError, ActionOutput, Adapter, Control, Sighting};
use crate::capability::Capabilities;
use crate::driver::DrivenRobot;
use crate::spot::Fix;
use crate::step::{Grip, Step};
use crate::subsystem::Subsystem;

/// A simulated robot without motors of its own.
pub(super) struct StandIn {
    name: String,
    capabilities: Capabilities,
    around: Surroundings,
    away: bool,
    stopped: AtomicBool,
    body: Mutex<Body>,
}

struct Body {
    /// The ways of the arms and the head.
    parts: BTreeMap<Subsystem, Way>,
    /// The hands that are open.
    open: Vec<Subsystem>,
    from: Place,
    velocity: Velocity,
    begun: Instant,
    lasting: Duration,
}

/// From one position to another in an even motion.
struct Way {
    from: Vec<f64>,
    to: Vec<f64>,
    begun: Instant,
    seconds: f64,
}

impl Way {
    fn at(&self, now: Instant) -> Vec<f64> {
        let passed = now.saturating_duration_since(self.begun).as_secs_f64();
        let part = if passed < self.seconds {
            passed / self.seconds
        } else {
            1.0
        };
        let both = self.from.iter().zip(&self.to);
        both.map(|(from, to)| thousandth(from + (to - from) * part))
            .collect()
    }
}

impl Body {
    fn place(&self, now: Instant) -> Place {
        let passed = now.saturating_duration_since(self.begun).min(self.lasting);
        self.from.after(&self.velocity, passed.as_secs_f64())
    }

    fn drive(&mut self, now: Instant, velocity: Velocity, lasting: Duration) {
        self.from = self.place(now);
        (self.velocity, self.begun, self.lasting) = (velocity, now, lasting);
    }
}

impl StandIn {
    /// A robot at home.
    ///
    /// # Errors
    /// What is around it cannot be, or nothing here can fail like that.
    pub(super) fn new(robot: DrivenRobot<'_>, config: &SimConfig) -> Result<Self, ActionError> {
        let around = Surroundings::new(robot.name, config)?;
        let servo = |fault: &&Fault| !matches!(fault, Fault::Offline | Fault::Button);
        if let Some(fault) = config.faults.iter().find(servo) {
            return Err(ActionError::Refused(format!(
                "robots.{}.sim.faults: {fault:?}: a {} is simulated without motors; expected offline or button",
                robot.name, robot.capabilities.model
            )));
        }
        let begun = around.clock.now();
        let way = |on: Subsystem| {
            let joints = robot.capabilities.joints(on)?.iter();
            let home = robot.model.home(on)?;
            // A narrowed range may exclude home.
            let at: Vec<f64> = joints
                .zip(home)
                .map(|(joint, at)| at.clamp(joint.min, joint.max))
                .collect();
            let (from, to) = (at.clone(), at);
            let seconds = 0.0;
            Some((
                on,
                Way {
                    from,
                    to,
                    begun,
                    seconds,
                },
            ))
        };
        Ok(Self {
            name: robot.name.to_owned(),
            capabilities: robot.capabilities.clone(),
            away: config.faults.contains(&Fault::Offline),
            stopped: AtomicBool::new(false),
            body: Mutex::new(Body {
                parts: Subsystem::EACH.into_iter().filter_map(way).collect(),
                open: Vec::new(),
                from: Place::default(),
                velocity: Velocity::default(),
                begun,
                lasting: Duration::ZERO,
            }),
            around,
        })
    }

    fn body(&self) -> MutexGuard<'_, Body> {
        self.body.lock()
    }

    fn there(&self) -> Result<(), ActionError> {
        match self.away {
            true => Err(ActionError::NotConnected {
                robot: self.name.clone(),
                reason: "the configuration says offline".to_owned(),
            }),
            false => Ok(()),
        }
    }

    fn lacks(&self, what: impl Into<String>) -> ActionError {
        ActionError::NotSupported {
            robot: self.name.clone(),
            what: what.into(),
        }
    }

    fn place(&self) -> Place {
        self.body().place(self.around.clock.now())
    }

    fn positions(&self, on: Subsystem) -> Option<Vec<f64>> {
        Some(self.body().parts.get(&on)?.at(self.around.clock.now()))
    }

    /// Commands a motion that takes so long, and waits for its end.
    async fn moved(
        &self,
        control: &Control,
        command: impl FnOnce(&mut Body, Instant) -> Result<Duration, ActionError>,
    ) -> Result<(), ActionError> {
        let lasting = control.command(|| match self.stopped.load(Ordering::SeqCst) {
            true => Err(ActionError::Stopped),
            false => command(&mut self.body(), self.around.clock.now()),
        })??;
        control.unless_cancelled(self.around.clock.sleep(lasting)).await
    }

    /// Leads an arm or the head to a position, and stays there for `hold` seconds.
    async fn go(
        &self,
        on: Subsystem,
        (to, speed, hold): (&[f64], f64, f64),
        control: &Control,
    ) -> Result<(), ActionError> {
        let joints = self
            .capabilities
            .joints(on)
            .ok_or_else(|| self.lacks(on.as_str()))?;
        self.moved(control, |body, now| {
            let way = body.parts.get_mut(&on).ok_or_else(|| self.lacks(on.as_str()))?;
            let from = way.at(now);
            let each = joints.iter().zip(&from).zip(to);
            let seconds = each
                .map(|((joint, from), to)| (to - from).abs() / (joint.max_speed * speed))
                .fold(0.0, f64::max);
            self.around.note(
                "move",
                || json!({"on": on, "from": from, "to": to, "seconds": seconds}),
            );
            *way = Way {
                from,
                to: to.to_vec(),
                begun: now,
                seconds,
            };
            Ok(Duration::try_from_secs_f64(seconds + hold).unwrap_or_default())
        })
        .await
    }

    async fn drive(
        &self,
        velocity: Velocity,
        lasting: Duration,
        control: &Control,
    ) -> Result<(), ActionError> {
        self.moved(control, |body, now| {
            body.drive(now, velocity, lasting);
            self.around.note(
                "drive",
                || json!({"on": "base", "velocity": [velocity.x, velocity.y, velocity.turn]}),
            );
            Ok(lasting)
        })
        .await
    }

    async fn grip(
        &self,
        on: Subsystem,
        action: Grip,
        control: &Control,
    ) -> Result<ActionOutput, ActionError> {
        let gripper = self.capabilities.arm(on).and_then(|arm| arm.gripper.as_ref());
        let gripper = gripper.ok_or_else(|| self.lacks(format!("a gripper at {on}")))?;
        let opens = match action {
            Grip::Open => true,
            Grip::Close => false,
            Grip::Toggle => !self.body().open.contains(&on),
        };
        let seconds = (gripper.open - gripper.closed).abs() / gripper.max_speed;
        self.moved(control, |body, _| {
            body.open.retain(|hand| *hand != on);
            body.open.extend(opens.then_some(on));
            Ok(Duration::try_from_secs_f64(seconds).unwrap_or_default())
        })
        .await?;
        Ok(ActionOutput::new(if opens { "hand open" } else { "hand closed" }).with("open", opens))
    }

    async fn run(&self, action: &Action, control: &Control) -> Result<ActionOutput, ActionError> {
        self.there()?;
        let on = action.subsystem;
        match &action.motion {
            Some(Motion::Joints { positions, speed }) => {
                self.go(on, (positions, *speed, 0.0), control).await?;
                return Ok(ActionOutput::new(format!("{on} is there")).with("positions", self.positions(on)));
            }
            Some(Motion::Frames(frames)) => {
                for frame in frames {
                    self.go(on, (&frame.positions, frame.speed, frame.hold), control)
                        .await?;
                }
                return Ok(ActionOutput::new(format!("{on} did it")));
            }
            Some(Motion::Drive { velocity, duration }) => {
                self.drive(*velocity, *duration, control).await?;
                return Ok(ActionOutput::new("base moved"));
            }
            Some(Motion::GoTo(to)) => {
                let (to, begun) = (to.clone(), self.place());
                let way = (to.x - begun.x).hypot(to.y - begun.y);
                let pace = self
                    .capabilities
                    .base
                    .as_ref()
                    .map_or(0.3, |base| base.usual_linear);
                let lasting = Duration::from_secs_f64((way / pace).min(3600.0));
                // It stands where it is while it finds its way: what is around it does not see it pass.
                self.moved(control, |body, now| {
                    body.drive(now, Velocity::default(), Duration::ZERO);
                    Ok(lasting)
                })
                .await?;
                control.command(|| {
                    let mut body = self.body();
                    (body.from.x, body.from.y) = (to.x, to.y);
                    body.from.heading = to.heading.to_radians();
                })?;
                return Ok(ActionOutput::new("the robot reached the place").with("goal", to.shown()));
            }
            Some(Motion::Lift(_)) | None => {}
        }
        if let Some((grip, _)) = action.step.grip() {
            return self.grip(on, grip, control).await;
        }
        let message = match action.step {
            Step::Own { ref name, .. } => {
                return Ok(
                    ActionOutput::new(format!("{name} is done")).note("it is simulated: nothing was done")
                );
            }
            Step::Read { what } => {
                let output = ActionOutput::new("it is simulated, and tells nothing of its own");
                return Ok(output.with(what.as_str(), Value::Null));
            }
            Step::Stop {} => "the robot stands",
            Step::SelfTest { .. } | Step::PingAll {} => {
                "it is simulated, and there is nothing that could fail"
            }
            Step::MotorStatus { .. } => {
                let positions = self.capabilities.named_positions(on, |part| self.positions(part));
                let output = ActionOutput::new("the joint positions were read").with("positions", positions);
                return Ok(self.around.with_odometry(output, on, self.place()));
            }
            _ => return Err(self.lacks(action.step.name().replace('_', " "))),
        };
        Ok(ActionOutput::new(message))
    }
}

impl Adapter for StandIn {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn connect(&self) -> BoxFuture<'_, Result<(), ActionError>> {
        async { self.there() }.boxed()
    }

    fn execute<'a>(
        &'a self,
        action: &'a Action,
        control: &'a Control,
    ) -> BoxFuture<'a, Result<ActionOutput, ActionError>> {
        self.around
            .perform(action, control, self.run(action, control))
            .boxed()
    }

    fn state(&self, subsystem: Subsystem) -> Value {
        let positions = self
            .capabilities
            .named_positions(subsystem, |part| self.positions(part));
        json!({"mode": "simulation", "connected": !self.away, "positions": positions})
    }

    fn fix(&self) -> Option<Fix> {
        let spot = self.place().in_frame(FRAME);
        (!self.away).then_some(Fix {
            spot,
            age: Duration::ZERO,
        })
    }

    fn halt(&self, subsystems: &[Subsystem], emergency: bool) -> Result<(), ActionError> {
        self.stopped.fetch_or(emergency, Ordering::SeqCst);
        let (mut body, now) = (self.body(), self.around.clock.now());
        for on in subsystems.iter().flat_map(|on| on.each()) {
            if on == Subsystem::Base {
                body.drive(now, Velocity::default(), Duration::ZERO);
            } else if let Some(way) = body.parts.get_mut(&on) {
                way.to = way.at(now);
                way.seconds = 0.0;
            }
        }
        drop(body);
        self.around.halted(subsystems, emergency, &[]);
        Ok(())
    }

    fn reset(&self) -> Result<(), ActionError> {
        self.around.reset()?;
        self.stopped.store(false, Ordering::SeqCst);
        Ok(())
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        async {}.boxed()
    }

    fn locate(&self, what: &str) -> Option<Sighting> {
        self.around.locate(what, self.place())
    }

    fn recognise(&self, tool: &str, args: &Value) -> Option<Value> {
        self.around.recognise(tool, args, self.place())
    }
}
