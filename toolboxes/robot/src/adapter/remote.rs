//! The connection to a robot on a network.
//!
//! Owns joining the network, whether the robot is there, the right to command motion, and driving: a velocity that is
//! repeated, and the thread that ends it. The [`Link`] owns how a velocity is sent. Read [`Remote`].

use std::collections::BTreeSet;
use std::future::Future;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use ros_graph::error::GraphError;
use serde_json::Value;

use super::contract::{ActionOutput, BackendState, Notice, Notify};
use super::control::Control;
use super::seek::{Seek, Sought};
use crate::action::{Action, Velocity};
use crate::capability::Capabilities;
use crate::dds::asked::DdsRequest;
use crate::error::ActionError;
use crate::ros::watch::{Watch, Watched};
use crate::ros::{RosConfig, RosError};
use crate::step::Step;
use crate::subsystem::Subsystem;

/// How long an action waits for a robot that is away.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long an action that moves waits for what the robot has to report first: a K1 does so once a second.
const REPORTS: Duration = Duration::from_secs(2);
/// The pause between two looks for the robot, or for a part of it.
const LOOK: Duration = Duration::from_millis(10);
/// The pause between two tries to join the network of a robot that was not seen yet.
const AGAIN: Duration = Duration::from_secs(1);
/// During an action, the pause between two checks that the robot is there and stands.
const GLANCE: Duration = Duration::from_millis(50);

/// The reason that is given for a robot that hears us and sends nothing.
const SILENT: &str = "the robot is silent: it has not reported the positions of its joints for a second; check its power, and that what \
                      publishes its state runs and does so more than once a second";

/// The robot's side of the connection. No method blocks.
pub(super) trait Link: Send + Sync + 'static {
    /// How often a velocity is repeated while an action runs.
    const AGAIN: Duration;
    /// How long a velocity holds in this process without a repetition.
    const LEASE: Duration;

    /// What is said of a robot that hears us and sends nothing.
    const SILENT: &str = SILENT;

    /// Sends a velocity without waiting for an answer.
    fn say(&self, velocity: &Velocity) -> Result<(), RosError>;

    /// Sends a velocity and returns the pending answer, if the robot gives answers.
    fn tell(&self, velocity: &Velocity) -> Result<Option<DdsRequest>, RosError>;

    /// Whether the robot is there.
    fn is_there(&self) -> bool;

    /// Whether the robot has stopped sending its state, although the network still shows a reader.
    fn is_silent(&self) -> bool {
        false
    }

    /// What the robot lacks of what its file says.
    fn lacks(&self) -> Option<String> {
        None
    }

    /// Why the robot cannot move now, if it reports that.
    fn unfit(&self) -> Option<String> {
        None
    }

    /// What the robot has not reported since it appeared, and without which nothing is moved.
    fn unreported(&self) -> Option<&'static str> {
        None
    }

    /// # Errors
    /// The robot hears, and not in the types that are spoken here.
    fn fits(&self) -> Result<(), RosError> {
        Ok(())
    }

    /// Called when the robot has gone: its last state is no longer valid.
    fn left(&self) {}

    /// Called when the robot has appeared or come back: the link repeats its unconfirmed commands, except the
    /// velocity.
    fn appeared(&self) {}
}

/// A robot over a network.
pub(super) struct Remote<L: Link> {
    name: String,
    capabilities: Capabilities,
    ros: RosConfig,
    shared: Arc<Shared<L>>,
    seek: OnceLock<Seek>,
    watch: OnceLock<Watch>,
    stopped: AtomicBool,
}

/// The part that the threads share.
struct Shared<L> {
    name: String,
    /// Set when the robot was seen for the first time.
    link: OnceLock<L>,
    /// Why its network cannot be joined.
    refusal: Mutex<Option<RosError>>,
    /// What its graph lacks as long as it was not seen, where that is known.
    doubt: Mutex<Option<RosError>>,
    notify: Notify,
}

