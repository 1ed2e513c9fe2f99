//! Programs of the robot's owner that move it: run_policy.

use std::collections::BTreeSet;

use ovos_toolbox_sdk::argument_schema;
use ovos_toolbox_sdk::prelude::*;

use super::listing::{Listing, Planned};
use super::movement::unknown;
use crate::adapter::ActionError;
use crate::capability::Capabilities;
use crate::error::tool_error;
use crate::graph::{Graph, on};
use crate::step::Step;
use crate::subsystem::Subsystem;
use crate::unit::Unit;

/// How long a program that was killed may take to end, and the servos to come back, in seconds.
const BACK: f64 = 15.0;
/// The shortest time that a call may ask for, in seconds.
const LEAST: f64 = 1.0;
/// The time that a program has when a call does not say, in seconds.
const USUAL: f64 = 30.0;

pub(super) fn list(listing: &mut Listing<'_>) {
    let units = listing.robots.units().iter();
    let policies: BTreeSet<(&String, &str)> = units
        .flat_map(|unit| &unit.capabilities().policies)
        .map(|(name, policy)| (name, policy.about.as_str()))
        .collect();
    let mut arguments = argument_schema::<RunPolicy>();
    arguments["properties"]["policy"]["enum"] =
        json!(policies.iter().map(|(name, _)| name).collect::<BTreeSet<_>>());
    let abouts: Vec<String> = policies
        .iter()
        .filter(|(_, about)| !about.is_empty())
        .map(|(name, about)| format!("{name}: {about}"))
        .collect();
    if !abouts.is_empty() {
        arguments["properties"]["policy"]["description"] = json!(format!("Which one. {}", abouts.join(". ")));
    }
    let has = |robot: &Capabilities| !robot.policies.is_empty();
    listing.add_with(
        "run_policy",
        Effect::Motion,
        has,
        run_policy,
        (arguments, json!({})),
    );
}

/// Let a learned policy of the owner move the robot by itself for a time. Nothing else can move it meanwhile; a stop ends it.
#[derive(Deserialize, JsonSchema)]
struct RunPolicy {
    /// Which one.
    policy: String,
    /// For how many seconds at most; 30 when not given.
    #[serde(default)]
    #[schemars(range(min = 1.0, max = 3_600.0))]
    seconds: Option<f64>,
}

fn run_policy(unit: &Unit, args: RunPolicy) -> Planned<'_> {
    let policies = &unit.capabilities().policies;
    let known: Vec<&str> = policies.keys().map(String::as_str).collect();
    let Some(policy) = policies.get(&args.policy) else {
        return Err(unknown("policy", "policy", &args.policy, &known));
    };
    let seconds = args.seconds.unwrap_or(USUAL.min(policy.max_seconds));
    if !(LEAST..=policy.max_seconds).contains(&seconds) {
        return Err(tool_error(ActionError::OutOfRange {
            what: format!("run_policy {} seconds", args.policy),
            value: seconds,
            min: LEAST,
            max: policy.max_seconds,
            unit: "seconds",
        }));
    }
    let step = Step::RunPolicy {
        policy: args.policy.clone(),
        seconds,
    };
    Ok(Graph::new(unit)
        .wave([on(Subsystem::All, policy.longest(seconds) + BACK, step)])
        .note(format!(
            "while {} controls the robot, no limit of this toolbox holds: only those in the servos and those of the program do",
            args.policy
        )))
}
