//! The tools that the model has in a run, in the format of the API, and the owner of each name. Pure.

use std::collections::HashMap;
use std::sync::Arc;

use config::ToolFilter;
use door::find::{CALL_TOOL, FIND_TOOLS, call_tool, find_tools};
use door::{Finder, ListedTool, Listing, OwnTool as _, StopTool};
use ovos_toolbox_wire::{Effect, Object};
use serde_json::{Value, json};

/// A tool of the agent itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Own {
    /// Ends the run.
    Finish,
    /// Searches the tools.
    FindTools,
    /// Calls a tool that was found.
    CallTool,
    /// Shows the plan of a call.
    PreviewPlan,
    /// Stops, in one of the two ways.
    Stop(StopTool),
}

/// The owner of a tool's name.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    /// A tool of the agent.
    Own(Own),
    /// A tool of a toolbox.
    Tool(Arc<ListedTool>),
}

/// The tools of a run.
pub(crate) struct Toolbelt {
    shown: Vec<Value>,
    targets: HashMap<String, Target>,
    /// The tools of toolboxes, by the names that the model uses.
    registered: Vec<(String, Arc<ListedTool>)>,
    /// The tools that toolboxes want called at the end of a run that moved them, whichever tools the model has.
    agent_ends: Vec<Arc<ListedTool>>,
    finder: Finder,
    searched: bool,
}

/// The settings that decide which tools a run has.
pub(crate) struct Choice<'a> {
    /// The filters in addition to the toolset of the door.
    pub(crate) filters: &'a [ToolFilter],
    /// The size of the list above which the model has to search for tools.
    pub(crate) budget_bytes: usize,
    pub(crate) plan_preview: bool,
}

/// The names of the agent's own tools, without the stops.
pub(crate) const OWN: &[&str] = &["finish", FIND_TOOLS, CALL_TOOL, "preview_plan"];

impl Own {
    fn name(self) -> &'static str {
        match self {
            Self::Finish => "finish",
            Self::FindTools => FIND_TOOLS,
            Self::CallTool => CALL_TOOL,
            Self::PreviewPlan => "preview_plan",
            Self::Stop(stop) => stop.name(),
        }
    }

    fn definition(self) -> Value {
        let (description, parameters) = match self {
            Self::Finish => (
                "End the run: the goal is reached, or cannot be reached. Call it once nothing is left to do.",
                json!({
                    "type": "object",
                    "properties": {
                        "reached": {"type": "boolean", "description": "Whether the goal is reached, as results show."},
                        "summary": {"type": "string", "description": "What was done, or why it cannot be done, in one sentence."},
                    },
                    "required": ["reached", "summary"],
                }),
            ),
            Self::FindTools => {
                let (description, schema) = find_tools();
                (description, Value::Object(schema))
            }
            Self::CallTool => {
                let (description, schema) = call_tool();
                (description, Value::Object(schema))
            }
            Self::PreviewPlan => (
                "Show what a call would do: its actions in waves, and what they hold. Runs nothing.",
                Value::Object(call_tool().1),
            ),
            Self::Stop(stop) => (stop.description(), Value::Object(stop.arguments())),
        };
        function(self.name(), description, &parameters)
    }
}

fn function(name: &str, description: &str, parameters: &Value) -> Value {
    json!({
        "type": "function",
        "function": { "name": name, "description": description, "parameters": parameters },
    })
}

impl Toolbelt {
    pub(crate) fn new(listing: &Listing, choice: &Choice<'_>) -> Self {
        let mut own = vec![Own::Finish];
        own.extend(StopTool::ALL.iter().copied().map(Own::Stop));
        if choice.plan_preview {
            own.push(Own::PreviewPlan);
        }
        let permits = |tool: &&Arc<ListedTool>| {
            let mut filters = choice.filters.iter();
            filters.all(|filter| filter.permits_tool(&tool.toolbox_id, &tool.name))
        };
        let registered: Vec<(String, Arc<ListedTool>)> = listing
            .tools()
            .iter()
            .filter(permits)
            .map(|tool| (tool.exported.clone(), Arc::clone(tool)))
            .collect();
        let mut tools: Vec<Value> = registered
            .iter()
            .map(|(name, tool)| {
                let parameters = Value::Object((*tool.arguments).clone());
                function(name, &tool.description, &parameters)
            })
            .collect();
        let size: usize = tools.iter().map(|tool| tool.to_string().len()).sum();
        let searched = size > choice.budget_bytes;
        if searched {
            own.extend([Own::FindTools, Own::CallTool]);
            tools.clear();
        }
        // What is hidden is not refused.
        let mut targets: HashMap<String, Target> = listing
            .callable()
            .filter(permits)
            .map(|tool| (tool.exported.clone(), Target::Tool(Arc::clone(tool))))
            .collect();
        let mut definitions = Vec::new();
        for own in own {
            targets.insert(own.name().to_owned(), Target::Own(own));
            definitions.push(own.definition());
        }
        definitions.append(&mut tools);
        let found: Vec<Arc<ListedTool>> = listing.searchable().iter().filter(permits).cloned().collect();
        let finder = Finder::new(&found, listing.guides());
        Self {
            shown: definitions,
            targets,
            finder,
            registered,
            agent_ends: listing.agent_ends().to_vec(),
            searched,
        }
    }

    /// Returns the tools in the format of the API. Their order changes only when the tools do.
    pub(crate) fn definitions(&self) -> &[Value] {
        &self.shown
    }

    /// Returns the names of the toolboxes' tools.
    pub(crate) fn names(&self) -> Vec<&str> {
        self.registered.iter().map(|(name, _)| name.as_str()).collect()
    }

    /// Returns the tools that toolboxes want called at the end of a run that moved them.
    pub(crate) fn agent_ends(&self) -> &[Arc<ListedTool>] {
        &self.agent_ends
    }

    /// Whether the model has to search for tools.
    pub(crate) fn is_searched(&self) -> bool {
        self.searched
    }

    pub(crate) fn target(&self, name: &str) -> Option<&Target> {
        self.targets.get(name)
    }

    /// Whether the tool with this name stops something.
    pub(crate) fn is_stop(&self, name: &str) -> bool {
        match self.target(name) {
            Some(Target::Own(Own::Stop(_))) => true,
            Some(Target::Tool(tool)) => tool.effect == Effect::Stop,
            _ => false,
        }
    }

    /// Returns the `read` tool of a toolbox with this name, for the state object.
    pub(crate) fn reader(&self, name: &str) -> Option<&Arc<ListedTool>> {
        let (_, tool) = self.registered.iter().find(|(_, tool)| tool.name == name)?;
        (tool.effect == Effect::Read).then_some(tool)
    }

    /// Returns the answer to `find_tools`, with at most about `budget` bytes of JSON.
    ///
    /// # Errors
    /// What is wrong with the arguments.
    pub(crate) fn find(&self, arguments: &Object, budget: usize) -> Result<Value, String> {
        self.finder.find(arguments, budget)
    }

    /// Returns the message for a name that no tool has.
    pub(crate) fn unknown(&self, name: &str) -> String {
        let like = self.finder.like(name);
        let advice = match like.as_slice() {
            [] if self.searched => "search with find_tools".to_owned(),
            [] => "call a tool of the list".to_owned(),
            like => format!("similar ones: {}", like.join(", ")),
        };
        format!("there is no tool '{name}'; {advice}")
    }
}
