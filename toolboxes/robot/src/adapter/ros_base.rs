//! A base, arms, or both in any graph of ROS: over DDS or rosbridge, without a ROS installation.
//!
//! Owns the translation. Velocities are of the type that the graph says, repeated while an action runs, and ended by a thread.
//! Movements are as long as the odometry says, and end before what the scan shows. Arms follow
//! trajectories and hands take commands, each a goal that has ended where the joint states say so. Goals are cancelled by a stop, which
//! waits for their end, again by the next one where they have not ended, and by a stop without an instance, which cancels those of everyone. Read [`RosBase`].

mod arms;
mod base;
mod camera;
mod channels;
mod drive;
mod driver;
mod emergency;
mod goals;
mod hand;
mod hearing;
mod lacks;
mod link;
mod pursuit;
mod readings;

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use ovos_toolbox_sdk::wire::Effect;
use serde_json::{Value, json};

use self::base::Outcome;
pub use self::base::RosBase;
use self::camera::see;
use self::channels::OwnTool;
pub use self::channels::RosBaseConfig;
use self::goals::GOAL_ENDS;
use self::link::BaseLink;
use crate::action::{Action, Motion};
use crate::adapter::{ActionError, ActionOutput, Adapter, Control, SeenMessage};
use crate::capability::Capabilities;
use crate::ros::RosError;
use crate::spot::{Fix, Spot};
use crate::step::{Reading, Step};
use crate::subsystem::Subsystem;

impl RosBase {
    async fn run(&self, action: &Action, control: &Control) -> Outcome {
        if let Some(grip) = action.step.grip() {
            return self.grip(action.subsystem, grip, control).await;
        }
        match (&action.motion, &action.step) {
            (Some(Motion::Drive { velocity, duration }), step) => {
                self.drive(step, (*velocity, *duration), control).await
            }
            (Some(Motion::GoTo(spot)), _) => self.go_to(spot, control).await,
            (Some(Motion::Joints { positions, speed }), step) => {
                self.lead(action.subsystem, (positions, *speed), step, control)
                    .await
            }
            (Some(Motion::Frames(frames)), _) => self.routine(action.subsystem, frames, control).await,
            (_, Step::Own { name, .. }) => self.own((name, action.subsystem), control).await,
            (_, Step::Read { what }) => self.read(*what, control).await,
            (_, Step::MotorStatus { .. }) if action.subsystem.is_arm() => {
                self.status(action.subsystem, control).await
            }
            (_, Step::MotorStatus { .. } | Step::PingAll {}) => self.read(Reading::Joints, control).await,
            (_, Step::SelfTest { .. }) => {
                self.remote.there(control).await?;
                Ok(ActionOutput::new(match action.subsystem.is_arm() {
                    true => "the arm tells where its joints are; nothing was moved",
                    false => "the robot receives commands; nothing was moved",
                }))
            }
            (_, Step::Stop {}) => {
                self.remote.there(control).await?;
                self.halt(&[Subsystem::Base], false)?;
                self.remote.stand(control).await?;
                Ok(ActionOutput::new("the base stands"))
            }
            (_, other) => Err(self.remote.lacks(other.name().replace('_', " "))),
        }
    }

    /// Has the base find its way.
    async fn go_to(&self, spot: &Spot, control: &Control) -> Outcome {
        let Some(navigate) = &self.config.navigate else {
            return Err(self.remote.lacks("finding its own way"));
        };
        let spot = &Spot {
            frame: Some(spot.frame.clone())
                .filter(|frame| !frame.is_empty())
                .unwrap_or_else(|| navigate.frame.clone()),
            ..spot.clone()
        };
        if spot.frame != navigate.frame {
            return Err(ActionError::Refused(format!(
                "the place is in the frame {}, but {} navigates in {}: remember the place again",
                spot.frame,
                self.remote.name(),
                navigate.frame
            )));
        }
        let (z, w) = (spot.heading.to_radians() / 2.0).sin_cos();
        let pose = json!({"position": {"x": spot.x, "y": spot.y}, "orientation": {"z": z, "w": w}});
        let goal = json!({"pose": {"header": {"frame_id": spot.frame}, "pose": pose}});
        let mut whole: Option<f64> = None;
        let far = move |feedback: Option<&Value>| {
            let Some(left) = feedback.and_then(|feedback| feedback["distance_remaining"].as_f64()) else {
                return Ok(None);
            };
            let most = whole.map_or(left, |whole| whole.max(left));
            whole = Some(most);
            let done = if most > 0.0 { 1.0 - left / most } else { 0.0 };
            Ok(Some((done, format!("{left:.1} m to go"))))
        };
        let end = self
            .pursue((&navigate.action, Subsystem::Base), goal, far, control)
            .await?;
        self.reached(&navigate.action, &end)?;
        let output = ActionOutput::new("the robot reached the place").with("goal", spot.shown());
        Ok(match self.fix() {
            Some(fix) => output.with("position", fix.spot.shown()),
            None => output,
        })
    }

