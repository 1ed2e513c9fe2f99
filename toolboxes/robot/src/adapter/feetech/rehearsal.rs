//! A rehearsal: a robot's own driver over simulated servos, with people and things around it.
//!
//! Owns where the wheels have brought the base, and what is in a servo's way: a thing that a hand reaches for when the hand closes,
//! a cart or a charger when the hitch does. Everything else is the driver's and the servos'. Read [`Rehearsal`].

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use feetech_sim::{Bus, Fault as Breakdown, Frame, Servo as SimulatedServo, register};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::config::FeetechConfig;
use super::device::Feetech;
use super::layout::Layout;
use super::odometry::Odometry;
use super::servo::{Servo, exact, round};
use crate::action::{Action, Motion};
use crate::adapter::around::{FRAME, Fault, Place, SimConfig, Surroundings, Thing};
use crate::adapter::{ActionError, ActionOutput, Adapter, BackendState, Control, Notice, Notify, Sighting};
use crate::capability::{BusName, Capabilities};
use crate::driver::DrivenRobot;
use crate::geometry::{End, Geometry};
use crate::servo::{Family, SimulatedLine, servos};
use crate::spot::Fix;
use crate::step::{Grip, HitchAction, Step};
use crate::subsystem::Subsystem;

/// How far a hand or the hitch is open when it has closed on a thing: a quarter of its way.
const WIDTH: f64 = 0.25;
/// A servo that is too warm, in degrees: a new STS3215 switches its power off at 70 (register 13).
const HOT: u8 = 78;
/// The weight of an arm at its shoulder, in thousandths of the servo's torque: it sinks without power, and with it gives way by less
/// than a step.
const ARM: f64 = 10.0;
/// A goal so many steps from where the joint is moves it; a nearer one holds it.
const MOVES: f64 = 3.0;
/// A joint at this speed in steps a second, or below, comes to rest where it was told to hold.
const STANDS: f64 = 20.0;

/// A robot whose servos are simulated.
pub(super) struct Rehearsal {
    robot: Feetech,
    lines: BTreeMap<BusName, SimulatedLine>,
    around: Arc<Surroundings>,
    base: Mutex<Odometry>,
    /// The hitch holds the charger.
    docked: AtomicBool,
    faults: Vec<Fault>,
    /// What each hand has reached for.
    reached: Mutex<BTreeMap<Subsystem, String>>,
    /// The arms that can be sent to points.
    shapes: BTreeMap<Subsystem, Arc<Geometry>>,
}

impl Rehearsal {
    /// A robot at home, without power.
    ///
    /// # Errors
    /// As [`Feetech::new`].
    pub(super) fn new(
        robot: DrivenRobot<'_>,
        config: &FeetechConfig,
        world: &SimConfig,
        notify: Notify,
    ) -> Result<Self, ActionError> {
        let around = Arc::new(Surroundings::new(robot.name, world)?);
        let layout = Arc::new(config.calibrated(robot.model)?);
        let mut lines = BTreeMap::new();
        for bus in [BusName::Left, BusName::Right] {
            let simulated = layout.motors(bus).into_iter();
            let simulated = simulated.map(|motor| match layout.servo(bus, motor.id) {
                Some(joint) => {
                    let shape = robot.model.geometry(joint.subsystem);
                    at_home(joint, shape.is_some_and(|shape| shape.least().is_some()))
                }
                None => wheel(motor.id),
            });
            let (world, servos_of) = (Arc::clone(&around), Arc::clone(&layout));
            let line = SimulatedLine {
                servos: Arc::new(Mutex::new(Bus::new(simulated))),
                clock: around.clock.clone(),
                heard: Arc::new(move |line, frame| note_motion(&world, &servos_of, bus, line, frame)),
            };
            lines.insert(bus, line);
        }
        let mut config = config.clone();
        // Feetech's are simulated in time of one's own, whose servos the robot has.
        config.family = Family::default();
        let away = world.faults.contains(&Fault::Offline);
        for fault in &world.faults {
            break_down(&lines, &layout, fault)
                .map_err(|why| ActionError::Refused(format!("robots.{}.sim.faults: {why}", robot.name)))?;
        }
        if away {
            let nowhere = format!("(offline: set in robots.{}.sim.faults)", robot.name);
            (config.ports.left, config.ports.right) = (Some(nowhere.clone()), Some(nowhere));
        }
        // A line of simulated servos is no hardware that is connected.
        let notify: Notify = Arc::new(move |notice| match notice {
            Notice::Backend {
                state: BackendState::Connected,
                ..
            } => {}
            other => notify(other),
        });
        let clock = around.clock.clone();
        let rehearsal = Self {
            robot: Feetech::new(robot, &config, (!away).then_some((&clock, &lines)), notify)?,
            lines,
            around,
            base: Mutex::default(),
            docked: AtomicBool::new(false),
            faults: world.faults.clone(),
            reached: Mutex::default(),
            shapes: [Subsystem::LeftArm, Subsystem::RightArm]
                .into_iter()
                .filter_map(|arm| Some((arm, Arc::clone(robot.model.geometry(arm)?))))
                .collect(),
        };
        rehearsal.place();
        Ok(rehearsal)
    }

