//! The Unitree G1 over DDS: its motion service, its arm actions, and its arms joint by joint.
//!
//! Owns the translation. The robot ends every velocity after the duration in its message, at most a second. An action
//! renews the velocity while it runs, and a thread of the toolbox ends it, too. Arms are led in small steps over
//! `arm_sdk`, whose weight fades in and out. The robot has no actuated head. Read [`UnitreeG1`].

mod arms;
mod gestures;

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::{Value, json};

use self::arms::Arms;
use self::gestures::{Gestures, release_body};
use super::contract::{ActionOutput, Adapter, Notify};
use super::control::Control;
use super::part_reading::PartReading;
use super::remote::{Link, Remote, node_name, until};
use super::walker::{Outcome, Walker, followed, own_time, place_to_hold};
use crate::action::{Keyframe, Velocity};
use crate::capability::{self, Capabilities};
use crate::conduct::Estop;
use crate::dds::Participant;
use crate::dds::asked::DdsRequest;
use crate::dds::latest::SILENCE;
use crate::dds::shout::Shout;
use crate::dds::unitree::{REQUEST, Rpc, api, request};
use crate::driver::{DrivenRobot, Driver, arms_of, parts_of};
use crate::error::ActionError;
use crate::model::{Model, ModelError};
use crate::ros::path::Path;
use crate::ros::{RosConfig, RosError};
use crate::step::{Grip, Step};
use crate::subsystem::Subsystem;

/// How long the robot keeps a velocity, seconds: its own dead-man.
const KEPT: f64 = 0.5;

/// The channels of a G1.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UnitreeG1Config {
    /// Domain, interfaces. The robot is 192.168.123.161, this machine needs an address in its network.
    pub ros: RosConfig,
    /// How long an answer may take, in milliseconds. The robot's own gestures may take 12 s.
    pub answer_ms: u64,
    /// How fast the arms become ours and the robot's again, in parts of the whole per second. The vendor's example
    /// takes 0.2.
    pub weight_rate: f64,
    /// It has Dex3 hands.
    pub hands: bool,
}

impl Default for UnitreeG1Config {
    fn default() -> Self {
        Self {
            ros: RosConfig::default(),
            answer_ms: 1000,
            weight_rate: 0.5,
            hands: false,
        }
    }
}

impl Driver for UnitreeG1Config {
    fn equip(&self, parts: &mut Capabilities) {
        parts.services = capability::Services {
            motor_status: true,
            self_test: parts_of(parts, &[]),
            ..capability::Services::default()
        };
    }

    fn fit(&self, mut model: Model) -> Result<Model, ModelError> {
        arms_of(&model.capabilities, 7)?;
        let mut capabilities = model.capabilities.clone();
        for arm in [&mut capabilities.left_arm, &mut capabilities.right_arm]
            .into_iter()
            .flatten()
        {
            arm.gripper = arm.gripper.take().filter(|_| self.hands);
        }
        model.narrow(capabilities);
        Ok(model)
    }

    fn drive(&self, robot: DrivenRobot<'_>, notify: Notify) -> Result<Arc<dyn Adapter>, ActionError> {
        Ok(Arc::new(UnitreeG1::new(robot, self, notify)))
    }

    fn safe_stop(&self, robot: DrivenRobot<'_>) -> Result<(), ActionError> {
        safe_stop(robot.name, self, robot.stop.emergency)
    }
}

/// A G1.
pub struct UnitreeG1 {
    config: UnitreeG1Config,
    estop: Estop,
    remote: Remote<Services>,
}

/// The robot's services.
pub(super) struct Services {
    participant: Arc<Participant>,
    sport: Rpc,
    gestures: Gestures,
    arms: Arms,
}

impl Services {
    fn open(name: &str, config: &UnitreeG1Config) -> Result<Self, RosError> {
        let participant = Arc::new(Participant::join(&config.ros, &node_name(name))?);
        let timeout = Duration::from_millis(config.answer_ms.clamp(100, 5000));
        Ok(Self {
            sport: Rpc::new(&participant, "sport", timeout)?,
            gestures: Gestures::new(Arc::clone(&participant))?,
            arms: Arms::new(&participant, config.weight_rate)?,
            participant,
        })
    }

