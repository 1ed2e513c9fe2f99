//! The Booster K1, over ROS 2 topics or its own RPC.
//!
//! Owns what both have in common: walking, which is said ten times a second and ended by a thread of its own, and arms
//! and head, which are led in small steps. The profile `topics` speaks the four documented ROS 2 topics, which need a
//! small bridge on the robot; `booster_rpc` speaks what the robot itself has. Neither has a dead-man: a robot that
//! loses its network keeps its last velocity. Read [`BoosterK1`].

mod rpc;
mod topics;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use self::rpc::RpcLink;
use self::topics::TopicsLink;
pub(super) use self::topics::node_name;
use super::{ActionError, ActionOutput, Adapter, Control, Notice, Notify};
use crate::action::{Action, Keyframe, Primitive, Routine, Velocity};
use crate::capability::{Capabilities, Gripper};
use crate::config::Estop;
use crate::dds::booster::{REQUEST, REQUESTS};
use crate::dds::shout::Shout;
use crate::model::{Model, ModelError};
use crate::ros::message::{Kind, Twist};
use crate::ros::path::Path;
use crate::ros::watch::{Watch, Watched};
use crate::ros::{RosConfig, RosError};
use crate::subsystem::Subsystem;

/// How often a velocity is said.
const AGAIN: Duration = Duration::from_millis(100);
/// How long it holds when it is not said again.
const LEASE: Duration = Duration::from_millis(300);

/// What belongs to this adapter alone.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BoosterK1Config {
    /// How the robot is spoken to.
    pub profile: Profile,
    /// Domain, interfaces, distribution.
    pub ros: RosConfig,
    /// For `topics`: their names.
    pub topics: Topics,
    /// For `booster_rpc`: the robot has grippers, which the K1 has not by default.
    pub gripper: bool,
    /// For `booster_rpc`: how long an answer may take, in milliseconds.
    #[schemars(range(min = 100, max = 5000))]
    pub answer_ms: u64,
}

impl Default for BoosterK1Config {
    fn default() -> Self {
        Self {
            profile: Profile::default(),
            ros: RosConfig::default(),
            topics: Topics::default(),
            gripper: false,
            answer_ms: 1000,
        }
    }
}

/// How a K1 is spoken to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    /// Four ROS 2 topics, for a bridge on the robot.
    #[default]
    Topics,
    /// The robot's own RPC over DDS.
    BoosterRpc,
}

/// The ROS 2 topics of the profile `topics`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Topics {
    /// geometry_msgs/Twist.
    pub velocity: String,
    /// std_msgs/Float64MultiArray: pan and tilt in degrees.
    pub head: String,
    /// std_msgs/Float64MultiArray: the joints of an arm in degrees; the label of the first dimension is its name.
    pub arm: String,
    /// sensor_msgs/JointState, from the robot.
    pub joints: String,
}

impl Default for Topics {
    fn default() -> Self {
        Self {
            velocity: "/cmd_vel".to_owned(),
            head: "/head/pan_tilt".to_owned(),
            arm: "/arm/joint_positions".to_owned(),
            joints: "/joint_states".to_owned(),
        }
    }
}

/// The parts, poses and routines of a K1, as its profile can move them.
///
/// # Errors
/// Never: a test loads the built-in models.
pub fn model(config: &BoosterK1Config) -> Result<Model, ModelError> {
    let mut model = match config.profile {
        Profile::Topics => Model::booster_k1()?,
        Profile::BoosterRpc => Model::built_in(
            "booster_k1_rpc.toml",
            include_str!("../../data/booster_k1_rpc.toml"),
        )?,
    };
    let mut capabilities = model.capabilities.clone();
    let gripper = Gripper {
        joint: None,
        open: 100.0,
        closed: 0.0,
        max_speed: 100.0,
    };
    for arm in [&mut capabilities.left_arm, &mut capabilities.right_arm]
        .into_iter()
        .flatten()
    {
        // No topic moves one.
        arm.gripper = (config.profile == Profile::BoosterRpc && config.gripper).then(|| gripper.clone());
    }
    model.narrow(capabilities);
    Ok(model)
}

