//! The tools of the door as clients of the protocol see them. Pure.

use std::sync::Arc;

use config::McpDoor;
use door::find::{CALL_TOOL, FIND_TOOLS};
use door::{ListedTool, Listing, LongCallTool, OwnTool, ScheduleTool, StopTool, largest};
use ovos_toolbox_wire::{Effect, Object};
use rmcp::model::{Tool, ToolAnnotations};
use serde_json::json;

use crate::{find_tools, run_tool};

/// How many tools some hosts take of all their servers together.
const MOST_TOOLS: usize = 128;

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
    Toolbox(Arc<ListedTool>),
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
    let own = StopTool::ALL.iter().copied().map(Owner::Door);
    // Where tools are searched, these are called through `call_tool`, too.
    let calls = LongCallTool::ALL.iter().copied().filter(|_| !config.find_tools);
    let own = own.chain(calls.map(Owner::Calls));
    let later = ScheduleTool::ALL.iter().copied().filter(|_| config.schedule);
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
        Owner::Door(tool) => own_tool(*tool),
        Owner::Calls(tool) => own_tool(*tool),
        Owner::Schedule(tool) => own_tool(*tool),
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
                tool = tool.with_raw_output_schema(Arc::new(or_handle(&output)));
            }
            tool
        }
    }
}

/// A schema for what a tool returns, or for the handle of a call that takes longer than its client waits: clients check what they get
/// with the schema that they were shown.
fn or_handle(output: &Object) -> Object {
    let mut output = output.clone();
    let definitions = output.shift_remove("$defs");
    let handle = json!({
        "type": "object",
        "properties": {"call_id": {"type": "string"}, "state": {"enum": ["running", "ending"]}, "message": {"type": "string"}},
        "required": ["call_id", "state", "message"],
    });
    let mut schema = Object::new();
    schema.insert("type".to_owned(), json!("object"));
    schema.insert("anyOf".to_owned(), json!([output, handle]));
    schema.extend(definitions.map(|definitions| ("$defs".to_owned(), definitions)));
    schema
}

fn own_tool(tool: impl OwnTool) -> Tool {
    Tool::new(tool.name(), tool.description(), Arc::new(tool.arguments()))
        .with_annotations(annotations(tool.effect()))
}

/// Returns the warning for a list that is larger than `warn_list_bytes`, or longer than hosts take: its size, and the largest tools.
pub(crate) fn too_large(tools: &[Tool], config: &McpDoor) -> Option<String> {
    let limit = config.warn_list_bytes;
    let size = |tool: &Tool| serde_json::to_vec(tool).map_or(0, |text| text.len());
    let sizes: Vec<(usize, &str)> = tools
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
    Some(format!(
        "the list of {} tools {over}; the largest are {}; leave some out with service.doors.mcp.tools, toolboxes or effects, \
         or set service.doors.mcp.find_tools, with which clients search the tools",
        sizes.len(),
        largest(sizes.iter().copied())
    ))
}

/// Describes the effect of a tool to clients. The protocol says that clients must not rely on it, but they do. What the protocol
/// takes for granted is left out, but that a tool is destructive.
fn annotations(effect: Effect) -> ToolAnnotations {
    let annotations = ToolAnnotations::new();
    match effect {
        Effect::Read => annotations.read_only(true).open_world(false),
        effect if effect.is_destructive() => annotations.destructive(true),
        _ => annotations.destructive(false).idempotent(true),
    }
}

/// Definitions as the service sends them.
#[cfg(test)]
pub(crate) mod definitions {
    use config::Toolset;
    use serde_json::{Value, json};

    use super::*;

    /// A tool of a toolbox, under the name that it is exported under.
    pub(crate) fn of(toolbox_id: &str, name: &str, exported: &str, effect: Effect) -> Value {
        json!({
            "name": exported,
            "description": "exported",
            "inputSchema": {"type": "object", "properties": {"a": {"type": "integer"}}},
            "outputSchema": {"type": "object"},
            "tool": {"name": name, "toolbox_id": toolbox_id, "meta": {"exported": exported, "effect": effect}},
        })
    }

    /// The list of a door that has these tools of its own.
    pub(crate) fn listing(tools: impl IntoIterator<Item = Value>, own: &[&str]) -> Listing {
        Listing::new(&tools.into_iter().collect(), &Toolset::default(), own)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::definitions::{listing, of};
    use super::*;

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
        let listing = listing([of("arm", "wave", "arm__wave", Effect::Motion)], &[]);
        let config = McpDoor::default();
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
        let config = McpDoor::default();
        let tools = tools(&Listing::default(), &config);
        assert_eq!(names(&tools), ["emergency_stop", "stop_moving"]);
    }

    #[test]
    fn run_steps_is_shown_where_it_is_switched_on_and_says_that_it_may_move_something() {
        let steps = of("arm", "run_steps", "run_steps", Effect::Read);
        let listing = listing([steps], &[run_tool::NAME]);
        let config = McpDoor {
            run_steps: true,
            ..McpDoor::default()
        };
        let tools = tools(&listing, &config);
        assert_eq!(
            names(&tools),
            ["emergency_stop", "stop_moving", "run_steps", "arm__run_steps"]
        );
        assert_eq!(owner(&listing, &config, "run_steps"), Some(Owner::Steps));
        assert_eq!(owner(&listing, &McpDoor::default(), "run_steps"), None);
        let tool = &tools[5];
        assert_eq!(hints(tool), (None, Some(true), None));
    }

    #[test]
    fn where_tools_are_searched_the_list_has_the_tools_of_the_door_alone() {
        let entries = [
            of("arm", "wave", "wave", Effect::Motion),
            of("arm", "find_tools", "find_tools", Effect::Read),
        ];
        let listing = listing(entries, &[FIND_TOOLS, CALL_TOOL]);
        let config = McpDoor {
            find_tools: true,
            ..McpDoor::default()
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
        let names = (0..MOST_TOOLS).map(|number| format!("tool_{number}"));
        let entries = names.map(|name| of("many", &name, &name, Effect::Read));
        let config = McpDoor {
            warn_list_bytes: 1 << 20,
            ..McpDoor::default()
        };
        let warning = too_large(&tools(&listing(entries, &[]), &config), &config).expect("a warning");
        assert!(
            warning.contains("the list of 133 tools") && warning.contains("service.doors.mcp.find_tools"),
            "{warning}"
        );
    }

    #[test]
    fn a_large_list_names_its_largest_tools() {
        let mut tool = of("math", "add", "add", Effect::Read);
        tool["inputSchema"]["description"] = json!("long ".repeat(200));
        let config = McpDoor {
            warn_list_bytes: 1024,
            ..McpDoor::default()
        };
        let tools = tools(&listing([tool], &[]), &config);
        let warning = too_large(&tools, &config).expect("a warning");
        assert!(
            warning.contains("the list of 6 tools") && warning.contains("the largest are add ("),
            "{warning}"
        );
        let config = McpDoor {
            warn_list_bytes: 1 << 20,
            ..McpDoor::default()
        };
        assert_eq!(too_large(&tools, &config), None);
    }
}
