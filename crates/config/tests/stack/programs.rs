//! The programs that are toolboxes.

use ovos_tools_config::Switch;
use serde_json::{Value, json};

use crate::machine::{Machine, USER};

const EXAMPLE: &str = include_str!("../../../../mycroft.conf.example");

#[test]
fn the_program_in_the_comment_is_accepted_and_all_its_keys_count() {
    let comment: String = EXAMPLE
        .lines()
        .map(str::trim_start)
        .skip_while(|line| !line.starts_with("// \"programs\": "))
        .take_while(|line| line.starts_with("//"))
        .map(|line| line.trim_start_matches('/'))
        .collect();
    let written: Value =
        serde_json::from_str(comment.trim().strip_prefix("\"programs\": ").unwrap()).unwrap();
    let config = Machine::with_service(json!({"programs": written}))
        .load()
        .unwrap();
    let [arm] = config.programs.as_slice() else {
        panic!("{:?}", config.programs);
    };
    assert_eq!(arm.name, "arm");
    assert_eq!(arm.command, ["python3", "/opt/arm/arm.py"]);
    assert_eq!(arm.args, ["--slow"]);
    assert_eq!(arm.env["ARM_PORT"], "/dev/ttyUSB0");
    assert_eq!(arm.confine.as_ref().unwrap().devices.len(), 1);
    let defaults = Machine::with_service(json!({"programs": {"arm": {"command": "~/arm.py"}}}));
    let config = defaults.load().unwrap();
    let path = defaults.path("home/arm.py").display().to_string();
    assert_eq!(config.programs[0].command, [path]);
    assert!(config.programs[0].enabled && config.programs[0].confine.is_none());
    assert_eq!(config.programs[0].toolboxes, ["arm"]);
}

#[test]
fn programs_keep_the_order_of_the_file_and_offer_what_they_may() {
    let entry = |toolboxes: Value| json!({"command": "/bin/p", "toolboxes": toolboxes});
    let programs = json!({"b": entry(json!(["x", "web-*"])), "a": entry(json!(["*"])), "none": null});
    let config = Machine::with_service(json!({"programs": programs}))
        .load()
        .unwrap();
    let names: Vec<&str> = config
        .programs
        .iter()
        .map(|program| program.name.as_str())
        .collect();
    assert_eq!(names, ["b", "a"]);
    for (id, first, second) in [
        ("x", true, true),
        ("web-1", true, true),
        ("web", false, true),
        ("xx", false, true),
    ] {
        let may: Vec<bool> = config
            .programs
            .iter()
            .map(|program| program.may_offer(id))
            .collect();
        assert_eq!(may, [first, second], "{id}");
    }
}

#[test]
fn a_wrong_entry_is_explained() {
    let program = |more: Value| {
        let mut entry = json!({"command": "/bin/p"});
        entry
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        json!({"p": entry})
    };
    let a_command =
        "expected an absolute path, one that starts with ~/ or the name of a program in PATH; or a list";
    for (programs, key, expected) in [
        (
            json!({"p": {}}),
            "programs.p",
            "found no command, expected the command to execute",
        ),
        (json!({"p": 5}), "programs.p", "found 5, expected an object"),
        (
            json!({"P": {"command": "/bin/p"}}),
            "programs.P",
            "found the name \"P\", expected a name of 1 to 64",
        ),
        (
            program(json!({"command": "./p"})),
            "programs.p.command",
            a_command,
        ),
        (
            program(json!({"command": "p --fast"})),
            "programs.p.command",
            a_command,
        ),
        (program(json!({"command": []})), "programs.p.command", a_command),
        (
            program(json!({"command": ["p", 1]})),
            "programs.p.command",
            a_command,
        ),
        (
            program(json!({"args": "x"})),
            "programs.p.args",
            "expected a list of strings",
        ),
        (
            program(json!({"env": {"A=B": "x"}})),
            "programs.p.env",
            "expected an object of variable names",
        ),
        (
            program(json!({"enabled": "auto"})),
            "programs.p.enabled",
            "expected true or false",
        ),
        (
            program(json!({"toolboxes": []})),
            "programs.p.toolboxes",
            "expected a list of toolbox ids",
        ),
        (
            program(json!({"toolboxes": ["service"]})),
            "programs.p.toolboxes",
            "expected a list of toolbox ids",
        ),
        (
            program(json!({"toolboxes": ["a*b"]})),
            "programs.p.toolboxes",
            "expected a list of toolbox ids",
        ),
        (
            program(json!({"confine": true})),
            "programs.p.confine",
            "expected an object, or false",
        ),
        (
            program(json!({"confine": {"network": 1}})),
            "programs.p.confine.network",
            "expected true or false",
        ),
        (
            program(json!({"comand": "x"})),
            "programs.p.comand",
            "unknown key (did you mean \"command\"?)",
        ),
        (
            json!({"python": {"enabled": "on"}}),
            "programs.python.enabled",
            "found \"on\", expected true, false or \"auto\"",
        ),
        (
            json!({"lab": {"interpreter": "venv/bin/python"}}),
            "programs.lab.interpreter",
            "the name of a Python interpreter in PATH",
        ),
        (
            json!({"lab": {"interpreter": "python3", "args": []}}),
            "programs.lab.args",
            "unknown key",
        ),
    ] {
        let machine = Machine::with_service(json!({"programs": programs}));
        let error = machine.load().unwrap_err().to_string();
        let file = machine.path(USER).display().to_string();
        for part in [key, expected, &file] {
            assert!(error.contains(part), "no {part:?} in {error}");
        }
    }
}

#[test]
fn the_toolboxes_of_python_are_hosted_without_configuration_and_of_other_interpreters_by_name() {
    let lab = json!({"interpreter": "~/lab/bin/python3", "alone": true, "toolboxes": ["lab-*"]});
    for (programs, expected) in [
        (json!({}), vec![("python", Switch::Auto, None)]),
        (json!({"python": null}), vec![("python", Switch::Auto, None)]),
        (
            json!({"python": {"enabled": false}}),
            vec![("python", Switch::Off, None)],
        ),
        (
            json!({"lab": lab, "arm": {"command": "arm"}}),
            vec![
                ("lab", Switch::On, Some("home/lab/bin/python3")),
                ("python", Switch::Auto, None),
            ],
        ),
        // What is executed is said, so it is as every other program.
        (json!({"python": {"command": "/bin/p"}}), vec![]),
    ] {
        let machine = Machine::with_service(json!({"programs": programs}));
        let config = machine.load().unwrap();
        let expected: Vec<_> = expected
            .into_iter()
            .map(|(name, enabled, path)| {
                let path = path.map(|path| machine.path(path).display().to_string());
                (name.to_owned(), enabled, path)
            })
            .collect();
        let found = config.pythons.iter();
        let found: Vec<_> = found
            .map(|python| (python.name.clone(), python.enabled, python.interpreter.clone()))
            .collect();
        assert_eq!(found, expected, "{programs}");
        if let Some(lab) = config.pythons.iter().find(|python| python.name == "lab") {
            assert!(lab.alone && lab.may_offer("lab-1") && !lab.may_offer("ovos-math-tools"));
        }
    }
}