impl<L> Shared<L> {
    fn doubt(&self) -> Option<RosError> {
        self.doubt.lock().clone()
    }

    fn refusal(&self) -> Option<RosError> {
        let refusal = self.refusal.lock();
        refusal.clone()
    }
}

/// A robot that is looked for.
struct Search<L, F> {
    shared: Arc<Shared<L>>,
    ros: RosConfig,
    open: F,
}

impl<L: Link, F> Sought for Search<L, F>
where
    F: Fn() -> Result<L, RosError> + Send + 'static,
{
    type Link = L;

    fn open(&self) -> Result<L, RosError> {
        (self.open)()
    }

    fn is_there(&self, link: &L) -> bool {
        let there = link.is_there();
        let unfit = link.fits().err().filter(|_| !there);
        let graph = unfit.clone().filter(|error| matches!(error, RosError::Graph(_)));
        *self.shared.doubt.lock() = graph;
        let other = unfit.filter(|error| matches!(error, RosError::OtherType { .. }));
        self.tried(other.filter(|_| !there).map_or(Ok(()), Err));
        there
    }

    fn addresses(&self) -> BTreeSet<IpAddr> {
        self.ros.dds().addresses()
    }

    fn tried(&self, result: Result<(), RosError>) {
        let refusal = result.err();
        let mut known = self.shared.refusal.lock();
        if let Some(error) = refusal.as_ref().filter(|_| *known != refusal) {
            tracing::warn!(robot = self.shared.name, %error, "cannot reach the robot; trying again");
        }
        *known = refusal;
    }

    fn found(&self, link: L) {
        let _ = self.shared.link.set(link);
    }
}

impl<L: Link> Watched for Shared<L> {
    fn stop(&self) {
        if let Some(Err(error)) = self.link.get().map(|link| link.say(&Velocity::default())) {
            tracing::warn!(robot = self.name, %error, "cannot send the stop");
        }
    }

    fn is_there(&self) -> bool {
        self.link.get().is_some_and(Link::is_there)
    }

    fn lacks(&self) -> Option<String> {
        self.link.get().and_then(Link::lacks)
    }

    fn changed(&self, there: bool) {
        match (there, self.link.get()) {
            (true, Some(link)) => link.appeared(),
            (false, Some(link)) => link.left(),
            (_, None) => {}
        }
        let silent = self.link.get().is_some_and(Link::is_silent);
        let lacks = Watched::lacks(self);
        let (state, reason) = match there {
            true => match &lacks {
                None => (BackendState::Connected, "the robot receives commands"),
                Some(lacks) => (BackendState::Degraded, lacks.as_str()),
            },
            false if silent => (BackendState::Lost, L::SILENT),
            false => (
                BackendState::Lost,
                "the robot no longer receives commands; check its power and the network",
            ),
        };
        (self.notify)(Notice::Backend {
            state,
            reason: reason.to_owned(),
        });
    }
}

impl<L: Link> Remote<L> {
    /// A robot whose network was not joined yet.
    pub(super) fn new(name: &str, ros: &RosConfig, capabilities: Capabilities, notify: Notify) -> Self {
        Self {
            name: name.to_owned(),
            capabilities,
            ros: ros.clone(),
            shared: Arc::new(Shared {
                name: name.to_owned(),
                link: OnceLock::new(),
                refusal: Mutex::default(),
                doubt: Mutex::default(),
                notify,
            }),
            seek: OnceLock::new(),
            watch: OnceLock::new(),
            stopped: AtomicBool::new(false),
        }
    }

