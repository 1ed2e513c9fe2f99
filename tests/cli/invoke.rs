//! Calls: the request, the output, and the end of a call whose caller goes away.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::scripted::{Bus, Ran, command, finish, run};

const TOPIC: &str = "ovos.tools.invoke";

/// Calls `add` with these arguments and this answer; returns the run and the request.
async fn call(arguments: &[&str], answer: Value) -> (Ran, Value) {
    let bus = Bus::answering(TOPIC, answer).await;
    let ran = run(&[&["invoke", "add", "--bus", &bus.url], arguments].concat()).await;
    let mut requests = bus.requests(TOPIC);
    assert_eq!(requests.len(), 1, "{arguments:?}: {ran:?}");
    (ran, requests.remove(0))
}

#[tokio::test]
async fn the_request_has_the_keys_of_the_arguments() {
    for (arguments, expected) in [
        (&["--call-id", "c"][..], json!({"name": "add", "args": {}, "call_id": "c", "detail": true, "content": "path"})),
        (
            &["a=1", "b=x y", "--call-id", "c"],
            json!({"name": "add", "args": {"a": 1, "b": "x y"}, "call_id": "c", "detail": true, "content": "path"}),
        ),
        (
            &[r#"{"a": 123456789012345678901234567890}"#, "--call-id", "c", "--toolbox", "math"],
            serde_json::from_str(
                r#"{"name": "add", "args": {"a": 123456789012345678901234567890}, "call_id": "c", "detail": true, "content": "path",
                    "toolbox_id": "math"}"#,
            )
            .unwrap(),
        ),
        (
            &["--call-id", "c", "--timeout-ms", "500", "--detail", "--progress"],
            json!({"name": "add", "args": {}, "call_id": "c", "timeout_ms": 500, "detail": true, "progress": true,
                "content": "path"}),
        ),
    ] {
        let (ran, request) = call(arguments, json!({"name": "add", "result": {}})).await;
        assert_eq!((ran.code, &request), (0, &expected), "{arguments:?}: {}", ran.err);
    }
    let (_, first) = call(&[], json!({"name": "add", "result": {}})).await;
    let (_, second) = call(&[], json!({"name": "add", "result": {}})).await;
    assert_ne!(
        first["call_id"], second["call_id"],
        "calls without an id get one of their own"
    );
}

#[tokio::test]
async fn the_exit_code_tells_how_the_call_ended() {
    for (answer, code, out, err) in [
        (json!({"result": {"result": 3}}), 0, "{\n  \"result\": 3\n}\n", ""),
        (json!({"result": {"ok": true}}), 0, "{\n  \"ok\": true\n}\n", ""),
        (json!({"result": {"ok": 0}}), 0, "{\n  \"ok\": 0\n}\n", ""),
        (
            json!({"result": {"ok": false}}),
            1,
            "{\n  \"ok\": false\n}\n",
            "error: the tool reported failure (ok: false)\n",
        ),
        (
            json!({"result": {"success": false, "done": 2}}),
            1,
            "{\n  \"success\": false,\n  \"done\": 2\n}\n",
            "error: the tool reported failure (success: false)\n",
        ),
        (
            json!({"error": "Unknown tool: 'add'"}),
            1,
            "",
            "error: Unknown tool: 'add'\n",
        ),
        (
            json!({"name": "add"}),
            1,
            "",
            "error: the answer holds neither a result nor an error\n",
        ),
        (json!({"result": "\u{1b}[2J"}), 0, "\"\\u001b[2J\"\n", ""),
    ] {
        let (ran, _) = call(&[], answer.clone()).await;
        assert_eq!((ran.code, &*ran.out, &*ran.err), (code, out, err), "{answer}");
        let (ran, _) = call(&["--json"], answer.clone()).await;
        assert_eq!(
            (ran.code, ran.out, &*ran.err),
            (code, format!("{answer}\n"), err),
            "{answer}"
        );
    }
}

#[tokio::test]
async fn a_failed_call_shows_its_report_when_it_is_asked_for() {
    let answer = json!({"name": "add", "error": "RuntimeError: gripper jammed", "error_detail": {
        "kind": "RuntimeError", "data": null, "report": {"outcome": "failed", "duration_ms": 1700, "actions": [
            {"id": "scan", "name": "scan", "subsystems": [], "wave": 1, "outcome": "completed", "duration_ms": 200},
            {"id": "grasp", "name": "grasp", "subsystems": ["left_arm"], "wave": 2, "outcome": "failed",
             "duration_ms": 1500, "error": {"kind": "RuntimeError", "message": "gripper jammed"}},
            {"id": "lift", "name": "lift", "subsystems": ["left_arm"], "wave": 3, "outcome": "skipped",
             "duration_ms": 0}]}}});
    let text = "\
\x20ACTION  OUTCOME    TOOK    ERROR
 scan    completed  200 ms
 grasp   failed     1.5 s   gripper jammed
 lift    skipped    0 ms
";
    let (ran, _) = call(&["--detail"], answer).await;
    assert_eq!(
        (ran.code, &*ran.out, &*ran.err),
        (1, text, "error: RuntimeError: gripper jammed\n")
    );
}

