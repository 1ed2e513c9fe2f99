//! Johnny Five on two simulated buses.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use feetech_sim::{Line, Servo, register};
use futures_util::future::BoxFuture;
use robot::action::{Action, LiftTarget, Motion};
use robot::adapter::Estop;
use robot::adapter::{ActionError, ActionOutput, Adapter, Control, Notice, Right};
use robot::capability::{BusName, Motor};
use robot::conduct::Stop;
use robot::driver::{DrivenRobot, Driver};
use robot::model::Model;
use robot::shelf::Shelf;
use robot::step::{LiftStep, Step};
use robot::subsystem::Subsystem;
use serde_json::json;
use tokio_util::sync::CancellationToken;

/// How long a test waits before it fails; a busy machine is slow.
const PATIENCE: Duration = Duration::from_secs(120);

/// The 19 servos of Johnny Five, with the cables in a folder of their own.
pub(crate) struct Body {
    pub(crate) left: Line,
    pub(crate) right: Line,
    motors: [Vec<Motor>; 2],
    _folder: tempfile::TempDir,
}

impl Body {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let robot = known("johnny5").capabilities;
        let motors = [BusName::Left, BusName::Right].map(|bus| robot.bus(bus).unwrap().motors.clone());
        let line = |name: &str, motors: &[Motor]| {
            // The positions differ from the goals, so that a servo that gets torque without a new goal jumps.
            let servos = motors.iter().map(|motor| {
                let mut servo = Servo::new(motor.id).at(1900 + u16::from(motor.id));
                servo.set_byte(register::MODE, u8::from(motor.subsystem == Subsystem::Base));
                servo
            });
            Line::start_at(&folder.path().join(name), servos).unwrap()
        };
        let (left, right) = (line("left", &motors[0]), line("right", &motors[1]));
        Self {
            left,
            right,
            motors,
            _folder: folder,
        }
    }

    fn path(line: &Line) -> PathBuf {
        line.path().to_owned()
    }

    pub(crate) fn section(&self) -> serde_json::Value {
        // Patient: the machine that runs the tests may have other things to do.
        json!({"answer_ms": 500, "ports": {"left": Self::path(&self.left), "right": Self::path(&self.right)}})
    }

    /// Whether the torque of any servo is on.
    pub(crate) fn powered(&self) -> bool {
        let on = |(line, motors): (&Line, &Vec<Motor>)| {
            let torque = |id| line.servo(id, |servo| servo.byte(register::TORQUE_ENABLE));
            motors.iter().any(|motor| torque(motor.id) == Some(1))
        };
        [&self.left, &self.right].into_iter().zip(&self.motors).any(on)
    }

    pub(crate) fn moves(&self) -> bool {
        self.left.moves() || self.right.moves()
    }
}

/// The notices of the adapter.
#[derive(Clone, Default)]
pub(crate) struct Notices(Arc<Mutex<Vec<Notice>>>);

impl Notices {
    pub(crate) fn all(&self) -> Vec<Notice> {
        self.0.lock().unwrap().clone()
    }

    /// Waits for the nth word about the backend of this state.
    pub(crate) fn wait(&self, state: &str, count: usize) {
        within(&format!("backend {state}"), || {
            let found = self.all();
            let of_state = |notice: &&Notice| matches!(notice, Notice::Backend { state: of, .. } if of.as_str() == state);
            (found.iter().filter(of_state).count() >= count).then_some(())
        });
    }
}

pub(crate) type Robot = Arc<dyn Adapter>;

/// A built-in robot as its file has it.
pub(crate) fn known(kind: &str) -> Model {
    of_kind(kind, &json!({})).0
}

/// A built-in robot and its driver, with changes to its channels.
fn of_kind(kind: &str, channels: &serde_json::Value) -> (Model, Box<dyn Driver>) {
    let kind = Shelf::default().find(kind).unwrap();
    let driver = kind.driver(channels.as_object().unwrap(), "channels").unwrap();
    (kind.model(driver.as_ref()), driver)
}

