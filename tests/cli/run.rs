//! Runs: the request that a file makes, the table of its steps, the exit codes.

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

use crate::scripted::{Bus, Ran, command, finish};

const TOPIC: &str = "ovos.tools.run";

/// A file with two steps.
fn steps() -> Value {
    json!([
        {"id": "find", "name": "find_object", "args": {"object": "cup"}},
        {"id": "grab", "name": "grasp", "args": {"x": {"$from": "find.pose.x"}}, "after": ["find"], "toolbox_id": "robot"},
    ])
}

/// Runs a file with this text and these arguments; the service answers this topic.
async fn run(text: &str, arguments: &[&str], topic: &str, answer: Value) -> (Ran, Vec<Value>) {
    let bus = Bus::answering(topic, answer).await;
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("steps.json");
    std::fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap();
    let all = [&["run", file, "--bus", &bus.url], arguments].concat();
    let ran = finish(command(home.path(), &all).spawn().unwrap()).await;
    (ran, bus.requests(topic))
}

fn file() -> String {
    json!({ "steps": steps() }).to_string()
}

#[tokio::test]
async fn a_file_is_a_request() {
    let done = json!({"ok": true, "steps": []});
    for (arguments, more) in [
        (&["--call-id", "c"][..], json!({"call_id": "c"})),
        (
            &["--call-id", "c", "--timeout-ms", "500", "--detail", "--progress"],
            json!({"call_id": "c", "timeout_ms": 500, "progress": true}),
        ),
    ] {
        let (ran, request) = run(&file(), arguments, TOPIC, done.clone()).await;
        let mut expected = json!({"steps": steps(), "detail": true, "content": "path"});
        let entries = expected.as_object_mut().unwrap();
        entries.extend(more.as_object().unwrap().clone());
        assert_eq!((ran.code, request), (0, vec![expected]), "{}", ran.err);
    }
}

#[tokio::test]
async fn the_end_of_each_step_is_shown_and_the_exit_code_tells_how_the_run_ended() {
    let failed = json!({"ok": false, "error": "RuntimeError: step 'grab': it slipped", "steps": [
        {"id": "find", "name": "find_object", "status": "completed", "result": {"pose": {"x": 1.5}}},
        {"id": "grab", "name": "grasp", "status": "failed", "error": "RuntimeError: it slipped"},
        {"id": "lift", "name": "lift", "status": "not_started", "reason": "step 'grab' failed"},
    ]});
    let table = "\
\x20STEP  TOOL         STATUS       RESULT
 find  find_object  completed    {\"pose\":{\"x\":1.5}}
 grab  grasp        failed       RuntimeError: it slipped
 lift  lift         not_started  step 'grab' failed
";
    let waits = json!({"ok": false, "error": "ConfirmationRequired: step 'grab': grasp", "steps": [
        {"id": "grab", "name": "grasp", "status": "confirmation_required", "error": "ConfirmationRequired: grasp",
         "args": {}, "confirm": {"id": "3fa20c", "token": "t", "text": "grasp", "expires_ms": 1}},
    ]});
    for (answer, code, out, err) in [
        (failed, 1, table, "error: RuntimeError: step 'grab': it slipped\n"),
        (waits, 1, "confirmation_required", "`ovos-tools approve 3fa20c`"),
        (
            json!({"error": "ValueError: no steps"}),
            1,
            "",
            "error: ValueError: no steps\n",
        ),
        (
            json!({"ok": false, "steps": []}),
            1,
            "",
            "error: the run failed (ok: false)\n",
        ),
    ] {
        let (ran, _) = run(&file(), &[], TOPIC, answer.clone()).await;
        assert_eq!(ran.code, code, "{answer}");
        assert!(ran.out.contains(out) && ran.err.contains(err), "{ran:?}");
        let (ran, _) = run(&file(), &["--json"], TOPIC, answer.clone()).await;
        assert_eq!((ran.code, ran.out), (code, format!("{answer}\n")));
    }
}

#[tokio::test]
async fn progress_names_the_step() {
    let bus = Bus::start(Box::new(|topic, data| {
        if topic != TOPIC {
            return Vec::new();
        }
        let progress = |call_id: &Value| {
            json!({"call_id": call_id, "step": "find", "name": "find_object", "kind": "wave", "wave": 1, "waves": 1,
                "elapsed_ms": 100})
        };
        vec![
            ("ovos.tools.invoke.progress".to_owned(), progress(&data["call_id"])),
            ("ovos.tools.invoke.progress".to_owned(), progress(&json!("another"))),
            (format!("{TOPIC}.response"), json!({"ok": true, "steps": []})),
        ]
    }))
    .await;
    let home = tempfile::tempdir().unwrap();
    let mut program = command(home.path(), &["run", "-", "--progress", "--bus", &bus.url]);
    let mut child = program.stdin(std::process::Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(file().as_bytes()).await.unwrap();
    drop(stdin);
    let ran = finish(child).await;
    assert_eq!(
        (ran.code, &*ran.err),
        (0, "    0.1s  find: wave 1 of 1\n"),
        "{ran:?}"
    );
}

#[tokio::test]
async fn a_plan_is_shown_with_what_is_planned_later() {
    let plan = json!({"steps": [
        {"id": "find", "name": "find_object", "after": [], "plan": {"name": "find_object", "toolbox_id": "robot",
         "effect": "motion", "bound_ms": 15000, "subsystems": ["head"], "waves": [], "mermaid": "", "dot": ""}},
        {"id": "grab", "name": "grasp", "after": ["find"], "planned_later": ["find.pose.x"]},
        {"id": "bad", "name": "add", "after": [], "error": "ValueError: no"},
    ]});
    let table = "\
\x20STEP  TOOL         AFTER  PLAN
 find  find_object  -      motion · at most 15 s · holds head
 grab  grasp        find   planned later, with find.pose.x
 bad   add          -      ValueError: no
";
    let (ran, request) = run(&file(), &["--plan"], "ovos.tools.plan", plan).await;
    assert_eq!((ran.code, &*ran.out), (0, table), "{}", ran.err);
    assert_eq!(request, [json!({ "steps": steps() })]);
}

#[tokio::test]
async fn a_file_that_holds_no_steps_is_explained_and_nothing_is_asked() {
    for (text, part) in [
        ("[]", "expected {\"steps\":"),
        ("{", "steps.json: expected"),
        (r#"{"steps": [{"id": "a"}]}"#, "missing field `name`"),
        (
            r#"{"steps": [{"id": "a", "name": "b", "arg": {}}]}"#,
            "unknown field `arg`",
        ),
        (r#"{"steps": [], "call_id": "c"}"#, "unknown field `call_id`"),
    ] {
        let (ran, request) = run(text, &[], TOPIC, json!({})).await;
        assert_eq!(ran.code, 2, "{text}: {ran:?}");
        assert!(ran.err.contains(part), "{text}: {}", ran.err);
        assert_eq!(request, Vec::<Value>::new());
    }
    let home = tempfile::tempdir().unwrap();
    let ran = finish(command(home.path(), &["run", "/nowhere.json"]).spawn().unwrap()).await;
    assert_eq!(ran.code, 5, "{ran:?}");
    assert!(
        ran.err.contains("read the steps from /nowhere.json"),
        "{}",
        ran.err
    );
}
