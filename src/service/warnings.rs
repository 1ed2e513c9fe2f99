//! What the configuration names and nothing is called: sections, tools in `allow` and `deny`, patterns of rules and doors.
//!
//! Pure: compares a configuration with what is installed. Read [`warnings`].

use config::{Config, Inventory, OURS, Rule, Section, ToolFilter, nearest, suggestion};

/// Names everything that means nothing, with the nearest name that would.
/// `unchecked` are the keys of the sections of toolboxes whose schema accepts any: toolbox and key.
pub(super) fn warnings(
    config: &Config,
    installed: &Inventory,
    unchecked: &[(String, String)],
) -> Vec<String> {
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
    let doors = &config.doors;
    for (door, toolset) in [
        ("agent", &doors.agent.toolset),
        ("mcp", &doors.mcp.toolset),
        ("voice", &doors.voice.toolset),
    ] {
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
