//! How a K1 leads its arms and its head, walks, and stops, in either profile.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::robot::{BoosterK1, Speech};
use super::topics::TopicsLink;
use crate::action::Keyframe;
use crate::adapter::contract::ActionOutput;
use crate::adapter::control::Control;
use crate::adapter::part_reading::{PartReading, SilentJoint};
use crate::adapter::remote::{Remote, until};
use crate::adapter::walker::{Outcome, Walker, followed, place_to_hold};
use crate::conduct::Estop;
use crate::dds::booster::api::GET_STATUS;
use crate::dds::latest::SILENCE;
use crate::error::ActionError;
use crate::ros::RosError;
use crate::ros::path::Path;
use crate::step::{Grip, Step};
use crate::subsystem::Subsystem;

/// How long an arm or the head waits for a subscriber of its topic, and the pause between two looks.
const HEARD: Duration = Duration::from_secs(1);

impl BoosterK1 {
    /// Where the joints of an arm or the head are.
    fn reading(&self, link: &Speech, on: Subsystem) -> PartReading {
        let joints = self.remote.capabilities().joints(on).unwrap_or_default();
        link.reading(on, joints)
    }

    /// What is said of a robot that does not tell where a joint is.
    fn untold(&self, link: &Speech, silent: &SilentJoint) -> ActionError {
        let topic = match link {
            Speech::Topics(_) => self.config.topics.joints.as_str(),
            Speech::Rpc(_) => "/low_state",
        };
        self.remote.away(&format!(
            "{silent} on {topic}: check what publishes it on the robot"
        ))
    }

    /// Waits for a subscriber that moves an arm or the head. DDS may find it a little later than the subscriber for
    /// walking.
    async fn await_listener(
        &self,
        topics: &TopicsLink,
        on: Subsystem,
        control: &Control,
    ) -> Result<(), ActionError> {
        until(control, HEARD, || topics.hears(on))
            .await?
            .map_err(|error| self.remote.failed(error))
    }

    /// Leads an arm or the head along a path.
    async fn lead(
        &self,
        link: &Speech,
        on: Subsystem,
        path: &Path,
        control: &Control,
    ) -> Result<(), ActionError> {
        if let Speech::Rpc(rpc) = link {
            self.take_arms(rpc, control).await?;
        }
        let start = Instant::now();
        let step = match link {
            Speech::Topics(_) => Duration::from_millis(50),
            Speech::Rpc(_) => Duration::from_millis(20),
        };
        let mut ends = 0;
        while ends < 2 {
            let passed = start.elapsed();
            let positions = path.at(passed);
            let whole = self.remote.command(control, || match link {
                Speech::Topics(topics) => topics.lead(on, &positions).map(|()| true),
                Speech::Rpc(rpc) => rpc.arm(on, &positions),
            })?;
            link.sent().set(on, positions);
            // The path is at its end and the arm has its full weight. The end is sent twice, because one message can
            // be lost.
            ends += u32::from(passed >= path.time() && whole);
            control.sleep(step).await?;
        }
        Ok(())
    }
}

impl Walker for BoosterK1 {
    type Link = Speech;

    fn remote(&self) -> &Remote<Speech> {
        &self.remote
    }

