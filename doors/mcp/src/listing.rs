//! The tools of the door as clients of the protocol see them. Pure.

use std::sync::Arc;

use config::McpDoor;
use door::find::{CALL_TOOL, FIND_TOOLS};
use door::{Listing, LongCallTool, Registered, ScheduleTool, StopTool};
use ovos_toolbox_wire::Effect;
use rmcp::model::{Tool, ToolAnnotations};

use crate::{find_tools, run_tool};

/// How many tools some hosts take of all their servers together.
const MOST_TOOLS: usize = 128;

/// How many of the largest tools a warning names.
const LARGEST: usize = 5;

/// The owner of a tool's name.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Owner {
    /// The tool is a stop of the door.
    Door(StopTool),
    /// The tool asks for a call that goes on.
    Calls(LongCallTool),
    /// The tool asks for calls later.
    Schedule(ScheduleTool),
    /// The tool is `run_steps` of the door.
    Steps,
    /// The tool is `find_tools` of the door.
    Find,
    /// The tool is `call_tool` of the door, which stands for another tool.
    Call,
    /// The tool belongs to a toolbox.
    Toolbox(Arc<Registered>),
}

/// Returns the owner of the tool with this name.
pub(crate) fn owner(listing: &Listing, config: &McpDoor, name: &str) -> Option<Owner> {
    if let Some(stop) = StopTool::named(name) {
        return Some(Owner::Door(stop));
    }
    if let Some(tool) = LongCallTool::named(name) {
        return Some(Owner::Calls(tool));
    }
    if config.schedule
        && let Some(tool) = ScheduleTool::named(name)
    {
        return Some(Owner::Schedule(tool));
    }
    if config.run_steps && name == run_tool::NAME {
        return Some(Owner::Steps);
    }
    match name {
        FIND_TOOLS if config.find_tools => Some(Owner::Find),
        CALL_TOOL if config.find_tools => Some(Owner::Call),
        _ => Some(Owner::Toolbox(Arc::clone(listing.tool(name)?))),
    }
}

/// Returns the tools that are listed, the door's own first.
pub(crate) fn tools(listing: &Listing, config: &McpDoor) -> Vec<Tool> {
    let own = StopTool::ALL.into_iter().map(Owner::Door);
    // Where tools are searched, these are called through `call_tool`, too.
    let calls = LongCallTool::ALL.into_iter().filter(|_| !config.find_tools);
    let own = own.chain(calls.map(Owner::Calls));
    let later = ScheduleTool::ALL.into_iter().filter(|_| config.schedule);
    let own = own.chain(later.map(Owner::Schedule));
    let own = own.chain(config.run_steps.then_some(Owner::Steps));
    if config.find_tools {
        let own = own.chain([Owner::Find, Owner::Call]);
        return own.map(|owner| shown_tool(&owner, config)).collect();
    }
    let theirs = listing.tools().iter().cloned().map(Owner::Toolbox);
    own.chain(theirs)
        .map(|owner| shown_tool(&owner, config))
        .collect()
}

/// Returns a tool as clients see it.
pub(crate) fn shown_tool(owner: &Owner, config: &McpDoor) -> Tool {
    match owner {
        Owner::Door(stop) => Tool::new(stop.name(), stop.description(), Arc::new(StopTool::arguments()))
            .with_annotations(annotations(Effect::Stop)),
        Owner::Calls(tool) => Tool::new(tool.name(), tool.description(), Arc::new(tool.arguments()))
            .with_annotations(annotations(tool.effect())),
        Owner::Schedule(tool) => Tool::new(tool.name(), tool.description(), Arc::new(tool.arguments()))
            .with_annotations(annotations(tool.effect())),
        // It may do what the most dangerous of its steps does.
        Owner::Steps => run_tool::definition().with_annotations(annotations(Effect::Motion)),
        Owner::Find => find_tools::find_tools().with_annotations(annotations(Effect::Read)),
        Owner::Call => find_tools::call_tool().with_annotations(annotations(Effect::Motion)),
        Owner::Toolbox(registered) => {
            let mut tool = Tool::new(
                registered.exported.clone(),
                registered.description.clone(),
                Arc::clone(&registered.arguments),
            )
            .with_annotations(annotations(registered.effect));
            if registered.exported != registered.name {
                tool = tool.with_title(registered.name.clone());
            }
            if let Some(output) = registered.output.clone().filter(|_| config.output_schemas) {
                tool = tool.with_raw_output_schema(output);
            }
            tool
        }
    }
}