    /// Makes the motors give way or switches their power off, as `estop` says.
    fn let_go(&self, estop: Estop) -> Result<(), RosError> {
        match fsm(estop) {
            Some(fsm) => self.sport.send(api::SET_FSM_ID, &json!({ "data": fsm })),
            None => Ok(()),
        }
    }
}

impl Link for Services {
    const AGAIN: Duration = Duration::from_millis(100);
    const LEASE: Duration = Duration::from_millis(400);

    fn say(&self, velocity: &Velocity) -> Result<(), RosError> {
        self.sport.send(api::SET_VELOCITY, &velocity_body(velocity))
    }

    fn tell(&self, velocity: &Velocity) -> Result<Option<DdsRequest>, RosError> {
        let asked = self.sport.ask(api::SET_VELOCITY, &velocity_body(velocity));
        asked.map(Some)
    }

    fn is_there(&self) -> bool {
        self.sport.requests().is_ready() && !self.arms.is_silent()
    }

    fn is_silent(&self) -> bool {
        self.sport.requests().is_ready() && self.arms.is_silent()
    }

    fn left(&self) {
        self.arms.left();
        self.gestures.forget();
    }
}

fn velocity_body(velocity: &Velocity) -> Value {
    let zero = *velocity == Velocity::default();
    json!({"velocity": [velocity.x, velocity.y, velocity.turn], "duration": if zero { 1.0 } else { KEPT }})
}

impl UnitreeG1 {
    /// A robot that is not connected yet.
    #[must_use]
    pub fn new(robot: DrivenRobot<'_>, config: &UnitreeG1Config, notify: Notify) -> Self {
        Self {
            config: config.clone(),
            // A robot without power falls.
            estop: robot.stop.emergency.unwrap_or(Estop::Hold),
            remote: Remote::new(robot.name, &config.ros, robot.capabilities.clone(), notify),
        }
    }

    /// Where the joints of an arm are.
    fn reading(&self, link: &Services, on: Subsystem) -> PartReading {
        let joints = self.remote.capabilities().joints(on).unwrap_or_default();
        link.arms.reading(on, joints)
    }

    /// Performs an arm action of the robot's own, holds it until `time` has passed, and releases the arms.
    async fn gesture(&self, action: i64, time: Duration, control: &Control) -> Result<(), ActionError> {
        let link = self.remote.there(control).await?;
        let refused = |why: &str| Err(ActionError::Refused(why.to_owned()));
        if link.arms.are_ours() {
            return refused(
                "this toolbox controls the joints of the arms: call go_to_pose with pose home first, then an action of the robot's own",
            );
        }
        if link.gestures.are_under_way() {
            return refused("the arms perform another action of the robot's own: wait until it is over");
        }
        let are_heard = || link.gestures.are_heard().then_some(()).ok_or(());
        until(control, self.config.ros.discovery(), are_heard)
            .await?
            .map_err(|()| self.remote.away("its service `arm` hears no requests"))?;
        let start = Instant::now();
        let performed = self.remote.ask(control, || link.gestures.begin(action)).await;
        if let Err(error) = performed {
            match error {
                // The robot has refused: nothing was begun.
                ActionError::Hardware { .. } => link.gestures.forget(),
                // The action may run in spite of the error. Without the right to command, the halt releases the arms.
                _ => drop(control.command(|| link.gestures.insist())),
            }
            return Err(error);
        }
        control.sleep(time.saturating_sub(start.elapsed())).await?;
        let released = self.remote.ask(control, || link.gestures.release()).await;
        match released {
            Ok(_) => link.gestures.forget(),
            Err(_) => drop(control.command(|| link.gestures.insist())),
        }
        released.map(drop)
    }
}

/// The robot's own action for an emotion: our choice among the robot's actions.
fn gesture(emotion: &str) -> Option<i64> {
    Some(match emotion {
        "happy" => 17,
        "excited" => 15,
        "surprised" => 24,
        "confused" => 22,
        "proud" => 20,
        "shy" => 25,
        _ => return None,
    })
}

/// The robot's own action for a dance.
fn dance(style: &str) -> i64 {
    match style {
        "silly" => 24,
        "groovy" => 17,
        "victory" => 15,
        _ => 20,
    }
}

