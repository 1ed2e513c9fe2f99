//! A rehearsal: a robot's own driver over simulated servos, with people and things around it.
//!
//! Owns what stands around the robot. A thing that a hand reaches for is in its way when the hand closes, a cart or a charger is in
//! the way of the hitch; everything else is the driver's and the servos'. Read [`Rehearsal`].

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use feetech_sim::{Bus, Fault as Breakdown, Servo as SimulatedServo, register};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;

use super::config::FeetechConfig;
use super::layout::Layout;
use super::servo::{Servo, exact};
use crate::action::Action;
use crate::adapter::feetech::Feetech;
use crate::adapter::sim::people::People;
use crate::adapter::sim::{Fault, SimConfig, Thing};
use crate::adapter::{ActionError, ActionOutput, Adapter, BackendState, Control, Notice, Notify, Sighting};
use crate::bearing::half_circle;
use crate::capability::{BusName, Capabilities};
use crate::driver::DrivenRobot;
use crate::servo::{Servos, servos};
use crate::step::Stage;
use crate::subsystem::Subsystem;

/// How far a hand or the hitch is open when it has closed on a thing: a quarter of its way.
const WIDTH: f64 = 0.25;
/// A servo that is too warm, in degrees: a new STS3215 switches its power off at 70 (register 13).
const HOT: u8 = 78;
/// The bit for that in every answer of such a servo.
const OVERHEAT: u8 = 4;

/// A robot whose servos are simulated.
pub(super) struct Rehearsal {
    robot: Feetech,
    lines: BTreeMap<BusName, Servos>,
    things: Vec<Thing>,
    /// Something stands behind the robot for the hitch.
    behind: bool,
    around: Mutex<Around>,
}

struct Around {
    people: People,
    /// Degrees that the base has turned to the left.
    turned: f64,
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
        for (key, given) in [
            ("time_scale", (world.time_scale - 1.0).abs() > f64::EPSILON),
            ("trace", world.trace.is_some()),
        ] {
            if given {
                return Err(ActionError::Refused(format!(
                    "robots.{}.sim.{key}: a rehearsal drives its servos in real time and writes no trace; leave it out",
                    robot.name
                )));
            }
        }
        let layout = config.calibrated(robot.model)?;
        let mut lines = BTreeMap::new();
        for bus in [BusName::Left, BusName::Right] {
            let servos = layout
                .motors(bus)
                .into_iter()
                .map(|motor| match layout.servo(bus, motor.id) {
                    Some(joint) => at_home(joint),
                    None => wheel(motor.id),
                });
            lines.insert(bus, Arc::new(Mutex::new(Bus::new(servos))));
        }
        for fault in &world.faults {
            break_down(&lines, &layout, fault)
                .map_err(|why| ActionError::Refused(format!("robots.{}.sim.faults: {why}", robot.name)))?;
        }
        // A line of simulated servos is no hardware that is connected.
        let told: Notify = Arc::new(move |notice| match notice {
            Notice::Backend {
                state: BackendState::Connected,
                ..
            } => {}
            other => notify(other),
        });
        Ok(Self {
            robot: Feetech::new(robot, config, Some(&lines), told)?,
            lines,
            things: world.objects.clone(),
            behind: world.cart || world.charger,
            around: Mutex::new(Around {
                people: People::new(world.people.clone()),
                turned: 0.0,
            }),
        })
    }

    fn around(&self) -> MutexGuard<'_, Around> {
        // Every change keeps it valid.
        self.around.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn thing(&self, name: &str) -> Option<&Thing> {
        self.things
            .iter()
            .find(|thing| thing.name.eq_ignore_ascii_case(name.trim()))
    }

    /// Puts something in the way of a servo that closes, or takes it away.
    fn put(&self, servo: &Servo, there: bool, open: f64, closed: f64) {
        let Some(line) = self.lines.get(&servo.bus) else {
            return;
        };
        let wide = exact(servo.steps(closed + (open - closed) * WIDTH));
        let towards = servo.steps(closed) > servo.steps(open);
        if let Some(simulated) = servos(line).servo(servo.id, Instant::now()) {
            match (there, towards) {
                (false, _) => simulated.block(f64::NEG_INFINITY, f64::INFINITY),
                (true, true) => simulated.block(f64::NEG_INFINITY, wide),
                (true, false) => simulated.block(wide, f64::INFINITY),
            }
        }
    }

    /// What an action finds in its way.
    fn prepare(&self, action: &Action) {
        let (layout, on) = (&self.robot.layout, action.subsystem);
        if let (Some((target, Stage::At)), Some(gripper)) = (
            action.step.reach(),
            self.capabilities().arm(on).and_then(|arm| arm.gripper.as_ref()),
        ) {
            let hand = layout.of(on).into_iter().find(|servo| servo.name == "gripper");
            if let Some(hand) = hand {
                self.put(hand, self.thing(target).is_some(), gripper.open, gripper.closed);
            }
        }
        if on == Subsystem::Hitch
            && let Some((hitch, servo)) = self.capabilities().hitch.as_ref().zip(layout.of(on).first())
        {
            self.put(servo, self.behind, hitch.open, hitch.closed);
        }
    }
}

