//! Tools that count as `write` because no author states their effect, and the key of the configuration that does.
//!
//! Python toolboxes and mounted servers say nothing of it that the service could believe. Pure; read [`unstated`].

use ovos_toolbox_wire::{Effect, ToolDefinition};

use config::Config;

/// The key of the configuration that states the effect of a tool which nothing states; `None` where something does.
pub(super) fn unstated(config: &Config, toolbox_id: &str, tool: &ToolDefinition) -> Option<String> {
    if tool.effect != Effect::Write {
        return None;
    }
    if let Some(mount) = config.mounts.get(toolbox_id) {
        let mount = mount.as_ref().ok()?;
        let stated = mount.effects.keys().any(|name| name == &tool.name);
        return (!stated).then(|| format!("service.mounts.{toolbox_id}.effects"));
    }
    // Only the host of the published Python toolboxes has tools that validate by themselves.
    if !tool.validates {
        return None;
    }
    let section = config.toolbox(toolbox_id).ok()?;
    let effects = section.toolbox.own.get("effects");
    let stated = effects.is_some_and(|effects| effects.get(&tool.name).is_some());
    (!stated).then(|| format!("PHAL.\"ovos-phal-plugin-tools\".\"{toolbox_id}\".effects"))
}

/// What a person reads who is asked about such a tool.
pub(super) fn note(key: &str, tool: &str) -> String {
    format!(
        "the effect of `{tool}` is not declared, so it counts as `write`; if it only reads, set `\"{tool}\": \"read\"` in `{key}`"
    )
}