/// Brings the robot to rest without an instance: joins its network and, as soon as the robot hears it, repeats a stop
/// for a while.
///
/// # Errors
/// The robot did not hear.
fn safe_stop(name: &str, config: &UnitreeG1Config, estop: Option<Estop>) -> Result<(), ActionError> {
    // Each request has a new id, which differs from those of the process that has died.
    let ask = |api_id, parameter: &Value| request(fastrand::i64(1..1 << 40), api_id, parameter, true);
    let fsm = fsm(estop.unwrap_or(Estop::Hold));
    let stops = || {
        let mut stops = vec![ask(api::SET_VELOCITY, &velocity_body(&Velocity::default()))];
        stops.extend(fsm.map(|fsm| ask(api::SET_FSM_ID, &json!({"data": fsm}))));
        stops
    };
    let shout = |topic| Shout::open(&config.ros, topic, REQUEST);
    let failed = |error: RosError| ActionError::NotConnected {
        robot: name.to_owned(),
        reason: format!("{error}; use the robot's remote control"),
    };
    // Both topics look for the robot from now on.
    let (sport, arm) = (shout("/api/sport/request"), shout("/api/arm/request"));
    sport
        .and_then(|sport| sport.say(Duration::from_secs(3), Duration::from_millis(10), stops))
        .map_err(failed)?;
    if fsm.is_some() {
        // The motors gave way: no action holds the arms.
        return Ok(());
    }
    // The process that has died may have begun an action, which the robot would hold for up to 20 s.
    let release = || vec![ask(api::ARM_ACTION, &release_body())];
    match arm.and_then(|arm| arm.say(Duration::from_secs(1), Duration::from_millis(100), release)) {
        // The arm service can be switched off. It then performs no action.
        Err(RosError::NoReader { topic, .. }) => {
            tracing::info!(topic, "no arm service: no action to end");
            Ok(())
        }
        other => other.map_err(failed),
    }
}

/// The robot's state machine number for an emergency stop that does more than stand.
fn fsm(estop: Estop) -> Option<i64> {
    match estop {
        Estop::Hold => None,
        Estop::Damp => Some(1),
        Estop::TorqueOff => Some(0),
    }
}

impl Walker for UnitreeG1 {
    type Link = Services;

    fn remote(&self) -> &Remote<Services> {
        &self.remote
    }