    /// Looks for the robot, waits for it and brings it to rest. The search goes on afterwards, because its network
    /// may come up later.
    pub(super) async fn connect(
        &self,
        open: impl Fn() -> Result<L, RosError> + Send + 'static,
    ) -> Result<(), ActionError> {
        if self.seek.get().is_none() {
            self.begin(open).map_err(|error| ActionError::Hardware {
                robot: self.name.clone(),
                what: format!("cannot start a thread: {error}"),
            })?;
        }
        let end = Instant::now() + self.ros.discovery();
        let link = loop {
            if let Some(link) = self.link().filter(|link| link.is_there()) {
                break link;
            }
            if let Some(refusal) = self.shared.refusal() {
                return Err(self.failed(refusal));
            }
            if Instant::now() >= end {
                if let Some(doubt) = self.shared.doubt() {
                    return Err(self.away(&doubt.to_string()));
                }
                return Err(self.away(&format!(
                    "no robot in DDS domain {} receives commands; check the robot's power, ros.domain and ros.interfaces",
                    self.ros.domain
                )));
            }
            tokio::time::sleep(LOOK).await;
        };
        // The robot may still walk by the command of a process that is gone.
        link.say(&Velocity::default()).map_err(|error| self.failed(error))
    }

    fn begin(&self, open: impl Fn() -> Result<L, RosError> + Send + 'static) -> std::io::Result<()> {
        let watched: Arc<dyn Watched> = self.shared.clone();
        let _ = self.watch.set(Watch::start(&self.name, watched)?);
        let search = Search {
            shared: Arc::clone(&self.shared),
            ros: self.ros.clone(),
            open,
        };
        let _ = self.seek.set(Seek::start(&self.name, AGAIN, search)?);
        Ok(())
    }

    /// The link, once the robot was seen.
    pub(super) fn link(&self) -> Option<&L> {
        self.shared.link.get()
    }

    fn joined(&self) -> Result<&L, ActionError> {
        self.link().ok_or_else(|| self.deaf())
    }

    pub(super) fn is_there(&self) -> bool {
        self.shared.is_there()
    }

    /// The link, when the robot is there or comes within a second.
    pub(super) async fn there(&self, control: &Control) -> Result<&L, ActionError> {
        let is_there = || self.link().filter(|link| link.is_there()).ok_or(());
        until(control, PATIENCE, is_there)
            .await?
            .map_err(|()| self.deaf())
    }

    /// Does an action while the robot is there and, where the action moves a part, can move. Topics have no answers
    /// and the robot's own routines take long, so most actions notice a lost robot only here. An interrupted action
    /// ends with `halt`.
    pub(super) async fn attend(
        &self,
        action: &Action,
        control: &Control,
        work: impl Future<Output = Result<ActionOutput, ActionError>>,
        halt: impl FnOnce() -> Result<(), ActionError>,
    ) -> Result<ActionOutput, ActionError> {
        // The self test of these robots moves nothing.
        let asks = matches!(action.step, Step::SelfTest { .. });
        let moves = action.step.moves() && !asks;
        if moves {
            let reported = || self.unreported().map_or(Ok(()), Err);
            let _ = until(control, REPORTS, reported).await?;
        }
        self.fit(moves)?;
        tokio::select! {
            biased;
            done = work => done,
            trouble = self.trouble(moves) => {
                // An action without the right to command is halted by the service.
                let _ = control.command(halt);
                Err(trouble)
            }
        }
    }

    /// Resolves when the robot goes away, or when it has to move and cannot.
    async fn trouble(&self, moves: bool) -> ActionError {
        let mut was_there = false;
        loop {
            let is_there = self.is_there();
            if was_there && !is_there {
                return self.deaf();
            }
            was_there = is_there;
            if let Err(unfit) = self.fit(moves) {
                return unfit;
            }
            tokio::time::sleep(GLANCE).await;
        }
    }

    fn fit(&self, moves: bool) -> Result<(), ActionError> {
        if !moves {
            return Ok(());
        }
        self.check_fit()?;
        self.unreported().map_or(Ok(()), |what| Err(self.away(what)))
    }

    fn check_fit(&self) -> Result<(), ActionError> {
        let unfit = self.link().and_then(Link::unfit);
        unfit.map_or(Ok(()), |what| {
            Err(ActionError::Hardware {
                robot: self.name.clone(),
                what,
            })
        })
    }