    /// Does what one of the robot's own tools does.
    async fn own(&self, (name, on): (&str, Subsystem), control: &Control) -> Outcome {
        let Some(tool) = self.config.tools.get(name) else {
            return Err(self.remote.lacks(name));
        };
        let answer = match (&tool.action, &tool.service) {
            (Some(action), _) => {
                let goal = Value::Object(tool.goal.clone());
                let end = self.pursue((action, on), goal, |_| Ok(None), control).await?;
                self.reached(action, &end)?;
                end.result
            }
            (None, Some(service)) => self.ask(tool, service, control).await?,
            (None, None) => return Err(self.remote.lacks(name)),
        };
        if answer["success"] == false {
            let why = answer["message"].as_str().filter(|why| !why.is_empty());
            return Err(self.trouble(format!(
                "{name} failed: {}",
                why.unwrap_or("the robot does not say why")
            )));
        }
        if let Some((key, expected)) = tool
            .expect
            .iter()
            .find(|(key, expected)| answer[*key] != **expected)
        {
            let found = &answer[key];
            return Err(self.trouble(format!(
                "{name} has ended, and the robot says {key}: {found}, not {expected}"
            )));
        }
        Ok(ActionOutput::new(format!("{name} is done")).with("answer", answer))
    }

    async fn ask(&self, tool: &OwnTool, service: &str, control: &Control) -> Outcome<Value> {
        let link = self.remote.there(control).await?;
        let request = Value::Object(tool.goal.clone());
        let asking = || {
            let (graph, service) = (Arc::clone(&link.graph), service.to_owned());
            let patience = Duration::from_secs_f64(tool.seconds);
            link.spawn(async move { graph.call(&service, &request, patience).await })
                .ok_or(RosError::Closed)
        };
        let asked = match tool.effect {
            Effect::Motion => self.remote.command(control, asking)?,
            _ => control
                .command(asking)?
                .map_err(|error| self.remote.failed(error))?,
        };
        let answer = control.unless_cancelled(asked).await?;
        let answer = answer.map_err(|error| self.trouble(error.to_string()))?;
        answer.map_err(|error| self.failed(error))
    }

    /// What the robot tells of itself.
    async fn read(&self, what: Reading, control: &Control) -> Outcome {
        let link = self.remote.there(control).await?;
        let nothing = |topic: Option<&str>| match topic {
            Some(topic) => self.remote.away(&format!(
                "nothing has come on {topic} yet: start what publishes it on the robot, or check its name"
            )),
            None => self.remote.lacks(what.as_str().replace('_', " ")),
        };
        let age = |age: Duration| (age.as_secs_f64() * 10.0).round() / 10.0;
        let config = &self.config;
        match what {
            Reading::Battery => {
                let (old, battery) = link
                    .readings
                    .battery
                    .get()
                    .ok_or_else(|| nothing(config.battery.as_deref()))?;
                let message = battery.percent.map_or("the battery".to_owned(), |percent| {
                    format!("the battery is at {percent:.0} percent")
                });
                Ok(ActionOutput::new(message)
                    .with("percent", battery.percent)
                    .with("volts", battery.volts)
                    .with("charges", battery.charges)
                    .with("age_s", age(old)))
            }
            Reading::WayAhead => {
                let scan = config.scan.as_ref().ok_or_else(|| nothing(None))?;
                let seen = link.readings.scans.fresh();
                let seen = seen.map_err(|why| self.trouble(format!("{}: {why}", scan.topic)))?;
                let (old, seen) = seen.ok_or_else(|| nothing(Some(&scan.topic)))?;
                let free = |degrees: f64| {
                    let free = seen.free(degrees.to_radians(), scan.half_width);
                    free.map(|free| (free * 100.0).round() / 100.0)
                };
                let ahead = free(0.0);
                let message = match ahead {
                    Some(metres) => format!("{metres:.2} m are free ahead"),
                    None => format!("nothing is seen ahead within {:.1} m", seen.reach),
                };
                Ok(ActionOutput::new(message)
                    .with("ahead_m", ahead)
                    .with("left_m", free(90.0))
                    .with("right_m", free(-90.0))
                    .with("behind_m", free(180.0))
                    .with("reach_m", seen.reach)
                    .with("age_s", age(old)))
            }
            Reading::Joints => {
                let (old, joints) = link
                    .readings
                    .joints
                    .all()
                    .ok_or_else(|| nothing(config.joints()))?;
                Ok(ActionOutput::new("the joint positions were read")
                    .with("positions", joints)
                    .with("age_s", age(old)))
            }
        }
    }
}

