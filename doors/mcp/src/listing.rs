//! The tools that the door shows, as clients see them, and whose tool each name is. Pure.

use std::collections::HashMap;
use std::sync::Arc;

use client::payload::ToolEntry;
use config::McpDoor;
use ovos_toolbox_wire::{Effect, Object};
use rmcp::model::{Tool, ToolAnnotations};
use serde_json::Value;

use crate::run_tool;
use crate::schema::one_type_each;
use crate::stop_tool::StopTool;

/// The longest name that hosts and models accept.
const MAX_NAME: usize = 64;

/// How many of the largest tools a warning names.
const LARGEST: usize = 5;

/// The tools at one moment.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Listing {
    tools: Vec<Tool>,
    owners: HashMap<String, Owner>,
}

/// Whose tool a name is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Owner {
    /// The door's own.
    Door(StopTool),
    /// The door's own, for several tools of toolboxes.
    Steps,
    /// A toolbox's.
    Toolbox(Arc<Registered>),
}

/// A tool of a toolbox.
#[derive(Debug, PartialEq)]
pub(crate) struct Registered {
    pub(crate) toolbox_id: String,
    pub(crate) name: String,
    pub(crate) effect: Effect,
    /// The schema of its arguments.
    pub(crate) arguments: Arc<Object>,
}

impl Listing {
    /// The door's own tools, for a start without a service.
    pub(crate) fn of_door() -> Self {
        let mut listing = Self::default();
        for tool in StopTool::ALL {
            let shown = tool.definition().with_annotations(annotations(Effect::Stop));
            listing.add(shown, Owner::Door(tool));
        }
        listing
    }

    /// From the answers to `ovos.tools.list` and `ovos.tools.export`. `None` where the two do not fit, because a reload came
    /// between them.
    pub(crate) fn new(listed: &[ToolEntry], exported: &Value, config: &McpDoor) -> Option<Self> {
        let exported = exported.as_array()?;
        // What is not known to be harmless is not.
        let effect = |entry: &ToolEntry| entry.meta.as_ref().map_or(Effect::Write, |meta| meta.effect);
        let offered: Vec<&ToolEntry> = listed
            .iter()
            .filter(|entry| effect(entry) != Effect::Resume)
            .collect();
        if offered.len() != exported.len() {
            return None;
        }
        let mut listing = Self::of_door();
        if config.run_steps {
            // It may do what the worst of its steps does.
            let shown = run_tool::definition().with_annotations(annotations(Effect::Motion));
            listing.add(shown, Owner::Steps);
        }
        for (entry, exported) in offered.into_iter().zip(exported) {
            let name = exported.get("name")?.as_str()?;
            let own = exported.get("title").map_or(Some(name), Value::as_str)?;
            if own != entry.name {
                return None;
            }
            let effect = effect(entry);
            if config.toolset.permits(&entry.name, &entry.toolbox_id, effect) {
                listing.add_exported(entry, name, effect, exported, config.output_schemas);
            }
        }
        Some(listing)
    }

    fn add_exported(
        &mut self,
        entry: &ToolEntry,
        name: &str,
        effect: Effect,
        exported: &Value,
        outputs: bool,
    ) {
        let schema = |key: &str| exported.get(key).and_then(Value::as_object).cloned();
        let arguments = Arc::new(schema("inputSchema").unwrap_or_default());
        let mut name = name.to_owned();
        if self.owners.contains_key(&name) {
            // A tool of the door has it.
            name = format!("{}__{}", entry.toolbox_id, entry.name);
        }
        if name.len() > MAX_NAME || self.owners.contains_key(&name) {
            tracing::warn!(
                toolbox = entry.toolbox_id,
                tool = entry.name,
                "clients do not see this tool: another one has its name, or it is longer than {MAX_NAME} characters"
            );
            return;
        }
        let shown = Arc::new(one_type_each((*arguments).clone()));
        let mut tool =
            Tool::new(name.clone(), entry.description.clone(), shown).with_annotations(annotations(effect));
        if name != entry.name {
            tool = tool.with_title(entry.name.clone());
        }
        if let Some(output) = schema("outputSchema").filter(|_| outputs) {
            tool = tool.with_raw_output_schema(Arc::new(output));
        }
        let registered = Registered {
            toolbox_id: entry.toolbox_id.clone(),
            name: entry.name.clone(),
            effect,
            arguments,
        };
        self.add(tool, Owner::Toolbox(Arc::new(registered)));
    }

