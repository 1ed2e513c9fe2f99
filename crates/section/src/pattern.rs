//! Patterns for names of tools and callers, in which `*` is allowed. `tools.allow`, the rules of the policy and the toolsets of
//! doors use them.

/// The separator between the toolbox id and the tool's name.
const SEPARATOR: &str = "__";

/// Whether a pattern names this tool of this toolbox.
///
/// With `__` it is a pattern for toolboxes and one for their tools, which are matched apart: a toolbox chooses the names of its
/// tools, and `robot__*` names no tool `robot__wave` of another one. Without `__` it is a pattern for the names of tools alone.
pub fn names_tool(pattern: &str, toolbox_id: &str, tool: &str) -> bool {
    let places =
        (0..pattern.len()).filter(|&at| pattern.get(at..).is_some_and(|rest| rest.starts_with(SEPARATOR)));
    let mut apart = places
        .map(|at| (&pattern[..at], &pattern[at + SEPARATOR.len()..]))
        .peekable();
    if apart.peek().is_none() {
        return matches(pattern, tool);
    }
    apart.any(|(of_toolbox, of_tool)| matches(of_toolbox, toolbox_id) && matches(of_tool, tool))
}

/// Whether `name` matches `pattern`; `*` matches any run of characters.
pub fn matches(pattern: &str, name: &str) -> bool {
    let Some((prefix, mut patterns)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(mut rest) = name.strip_prefix(prefix) else {
        return false;
    };
    while let Some((middle, tail)) = patterns.split_once('*') {
        let Some(at) = rest.find(middle) else { return false };
        rest = &rest[at + middle.len()..];
        patterns = tail;
    }
    rest.ends_with(patterns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_matched_against_toolbox_and_tool() {
        for (pattern, toolbox_id, tool, expected) in [
            ("robot__wave", "robot", "wave", true),
            ("robot__wave", "mount", "robot__wave", false),
            ("robot__*", "robot", "wave", true),
            ("robot__*", "mount", "robot__wave", false),
            ("robot__*", "robot", "robot__wave", true),
            ("*__wave", "robot", "wave", true),
            ("*__wave", "mount", "robot__wave", false),
            ("*__*", "mount", "robot__wave", true),
            ("mount__robot__wave", "mount", "robot__wave", true),
            ("mount__*", "mount", "robot__wave", true),
            ("r*t__w*", "robot", "wave", true),
            ("r*t__w*", "mount", "robot__wave", false),
            ("wave", "robot", "wave", true),
            ("wave", "mount", "robot__wave", false),
            ("w*e", "robot", "wave", true),
            ("robot*", "robot", "wave", false),
            ("robot*", "mount", "robot_wave", true),
            ("robot*", "mount", "wave", false),
            ("*", "mount", "robot__wave", true),
            ("a___b", "a", "_b", true),
            ("a___b", "a_", "b", true),
            ("Robot__*", "robot", "wave", false),
            ("größe__*", "robot", "wave", false),
            ("__*", "robot", "wave", false),
        ] {
            let found = names_tool(pattern, toolbox_id, tool);
            assert_eq!(found, expected, "{pattern} {toolbox_id} {tool}");
        }
    }
}
