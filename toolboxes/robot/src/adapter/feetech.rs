//! Servos on serial buses, Feetech's or Dynamixel's: whatever arms, wheels, head, lift and hitch a robot's file puts there.
//!
//! Owns how actions become goals of servos, and the wait until the goals are reached. Torque goes on when a movement
//! needs it, with the goal at the present position, and never before. The wheels turn on a lease of 300 ms that the
//! running action renews; the bus's thread stops them when the lease ends. The servos have no dead-man: a wheel that
//! turns when the computer loses its power goes on turning. Read [`Feetech`].

mod calibration;
mod config;
mod drive;
mod driver;
mod end;
mod health;
mod kept;
#[cfg(test)]
mod late_tests;
mod layout;
mod lerobot;
mod loan;
mod measure;
mod motion;
mod odometry;
mod rehearsal;
mod rest;
mod servo;
mod settings;
mod torque;
mod trial;
mod upkeep;
mod wheels;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

pub use self::config::{FeetechConfig, Ports, Unheard};
use self::end::End;
use self::layout::Layout;
pub use self::layout::MotorConfig;
use self::odometry::Odometry;
use self::servo::Servo;
pub(super) use self::servo::round;
use self::torque::ease;
pub use self::wheels::BaseSize;
use super::{ActionError, ActionOutput, Adapter, BackendState, Control, Estop, Notice, Notify};
use crate::action::{Action, Motion};
use crate::capability::{BusName, Capabilities};
use crate::clock::{Clock, since_1970};
use crate::conduct::Stop;
use crate::driver::DrivenRobot;
use crate::policy::guest::Guest;
use crate::servo::{
    Family, Line, Pending, Register, Sender, ServoBus, ServoError, SimulatedLine, Urgency, Wire,
};
use crate::spot::Fix;
use crate::step::Stage;
use crate::subsystem::Subsystem;

/// How long a closing bus may take to give the servos their own speed back.
const EASED: Duration = Duration::from_millis(500);

/// A robot of Feetech servos.
pub struct Feetech {
    name: String,
    layout: Layout,
    capabilities: Capabilities,
    estop: Estop,
    stop: Stop,
    /// The frame of its dead reckoning, which begins where the base stands when the toolbox is opened.
    frame: String,
    family: Family,
    unheard: Unheard,
    buses: BTreeMap<BusName, ServoBus>,
    clock: Clock,
    known: Mutex<Memory>,
    stopped: Arc<AtomicBool>,
    /// Other programs that have the robot, or had it.
    loan: Mutex<Option<Arc<Guest>>>,
    /// The serial ports; none where the servos are simulated.
    ports: BTreeMap<BusName, String>,
    notify: Notify,
}

/// What the last answers and calls have shown.
#[derive(Default)]
struct Memory {
    /// The last position read from each servo, in steps.
    positions: BTreeMap<(BusName, u8), i64>,
    /// Servos that are left alone.
    missing: BTreeSet<(BusName, u8)>,
    /// Whether a tool that needs a missing servo goes on without it.
    go_on: bool,
    /// What each hand holds: the position of the gripper in degrees when it closed on a thing, or `None` for an empty
    /// hand. A hand has no entry if this is not known.
    hands: BTreeMap<Subsystem, Option<f64>>,
    /// The ends that the last measurement of each servo has shown.
    measured: BTreeMap<(BusName, u8), [End; 2]>,
    /// Where the wheels have brought the base.
    odometry: Odometry,
    /// Servos that press gently for a measurement, with their former torque limit.
    gentle: BTreeMap<(BusName, u8), i64>,
}