/// A K1.
pub struct BoosterK1 {
    name: String,
    config: BoosterK1Config,
    capabilities: Capabilities,
    estop: Estop,
    shared: Arc<Shared>,
    watch: OnceLock<Watch>,
    stopped: AtomicBool,
}

/// What the watching thread needs.
struct Shared {
    name: String,
    link: OnceLock<Link>,
    notify: Notify,
    /// Where arms and head were sent last, in degrees.
    sent: Mutex<BTreeMap<Subsystem, Vec<f64>>>,
}

enum Link {
    Topics(TopicsLink),
    Rpc(RpcLink),
}

impl Link {
    fn open(name: &str, config: &BoosterK1Config) -> Result<Self, RosError> {
        Ok(match config.profile {
            Profile::Topics => Self::Topics(TopicsLink::open(name, config)?),
            Profile::BoosterRpc => Self::Rpc(RpcLink::open(name, config)?),
        })
    }

    /// Says a velocity and does not wait for an answer.
    fn say(&self, velocity: &Velocity) -> Result<(), RosError> {
        match self {
            Self::Topics(link) => link.velocity(velocity),
            Self::Rpc(link) => link.say(velocity),
        }
    }

    fn is_there(&self) -> bool {
        match self {
            Self::Topics(link) => link.is_there(),
            Self::Rpc(link) => link.is_there(),
        }
    }

    /// What an arm or the head was measured at, in degrees.
    fn measured(&self, on: Subsystem) -> Option<Vec<f64>> {
        match self {
            Self::Topics(link) => link.measured(on),
            Self::Rpc(link) => link.measured(on),
        }
    }

    fn close(&self) {
        match self {
            Self::Topics(link) => link.close(),
            Self::Rpc(link) => link.close(),
        }
    }
}

impl Watched for Shared {
    fn stop(&self) {
        if let Some(Err(error)) = self.link.get().map(|link| link.say(&Velocity::default())) {
            tracing::warn!(robot = self.name, %error, "cannot say stop");
        }
    }

    fn is_there(&self) -> bool {
        self.link.get().is_some_and(Link::is_there)
    }

    fn changed(&self, there: bool) {
        let (state, reason) = match there {
            true => ("connected", "the robot hears"),
            false => (
                "lost",
                "the robot does not hear any more; check its power and the network",
            ),
        };
        (self.notify)(Notice::Backend {
            state: state.to_owned(),
            reason: format!("{}: {reason}", self.name),
        });
    }
}

impl Shared {
    fn sent(&self) -> MutexGuard<'_, BTreeMap<Subsystem, Vec<f64>>> {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BoosterK1 {
    /// A robot that is not connected yet.
    ///
    /// # Errors
    /// The configuration makes no sense.
    pub fn new(
        name: &str,
        config: &BoosterK1Config,
        capabilities: Capabilities,
        estop: Option<Estop>,
        notify: Notify,
    ) -> Result<Self, ActionError> {
        let estop = self::estop(name, config, estop)?;
        Ok(Self {
            name: name.to_owned(),
            config: config.clone(),
            capabilities,
            estop,
            shared: Arc::new(Shared {
                name: name.to_owned(),
                link: OnceLock::new(),
                notify,
                sent: Mutex::default(),
            }),
            watch: OnceLock::new(),
            stopped: AtomicBool::new(false),
        })
    }

    fn link(&self) -> Result<&Link, ActionError> {
        self.shared.link.get().ok_or_else(|| ActionError::NotConnected {
            robot: self.name.clone(),
            reason: "its network was not joined".to_owned(),
        })
    }

    fn failed(&self, error: RosError) -> ActionError {
        match error {
            RosError::Refused { .. } => ActionError::Hardware {
                robot: self.name.clone(),
                what: error.to_string(),
            },
            other => ActionError::NotConnected {
                robot: self.name.clone(),
                reason: other.to_string(),
            },
        }
    }

