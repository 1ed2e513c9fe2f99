//! What the tree still has of what it wants none of, written down. The lists only shrink: what is not in them is refused, and so is
//! an entry for what is gone.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::circles::{in_circles, paths};
use super::sources::{code, collect};
use super::{folders, root};

/// The modules of a crate that use each other in circles.
const CIRCLES: &[(&str, &[&str])] = &[];

/// Types whose name is a bare participle or adverb, by the folder of their crate. A type is a noun of its field.
const BARE_NAMES: &[(&str, &[&str])] = &[];

/// Words that say that something was told, and not what: a value or a function has the noun of what it is (`answer`, `message`).
const RIDDLES: [&str; 4] = ["told", "said", "heard", "came"];

/// How many files use a type or a constant of the module around them, where a file beside them would do.
const ARROWS_UP: &[(&str, usize)] = &[];

/// The names that say nothing alone.
const BARE: &str = "Came Said Told Heard Asked Asking Known Found Ended Written Read Sent Given Taken Held Kept Left Gone Done Made Met \
    Seen Shown Without Usual Unasked Admitted Claimed Listed Named Entered Opened Closed Started Waiting Passed Carried Come Begun \
    Beginnings Looked Wanted Needed Stated Answered Unanswered Exited Chosen Meant Owed Due Late Gathered Counted Measured Placed";

/// The folders of all crates, and `.` for the service.
fn crates() -> Vec<String> {
    let mut crates = vec![".".to_owned()];
    for place in ["crates", "doors", "examples", "programs", "sims", "toolboxes"] {
        crates.extend(folders(place).iter().map(|name| format!("{place}/{name}")));
    }
    crates.retain(|name| root().join(name).join("src").is_dir());
    assert!(crates.len() > 15, "only {crates:?} were found");
    crates
}

/// The code of a crate that ships, file by file.
fn shipped(name: &str) -> Vec<(PathBuf, String)> {
    let mut files = Vec::new();
    collect(&root().join(name).join("src"), &mut files);
    files.retain(|file| {
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        stem != "tests" && !stem.ends_with("_tests")
    });
    let shipped = |file: PathBuf| {
        let code = code(&file);
        let code = code.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        (file, code.to_owned())
    };
    files.into_iter().map(shipped).collect()
}

/// Fails where what is found differs from what is written down.
fn compare<T: PartialEq + std::fmt::Debug>(
    what: &str,
    found: &BTreeMap<String, T>,
    listed: &BTreeMap<String, T>,
) {
    let places = found.keys().chain(listed.keys());
    let differs = |place: &&String| found.get(*place) != listed.get(*place);
    let mut rows: Vec<String> = places
        .filter(differs)
        .map(|place| {
            format!(
                "(\"{place}\", {:?}) is listed as {:?}",
                found.get(place),
                listed.get(place)
            )
        })
        .collect();
    rows.sort();
    rows.dedup();
    assert!(
        rows.is_empty(),
        "{what}: the list in {} only shrinks:\n{}",
        file!(),
        rows.join("\n")
    );
}

fn by_place(rows: &[(&str, &[&str])]) -> BTreeMap<String, Vec<String>> {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    rows.iter()
        .map(|(place, names)| ((*place).to_owned(), owned(names)))
        .collect()
}

#[test]
fn files_of_a_crate_use_each_other_without_circles() {
    let found = crates().into_iter().map(|name| {
        let circles = in_circles(&root().join(&name).join("src"));
        (name, circles)
    });
    let found = found.filter(|(_, circles)| !circles.is_empty()).collect();
    compare("files that use each other in circles", &found, &by_place(CIRCLES));
}

#[test]
fn types_are_nouns() {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for name in crates() {
        for (_, code) in shipped(&name) {
            let words: Vec<&str> = code
                .split(|c: char| !c.is_alphanumeric() && c != '_')
                .filter(|word| !word.is_empty())
                .collect();
            let defined = words
                .windows(2)
                .filter(|pair| ["struct", "enum", "trait"].contains(&pair[0]))
                .map(|pair| pair[1])
                .filter(|name| BARE.split_whitespace().any(|bare| bare == *name));
            for bare in defined {
                found.entry(name.clone()).or_default().push(bare.to_owned());
            }
        }
    }
    found.values_mut().for_each(|names| names.sort());
    compare("types with a bare name", &found, &by_place(BARE_NAMES));
}

#[test]
fn values_and_functions_are_named_after_what_they_are() {
    let mut files = Vec::new();
    for place in [
        "benches",
        "crates",
        "doors",
        "examples",
        "programs",
        "sims",
        "src",
        "tests",
        "toolboxes",
    ] {
        collect(&root().join(place), &mut files);
    }
    assert!(files.len() > 500, "only {} files were found", files.len());
    let mut found = Vec::new();
    for file in files {
        let place = file.strip_prefix(root()).expect("a file of the repository");
        let code = code(&file);
        let words: Vec<&str> = code
            .split(|c: char| !c.is_alphanumeric() && c != '_')
            .filter(|word| !word.is_empty() && *word != "mut")
            .collect();
        let named = words
            .windows(2)
            .filter(|pair| ["let", "fn"].contains(&pair[0]) && RIDDLES.contains(&pair[1]));
        found.extend(named.map(|pair| format!("{}: {} {}", place.display(), pair[0], pair[1])));
    }
    assert!(
        found.is_empty(),
        "name each after what it is, such as `answer` or `message`: {found:#?}"
    );
}

#[test]
fn what_two_files_need_stands_beside_them() {
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    let is_up =
        |path: &Vec<&str>| path[0] == "super" && path[1].starts_with(|c: char| c.is_ascii_uppercase());
    for name in crates() {
        for (file, code) in shipped(&name) {
            if paths(&code).iter().any(is_up) {
                *found.entry(room(&name, &file)).or_default() += 1;
            }
        }
    }
    let expected = ARROWS_UP
        .iter()
        .map(|(place, files)| ((*place).to_owned(), *files));
    compare(
        "files that use a type of the module around them",
        &found,
        &expected.collect(),
    );
}

/// A crate, or a folder of the service.
fn room(name: &str, file: &Path) -> String {
    if name != "." {
        return name.to_owned();
    }
    let below = file.strip_prefix(root()).unwrap_or(file);
    let parts: Vec<_> = below.components().take(2).collect();
    let room: PathBuf = parts.iter().collect();
    room.with_extension("").to_string_lossy().into_owned()
}