    /// Where the wheels have brought the base. Between two looks it has driven at one velocity.
    fn place(&self) -> Place {
        let mut base = self.base.lock();
        let now = self.around.clock.now();
        let turned = |wheel: &super::layout::Wheel| {
            let mut line = servos(&self.lines.get(&wheel.bus)?.servos);
            let steps = round(line.servo(wheel.id, now)?.position());
            Some(if wheel.reversed { -steps } else { steps })
        };
        let wheels: Vec<i64> = self.robot.layout.wheels.iter().filter_map(turned).collect();
        // A simulated horn counts on beyond a turn, and may have made several since the last look.
        base.count(&self.robot.layout.geometry, wheels, |steps| steps);
        base.place
    }

    /// Puts something in the way of a servo that closes, or takes it away.
    fn put(&self, servo: &Servo, there: bool, open: f64, closed: f64) {
        let Some(line) = self.lines.get(&servo.bus) else {
            return;
        };
        if self.faults.contains(&Fault::Stuck(servo.subsystem)) {
            return;
        }
        let (low, high) = ends(servo);
        let wide = exact(servo.steps(closed + (open - closed) * WIDTH));
        let towards = servo.steps(closed) > servo.steps(open);
        if let Some(simulated) = servos(&line.servos).servo(servo.id, self.around.clock.now()) {
            match (there, towards) {
                (false, _) => simulated.block(low, high),
                (true, true) => simulated.block(low, wide),
                (true, false) => simulated.block(wide, high),
            }
        }
    }

    /// Where what a hand would hold is, in the frame of the arm's base.
    fn hand_at(&self, on: Subsystem) -> Option<[f64; 3]> {
        let shape = self.shapes.get(&on)?;
        let angles = self.robot.layout.of(on).into_iter().map(|servo| {
            let mut line = servos(&self.lines.get(&servo.bus)?.servos);
            let steps = round(line.servo(servo.id, self.around.clock.now())?.position());
            Some(servo.value(steps))
        });
        Some(shape.at(End::Grasp, &angles.collect::<Option<Vec<f64>>>()?))
    }

    /// What lies where a hand is, and so in it once it closes.
    fn in_hand(&self, on: Subsystem) -> Option<&Thing> {
        let reached = self.reached.lock();
        let called = reached.get(&on).map(String::as_str);
        self.around.at_hand(self.hand_at(on)?, called)
    }

    /// Whether a hand that has closed on something has closed on what it reached for: a thing of another name is not that. A name that
    /// no thing has is that of a place.
    fn check_thing(&self, on: Subsystem, done: ActionOutput) -> Result<ActionOutput, ActionError> {
        let Some(thing) = self.shapes.get(&on).and_then(|_| self.in_hand(on)) else {
            return Ok(done);
        };
        let reached = self.reached.lock();
        match reached.get(&on).and_then(|called| self.around.thing(called)) {
            Some(wanted) if wanted.name != thing.name => Err(ActionError::Refused(format!(
                "{on} has closed on {}, not on {}",
                thing.name, wanted.name
            ))),
            Some(_) => Ok(done),
            None => Ok(done.note(format!("what {on} has closed on is called {}", thing.name))),
        }
    }

