//! Converts a loaded toolbox into its entries for the registry, the engine, the router and the API.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use ovos_toolbox_wire::{Effect, is_toolbox_id};

use crate::api::{FailedFile, PythonStatus};
use crate::registry::{Snapshot, Tool, ToolboxEntry, ToolboxState};
use engine::{StepTool, StepTools};
use host::{Live, LiveToolbox, State};
use schema::CompiledTool;

/// The tools that yielding toolboxes leave to other toolboxes: names and owners.
#[derive(Debug, Default)]
pub(super) struct TakenNames(HashMap<String, String>);

impl TakenNames {
    /// Collects the tools of all toolboxes that do not yield, as far as the toolbox `permits` them. A toolbox that is
    /// being started again keeps its names; one that was given up does not.
    pub(super) fn new<'a>(live: &'a Live, permits: impl Fn(&LiveToolbox, &str) -> bool) -> Self {
        let others = live
            .toolboxes
            .iter()
            .filter(|toolbox| !toolbox.manifest.yields && !matches!(toolbox.state, State::Failed(_)));
        let named = others.flat_map(|toolbox: &'a Arc<LiveToolbox>| {
            let names = toolbox.tools.tools.iter().map(|tool| &tool.definition.name);
            names.map(move |name| (toolbox, name))
        });
        let named = named.filter(|(toolbox, name)| permits(toolbox, name));
        Self(
            named
                .map(|(toolbox, name)| (name.clone(), toolbox.id.to_string()))
                .collect(),
        )
    }

    /// The toolbox to which this one leaves a tool, if it does. A tool that `tools.allow` names stays with this
    /// toolbox.
    pub(super) fn owner(&self, toolbox: &LiveToolbox, section: &config::Section, tool: &str) -> Option<&str> {
        let tools = &toolbox.tools.tools;
        let effect = tools
            .iter()
            .find(|listed| listed.definition.name == tool)?
            .definition
            .effect;
        let may_yield = toolbox.manifest.yields && matches!(effect, Effect::Read | Effect::Write);
        let named = section
            .tools
            .allow
            .as_ref()
            .is_some_and(|_| section.tools.permits(tool));
        let owner = self.0.get(tool)?;
        (may_yield && !named).then_some(owner.as_str())
    }
}

/// Builds the registry entry of a toolbox; tools that did not change since the last snapshot are reused.
pub(super) fn entry(
    toolbox: &LiveToolbox,
    before: Option<&ToolboxEntry>,
    permits: impl Fn(&str) -> bool,
    yields: impl Fn(&str) -> bool,
) -> ToolboxEntry {
    let earlier = before
        .into_iter()
        .flat_map(|before| before.tools.iter().chain(&before.yielded));
    let tool = |compiled: &Arc<CompiledTool>| {
        let same = |tool: &&Arc<Tool>| {
            tool.generation == toolbox.generation && Arc::ptr_eq(&tool.compiled, compiled)
        };
        if let Some(tool) = earlier.clone().find(same) {
            return Some(tool.clone());
        }
        Tool::new(&toolbox.id, toolbox.generation, compiled.clone())
            .inspect_err(|error| {
                let tool = &compiled.definition.name;
                tracing::error!(toolbox = &*toolbox.id, tool, %error, "bug in the service: the tool cannot be listed");
            })
            .ok()
            .map(|tool| {
                let host = toolbox.manifest.host.clone();
                Arc::new(Tool { host, ..tool })
            })
    };
    let permitted = toolbox.tools.tools.iter();
    let permitted = permitted
        .filter(|tool| permits(&tool.definition.name))
        .filter_map(tool);
    let (yielded, tools) = permitted.partition(|tool| yields(tool.name()));
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
        yielded,
    }
}

/// The ids of toolboxes that this machine has or is configured for, also of those that offer no tools now.
pub(super) fn known_ids(live: &Live, config: &config::Config) -> Vec<String> {
    let failed = live.failed.iter().filter_map(|file| file.toolbox_id.as_ref());
    let configured = config.toolboxes.keys().chain(config.mounts.keys());
    let off = live.off.iter().map(|off| &off.toolbox_id);
    let ids = live.starting.iter().chain(failed).chain(off).chain(configured);
    ids.filter(|id| is_toolbox_id(id)).cloned().collect()
}

/// The tools that are not called by their own names, each with its toolbox, as text.
pub(super) fn renamed(snapshot: &Snapshot) -> Vec<String> {
    let of_toolbox = |entry: &ToolboxEntry| {
        let id = entry.toolbox_id.clone();
        let tools: Vec<String> = renamed_of(snapshot, &id).collect();
        tools.into_iter().map(move |tool| format!("{id}: {tool}"))
    };
    snapshot.toolboxes().flat_map(of_toolbox).collect()
}

/// The tools of one toolbox that are not called by their own names, as text.
pub(super) fn renamed_of(snapshot: &Snapshot, toolbox_id: &str) -> impl Iterator<Item = String> {
    let of_toolbox = snapshot
        .renamed_tools()
        .filter(move |(tool, ..)| tool.toolbox_id == toolbox_id);
    of_toolbox.map(|(tool, why, called)| format!("`{}` is called `{called}`: {why}", tool.name()))
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

/// A Python interpreter, as the API reports it.
pub(super) fn python(looked_at: &host::python::LookedAt) -> PythonStatus {
    let found = &looked_at.found;
    let interpreter = found.interpreter.as_ref();
    let rows = interpreter.iter().flat_map(|interpreter| &interpreter.toolboxes);
    let (good, bad): (Vec<_>, Vec<_>) = rows.partition(|one| one.problem.is_none());
    let (hosted, not_allowed): (Vec<_>, Vec<_>) = good
        .into_iter()
        .partition(|one| looked_at.entry.may_offer(&one.entry_point));
    let not_allowed = not_allowed.iter().map(|one| {
        let (id, name) = (&one.entry_point, &looked_at.entry.name);
        format!("{id}: `service.programs.{name}.toolboxes` does not name it")
    });
    let problems = bad
        .iter()
        .filter_map(|one| Some(format!("{}: {}", one.entry_point, one.problem.as_ref()?)));
    PythonStatus {
        program: looked_at.entry.name.clone(),
        interpreter: interpreter.map(|interpreter| interpreter.path.display().to_string()),
        version: interpreter.map(|interpreter| interpreter.version.clone()),
        toolboxes: hosted
            .iter()
            .map(|one| format!("{} ({} {})", one.entry_point, one.distribution, one.version))
            .collect(),
        left_out: problems
            .chain(not_allowed)
            .chain(found.passed_over.iter().cloned())
            .collect(),
    }
}
