//! What the options of the command line mean, and which are refused.

use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};

use crate::agent::model::{Model, Reply, call, finish};
use crate::agent::stage::{Stage, command};

/// Runs an agent with these arguments; returns its exit code, stdout and stderr.
fn run(stage: &Stage, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = command(&stage.scene);
    let output = command.args(arguments).stdin(Stdio::null()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn with_json_stdout_is_one_line_and_without_it_the_way_is_told() {
    let stage = Stage::new(&json!({}));
    for is_json in [true, false] {
        let moves = json!({"subsystems": ["base"], "steps": 20, "step_ms": 10});
        let model = Model::new(vec![call("assemble", moves), finish()]);
        let mut arguments = vec!["--url", &model.url, "--goal", "move"];
        arguments.extend(is_json.then_some("--json"));
        let (code, out, err) = run(&stage, &arguments);
        assert_eq!(code, Some(0), "{out}{err}");
        if is_json {
            let ended: Value = serde_json::from_str(&out).expect("one line of JSON and nothing else");
            assert_eq!(ended["end"]["reason"], "done", "{out}");
            assert_eq!(out.lines().count(), 1, "{out}");
        } else {
            for told in ["goal move", "step 1", "assemble", "done"] {
                assert!(out.contains(told), "no {told:?} in {out}");
            }
        }
    }
}

#[test]
fn what_cannot_be_meant_is_refused_before_the_model_is_asked() {
    let stage = Stage::new(&json!({}));
    for (arguments, expected) in [
        (&["--goal", ""][..], "expected what to reach, in words"),
        (&["--goal", " \t\n"], "expected what to reach, in words"),
        (
            &["--goal", "x", "--tools", "fly"],
            "--tools fly: there is no such tool",
        ),
        (
            &["--goal", "x", "--tools", "add,fly"],
            "--tools fly: there is no such tool",
        ),
        (
            &["--goal", "x", "--tools", "joint_*"],
            "--tools joint_*: there is no such tool",
        ),
        (&["--goal", "x", "--tools", ""], "there is no such tool"),
        (
            &["--goal", "x", "--without", "fly"],
            "--without fly: there is no such tool",
        ),
        (&["--goal", "x", "--model-timeout", "0"], "0 is not in 1..=3600"),
        (
            &["--goal", "x", "--model-timeout", "3601"],
            "3601 is not in 1..=3600",
        ),
        (
            &["--goal", "x", "--model-timeout", "soon"],
            "invalid value 'soon'",
        ),
    ] {
        let model = Model::new(vec![finish()]);
        let arguments = [&["--url", &model.url], arguments].concat();
        let (code, out, err) = run(&stage, &arguments);
        assert_eq!(code, Some(2), "{arguments:?}: {out}{err}");
        assert!(
            err.contains(expected) && out.is_empty(),
            "{arguments:?}: {out}{err}"
        );
        assert!(model.requests().is_empty(), "{arguments:?}");
    }
}

#[test]
fn a_model_has_as_long_as_the_option_says() {
    let stage = Stage::new(&json!({"retries": 0}));
    let late = Reply::Late(Duration::from_secs(3), Box::new(finish()));
    for (seconds, reason, code) in [("1", "model_timeout", 31), ("60", "done", 0)] {
        let model = Model::new(vec![late.clone()]);
        let ended = stage.run(&model, &["--model-timeout", seconds]);
        assert_eq!(
            (ended.reason(), ended.status.code()),
            (reason, Some(code)),
            "{}",
            ended.output
        );
    }
}
