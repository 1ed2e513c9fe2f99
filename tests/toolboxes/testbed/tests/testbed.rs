//! testbed behaves as the service's tests expect; driven through the built library.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::path::{Path, PathBuf};

use ovos_toolbox_sdk::abi::status;
use ovos_toolbox_sdk::prelude::*;
use ovos_toolbox_sdk::testing::{Harness, built};

fn library() -> PathBuf {
    built("testbed")
}

fn open(config: Value) -> Harness {
    Harness::load(&library(), config).unwrap()
}

fn with_log() -> (tempfile::TempDir, PathBuf, Harness) {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("motor.log");
    let testbed = open(json!({"motor_log": log}));
    (folder, log, testbed)
}

fn commands(log: &Path) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(log).unwrap();
    text.lines()
        .map(|line| line.split(' ').map(String::from).collect())
        .collect()
}

#[test]
fn plain_tools_answer() {
    let version = option_env!("TESTBED_VERSION").unwrap_or("1");
    let testbed = open(json!({}));
    for (tool, args, expected) in [
        ("add", json!({"a": 2, "b": 3}), json!({"result": 5})),
        ("echo", json!({"text": "héllo ☃"}), json!({"text": "héllo ☃"})),
        ("ping", json!({}), json!({"pong": true})),
        ("slow", json!({"seconds": 0.0}), json!({"seconds": 0.0})),
        ("bad_output", json!({}), json!({"value": "not a number"})),
        ("dup", json!({}), json!({"owner": "testbed"})),
        ("count_marks", json!({}), json!({"marks": 0})),
        ("stop", json!({}), json!({"stopped": true})),
        (
            "version",
            json!({}),
            json!({"version": version, "greeting": "hello"}),
        ),
    ] {
        assert_eq!(testbed.call(tool, args).unwrap(), expected, "{tool}");
    }
    let failure = testbed.call("fail", json!({"message": "as told"})).unwrap_err();
    assert_eq!(
        (failure.kind.as_str(), failure.message.as_str()),
        ("RuntimeError", "as told")
    );
    assert!(testbed.close().is_clean());
}

#[test]
fn integers_beyond_64_bits_survive() {
    let testbed = open(json!({}));
    let start = |a: &str, b: &str| {
        let text = format!(
            r#"{{"call":{{"call_id":"c","toolbox_id":"testbed","tool":"add"}},
                "action":{{"id":"add","name":"add","effect":"read","params":{{"a":{a},"b":{b}}}}},"unknown":[1]}}"#
        );
        testbed.start_text(&text).unwrap().wait().text
    };
    assert_eq!(
        start("123456789012345678901234567890", "1"),
        r#"{"output":{"result":123456789012345678901234567891}}"#
    );
    assert_eq!(
        start("-18446744073709551616", "18446744073709551616"),
        r#"{"output":{"result":0}}"#
    );
}

#[test]
fn schemas_have_the_shape_of_pydantics() {
    let testbed = open(json!({}));
    let add = testbed.tool("add");
    assert_eq!(
        add.argument_schema,
        json!({
            "properties": {"a": {"title": "A", "type": "integer"}, "b": {"title": "B", "type": "integer"}},
            "required": ["a", "b"], "title": "AddArgs", "type": "object",
        })
    );
    assert_eq!(
        add.output_schema,
        json!({
            "properties": {"result": {"title": "Result", "type": "integer"}},
            "required": ["result"], "title": "AddOutput", "type": "object",
        })
    );
    assert_eq!(
        testbed.tool("ping").argument_schema,
        json!({"properties": {}, "title": "PingArgs", "type": "object"})
    );
    assert_eq!(
        testbed.tool("fail").argument_schema,
        json!({
            "properties": {"message": {"default": "it failed", "title": "Message", "type": "string"}},
            "title": "FailArgs", "type": "object",
        })
    );
}