    fn lacks(&self, what: impl Into<String>) -> ActionError {
        ActionError::NotSupported {
            robot: self.name.clone(),
            what: what.into(),
        }
    }

    fn rpc(&self) -> Option<&RpcLink> {
        match self.shared.link.get() {
            Some(Link::Rpc(link)) => Some(link),
            _ => None,
        }
    }

    /// Sends something that moves, unless the action or the robot was stopped.
    fn command<R>(
        &self,
        control: &Control,
        send: impl FnOnce() -> Result<R, RosError>,
    ) -> Result<R, ActionError> {
        let sent = control.command(|| {
            // Inside, because a halt waits for this closure.
            (!self.stopped.load(Ordering::SeqCst)).then(send)
        })?;
        sent.ok_or(ActionError::Stopped)?
            .map_err(|error| self.failed(error))
    }

    /// Asks the RPC for something that moves, and waits for the answer.
    async fn ask(
        &self,
        link: &RpcLink,
        control: &Control,
        api: i64,
        body: &Value,
    ) -> Result<Value, ActionError> {
        let asked = self.command(control, || link.ask(api, body))?;
        control
            .unless_cancelled(asked.answer())
            .await?
            .map_err(|error| self.failed(error))
    }

    async fn drive(
        &self,
        velocity: Velocity,
        duration: Duration,
        control: &Control,
    ) -> Result<ActionOutput, ActionError> {
        let link = self.there(control).await?;
        if let Link::Rpc(rpc) = link {
            self.walk_mode(rpc, control).await?;
        }
        let start = Instant::now();
        let driven = loop {
            let left = duration.saturating_sub(start.elapsed());
            if left.is_zero() {
                break Ok(());
            }
            if let Err(error) = self.say(link, &velocity, control).await {
                break Err(error);
            }
            // Topics are not answered: that it has fallen silent is all there is to notice.
            if !link.is_there() {
                break Err(self.away());
            }
            control.progress(
                (start.elapsed().as_secs_f64() / duration.as_secs_f64()).min(1.0),
                "walking",
            );
            control.sleep(left.min(AGAIN)).await?;
        };
        // Also after a failure: the last word is a stop. Without the right to command the halt says it.
        let stopped = self.stand(link, control).await;
        driven.and(stopped)?;
        let seconds = (start.elapsed().as_secs_f64() * 10.0).round() / 10.0;
        Ok(ActionOutput::said(format!("walked for {seconds} s")).with("duration_s", seconds))
    }

    /// Says a velocity for the length of a lease; the RPC answers whether it is accepted.
    async fn say(&self, link: &Link, velocity: &Velocity, control: &Control) -> Result<(), ActionError> {
        let renew = || {
            if let Some(watch) = self.watch.get() {
                watch.renew(LEASE);
            }
        };
        match link {
            Link::Topics(topics) => self.command(control, || {
                renew();
                topics.velocity(velocity)
            }),
            Link::Rpc(rpc) => {
                let asked = self.command(control, || {
                    renew();
                    rpc.ask_velocity(velocity)
                })?;
                control
                    .unless_cancelled(asked.answer())
                    .await?
                    .map(drop)
                    .map_err(|error| self.failed(error))
            }
        }
    }

    /// Says zero now, and twice more soon.
    async fn stand(&self, link: &Link, control: &Control) -> Result<(), ActionError> {
        control
            .command(|| {
                let said = link.say(&Velocity::default());
                if let Some(watch) = self.watch.get() {
                    watch.stopped();
                }
                said
            })?
            .map_err(|error| self.failed(error))?;
        control.sleep(AGAIN * 2).await
    }

    fn away(&self) -> ActionError {
        ActionError::NotConnected {
            robot: self.name.clone(),
            reason: "the robot does not hear; check its power, the network, ros.domain and ros.interfaces"
                .to_owned(),
        }
    }

