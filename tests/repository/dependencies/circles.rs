//! The modules of a crate that use each other in a circle. Read [`in_circles`].

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::sources::{code, collect};

/// For each module, where the names come from that it imports.
type Imports = BTreeMap<String, BTreeMap<String, Vec<String>>>;

/// The modules of a crate that use each other in a circle. What a module only imports is used where it is defined.
pub(super) fn in_circles(src: &Path) -> Vec<String> {
    let mut files = Vec::new();
    collect(src, &mut files);
    let module = |file: &PathBuf| {
        let name = file.strip_prefix(src).expect("a file of src").with_extension("");
        let code = code(file);
        let code = code.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        (name.to_string_lossy().replace('/', "::"), code.to_owned())
    };
    let modules: BTreeMap<String, String> = files.iter().map(module).collect();
    let imports = modules
        .iter()
        .map(|(own, code)| (own.clone(), imports(code, own)));
    let imports: Imports = imports.collect();
    let is_program = !modules.contains_key("lib");
    let root = |own: &str| {
        if is_program || own == "main" {
            "main"
        } else {
            "lib"
        }
        .to_owned()
    };
    let used = |(own, code): (&String, &String)| {
        let used = paths(code).into_iter().map(|path| end_of(&path, own, &imports));
        let used = used.map(|used| if used.is_empty() { root(own) } else { used });
        (own.clone(), used.filter(|used| used != own).collect())
    };
    let uses: BTreeMap<String, BTreeSet<String>> = modules.iter().map(used).collect();
    let reaches_itself = |name: &&String| {
        let (mut reached, mut next) = (BTreeSet::new(), uses[*name].clone());
        while let Some(one) = next.pop_first() {
            if reached.insert(one.clone()) {
                next.extend(uses[&one].iter().cloned());
            }
        }
        reached.contains(*name)
    };
    uses.keys().filter(reaches_itself).cloned().collect()
}

/// The paths in code, each member of a group as a path of its own.
pub(super) fn paths(code: &str) -> Vec<Vec<&str>> {
    let (mut found, mut rest) = (Vec::new(), code);
    while let Some(at) = rest.find(is_word) {
        rest = path(&rest[at..], &[], &mut found);
    }
    found.retain(|path| path.len() > 1);
    found
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Reads the path at the start of a text, and returns the rest of the text.
fn path<'a>(text: &'a str, before: &[&'a str], found: &mut Vec<Vec<&'a str>>) -> &'a str {
    let (word, rest) = text.split_at(text.find(|c| !is_word(c)).unwrap_or(text.len()));
    let here = [before, &[word]].concat();
    let Some(more) = rest
        .strip_prefix("::")
        .filter(|more| more.starts_with(is_word) || more.starts_with('{'))
    else {
        found.push(here);
        return rest;
    };
    let Some(mut group) = more.strip_prefix('{') else {
        return path(more, &here, found);
    };
    while let Some(at) = group.find(|c| is_word(c) || c == '}') {
        match group[at..].strip_prefix('}') {
            Some(rest) => return rest,
            None => group = path(&group[at..], &here, found),
        }
    }
    group
}

/// What the `use` items of a module make known there: each name, and its path from the root of the crate.
fn imports(code: &str, own: &str) -> BTreeMap<String, Vec<String>> {
    let items = code
        .split(';')
        .filter_map(|item| Some(item.rsplit_once("\nuse ").or(item.rsplit_once(" use "))?.1));
    let (renamed, plain): (Vec<&str>, Vec<&str>) = items.partition(|item| item.contains(" as "));
    let renamed = renamed.iter().filter_map(|item| item.split_once(" as "));
    let renamed = renamed.map(|(path, name)| (name.trim(), path.trim().split("::").collect::<Vec<_>>()));
    let plain = plain.into_iter().flat_map(paths);
    let plain = plain.map(|path| (path[path.len() - 1], path));
    let imports_of = plain.chain(renamed).map(|(name, path)| {
        let from_root = from_root(&path, own).into_iter().map(str::to_owned);
        (name.to_owned(), from_root.collect::<Vec<String>>())
    });
    // A module inside the root, such as a prelude, hands on what the root hands on.
    let imports_of = imports_of.filter(|(name, path)| path[..] != [name.as_str()]);
    imports_of.collect()
}

/// A path as it is from the root of the crate, seen from the module `own`.
fn from_root<'a>(path: &[&'a str], own: &'a str) -> Vec<&'a str> {
    let own: Vec<&str> = match own {
        "lib" | "main" => Vec::new(),
        own => own.split("::").collect(),
    };
    let up = path.iter().take_while(|word| **word == "super").count();
    match path[0] {
        "crate" => path[1..].to_vec(),
        "self" => [&own, &path[1..]].concat(),
        _ => [&own[..own.len().saturating_sub(up)], &path[up..]].concat(),
    }
}

/// The module that defines what a path names, seen from the module `own`; empty for the root and for other crates.
fn end_of(path: &[&str], own: &str, imports: &Imports) -> String {
    let path = from_root(path, own).into_iter().map(str::to_owned);
    let mut path: Vec<String> = path.collect();
    // Each turn follows one import.
    for turn in 0..8 {
        let mut module = path.clone();
        while !module.is_empty() && !imports.contains_key(&module.join("::")) {
            module.pop();
        }
        let module_imports = match module[..] {
            [] => imports.get("lib").or_else(|| imports.get("main")),
            _ => imports.get(&module.join("::")),
        };
        let target = path.get(module.len()).and_then(|name| module_imports?.get(name));
        match target.filter(|target| !path.starts_with(target)) {
            // Of another crate, whose name the root of this one only hands on.
            None if module.is_empty() && turn > 0 => return own.to_owned(),
            None => return module.join("::"),
            Some(target) => path.splice(..=module.len(), target.iter().cloned()),
        };
    }
    panic!("{own}: more than 8 imports lead to {path:?}")
}
