//! Every dependency is under a licence that deny.toml allows.
//!
//! `cargo deny check licenses` reads the licence texts too; this reads what the manifests declare, needs nothing
//! installed, and so runs everywhere.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;

const DENY: &str = include_str!("../../deny.toml");

#[test]
fn every_dependency_has_an_allowed_licence() {
    let allowed = list("allow");
    let exceptions = exceptions();
    let mut refused = BTreeSet::new();
    let packages = metadata();
    for package in packages.as_array().unwrap() {
        let licence = package["license"].as_str().unwrap_or("none declared");
        let name = package["name"].as_str().unwrap();
        let excepted = exceptions
            .iter()
            .any(|(of, also)| of == name && satisfied(licence, also));
        if !satisfied(licence, &allowed) && !excepted {
            refused.insert(format!("{name} {}: {licence}", package["version"]));
        }
    }
    assert!(
        packages.as_array().unwrap().len() > 50,
        "cargo metadata named next to nothing"
    );
    assert!(
        refused.is_empty(),
        "not allowed by deny.toml (use another crate, or add an exception with its reason): {refused:#?}"
    );
}

#[test]
fn a_licence_expression_is_satisfied_by_any_allowed_choice() {
    let allowed: Vec<String> = ["MIT", "Apache-2.0", "Unicode-3.0"].map(String::from).to_vec();
    for (expression, expected) in [
        ("MIT", true),
        ("AGPL-3.0-only", false),
        ("MIT OR AGPL-3.0-only", true),
        ("GPL-2.0-only OR AGPL-3.0-only", false),
        ("MIT/Apache-2.0", true),
        ("GPL-2.0/MIT", true),
        ("MIT AND AGPL-3.0-only", false),
        ("(MIT OR GPL-2.0-only) AND Unicode-3.0", true),
        ("(MIT OR GPL-2.0-only) AND ISC", false),
        ("ISC AND MIT OR Apache-2.0", true),
        ("Apache-2.0 WITH LLVM-exception", false),
        ("Apache-2.0 WITH LLVM-exception OR MIT", true),
        ("none declared", false),
        ("", false),
    ] {
        assert_eq!(satisfied(expression, &allowed), expected, "{expression}");
    }
}

/// The dependencies on all supported systems, including those for development.
fn metadata() -> Value {
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .args(["metadata", "--format-version", "1", "--locked"])
        .current_dir(env!("CARGO_MANIFEST_DIR"));
    for target in list("targets") {
        cargo.args(["--filter-platform", &target]);
    }
    let out = cargo.output().unwrap();
    assert!(
        out.status.success(),
        "cargo metadata: {}",
        String::from_utf8_lossy(&out.stderr)
    );
    serde_json::from_slice::<Value>(&out.stdout).unwrap()["packages"].take()
}

/// The texts of `key = [...]` in deny.toml.
fn list(key: &str) -> Vec<String> {
    let start = DENY
        .find(&format!("\n{key} = ["))
        .unwrap_or_else(|| panic!("deny.toml has no `{key}`"));
    let body = &DENY[start..];
    body[..body.find(']').unwrap()]
        .lines()
        .filter(|l| !l.trim_start().starts_with('#'))
        .flat_map(quoted)
        .collect()
}

/// The lines `{ crate = "NAME", allow = ["LICENCE", ...] },` of deny.toml.
fn exceptions() -> Vec<(String, Vec<String>)> {
    let lines = DENY
        .lines()
        .filter(|line| line.trim_start().starts_with("{ crate"));
    lines
        .map(quoted)
        .map(|mut texts| (texts.remove(0), texts))
        .collect()
}

fn quoted(line: &str) -> Vec<String> {
    line.split('"').skip(1).step_by(2).map(String::from).collect()
}

/// Whether the allowed licences satisfy the SPDX expression. `/` is the old way to write OR.
fn satisfied(expression: &str, allowed: &[String]) -> bool {
    let spaced = expression
        .replace('(', " ( ")
        .replace(')', " ) ")
        .replace('/', " OR ");
    let tokens: Vec<_> = spaced.split_whitespace().collect();
    let mut rest = &tokens[..];
    either(&mut rest, allowed) && rest.is_empty()
}

fn either(tokens: &mut &[&str], allowed: &[String]) -> bool {
    let mut met = both(tokens, allowed);
    while take(tokens, "OR") {
        // Not `||`: the right side has to be read either way.
        met |= both(tokens, allowed);
    }
    met
}

fn both(tokens: &mut &[&str], allowed: &[String]) -> bool {
    let mut met = one(tokens, allowed);
    while take(tokens, "AND") {
        met &= one(tokens, allowed);
    }
    met
}

fn one(tokens: &mut &[&str], allowed: &[String]) -> bool {
    if take(tokens, "(") {
        let met = either(tokens, allowed);
        return take(tokens, ")") && met;
    }
    let Some((licence, rest)) = tokens.split_first() else {
        return false;
    };
    *tokens = rest;
    let mut licence = (*licence).to_owned();
    if take(tokens, "WITH") {
        let Some((exception, rest)) = tokens.split_first() else {
            return false;
        };
        *tokens = rest;
        licence = format!("{licence} WITH {exception}");
    }
    allowed.contains(&licence)
}

fn take(tokens: &mut &[&str], token: &str) -> bool {
    let found = tokens.first() == Some(&token);
    if found {
        *tokens = &tokens[1..];
    }
    found
}