/// Returns the warning for a list that is larger than `warn_list_bytes`, or longer than hosts take: its size, and the largest tools.
pub(crate) fn too_large(tools: &[Tool], config: &McpDoor) -> Option<String> {
    let limit = config.warn_list_bytes;
    let size = |tool: &Tool| serde_json::to_vec(tool).map_or(0, |text| text.len());
    let mut sizes: Vec<(usize, &str)> = tools
        .iter()
        .map(|tool| (size(tool), tool.name.as_ref()))
        .collect();
    let total: usize = sizes.iter().map(|(size, _)| size).sum();
    let over = match (total > limit, sizes.len() > MOST_TOOLS) {
        (true, _) => format!("is {total} bytes, more than warn_list_bytes ({limit})"),
        (false, true) => {
            format!("is {total} bytes, and has more than the {MOST_TOOLS} tools that some hosts accept")
        }
        (false, false) => return None,
    };
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    let largest: Vec<String> = sizes
        .iter()
        .take(LARGEST)
        .map(|(size, name)| format!("{name} ({size})"))
        .collect();
    Some(format!(
        "the list of {} tools {over}; the largest are {}; leave some out with service.doors.mcp.tools, toolboxes or effects, \
         or set service.doors.mcp.find_tools, with which clients search the tools",
        sizes.len(),
        largest.join(", ")
    ))
}