    fn opener(&self) -> impl Fn() -> Result<Services, RosError> + Send + 'static {
        let (name, config) = (self.remote.name().to_owned(), self.config.clone());
        move || Services::open(&name, &config)
    }

    fn last_known(&self, on: Subsystem) -> Option<Vec<f64>> {
        self.remote.capabilities().joints(on)?;
        self.reading(self.remote.link()?, on).last()
    }

    async fn go(&self, on: Subsystem, positions: &[f64], speed: f64, control: &Control) -> Outcome {
        let Some(joints) = self.remote.capabilities().joints(on) else {
            return Err(self.remote.lacks(on.as_str()));
        };
        let link = self.remote.there(control).await?;
        let from = self.reading(link, on).within(SILENCE).map_err(|silent| {
            self.remote.away(&format!(
                "{silent} on /lowstate: check what publishes it on the robot"
            ))
        })?;
        if link.gestures.are_under_way() {
            return Err(ActionError::Refused(
                "the arms perform an action of the robot's own: wait until it is over".to_owned(),
            ));
        }
        let path = Path::new(&from, positions, joints, speed);
        let start = Instant::now();
        let mut arrived = None;
        loop {
            let passed = start.elapsed();
            let led = self
                .remote
                .command(control, || link.arms.lead(on, &path.at(passed)))?;
            if passed >= path.time() && led.whole {
                // The path is at its end and the arm has its full weight. The end is sent twice, because one message
                // can be lost.
                let first = *arrived.get_or_insert(led.count);
                if led.count >= first + 2 {
                    break;
                }
            }
            control.sleep(arms::STEP).await?;
        }
        followed(
            &self.remote,
            on,
            (&from, positions),
            || self.reading(link, on),
            control,
        )
        .await?;
        Ok(ActionOutput::new(format!("{on} was sent there")).with("positions", json!(positions)))
    }

    async fn give_back(&self, on: Subsystem, control: &Control) -> Outcome<()> {
        let link = self.remote.there(control).await?;
        while link.arms.may_fade(on) {
            let done = self.remote.command(control, || link.arms.fade())?;
            if done {
                break;
            }
            control.sleep(arms::STEP).await?;
        }
        Ok(())
    }

    async fn perform(
        &self,
        on: Subsystem,
        step: &Step,
        frames: &[Keyframe],
        control: &Control,
    ) -> Outcome<Option<ActionOutput>> {
        let own = match step {
            Step::Wave { style } if style == "shy" => Some(25),
            Step::Wave { .. } => Some(26),
            Step::Gesture { emotion, .. } => gesture(emotion),
            Step::Dance { style, .. } => Some(dance(style)),
            _ => None,
        };
        let Some(action) = own else {
            return Ok(None);
        };
        let time = own_time(frames, 0.5, 4.0);
        // The robot's action moves all of its parts. The right arm's part of a plan starts it.
        if matches!(step, Step::Gesture { .. } | Step::Dance { .. }) && on != Subsystem::RightArm {
            control.sleep(time).await?;
            let along = format!("{on} goes along with the robot's own action");
            return Ok(Some(ActionOutput::along(along)));
        }
        let time = match step {
            Step::Dance { duration, .. } => Duration::from_secs_f64(*duration),
            _ => time,
        };
        self.gesture(action, time, control).await?;
        let note = "the robot's own action: it has no style of its own";
        Ok(Some(ActionOutput::new("did it").note(note)))
    }

    async fn set_off(&self, _: &Control) -> Outcome<()> {
        Ok(())
    }

    async fn grip(&self, on: Subsystem, action: Grip, _: Option<f64>, control: &Control) -> Outcome {
        if !self.config.hands {
            return Err(self.remote.lacks("gripper"));
        }
        let link = self.remote.there(control).await?;
        let close = self.remote.command(control, || link.arms.grip(on, action))?;
        control.sleep(Duration::from_secs(1)).await?;
        let word = if close { "close" } else { "open" };
        Ok(ActionOutput::new(format!("hand of {on} was told to {word}")).with("closed", close))
    }

    fn status(
        &self,
        link: &Services,
        on: Subsystem,
        motor_id: Option<u8>,
    ) -> Outcome<Option<(&'static str, Value)>> {
        let motors = link.arms.status(on, motor_id);
        Ok((!motors.is_empty()).then(|| ("motors", Value::Object(motors))))
    }

    async fn self_test(&self, on: Subsystem, control: &Control) -> Outcome {
        let link = self.remote.there(control).await?;
        let fsm = self
            .remote
            .inquire(control, || link.sport.ask(api::GET_FSM_ID, &json!({})))
            .await?;
        let message = format!("{on}: the robot answers; nothing was moved");
        Ok(ActionOutput::new(message).with("fsm_id", fsm["data"].clone()))
    }

    fn stop(&self, link: &Services, concerned: &[Subsystem], emergency: bool) -> Result<(), RosError> {
        if emergency && self.estop != Estop::Hold {
            let let_go = link.let_go(self.estop);
            // The arms hang now. Their last command must not be repeated.
            link.arms.forget();
            link.gestures.forget();
            return let_go;
        }
        if !concerned.iter().any(|one| one.is_arm()) {
            return Ok(());
        }
        if !link.arms.are_ours() {
            return link.gestures.insist();
        }
        let arms = concerned.iter().filter(|one| one.is_arm());
        let measured: Vec<_> = arms
            .filter_map(|arm| {
                Some((
                    *arm,
                    place_to_hold(&self.remote, *arm, &self.reading(link, *arm))?,
                ))
            })
            .collect();
        link.arms.hold(&measured)
    }

    async fn leave(&self, link: &Services) {
        // The arms go back to the robot's own controller slowly, within the time of a close.
        let end = Instant::now() + Duration::from_millis(2500);
        while link.arms.are_ours() && Instant::now() < end {
            if link.arms.fade().is_err() {
                break;
            }
            tokio::time::sleep(arms::STEP).await;
        }
        link.participant.close();
    }
}
