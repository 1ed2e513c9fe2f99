//! The tools: one small function each, which makes a graph of the call's arguments.
//!
//! Owns names, categories, effects, arguments and graphs. A tool is listed where a robot has what it needs. Nothing
//! here moves anything. The README has a table of the tools.

mod arguments;
pub mod calibration;
pub mod diagnostics;
pub mod expression;
pub mod lift_hitch;
pub mod locomotion;
pub mod manipulation;
pub mod movement;
pub mod recognition;
pub mod safety;

use std::collections::BTreeSet;

use ovos_toolbox_sdk::prelude::*;
use ovos_toolbox_sdk::{argument_schema, output_schema};
use serde::de::DeserializeOwned;

use crate::capability::Capabilities;
use crate::conclude::{ToolOutput, conclude};
use crate::graph::Graph;
use crate::robots::Robots;
use crate::run;
use crate::unit::Unit;

/// What a tool's function returns.
pub type Planned<'a> = Result<Graph<'a>, ToolError>;

/// Collects the tools that the robots of the configuration can do.
pub struct Listing<'a> {
    robots: &'a Robots,
    category: &'static str,
    tools: Vec<Tool<Robots>>,
}

/// Every tool that one of the robots can do.
#[must_use]
pub fn all(robots: &Robots) -> Vec<Tool<Robots>> {
    let mut listing = Listing {
        robots,
        category: "",
        tools: Vec::new(),
    };
    for (category, list) in [
        ("movement", movement::list as fn(&mut Listing<'_>)),
        ("expression", expression::list),
        ("manipulation", manipulation::list),
        ("locomotion", locomotion::list),
        ("safety", safety::list),
        ("lift_hitch", lift_hitch::list),
        ("diagnostics", diagnostics::list),
        ("calibration", calibration::list),
        ("recognition", recognition::list),
    ] {
        listing.category = category;
        list(&mut listing);
    }
    listing.tools
}

impl Listing<'_> {
    /// Adds a tool where a robot has what it needs.
    fn add<A>(
        &mut self,
        name: &'static str,
        effect: Effect,
        needs: fn(&Capabilities) -> bool,
        graph: for<'u> fn(&'u Unit, A) -> Planned<'u>,
    ) where
        A: DeserializeOwned + JsonSchema + 'static,
    {
        self.add_with(name, effect, needs, graph, argument_schema::<A>());
    }

    /// The same for a tool whose argument schema depends on the robots.
    fn add_with<A>(
        &mut self,
        name: &'static str,
        effect: Effect,
        needs: fn(&Capabilities) -> bool,
        graph: for<'u> fn(&'u Unit, A) -> Planned<'u>,
        arguments: Value,
    ) where
        A: DeserializeOwned + JsonSchema + 'static,
    {
        if !self.robots.units().iter().any(|unit| needs(unit.capabilities())) {
            return;
        }
        let tool = Tool::dynamic(
            name,
            effect,
            self.robots.units().choice(arguments),
            output_schema::<ToolOutput>(),
            run::run_value,
        );
        let plan = move |robots: &Robots, args: Object| {
            let (unit, args) = robots.unit_of::<A>(args)?;
            if !needs(unit.capabilities()) {
                return Err(run::tool_error(unit.lacks(name)));
            }
            graph(unit, args)?.actions()
        };
        let end = move |robots: &Robots, args: Object, report: Report| {
            let (unit, args) = robots.unit_of::<A>(args)?;
            // The graph is made again for its notes. A graph that would be refused by now (`Graph::refused`) has
            // them, too.
            let (notes, speak) = graph(unit, args).map_or_else(
                |_| (Vec::new(), None),
                |graph| (graph.notes().to_vec(), graph.spoken().map(str::to_owned)),
            );
            Ok(conclude(unit, name, &report, notes, speak))
        };
        self.tools
            .push(tool.category(self.category).plan(plan).conclude(end));
    }

    /// The names of the poses that one of the robots can take, sorted.
    fn poses(&self) -> BTreeSet<&str> {
        let units = self.robots.units().iter();
        let poses = units.flat_map(|unit| unit.model.pose_names().map(move |name| (unit, name)));
        poses
            .filter(|(unit, name)| {
                let pose = unit.model.pose(name);
                pose.is_some_and(|pose| !pose.joints.is_empty() || pose.lift.is_some())
            })
            .map(|(_, name)| name)
            .collect()
    }
}

fn any_arm(robot: &Capabilities) -> bool {
    robot.left_arm.is_some() || robot.right_arm.is_some()
}

fn head(robot: &Capabilities) -> bool {
    robot.gantry.is_some()
}

fn arm_or_head(robot: &Capabilities) -> bool {
    any_arm(robot) || head(robot)
}

fn base(robot: &Capabilities) -> bool {
    robot.base.is_some()
}

fn anything(_: &Capabilities) -> bool {
    true
}
