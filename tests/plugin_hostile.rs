//! Toolboxes that misbehave in the service's own process, in every way that it can survive.
//!
//! A crash after loading, which it cannot survive, is tested in `process_isolation`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on fails"
)]

#[path = "support/fixture.rs"]
mod fixture;
#[path = "support/misbehaviour.rs"]
mod misbehaviour;
#[path = "support/rig.rs"]
mod rig;

const ISOLATION: host::Isolation = host::Isolation::InProcess;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::{Ended, Toolbox};
use fixture::{DEADLINE, FixtureFolder, Recorder, all, opening, start, within};
use host::{Hosted, Library, Limits, Probe};

#[tokio::test]
async fn a_halt_that_is_not_confirmed_is_a_failure() {
    let fixtures = FixtureFolder::new();
    let path = fixtures.build("halt_hangs", &[]);
    let library = Arc::new(Library::load(&path, &path).unwrap());
    let mut open = opening("{}");
    open.limits.halt = Limits::default().halt;
    let toolbox = Hosted::in_process(library, open, Recorder::new()).await.unwrap();
    let asked = Instant::now();
    let failure = within(toolbox.halt(all(true, 1)))
        .await
        .unwrap_err()
        .into_failure();
    assert_eq!(failure.kind, "TimeoutError");
    assert!(asked.elapsed() >= Duration::from_millis(200), "it has 200 ms");
    drop(within(toolbox.halt(all(true, 2))).await);
}

#[tokio::test]
async fn an_open_that_does_not_return_is_given_up() {
    let fixtures = FixtureFolder::new();
    let path = fixtures.build("open_hangs", &[]);
    let library = Arc::new(Library::load(&path, &path).unwrap());
    let mut open = opening("{}");
    open.limits.open = Duration::from_millis(50);
    let failure = within(Hosted::in_process(library, open, Recorder::new()))
        .await
        .unwrap_err();
    assert_eq!(failure.kind, "TimeoutError");
}

#[tokio::test]
async fn a_thread_that_outlives_its_toolbox_calls_into_nothing() {
    let fixtures = FixtureFolder::new();
    let done = fixtures.path().join("done");
    let define = format!("\"{}\"", done.display());
    let (toolbox, seen) = fixtures
        .open_with("leaks_thread", &[("DONE", &define)], "{}")
        .await;
    let lost = start(&toolbox, 1, "go");
    seen.wait_for("started", 1).await;
    within(toolbox.close()).await;
    drop(toolbox);
    // Either the close ended it, or the thread was faster.
    assert!(matches!(within(lost).await, Ended::Lost(_) | Ended::Reported(_)));
    let deadline = Instant::now() + DEADLINE;
    while !done.exists() {
        assert!(
            Instant::now() < deadline,
            "the thread did not come through its thousand calls"
        );
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn output_and_threads_of_a_file_after_its_probe_are_ignored() {
    let fixtures = FixtureFolder::new();
    let path = fixtures.build("constructor_talks", &[]);
    let probe = Probe::with_program(env!("CARGO_BIN_EXE_ovos-tools"));
    assert_eq!(within(probe.run(&path, &path)).await.unwrap().id, "hostile");
    let none = Probe::with_program("/no/such/program");
    let failure = within(none.run(&path, Path::new("/shown.so")))
        .await
        .unwrap_err()
        .to_string();
    assert!(
        failure.contains("/no/such/program") && failure.contains("/shown.so"),
        "{failure}"
    );
}

#[tokio::test]
async fn an_author_is_told_everything_at_once() {
    let fixtures = FixtureFolder::new();
    let program = Probe::with_program(env!("CARGO_BIN_EXE_ovos-tools"));
    for (fixture, errors, warnings) in [
        ("well_behaved", &[][..], &["no `description`", "no `licence`"][..]),
        (
            "bad_tools",
            &[
                "tool `fine`: its name is taken",
                "tool `no good`",
                "tool `bare`",
                "tool `arm`: it has no `effect`; write what the tool does: \"effect\": \"read\"",
                "tool `ahead`: `argument_schema`: schema at #/properties/x/pattern: the pattern \"(?=a)\"",
            ],
            &[
                "no `description`",
                "no `licence`",
                "tool `arm`: unknown keys, which are ignored: `efect`",
            ],
        ),
        ("bad_manifest", &["All Arms"], &[]),
        ("no_entry", &["has no symbol"], &["something_else"]),
        ("constructor_crashes", &["SIGSEGV"], &[]),
    ] {
        let path = fixtures.build(fixture, &[]);
        let found = within(host::inspect(&path, &program)).await;
        for (found, expected) in [(&found.errors, errors), (&found.warnings, warnings)] {
            assert_eq!(found.len(), expected.len(), "{fixture}: {found:?}");
            for (found, expected) in found.iter().zip(expected) {
                assert!(
                    found.contains(expected),
                    "{fixture}: {found:?} should contain {expected:?}"
                );
            }
        }
    }
    let found = within(host::inspect(Path::new("/no/such.so"), &program)).await;
    assert!(found.errors[0].contains("No such file"), "{found:?}");
}

#[test]
fn a_check_uses_the_environment_of_the_section_with_the_files_name() {
    let fixtures = FixtureFolder::new();
    let path = fixtures.build_as("needy", "needs_environment", &[("ID", "\"needy\"")]);
    let config = fixtures.path().join("mycroft.conf");
    for (env, code, said) in [
        (r#"{}"#, 1, "where is ROS"),
        (r#"{"AMENT_PREFIX_PATH": "/opt/ros/humble"}"#, 0, "needy"),
        (
            r#"{"AMENT_PREFIX_PATH": 5}"#,
            1,
            "no `env` was set, because the configuration is wrong",
        ),
    ] {
        let section = format!(r#"{{"PHAL": {{"ovos-phal-plugin-tools": {{"needy": {{"env": {env}}}}}}}}}"#);
        std::fs::write(&config, section).unwrap();
        let mut check = std::process::Command::new(env!("CARGO_BIN_EXE_ovos-tools"));
        check.env_remove("AMENT_PREFIX_PATH");
        let ended = check
            .arg("--config")
            .arg(&config)
            .arg("check")
            .arg(&path)
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&ended.stdout);
        assert_eq!(ended.status.code(), Some(code), "{env}: {told}");
        assert!(told.contains(said), "{env}: {told}");
    }
}