impl Adapter for RosBase {
    fn capabilities(&self) -> &Capabilities {
        self.remote.capabilities()
    }

    fn connect(&self) -> BoxFuture<'_, Result<(), ActionError>> {
        let (name, config) = (self.remote.name().to_owned(), self.config.clone());
        let parts = self.remote.capabilities().clone();
        self.remote
            .connect(move || BaseLink::open(&name, &config, &parts))
            .boxed()
    }

    fn execute<'a>(&'a self, action: &'a Action, control: &'a Control) -> BoxFuture<'a, Outcome> {
        let halt = || self.halt(&[action.subsystem], false);
        self.remote
            .attend(action, control, self.run(action, control), halt)
            .boxed()
    }

    fn state(&self, subsystem: Subsystem) -> Value {
        json!({"positions": self.positions(subsystem), "connected": self.remote.is_there()})
    }

    fn halt(&self, subsystems: &[Subsystem], emergency: bool) -> Result<(), ActionError> {
        let Some((link, concerned, stands)) = self.remote.halt(subsystems, emergency) else {
            return self.remote.unseen();
        };
        let stands = stands.map_err(|error| self.remote.failed(error));
        let sent = stands.and(self.end(link, &concerned, emergency));
        match emergency {
            true => sent.and_then(|()| self.remote.check_there()),
            false => sent,
        }
    }

    fn reset(&self) -> Result<(), ActionError> {
        self.remote.reset()?;
        let off = self.config.emergency.clone();
        if let (Some(link), Some((service, off))) = (
            self.remote.link(),
            off.and_then(|vendor| Some((vendor.service, vendor.off?))),
        ) {
            let graph = Arc::clone(&link.graph);
            link.spawn(async move {
                if let Err(error) = emergency::ask(graph.as_ref(), &service, &off, GOAL_ENDS).await {
                    tracing::warn!(%error, "the vendor's stop was not lifted");
                }
            });
        }
        Ok(())
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        async {
            if let Some(link) = self.remote.link() {
                let open = link.goals.stop(&Subsystem::EACH);
                let graph = link.graph.as_ref();
                for error in link.goals.open.cancel(graph, &open, GOAL_ENDS).await {
                    tracing::warn!(%error, "a goal may still be running");
                }
            }
            self.remote.close();
        }
        .boxed()
    }

    fn picture<'a>(&'a self, topic: &'a str) -> BoxFuture<'a, Result<SeenMessage, ActionError>> {
        async move {
            let link = self.remote.link().ok_or_else(|| self.remote.deaf())?;
            see(link, topic).await.map_err(|error| self.remote.failed(error))
        }
        .boxed()
    }

    fn holds(&self, arm: Subsystem) -> Option<bool> {
        self.holding(arm)
    }

    fn fix(&self) -> Option<Fix> {
        let link = self.remote.link()?;
        let (age, here) = link.readings.odometry.get()?;
        let spot = match self
            .config
            .navigate
            .as_ref()
            .filter(|navigate| navigate.pose.is_some())
        {
            // It is told now and then: what the wheels have counted since is added.
            Some(navigate) => {
                let now = link.readings.pose(&here)?;
                now.spot(&navigate.frame)
            }
            None => here.spot(&link.readings.frame(&self.frame)),
        };
        Some(Fix { spot, age })
    }
}
