//! If a configuration file cannot be read: the copy of its last good content stands in, and tools that change something are refused.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use ovos_tools_config::{Config, Notice, Overrides, StandsIn};
use serde_json::json;

use crate::machine::{DISTRIBUTION, Machine, RUNTIME, SYSTEM, USER, XDG};

/// A section with hardware, a rule and a hidden tool.
fn good() -> String {
    json!({
        "websocket": {"port": 8182},
        "PHAL": {"other-plugin": {"x": 1}, "ovos-phal-plugin-tools": {
            "service": {"policy": [{"effects": ["read"], "decide": "deny"}]},
            "robot": {"backend": "feetech", "tools": {"deny": ["wave"]}},
        }},
    })
    .to_string()
}

/// Writes the copy, as the service does after a start with good files.
fn keep(machine: &Machine) {
    let (path, text) = machine.load().unwrap().last_good().unwrap();
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn replace(path: &Path, with: &str) {
    fs::remove_file(path).unwrap();
    fs::write(path, with).unwrap();
}

/// What is said of a broken file, and what breaks it.
type Break = (&'static str, fn(&Path));

/// Ways to break a good file.
const BREAKS: [Break; 12] = [
    ("EOF while parsing", |path| {
        let text = fs::read_to_string(path).unwrap();
        replace(path, text.strip_suffix('}').unwrap());
    }),
    ("comments only on a line of their own", |path| {
        let text = fs::read_to_string(path).unwrap();
        replace(path, &text.replacen(':', ": // a port\n", 1));
    }),
    ("the file is empty", |path| replace(path, "")),
    ("trailing comma", |path| replace(path, "{\"a\": 1,}")),
    ("the file contains a list", |path| replace(path, "[1]")),
    ("not UTF-8", |path| {
        fs::write(path, b"{\"policy\": \"\xff\"}").unwrap()
    }),
    ("PHAL: found a list", |path| replace(path, r#"{"PHAL": [1]}"#)),
    ("PHAL.\"ovos-phal-plugin-tools\": found a list", |path| {
        replace(path, r#"{"PHAL": {"ovos-phal-plugin-tools": []}}"#);
    }),
    ("it is a folder", |path| {
        fs::remove_file(path).unwrap();
        fs::create_dir(path).unwrap();
    }),
    ("a file that does not exist", |path| {
        fs::remove_file(path).unwrap();
        symlink("/no/such/file", path).unwrap();
    }),
    ("Too many levels of symbolic links", |path| {
        fs::remove_file(path).unwrap();
        symlink(path, path).unwrap();
    }),
    ("larger than 8 MiB", |path| {
        replace(path, &format!("{{\"a\": \"{}\"}}", "x".repeat(9 << 20)));
    }),
];

#[test]
fn the_copy_stands_in_for_whatever_file_breaks_and_however() {
    for file in [DISTRIBUTION, SYSTEM, RUNTIME, XDG, USER] {
        for (problem, break_it) in BREAKS {
            let machine = Machine::new(&[(file, &good())], &[]);
            let before = machine.load().unwrap();
            assert_eq!(before.closed(), None);
            keep(&machine);
            break_it(&machine.path(file));

            let config = machine.load().unwrap();
            let closed = config
                .closed()
                .unwrap_or_else(|| panic!("{file}: {problem}: open"));
            let text = machine.plain(closed.text());
            assert!(text.contains(file) && text.contains(problem), "{problem}: {text}");
            assert!(text.contains("ovos-tools reload"), "{text}");
            assert!(!closed.backends_unknown() && !closed.forbids_reading(), "{text}");
            assert_eq!(config.service.policy, before.service.policy, "{file}: {problem}");
            assert_eq!(config.bus.url, before.bus.url, "a stop finds the service");
            let [robot, robot_before] = [&config, &before].map(|config| config.toolbox("robot").unwrap());
            assert_eq!(robot.toolbox.own, robot_before.toolbox.own);
            assert!(!robot.tools.permits("wave"));
            assert_eq!(config.last_good(), None, "a broken file replaces no copy");

            // While the service runs, what is in force stays, and a mended file opens it again.
            let again = Config::load(&machine, &Overrides::default(), Some(&config)).unwrap();
            assert_eq!(again.closed(), Some(closed));
            let running = Config::load(&machine, &Overrides::default(), Some(&before)).unwrap();
            assert_eq!(running.closed(), None, "{file}: {problem}");
            assert!(before.changes(&running).is_empty());
            let path = machine.path(file);
            _ = fs::remove_file(&path).or_else(|_| fs::remove_dir(&path));
            machine.write(file, &good());
            let mended = Config::load(&machine, &Overrides::default(), Some(&config)).unwrap();
            assert_eq!(mended.closed(), None);
        }
    }
}

#[test]
fn without_a_copy_backends_are_unknown_and_what_the_file_may_forbid_is_forbidden() {
    // Columns: the text of the file, whether it may forbid reading.
    for (text, forbids) in [
        (
            r#"{"PHAL": {"ovos-phal-plugin-tools": {"robot": {"backend": "feetech"}}}"#,
            false,
        ),
        (
            r#"{"PHAL": {"ovos-phal-plugin-tools": {"service": {"policy": []}}}"#,
            true,
        ),
        (
            r#"{"PHAL": {"ovos-phal-plugin-tools": {"math": {"tools": {"Deny": ["add"]}}}}"#,
            true,
        ),
    ] {
        let machine = Machine::new(&[(USER, text)], &[]);
        let config = machine.load().unwrap();
        let closed = config.closed().expect("the file is broken");
        assert!(closed.backends_unknown());
        assert_eq!(closed.forbids_reading(), forbids, "{text}");
        let stands_in = |notice: &Notice| {
            matches!(
                notice,
                Notice::BrokenLayer {
                    stands_in: StandsIn::Nothing,
                    ..
                }
            )
        };
        assert!(config.notices.iter().all(stands_in), "{:?}", config.notices);
    }
    let machine = Machine::new(&[(USER, "{}")], &[]);
    fs::remove_file(machine.path(USER)).unwrap();
    symlink("/no/such/file", machine.path(USER)).unwrap();
    let closed = machine.load().unwrap().closed().unwrap();
    assert!(closed.forbids_reading(), "nothing of the file is known");
}

#[test]
fn a_broken_copy_is_no_copy_and_other_services_keep_theirs() {
    let machine = Machine::new(&[(USER, &good()), ("my.conf", &good())], &[]);
    keep(&machine);
    let overrides = Overrides {
        config: Some(machine.path("my.conf")),
        given_may_be_copy: true,
        ..Overrides::default()
    };
    let (path, text) = Config::load(&machine, &overrides, None)
        .unwrap()
        .last_good()
        .unwrap();
    fs::write(&path, text).unwrap();
    machine.write("my.conf", "{");
    machine.write(USER, "{");
    for overrides in [&overrides, &Overrides::default()] {
        let closed = Config::load(&machine, overrides, None).unwrap().closed().unwrap();
        assert!(!closed.backends_unknown(), "{}", closed.text());
    }
    for broken in ["", "{", "[]", r#"{"files": []}"#] {
        fs::write(&path, broken).unwrap();
        assert!(machine.load().unwrap().closed().unwrap().backends_unknown());
    }
    let error = Config::load(&machine, &overrides, None).expect_err("it was named, and nothing stands in");
    assert!(error.to_string().contains("my.conf: line 1: EOF"), "{error}");
}

#[test]
fn a_file_that_is_removed_is_a_choice_that_is_said() {
    let machine = Machine::new(&[(USER, &good())], &[]);
    keep(&machine);
    fs::remove_file(machine.path(USER)).unwrap();
    let config = machine.load().unwrap();
    assert_eq!(config.closed(), None);
    let notices: Vec<String> = config
        .notices
        .iter()
        .map(|notice| machine.plain(notice))
        .collect();
    assert!(
        notices
            .iter()
            .any(|notice| notice.contains(USER) && notice.contains("is now missing")),
        "{notices:?}"
    );
    keep(&machine);
    assert_eq!(machine.load().unwrap().notices, [], "it is said once");
}

#[test]
fn a_broken_file_of_a_user_who_may_configure_nothing_closes_nothing() {
    let machine = Machine::new(
        &[
            (SYSTEM, r#"{"system": {"disable_user_config": true}}"#),
            (USER, "{"),
        ],
        &[],
    );
    assert_eq!(machine.load().unwrap().closed(), None);
}