    /// The link, when the robot is there or comes within a second.
    async fn there(&self, control: &Control) -> Result<&Link, ActionError> {
        let link = self.link()?;
        let end = Instant::now() + Duration::from_secs(1);
        while !link.is_there() {
            if Instant::now() >= end {
                return Err(ActionError::NotConnected {
                    robot: self.name.clone(),
                    reason:
                        "the robot does not hear; check its power, the network, ros.domain and ros.interfaces"
                            .to_owned(),
                });
            }
            control.sleep(Duration::from_millis(10)).await?;
        }
        Ok(link)
    }

    async fn to_positions(
        &self,
        on: Subsystem,
        positions: &[f64],
        speed: f64,
        control: &Control,
    ) -> Result<ActionOutput, ActionError> {
        let Some(joints) = self.capabilities.joints(on) else {
            return Err(self.lacks(on.as_str()));
        };
        let link = self.there(control).await?;
        let from = link.measured(on).or_else(|| self.shared.sent().get(&on).cloned());
        let blind = from.is_none();
        let path = match (&from, link) {
            (Some(from), _) => Path::new(from, positions, joints, speed),
            (None, Link::Rpc(_)) => {
                return Err(ActionError::NotConnected {
                    robot: self.name.clone(),
                    reason: format!("it does not say where {on} is: nothing on /low_state"),
                });
            }
            // The robot's bridge leads it there at its own pace.
            (None, Link::Topics(_)) => Path::new(positions, positions, joints, speed),
        };
        match link {
            Link::Rpc(rpc) if on == Subsystem::Gantry => self.head(rpc, positions, &path, control).await?,
            _ => self.lead(link, on, &path, control).await?,
        }
        let output = ActionOutput::said(format!("{on} was sent there")).with("positions", json!(positions));
        Ok(match blind {
            false => output,
            true => {
                // As its documentation says: a move takes a second, divided by its speed.
                control
                    .sleep(Duration::from_secs_f64(1.0 / speed.clamp(0.1, 1.0)))
                    .await?;
                output.note("the robot does not say where it was: it moved at its own pace")
            }
        })
    }

    /// Leads an arm or the head along a path.
    async fn lead(
        &self,
        link: &Link,
        on: Subsystem,
        path: &Path,
        control: &Control,
    ) -> Result<(), ActionError> {
        if let Link::Rpc(rpc) = link {
            self.take_arms(rpc, control).await?;
        }
        let start = Instant::now();
        let step = match link {
            Link::Topics(_) => Duration::from_millis(50),
            Link::Rpc(_) => Duration::from_millis(20),
        };
        let mut ends = 0;
        while ends < 2 {
            let passed = start.elapsed();
            let positions = path.at(passed);
            self.command(control, || match link {
                Link::Topics(topics) => topics.positions(on, &positions),
                Link::Rpc(rpc) => rpc.arm(on, &positions),
            })?;
            self.shared.sent().insert(on, positions);
            // The end is said twice, because one can be lost.
            ends += u32::from(passed >= path.time());
            control.sleep(step).await?;
        }
        Ok(())
    }

    async fn routine(
        &self,
        on: Subsystem,
        routine: &Routine,
        frames: &[Keyframe],
        control: &Control,
    ) -> Result<ActionOutput, ActionError> {
        if let Some(rpc) = self.rpc() {
            self.there(control).await?;
            if let Some(done) = self.built_in(rpc, on, routine, frames, control).await? {
                return Ok(done);
            }
        }
        let mut last = ActionOutput::default();
        for frame in frames {
            last = self
                .to_positions(on, &frame.positions, frame.speed, control)
                .await?;
            control
                .sleep(Duration::try_from_secs_f64(frame.hold).unwrap_or_default())
                .await?;
        }
        Ok(ActionOutput {
            notes: last.notes,
            ..ActionOutput::said(format!("{on} did it"))
        })
    }