    /// What an action finds in its way.
    fn prepare(&self, action: &Action) {
        let (layout, on) = (&self.robot.layout, action.subsystem);
        if let Some((gripper, hand)) = self.robot.hand(on) {
            let there = match (&action.step, action.step.reach()) {
                // A hand that can be sent to a point closes on what is there.
                (Step::Grasp { .. } | Step::Gripper { action: Grip::Close }, _)
                    if self.shapes.contains_key(&on) =>
                {
                    Some(self.in_hand(on).is_some())
                }
                (_, Some(_)) if self.shapes.contains_key(&on) => None,
                (Step::Approach { target }, _) => Some(self.around.thing(target).is_some()),
                // What it holds it puts down, and what it does not hold it leaves behind.
                (Step::Gripper { action: Grip::Open }, _) => Some(false),
                (_, None) if action.motion.is_some() => self.robot.holds(on).filter(|holds| !holds),
                _ => None,
            };
            if let Some(there) = there {
                self.put(hand, there, gripper.open, gripper.closed);
            }
        }
        if let Step::Hitch { action, .. } = &action.step
            && let Some((hitch, servo)) = self.capabilities().hitch.as_ref().zip(layout.of(on).first())
        {
            let behind = match action {
                HitchAction::Dock => self.around.charger,
                _ => self.around.cart,
            };
            self.put(servo, behind, hitch.open, hitch.closed);
        }
    }

    async fn run(&self, action: &Action, control: &Control) -> Result<ActionOutput, ActionError> {
        let docked = self.docked.load(Ordering::SeqCst);
        match (&action.step, &action.motion) {
            (Step::VerifyCharge {}, _) if docked => {
                return Ok(ActionOutput::new("charging").with("charging", true));
            }
            (Step::VerifyCharge {}, _) => {
                return Err(ActionError::Refused(
                    "it does not charge: the hitch holds no charger".to_owned(),
                ));
            }
            (_, Some(Motion::Drive { .. })) if docked => {
                return Err(self.robot.broken("held by the charger: undock first".to_owned()));
            }
            _ => {}
        }
        if let Some((target, _)) = action.step.reach() {
            let mut reached = self.reached.lock();
            reached.insert(action.subsystem, target.to_owned());
        }
        self.prepare(action);
        let mut done = self.robot.execute(action, control).await?;
        if matches!(action.step, Step::Grasp { .. }) {
            done = self.check_thing(action.subsystem, done)?;
        }
        if let Step::Hitch { action, .. } = &action.step {
            self.docked.store(*action == HitchAction::Dock, Ordering::SeqCst);
        }
        Ok(match &action.step {
            Step::MotorStatus { .. } => self.around.with_odometry(done, action.subsystem, self.place()),
            _ => done,
        })
    }

    /// The motors of these parts that turn.
    fn turning(&self, subsystems: &[Subsystem]) -> Vec<String> {
        let motors = subsystems.iter().flat_map(|on| self.robot.layout.motors_of(*on));
        let turns = |(bus, id, _): &(BusName, u8, String)| {
            let line = self.lines.get(bus)?;
            let speed = servos(&line.servos).servo(*id, self.around.clock.now())?.speed();
            (speed.abs() > STANDS).then(|| format!("{}:{id}", bus.as_str()))
        };
        motors.filter_map(|motor| turns(&motor)).collect()
    }
}

/// Notes what moves a motor.
fn note_motion(around: &Surroundings, layout: &Layout, bus: BusName, line: &mut Bus, frame: &Frame) {
    for servo in layout.servos.iter().filter(|servo| servo.bus == bus) {
        let Some(goal) = frame.word(servo.id, register::GOAL_POSITION) else {
            continue;
        };
        let moves = |simulated: &mut SimulatedServo| (simulated.position() - f64::from(goal)).abs() >= MOVES;
        if line.servo(servo.id, frame.at).is_some_and(moves) {
            around.note("move", || {
                let speed = frame.word(servo.id, register::GOAL_SPEED).unwrap_or_default();
                json!({
                    "on": servo.subsystem,
                    "joint": servo.name,
                    "to": servo.value(i64::from(goal)),
                    "speed": (f64::from(speed) / servo.scale).abs(),
                })
            });
        }
    }
    let speeds = layout.wheels.iter().map(|wheel| {
        let word = frame
            .word(wheel.id, register::GOAL_SPEED)
            .filter(|_| wheel.bus == bus)?;
        let steps = i64::from(word & 0x7FFF);
        let backwards = (word & 0x8000 != 0) != wheel.reversed;
        Some(if backwards { -steps } else { steps })
    });
    let speeds: Vec<i64> = speeds.map(Option::unwrap_or_default).collect();
    if speeds.iter().any(|speed| *speed != 0) {
        let velocity = layout.geometry.velocity(&speeds);
        around.note(
            "drive",
            || json!({"on": "base", "velocity": [velocity.x, velocity.y, velocity.turn]}),
        );
    }
}

