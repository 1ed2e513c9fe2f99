//! Safety: stop, reset_stop, alert_hazard, enable_fire_detection.

use ovos_toolbox_sdk::prelude::*;
use ovos_toolbox_sdk::{argument_schema, output_schema};

use super::arguments::{range_of, words, yes};
use super::listing::{Listing, Planned, anything};
use super::movement::look;
use crate::conclude::{ToolOutput, conclude_stop};
use crate::graph::{Graph, aside, on};
use crate::resolve::farthest_seconds;
use crate::robots::Robots;
use crate::run;
use crate::step::Step;
use crate::subsystem::Subsystem;
use crate::unit::Unit;

pub(super) fn list(listing: &mut Listing<'_>) {
    listing.add_whole::<Stop>("stop", Effect::Stop, "Emergency stop activated");
    listing.add_whole::<ResetStop>("reset_stop", Effect::Resume, "Emergency stop lifted");
    listing.add("alert_hazard", Effect::Safe, anything, alert_hazard);
    listing.add(
        "enable_fire_detection",
        Effect::Write,
        anything,
        enable_fire_detection,
    );
}

words!(
    /// What is dangerous.
    Hazard, Unknown: Fire "fire", Smoke "smoke", Obstacle "obstacle", PersonDown "person_down", Spill "spill",
    Unknown "unknown"
);
words!(
    /// high reports a fire sooner, and is wrong more often.
    Sensitivity, Medium: Low "low", Medium "medium", High "high"
);

/// Emergency stop: every robot stops at once, whatever it is doing. Nothing moves again until an operator has reset the
/// stop, so it is no way to pause.
#[derive(Deserialize, JsonSchema)]
struct Stop {}

/// Lift the emergency stop. For operators. Moves nothing.
#[derive(Deserialize, JsonSchema)]
struct ResetStop {}

impl Listing<'_> {
    /// Adds a tool that the service itself carries out for the whole toolbox.
    fn add_whole<A: JsonSchema + 'static>(&mut self, name: &'static str, effect: Effect, done: &'static str) {
        let tool = Tool::dynamic(
            name,
            effect,
            argument_schema::<A>(),
            output_schema::<ToolOutput>(),
            run::run_whole,
        );
        let end = move |robots: &Robots, _: Value, report: Report| Ok(conclude_stop(robots, done, &report));
        let tool = tool.category(self.category).subsystems(["all"]);
        self.tools.push(tool.conclude(end));
    }
}

/// React to a danger: the robot stands still, looks and points at it, and the result has a warning to say aloud.
#[derive(Deserialize, JsonSchema)]
struct AlertHazard {
    /// What is dangerous.
    hazard_type: Hazard,
    /// Where it is, in degrees from straight ahead, negative to the left.
    #[serde(default)]
    #[schemars(range(min = -360.0, max = 360.0))]
    direction_degrees: Option<f64>,
    /// Whether the result should have a warning to speak.
    #[serde(default = "yes")]
    speak_warning: bool,
}

fn alert_hazard(unit: &Unit, args: AlertHazard) -> Planned<'_> {
    let direction = range_of("direction_degrees", args.direction_degrees, -360.0, 360.0)?;
    let stop = on(Subsystem::Base, 10.0, Step::Stop {}).optional();
    let mut graph = Graph::new(unit);
    if args.speak_warning {
        graph = graph.speak(warning(args.hazard_type, direction));
    }
    let Some(direction) = direction else {
        // A robot without a base has nothing to stop, and still a warning to give.
        let still = if unit.capabilities().has(Subsystem::Base) {
            stop
        } else {
            aside(1.0, Step::Stop {})
        };
        return Ok(graph
            .wave([still])
            .note("no direction_degrees: looked and pointed nowhere"));
    };
    let bearing = half_circle(direction);
    let arm = unit.nearer_arm(bearing);
    let target = bearing.to_string();
    // Only the action that makes the robot stand still has to run whatever happens. The other actions are motion, which
    // a stop ends.
    let look = look(unit, &target).optional().effect(Effect::Motion);
    let point = Step::Point {
        target,
        nearer: false,
    };
    let point = on(arm, 5.0, point)
        .lasting(farthest_seconds(unit, arm, 0.6))
        .optional()
        .effect(Effect::Motion);
    Ok(graph.wave([stop, look]).wave([point]))
}

/// Degrees from -180 to 180.
fn half_circle(degrees: f64) -> f64 {
    let turned = degrees.rem_euclid(360.0);
    if turned > 180.0 { turned - 360.0 } else { turned }
}

fn warning(hazard: Hazard, direction: Option<f64>) -> String {
    let what = match hazard {
        Hazard::Fire => "There is a fire",
        Hazard::Smoke => "There is smoke",
        Hazard::Obstacle => "There is something in the way",
        Hazard::PersonDown => "A person is lying on the floor",
        Hazard::Spill => "Something is spilled on the floor",
        Hazard::Unknown => "Something is wrong",
    };
    let side = match direction.map(half_circle) {
        None => "",
        Some(bearing) if bearing.abs() > 135.0 => " behind me",
        Some(bearing) if bearing < -30.0 => " on my left",
        Some(bearing) if bearing > 30.0 => " on my right",
        Some(_) => " in front of me",
    };
    format!("Warning! {what}{side}.")
}

/// Announce whether and how to watch for fire. The robot itself detects no fire: a vision program that hears the event
/// `fire_detection` has to do it.
#[derive(Deserialize, JsonSchema)]
struct EnableFireDetection {
    /// On or off.
    #[serde(default = "yes")]
    enabled: bool,
    /// high reports a fire sooner, and is wrong more often.
    #[serde(default)]
    sensitivity: Sensitivity,
    /// Whether a fire should be announced without being asked.
    #[serde(default = "yes")]
    auto_alert: bool,
}

fn enable_fire_detection(unit: &Unit, args: EnableFireDetection) -> Planned<'_> {
    let step = Step::SetSafety {
        enabled: args.enabled,
        sensitivity: args.sensitivity.as_str().to_string(),
        auto_alert: args.auto_alert,
    };
    Ok(Graph::new(unit).wave([on(Subsystem::All, 5.0, step)]))
}