/// Describes the effect of a tool to clients. The protocol says that clients must not rely on it, but they do. What the protocol
/// takes for granted is left out, but that a tool is destructive.
fn annotations(effect: Effect) -> ToolAnnotations {
    let said = ToolAnnotations::new();
    match effect {
        Effect::Read => said.read_only(true).open_world(false),
        Effect::Write | Effect::Motion | Effect::Resume => said.destructive(true),
        Effect::Safe | Effect::Stop => said.destructive(false).idempotent(true),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use client::payload::{ExportedTool, ToolEntry, ToolMeta};
    use config::Toolset;
    use serde_json::{Value, json};

    use super::*;

    fn entry(toolbox_id: &str, name: &str, effect: Effect) -> ToolEntry {
        ToolEntry {
            name: name.to_owned(),
            description: format!("does {name}"),
            argument_schema: json!({}),
            output_schema: json!({}),
            toolbox_id: toolbox_id.to_owned(),
            meta: Some(ToolMeta {
                exported: String::new(),
                category: None,
                effect,
                audience: ovos_toolbox_wire::Audience::Model,
                timeout_ms: None,
                subsystems: None,
                agent_end: Vec::new(),
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

    pub(crate) fn door() -> McpDoor {
        McpDoor {
            toolset: Toolset::default(),
            sign_in: None,
            start: false,
            output_schemas: false,
            run_steps: false,
            find_tools: false,
            schedule: false,
            warn_list_bytes: 1024,
            result_bytes: 1024,
            reply_within: None,
            lease: std::time::Duration::from_secs(30),
            http_address: ([127, 0, 0, 1], 8765).into(),
            http_hosts: Vec::new(),
            http_origins: Vec::new(),
            http_token: true,
            token_file: "/nowhere/token".into(),
        }
    }

    /// The definitions with what the entries say, as the service sends them.
    fn with_meta(listed: &[ToolEntry], tools: &Value) -> Value {
        let is_exported = |entry: &&ToolEntry| {
            entry
                .meta
                .as_ref()
                .is_some_and(|meta| meta.effect != Effect::Resume)
        };
        let listed = listed.iter().filter(is_exported);
        let tools = tools.as_array().expect("a list").iter().zip(listed);
        let tools = tools.map(|(tool, entry)| {
            let mut tool = tool.clone();
            let meta = ToolMeta {
                exported: tool["name"].as_str().expect("a name").to_owned(),
                ..entry.meta.clone().expect("meta")
            };
            tool["tool"] = json!(ExportedTool {
                name: entry.name.clone(),
                toolbox_id: entry.toolbox_id.clone(),
                meta,
            });
            tool
        });
        tools.collect()
    }

    fn listing(listed: &[ToolEntry], tools: &Value) -> Listing {
        Listing::new(&with_meta(listed, tools), &Toolset::default(), &[run_tool::NAME])
    }

    /// A list of tools of one toolbox.
    pub(crate) fn listing_of(tools: &[(&str, Effect)]) -> Listing {
        let listed: Vec<ToolEntry> = tools
            .iter()
            .map(|(name, effect)| entry("arm", name, *effect))
            .collect();
        let exported: Value = tools.iter().map(|(name, _)| exported(name, None)).collect();
        listing(&listed, &exported)
    }

    /// The names, without those of the tools that ask for calls that go on.
    fn names(tools: &[Tool]) -> Vec<&str> {
        let names = tools.iter().map(|tool| tool.name.as_ref());
        names.filter(|name| LongCallTool::named(name).is_none()).collect()
    }

    fn hints(tool: &Tool) -> (Option<bool>, Option<bool>, Option<bool>) {
        let hints = tool.annotations.as_ref().expect("annotations");
        (
            hints.read_only_hint,
            hints.destructive_hint,
            hints.idempotent_hint,
        )
    }

    #[test]
    fn the_stops_come_first_and_tools_say_what_they_do() {
        let listed = [entry("arm", "wave", Effect::Motion)];
        let listing = listing(&listed, &json!([exported("arm__wave", Some("wave"))]));
        let config = door();
        let tools = tools(&listing, &config);
        assert_eq!(names(&tools), ["emergency_stop", "stop_moving", "arm__wave"]);
        let wave = tools.last().expect("a tool");
        assert_eq!(wave.title.as_deref(), Some("wave"));
        assert_eq!(wave.output_schema, None);
        assert_eq!(hints(wave), (None, Some(true), None));
        for tool in &tools {
            let owner = owner(&listing, &config, &tool.name).expect("an owner");
            assert_eq!(shown_tool(&owner, &config), *tool);
        }
        assert_eq!(owner(&listing, &config, "wave"), None);
        let config = McpDoor {
            output_schemas: true,
            ..config
        };
        assert!(super::tools(&listing, &config)[5].output_schema.is_some());
    }

    #[test]
    fn without_a_toolset_the_stops_are_left() {
        let config = door();
        let tools = tools(&Listing::default(), &config);
        assert_eq!(names(&tools), ["emergency_stop", "stop_moving"]);
    }

    #[test]
    fn run_steps_is_shown_where_it_is_switched_on_and_says_that_it_may_move_something() {
        let listed = [entry("arm", "run_steps", Effect::Read)];
        let listing = listing(&listed, &json!([exported("run_steps", None)]));
        let config = McpDoor {
            run_steps: true,
            ..door()
        };
        let tools = tools(&listing, &config);
        assert_eq!(
            names(&tools),
            ["emergency_stop", "stop_moving", "run_steps", "arm__run_steps"]
        );
        assert_eq!(owner(&listing, &config, "run_steps"), Some(Owner::Steps));
        assert_eq!(owner(&listing, &door(), "run_steps"), None);
        let shown = &tools[5];
        assert_eq!(hints(shown), (None, Some(true), None));
    }

    #[test]
    fn where_tools_are_searched_the_list_has_the_tools_of_the_door_alone() {
        let listed = [
            entry("arm", "wave", Effect::Motion),
            entry("arm", "find_tools", Effect::Read),
        ];
        let exported = json!([exported("wave", None), exported("find_tools", None)]);
        let own = [run_tool::NAME, FIND_TOOLS, CALL_TOOL];
        let listing = Listing::new(&with_meta(&listed, &exported), &Toolset::default(), &own);
        let config = McpDoor {
            find_tools: true,
            ..door()
        };
        let tools = tools(&listing, &config);
        assert_eq!(
            names(&tools),
            ["emergency_stop", "stop_moving", FIND_TOOLS, CALL_TOOL]
        );
        assert_eq!(hints(&tools[2]).0, Some(true));
        // What a hint is without being said is left out.
        assert_eq!(hints(&tools[3]), (None, Some(true), None));
        assert_eq!(owner(&listing, &config, FIND_TOOLS), Some(Owner::Find));
        let named = |name| matches!(owner(&listing, &config, name), Some(Owner::Toolbox(_)));
        assert!(
            named("wave") && named("arm__find_tools"),
            "what is not listed can be called"
        );
    }

    #[test]
    fn a_list_that_is_too_long_for_a_host_says_how_to_search_it() {
        let names: Vec<String> = (0..MOST_TOOLS).map(|number| format!("tool_{number}")).collect();
        let listed: Vec<ToolEntry> = names
            .iter()
            .map(|name| entry("many", name, Effect::Read))
            .collect();
        let exported = names.iter().map(|name| exported(name, None)).collect();
        let config = McpDoor {
            warn_list_bytes: 1 << 20,
            ..door()
        };
        let said = too_large(&tools(&listing(&listed, &exported), &config), &config).expect("a warning");
        assert!(
            said.contains("the list of 133 tools") && said.contains("service.doors.mcp.find_tools"),
            "{said}"
        );
    }

    #[test]
    fn a_large_list_names_its_largest_tools() {
        let listed = [entry("math", "add", Effect::Read)];
        let mut tool = exported("add", None);
        tool["inputSchema"]["description"] = json!("long ".repeat(200));
        let tools = tools(&listing(&listed, &json!([tool])), &door());
        let said = too_large(&tools, &door()).expect("a warning");
        assert!(
            said.contains("the list of 6 tools") && said.contains("the largest are add ("),
            "{said}"
        );
        let config = McpDoor {
            warn_list_bytes: 1 << 20,
            ..door()
        };
        assert_eq!(too_large(&tools, &config), None);
    }
}