#[test]
fn assemble_runs_in_four_waves() {
    let (_folder, log, testbed) = with_log();
    let output = testbed
        .invoke("assemble", json!({"step_ms": 1, "steps": 2}))
        .unwrap();
    assert_eq!(output["success"], true);
    assert_eq!(output["completed"].as_array().unwrap().len(), 13);
    let kinds: Vec<String> = commands(&log).iter().map(|line| line[1].clone()).collect();
    // join commands two subsystems, the other twelve actions one each.
    assert_eq!(kinds.iter().filter(|kind| *kind == "start").count(), 14);
    assert_eq!(kinds.iter().filter(|kind| *kind == "step").count(), 28);
}

#[test]
fn units_have_subsystems_of_their_own() {
    let testbed = open(json!({}));
    let args = json!({"units": 2, "subsystems": ["left_arm"], "timeout_ms": 700});
    let plan = testbed.plan("assemble", args).unwrap().unwrap();
    let ids: Vec<&str> = plan.iter().filter_map(|action| action.id.as_deref()).collect();
    assert_eq!(
        ids[..4],
        [
            "calibrate:u1/left_arm",
            "move:u1/left_arm",
            "join:u1",
            "retract:u1/left_arm"
        ]
    );
    assert_eq!(plan[4].subsystems, ["u2/left_arm"]);
    assert!(plan.iter().all(|action| action.timeout_ms == Some(700)));
}

#[test]
fn faults_happen_where_they_were_asked_for() {
    let testbed = open(json!({}));
    for (fault, failed) in [
        ("fail_at", "move:left_arm failed"),
        ("panic_at", "move:left_arm failed"),
    ] {
        let args = json!({"step_ms": 1, "subsystems": ["left_arm"], fault: "move:left_arm"});
        let output = testbed.invoke("assemble", args).unwrap();
        assert_eq!(output["success"], false, "{fault}");
        assert_eq!(output["failed"], json!([failed]), "{fault}");
        assert_eq!(output["skipped"], json!(["join", "retract:left_arm"]), "{fault}");
    }
}

#[test]
fn no_command_follows_a_halt() {
    for ignore_cancel in [false, true] {
        let (_folder, log, testbed) = with_log();
        let args = json!({"step_ms": 2, "steps": 200, "ignore_cancel": ignore_cancel});
        let plan = testbed.plan("assemble", args).unwrap().unwrap();
        let runs: Vec<_> = plan[..2]
            .iter()
            .map(|action| {
                testbed
                    .start_action("assemble", action.clone(), json!({}))
                    .unwrap()
            })
            .collect();
        let deadline = std::time::Instant::now() + Duration::from_secs(10);
        while !log.exists() || commands(&log).len() < 6 {
            assert!(std::time::Instant::now() < deadline, "nothing moved");
            std::thread::yield_now();
        }
        testbed.halt(&["left_arm"], true).unwrap();
        if !ignore_cancel {
            assert!(runs[1].wait_progress(2)[1].fraction.is_some());
        }
        let ended = runs[0].wait();
        assert_eq!(
            ended.status,
            if ignore_cancel {
                status::OK
            } else {
                status::CANCELLED
            },
            "{}",
            ended.text
        );
        runs[1].cancel();
        let _ = runs[1].wait();
        assert!(testbed.close().is_clean());
        let seen = commands(&log);
        let left: Vec<&str> = seen
            .iter()
            .filter(|line| line[2] == "left_arm")
            .map(|line| line[1].as_str())
            .collect();
        assert_eq!(left.last(), Some(&"emergency"), "{left:?}");
        assert!(seen.iter().filter(|line| line[2] == "right_arm").count() > 1);
    }
}

#[test]
fn brake_plans_what_it_holds() {
    let (_folder, log, testbed) = with_log();
    let plan = testbed
        .plan("brake", json!({"subsystems": ["base"], "ms": 1}))
        .unwrap()
        .unwrap();
    assert_eq!(
        (plan[0].name.as_str(), plan[0].subsystems.as_slice()),
        ("brake", &["base".to_string()][..])
    );
    assert_eq!(
        testbed
            .invoke("brake", json!({"subsystems": ["base"], "ms": 1}))
            .unwrap(),
        json!({"held_ms": 1})
    );
    assert_eq!(commands(&log)[0][1..3], ["stop", "base"]);
}

