//! Toolboxes that misbehave: they harm only themselves, and all of their output is checked.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use engine::{RunId, RunResult, Toolbox};
use host::{Limits, ToolboxConfig};
use ovos_toolbox_wire::{Completion, Object};
use serde_json::{Value, json};

use crate::support::fixture::{FixtureFolder, action, all, error, output, run, start, within};
use crate::support::rig::Rig;

fn reported(output: impl Into<Value>) -> RunResult {
    RunResult::Reported(Completion::Output(output.into()))
}

#[tokio::test]
async fn content_arrives_beside_the_output_and_what_is_none_does_no_harm() {
    let fixtures = FixtureFolder::new();
    let folder = fixtures.path().join("content");
    std::fs::create_dir(&folder).unwrap();
    let (toolbox, _) = fixtures.open("shows").await;
    assert_eq!(
        run(&toolbox, 1, "go").await,
        reported(json!({"shown": true})),
        "there is no folder"
    );
    let toolbox = toolbox.with_content_dir(folder.to_str().map(str::to_owned));
    let result = |output: Value, content: Value| RunResult::Shown {
        output,
        content: content.as_array().unwrap().clone(),
    };
    for number in [2, 3] {
        let RunResult::Shown { output, content } = run(&toolbox, number, "go").await else {
            panic!("no content");
        };
        let path = content[0]["path"].as_str().unwrap();
        assert!(path.ends_with("-a.txt"), "{path}");
        assert_eq!(output, json!({"shown": true}));
        assert_eq!(
            content,
            [json!({"type": "text", "mime_type": "text/plain", "path": path})]
        );
        assert_eq!(std::fs::read(folder.join(path)).unwrap(), b"from C");
    }
    let files = std::fs::read_dir(&folder).unwrap().count();
    assert_eq!(files, 2, "each run has a file of its own");
    assert_eq!(run(&toolbox, 4, "nothing").await, result(json!(1), json!([])));
    assert_eq!(
        run(&toolbox, 5, "no_list").await,
        result(json!(1), json!([{"path": "a"}]))
    );
    assert_eq!(error(run(&toolbox, 6, "beside_error").await), "E: m");
}

#[tokio::test]
async fn a_halt_during_a_start_is_repeated_after_it() {
    let fixtures = FixtureFolder::new();
    let (toolbox, seen) = fixtures.open("hangs_in_start").await;
    let hanging = start(&toolbox, 1, "wait");
    seen.wait_for("hanging", 1).await;
    let queued = start(&toolbox, 2, "go");
    within(toolbox.halt(all(true, 1))).await.unwrap();
    assert_eq!(
        within(queued).await,
        RunResult::Cancelled,
        "it was planned before the stop"
    );
    let counts = within(toolbox.start(RunId(3), action("go", 1), None)).await;
    assert_eq!(counts, reported(json!({"halts": 2, "cancels": 0})));
    drop(hanging);
}

#[tokio::test]
async fn a_cancel_during_a_start_is_repeated_after_it() {
    let fixtures = FixtureFolder::new();
    let (toolbox, seen) = fixtures.open("hangs_in_start").await;
    let hanging = start(&toolbox, 1, "wait");
    seen.wait_for("hanging", 1).await;
    drop(start(&toolbox, 9, "go"));
    toolbox.cancel(RunId(1));
    seen.wait_for("cancelled", 2).await;
    assert_eq!(output(&toolbox, 2).await, json!({"halts": 0, "cancels": 2}));
    assert_eq!(
        seen.count("ran"),
        1,
        "what was given up before it began never begins"
    );
    drop(hanging);
}

#[tokio::test]
async fn a_start_that_never_returns_costs_only_its_own_toolbox() {
    let fixtures = FixtureFolder::new();
    let short = |limits: &mut Limits| limits.close = Duration::from_millis(50);
    let (toolbox, seen) = fixtures.open_within("hangs_for_ever", short).await;
    let hanging = start(&toolbox, 1, "go");
    let queued = start(&toolbox, 2, "go");
    seen.wait_for("hanging", 1).await;
    toolbox.cancel(RunId(2));
    assert_eq!(
        within(queued).await,
        RunResult::Cancelled,
        "what is queued can still be cancelled"
    );
    within(toolbox.halt(all(true, 1))).await.unwrap();
    assert!(!within(toolbox.close()).await, "it is abandoned");
    assert!(matches!(within(hanging).await, RunResult::Lost(_)));
    let halted = within(toolbox.halt(all(true, 2))).await;
    assert!(halted.is_err(), "its process has ended: {halted:?}");
}

