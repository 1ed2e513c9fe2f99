//! Patterns that match nothing of what is installed, with the nearest name that would. Pure: read [`Inventory`].

use std::collections::BTreeSet;

use ovos_toolbox_wire::Effect;

use crate::doors::Toolset;
use crate::reader::nearest;
use crate::toolbox::ToolFilter;

/// What is installed.
#[derive(Debug, Default)]
pub struct Inventory {
    /// The ids of all toolboxes, loaded or not.
    pub ids: BTreeSet<String>,
    /// All tools of the toolboxes that list some, with their toolbox: id and name.
    pub tools: Vec<(String, String)>,
}

impl Inventory {
    /// Whether the tools of a toolbox are known.
    #[must_use]
    pub fn lists(&self, id: &str) -> bool {
        self.tools.iter().any(|(owner, _)| owner == id)
    }

    /// The warning about a pattern for tools of any toolbox that matches none; `matches` says of a toolbox and its tool whether it
    /// does, and `place` where it is written.
    #[must_use]
    pub fn tool_unmatched(
        &self,
        place: &str,
        pattern: &str,
        matches: impl Fn(&str, &str) -> bool,
    ) -> Option<String> {
        // The tools of a toolbox that is off or down are not known.
        let unknown = self.ids.iter().filter(|id| !self.lists(id));
        let mut unknown = unknown.map(|id| format!("{id}__"));
        let may_match = unknown.any(|prefix| pattern.starts_with(&prefix));
        if may_match || self.tools.iter().any(|(id, tool)| matches(id, tool)) {
            return None;
        }
        let names = self.tools.iter();
        let near = if pattern.contains("__") {
            suggestion(pattern, names.map(|(id, tool)| format!("{id}__{tool}")))
        } else {
            suggestion(pattern, names.map(|(_, tool)| tool.clone()))
        };
        Some(format!("{place}: `{pattern}` matches no loaded tool{near}"))
    }

    /// The warnings about the toolset of a door.
    #[must_use]
    pub fn toolset_unmatched(&self, door: &str, toolset: &Toolset) -> Vec<String> {
        let tools = toolset.tools.patterns().filter_map(|(key, pattern)| {
            let place = format!("service.doors.{door}.tools.{key}");
            let one = Toolset {
                tools: ToolFilter::only(pattern),
                ..Toolset::default()
            };
            self.tool_unmatched(&place, pattern, |id, tool| one.permits(tool, id, Effect::Read))
        });
        let toolboxes = toolset.toolboxes.patterns().filter_map(|(key, pattern)| {
            let one = ToolFilter::only(pattern);
            if self.ids.iter().any(|id| one.permits(id)) {
                return None;
            }
            let near = suggestion(pattern, self.ids.iter().cloned());
            Some(format!(
                "service.doors.{door}.toolboxes.{key}: `{pattern}` matches no toolbox that is installed{near}"
            ))
        });
        tools.chain(toolboxes).collect()
    }
}

impl ToolFilter {
    /// The filter that permits what one pattern matches.
    #[must_use]
    pub fn only(pattern: &str) -> Self {
        Self {
            allow: Some(vec![pattern.to_owned()]),
            deny: Vec::new(),
        }
    }

    /// All patterns, each with its key.
    pub fn patterns(&self) -> impl Iterator<Item = (&'static str, &String)> {
        let allow = self.allow.iter().flatten().map(|pattern| ("allow", pattern));
        allow.chain(self.deny.iter().map(|pattern| ("deny", pattern)))
    }
}

/// The end of a warning about a name: the known one that was meant, if there is one.
#[must_use]
pub fn suggestion(written: &str, known: impl Iterator<Item = String>) -> String {
    let near = nearest(written, known);
    near.map(|name| format!("; did you mean `{name}`?"))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_of_a_toolset_that_matches_nothing_is_named_with_the_nearest_name() {
        let own = |text: &str| text.to_owned();
        let installed = Inventory {
            ids: ["robot", "math", "camera"].map(own).into(),
            tools: vec![(own("robot"), own("wave")), (own("math"), own("add"))],
        };
        for (key, pattern, expected) in [
            ("tools", "wave", None),
            ("tools", "w*", None),
            ("tools", "robot__*", None),
            (
                "tools",
                "wawe",
                Some("`wawe` matches no loaded tool; did you mean `wave`?"),
            ),
            (
                "tools",
                "robot__wav",
                Some("`robot__wav` matches no loaded tool; did you mean `robot__wave`?"),
            ),
            ("tools", "joint_*", Some("`joint_*` matches no loaded tool")),
            // Its tools are not known.
            ("tools", "camera__shoot", None),
            ("toolboxes", "camera", None),
            ("toolboxes", "ro*", None),
            (
                "toolboxes",
                "robt",
                Some("`robt` matches no toolbox that is installed; did you mean `robot`?"),
            ),
        ] {
            for in_deny in [false, true] {
                let filter = if in_deny {
                    ToolFilter {
                        allow: None,
                        deny: vec![own(pattern)],
                    }
                } else {
                    ToolFilter::only(pattern)
                };
                let mut toolset = Toolset::default();
                if key == "tools" {
                    toolset.tools = filter;
                } else {
                    toolset.toolboxes = filter;
                }
                let place = format!(
                    "service.doors.mcp.{key}.{}",
                    if in_deny { "deny" } else { "allow" }
                );
                let expected = expected.map(|text| format!("{place}: {text}"));
                let warnings = installed.toolset_unmatched("mcp", &toolset);
                assert_eq!(warnings, Vec::from_iter(expected), "{key} {pattern}");
            }
        }
    }
}
