//! What is around a simulated robot: people, things, the floor under its base, and the file of its commands.
//!
//! Owns everything that is there whatever simulates the robot itself: simulated servos under the driver of an owner
//! (`feetech::Rehearsal`), or the stand-in of a robot on a network. Read `Surroundings`.

mod config;
pub(crate) mod driver;
mod people;
mod place;
mod trace;

use std::time::Instant;

use parking_lot::Mutex;
use serde_json::{Value, json};

pub use self::config::{Fault, SimConfig, SimModel, Thing};
use self::people::People;
pub use self::people::Person;
pub(super) use self::place::{Place, thousandth};
use self::trace::Trace;
use crate::action::Action;
use crate::adapter::{ActionError, ActionOutput, Control, Sighting};
use crate::bearing::half_circle;
use crate::clock::Clock;
use crate::subsystem::Subsystem;

/// What is so close to a hand that closes is in it, in metres.
const WITHIN: f64 = 0.03;

/// The frame in which a simulated base stands.
pub(super) const FRAME: &str = "simulation";

/// What is around a simulated robot.
pub(super) struct Surroundings {
    robot: String,
    people: Mutex<People>,
    things: Vec<Thing>,
    pub(super) cart: bool,
    pub(super) charger: bool,
    /// The emergency button is pressed.
    button: bool,
    /// What time it is there.
    pub(super) clock: Clock,
    begun: Instant,
    trace: Trace,
}

impl Surroundings {
    /// # Errors
    /// A number is out of range, or the file of commands cannot be written.
    pub(super) fn new(robot: &str, config: &SimConfig) -> Result<Self, ActionError> {
        if !(1.0..=2_000.0).contains(&config.time_scale) {
            return Err(ActionError::OutOfRange {
                what: format!("robots.{robot}.sim.time_scale"),
                value: config.time_scale,
                min: 1.0,
                max: 2_000.0,
                unit: "times",
            });
        }
        let refused = |key: &str, error: std::io::Error| {
            ActionError::Refused(format!("robots.{robot}.sim.{key}: {error}"))
        };
        let clock = Clock::rehearsed(config.time_scale).map_err(|error| refused("time_scale", error))?;
        Ok(Self {
            robot: robot.to_owned(),
            people: Mutex::new(People::new(config.people.clone())),
            things: config.objects.clone(),
            cart: config.cart,
            charger: config.charger,
            button: config.faults.contains(&Fault::Button),
            begun: clock.now(),
            clock,
            trace: Trace::open(config.trace.as_deref()).map_err(|error| refused("trace", error))?,
        })
    }

    pub(super) fn thing(&self, name: &str) -> Option<&Thing> {
        let name = name.trim();
        self.things
            .iter()
            .find(|thing| thing.name.eq_ignore_ascii_case(name))
    }

    /// What lies where a hand is; of several the one that is called so.
    pub(super) fn at_hand(&self, hand: [f64; 3], called: Option<&str>) -> Option<&Thing> {
        let apart = |at: [f64; 3]| {
            at.iter()
                .zip(hand)
                .map(|(at, hand)| (at - hand).powi(2))
                .sum::<f64>()
                .sqrt()
        };
        let there = |thing: &&Thing| thing.at.is_some_and(|at| apart(at) <= WITHIN);
        let wanted = called.and_then(|called| self.thing(called));
        wanted.filter(there).or_else(|| self.things.iter().find(there))
    }

    /// Where a person or a thing is for a robot whose base stands here.
    pub(super) fn locate(&self, what: &str, base: Place) -> Option<Sighting> {
        let turned = base.heading_degrees();
        let thing = self.thing(what).map(|thing| Sighting {
            bearing: half_circle(thing.bearing + turned),
            tilt: thing.tilt,
            distance: thing.distance,
            at: thing.at,
        });
        thing.or_else(|| self.people.lock().locate(what, turned))
    }

    /// The answer to a question about people, or about the things.
    pub(super) fn recognise(&self, tool: &str, args: &Value, base: Place) -> Option<Value> {
        if tool == "what_is_there" {
            let things: Vec<Value> = self.things.iter().map(|thing| seen(thing, args, base)).collect();
            return Some(json!({"things": things}));
        }
        let mut people = self.people.lock();
        people.answer(tool, args, base.heading_degrees())
    }

    /// Writes a line into the file of commands: what was done, and the other keys.
    pub(super) fn note(&self, what: &str, others: impl FnOnce() -> Value) {
        self.trace.line(|| {
            let mut line = json!({"t": self.clock.since(self.begun).as_secs_f64(), "do": what});
            if let (Some(line), Value::Object(others)) = (line.as_object_mut(), others()) {
                line.extend(others);
            }
            line
        });
    }

    /// Runs an action, which is awake for the clock meanwhile, between its two lines in the file of commands.
    ///
    /// # Errors
    /// Those of the action.
    pub(super) async fn perform(
        &self,
        action: &Action,
        control: &Control,
        run: impl Future<Output = Result<ActionOutput, ActionError>>,
    ) -> Result<ActionOutput, ActionError> {
        let _awake = self.clock.awake();
        self.note(
            "begin",
            || json!({"on": action.subsystem, "for": control.label(), "moves": action.motion.is_some()}),
        );
        let done = run.await;
        self.note(
            "end",
            || json!({"on": action.subsystem, "for": control.label(), "ok": done.is_ok()}),
        );
        done
    }

    /// A stop was sent; `moving` is what has not come to rest yet.
    pub(super) fn halted(&self, on: &[Subsystem], emergency: bool, moving: &[String]) {
        self.note(
            "halt",
            || json!({"on": on, "emergency": emergency, "moving": moving}),
        );
    }

    /// # Errors
    /// The emergency button is pressed.
    pub(super) fn reset(&self) -> Result<(), ActionError> {
        if self.button {
            return Err(ActionError::Refused(format!(
                "{}: the emergency button is still pressed",
                self.robot
            )));
        }
        self.note("reset", || json!({}));
        Ok(())
    }

    /// Adds where the base stands to what the motors of the base say.
    pub(super) fn with_odometry(&self, output: ActionOutput, on: Subsystem, base: Place) -> ActionOutput {
        if !on.each().contains(&Subsystem::Base) {
            return output;
        }
        let odometry = json!({
            "x_m": thousandth(base.x),
            "y_m": thousandth(base.y),
            "heading_degrees": base.heading_degrees(),
        });
        output.with("odometry", odometry)
    }
}

/// A thing as a recogniser answers it.
fn seen(thing: &Thing, args: &Value, base: Place) -> Value {
    let mut seen = json!({
        "name": thing.name,
        "angle": half_circle(thing.bearing + base.heading_degrees()),
        "tilt": thing.tilt,
        "distance": thing.distance,
    });
    if let (Some([x, y, z]), Some(frame)) = (thing.at, args["frame"].as_str()) {
        seen["position"] = json!({"frame": frame, "x": x, "y": y, "z": z});
    }
    seen
}

impl Drop for Surroundings {
    fn drop(&mut self) {
        self.clock.end();
    }
}