#[tokio::test]
async fn a_run_that_ignores_its_cancel_can_be_given_up() {
    let fixtures = FixtureFolder::new();
    let (toolbox, seen) = fixtures.open("ignores_cancel").await;
    let ignored = start(&toolbox, 1, "wait");
    seen.wait_for("started", 1).await;
    toolbox.cancel(RunId(1));
    within(toolbox.halt(all(false, 0))).await.unwrap();
    assert_eq!(output(&toolbox, 2).await["version"], "1", "the others go on");
    assert_eq!(toolbox.open_runs(), 1);
    drop(ignored);
    assert_eq!(toolbox.open_runs(), 0);
    assert!(within(toolbox.close()).await);
    assert_eq!(
        toolbox.counts().late_completions,
        1,
        "its completion came with the close and was dropped"
    );
}

#[tokio::test]
async fn completions_count_once_whenever_they_come() {
    let fixtures = FixtureFolder::new();
    let (toolbox, seen) = fixtures.open("completes_twice").await;
    assert_eq!(run(&toolbox, 1, "go").await, reported("first"));
    seen.wait_for("released_both", 1).await;
    assert_eq!(toolbox.counts().late_completions, 1);

    let (toolbox, _) = fixtures.open("completes_before_start_returns").await;
    assert_eq!(run(&toolbox, 1, "go").await, reported("early"));
    assert_eq!(
        run(&toolbox, 2, "refuse").await,
        reported("early"),
        "the first word counts"
    );
    assert_eq!(toolbox.open_runs(), 0);

    let (toolbox, seen) = fixtures.open("completes_late").await;
    let given_up = start(&toolbox, 2, "go");
    seen.wait_for("started", 1).await;
    drop(given_up);
    toolbox.message("speak", "{}");
    seen.wait_for("completed", 1).await;
    assert_eq!(toolbox.counts().late_completions, 1);

    let (toolbox, _) = fixtures.open("completes_unknown_run").await;
    assert_eq!(run(&toolbox, 1, "go").await, reported("mine"));
    assert_eq!(toolbox.counts().unknown_completions, 3);
}

#[tokio::test]
async fn text_that_is_none_becomes_an_error() {
    let fixtures = FixtureFolder::new();
    let (toolbox, seen) = fixtures.open("bad_text").await;
    for (id, word, expected) in [
        (1, "go", "ToolboxError: the result is not UTF-8 (byte 11)"),
        (
            2,
            "null",
            "ToolboxError: the result is a null pointer with a length of 17 bytes",
        ),
        (3, "empty", "ToolboxError: the result is not usable"),
        (4, "panic", "ToolboxPanic: the action panicked"),
        (6, "status", "ToolboxError: "),
        (
            5,
            "refuse",
            "ToolboxError: the reason that start() gave is not UTF-8",
        ),
    ] {
        let found = error(run(&toolbox, id, word).await);
        assert!(
            found.starts_with(expected),
            "{found:?} should start with {expected:?}"
        );
    }
    let counts = toolbox.counts();
    assert_eq!(
        (
            counts.dropped_events,
            counts.dropped_progress,
            counts.refused_requests
        ),
        (30, 30, 30)
    );
    assert_eq!(seen.count("started"), 0);
    for (tool, expected) in [
        ("any", "not UTF-8"),
        ("empty", "has no action"),
        ("shape", "not usable"),
    ] {
        let found = within(toolbox.plan(tool, &Object::new()))
            .await
            .unwrap_err()
            .into_failure()
            .to_string();
        assert!(found.contains(expected), "{found:?} should contain {expected:?}");
    }
}

#[tokio::test]
async fn a_result_is_bounded_in_size_and_depth() {
    let fixtures = FixtureFolder::new();
    let (toolbox, seen) = fixtures.open("huge_result").await;
    let found = error(run(&toolbox, 1, "go").await);
    assert!(
        found.contains("is 9437184 bytes; the limit is 8388608"),
        "{found}"
    );
    let found = error(run(&toolbox, 2, "deep").await);
    assert!(found.contains("recursion limit"), "{found}");
    seen.wait_for("released", 2).await;
}