    async fn run(&self, action: &Action, control: &Control) -> Result<ActionOutput, ActionError> {
        let on = action.subsystem;
        if let Some((positions, speed)) = action.primitive.joints() {
            return self.to_positions(on, positions, speed, control).await;
        }
        match &action.primitive {
            Primitive::Drive {
                velocity, duration, ..
            } => self.drive(*velocity, *duration, control).await,
            Primitive::LookAt { pan, tilt, speed, .. } => {
                self.to_positions(Subsystem::Gantry, &[*pan, *tilt], *speed, control)
                    .await
            }
            Primitive::Routine { routine, frames } => self.routine(on, routine, frames, control).await,
            Primitive::Gripper { action, force } => match self.rpc() {
                Some(rpc) if self.config.gripper => self.grip(rpc, on, *action, *force, control).await,
                _ => Err(self.lacks("gripper")),
            },
            Primitive::Stop => {
                let link = self.there(control).await?;
                self.stand(link, control).await?;
                Ok(ActionOutput::said("the robot stands"))
            }
            Primitive::MotorStatus { motor_id: None } | Primitive::PingAll => {
                let link = self.there(control).await?;
                let positions: BTreeMap<&str, Vec<f64>> = on
                    .each()
                    .into_iter()
                    .filter_map(|one| Some((one.as_str(), link.measured(one)?)))
                    .collect();
                if positions.is_empty() {
                    return Err(self.lacks(format!("motor status of {on}: the robot says nothing about it")));
                }
                Ok(ActionOutput::said(format!("what the robot says of {on}"))
                    .with("positions", json!(positions)))
            }
            Primitive::SelfTest { .. } => self.self_test(on, control).await,
            other => Err(self.lacks(word(other))),
        }
    }

    async fn self_test(&self, on: Subsystem, control: &Control) -> Result<ActionOutput, ActionError> {
        let link = self.there(control).await?;
        let output = ActionOutput::said(format!("{on}: the robot hears"));
        if let Link::Rpc(rpc) = link {
            let asked = control
                .command(|| rpc.ask(crate::dds::booster::api::GET_STATUS, &Value::Null))?
                .map_err(|error| self.failed(error))?;
            let status = control
                .unless_cancelled(asked.answer())
                .await?
                .map_err(|error| self.failed(error))?;
            return Ok(output.with("status", status));
        }
        Ok(match link.measured(on) {
            Some(positions) => output.with("positions", json!(positions)),
            None => output.note("it does not say where it is; nothing was moved"),
        })
    }
}

/// How a refusal names what is not there.
pub(super) fn word(primitive: &Primitive) -> String {
    let text = format!("{primitive:?}");
    let end = text
        .find(|letter: char| !letter.is_alphanumeric())
        .unwrap_or(text.len());
    let mut word = String::new();
    for letter in text[..end].chars() {
        if letter.is_uppercase() && !word.is_empty() {
            word.push(' ');
        }
        word.extend(letter.to_lowercase());
    }
    word
}

/// What an emergency stop does: stand where nobody says, because a robot without power falls.
fn estop(robot: &str, config: &BoosterK1Config, estop: Option<Estop>) -> Result<Estop, ActionError> {
    match (estop.unwrap_or(Estop::Hold), config.profile) {
        (Estop::Damp | Estop::TorqueOff, Profile::Topics) => Err(ActionError::NotSupported {
            robot: robot.to_owned(),
            what: "estop other than hold: no topic of the profile topics can".to_owned(),
        }),
        (Estop::TorqueOff, Profile::BoosterRpc) => Err(ActionError::NotSupported {
            robot: robot.to_owned(),
            what: "estop torque_off: the K1 can hold or damp".to_owned(),
        }),
        (estop, _) => Ok(estop),
    }
}

/// Brings the robot to rest from nothing: joins its network and says stop as soon as it hears, again and again for a
/// while.
///
/// # Errors
/// The robot did not hear.
pub fn safe_stop(name: &str, config: &BoosterK1Config, estop: Option<Estop>) -> Result<(), ActionError> {
    let failed = |reason: String| ActionError::NotConnected {
        robot: name.to_owned(),
        reason,
    };
    let damp = self::estop(name, config, estop)? == Estop::Damp;
    let stopped = match config.profile {
        Profile::Topics => Shout::open(&config.ros, &config.topics.velocity, Kind::Twist.type_name())
            .and_then(|shout| shout.say(PATIENCE, || vec![Twist::default()])),
        Profile::BoosterRpc => Shout::open(&config.ros, REQUESTS, REQUEST)
            .and_then(|shout| shout.say(PATIENCE, || rpc::stops(damp))),
    };
    stopped.map_err(|error| failed(format!("{error}; press the robot's own button")))
}