/// Makes something fail.
///
/// # Errors
/// Nothing here can fail like that, with the reason.
fn break_down(
    lines: &BTreeMap<BusName, SimulatedLine>,
    layout: &Layout,
    fault: &Fault,
) -> Result<(), String> {
    let of = |name: &str| {
        let (bus, id) = name.split_once(':')?;
        let (bus, line) = lines.iter().find(|(line, _)| line.as_str() == bus)?;
        let id = id.parse().ok().filter(|id| layout.ids(*bus).contains(id))?;
        Some((line, id))
    };
    let break_one = |name: &str, how: &dyn Fn(&mut SimulatedServo)| {
        let (line, id) =
            of(name).ok_or_else(|| format!("no servo {name}; expected bus:id, such as right:3"))?;
        servos(&line.servos).servo(id, line.clock.now()).map(how);
        Ok(())
    };
    match fault {
        Fault::Missing(name) => break_one(name, &|servo| servo.set_fault(Breakdown::Absent)),
        Fault::Hot(name) => break_one(name, &|servo| servo.set_byte(register::TEMPERATURE, HOT)),
        Fault::Stuck(part) => {
            for (bus, id, _) in layout.motors_of(*part) {
                break_one(&format!("{}:{id}", bus.as_str()), &|servo| {
                    let here = servo.position();
                    servo.block(here, here);
                })?;
            }
            Ok(())
        }
        Fault::Offline | Fault::Button => Ok(()),
    }
}

/// The servo of a joint at its home. An arm that stands on a table does not sink: nothing simulates the table on which it would come to
/// lie.
fn at_home(joint: &Servo, on_table: bool) -> SimulatedServo {
    let steps = u16::try_from(joint.steps(joint.home)).unwrap_or(2048);
    let mut servo = SimulatedServo::new(joint.id).at(steps);
    servo.set_word(register::GOAL_POSITION, steps);
    let (low, high) = ends(joint);
    servo.block(low, high);
    if joint.subsystem.is_arm() && joint.name == "shoulder" && !on_table {
        servo.weigh(ARM.copysign(joint.scale));
    }
    servo
}

/// Where a joint comes to a stop: a degree or a millimetre beyond its range.
fn ends(joint: &Servo) -> (f64, f64) {
    let [one, other] = [joint.min - 1.0, joint.max + 1.0].map(|end| joint.zero + end * joint.scale);
    (one.min(other), one.max(other))
}

fn wheel(id: u8) -> SimulatedServo {
    let mut servo = SimulatedServo::new(id);
    servo.set_byte(register::MODE, 1);
    servo
}

impl Adapter for Rehearsal {
    fn capabilities(&self) -> &Capabilities {
        self.robot.capabilities()
    }

    fn connect(&self) -> BoxFuture<'_, Result<(), ActionError>> {
        async {
            let _awake = self.around.clock.awake();
            self.robot.connect().await
        }
        .boxed()
    }

    fn execute<'a>(
        &'a self,
        action: &'a Action,
        control: &'a Control,
    ) -> BoxFuture<'a, Result<ActionOutput, ActionError>> {
        let run = async move {
            self.place();
            let done = self.run(action, control).await;
            self.place();
            done
        };
        self.around.perform(action, control, run).boxed()
    }

    fn state(&self, subsystem: Subsystem) -> Value {
        let mut state = self.robot.state(subsystem);
        state["mode"] = "simulation".into();
        state
    }

    fn fix(&self) -> Option<Fix> {
        // It begins at the same place whenever it is opened.
        let mut fix = self.robot.fix()?;
        FRAME.clone_into(&mut fix.spot.frame);
        Some(fix)
    }

    fn halt(&self, subsystems: &[Subsystem], emergency: bool) -> Result<(), ActionError> {
        let halted = self.robot.halt(subsystems, emergency);
        self.place();
        self.around
            .halted(subsystems, emergency, &self.turning(subsystems));
        halted
    }

    fn reset(&self) -> Result<(), ActionError> {
        self.around.reset()?;
        self.robot.reset()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.robot.close()
    }

    fn locate(&self, what: &str) -> Option<Sighting> {
        self.around.locate(what, self.place())
    }

    fn ranges<'a>(
        &'a self,
        arm: Subsystem,
        control: &'a Control,
    ) -> BoxFuture<'a, Result<Option<Vec<[f64; 2]>>, ActionError>> {
        self.robot.ranges(arm, control)
    }

    fn holds(&self, arm: Subsystem) -> Option<bool> {
        // Nothing is in its hands at the start.
        self.robot.holds(arm).or(Some(false))
    }

    fn recognise(&self, tool: &str, args: &Value) -> Option<Value> {
        self.around.recognise(tool, args, self.place())
    }
}
