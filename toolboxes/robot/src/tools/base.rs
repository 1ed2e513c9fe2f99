//! What a base tells and does of its own: battery_status, way_ahead, navigate_to, and the tools that its file names.

use std::collections::BTreeSet;

use ovos_toolbox_sdk::argument_schema;
use ovos_toolbox_sdk::prelude::*;

use super::arguments::range;
use super::listing::{Listing, Planned};
use crate::capability::{Capabilities, OwnTool};
use crate::graph::{Graph, on};
use crate::spot::Spot;
use crate::step::{Reading, Step};
use crate::subsystem::Subsystem;
use crate::unit::Unit;

/// How many seconds a way is given, whose length the plan does not know.
const WAY: f64 = 300.0;

pub(super) fn list(listing: &mut Listing<'_>) {
    let battery = |robot: &Capabilities| robot.services.battery;
    let way_ahead = |robot: &Capabilities| robot.services.way_ahead;
    let navigates = |robot: &Capabilities| robot.services.navigates;
    listing.add("battery_status", Effect::Read, battery, battery_status);
    listing.add("way_ahead", Effect::Read, way_ahead, self::way_ahead);
    listing.add("navigate_to", Effect::Motion, navigates, navigate_to);
    let units = listing.robots.units().iter();
    let own: Vec<OwnTool> = units
        .flat_map(|unit| unit.capabilities().services.own.clone())
        .collect();
    let mut added = BTreeSet::new();
    for tool in own {
        // Two robots may have the same.
        if added.insert(tool.name.clone()) {
            listing.add_own(&tool);
        }
    }
}

/// Read how full the robot's battery is, and whether it charges.
#[derive(Deserialize, JsonSchema)]
struct BatteryStatus {}

fn battery_status(unit: &Unit, _: BatteryStatus) -> Planned<'_> {
    Ok(reads(unit, Reading::Battery))
}

/// Read how many metres are free ahead of the robot and around it, as its scanner sees it.
#[derive(Deserialize, JsonSchema)]
struct WayAhead {}

fn way_ahead(unit: &Unit, _: WayAhead) -> Planned<'_> {
    Ok(reads(unit, Reading::WayAhead))
}

fn reads(unit: &Unit, what: Reading) -> Graph<'_> {
    Graph::new(unit).wave([on(Subsystem::Base, 5.0, Step::Read { what })])
}

/// Send the robot to a point on its map. It finds its own way around what is in it.
#[derive(Deserialize, JsonSchema)]
struct NavigateTo {
    /// Metres along the first axis of the map.
    #[schemars(range(min = -10_000.0, max = 10_000.0))]
    x: f64,
    /// Metres along the second axis of the map, to the left of the first.
    #[schemars(range(min = -10_000.0, max = 10_000.0))]
    y: f64,
    /// The way to face there: degrees counter-clockwise from the first axis.
    #[serde(default)]
    #[schemars(range(min = -180.0, max = 180.0))]
    heading: f64,
}

fn navigate_to(unit: &Unit, args: NavigateTo) -> Planned<'_> {
    let spot = Spot {
        // That in which it finds its way.
        frame: String::new(),
        x: range("x", args.x, -10_000.0, 10_000.0)?,
        y: range("y", args.y, -10_000.0, 10_000.0)?,
        heading: range("heading", args.heading, -180.0, 180.0)?,
    };
    Ok(Graph::new(unit).wave([on(Subsystem::Base, WAY, Step::NavigateTo(spot))]))
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

impl Listing<'_> {
    /// Adds a tool that a robot's file names; the tools that are there keep their names.
    fn add_own(&mut self, own: &OwnTool) {
        if self.names.contains(&own.name) {
            tracing::warn!(
                tool = own.name,
                "two tools have this name: that of the robot's file is left out"
            );
            return;
        }
        let mut arguments = argument_schema::<Nothing>();
        arguments["description"] = json!(own.about);
        let OwnTool {
            name,
            effect,
            seconds,
            ..
        } = own.clone();
        let wanted = name.clone();
        let has = move |robot: &Capabilities| robot.services.own.iter().any(|tool| tool.name == wanted);
        let step = Step::Own {
            name: name.clone(),
            still: effect != Effect::Motion,
        };
        // The robot is given its time, and the goal or the call its beginning.
        self.add_with::<Nothing>(
            &name,
            effect,
            has,
            move |unit, _| {
                // A robot without a base does it with all that it has.
                let base = unit.capabilities().has(Subsystem::Base);
                let part = if base { Subsystem::Base } else { Subsystem::All };
                Ok(Graph::new(unit).wave([on(part, seconds + 10.0, step.clone())]))
            },
            (arguments, json!({})),
        );
    }
}