    fn add(&mut self, tool: Tool, owner: Owner) {
        self.owners.insert(tool.name.to_string(), owner);
        self.tools.push(tool);
    }

    /// In an order that does not change while the tools do not: the door's own first.
    pub(crate) fn tools(&self) -> &[Tool] {
        &self.tools
    }

    pub(crate) fn owner(&self, name: &str) -> Option<&Owner> {
        self.owners.get(name)
    }

    pub(crate) fn tool(&self, name: &str) -> Option<&Tool> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    /// What to say where the list is larger than `limit` bytes: its size, and the largest tools.
    pub(crate) fn too_large(&self, limit: usize) -> Option<String> {
        let size = |tool: &Tool| serde_json::to_vec(tool).map_or(0, |text| text.len());
        let mut sizes: Vec<(usize, &str)> = self
            .tools
            .iter()
            .map(|tool| (size(tool), tool.name.as_ref()))
            .collect();
        let total: usize = sizes.iter().map(|(size, _)| size).sum();
        if total <= limit {
            return None;
        }
        sizes.sort_unstable_by(|a, b| b.cmp(a));
        let largest: Vec<String> = sizes
            .iter()
            .take(LARGEST)
            .map(|(size, name)| format!("{name} ({size})"))
            .collect();
        Some(format!(
            "the list of {} tools has {total} bytes, more than warn_list_bytes ({limit}); the largest are {}; leave some \
             out with service.doors.mcp.tools, toolboxes or effects",
            sizes.len(),
            largest.join(", ")
        ))
    }
}

/// What clients are told about the effect of a tool. They may not rely on it, and do.
fn annotations(effect: Effect) -> ToolAnnotations {
    let said = ToolAnnotations::new();
    match effect {
        Effect::Read => said.read_only(true).open_world(false),
        Effect::Write | Effect::Motion | Effect::Resume => {
            said.read_only(false).destructive(true).idempotent(false)
        }
        Effect::Safe | Effect::Stop => said.read_only(false).destructive(false).idempotent(true),
    }
}

#[cfg(test)]
mod tests {
    use client::payload::ToolMeta;
    use config::{ToolFilter, Toolset};
    use serde_json::json;

    use super::*;

    fn entry(toolbox_id: &str, name: &str, effect: Effect) -> ToolEntry {
        ToolEntry {
            name: name.to_owned(),
            description: format!("does {name}"),
            argument_schema: json!({}),
            output_schema: json!({}),
            toolbox_id: toolbox_id.to_owned(),
            meta: Some(ToolMeta {
                category: None,
                effect,
                timeout_ms: None,
                subsystems: None,
            }),
        }
    }

    fn exported(name: &str, title: Option<&str>) -> Value {
        let mut tool = json!({
            "name": name,
            "description": "exported",
            "inputSchema": {"type": "object", "properties": {"a": {"type": "integer"}}},
            "outputSchema": {"type": "object"},
        });
        if let Some(title) = title {
            tool["title"] = json!(title);
        }
        tool
    }

    fn door() -> McpDoor {
        McpDoor {
            toolset: Toolset::default(),
            output_schemas: false,
            run_steps: false,
            warn_list_bytes: 1024,
            http_hosts: Vec::new(),
            http_origins: Vec::new(),
            http_token: true,
            token_file: "/nowhere/token".into(),
        }
    }

    fn names(listing: &Listing) -> Vec<&str> {
        listing.tools().iter().map(|tool| tool.name.as_ref()).collect()
    }

