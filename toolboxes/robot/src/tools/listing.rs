//! The list of tools while it is made: a tool is added where a robot has what it needs.

use std::collections::BTreeSet;

use ovos_toolbox_sdk::prelude::*;
use ovos_toolbox_sdk::{argument_schema, output_schema};
use serde::de::DeserializeOwned;

use crate::capability::Capabilities;
use crate::conclude::{ToolOutput, conclude};
use crate::error::tool_error;
use crate::graph::Graph;
use crate::robots::Robots;
use crate::run;
use crate::subsystem::Subsystem;
use crate::unit::Unit;

/// What a tool's function returns.
pub(super) type Planned<'a> = Result<Graph<'a>, ToolError>;

/// Collects the tools that the robots of the configuration can do.
pub(super) struct Listing<'a> {
    pub(super) robots: &'a Robots,
    pub(super) category: &'static str,
    pub(super) audience: Audience,
    pub(super) tools: Vec<Tool<Robots>>,
    /// The names of the tools that were added.
    pub(super) names: BTreeSet<String>,
}

impl<'a> Listing<'a> {
    /// An empty list.
    pub(super) fn new(robots: &'a Robots) -> Self {
        Self {
            robots,
            category: "",
            audience: Audience::Model,
            tools: Vec::new(),
            names: BTreeSet::new(),
        }
    }

    /// Adds a tool where a robot has what it needs.
    pub(super) fn add<A>(
        &mut self,
        name: &'static str,
        effect: Effect,
        needs: fn(&Capabilities) -> bool,
        graph: for<'u> fn(&'u Unit, A) -> Planned<'u>,
    ) where
        A: DeserializeOwned + JsonSchema + 'static,
    {
        self.add_with(name, effect, needs, graph, (argument_schema::<A>(), json!({})));
    }

    /// Adds a tool with its argument schema, and with what models see otherwise in it ([`Tool::for_models`]), if a robot has what
    /// the tool needs.
    pub(super) fn add_with<A>(
        &mut self,
        name: &str,
        effect: Effect,
        needs: impl Fn(&Capabilities) -> bool + Clone + Send + Sync + 'static,
        graph: impl for<'u> Fn(&'u Unit, A) -> Planned<'u> + Clone + Send + Sync + 'static,
        (arguments, for_models): (Value, Value),
    ) where
        A: DeserializeOwned + JsonSchema + 'static,
    {
        if !self.robots.units().iter().any(|unit| needs(unit.capabilities())) {
            return;
        }
        self.names.insert(name.to_owned());
        let for_models = without_short_texts(&arguments, object(for_models));
        let tool = Tool::dynamic(
            name,
            effect,
            self.robots.units().choice(arguments),
            output_schema::<ToolOutput>(),
            run::run_value,
        );
        let (made_again, concluded) = (graph.clone(), name.to_owned());
        let named = concluded.clone();
        let plan = move |robots: &Robots, args: Object| {
            let (unit, args) = robots.unit_of::<A>(args)?;
            if let Some(reason) = &unit.refusal {
                return Err(ToolError::new("NotConfigured", reason));
            }
            if !needs(unit.capabilities()) {
                return Err(tool_error(unit.lacks(named.as_str())));
            }
            graph(unit, args)?.actions()
        };
        let end = move |robots: &Robots, args: Object, report: Report| {
            let (unit, args) = robots.unit_of::<A>(args)?;
            // The graph is made again for its notes. A graph that would be refused by now (`Graph::refused`) has notes,
            // too.
            let (notes, speak) = made_again(unit, args).map_or_else(
                |_| (Vec::new(), None),
                |graph| (graph.notes().to_vec(), graph.spoken().map(str::to_owned)),
            );
            Ok(conclude(unit, &concluded, &report, notes, speak))
        };
        self.tools
            .push(self.listed(tool).for_models(for_models).plan(plan).conclude(end));
    }

    /// A tool under the heading and for the audience of its family.
    pub(super) fn listed(&self, tool: Tool<Robots>) -> Tool<Robots> {
        tool.category(self.category).audience(self.audience)
    }

    /// Whether an arm of one of the robots can be sent to points.
    pub(super) fn reaches(&self) -> bool {
        self.robots
            .units()
            .iter()
            .any(|unit| reaching(unit.capabilities()))
    }

    /// The names of the poses that one of the robots can take, sorted.
    pub(super) fn poses(&self) -> BTreeSet<&str> {
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

/// A text of this length says nothing about an argument that its words do not say.
const SHORT: usize = 24;

/// Leaves out, for models, the short texts of arguments whose words the schema lists.
fn without_short_texts(arguments: &Value, mut for_models: Object) -> Object {
    for (name, argument) in arguments["properties"].as_object().into_iter().flatten() {
        let text = argument["description"].as_str().unwrap_or_default();
        if argument["enum"].is_array() && text.len() <= SHORT {
            for_models
                .entry(name.as_str())
                .or_insert_with(|| json!({"description": null}));
        }
    }
    for_models
}

fn object(value: Value) -> Object {
    match value {
        Value::Object(object) => object,
        _ => Object::new(),
    }
}

/// Whether an arm can be sent to points.
pub(super) fn reaching(robot: &Capabilities) -> bool {
    robot.reaches(Subsystem::LeftArm) || robot.reaches(Subsystem::RightArm)
}

pub(super) fn any_arm(robot: &Capabilities) -> bool {
    robot.left_arm.is_some() || robot.right_arm.is_some()
}

pub(super) fn head(robot: &Capabilities) -> bool {
    robot.gantry.is_some()
}

pub(super) fn arm_or_head(robot: &Capabilities) -> bool {
    any_arm(robot) || head(robot)
}

pub(super) fn base(robot: &Capabilities) -> bool {
    robot.base.is_some()
}

pub(super) fn anything(_: &Capabilities) -> bool {
    true
}