#[tokio::test]
async fn floods_are_cut_and_hide_nothing_urgent() {
    let fixtures = FixtureFolder::new();
    let (toolbox, seen) = fixtures.open("floods").await;
    let count = Arc::new(AtomicUsize::new(0));
    let sink = Arc::clone(&count);
    let progress = Arc::new(move |_| {
        sink.fetch_add(1, Ordering::Relaxed);
    });
    let ended = within(toolbox.start(RunId(1), action("go", 0), Some(progress))).await;
    assert_eq!(ended, reported(1));
    let counts = toolbox.counts();
    let events = (seen.count("noise") + seen.count("backend")) as u64;
    assert_eq!(events + counts.dropped_events, 200_000);
    assert_eq!(
        count.load(Ordering::Relaxed) as u64 + counts.dropped_progress,
        100_000
    );
    assert!(
        counts.dropped_logs > 50_000 && counts.dropped_progress > 50_000 && counts.dropped_events > 50_000,
        "{counts:?}"
    );
    assert_eq!(seen.count("latched"), 1);
}

#[tokio::test]
async fn a_halt_is_never_behind_another_call() {
    let fixtures = FixtureFolder::new();
    let (toolbox, _) = fixtures.open("halt_hangs").await;
    let first = tokio::spawn(toolbox.halt(all(true, 1)));
    // The second halt releases the first; if it waited for the first, both would time out.
    within(toolbox.halt(all(true, 2))).await.unwrap();
    within(first).await.unwrap().unwrap();

    let (toolbox, seen) = fixtures.open("cancel_hangs").await;
    let waiting = start(&toolbox, 1, "wait");
    seen.wait_for("started", 1).await;
    toolbox.cancel(RunId(1));
    seen.wait_for("cancelling", 1).await;
    within(toolbox.halt(all(true, 1))).await.unwrap();
    drop(waiting);
}

#[tokio::test]
async fn a_resume_never_lifts_a_newer_stop() {
    let fixtures = FixtureFolder::new();
    let (toolbox, seen) = fixtures.open("resume_waits_for_stop").await;
    let resume = tokio::spawn(toolbox.resume());
    seen.wait_for("resuming", 1).await;
    let queued = tokio::spawn(toolbox.resume());
    tokio::task::yield_now().await;
    within(toolbox.halt(all(true, 1))).await.unwrap();
    assert_eq!(
        within(resume).await.unwrap().unwrap_err().into_failure().kind,
        "EmergencyStop"
    );
    assert_eq!(
        within(queued).await.unwrap().unwrap_err().into_failure().kind,
        "EmergencyStop"
    );
    seen.wait_for("halted_emergency", 2).await;
}

#[tokio::test]
async fn a_table_of_a_newer_minor_version_works() {
    let fixtures = FixtureFolder::new();
    let (toolbox, _) = fixtures.open("newer_minor").await;
    assert_eq!(output(&toolbox, 1).await["version"], "1");
}

#[tokio::test]
async fn tools_that_cannot_be_used_are_left_out_and_named() {
    let fixtures = FixtureFolder::new();
    let (toolbox, _) = fixtures.open("bad_tools").await;
    let set = within(toolbox.tools()).await.unwrap();
    assert_eq!(
        set.tools
            .iter()
            .map(|t| t.definition.name.as_str())
            .collect::<Vec<_>>(),
        ["fine"]
    );
    assert_eq!(
        set.dropped.iter().map(|t| t.name.as_str()).collect::<Vec<_>>(),
        ["fine", "no good", "bare", "arm", "ahead"]
    );
    assert_eq!(
        set.unknown.iter().map(|u| u.keys.as_slice()).collect::<Vec<_>>(),
        [["efect"]]
    );
}

#[tokio::test]
async fn tools_that_move_are_left_out_of_a_toolbox_without_a_halt() {
    let fixtures = FixtureFolder::new();
    let (toolbox, _) = fixtures
        .open_with("well_behaved", &[("HALT", "NULL")], "{}")
        .await;
    let set = within(toolbox.tools()).await.unwrap();
    assert_eq!(
        set.tools
            .iter()
            .map(|t| t.definition.name.as_str())
            .collect::<Vec<_>>(),
        ["work"]
    );
    let dropped = set.dropped[0].to_string();
    assert!(
        dropped.starts_with("tool `move`: its effect is motion, and the toolbox has no `halt`"),
        "{dropped}"
    );
    within(toolbox.halt(all(true, 1))).await.unwrap();
}