    /// What a robot that is there has not reported yet.
    fn unreported(&self) -> Option<&'static str> {
        self.link().filter(|link| link.is_there())?.unreported()
    }

    /// Sends something that moves, unless the action or the robot was stopped.
    pub(super) fn command<R>(
        &self,
        control: &Control,
        send: impl FnOnce() -> Result<R, RosError>,
    ) -> Result<R, ActionError> {
        let sent = control.command(|| {
            // Checked inside, because a halt waits for this closure.
            (!self.stopped.load(Ordering::SeqCst)).then(send)
        })?;
        sent.ok_or(ActionError::Stopped)?
            .map_err(|error| self.failed(error))
    }

    /// Asks for something that moves, and waits for the answer.
    pub(super) async fn ask(
        &self,
        control: &Control,
        send: impl FnOnce() -> Result<DdsRequest, RosError>,
    ) -> Result<Value, ActionError> {
        let asked = self.command(control, send)?;
        self.answer(asked, control).await
    }

    /// Asks for something that moves nothing, and waits for the answer.
    pub(super) async fn inquire(
        &self,
        control: &Control,
        send: impl FnOnce() -> Result<DdsRequest, RosError>,
    ) -> Result<Value, ActionError> {
        let asked = control.command(send)?.map_err(|error| self.failed(error))?;
        self.answer(asked, control).await
    }

    async fn answer(&self, asked: DdsRequest, control: &Control) -> Result<Value, ActionError> {
        control
            .unless_cancelled(asked.answer())
            .await?
            .map_err(|error| self.failed(error))
    }

    /// Walks with this velocity for so long, and ends with a stop.
    pub(super) async fn drive(
        &self,
        velocity: Velocity,
        duration: Duration,
        control: &Control,
    ) -> Result<ActionOutput, ActionError> {
        let link = self.there(control).await?;
        let start = Instant::now();
        let driven = loop {
            let left = duration.saturating_sub(start.elapsed());
            if left.is_zero() {
                break Ok(());
            }
            if let Err(error) = self.tell(link, &velocity, control).await {
                break Err(error);
            }
            control.progress(
                (start.elapsed().as_secs_f64() / duration.as_secs_f64()).min(1.0),
                "walking",
            );
            control.sleep(left.min(L::AGAIN)).await?;
        };
        // A stop is sent after a failure, too. If the action has lost the right to command, the halt sends the stop.
        let seconds = (start.elapsed().as_secs_f64() * 10.0).round() / 10.0;
        let stopped = self.stand(control).await;
        driven.and(stopped)?;
        Ok(ActionOutput::new(format!("walked for {seconds} s")).with("duration_s", seconds))
    }

    /// Sends a velocity for the length of a lease, and waits for the answer where there is one.
    pub(super) async fn tell(
        &self,
        link: &L,
        velocity: &Velocity,
        control: &Control,
    ) -> Result<(), ActionError> {
        let asked = self.command(control, || {
            // The lease begins before the velocity is sent, so that the robot never walks without an end.
            if let Some(watch) = self.watch.get() {
                watch.renew(L::LEASE);
            }
            link.tell(velocity)
        })?;
        match asked {
            Some(asked) => self.answer(asked, control).await.map(drop),
            None => Ok(()),
        }
    }

    /// Sends zero velocity now, and twice more soon after.
    pub(super) async fn stand(&self, control: &Control) -> Result<(), ActionError> {
        let link = self.joined()?;
        control
            .command(|| self.brake(link))?
            .map_err(|error| self.failed(error))?;
        control.sleep(Duration::from_millis(200)).await
    }

    /// Says zero from another task, which may outlive the call that made it.
    pub(super) fn sayer(&self) -> impl Fn() + Send + 'static {
        let shared = Arc::clone(&self.shared);
        move || shared.stop()
    }

    fn brake(&self, link: &L) -> Result<(), RosError> {
        let sent = link.say(&Velocity::default());
        if let Some(watch) = self.watch.get() {
            watch.stopped();
        }
        sent
    }

    /// Begins a halt: an emergency refuses all later motion, and a halted base is told to stand. Returns the link,
    /// the halted parts, and whether the stop could be sent; `None` where there is no network.
    pub(super) fn halt(
        &self,
        subsystems: &[Subsystem],
        emergency: bool,
    ) -> Option<(&L, Vec<Subsystem>, Result<(), RosError>)> {
        if emergency {
            self.stopped.store(true, Ordering::SeqCst);
        }
        let link = self.link()?;
        let concerned: Vec<Subsystem> = subsystems.iter().flat_map(|one| one.each()).collect();
        let sent = match concerned.contains(&Subsystem::Base) {
            true => self.brake(link),
            false => Ok(()),
        };
        Some((link, concerned, sent))
    }

    /// Allows motion to be commanded again, unless the robot reports that it cannot move.
    pub(super) fn reset(&self) -> Result<(), ActionError> {
        self.check_fit()?;
        self.stopped.store(false, Ordering::SeqCst);
        Ok(())
    }

    /// Ends the threads, which end a velocity first.
    pub(super) fn close(&self) {
        if let Some(seek) = self.seek.get() {
            seek.close();
        }
        if let Some(watch) = self.watch.get() {
            watch.close();
        }
    }

    pub(super) fn failed(&self, error: RosError) -> ActionError {
        match error {
            RosError::Refused { .. } | RosError::Unheard { .. } => ActionError::Hardware {
                robot: self.name.clone(),
                what: error.to_string(),
            },
            other => self.away(&other.to_string()),
        }
    }

    pub(super) fn away(&self, reason: &str) -> ActionError {
        ActionError::NotConnected {
            robot: self.name.clone(),
            reason: reason.to_owned(),
        }
    }

    /// # Errors
    /// The robot did not hear a stop that was sent just now.
    pub(super) fn check_there(&self) -> Result<(), ActionError> {
        match self.is_there() {
            true => Ok(()),
            false => Err(self.deaf()),
        }
    }

    /// What a stop says of a robot that was never seen: nothing was begun that could go on.
    ///
    /// # Errors
    /// The robot is there, and reads other types than are spoken here.
    pub(super) fn unseen(&self) -> Result<(), ActionError> {
        match self.shared.refusal().or_else(|| self.shared.doubt()) {
            Some(refusal @ (RosError::OtherType { .. } | RosError::Graph(GraphError::OtherType { .. }))) => {
                Err(self.failed(refusal))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn deaf(&self) -> ActionError {
        let other = self.link().and_then(|link| link.fits().err());
        match self
            .shared
            .refusal()
            .or(other.filter(|error| matches!(error, RosError::OtherType { .. } | RosError::Graph(_))))
            .or_else(|| self.shared.doubt())
        {
            Some(refusal) => self.failed(refusal),
            None if self.link().is_some_and(Link::is_silent) => self.away(L::SILENT),
            None => self
                .away("the robot does not receive commands; check its power, the network, ros.domain and ros.interfaces"),
        }
    }

    pub(super) fn lacks(&self, what: impl Into<String>) -> ActionError {
        ActionError::NotSupported {
            robot: self.name.clone(),
            what: what.into(),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    pub(super) fn notify(&self) -> &Notify {
        &self.shared.notify
    }
}

/// What `look` finds, or its error when the time is up.
pub(crate) async fn until<T, E>(
    control: &Control,
    patience: Duration,
    look: impl Fn() -> Result<T, E>,
) -> Result<Result<T, E>, ActionError> {
    let end = Instant::now() + patience;
    loop {
        match look() {
            Err(_) if Instant::now() < end => control.sleep(LOOK).await?,
            found => return Ok(found),
        }
    }
}

/// A node's name has only letters, digits and underscores.
pub(super) fn node_name(robot: &str) -> String {
    let plain: String = robot
        .chars()
        .map(|letter| {
            if letter.is_ascii_alphanumeric() {
                letter
            } else {
                '_'
            }
        })
        .collect();
    format!("ovos_tools_{plain}")
}