impl Feetech {
    /// Starts the threads of the buses, which open their ports soon. No servo is moved. The buses end at `simulated` servos
    /// where there are some.
    ///
    /// # Errors
    /// The configuration cannot be used, or a thread cannot be started.
    fn new(
        robot: DrivenRobot<'_>,
        config: &FeetechConfig,
        simulated: Option<(&Clock, &BTreeMap<BusName, SimulatedLine>)>,
        notify: Notify,
    ) -> Result<Self, ActionError> {
        let name = robot.name;
        let mut layout = config.calibrated(robot.model)?;
        layout.narrow(robot.capabilities);
        let estop = config::estop(name, robot.stop.emergency)?;
        let mut buses = BTreeMap::new();
        let ports = PortStates::default();
        for bus in [BusName::Left, BusName::Right] {
            if layout.ids(bus).is_empty() {
                continue;
            }
            let path = config.port(bus);
            let shown = match simulated {
                Some(_) => "a line of simulated servos".to_owned(),
                None => path.clone(),
            };
            let wheels = layout
                .wheels
                .iter()
                .filter(|wheel| wheel.bus == bus)
                .map(|wheel| wheel.id)
                .collect();
            let timeout = Duration::from_millis(config.answer_ms.clamp(2, 500));
            let changed = changed(bus, shown, &ports, notify.clone());
            let started = ServoBus::start(
                bus.as_str(),
                match simulated.and_then(|(_, lines)| lines.get(&bus)) {
                    Some(stand) => Line::Rehearsed(stand.clone()),
                    None => Line::Serial(&path, config.baud),
                },
                timeout,
                config.family,
                (layout.ids(bus), wheels),
                changed,
            );
            let started = started.map_err(|error| ActionError::Hardware {
                robot: name.to_owned(),
                what: format!("cannot start a thread for bus {}: {error}", bus.as_str()),
            })?;
            buses.insert(bus, started);
        }
        Ok(Self {
            name: name.to_owned(),
            layout,
            capabilities: robot.capabilities.clone(),
            estop,
            stop: robot.stop.clone(),
            frame: format!("start-{}", since_1970().as_secs()),
            family: config.family,
            unheard: config.hold_unheard,
            clock: simulated.map(|(clock, _)| clock.clone()).unwrap_or_default(),
            known: Mutex::default(),
            stopped: Arc::default(),
            loan: Mutex::default(),
            ports: match simulated {
                Some(_) => BTreeMap::new(),
                None => buses.keys().map(|bus| (*bus, config.port(*bus))).collect(),
            },
            buses,
            notify,
        })
    }