/// A service that reports progress before it answers.
async fn talkative() -> Bus {
    Bus::start(Box::new(|topic, data| {
        if topic != TOPIC {
            return Vec::new();
        }
        let progress = |seq: u64, rest: Value| {
            let mut data = json!({"call_id": data["call_id"], "name": "add", "toolbox_id": "math", "seq": seq,
                "wave": 1, "waves": 2, "elapsed_ms": seq * 100});
            data.as_object_mut()
                .unwrap()
                .extend(rest.as_object().unwrap().clone());
            (format!("{TOPIC}.progress"), data)
        };
        vec![
            progress(0, json!({"kind": "queued"})),
            progress(1, json!({"kind": "wave"})),
            progress(2, json!({"kind": "action_started", "action": "scan"})),
            progress(
                3,
                json!({"kind": "update", "action": "scan", "fraction": 0.5, "message": "half"}),
            ),
            progress(
                4,
                json!({"kind": "action_ended", "action": "scan", "outcome": "completed"}),
            ),
            (
                format!("{TOPIC}.progress"),
                json!({"call_id": "another call", "kind": "wave"}),
            ),
            (format!("{TOPIC}.response"), json!({"name": "add", "result": 5})),
        ]
    }))
    .await
}

#[tokio::test]
async fn progress_is_told_beside_the_result() {
    let bus = talkative().await;
    let ran = run(&["invoke", "add", "--progress", "--bus", &bus.url]).await;
    let lines = "    0.0s  waits for its subsystems
    0.1s  wave 1 of 2
    0.2s    scan started
    0.3s    scan 50%: half
    0.4s    scan completed
";
    assert_eq!((ran.code, &*ran.out, &*ran.err), (0, "5\n", lines));
    let ran = run(&["invoke", "add", "--progress", "--quiet", "--bus", &bus.url]).await;
    assert_eq!((ran.code, &*ran.out, &*ran.err), (0, "", ""));
    let ran = run(&["invoke", "add", "--progress", "--json", "--bus", &bus.url]).await;
    let kinds: Vec<Value> = ran
        .err
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["kind"].clone())
        .collect();
    assert_eq!(
        json!(kinds),
        json!(["queued", "wave", "action_started", "update", "action_ended"])
    );
    assert_eq!(ran.out, "{\"name\":\"add\",\"result\":5}\n");
}

#[tokio::test]
async fn arguments_can_come_from_stdin() {
    use tokio::io::AsyncWriteExt;
    let bus = Bus::answering(TOPIC, json!({"result": 1})).await;
    let home = tempfile::tempdir().unwrap();
    let mut program = command(home.path(), &["invoke", "add", "-", "--bus", &bus.url]);
    let mut child = program.stdin(std::process::Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(br#"{"a": [1, 2]}"#).await.unwrap();
    drop(stdin);
    let ran = finish(child).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(bus.requests(TOPIC)[0]["args"], json!({"a": [1, 2]}));
}

#[tokio::test]
async fn a_command_that_times_out_cancels_its_call() {
    let mut bus = Bus::start(Box::new(|_, _| Vec::new())).await;
    let ran = run(&[
        "invoke",
        "slow",
        "--call-id",
        "c-9",
        "--timeout",
        "0.3",
        "--bus",
        &bus.url,
    ])
    .await;
    assert_eq!(ran.code, 4, "{ran:?}");
    assert!(ran.err.contains("a cancel was sent"), "{}", ran.err);
    assert_eq!(bus.hears("ovos.tools.cancel").await, json!({"call_id": "c-9"}));
}

#[tokio::test]
async fn ctrl_c_and_a_closed_terminal_cancel_the_call_and_tell_how_it_went() {
    let cancelled = json!({"call_id": "c-9", "cancelled": true, "state": "running"});
    let text = "error: interrupted; the call c-9 was cancelled\n";
    for (signal, answer, text) in [
        (Signal::INT, cancelled.clone(), text),
        (Signal::HUP, cancelled.clone(), text),
        (Signal::TERM, cancelled.clone(), text),
        (Signal::QUIT, cancelled, text),
        (
            Signal::INT,
            json!({"call_id": "c-9", "cancelled": false, "state": "ended"}),
            "error: interrupted; the call c-9 was not cancelled: it had ended\n",
        ),
    ] {
        let mut bus = Bus::answering("ovos.tools.cancel", answer).await;
        let home = tempfile::tempdir().unwrap();
        let child = command(
            home.path(),
            &["invoke", "slow", "--call-id", "c-9", "--bus", &bus.url],
        )
        .spawn()
        .unwrap();
        bus.hears(TOPIC).await;
        let pid = Pid::from_raw(child.id().unwrap() as i32).unwrap();
        kill_process(pid, signal).unwrap();
        let ran = finish(child).await;
        assert_eq!(ran.code, 1, "{ran:?}");
        assert!(ran.err.ends_with(text), "{}", ran.err);
    }
}

/// A call may take hours, so the program waits without a limit of its own once it knows that there is a service.
#[tokio::test]
async fn without_a_sign_of_life_the_wait_is_short() {
    let bus = Bus::start(Box::new(|_, _| Vec::new())).await;
    let ran = run(&["invoke", "slow", "--bus", &bus.url]).await;
    assert_eq!(ran.code, 4, "{ran:?}");
    assert!(
        ran.err.contains("within 5 s: start one with `ovos-tools serve`"),
        "{}",
        ran.err
    );
    assert_eq!(bus.requests("ovos.tools.get"), [json!({"name": "slow"})]);
}
