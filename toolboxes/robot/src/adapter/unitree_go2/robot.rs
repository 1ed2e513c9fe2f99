//! A Go2: how each action becomes a velocity or a routine of its own, and whether it has gone as far as it was told.

use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::config::UnitreeGo2Config;
use super::sport::{Sport, routine};
use crate::action::{Action, Motion, Velocity};
use crate::adapter::remote::{Remote, until};
use crate::adapter::{ActionError, ActionOutput, Adapter, Control, Estop, Notify};
use crate::capability::Capabilities;
use crate::dds::unitree::{SportModeState, go2};
use crate::driver::DrivenRobot;
use crate::step::Step;
use crate::subsystem::Subsystem;

/// Distances (m) and turns (rad) shorter than this, in metres or radians, is not looked at: the robot takes a step in place first.
const SHORT: f64 = 0.2;
/// How long the robot is given to come to rest.
const RESTS: Duration = Duration::from_secs(1);

/// A Go2.
pub(super) struct UnitreeGo2 {
    config: UnitreeGo2Config,
    estop: Estop,
    remote: Remote<Sport>,
}

impl UnitreeGo2 {
    /// A robot that is not connected yet.
    pub(super) fn new(robot: DrivenRobot<'_>, config: &UnitreeGo2Config, notify: Notify) -> Self {
        Self {
            config: config.clone(),
            estop: robot.stop.emergency.unwrap_or(Estop::Hold),
            remote: Remote::new(robot.name, &config.ros, robot.capabilities.clone(), notify),
        }
    }

    fn trouble(&self, what: String) -> ActionError {
        ActionError::Hardware {
            robot: self.remote.name().to_owned(),
            what,
        }
    }

    async fn run(&self, action: &Action, control: &Control) -> Result<ActionOutput, ActionError> {
        match (&action.motion, &action.step) {
            (Some(Motion::Drive { velocity, duration }), _) => self.walk(*velocity, *duration, control).await,
            (_, Step::Own { name, .. }) => self.own(name, control).await,
            (_, Step::SelfTest { .. }) => {
                self.remote.there(control).await?;
                Ok(ActionOutput::new(
                    "its sport service hears requests; nothing was moved",
                ))
            }
            (_, Step::Stop {}) => {
                self.remote.there(control).await?;
                self.remote.stand(control).await?;
                Ok(ActionOutput::new("the robot stands"))
            }
            (_, other) => Err(self.remote.lacks(other.name().replace('_', " "))),
        }
    }

    async fn walk(
        &self,
        velocity: Velocity,
        duration: Duration,
        control: &Control,
    ) -> Result<ActionOutput, ActionError> {
        let link = self.remote.there(control).await?;
        let silent = || {
            self.remote
                .away("it sends no position on /sportmodestate; check that its sport service runs")
        };
        let from = link.state().ok_or_else(silent)?;
        let walked = self.remote.drive(velocity, duration, control).await?;
        // Only a state that came after the stop tells whether it stands still and how far it went.
        let stopped = Instant::now();
        let to = until(control, RESTS, || match link.state_since(stopped) {
            Some(now) if now.is_at_rest() => Ok(now),
            Some(_) => Err(self.trouble(
                "it still reports motion a second after the stop: stop it with its remote control".to_owned(),
            )),
            None => Err(self.remote.away(
                "no state on /sportmodestate since the stop: whether it stands still and how far it went are unknown; look at it",
            )),
        })
        .await??;
        let seconds = duration.as_secs_f64();
        let metres = to.metres_from(&from);
        let degrees = to.degrees_from(&from);
        let way = velocity.x.hypot(velocity.y) * seconds;
        if way > SHORT && metres < 0.25 * way {
            return Err(self.trouble(format!(
                "it does not walk: it says that it has gone {metres:.2} m of {way:.2} m; stand it up with stand_up, and look at it"
            )));
        }
        let turn = velocity.turn.abs() * seconds;
        // A turn of more than half a circle looks like a shorter one.
        if turn > SHORT && turn < 3.0 && degrees.to_radians().abs() < 0.25 * turn {
            return Err(self.trouble(format!(
                "it does not turn: it says that it has turned {degrees:.0} of {:.0} degrees; stand it up with stand_up, and look at it",
                turn.to_degrees()
            )));
        }
        let rounded = |value: f64| (value * 100.0).round() / 100.0 + 0.0;
        Ok(walked
            .with("distance_m", rounded(metres))
            .with("turned_degrees", rounded(degrees)))
    }

    /// Has the robot do one of its own routines.
    async fn own(&self, name: &str, control: &Control) -> Result<ActionOutput, ActionError> {
        let Some(routine) = routine(name) else {
            return Err(self.remote.lacks(name));
        };
        let link = self.remote.there(control).await?;
        for function in routine.functions {
            self.remote
                .ask(control, || link.rpc().ask(*function, &json!({})))
                .await?;
            // Its answer says that it has begun.
            control.sleep(Duration::from_secs_f64(routine.seconds)).await?;
        }
        Ok(
            ActionOutput::new(format!("the robot has begun to {}", name.replace('_', " ")))
                .note("the robot confirms only the start: look at it to see how it ended"),
        )
    }
}

impl Adapter for UnitreeGo2 {
    fn capabilities(&self) -> &Capabilities {
        self.remote.capabilities()
    }

    fn connect(&self) -> BoxFuture<'_, Result<(), ActionError>> {
        let (name, config) = (self.remote.name().to_owned(), self.config.clone());
        self.remote.connect(move || Sport::open(&name, &config)).boxed()
    }

    fn execute<'a>(
        &'a self,
        action: &'a Action,
        control: &'a Control,
    ) -> BoxFuture<'a, Result<ActionOutput, ActionError>> {
        let halt = || self.halt(&[Subsystem::Base], false);
        self.remote
            .attend(action, control, self.run(action, control), halt)
            .boxed()
    }

    fn state(&self, _: Subsystem) -> Value {
        json!({"positions": {}, "connected": self.remote.is_there()})
    }

    fn halt(&self, subsystems: &[Subsystem], emergency: bool) -> Result<(), ActionError> {
        let Some((link, _, stands)) = self.remote.halt(subsystems, emergency) else {
            return self.remote.unseen();
        };
        let damped = match emergency && self.estop == Estop::Damp {
            true => link.rpc().send(go2::DAMP, &json!({})),
            false => Ok(()),
        };
        let sent = stands.and(damped).map_err(|error| self.remote.failed(error));
        match emergency {
            true => sent.and_then(|()| self.remote.check_there()),
            false => sent,
        }
    }

    fn reset(&self) -> Result<(), ActionError> {
        self.remote.reset()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        async {
            self.remote.close();
            if let Some(link) = self.remote.link() {
                link.leave();
            }
        }
        .boxed()
    }
}

impl SportModeState {
    fn is_at_rest(&self) -> bool {
        let [x, y, _] = self.velocity.map(f64::from);
        x.hypot(y) < 0.05 && f64::from(self.yaw_speed).abs() < 0.1
    }

    fn metres_from(&self, before: &Self) -> f64 {
        let [x, y] = [0, 1].map(|axis| f64::from(self.position[axis] - before.position[axis]));
        x.hypot(y)
    }

    /// Counter-clockwise, above -180 to 180.
    fn degrees_from(&self, before: &Self) -> f64 {
        let turned = f64::from(self.imu_state.rpy[2] - before.imu_state.rpy[2]);
        crate::bearing::half_circle(turned.to_degrees())
    }
}
