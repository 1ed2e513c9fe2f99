//! Safety: stop, reset_stop, alert_hazard, enable_fire_detection.

use ovos_toolbox_sdk::prelude::*;
use ovos_toolbox_sdk::{argument_schema, output_schema};

use super::arguments::{range_of, words, yes};
use super::listing::{Listing, Planned, anything};
use super::movement::look;
use crate::bearing::half_circle;
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
    let for_models = json!({"direction_degrees": null, "speak_warning": null});
    let arguments = (argument_schema::<AlertHazard>(), for_models);
    listing.add_with("alert_hazard", Effect::Motion, anything, alert_hazard, arguments);
    // A setting for the owner's vision program.
    listing.audience = Audience::Person;
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

/// Emergency stop: every robot stops at once, and nothing moves again until an operator lifts the stop. Not for a pause.
#[derive(Deserialize, JsonSchema)]
struct Stop {}

/// Lift the emergency stop of the robots. For operators. Moves nothing.
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
        let tool = self.listed(tool).subsystems(["all"]);
        self.tools.push(tool.conclude(end));
    }
}

/// Have the robot stop, look and point at a danger; the result has a warning to say.
#[derive(Deserialize, JsonSchema)]
struct AlertHazard {
    /// What is dangerous.
    hazard_type: Hazard,
    /// From straight ahead; positive is left.
    #[serde(default)]
    #[schemars(range(min = -360.0, max = 360.0))]
    bearing_degrees: Option<f64>,
    /// No longer accepted (it was clockwise): send bearing_degrees, positive to the left.
    #[serde(default)]
    #[schemars(range(min = -360.0, max = 360.0))]
    direction_degrees: Option<f64>,
    /// Whether to make a warning.
    #[serde(default = "yes")]
    speak_warning: bool,
}

fn alert_hazard(unit: &Unit, args: AlertHazard) -> Planned<'_> {
    if let Some(clockwise) = args.direction_degrees {
        return Err(ToolError::bad_args(format!(
            "direction_degrees (negative to the left) was replaced by bearing_degrees (positive to the left): for {clockwise} \
             send bearing_degrees {}",
            0.0 - clockwise
        )));
    }
    let bearing = range_of("bearing_degrees", args.bearing_degrees, -360.0, 360.0)?.map(half_circle);
    let stop = on(Subsystem::Base, 10.0, Step::Stop {}).optional();
    let mut graph = Graph::new(unit);
    if args.speak_warning {
        graph = graph.speak(warning(args.hazard_type, bearing));
    }
    let Some(bearing) = bearing else {
        // A robot without a base has nothing to stop, and still a warning to give.
        let still = if unit.capabilities().has(Subsystem::Base) {
            stop
        } else {
            aside(1.0, Step::Stop {})
        };
        return Ok(graph
            .wave([still])
            .note("no bearing_degrees: looked and pointed nowhere"));
    };
    // The arms count clockwise.
    let arm = unit.nearer_arm(0.0 - bearing);
    let target = bearing.to_string();
    let look = look(unit, &target).optional();
    let point = Step::Point {
        target,
        nearer: false,
    };
    let point = on(arm, 5.0, point)
        .lasting(farthest_seconds(unit, arm, 0.6))
        .optional();
    Ok(graph.wave([stop, look]).wave([point]))
}

fn warning(hazard: Hazard, bearing: Option<f64>) -> String {
    let what = match hazard {
        Hazard::Fire => "There is a fire",
        Hazard::Smoke => "There is smoke",
        Hazard::Obstacle => "There is something in the way",
        Hazard::PersonDown => "A person is lying on the floor",
        Hazard::Spill => "Something is spilled on the floor",
        Hazard::Unknown => "Something is wrong",
    };
    let side = match bearing {
        None => "",
        Some(bearing) if bearing.abs() > 135.0 => " behind me",
        Some(bearing) if bearing > 30.0 => " on my left",
        Some(bearing) if bearing < -30.0 => " on my right",
        Some(_) => " in front of me",
    };
    format!("Warning! {what}{side}.")
}

/// Set whether the robot's vision program watches for fire. The robot itself detects none.
#[derive(Deserialize, JsonSchema)]
struct EnableFireDetection {
    /// On or off.
    #[serde(default = "yes")]
    enabled: bool,
    /// How sensitive.
    #[serde(default)]
    sensitivity: Sensitivity,
    /// Announce a fire unasked.
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
