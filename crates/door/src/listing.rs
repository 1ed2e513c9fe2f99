//! The tools that a door shows, and the names by which clients know them. Pure.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use client::payload::ExportedTool;
use config::Toolset;
use ovos_toolbox_wire::{Audience, Effect, Object};
use serde_json::Value;

use crate::{Guide, LongCallTool, OwnTool, StopTool};

/// The longest name that hosts and models accept.
pub const MAX_NAME: usize = 64;

/// How many of the largest tools a warning names.
const LARGEST: usize = 5;

/// The tools of all toolboxes at one moment. The two stops are not in this list: every door always shows them, in place of the
/// emergency stops of toolboxes.
#[derive(Debug, Default, PartialEq)]
pub struct Listing {
    tools: Vec<Arc<ListedTool>>,
    found: Vec<Arc<ListedTool>>,
    /// What is shown, and what is hidden and can be called all the same.
    names: HashMap<String, Arc<ListedTool>>,
    agent_ends: Vec<Arc<ListedTool>>,
    guides: Vec<Guide>,
}

/// Where clients meet a tool. All of them can call it.
#[derive(Clone, Copy, PartialEq)]
enum Visibility {
    /// In the list, and in what a search finds.
    Shown,
    /// In what a search finds alone.
    Searchable,
    Hidden,
}

/// A tool of a toolbox.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedTool {
    /// The name that clients use: at most 64 of `[A-Za-z0-9_-]`.
    pub exported: String,
    /// The tool's own name.
    pub name: String,
    /// The toolbox that owns it.
    pub toolbox_id: String,
    /// The effect of the tool.
    pub effect: Effect,
    /// The heading under which its toolbox has it.
    pub category: Option<String>,
    /// The description of the tool.
    pub description: String,
    /// The schema of its arguments.
    pub arguments: Arc<Object>,
    /// The schema of its output.
    pub output: Option<Arc<Object>>,
    /// The arguments of each call of this tool that an agent makes at the end of a run that moved what the call holds.
    pub agent_end: Vec<Object>,
}

#[cfg(test)]
impl ListedTool {
    /// A tool for tests with these arguments, which clients call by its own name.
    pub(crate) fn example(toolbox_id: &str, name: &str, effect: Effect, schema: Value) -> Self {
        let Value::Object(arguments) = schema else {
            panic!("a schema")
        };
        Self {
            exported: name.to_owned(),
            toolbox_id: toolbox_id.to_owned(),
            name: name.to_owned(),
            effect,
            category: None,
            description: String::new(),
            arguments: Arc::new(arguments),
            output: None,
            agent_end: Vec::new(),
        }
    }
}

impl Listing {
    /// Builds the list from the tools of an answer to `ovos.tools.export` in the format `mcp` with `detail`: those that `toolset`
    /// permits. `own` are the names of further tools of the door.
    #[must_use]
    pub fn new(exported: &Value, toolset: &Toolset, own: &[&str]) -> Self {
        let mut listing = Self::default();
        for definition in exported.as_array().into_iter().flatten() {
            match ListedTool::read(definition) {
                Ok((tool, audience)) => listing.add(tool, audience, toolset, own),
                Err(error) => {
                    tracing::warn!(%error, "hid a tool from clients: its definition does not have the expected form")
                }
            }
        }
        listing
    }

    fn add(&mut self, mut tool: ListedTool, audience: Audience, toolset: &Toolset, own: &[&str]) {
        if tool.effect == Effect::Safe && !tool.agent_end.is_empty() {
            self.agent_ends.push(Arc::new(tool.clone()));
        }
        if tool.effect == Effect::Resume || !toolset.permits(&tool.name, &tool.toolbox_id, tool.effect) {
            return;
        }
        // A model confuses names that differ in case, or in `-` and `_`.
        let folded = tool.exported.to_ascii_lowercase().replace('-', "_");
        if StopTool::named(&folded).is_some()
            || LongCallTool::named(&folded).is_some()
            || own.contains(&folded.as_str())
        {
            tool.exported = format!("{}__{}", tool.toolbox_id, tool.name);
        }
        let is_for = |audience: Audience| toolset.audience.contains(&audience);
        let visibility = match audience {
            _ if tool.effect == Effect::Stop => Visibility::Hidden,
            Audience::Unready if is_for(Audience::Person) => Visibility::Shown,
            Audience::Unready if is_for(Audience::Model) => Visibility::Searchable,
            audience if is_for(audience) => Visibility::Shown,
            _ => Visibility::Hidden,
        };
        if tool.exported.len() > MAX_NAME || self.names.contains_key(&tool.exported) {
            tracing::warn!(
                toolbox = tool.toolbox_id,
                tool = tool.name,
                "hid a tool from clients: another one has its name, or its name is longer than {MAX_NAME} characters"
            );
            return;
        }
        let tool = Arc::new(tool);
        if visibility == Visibility::Shown {
            self.tools.push(Arc::clone(&tool));
        }
        if visibility != Visibility::Hidden {
            self.found.push(Arc::clone(&tool));
        }
        self.names.insert(tool.exported.clone(), tool);
    }