#[test]
fn messages_requests_events_and_growth() {
    let testbed = open(json!({}));
    testbed.message("testbed.message", json!({"n": 1}));
    testbed.message("testbed.other", json!({"n": 2}));
    assert_eq!(
        testbed.call("last_message", json!({})).unwrap(),
        json!({"topic": "testbed.other", "data": {"n": 2}, "count": 2})
    );
    testbed.respond("testbed.question", |data| {
        Some(Ok(json!({"twice": data["n"].as_i64().unwrap() * 2})))
    });
    assert_eq!(
        testbed.call_with_bus("ask", json!({"data": {"n": 21}})).unwrap(),
        json!({"answer": {"twice": 42}})
    );
    assert_eq!(
        testbed
            .call("ask", json!({"topic": "not.listed"}))
            .unwrap_err()
            .kind,
        "BusyError"
    );
    testbed
        .call(
            "emit_event",
            json!({"kind": "noise", "data": {"db": 3}, "severity": "warning"}),
        )
        .unwrap();
    assert_eq!(testbed.wait_event("noise").data, Some(json!({"db": 3})));
    let before = testbed.tools().len();
    testbed.call("grow", json!({"tools": 3})).unwrap();
    let _ = testbed.wait_event("tools_changed");
    assert_eq!(testbed.tools().len(), before + 3);
    assert_eq!(testbed.call("grown_2", json!({})).unwrap(), json!({"number": 2}));
}

#[test]
fn refusals_are_configured_and_lifted() {
    let testbed = open(json!({"refuse_resume": true, "refuse_close": true}));
    assert_eq!(testbed.may_close().unwrap_err().status, status::BUSY);
    assert_eq!(
        testbed.resume().unwrap_err().failure.message,
        "the button is still pressed"
    );
    testbed
        .call(
            "configure",
            json!({"refuse_resume": false, "refuse_close": false}),
        )
        .unwrap();
    testbed.may_close().unwrap();
    testbed.resume().unwrap();
    let error = Harness::load(&library(), json!({"refuse_open": "no backend"}))
        .err()
        .unwrap();
    assert!(error.to_string().contains("no backend"), "{error}");
}

#[test]
fn safe_stop_needs_no_instance() {
    let (_folder, log, testbed) = with_log();
    testbed.safe_stop(json!({"motor_log": log})).unwrap();
    assert_eq!(commands(&log)[0][1..], ["emergency", "all", "safe_stop"]);
}

#[test]
fn a_mark_takes_the_memory() {
    let testbed = open(json!({}));
    assert_eq!(
        testbed.invoke("set_mark", json!({})).unwrap(),
        json!({"marks": 1})
    );
    assert_eq!(
        testbed.plan("set_mark", json!({})).unwrap().unwrap()[0].subsystems,
        ["memory"]
    );
}

#[test]
fn content_is_returned_beside_an_output() {
    let folder = tempfile::tempdir().unwrap();
    let link = Content::link("text/html", "https://example.org/").titled("A page");
    let args = json!({"text": "hello", "items": [link]});
    let testbed = open(json!({})).with_content_folder(folder.path());
    let mut files = Vec::new();
    for _ in 0..2 {
        let ended = testbed.start("show", args.clone()).unwrap().wait();
        assert_eq!(ended.result().unwrap(), json!({"folder": folder.path()}));
        let content = ended.content();
        assert_eq!(content.len(), 2, "{content:?}");
        assert_eq!(content[1], link);
        files.push(content[0].path.clone().unwrap());
    }
    assert_ne!(files[0], files[1], "each file has a name of its own");
    for file in files {
        assert_eq!(std::fs::read(folder.path().join(file)).unwrap(), b"hello");
    }
    assert!(
        testbed
            .start("ping", json!({}))
            .unwrap()
            .wait()
            .content()
            .is_empty()
    );
    assert!(testbed.close().is_clean());

    let testbed = open(json!({}));
    let ended = testbed.start("show", args).unwrap().wait();
    assert_eq!(ended.result().unwrap(), json!({"folder": null}));
    assert_eq!(
        ended.content(),
        [link],
        "no file is written where the caller asks for none"
    );
}
