//! One toolbox for each way to break a process. Only its own runs are lost, and their errors tell the cause.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use engine::{RunId, RunResult, Toolbox};
use host::{Hosted, Limits};
use ovos_toolbox_wire::Completion;

use crate::motion::motion;
use crate::support::fixture::{
    FixtureFolder, Recorder, all, opening, output, process_of, run, start, within,
};

/// The limits of a service, for tests of these limits.
fn real_limits() -> Limits {
    Limits {
        close: Duration::from_millis(300),
        ..Limits::default()
    }
}

async fn open(fixtures: &FixtureFolder, fixture: &str, limits: Limits) -> (Hosted, Arc<Recorder>) {
    let (process, manifest) = process_of(&fixtures.build(fixture, &[])).await;
    let mut opening = opening("{}");
    opening.limits = limits;
    let seen = Recorder::new();
    let toolbox = Hosted::in_child(process, manifest, opening, seen.clone())
        .await
        .unwrap();
    (toolbox, seen)
}

#[track_caller]
fn check(ended: &RunResult, expected: &[&str]) {
    let (RunResult::Lost(failure) | RunResult::NeverBegun(failure)) = ended else {
        panic!("expected the loss of the run, got {ended:?}");
    };
    assert_eq!(failure.kind, "ToolboxCrashed", "{failure}");
    for text in expected {
        assert!(
            failure.message.contains(text),
            "{failure} should contain {text:?}"
        );
    }
}

/// Its destructors would run at the same time as the function that has not returned.
#[tokio::test]
async fn a_process_whose_toolbox_does_not_close_runs_no_destructors() {
    let fixtures = FixtureFolder::new();
    let done = fixtures.path().join("done");
    let define = format!("\"{}\"", done.display());
    let (process, manifest) = process_of(&fixtures.build("close_hangs", &[("DONE", &define)])).await;
    let mut opening = opening("{}");
    opening.limits = real_limits();
    let toolbox = Hosted::in_child(process, manifest, opening, Recorder::new())
        .await
        .unwrap();
    // A process that only inspects the file may run destructors.
    _ = std::fs::remove_file(&done);
    assert!(!within(toolbox.close()).await, "it was closed");
    assert!(!done.exists(), "its process was ended by exit()");
}

#[tokio::test]
async fn a_process_that_dies_reports_how_and_affects_no_other() {
    let fixtures = FixtureFolder::new();
    let (neighbour, _) = fixtures.open("well_behaved").await;
    for (fixture, expected) in [
        ("aborts", &["signal 6 (SIGABRT)", "giving up"][..]),
        ("segfaults", &["signal 11 (SIGSEGV)"]),
        ("throws", &["signal 6 (SIGABRT)", "exception"]),
        ("exits", &["exit code 7", "that was all"]),
        // Either the runtime notices first and aborts, or the service, whose connections end.
        ("closes_fds", &["its process was"]),
    ] {
        let (toolbox, _) = fixtures.open(fixture).await;
        let died = toolbox.died();
        check(&run(&toolbox, 1, "go").await, expected);
        let death = within(died).await.expect("it was not asked to end");
        assert!(!death.moving, "{fixture}: {death:?}");
        let later = run(&toolbox, 2, "go").await;
        check(&later, expected);
        assert!(matches!(later, RunResult::NeverBegun(_)), "{fixture}: {later:?}");
        let halted = within(toolbox.halt(all(true, 1)))
            .await
            .unwrap_err()
            .into_failure();
        assert_eq!(halted.kind, "ToolboxCrashed", "{fixture}");
        assert!(
            within(toolbox.close()).await,
            "{fixture}: nothing is left to close"
        );
    }
    assert_eq!(output(&neighbour, 1).await["version"], "1");
}

#[tokio::test]
async fn a_busy_loop_is_ended_with_the_close_and_can_be_halted_before() {
    let fixtures = FixtureFolder::new();
    let (toolbox, seen) = open(&fixtures, "spins", real_limits()).await;
    let spinning = start(&toolbox, 1, "go");
    seen.wait_for("started", 1).await;
    within(toolbox.halt(all(true, 1))).await.unwrap();
    assert!(!within(toolbox.close()).await);
    assert!(matches!(within(spinning).await, RunResult::Lost(_)));
}