    /// Adds the guides of the toolboxes. Of ids that give the same name of a skill, such as `a_b` and `a-b`, the first has a page.
    #[must_use]
    pub fn with_guides(self, mut guides: Vec<Guide>) -> Self {
        let mut skills = HashSet::new();
        guides.retain(|guide| !guide.skill().is_empty() && skills.insert(guide.skill()));
        Self { guides, ..self }
    }

    /// The guides of the toolboxes that have tools here.
    pub fn guides(&self) -> impl Iterator<Item = &Guide> {
        let is_shown = |guide: &&Guide| self.tools.iter().any(|tool| tool.toolbox_id == guide.toolbox_id);
        self.guides.iter().filter(is_shown)
    }

    /// The tools that toolboxes want called at the end of an agent's run that moved them. This includes tools that the toolset
    /// leaves out, because these calls are not the model's choice.
    #[must_use]
    pub fn agent_ends(&self) -> &[Arc<ListedTool>] {
        &self.agent_ends
    }

    /// The tools that are shown, in an order that changes only when the tools do.
    #[must_use]
    pub fn tools(&self) -> &[Arc<ListedTool>] {
        &self.tools
    }

    /// The tools that a search finds: those that are shown, and those that lack what they need at the moment.
    #[must_use]
    pub fn searchable(&self) -> &[Arc<ListedTool>] {
        &self.found
    }

    /// The tools that can be called, those that are hidden among them, in no order.
    pub fn callable(&self) -> impl Iterator<Item = &Arc<ListedTool>> {
        self.names.values()
    }

    /// Whether the tool that clients know by this name stops something.
    #[must_use]
    pub fn stops(&self, exported: &str) -> bool {
        self.tool(exported)
            .is_some_and(|tool| tool.effect == Effect::Stop)
    }

    /// Returns the tool that clients know by this name. It may be one that is hidden.
    #[must_use]
    pub fn tool(&self, exported: &str) -> Option<&Arc<ListedTool>> {
        self.names.get(exported)
    }
}

impl ListedTool {
    /// Reads a definition in the format `mcp` with `tool`, and for whom the tool is.
    fn read(definition: &Value) -> Result<(Self, Audience), serde_json::Error> {
        let ExportedTool {
            name,
            toolbox_id,
            meta,
        } = serde_json::from_value(definition["tool"].clone())?;
        let schema = |key: &str| definition.get(key).and_then(Value::as_object).cloned();
        let description = definition.get("description").and_then(Value::as_str);
        let tool = Self {
            exported: meta.exported,
            name,
            toolbox_id,
            effect: meta.effect,
            category: meta.category,
            description: description.unwrap_or_default().to_owned(),
            arguments: Arc::new(schema("inputSchema").unwrap_or_default()),
            output: schema("outputSchema").map(Arc::new),
            agent_end: meta.agent_end,
        };
        Ok((tool, meta.audience))
    }
}

/// The largest of these tools for a warning: `look (2034), say (1120)`. A size is in bytes.
#[must_use]
pub fn largest<'a>(tools: impl Iterator<Item = (usize, &'a str)>) -> String {
    let mut tools: Vec<(usize, &str)> = tools.collect();
    tools.sort_unstable_by(|a, b| b.cmp(a));
    let largest = tools.iter().take(LARGEST);
    let largest: Vec<String> = largest.map(|(size, name)| format!("{name} ({size})")).collect();
    largest.join(", ")
}

#[cfg(test)]
mod tests {
    use config::ToolFilter;
    use serde_json::json;

    use super::*;

    /// A definition as the service sends it.
    fn of(toolbox_id: &str, name: &str, exported: &str, effect: Effect) -> Value {
        json!({
            "name": exported,
            "description": "exported",
            "inputSchema": {"type": "object", "properties": {"a": {"type": "integer"}}},
            "outputSchema": {"type": "object"},
            "tool": {"name": name, "toolbox_id": toolbox_id, "meta": {"exported": exported, "effect": effect}},
        })
    }

    fn listing(tools: &[Value], toolset: &Toolset) -> Listing {
        Listing::new(&json!(tools), toolset, &["run_steps"])
    }

    fn names(listing: &Listing) -> Vec<&str> {
        listing
            .tools()
            .iter()
            .map(|tool| tool.exported.as_str())
            .collect()
    }

    #[test]
    fn tools_are_listed_under_their_exported_names_without_what_lifts_a_stop() {
        let tools = [
            of("math", "add", "add", Effect::Read),
            of("arm", "free", "free", Effect::Resume),
            of("arm", "wave", "arm__wave", Effect::Motion),
        ];
        let listing = listing(&tools, &Toolset::default());
        assert_eq!(names(&listing), ["add", "arm__wave"]);
        let wave = listing.tool("arm__wave").expect("a tool");
        assert_eq!(
            (wave.toolbox_id.as_str(), wave.name.as_str(), wave.effect),
            ("arm", "wave", Effect::Motion)
        );
        assert!(listing.tool("wave").is_none());
    }