    fn opener(&self) -> impl Fn() -> Result<Speech, RosError> + Send + 'static {
        let (name, config) = (self.remote.name().to_owned(), self.config.clone());
        let notify = self.remote.notify().clone();
        let parts = self.remote.capabilities().clone();
        move || Speech::open(&name, &config, &parts, &notify)
    }

    fn last_known(&self, on: Subsystem) -> Option<Vec<f64>> {
        let link = self.remote.link()?;
        self.remote.capabilities().joints(on)?;
        self.reading(link, on).last().or_else(|| link.sent().get(on))
    }

    async fn go(&self, on: Subsystem, positions: &[f64], speed: f64, control: &Control) -> Outcome {
        let Some(joints) = self.remote.capabilities().joints(on) else {
            return Err(self.remote.lacks(on.as_str()));
        };
        let link = self.remote.there(control).await?;
        if let Speech::Topics(topics) = link {
            self.await_listener(topics, on, control).await?;
        }
        let measured = match (self.reading(link, on).within(SILENCE), link) {
            (Ok(measured), _) => Some(measured),
            // A bridge need not tell where the joints are.
            (Err(SilentJoint::Never { .. }), Speech::Topics(_)) => None,
            (Err(silent), _) => return Err(self.untold(link, &silent)),
        };
        let from = measured.clone().or_else(|| link.sent().get(on));
        let blind = from.is_none();
        let path = match &from {
            Some(from) => Path::new(from, positions, joints, speed),
            // The robot's bridge moves the arm or the head at its own pace.
            None => Path::new(positions, positions, joints, speed),
        };
        match link {
            Speech::Rpc(rpc) if on == Subsystem::Gantry => self.head(rpc, positions, &path, control).await?,
            _ => self.lead(link, on, &path, control).await?,
        }
        if let Some(from) = &measured {
            followed(
                &self.remote,
                on,
                (from, positions),
                || self.reading(link, on),
                control,
            )
            .await?;
        }
        let output = ActionOutput::new(format!("{on} was sent there")).with("positions", json!(positions));
        Ok(match blind {
            false => output,
            true => {
                // The documentation says that a move takes a second, divided by its speed.
                control
                    .sleep(Duration::from_secs_f64(1.0 / speed.clamp(0.1, 1.0)))
                    .await?;
                output.note("the robot does not say where it was: it moved at its own pace")
            }
        })
    }

    async fn give_back(&self, on: Subsystem, control: &Control) -> Outcome<()> {
        match self.remote.there(control).await? {
            Speech::Rpc(rpc) => self.return_arms(rpc, on, control).await,
            Speech::Topics(_) => Ok(()),
        }
    }

    async fn perform(
        &self,
        on: Subsystem,
        step: &Step,
        frames: &[Keyframe],
        control: &Control,
    ) -> Outcome<Option<ActionOutput>> {
        match self.remote.there(control).await? {
            Speech::Rpc(rpc) => self.built_in(rpc, on, step, frames, control).await,
            Speech::Topics(_) => Ok(None),
        }
    }

    async fn set_off(&self, control: &Control) -> Outcome<()> {
        match self.remote.there(control).await? {
            Speech::Rpc(rpc) => self.walk_mode(rpc, control).await,
            Speech::Topics(_) => Ok(()),
        }
    }

    async fn grip(&self, on: Subsystem, action: Grip, force: Option<f64>, control: &Control) -> Outcome {
        if !self.config.gripper {
            return Err(self.remote.lacks("gripper"));
        }
        match self.remote.there(control).await? {
            Speech::Rpc(rpc) => self.clench(rpc, on, action, force, control).await,
            Speech::Topics(_) => Err(self.remote.lacks("gripper")),
        }
    }

    fn status(
        &self,
        link: &Speech,
        on: Subsystem,
        motor_id: Option<u8>,
    ) -> Outcome<Option<(&'static str, Value)>> {
        if motor_id.is_some() {
            return Err(self.remote.lacks("motor status"));
        }
        let mut positions = BTreeMap::new();
        let jointed = |one: &Subsystem| self.remote.capabilities().joints(*one).is_some();
        for one in on.each().into_iter().filter(jointed) {
            match self.reading(link, one).within(SILENCE) {
                Ok(measured) => drop(positions.insert(one.as_str(), measured)),
                Err(SilentJoint::Never { .. }) => {}
                Err(silent) => return Err(self.untold(link, &silent)),
            }
        }
        Ok((!positions.is_empty()).then(|| ("positions", json!(positions))))
    }

    async fn self_test(&self, on: Subsystem, control: &Control) -> Outcome {
        let link = self.remote.there(control).await?;
        let output = ActionOutput::new(format!("{on}: the robot receives commands"));
        if let Speech::Rpc(rpc) = link {
            let status = self
                .remote
                .inquire(control, || rpc.ask(GET_STATUS, &Value::Null))
                .await?;
            return Ok(output.with("status", status));
        }
        let jointed = self.remote.capabilities().joints(on).is_some();
        if let (Speech::Topics(topics), true) = (link, jointed) {
            self.await_listener(topics, on, control).await?;
        }
        Ok(match self.reading(link, on).within(SILENCE) {
            Ok(positions) if jointed => output.with("positions", json!(positions)),
            Ok(_) => output.note("joint positions are unavailable; nothing was moved"),
            Err(silent) => output.note(format!("{silent}; nothing was moved")),
        })
    }

    fn stop(&self, link: &Speech, concerned: &[Subsystem], emergency: bool) -> Result<(), RosError> {
        let damps = emergency && self.estop == Estop::Damp;
        let mut sent = match link {
            Speech::Rpc(rpc) if damps => {
                let damped = rpc.damp();
                damped.and(rpc.end_all())
            }
            Speech::Rpc(rpc) if emergency => rpc.end_all(),
            Speech::Rpc(rpc) => rpc.end(concerned),
            Speech::Topics(_) => Ok(()),
        };
        if damps {
            return sent;
        }
        for one in concerned {
            if self.remote.capabilities().joints(*one).is_none() {
                continue;
            }
            // Arms and head stop where they are measured, not where they were last sent: they may have been moved since, and a
            // stop moves nothing. A position of a while ago would move them, too.
            let measured = place_to_hold(&self.remote, *one, &self.reading(link, *one));
            let held = match (link, measured) {
                (Speech::Topics(topics), Some(positions)) => topics.positions(*one, &positions),
                // The robot's bridge has its last position, a step of a path.
                (Speech::Topics(_), None) => Ok(()),
                (Speech::Rpc(rpc), measured) => rpc.hold(*one, measured),
            };
            sent = sent.and(held);
        }
        sent
    }

    async fn leave(&self, link: &Speech) {
        link.close();
    }
}