#[tokio::test]
async fn a_halt_without_an_answer_ends_the_process() {
    let fixtures = FixtureFolder::new();
    let (toolbox, seen) = open(&fixtures, "sleeps_in_halt", real_limits()).await;
    let moving = start(&toolbox, 1, "go");
    seen.wait_for("moving", 1).await;
    let failure = within(toolbox.halt(all(true, 1)))
        .await
        .unwrap_err()
        .into_failure();
    assert!(
        failure.message.contains("did not answer a halt within 200 ms"),
        "{failure}"
    );
    check(&within(moving).await, &["did not answer a halt"]);
}

#[tokio::test]
async fn an_open_that_hangs_is_ended_and_nothing_of_it_is_left() {
    let fixtures = FixtureFolder::new();
    let (process, manifest) = process_of(&fixtures.build("open_hangs", &[])).await;
    let mut opening = opening("{}");
    opening.limits.open = Duration::from_millis(200);
    let failure = within(Hosted::in_child(process, manifest, opening, Recorder::new()))
        .await
        .unwrap_err();
    assert!(failure.message.contains("within 0.2 s"), "{failure}");
}

#[tokio::test]
async fn memory_beyond_the_limit_ends_the_process() {
    let fixtures = FixtureFolder::new();
    let (mut process, manifest) = process_of(&fixtures.build("eats_memory", &[])).await;
    process.memory_mb = Some(128);
    let toolbox = Hosted::in_child(process, manifest, opening("{}"), Recorder::new())
        .await
        .unwrap();
    check(&run(&toolbox, 1, "go").await, &["MiB of memory; 128 are allowed"]);
}

#[tokio::test]
async fn floods_are_cut_and_the_work_goes_on() {
    let fixtures = FixtureFolder::new();
    for fixture in ["floods_log", "floods_progress"] {
        let (toolbox, _) = fixtures.open(fixture).await;
        for number in 1..=3 {
            assert_eq!(
                run(&toolbox, number, "go").await,
                RunResult::Reported(Completion::Output(1.into())),
                "{fixture}"
            );
        }
        let counts = toolbox.counts();
        assert!(
            counts.dropped_logs + counts.dropped_progress > 0,
            "{fixture}: {counts:?}"
        );
        assert!(within(toolbox.close()).await, "{fixture}");
    }
}

#[tokio::test]
async fn a_silent_process_is_ended_while_an_answer_is_due() {
    let fixtures = FixtureFolder::new();
    let (toolbox, seen) = open(&fixtures, "well_behaved", real_limits()).await;
    let waiting = start(&toolbox, 1, "wait");
    seen.wait_for("started", 1).await;
    crate::motion::signal(&toolbox, rustix::process::Signal::STOP);
    check(&within(waiting).await, &["silent for 500 ms"]);
}

