//! The SDK's promises on behalf of every toolbox, tested through the C table.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod closing;
mod logging;
mod probe;
mod role;
mod table;

use ovos_toolbox_sdk::abi::status;
use ovos_toolbox_sdk::prelude::*;
use ovos_toolbox_sdk::testing::Harness;
use ovos_toolbox_sdk::wire::{CallOutcome, Failure};

use probe::Probe;

fn open() -> Harness {
    Harness::open::<Probe>(json!({})).unwrap()
}

#[test]
fn a_tool_answers_and_close_is_clean() {
    let probe = Harness::open::<Probe>(json!({"offset": 100, "unknown": true})).unwrap();
    assert_eq!(
        probe.call("add", json!({"a": 1, "b": 2})).unwrap(),
        json!({"result": 103})
    );
    let tool = probe.tool("add");
    assert_eq!(tool.description, "Adds two integers.");
    assert_eq!(tool.category.as_deref(), Some("Arithmetic"));
    assert_eq!(
        tool.argument_schema,
        json!({
            "title": "AddArgs", "type": "object", "required": ["a", "b"],
            "properties": {
                "a": {"description": "The first.", "title": "A", "type": "integer"},
                "b": {"title": "B", "type": "integer"},
            },
        })
    );
    assert_eq!(probe.tool("commands").timeout_ms, Some(3000));
    assert_eq!(probe.tool("forever").effect, Effect::Motion);
    let schema = probe.manifest().config_schema.unwrap();
    assert_eq!(schema["properties"]["offset"]["default"], 0);
    assert!(probe.close().is_clean());
}

