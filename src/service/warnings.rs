//! What the configuration names and nothing is called: sections, tools in `allow` and `deny`, patterns of rules and doors.
//!
//! Pure: compares a configuration with what is installed. Read [`warnings`].

use std::collections::BTreeSet;

use ovos_toolbox_wire::Effect;

use config::{Config, OURS, Rule, Section, ToolFilter, Toolset, nearest};

/// What is installed.
#[derive(Debug, Default)]
pub(super) struct Installed {
    /// The ids of all toolboxes, loaded or not.
    pub(super) ids: BTreeSet<String>,
    /// All tools of the toolboxes that list some, hidden ones included, with their toolbox.
    pub(super) tools: Vec<(String, String)>,
    /// The keys of the sections of toolboxes whose schema accepts any: toolbox and key.
    pub(super) unchecked: Vec<(String, String)>,
}

impl Installed {
    fn lists(&self, id: &str) -> bool {
        self.tools.iter().any(|(owner, _)| owner == id)
    }
}

/// Names everything that means nothing, with the nearest name that would.
pub(super) fn warnings(config: &Config, installed: &Installed) -> Vec<String> {
    let mut found = Vec::new();
    for (id, section) in &config.toolboxes {
        let Ok(section) = section else { continue };
        sections(id, section, installed, &mut found);
    }
    for (at, rule) in (1..).zip(&config.service.policy) {
        let place = format!("rule {at} of service.policy");
        for pattern in rule.tools.iter().flatten() {
            let one = Rule {
                tools: Some(vec![pattern.clone()]),
                ..rule.clone()
            };
            tools(
                &place,
                pattern,
                installed,
                |id, tool| one.names(id, tool),
                &mut found,
            );
        }
    }
    let doors = &config.doors;
    for (door, toolset) in [
        ("agent", &doors.agent.toolset),
        ("mcp", &doors.mcp.toolset),
        ("voice", &doors.voice.toolset),
    ] {
        of_door(door, toolset, installed, &mut found);
    }
    found
}

fn sections(id: &str, section: &Section, installed: &Installed, found: &mut Vec<String>) {
    if !installed.ids.contains(id) {
        // What is switched off may well be away.
        if section.toolbox.enabled {
            let near = suggestion(id, installed.ids.iter().cloned());
            found.push(format!(
                "section `{id}` belongs to no toolbox that is installed{near}"
            ));
        }
        return;
    }
    let host_keys = ["enabled", "limits", "confine", "tools", "allow_sha256", "env"];
    for (_, key) in installed.unchecked.iter().filter(|(owner, _)| owner == id) {
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
    for (key, pattern) in patterns(&section.tools) {
        if !own().any(|(_, tool)| matched(pattern, tool)) {
            let near = suggestion(pattern, own().map(|(_, tool)| tool.clone()));
            found.push(format!(
                "section `{id}`: tools.{key}: `{pattern}` matches none of its tools{near}"
            ));
        }
    }
}

fn of_door(door: &str, toolset: &Toolset, installed: &Installed, found: &mut Vec<String>) {
    for (key, pattern) in patterns(&toolset.tools) {
        let place = format!("service.doors.{door}.tools.{key}");
        let one = Toolset {
            tools: only(pattern),
            ..Toolset::default()
        };
        let matches = |id: &str, tool: &str| one.permits(tool, id, Effect::Read);
        tools(&place, pattern, installed, matches, found);
    }
    for (key, pattern) in patterns(&toolset.toolboxes) {
        if !installed.ids.iter().any(|id| matched(pattern, id)) {
            let near = suggestion(pattern, installed.ids.iter().cloned());
            found.push(format!(
                "service.doors.{door}.toolboxes.{key}: `{pattern}` matches no toolbox that is installed{near}"
            ));
        }
    }
}

/// Warns of a pattern for tools of any toolbox that matches none.
fn tools(
    place: &str,
    pattern: &str,
    installed: &Installed,
    matches: impl Fn(&str, &str) -> bool,
    found: &mut Vec<String>,
) {
    // The tools of a toolbox that is off or down are not known.
    let unknown = installed.ids.iter().filter(|id| !installed.lists(id));
    let mut unknown = unknown.map(|id| format!("{id}__"));
    let may_match = unknown.any(|prefix| pattern.starts_with(&prefix));
    if may_match || installed.tools.iter().any(|(id, tool)| matches(id, tool)) {
        return;
    }
    let names = installed.tools.iter();
    let near = if pattern.contains("__") {
        suggestion(pattern, names.map(|(id, tool)| format!("{id}__{tool}")))
    } else {
        suggestion(pattern, names.map(|(_, tool)| tool.clone()))
    };
    found.push(format!(
        "{place}: `{pattern}` matches no tool that is loaded{near}"
    ));
}

fn patterns(filter: &ToolFilter) -> impl Iterator<Item = (&'static str, &String)> {
    let allow = filter.allow.iter().flatten().map(|pattern| ("allow", pattern));
    allow.chain(filter.deny.iter().map(|pattern| ("deny", pattern)))
}

fn only(pattern: &str) -> ToolFilter {
    ToolFilter {
        allow: Some(vec![pattern.to_owned()]),
        deny: Vec::new(),
    }
}

fn matched(pattern: &str, name: &str) -> bool {
    only(pattern).permits(name)
}

fn suggestion(written: &str, names: impl Iterator<Item = String>) -> String {
    let near = nearest(written, names);
    near.map(|name| format!("; did you mean `{name}`?"))
        .unwrap_or_default()
}

/// The warning about a section that the service cannot use at all.
pub(super) fn wrong(id: &str, error: &config::ConfigErrors) -> String {
    format!("PHAL.{OURS}.{id}: {error}; toolbox `{id}` is not loaded with it")
}