/// Loads the files beside a good toolbox and expects a reason for each of them.
async fn check(rig: &Rig, files: &[(&str, &[&str])]) {
    rig.add("good", "1", &[]);
    let report = rig.reload().await;
    assert_eq!(
        report.added,
        ["good"],
        "the good one is loaded whatever lies beside it: {report:?}"
    );
    assert_eq!(report.broken.len(), files.len(), "{report:?}");
    for (name, expected) in files {
        let file = rig.fixtures.path().join(format!("{name}.so"));
        let failed = report.broken.iter().find(|failed| failed.path == file);
        let reason = &failed
            .unwrap_or_else(|| panic!("{name} should be broken: {report:?}"))
            .reason;
        for part in [&[&*file.to_string_lossy()], *expected].concat() {
            assert!(
                reason.contains(part),
                "{name}: {reason:?} should contain {part:?}"
            );
        }
    }
    assert_eq!(rig.version("good").await, "1");
}

#[tokio::test]
async fn files_that_are_no_toolbox_are_refused_with_the_reason() {
    let rig = Rig::new();
    let files: [(&str, &[&str]); 9] = [
        ("no_entry", &["has no symbol toolbox_entry_v1"]),
        ("null_table", &["returned null"]),
        ("short_size", &["has 64 bytes", "at least 128"]),
        ("null_pointers", &["required functions are null: start, resume"]),
        (
            "bad_manifest",
            &["All Arms", "`exclusive`", "ovos.tools.invoke", "config_schema"],
        ),
        ("garbage", &["invalid ELF header"]),
        ("empty", &["file too short"]),
        ("half", &["is truncated"]),
        ("dangling", &["No such file"]),
    ];
    for (name, _) in &files[..5] {
        rig.fixtures.build(name, &[]);
    }
    let write = |name: &str, bytes: &[u8]| std::fs::write(rig.fixtures.path().join(name), bytes).unwrap();
    write("garbage.so", &[b'x'; 4096]);
    write("empty.so", b"");
    let whole = std::fs::read(rig.fixtures.path().join("no_entry.so")).unwrap();
    write("half.so", &whole[..whole.len() / 2]);
    std::os::unix::fs::symlink("/no/such/file", rig.fixtures.path().join("dangling.so")).unwrap();
    check(&rig, &files).await;
}

#[tokio::test]
async fn files_that_kill_or_hang_their_loader_affect_only_their_own_process() {
    let rig = Rig::with(|settings| settings.greeter.limit = Duration::from_secs(1));
    let files: [(&str, &[&str]); 4] = [
        ("constructor_crashes", &["SIGSEGV", "about to | crash"]),
        ("constructor_aborts", &["SIGABRT"]),
        ("constructor_exits", &["exit code 0 before it answered"]),
        (
            "constructor_hangs",
            &["does not load within 1000 ms", "waiting for a licence server"],
        ),
    ];
    for (name, _) in files {
        rig.fixtures.build(name, &[]);
    }
    check(&rig, &files).await;
}

#[tokio::test]
async fn a_file_that_others_can_write_is_not_loaded() {
    use std::os::unix::fs::PermissionsExt;
    let rig = Rig::new();
    let path = rig.add("open", "1", &[]);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
    check(&rig, &[("open", &["mode 0666", "chmod go-w"])]).await;
}

#[tokio::test]
async fn a_list_of_hashes_pins_the_files() {
    let fixtures = FixtureFolder::new();
    let pinned = fixtures.build("well_behaved", &[]);
    let bytes = std::fs::read(&pinned).unwrap();
    let rig = Rig::new();
    let pin = |hash: String| {
        let config = ToolboxConfig {
            allow_sha256: vec![hash],
            ..ToolboxConfig::default()
        };
        rig.obey("good", config);
    };
    pin("0".repeat(64));
    std::fs::write(rig.fixtures.path().join("good.so"), &bytes).unwrap();
    let report = rig.reload().await;
    assert!(
        report.added.is_empty() && report.broken[0].reason.contains("allow_sha256"),
        "{report:?}"
    );
    let reason = report.broken[0].reason.clone();
    let hash = reason
        .split_whitespace()
        .find(|word| word.trim_end_matches(',').len() == 64)
        .unwrap();
    pin(hash.trim_end_matches(',').to_owned());
    assert_eq!(rig.reload().await.added, ["good"]);
}