/// Johnny Five, or the kind that `layout` says, with the other keys as its channels.
fn driven<R>(
    section: &serde_json::Value,
    stop: &Stop,
    drive: impl FnOnce(&dyn Driver, DrivenRobot<'_>) -> R,
) -> R {
    let mut channels = section.clone();
    let layout = channels.as_object_mut().unwrap().remove("layout");
    let kind = layout
        .as_ref()
        .and_then(|layout| layout.as_str())
        .unwrap_or("johnny5");
    let (model, driver) = of_kind(kind, &channels);
    let fitted = driver.fit(model.clone()).unwrap();
    let robot = DrivenRobot {
        name: "five",
        model: &model,
        capabilities: &fitted.capabilities,
        stop,
    };
    drive(driver.as_ref(), robot)
}

pub(crate) fn stop(emergency: Option<Estop>) -> Stop {
    Stop {
        emergency,
        ..Stop::default()
    }
}

pub(crate) fn made(
    section: &serde_json::Value,
    stop: &Stop,
    notices: &Notices,
) -> Result<Robot, ActionError> {
    let seen = notices.clone();
    let notify = Arc::new(move |notice| seen.0.lock().unwrap().push(notice));
    driven(section, stop, |driver, robot| driver.drive(robot, notify))
}

pub(crate) fn robot_of(section: &serde_json::Value, estop: Option<Estop>) -> (Robot, Notices) {
    let notices = Notices::default();
    (made(section, &stop(estop), &notices).unwrap(), notices)
}

pub(crate) fn safe_stop(section: &serde_json::Value, estop: Option<Estop>) -> Result<(), ActionError> {
    driven(section, &stop(estop), |driver, robot| driver.safe_stop(robot))
}

pub(crate) fn robot(body: &Body) -> Robot {
    robot_of(&body.section(), None).0
}

/// A right to command that a test takes away.
#[derive(Clone, Default)]
pub(crate) struct Taken(CancellationToken);

impl Taken {
    pub(crate) fn cancel(&self) {
        self.0.cancel();
    }

    pub(crate) fn control(&self) -> Control {
        Control::new(Arc::new(self.clone()))
    }
}

impl Right for Taken {
    fn pass(&self, send: &mut dyn FnMut()) -> bool {
        let free = !self.0.is_cancelled();
        if free {
            send();
        }
        free
    }

    fn cancelled(&self) -> BoxFuture<'static, ()> {
        Box::pin(self.0.clone().cancelled_owned())
    }

    fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }

    fn progress(&self, _: f64, _: &str) {}
}

/// A step, and the numbers for its words.
#[derive(Clone, Debug)]
pub(crate) struct Deed(pub(crate) Step, pub(crate) Option<Motion>);

impl From<Step> for Deed {
    fn from(step: Step) -> Self {
        Self(step, None)
    }
}

pub(crate) fn lift(to: LiftTarget) -> Deed {
    let step = LiftStep::Lift {
        action: "up".to_owned(),
        distance_mm: None,
        position_mm: None,
    };
    Deed(Step::Lift(step), Some(Motion::Lift(to)))
}

pub(crate) fn look(pan: f64, tilt: f64) -> Deed {
    let target = "left".to_owned();
    let positions = vec![pan, tilt];
    let motion = Motion::Joints {
        positions,
        speed: 1.0,
    };
    Deed(Step::LookAt { target }, Some(motion))
}

pub(crate) fn action(subsystem: Subsystem, deed: impl Into<Deed>) -> Action {
    let Deed(step, motion) = deed.into();
    Action {
        subsystem,
        step,
        motion,
        expected: Duration::from_secs(1),
    }
}

pub(crate) async fn run(
    robot: &Robot,
    subsystem: Subsystem,
    deed: impl Into<Deed>,
) -> Result<ActionOutput, ActionError> {
    let action = action(subsystem, deed);
    let control = Control::free();
    tokio::time::timeout(PATIENCE, robot.execute(&action, &control))
        .await
        .unwrap()
}

/// Halts. Where the machine is too busy to confirm that in time, the stop is sent a little later.
pub(crate) fn halt(robot: &Robot, subsystems: &[Subsystem], emergency: bool) {
    let halted = robot
        .halt(subsystems, emergency)
        .map_err(|error| error.to_string());
    assert!(
        halted
            .as_ref()
            .err()
            .is_none_or(|error| error.contains("answer too slowly")),
        "{halted:?}"
    );
}

/// Asks again and again until there is an answer.
pub(crate) fn within<R>(what: &str, mut seen: impl FnMut() -> Option<R>) -> R {
    let end = std::time::Instant::now() + PATIENCE;
    loop {
        if let Some(found) = seen() {
            return found;
        }
        assert!(std::time::Instant::now() < end, "no {what}");
        std::thread::park_timeout(Duration::from_millis(2));
    }
}