    #[test]
    fn a_tool_of_which_nothing_is_known_is_not_shown() {
        let add = of("math", "add", "add", Effect::Read);
        let mut unknown = of("arm", "wave", "wave", Effect::Motion);
        unknown["tool"] = json!(null);
        for (tools, shown) in [
            (json!([add, unknown]), &["add"][..]),
            (json!([unknown]), &[]),
            (json!({}), &[]),
        ] {
            let listing = Listing::new(&tools, &Toolset::default(), &[]);
            assert_eq!(names(&listing), shown, "{tools}");
        }
    }

    #[test]
    fn the_toolset_leaves_tools_out() {
        let tools = [
            of("math", "add", "add", Effect::Read),
            of("math", "sub", "sub", Effect::Read),
            of("arm", "wave", "wave", Effect::Motion),
        ];
        let only = |words: &[&str]| ToolFilter {
            allow: Some(words.iter().map(|&word| word.to_owned()).collect()),
            deny: Vec::new(),
        };
        let without = |word: &str| ToolFilter {
            allow: None,
            deny: vec![word.to_owned()],
        };
        let any = ToolFilter::default();
        for (tools_filter, toolboxes, effects, expected) in [
            (only(&["a*"]), any.clone(), any.clone(), &["add"][..]),
            (without("*"), any.clone(), any.clone(), &[]),
            (any.clone(), without("math"), any.clone(), &["wave"]),
            (any.clone(), any.clone(), only(&["read"]), &["add", "sub"]),
            (without("add"), only(&["math"]), only(&["read"]), &["sub"]),
            (without("math__*"), any.clone(), any.clone(), &["wave"]),
            (
                only(&["arm__*", "math__sub"]),
                any.clone(),
                any.clone(),
                &["sub", "wave"],
            ),
        ] {
            let toolset = Toolset {
                tools: tools_filter,
                toolboxes,
                effects,
                ..Toolset::default()
            };
            let listing = listing(&tools, &toolset);
            assert_eq!(names(&listing), *expected, "{toolset:?}");
        }
    }

    #[test]
    fn a_tool_with_the_name_of_a_tool_of_the_door_goes_by_its_alias() {
        let tools = [
            ("emergency_stop", Effect::Stop),
            ("Emergency-Stop", Effect::Write),
            ("STOP_MOVING", Effect::Write),
            ("run_steps", Effect::Read),
            ("stop", Effect::Stop),
        ];
        let tools = tools.map(|(name, effect)| of("arm", name, name, effect));
        let listing = listing(&tools, &Toolset::default());
        let shown = [
            "arm__emergency_stop",
            "arm__Emergency-Stop",
            "arm__STOP_MOVING",
            "arm__run_steps",
        ];
        assert_eq!(names(&listing), shown[1..]);
        for stop in ["arm__emergency_stop", "stop"] {
            assert!(listing.stops(stop), "{stop} is hidden, and not refused");
        }
    }

    #[test]
    fn tools_for_people_are_shown_where_the_toolset_asks_for_them() {
        let tools = [
            ("calibrate", Audience::Person),
            ("recognise", Audience::Unready),
            ("wave", Audience::Model),
        ];
        let tools = tools.map(|(name, audience)| {
            let mut tool = of("arm", name, name, Effect::Motion);
            tool["tool"]["meta"]["audience"] = json!(audience);
            tool
        });
        for (audience, expected, found) in [
            (vec![Audience::Model], &["wave"][..], &["recognise", "wave"][..]),
            (
                vec![Audience::Person],
                &["calibrate", "recognise"],
                &["calibrate", "recognise"],
            ),
            (
                Audience::ALL.to_vec(),
                &["calibrate", "recognise", "wave"],
                &["calibrate", "recognise", "wave"],
            ),
        ] {
            let toolset = Toolset {
                audience,
                ..Toolset::default()
            };
            let listing = listing(&tools, &toolset);
            assert_eq!(names(&listing), expected, "{toolset:?}");
            let searched: Vec<&str> = listing.searchable().iter().map(|tool| &*tool.exported).collect();
            assert_eq!(searched, found, "{toolset:?}");
            assert!(listing.tool("calibrate").is_some(), "hidden is not refused");
        }
    }

    #[test]
    fn of_two_tools_with_one_name_the_first_is_seen_and_of_those_with_long_names_none() {
        let long = "n".repeat(MAX_NAME + 1);
        let tools = [
            of("a", "x", "x", Effect::Read),
            of("b", "x", "x", Effect::Read),
            of("c", &long, &long, Effect::Read),
        ];
        let listing = listing(&tools, &Toolset::default());
        assert_eq!(names(&listing), ["x"]);
        assert_eq!(listing.tools()[0].toolbox_id, "a");
    }
}