/// How long a stop from nothing looks for the robot.
const PATIENCE: Duration = Duration::from_secs(3);

impl Adapter for BoosterK1 {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn connect(&self) -> BoxFuture<'_, Result<(), ActionError>> {
        async {
            if self.shared.link.get().is_none() {
                let link = Link::open(&self.name, &self.config).map_err(|error| self.failed(error))?;
                let _ = self.shared.link.set(link);
                let watched: Arc<dyn Watched> = self.shared.clone();
                let watch = Watch::start(&self.name, watched).map_err(|error| ActionError::Hardware {
                    robot: self.name.clone(),
                    what: format!("cannot start a thread: {error}"),
                })?;
                let _ = self.watch.set(watch);
            }
            let link = self.link()?;
            let end = Instant::now() + self.config.ros.discovery();
            while !link.is_there() {
                if Instant::now() >= end {
                    return Err(ActionError::NotConnected {
                        robot: self.name.clone(),
                        reason: format!(
                            "nobody in DDS domain {} hears; check the robot's power, ros.domain and ros.interfaces",
                            self.config.ros.domain
                        ),
                    });
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            // It may have been walking for somebody who is gone.
            link.say(&Velocity::default()).map_err(|error| self.failed(error))
        }
        .boxed()
    }

    fn execute<'a>(
        &'a self,
        action: &'a Action,
        control: &'a Control,
    ) -> BoxFuture<'a, Result<ActionOutput, ActionError>> {
        self.run(action, control).boxed()
    }

    fn state(&self, subsystem: Subsystem) -> Value {
        let link = self.shared.link.get();
        let positions = self.capabilities.named_positions(subsystem, |one| {
            link.and_then(|link| link.measured(one))
                .or_else(|| self.shared.sent().get(&one).cloned())
        });
        json!({"positions": positions, "connected": link.is_some_and(Link::is_there)})
    }

    fn halt(&self, subsystems: &[Subsystem], emergency: bool) -> Result<(), ActionError> {
        if emergency {
            self.stopped.store(true, Ordering::SeqCst);
        }
        let Some(link) = self.shared.link.get() else {
            return Ok(());
        };
        let concerned: Vec<Subsystem> = subsystems.iter().flat_map(|one| one.each()).collect();
        let mut said = Ok(());
        if concerned.contains(&Subsystem::Base) {
            said = link.say(&Velocity::default());
            if let Some(watch) = self.watch.get() {
                watch.stopped();
            }
        }
        if let (true, Estop::Damp, Link::Rpc(rpc)) = (emergency, self.estop, link) {
            return said.and(rpc.damp()).map_err(|error| self.failed(error));
        }
        for one in concerned {
            // Arms and head stop where they are: nobody leads them on, and those that go by themselves are called back.
            if self.capabilities.joints(one).is_some()
                && let Some(positions) = link
                    .measured(one)
                    .or_else(|| self.shared.sent().get(&one).cloned())
            {
                let held = match link {
                    Link::Topics(topics) => topics.positions(one, &positions),
                    Link::Rpc(rpc) => rpc.hold(one, &positions),
                };
                said = said.and(held);
            }
        }
        said.map_err(|error| self.failed(error))
    }

    fn reset(&self) -> Result<(), ActionError> {
        self.stopped.store(false, Ordering::SeqCst);
        Ok(())
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        async {
            if let Some(watch) = self.watch.get() {
                watch.close();
            }
            if let Some(link) = self.shared.link.get() {
                link.close();
            }
        }
        .boxed()
    }
}