#[tokio::test]
async fn the_process_gets_only_the_environment_that_it_needs() {
    let fixtures = FixtureFolder::new();
    // Its constructor would end the process that says hello already.
    assert!(std::env::var_os("CARGO_PKG_NAME").is_some());
    let (mut process, manifest) = process_of(&fixtures.build("constructor_looks", &[])).await;
    process.env = BTreeMap::from([("ROBOT".to_owned(), "1".to_owned())]);
    let toolbox = Hosted::in_child(process, manifest, opening("{}"), Recorder::new())
        .await
        .unwrap();
    let pid = toolbox.pid();
    let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap();
    let names: Vec<String> = environment
        .split(|byte| *byte == 0)
        .map(|entry| {
            String::from_utf8_lossy(entry)
                .split('=')
                .next()
                .unwrap()
                .to_owned()
        })
        .collect();
    assert!(names.iter().any(|name| name == "ROBOT") && names.iter().any(|name| name == "PATH"));
    // The variable of the section, and those that a program needs to find its files and to use the user's language.
    let allowed = "ROBOT HOME LANG LANGUAGE LD_LIBRARY_PATH LOGNAME PATH RUST_BACKTRACE TMPDIR TZ USER \
                 XDG_CONFIG_HOME XDG_DATA_HOME XDG_RUNTIME_DIR";
    let foreign = |name: &&String| {
        !name.is_empty() && !name.starts_with("LC_") && !allowed.split(' ').any(|allowed| allowed == *name)
    };
    assert_eq!(names.iter().find(foreign), None, "{names:?}");

    let open = |entry: std::io::Result<std::fs::DirEntry>| {
        std::fs::read_link(entry.ok()?.path())
            .ok()?
            .to_str()
            .map(str::to_owned)
    };
    let files: Vec<String> = std::fs::read_dir(format!("/proc/{pid}/fd"))
        .unwrap()
        .filter_map(open)
        .collect();
    // The test's own files, such as the fixture's folder and the binaries, are not among them.
    let foreign = |file: &&String| {
        !["socket:", "pipe:", "anon_inode:", "/dev/null"]
            .iter()
            .any(|allowed| file.starts_with(allowed))
    };
    assert_eq!(files.iter().find(foreign), None, "{files:?}");

    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let field = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().to_owned()
    };
    assert_eq!(field("NoNewPrivs:"), "1");
    assert_eq!(
        u64::from_str_radix(&field("SigBlk:"), 16).unwrap(),
        0,
        "nothing is blocked"
    );
    assert!(within(toolbox.close()).await);
}

#[tokio::test]
async fn a_toolbox_that_never_comes_back_is_replaced() {
    let fixtures = FixtureFolder::new();
    let mut limits = real_limits();
    limits.open = Duration::from_millis(300);
    let (toolbox, seen) = open(&fixtures, "hangs_for_ever", limits).await;
    let hanging = start(&toolbox, 1, "go");
    seen.wait_for("hanging", 1).await;
    check(
        &within(hanging).await,
        &["start() has not returned within `limits.open_ms`"],
    );
    // Also if no caller waits for it any more.
    let mut limits = real_limits();
    limits.open = Duration::from_millis(300);
    let (toolbox, seen) = open(&fixtures, "spins", limits).await;
    let died = toolbox.died();
    let spinning = start(&toolbox, 1, "go");
    seen.wait_for("started", 1).await;
    drop(spinning);
    assert!(within(died).await.is_some());
}

#[tokio::test]
async fn what_is_too_much_for_its_socket_costs_only_its_own_call() {
    let fixtures = FixtureFolder::new();
    let (toolbox, _) = fixtures.open("well_behaved").await;
    let mut huge = motion("go", 0);
    let params = &mut huge.action.params;
    params.insert("text".to_owned(), "x".repeat(64 << 20).into());
    let ended = within(toolbox.start(RunId(1), huge, None)).await;
    let RunResult::Reported(Completion::Error(failure)) = ended else {
        panic!("expected a refusal, got {ended:?}");
    };
    assert!(failure.message.contains("the limit is 67108864"), "{failure}");
    assert_eq!(output(&toolbox, 2).await["version"], "1");
}

#[test]
fn a_safe_stop_that_never_returns_ends_by_itself_and_one_that_is_missing_is_said() {
    let fixtures = FixtureFolder::new();
    for (fixture, code, signal, text) in [
        ("safe_stop_hangs", None, Some(9), "safe_stop did not return"),
        ("well_behaved", Some(0), None, "no safe_stop: nothing was called"),
    ] {
        let file = fixtures.build(fixture, &[]);
        let output = Command::new(env!("CARGO_BIN_EXE_ovos-tools"))
            .args(["toolbox-host", "--safe-stop"])
            .arg(file)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert_eq!(
            (output.status.code(), output.status.signal()),
            (code, signal),
            "{fixture}: {output:?}"
        );
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.contains(text), "{fixture}: {errors}");
    }
}
