//! The names of exported tools, and how a call by such a name is resolved.
//!
//! Vendors accept `[a-zA-Z0-9_-]{1,64}`; one rule serves all formats, so that a tool has one name. In order:
//!
//! 1. the tool's own name, when only one toolbox owns it;
//! 2. the alias `<toolbox_id>__<name>`, when several do;
//! 3. if that is too long, has other characters or equals another tool's name, the portable name: the alias
//!    with `_` for every other character, cut, and 8 hexadecimal digits that belong to this tool alone.
//!
//! All three depend only on the toolbox id and the name. A service that indexes every tool by its name, its alias and
//! its [`portable_name`] therefore resolves an exported name even after other toolboxes were added or removed.

use std::collections::HashMap;

use sha2::{Digest, Sha256};

/// Longest name that all vendors accept, in characters.
pub const MAX_NAME: usize = 64;

/// Whether every vendor accepts the name unchanged.
#[must_use]
pub fn is_portable(name: &str) -> bool {
    (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(is_portable_byte)
}

/// Returns the exported names of all live tools, in the order given: pairs of toolbox id and name.
///
/// Pass all tools, including those that are not exported: a name that is ambiguous for `invoke` must be so here. The
/// result has no duplicates unless a pair was given twice.
#[must_use]
pub fn exported_names<'a>(tools: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<String> {
    let tools: Vec<(&str, &str)> = tools.into_iter().collect();
    let mut owners: HashMap<&str, usize> = HashMap::new();
    for (_, name) in &tools {
        *owners.entry(name).or_default() += 1;
    }
    let wanted: Vec<String> = tools
        .iter()
        .map(|&(toolbox_id, name)| {
            if owners[name] == 1 {
                name.to_owned()
            } else {
                alias(toolbox_id, name)
            }
        })
        .collect();
    let mut takers: HashMap<&str, usize> = HashMap::new();
    for name in &wanted {
        *takers.entry(name).or_default() += 1;
    }
    tools
        .iter()
        .zip(&wanted)
        .map(|(&(toolbox_id, name), wanted)| {
            // `invoke` resolves an alias that is also a tool's plain name to that tool, even if an export lists that tool under
            // another name.
            let shadowed = wanted != name && owners.contains_key(wanted.as_str());
            if is_portable(wanted) && takers[wanted.as_str()] == 1 && !shadowed {
                wanted.clone()
            } else {
                portable_name(toolbox_id, name)
            }
        })
        .collect()
}

/// Returns the fallback name, which every vendor accepts and no other tool has.
#[must_use]
pub fn portable_name(toolbox_id: &str, name: &str) -> String {
    let mut digest = Sha256::new();
    digest.update(toolbox_id.as_bytes());
    // A toolbox id has no zero byte, so (`a`, `b__c`) and (`a__b`, `c`) differ.
    digest.update([0]);
    digest.update(name.as_bytes());
    let digest = digest.finalize();
    let mut portable: String = alias(toolbox_id, name)
        .chars()
        .map(|c| {
            if u8::try_from(c).is_ok_and(is_portable_byte) {
                c
            } else {
                '_'
            }
        })
        .take(MAX_NAME - 9)
        .collect();
    portable.push('_');
    for byte in digest.iter().take(4) {
        portable.push_str(&format!("{byte:02x}"));
    }
    portable
}

fn alias(toolbox_id: &str, name: &str) -> String {
    format!("{toolbox_id}__{name}")
}

fn is_portable_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(tools: &[(&str, &str)], expected: &[&str]) {
        let names = exported_names(tools.iter().copied());
        assert_eq!(names, expected, "{tools:?}");
        assert!(names.iter().all(|name| is_portable(name)), "{names:?}");
    }

    #[test]
    fn names_are_unique_and_portable() {
        check(&[("math", "add"), ("arm", "wave")], &["add", "wave"]);
        check(&[("math", "add"), ("sums", "add")], &["math__add", "sums__add"]);
        check(&[("math", "add.two")], &["math__add_two_85cb2e8f"]);
        // Two tools with the same alias, and an alias that equals another tool's name.
        check(
            &[("a", "b__c"), ("a__b", "c"), ("x", "b__c"), ("x", "c")],
            &["a__b__c_01b8a75b", "a__b__c_a92700ce", "x__b__c", "x__c"],
        );
        check(
            &[("a", "b"), ("c", "b"), ("d", "a__b")],
            &["a__b_59b271ae", "c__b", "d__a__b_029eeb3f"],
        );
        let long = "n".repeat(70);
        let names = exported_names([("box", long.as_str())]);
        assert_eq!(names[0].len(), MAX_NAME);
        assert_eq!(names[0], portable_name("box", &long));
        assert!(is_portable(&portable_name("box", "größe")) && !is_portable("größe") && !is_portable(""));
    }
}
