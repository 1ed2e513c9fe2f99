//! What the configuration names and nothing is called: sections, tools in `allow` and `deny`, patterns of rules and doors.
//!
//! Compares a configuration with what is installed. Read [`unused`].

use std::collections::BTreeSet;

use super::admission;
use config::{Config, Inventory, OURS, Rule, Section, ToolFilter, nearest, suggestion};
use host::Live;

/// What the configuration names, and nothing on this machine has.
pub(super) fn unused(live: &Live, config: &Config) -> Vec<String> {
    let wrong = config.section_errors().map(|(id, error)| wrong(id, error));
    let mut found: Vec<String> = wrong.collect();
    let loaded = live.toolboxes.iter();
    let kept_on = loaded.filter_map(|toolbox| admission::kept_on(config, &toolbox.manifest, &toolbox.path));
    found.extend(kept_on);
    if live.starting.is_empty() {
        let (installed, unchecked) = installed(live, config);
        found.extend(warnings(config, &installed, &unchecked));
    }
    found
}

/// What is installed, for the warnings, and the keys of sections that no schema knows.
fn installed(live: &Live, config: &Config) -> (Inventory, Vec<(String, String)>) {
    let mut ids: BTreeSet<String> = live.known.iter().cloned().collect();
    ids.extend(live.toolboxes.iter().map(|toolbox| toolbox.id.to_string()));
    ids.extend(live.failed.iter().filter_map(|failed| failed.toolbox_id.clone()));
    ids.extend(config.mounts.keys().cloned());
    let names = live.toolboxes.iter().flat_map(|toolbox| {
        let tools = toolbox.tools.tools.iter();
        tools.map(|tool| (toolbox.id.to_string(), tool.definition.name.clone()))
    });
    let unchecked = live.toolboxes.iter().flat_map(|toolbox| {
        let properties = toolbox.manifest.config_schema.as_ref();
        let properties = properties.and_then(|schema| schema.get("properties")?.as_object());
        let written = config
            .toolboxes
            .get(&*toolbox.id)
            .and_then(|section| section.as_ref().ok());
        let keys = written.into_iter().flat_map(|section| section.toolbox.own.keys());
        let unknown =
            keys.filter(move |key| properties.is_none_or(|properties| !properties.contains_key(*key)));
        unknown.map(|key| (toolbox.id.to_string(), key.clone()))
    });
    let tools = names.collect();
    (Inventory { ids, tools }, unchecked.collect())
}

/// Names everything that means nothing, with the nearest name that would.
/// `unchecked` are the keys of the sections of toolboxes whose schema accepts any: toolbox and key.
fn warnings(config: &Config, installed: &Inventory, unchecked: &[(String, String)]) -> Vec<String> {
    let mut found = Vec::new();
    for (id, section) in &config.toolboxes {
        let Ok(section) = section else { continue };
        sections(id, section, installed, unchecked, &mut found);
    }
    for (at, rule) in (1..).zip(&config.service.policy) {
        let place = format!("rule {at} of service.policy");
        for pattern in rule.tools.iter().flatten() {
            let one = Rule {
                tools: Some(vec![pattern.clone()]),
                ..rule.clone()
            };
            found.extend(installed.tool_unmatched(&place, pattern, |id, tool| one.names(id, tool)));
        }
    }
    for (door, toolset) in config.doors.toolsets() {
        found.extend(installed.toolset_unmatched(door, toolset));
    }
    found
}

fn sections(
    id: &str,
    section: &Section,
    installed: &Inventory,
    unchecked: &[(String, String)],
    found: &mut Vec<String>,
) {
    if !installed.ids.contains(id) {
        // What is switched off may well be away.
        if section.toolbox.enabled {
            let near = suggestion(id, installed.ids.iter().cloned());
            found.push(format!("section `{id}` matches no installed toolbox{near}"));
        }
        return;
    }
    let host_keys = ["enabled", "limits", "confine", "tools", "allow_sha256", "env"];
    for (_, key) in unchecked.iter().filter(|(owner, _)| owner == id) {
        if let Some(near) = nearest(key, host_keys.map(str::to_owned)) {
            found.push(format!(
                "section `{id}`: the toolbox does not say what `{key}` is; did you mean `{near}`?"
            ));
        }
    }
    if !installed.lists(id) {
        return;
    }
    let own = || installed.tools.iter().filter(|(owner, _)| owner == id);
    for (key, pattern) in section.tools.patterns() {
        let one = ToolFilter::only(pattern);
        if !own().any(|(_, tool)| one.permits(tool)) {
            let near = suggestion(pattern, own().map(|(_, tool)| tool.clone()));
            found.push(format!(
                "section `{id}`: tools.{key}: `{pattern}` matches none of its tools{near}"
            ));
        }
    }
}

/// The warning about a section that the service cannot use at all.
pub(super) fn wrong(id: &str, error: &config::ConfigErrors) -> String {
    format!("PHAL.{OURS}.{id}: {error}; toolbox `{id}` is not loaded with it")
}
