//! Patterns for names of tools and callers, in which `*` is allowed. `tools.allow` and the rules of the policy use them.

/// Whether `name` matches `pattern`; `*` matches any run of characters.
pub(super) fn matches(pattern: &str, name: &str) -> bool {
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
