//! Skipped tests are named, and fail in CI unless `tests/may_skip.txt` tells why they may be skipped.

use std::path::Path;
use std::process::Command;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A name, whether CI may skip it.
const NAMES: &[(&str, bool)] = &[
    ("landlock", true),
    ("cargo-deny", true),
    ("python", false),
    ("land", false),
];

/// Started by the test below, in an environment of its own.
#[test]
#[ignore = "another test starts it"]
fn a_test_that_skips() {
    let name = std::env::var("NAME").expect("set by the test that starts this one");
    skip::skip(&name, "not here");
}

#[test]
fn ci_skips_only_what_is_listed() {
    let list = tempfile::NamedTempFile::new().unwrap();
    let this = std::env::current_exe().unwrap();
    for (name, listed) in NAMES {
        for ci in ["true", "false"] {
            let mut test = Command::new(&this);
            test.args(["--exact", "skips::a_test_that_skips", "--ignored"]);
            let mut script = Command::new(root().join("scripts/skip.sh"));
            script.args([name, "not here"]);
            for mut command in [test, script] {
                std::fs::write(list.path(), "").unwrap();
                let ended = command
                    .env("CI", ci)
                    .env("NAME", name)
                    .env("OVOS_TOOLS_SKIPPED", list.path())
                    .output()
                    .unwrap();
                let allowed = *listed || ci == "false";
                assert_eq!(ended.status.success(), allowed, "CI={ci}: {command:?}: {ended:?}");
                let named = std::fs::read_to_string(list.path()).unwrap();
                let expected = format!("{name}: not here");
                assert_eq!(
                    named.starts_with(&expected),
                    allowed,
                    "CI={ci}: {command:?}: {named}"
                );
            }
        }
    }
}

/// A test that prints "skipped" by itself and returns would pass in CI.
#[test]
fn tests_skip_in_one_way() {
    let own = ["tests/repository/skips.rs", "tests/skip/src/lib.rs"].map(|path| root().join(path));
    let words = ["\"skipped: ", "\"SKIPPED", "not checked, since"];
    for (path, text) in sources().iter().filter(|(path, _)| !own.contains(path)) {
        for (number, line) in (1..).zip(text.lines()) {
            assert!(
                !words.iter().any(|word| line.contains(word)),
                "{}:{number}: {line}\nsay it with tests/skip",
                path.display()
            );
        }
    }
}

/// The tests of this checkout.
fn sources() -> Vec<(std::path::PathBuf, String)> {
    let mut folders = vec![root().join("tests")];
    for toolbox in std::fs::read_dir(root().join("toolboxes")).unwrap() {
        folders.push(toolbox.unwrap().path().join("tests"));
    }
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else {
            continue;
        };
        for path in entries.map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                found.push((path.clone(), std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    assert!(found.len() > 100, "only {} files were found", found.len());
    found
}