/// Makes something fail.
///
/// # Errors
/// Nothing here can fail like that, with the reason.
fn break_down(lines: &BTreeMap<BusName, Servos>, layout: &Layout, fault: &Fault) -> Result<(), String> {
    let of = |name: &str| {
        let (bus, id) = name.split_once(':')?;
        let (bus, line) = lines.iter().find(|(line, _)| line.as_str() == bus)?;
        let id = id.parse().ok().filter(|id| layout.ids(*bus).contains(id))?;
        Some((line, id))
    };
    let break_one = |name: &str, how: &dyn Fn(&mut SimulatedServo)| {
        let (line, id) =
            of(name).ok_or_else(|| format!("no servo {name}; expected bus:id, such as right:3"))?;
        servos(line).servo(id, Instant::now()).map(how);
        Ok(())
    };
    match fault {
        Fault::Missing(name) => break_one(name, &|servo| servo.set_fault(Breakdown::Absent)),
        Fault::Hot(name) => break_one(name, &|servo| {
            servo.set_byte(register::TEMPERATURE, HOT);
            servo.set_fault(Breakdown::Error(OVERHEAT));
        }),
        Fault::Stuck(part) => {
            for (bus, id, _) in layout.motors_of(*part) {
                break_one(&format!("{}:{id}", bus.as_str()), &|servo| {
                    let here = servo.position();
                    servo.block(here, here);
                })?;
            }
            Ok(())
        }
        Fault::Offline | Fault::Button => Err(format!(
            "{fault:?} is for the kinematic model; expected missing, hot or stuck"
        )),
    }
}

/// The servo of a joint at its home.
fn at_home(joint: &Servo) -> SimulatedServo {
    let steps = u16::try_from(joint.steps(joint.home)).unwrap_or(2048);
    let mut servo = SimulatedServo::new(joint.id).at(steps);
    servo.set_word(register::GOAL_POSITION, steps);
    servo
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
        self.robot.connect()
    }

    fn execute<'a>(
        &'a self,
        action: &'a Action,
        control: &'a Control,
    ) -> BoxFuture<'a, Result<ActionOutput, ActionError>> {
        async move {
            self.prepare(action);
            let done = self.robot.execute(action, control).await?;
            let turned = done
                .data
                .get("measured")
                .and_then(|measured| measured["turned_degrees"].as_f64());
            self.around().turned += turned.unwrap_or_default();
            Ok(done)
        }
        .boxed()
    }

    fn state(&self, subsystem: Subsystem) -> Value {
        let mut state = self.robot.state(subsystem);
        state["mode"] = "simulation".into();
        state
    }

    fn halt(&self, subsystems: &[Subsystem], emergency: bool) -> Result<(), ActionError> {
        self.robot.halt(subsystems, emergency)
    }

    fn reset(&self) -> Result<(), ActionError> {
        self.robot.reset()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.robot.close()
    }

    fn locate(&self, what: &str) -> Option<Sighting> {
        let around = self.around();
        let thing = self.thing(what).map(|thing| Sighting {
            bearing: half_circle(thing.bearing + around.turned),
            tilt: thing.tilt,
            distance: thing.distance,
        });
        thing.or_else(|| around.people.locate(what, around.turned))
    }

    fn holds(&self, arm: Subsystem) -> Option<bool> {
        self.robot.holds(arm)
    }

    fn recognise(&self, tool: &str, args: &Value) -> Option<Value> {
        let mut around = self.around();
        let turned = around.turned;
        around.people.answer(tool, args, turned)
    }
}
