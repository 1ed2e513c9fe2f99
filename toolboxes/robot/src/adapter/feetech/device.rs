//! A robot of servos on serial buses: its buses, what it remembers of them, and the two ways to give a bus a job.
//!
//! Owns that a job which moves goes to a bus only while the robot is not stopped. Read [`Feetech::tell`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};

use super::config::{self, FeetechConfig, Unheard};
use super::end::End;
use super::layout::Layout;
use super::odometry::Odometry;
use super::servo::Servo;
use crate::adapter::contract::{BackendState, Notice, Notify};
use crate::adapter::control::Control;
use crate::capability::{BusName, Capabilities};
use crate::clock::{Clock, since_1970};
use crate::conduct::{Estop, Stop};
use crate::driver::DrivenRobot;
use crate::error::ActionError;
use crate::policy::guest::Guest;
use crate::servo::{
    Family, Line, Pending, Register, Sender, ServoBus, ServoError, SimulatedLine, Urgency, Wire,
};
use crate::subsystem::Subsystem;

/// A robot of Feetech servos.
pub struct Feetech {
    pub(super) name: String,
    pub(super) layout: Layout,
    pub(super) capabilities: Capabilities,
    pub(super) estop: Estop,
    pub(super) stop: Stop,
    /// The frame of its dead reckoning, which begins where the base stands when the toolbox is opened.
    pub(super) frame: String,
    pub(super) family: Family,
    pub(super) unheard: Unheard,
    pub(super) buses: BTreeMap<BusName, ServoBus>,
    pub(super) clock: Clock,
    pub(super) known: Mutex<Memory>,
    pub(super) stopped: Arc<AtomicBool>,
    /// Other programs that have the robot, or had it.
    pub(super) loan: Mutex<Option<Arc<Guest>>>,
    /// The serial ports; none where the servos are simulated.
    pub(super) ports: BTreeMap<BusName, String>,
    pub(super) notify: Notify,
}

/// What the last answers and calls have shown.
#[derive(Default)]
pub(super) struct Memory {
    /// The last position read from each servo, in steps.
    pub(super) positions: BTreeMap<(BusName, u8), i64>,
    /// Servos that are left alone.
    pub(super) missing: BTreeSet<(BusName, u8)>,
    /// Whether a tool that needs a missing servo goes on without it.
    pub(super) go_on: bool,
    /// What each hand holds: the position of the gripper in degrees when it closed on a thing, or `None` for an empty
    /// hand. A hand has no entry if this is not known.
    pub(super) hands: BTreeMap<Subsystem, Option<f64>>,
    /// The ends that the last measurement of each servo has shown.
    pub(super) measured: BTreeMap<(BusName, u8), [End; 2]>,
    /// Where the wheels have brought the base.
    pub(super) odometry: Odometry,
    /// Servos that press gently for a measurement, with their former torque limit.
    pub(super) gentle: BTreeMap<(BusName, u8), i64>,
}

impl Feetech {
    /// Starts the threads of the buses, which open their ports soon. No servo is moved. The buses end at `simulated` servos
    /// where there are some.
    ///
    /// # Errors
    /// The configuration cannot be used, or a thread cannot be started.
    pub(super) fn new(
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

    pub(super) fn known(&self) -> MutexGuard<'_, Memory> {
        self.known.lock()
    }

    pub(super) fn sender(&self, bus: BusName) -> Result<&Sender, ActionError> {
        let bus_of = self.buses.get(&bus);
        bus_of
            .map(ServoBus::sender)
            .ok_or_else(|| ActionError::NotSupported {
                robot: self.name.clone(),
                what: format!("bus {}", bus.as_str()),
            })
    }

    /// Runs a job that moves nothing on a bus.
    pub(super) async fn ask<R: Send + 'static>(
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
    pub(super) async fn tell<R: Send + 'static>(
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

    pub(super) async fn answer<R>(
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
    pub(super) async fn sleep(&self, control: &Control, time: Duration) -> Result<(), ActionError> {
        control.unless_cancelled(self.clock.sleep(time)).await
    }

    pub(super) fn failed(&self, error: ServoError) -> ActionError {
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

    pub(super) fn broken(&self, what: String) -> ActionError {
        ActionError::Hardware {
            robot: self.name.clone(),
            what,
        }
    }

    pub(super) fn lacks(&self, what: impl Into<String>) -> ActionError {
        ActionError::NotSupported {
            robot: self.name.clone(),
            what: what.into(),
        }
    }

    /// The servos of a subsystem that are not missing, and a note for each that is.
    ///
    /// # Errors
    /// A servo is missing, and degraded mode does not allow the robot to go on without it.
    pub(super) fn present<'a>(
        &self,
        servos: Vec<&'a Servo>,
    ) -> Result<(Vec<&'a Servo>, Vec<String>), ActionError> {
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
                    .map(|servo| format!("left out {}", servo.label()))
                    .collect(),
            )),
        }
    }

    pub(super) fn remember(&self, bus: BusName, positions: impl IntoIterator<Item = (u8, i64)>) {
        let mut known = self.known();
        for (id, steps) in positions {
            known.positions.insert((bus, id), steps);
        }
    }

    /// Which motors of a bus answer and which do not.
    pub(super) async fn roll_call(&self, bus: BusName) -> Result<Vec<String>, ActionError> {
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
        let mut ports = ports.lock();
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
