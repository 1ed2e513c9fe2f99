//! What the registry, the engine, the router and the API are told of a loaded toolbox.

use std::collections::HashSet;
use std::sync::Arc;

use crate::api::FailedFile;
use crate::registry::{Tool, ToolboxEntry, ToolboxState};
use engine::{StepTool, StepTools};
use host::{Live, LiveToolbox, State};
use schema::CompiledTool;

/// Builds the registry entry of a toolbox; tools that did not change since the last snapshot are reused.
pub(super) fn entry(
    toolbox: &LiveToolbox,
    before: Option<&ToolboxEntry>,
    permits: impl Fn(&str) -> bool,
) -> ToolboxEntry {
    let known = before.map(|before| before.tools.as_slice()).unwrap_or_default();
    let tool = |compiled: &Arc<CompiledTool>| {
        let same = |tool: &&Arc<Tool>| {
            tool.generation == toolbox.generation && Arc::ptr_eq(&tool.compiled, compiled)
        };
        if let Some(tool) = known.iter().find(same) {
            return Some(tool.clone());
        }
        Tool::new(&toolbox.id, toolbox.generation, compiled.clone())
            .inspect_err(|error| {
                let tool = &compiled.definition.name;
                tracing::error!(toolbox = &*toolbox.id, tool, %error, "bug in the service: the tool cannot be listed");
            })
            .ok()
            .map(Arc::new)
    };
    let tools = toolbox
        .tools
        .tools
        .iter()
        .filter(|tool| permits(&tool.definition.name))
        .filter_map(tool)
        .collect();
    let state = match &toolbox.state {
        State::Ready => ToolboxState::Ready,
        State::Reloading => ToolboxState::Reloading,
        State::Failed(reason) => ToolboxState::Failed(reason.clone()),
    };
    ToolboxEntry {
        toolbox_id: toolbox.id.to_string(),
        generation: toolbox.generation,
        state,
        tools,
    }
}

/// Returns all tools of a toolbox, hidden ones included: a plan may name them as steps.
pub(super) fn step_tools(toolbox: &LiveToolbox, section: &config::Section) -> StepTools {
    let key = |key| format!("PHAL.{}.{}.{key}", config::OURS, toolbox.id);
    let rule = |tool: &Arc<CompiledTool>| {
        let name = &tool.definition.name;
        let forbidden_by = section.tools.forbidden_by(name).map(key);
        let effect = tool.definition.effect;
        (name.clone(), StepTool { effect, forbidden_by })
    };
    toolbox.tools.tools.iter().map(rule).collect()
}

/// Returns the topics for toolboxes: their subscriptions, and the answers to their requests.
pub(super) fn topics(live: &Live) -> HashSet<String> {
    let of_toolbox = |toolbox: &Arc<LiveToolbox>| {
        let answers = toolbox
            .manifest
            .requests
            .iter()
            .map(|topic| format!("{topic}.response"));
        toolbox
            .manifest
            .subscribes
            .iter()
            .cloned()
            .chain(answers)
            .collect::<Vec<_>>()
    };
    live.toolboxes.iter().flat_map(of_toolbox).collect()
}

/// A file that could not be loaded, as the API reports it.
pub(super) fn failed_file(failed: &host::FailedFile) -> FailedFile {
    FailedFile {
        path: failed.path.display().to_string(),
        toolbox_id: failed.toolbox_id.clone(),
        reason: failed.reason.clone(),
    }
}