    fn known(&self) -> MutexGuard<'_, Memory> {
        // Every change is one assignment.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sender(&self, bus: BusName) -> Result<&Sender, ActionError> {
        let bus_of = self.buses.get(&bus);
        bus_of
            .map(ServoBus::sender)
            .ok_or_else(|| ActionError::NotSupported {
                robot: self.name.clone(),
                what: format!("bus {}", bus.as_str()),
            })
    }

    /// Runs a job that moves nothing on a bus.
    async fn ask<R: Send + 'static>(
        &self,
        bus: BusName,
        control: &Control,
        job: impl FnOnce(&mut Wire) -> Result<R, ServoError> + Send + 'static,
    ) -> Result<R, ActionError> {
        let sender = self.sender(bus)?;
        let sent = control.command(|| sender.send(Urgency::Quiet, job))?;
        self.answer(control, sent).await
    }

    /// Runs a job that moves these servos, or lets them move.
    async fn tell<R: Send + 'static>(
        &self,
        bus: BusName,
        servos: Vec<u8>,
        control: &Control,
        job: impl FnOnce(&mut Wire) -> Result<R, ServoError> + Send + 'static,
    ) -> Result<R, ActionError> {
        let sender = self.sender(bus)?;
        let sent = control.command(|| {
            // Checked inside, because a halt waits for this closure: no halt comes between the check and the command.
            if self.stopped.load(Ordering::SeqCst) {
                return Err(None);
            }
            sender.send(Urgency::Moves(servos), job).map_err(Some)
        })?;
        match sent {
            Ok(receiver) => self.answer(control, Ok(receiver)).await,
            Err(None) => Err(ActionError::Stopped),
            Err(Some(error)) => Err(self.failed(error)),
        }
    }

    async fn answer<R>(
        &self,
        control: &Control,
        sent: Result<Pending<R>, ServoError>,
    ) -> Result<R, ActionError> {
        let receiver = sent.map_err(|error| self.failed(error))?;
        let resting = self.clock.rest(None, Box::new(|| ()));
        let answered = control.unless_cancelled(receiver).await;
        drop(resting);
        match answered? {
            Ok((Ok(answer), _)) => Ok(answer),
            Ok((Err(error), _)) => Err(self.failed(error)),
            Err(_) => Err(self.broken("its bus has ended".to_owned())),
        }
    }

    /// Waits, on the robot's clock.
    async fn sleep(&self, control: &Control, time: Duration) -> Result<(), ActionError> {
        control.unless_cancelled(self.clock.sleep(time)).await
    }

    fn failed(&self, error: ServoError) -> ActionError {
        match error {
            ServoError::NoPort { .. } | ServoError::PortLost { .. } | ServoError::Closed { .. } => {
                ActionError::NotConnected {
                    robot: self.name.clone(),
                    reason: error.to_string(),
                }
            }
            ServoError::Stopped { .. } => ActionError::Cancelled,
            ServoError::Lent { .. } => ActionError::Refused(error.to_string()),
            other => self.broken(other.to_string()),
        }
    }

    fn broken(&self, what: String) -> ActionError {
        ActionError::Hardware {
            robot: self.name.clone(),
            what,
        }
    }

    fn lacks(&self, what: impl Into<String>) -> ActionError {
        ActionError::NotSupported {
            robot: self.name.clone(),
            what: what.into(),
        }
    }

    /// The servos of a subsystem that are not missing, and a note for each that is.
    ///
    /// # Errors
    /// A servo is missing, and degraded mode does not allow the robot to go on without it.
    fn present<'a>(&self, servos: Vec<&'a Servo>) -> Result<(Vec<&'a Servo>, Vec<String>), ActionError> {
        let known = self.known();
        let (missing, there): (Vec<&Servo>, Vec<&Servo>) = servos
            .into_iter()
            .partition(|servo| known.missing.contains(&(servo.bus, servo.id)));
        match missing.first() {
            Some(first) if !known.go_on => Err(ActionError::Refused(format!(
                "{} is missing; enable_degraded_mode with continue_anyway does without it",
                first.label()
            ))),
            _ => Ok((
                there,
                missing
                    .into_iter()
                    .map(|servo| format!("did without {}", servo.label()))
                    .collect(),
            )),
        }
    }

    fn remember(&self, bus: BusName, positions: impl IntoIterator<Item = (u8, i64)>) {
        let mut known = self.known();
        for (id, steps) in positions {
            known.positions.insert((bus, id), steps);
        }
    }

    /// Which motors of a bus answer and which do not.
    async fn roll_call(&self, bus: BusName) -> Result<Vec<String>, ActionError> {
        let ids = self.layout.ids(bus);
        let asked = ids.clone();
        let found = self
            .ask(bus, &Control::free(), move |wire| {
                wire.read_each(&asked, Register::POSITION)
            })
            .await?;
        self.remember(bus, found.iter().map(|(id, (steps, _))| (*id, *steps)));
        let silent = ids.into_iter().filter(|id| !found.contains_key(id));
        Ok(silent.map(|id| format!("{}:{id}", bus.as_str())).collect())
    }

    async fn run(&self, action: &Action, control: &Control) -> Result<ActionOutput, ActionError> {
        let on = action.subsystem;
        if action.step.moves() {
            // Checked before anything is read for the step.
            if self.stopped.load(Ordering::SeqCst) {
                return Err(ActionError::Stopped);
            }
            self.await_loan(control).await?;
            self.end_gentle(on, control).await?;
        }
        match &action.motion {
            Some(Motion::Joints { positions, speed }) => {
                let stage = action.step.reach().map(|(_, stage)| stage);
                let hand_too = !action.step.keeps_hand();
                let moved = self
                    .to_positions(on, positions, *speed, hand_too, control)
                    .await?;
                if stage == Some(Stage::Lifted) {
                    self.still_holds(on, control).await?;
                }
                Ok(moved)
            }
            Some(Motion::Frames(frames)) => self.routine(on, frames, control).await,
            Some(Motion::Drive { velocity, duration }) => self.drive(*velocity, *duration, control).await,
            Some(Motion::Lift(to)) => self.lift(*to, control).await,
            Some(Motion::GoTo(_)) => Err(self.lacks("finding its own way")),
            None => self.maintain(action, control).await,
        }
    }
}

/// Whether each bus's port is open, and the reason for the notice.
type PortStates = Arc<Mutex<BTreeMap<BusName, (bool, String)>>>;