#[test]
fn bad_arguments_are_refused() {
    let probe = open();
    let start = |json: &str| probe.start_text(json).map(|run| run.wait()).unwrap_err();
    let with = |tool: &str, action: &str, params: &str| {
        start(&format!(
            r#"{{"call":{{"call_id":"c","toolbox_id":"p","tool":"{tool}"}},"action":{{"id":"x","name":"{action}","effect":"read","params":{params}}}}}"#
        ))
    };
    for (refused, expected, mentions) in [
        (
            with("add", "add", r#"{"a":1}"#),
            status::BAD_ARGS,
            "missing field `b`",
        ),
        (
            with("add", "add", r#"{"a":1,"b":"two"}"#),
            status::BAD_ARGS,
            "invalid type",
        ),
        (with("add", "add", "[]"), status::BAD_ARGS, "invalid"),
        (with("nope", "nope", "{}"), status::UNKNOWN_TOOL, "nope"),
        (with("pour", "spill", "{}"), status::UNKNOWN_TOOL, "spill"),
        // A planned tool has no action of its own name.
        (
            with("pour", "pour", r#"{"cups":1}"#),
            status::UNKNOWN_TOOL,
            "pour",
        ),
        (start("{"), status::BAD_ARGS, "EOF"),
        (start(""), status::BAD_ARGS, "EOF"),
        (start("[1]"), status::BAD_ARGS, "invalid"),
        (start(&"[".repeat(100_000)), status::BAD_ARGS, ""),
    ] {
        assert_eq!(refused.status, expected, "{refused}");
        assert!(
            refused.failure.message.contains(mentions),
            "{refused} does not mention {mentions}"
        );
    }
    assert!(probe.close().is_clean());
}

#[test]
fn a_run_ends_when_it_is_cancelled() {
    let probe = open();
    for (tool, cancelled, kind) in [
        ("forever", status::CANCELLED, "CancelledError"),
        ("cleans_up", status::CANCELLED, "Parked"),
        ("watches_and_stays", status::CANCELLED, "CancelledError"),
        ("panics_when_dropped", status::PANIC, "Panic"),
        ("finishes_anyway", status::OK, ""),
    ] {
        let run = probe.start(tool, json!({})).unwrap();
        let _ = run.wait_progress(1);
        run.cancel();
        run.cancel();
        let ended = run.wait();
        assert_eq!(ended.status, cancelled, "{tool}: {}", ended.text);
        assert_eq!(
            ended
                .result()
                .err()
                .map(|failure| failure.kind)
                .unwrap_or_default(),
            kind,
            "{tool}"
        );
    }
    assert_eq!(probe.call("state", json!({})).unwrap()["cleaned"], true);
    probe.cancel(987_654);
    assert!(probe.close().is_clean());
}

#[test]
fn a_panic_is_a_completion() {
    let probe = open();
    let ended = probe.start("panics", json!({})).unwrap().wait();
    assert_eq!(ended.status, status::PANIC);
    assert_eq!(ended.result().unwrap_err(), Failure::new("Panic", "knocked over"));
    assert_eq!(
        probe.call("add", json!({"a": 1, "b": 1})).unwrap(),
        json!({"result": 2})
    );
    assert!(probe.close().is_clean());
}

#[test]
fn a_payload_that_panics_in_drop() {
    let probe = open();
    let ended = probe.start("panics_twice", json!({})).unwrap().wait();
    assert_eq!(ended.status, status::PANIC);
    assert_eq!(ended.result().unwrap_err().message, "panicked without a message");
    assert!(probe.close().is_clean());
}

#[test]
fn a_panic_in_the_tables_functions_is_a_status() {
    let refused = Harness::open::<Probe>(json!({"how_to_open": "panicking"}))
        .err()
        .unwrap();
    assert_eq!(
        (refused.status, refused.failure.message.as_str()),
        (status::PANIC, "no power")
    );
    let refused = Harness::open::<Probe>(json!({"how_to_open": "without_tools"}))
        .err()
        .unwrap();
    assert_eq!(
        (refused.status, refused.failure.message.as_str()),
        (status::PANIC, "no tools today")
    );
    let refused = open().halt(&["glass"], false).unwrap_err();
    assert_eq!(refused.status, status::PANIC);
    assert_eq!(refused.failure.message, "the glass cannot be halted");
}

#[test]
fn open_says_why_not() {
    for (config, status, message) in [
        (json!({"how_to_open": "unplugged"}), status::ERR, "unplugged"),
        (
            json!({"offset": "many"}),
            status::BAD_ARGS,
            "configuration: invalid type",
        ),
        (json!(7), status::BAD_ARGS, "configuration: invalid type"),
    ] {
        let refused = Harness::open::<Probe>(config).err().unwrap();
        assert_eq!(refused.status, status, "{refused}");
        assert!(refused.failure.message.contains(message), "{refused}");
    }
}

#[test]
fn no_command_comes_behind_a_halt() {
    let probe = open();
    for emergency in [false, true] {
        let run = probe.start("commands", json!({})).unwrap();
        let _ = run.wait_progress(1);
        probe.halt(&["all"], emergency).unwrap();
        assert_eq!(run.wait().status, status::CANCELLED);
        let state = probe.call("state", json!({})).unwrap();
        assert_eq!(state["sent"], state["sent_at_halt"], "commands after the halt");
    }
    let arm = probe.plan("forever", json!({"x": 1})).unwrap().unwrap().remove(0);
    assert_eq!((arm.subsystems.len(), &arm.params["x"]), (1, &json!(1)));
    let run = probe.start_action("forever", arm, json!({})).unwrap();
    probe.halt(&["leg"], false).unwrap();
    assert_eq!(
        run.wait_for(Duration::from_millis(50)),
        None,
        "a halt of the leg ended the arm"
    );
    probe.halt(&["arm"], false).unwrap();
    assert_eq!(run.wait().status, status::CANCELLED);
    // A read continues.
    let run = probe.start("watches_and_stays", json!({})).unwrap();
    probe.halt(&["all"], true).unwrap();
    assert_eq!(run.wait_for(Duration::from_millis(50)), None);
    assert!(probe.close().is_clean());
}

#[test]
fn a_start_from_before_the_stop_is_refused() {
    let probe = open();
    probe.set_stop_epoch(7);
    probe.call("add", json!({"a": 1, "b": 1})).unwrap();
    probe.set_stop_epoch(6);
    let refused = probe.start("forever", json!({})).err().unwrap();
    assert_eq!(refused.status, status::CANCELLED);
    probe.call("add", json!({"a": 1, "b": 1})).unwrap();
    probe.set_stop_epoch(7);
    let run = probe.start("forever", json!({})).unwrap();
    run.cancel();
    let _ = run.wait();
}

#[test]
fn plans_run_and_conclude() {
    let probe = open();
    assert_eq!(
        probe.invoke("pour", json!({"cups": 3})).unwrap(),
        json!({"poured": 3, "outcome": "completed"})
    );
    let refused = probe.plan("pour", json!({"cups": 0})).unwrap_err();
    assert_eq!(
        (refused.status, refused.failure.kind.as_str()),
        (status::BAD_ARGS, "ValueError")
    );
    assert_eq!(probe.plan("add", json!({"a": 1, "b": 1})).unwrap(), None);
    // A failed call is concluded, too.
    let report = Report {
        outcome: CallOutcome::Failed,
        duration_ms: 1,
        actions: vec![],
    };
    let conclusion = probe.conclude("pour", json!({"cups": 1}), &report).unwrap();
    assert_eq!(
        json!(conclusion),
        json!({"output": {"poured": 0, "outcome": "other"}})
    );
    assert_eq!(probe.conclude("add", json!({}), &report).unwrap(), None);
}

#[test]
fn the_context_knows_who_calls() {
    let who = open().call("who", json!({})).unwrap();
    assert_eq!(
        who,
        json!({
            "call_id": "call-1", "tool": "who", "action": "who", "session": "default", "lang": "en-US",
            "source": "testing", "in_time": true,
        })
    );
}

#[test]
fn progress_reaches_the_host() {
    let probe = open();
    let run = probe.start("reports", json!({})).unwrap();
    assert_eq!(run.wait().status, status::OK);
    let id = run.id();
    let fractions: Vec<Option<f64>> = run.progress().into_iter().map(|report| report.fraction).collect();
    assert_eq!(fractions, [Some(0.25), Some(0.5), Some(0.75), Some(1.0)]);
    probe.cancel(id);
    assert_eq!(run.progress().len(), 4, "progress after the end");
}

#[test]
fn events_reach_the_host() {
    let probe = open();
    probe.call("reports", json!({})).unwrap();
    assert_eq!(probe.wait_event("noticed").data, Some(json!({"what": 1})));
    let latched = probe.wait_event("latched");
    assert_eq!(
        (latched.severity, latched.data),
        (Severity::Error, Some(json!({"reason": "button"})))
    );
    probe.message("some.topic", json!({"n": 1}));
    assert_eq!(
        probe.wait_event("heard").data,
        Some(json!({"topic": "some.topic", "data": {"n": 1}}))
    );
}

#[test]
fn a_request_is_answered() {
    let probe = open();
    assert_eq!(probe.call("asks", json!({})).unwrap_err().kind, "BusyError");
    probe.respond("probe.question", |data| Some(Ok(json!([data]))));
    assert_eq!(
        probe.call_with_bus("asks", json!({"n": 1})).unwrap(),
        json!({"answer": [{"n": 1}]})
    );
    probe.respond("probe.question", |_| {
        Some(Err(Failure::new("TimeoutError", "nobody")))
    });
    assert_eq!(
        probe.call_with_bus("asks", json!({})).unwrap_err(),
        Failure::new("TimeoutError", "nobody")
    );
    probe.respond("probe.question", |_| None);
    let failure = probe.call_with_bus("asks", json!({})).unwrap_err();
    assert_eq!(failure.kind, "TimeoutError", "a host that forgets the answer");
    assert!(probe.close().is_clean());
}

#[test]
fn an_error_keeps_its_cause() {
    let failure = open().call("fails_with_a_cause", json!({})).unwrap_err();
    assert_eq!(failure, Failure::new("ToolError", "no such arm"));
}

#[test]
fn refusals_have_their_status() {
    let probe = open();
    assert_eq!(probe.resume().unwrap_err().failure.message, "fallen over");
    assert_eq!(probe.may_close().unwrap_err().status, status::BUSY);
    probe.safe_stop(json!({})).unwrap();
    assert_eq!(
        probe
            .safe_stop(json!({"offset": 13}))
            .unwrap_err()
            .failure
            .message,
        "no line"
    );
}

#[test]
fn a_thousand_runs_at_once() {
    let probe = open();
    std::thread::scope(|scope| {
        for thread in 0..4_i64 {
            let probe = &probe;
            scope.spawn(move || {
                let runs: Vec<_> = (0..250)
                    .map(|n| (n, probe.start("add", json!({"a": n, "b": thread})).unwrap()))
                    .collect();
                for (n, run) in runs {
                    assert_eq!(run.wait().result().unwrap(), json!({"result": n + thread}));
                }
            });
        }
    });
    assert!(probe.close().is_clean());
}

#[test]
fn two_instances_do_not_mix() {
    let one = Harness::open::<Probe>(json!({"offset": 1})).unwrap();
    let two = Harness::open::<Probe>(json!({"offset": 2})).unwrap();
    assert_eq!(
        one.call("add", json!({"a": 0, "b": 0})).unwrap(),
        json!({"result": 1})
    );
    assert_eq!(
        two.call("add", json!({"a": 0, "b": 0})).unwrap(),
        json!({"result": 2})
    );
    let run = two.start("forever", json!({})).unwrap();
    assert!(one.close().is_clean());
    assert_eq!(run.wait_for(Duration::from_millis(20)), None);
}