    #[test]
    fn tools_are_listed_under_their_exported_names_without_what_lifts_a_stop() {
        let listed = [
            entry("math", "add", Effect::Read),
            entry("arm", "free", Effect::Resume),
            entry("arm", "wave", Effect::Motion),
        ];
        let tools = json!([exported("add", None), exported("arm__wave", Some("wave"))]);
        let listing = Listing::new(&listed, &tools, &door()).expect("the answers fit");
        assert_eq!(
            names(&listing),
            ["emergency_stop", "stop_moving", "add", "arm__wave"]
        );
        let wave = listing.tool("arm__wave").expect("a tool");
        assert_eq!(wave.title.as_deref(), Some("wave"));
        assert_eq!(wave.output_schema, None);
        let hints = wave.annotations.as_ref().expect("annotations");
        assert_eq!(
            (
                hints.read_only_hint,
                hints.destructive_hint,
                hints.idempotent_hint
            ),
            (Some(false), Some(true), Some(false))
        );
        match listing.owner("arm__wave") {
            Some(Owner::Toolbox(tool)) => {
                assert_eq!((tool.toolbox_id.as_str(), tool.name.as_str()), ("arm", "wave"));
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn answers_that_do_not_fit_are_no_list() {
        let listed = [
            entry("math", "add", Effect::Read),
            entry("arm", "wave", Effect::Motion),
        ];
        for tools in [
            json!([exported("add", None)]),
            json!([exported("wave", None), exported("add", None)]),
            json!({}),
        ] {
            assert_eq!(Listing::new(&listed, &tools, &door()), None, "{tools}");
        }
    }

    #[test]
    fn the_toolset_leaves_tools_out_but_never_the_stops() {
        let listed = [
            entry("math", "add", Effect::Read),
            entry("math", "sub", Effect::Read),
            entry("arm", "wave", Effect::Motion),
        ];
        let tools = json!([
            exported("add", None),
            exported("sub", None),
            exported("wave", None)
        ]);
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
        ] {
            let config = McpDoor {
                toolset: Toolset {
                    tools: tools_filter,
                    toolboxes,
                    effects,
                },
                ..door()
            };
            let listing = Listing::new(&listed, &tools, &config).expect("the answers fit");
            let seen = names(&listing);
            assert_eq!(seen[..2], ["emergency_stop", "stop_moving"]);
            assert_eq!(seen[2..], *expected, "{config:?}");
        }
    }

    #[test]
    fn a_tool_with_the_name_of_a_stop_goes_by_its_alias() {
        let listed = [entry("arm", "emergency_stop", Effect::Stop)];
        let tools = json!([exported("emergency_stop", None)]);
        let config = McpDoor {
            output_schemas: true,
            ..door()
        };
        let listing = Listing::new(&listed, &tools, &config).expect("the answers fit");
        assert_eq!(
            names(&listing),
            ["emergency_stop", "stop_moving", "arm__emergency_stop"]
        );
        assert_eq!(
            listing.owner("emergency_stop"),
            Some(&Owner::Door(StopTool::EmergencyStop))
        );
        let renamed = listing.tool("arm__emergency_stop").expect("a tool");
        assert!(renamed.output_schema.is_some());
    }

    #[test]
    fn run_steps_is_shown_where_it_is_switched_on_and_says_that_it_may_move_something() {
        let listed = [entry("arm", "run_steps", Effect::Read)];
        let tools = json!([exported("run_steps", None)]);
        let config = McpDoor {
            run_steps: true,
            ..door()
        };
        let listing = Listing::new(&listed, &tools, &config).expect("the answers fit");
        assert_eq!(
            names(&listing),
            ["emergency_stop", "stop_moving", "run_steps", "arm__run_steps"]
        );
        assert_eq!(listing.owner("run_steps"), Some(&Owner::Steps));
        let shown = listing.tool("run_steps").expect("a tool");
        let hints = shown.annotations.as_ref().expect("annotations");
        assert_eq!(
            (hints.read_only_hint, hints.destructive_hint),
            (Some(false), Some(true))
        );
        assert_eq!(
            *shown.input_schema,
            one_type_each((*shown.input_schema).clone()),
            "one type in each schema"
        );
        let without = Listing::new(&listed, &tools, &door()).expect("the answers fit");
        assert_eq!(names(&without)[2..], ["run_steps"], "the toolbox's own");
    }

    #[test]
    fn a_large_list_names_its_largest_tools() {
        let listed = [entry("math", "add", Effect::Read)];
        let mut tool = exported("add", None);
        tool["inputSchema"]["description"] = json!("long ".repeat(200));
        let listing = Listing::new(&listed, &json!([tool]), &door()).expect("the answers fit");
        let said = listing.too_large(1024).expect("a warning");
        assert!(
            said.contains("the list of 3 tools") && said.contains("the largest are add ("),
            "{said}"
        );
        assert_eq!(listing.too_large(1 << 20), None);
    }
}