/// The callback of a bus's thread when its port has appeared or gone. Each notice is about all ports, because only
/// the last notice is shown.
fn changed(bus: BusName, path: String, ports: &PortStates, notify: Notify) -> crate::servo::Changed {
    let ports = Arc::clone(ports);
    Box::new(move |connected| {
        let state = match connected {
            Ok(()) => (true, format!("bus {}: {path} is open", bus.as_str())),
            Err(error) => (false, error.to_string()),
        };
        // The lock is held during the notice: of two changes the later one is reported last.
        let mut ports = ports.lock().unwrap_or_else(PoisonError::into_inner);
        ports.insert(bus, state);
        let all_open = ports.values().all(|(open, _)| *open);
        let reasons: Vec<&str> = ports.values().map(|(_, reason)| reason.as_str()).collect();
        notify(Notice::Backend {
            state: match all_open {
                true => BackendState::Connected,
                false => BackendState::Lost,
            },
            reason: reasons.join("; "),
        });
    })
}

impl Adapter for Feetech {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn connect(&self) -> BoxFuture<'_, Result<(), ActionError>> {
        async {
            let mut silent = Vec::new();
            for bus in self.buses.keys() {
                silent.extend(self.roll_call(*bus).await?);
            }
            if !silent.is_empty() {
                (self.notify)(Notice::Backend {
                    state: BackendState::Degraded,
                    reason: format!("these servos do not answer: {}", silent.join(", ")),
                });
            }
            Ok(())
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
        let known = self.known();
        let mut positions = serde_json::Map::new();
        let mut connected = true;
        for servo in self
            .layout
            .servos
            .iter()
            .filter(|servo| subsystem.each().contains(&servo.subsystem))
        {
            connected &= self
                .buses
                .get(&servo.bus)
                .is_some_and(|bus| bus.sender().is_connected());
            if let Some(steps) = known.positions.get(&(servo.bus, servo.id)) {
                let name = match subsystem {
                    Subsystem::All => format!("{}.{}", servo.subsystem, servo.name),
                    _ => servo.name.clone(),
                };
                positions.insert(name, json!(tenth(servo.value(*steps))));
            }
        }
        for wheel in self
            .layout
            .wheels
            .iter()
            .filter(|_| subsystem.each().contains(&Subsystem::Base))
        {
            connected &= self
                .buses
                .get(&wheel.bus)
                .is_some_and(|bus| bus.sender().is_connected());
        }
        let missing: Vec<String> = known
            .missing
            .iter()
            .map(|(bus, id)| format!("{}:{id}", bus.as_str()))
            .collect();
        json!({"positions": positions, "connected": connected, "missing": missing})
    }

    fn fix(&self) -> Option<Fix> {
        let wheel = self.layout.wheels.first()?;
        let there = self.buses.get(&wheel.bus)?.sender().is_connected();
        let spot = self.known().odometry.place.in_frame(&self.frame);
        there.then_some(Fix {
            spot,
            age: Duration::ZERO,
        })
    }

    fn ranges<'a>(
        &'a self,
        arm: Subsystem,
        control: &'a Control,
    ) -> BoxFuture<'a, Result<Option<Vec<[f64; 2]>>, ActionError>> {
        async move {
            let mut ranges = Vec::new();
            for servo in self.layout.of(arm) {
                let (min, max) = self.range(servo, control).await?;
                ranges.push([min, max]);
            }
            Ok(Some(ranges))
        }
        .boxed()
    }

    fn holds(&self, arm: Subsystem) -> Option<bool> {
        self.known().hands.get(&arm).map(Option::is_some)
    }

    fn halt(&self, subsystems: &[Subsystem], emergency: bool) -> Result<(), ActionError> {
        self.rest(subsystems, emergency)
    }

    fn reset(&self) -> Result<(), ActionError> {
        self.check_loan()?;
        for bus in self.buses.values() {
            bus.sender().forgive();
        }
        self.stopped.store(false, Ordering::SeqCst);
        Ok(())
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        async {
            // A port that has just come back may not have been opened yet; the stop that opens it goes before what is sent here.
            let lent = self.end_loan().await;
            let buses = self.buses.values();
            for bus in buses.filter(|bus| lent || bus.sender().is_connected()) {
                let Ok(eased) = bus.sender().send(Urgency::Quiet, ease) else {
                    continue;
                };
                if let Ok(Ok((Err(error), _))) = tokio::time::timeout(EASED, eased).await {
                    tracing::warn!(%error, "the servos keep the greatest speed of the last movement");
                }
            }
            // Joining takes at most the time of one answer.
            for bus in self.buses.values() {
                bus.close();
            }
        }
        .boxed()
    }
}

/// Rounds to one digit behind the point.
fn tenth(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}
