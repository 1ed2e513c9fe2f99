//! The state that outlives the service: latches of removed toolboxes, files that cannot be read, and a disk that does
//! not respond.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::support::process::DEADLINE;
use crate::support::scene::Scene;
use crate::support::stage::{Stage, ids, put, serve};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::Signal;
use serde_json::{Value, json};

/// Its bus clients lift stops also of toolboxes that are gone.
fn stage() -> Stage {
    Stage::with_plugins(&["testbed"], &[], Scene::new(&json!({ "operator_tools": true })))
}

impl Stage {
    /// Kills the service, as a power cut does, and starts it again.
    fn restart(&mut self) {
        self.service.kill();
        self.service = serve(&self.scene, &mut self.client, &[]);
    }

    fn state(&self, name: &str) -> PathBuf {
        let state = self.scene.sandbox.path("state/ovos-tools");
        fs::create_dir_all(&state).unwrap();
        state.join(name)
    }

    /// The stop that holds each toolbox.
    fn latched(&mut self) -> Vec<(String, Option<String>)> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let status = self.status();
        let toolboxes = status["toolboxes"].as_array().unwrap();
        let line = |it: &Value| (text(&it["toolbox_id"]).unwrap(), text(&it["stop_id"]));
        toolboxes.iter().map(line).collect()
    }

    /// Waits until the file of latches has these toolboxes.
    #[track_caller]
    fn until_remembered(&self, ids: &[&str]) {
        let end = Instant::now() + DEADLINE;
        loop {
            let text = fs::read_to_string(self.state("latches.json")).unwrap_or_default();
            let entries: serde_json::Map<_, _> = serde_json::from_str(&text).unwrap_or_default();
            if entries.keys().eq(ids) {
                return;
            }
            assert!(Instant::now() < end, "not {ids:?}: {text}");
            std::thread::park_timeout(Duration::from_millis(5));
        }
    }
}

#[test]
fn a_removed_toolbox_does_not_keep_the_others_from_being_stopped() {
    let mut stage = stage();
    put(&stage.scene, "testbed_dup");
    stage.reload();
    let first = stage.stop(&json!({}));
    assert_eq!(ids(&first), [("testbed", true), ("testbed_dup", true)]);
    let first = first[0]["stop_id"].as_str().unwrap().to_owned();
    fs::remove_file(stage.scene.sandbox.path("plugins/testbed_dup.so")).unwrap();
    stage.reload();

    for data in [json!({ "toolbox_id": "testbed_dup" }), json!({})] {
        // The removed copy may still be closing.
        let end = Instant::now() + DEADLINE;
        let stopped = loop {
            let stopped = stage.stop(&data);
            if ids(&stopped) == [("testbed", true)] || Instant::now() > end {
                break stopped;
            }
        };
        assert_eq!(ids(&stopped), [("testbed", true)], "{data}: {stopped}");
    }
    let [(testbed, Some(held))] = &stage.latched()[..] else {
        panic!("one toolbox, and it is held: {}", stage.status())
    };
    assert_eq!(testbed, "testbed");
    assert_ne!(*held, first);
    let held = held.clone();

    // A toolbox that was latched when it was removed would return latched, until a resume of everything.
    stage.until_remembered(&["testbed", "testbed_dup"]);
    stage.restart();
    assert_eq!(stage.latched(), [("testbed".to_owned(), Some(held.clone()))]);
    let resumed = stage.resume("all", &held);
    assert_eq!(ids(&resumed), [("all", true), ("testbed", true)], "{resumed}");
    stage.until_remembered(&[]);
    put(&stage.scene, "testbed_dup");
    stage.reload();
    let open = ["testbed", "testbed_dup"].map(|id| (id.to_owned(), None));
    assert_eq!(stage.latched(), open);
}

/// After a power cut in the middle of a write, or with a failing disk, the latches are unknown, so nothing may move.
#[test]
fn a_file_that_cannot_be_read_holds_everything_until_that_is_lifted() {
    for broken in ["latches.json", "moving.json"] {
        let mut stage = stage();
        stage.service.kill();
        fs::write(stage.state(broken), r#"{"testbed": "#).unwrap();
        stage.service = serve(&stage.scene, &mut stage.client, &[]);
        let all = stage.status()["all_latched"]["stop_id"]
            .as_str()
            .unwrap()
            .to_owned();
        let aside = stage.state(&format!("{broken}.broken"));
        assert!(aside.exists(), "{broken} is kept");
        // The stop outlives the service, and holds toolboxes that are added later.
        stage.restart();
        assert_eq!(
            stage.status()["all_latched"]["stop_id"],
            all,
            "{}",
            stage.service.log()
        );
        put(&stage.scene, "testbed_dup");
        stage.reload();
        let held = ["testbed", "testbed_dup"].map(|id| (id.to_owned(), Some(all.clone())));
        assert_eq!(stage.latched(), held);
        let refused = stage
            .client
            .invoke("assemble", &json!({ "step_ms": 1, "steps": 1 }));
        let error = refused["error"].as_str().unwrap();
        assert!(
            error.starts_with("EmergencyStop: ") && error.contains(broken),
            "{error}"
        );
        assert_eq!(
            stage.client.invoke("add", &json!({ "a": 1, "b": 2 }))["result"]["result"],
            3
        );

        let alone = stage.resume("testbed", &all);
        assert_eq!(ids(&alone), [("testbed", false)], "{alone}");
        let wrong = stage.resume("all", "stop-of-last-week");
        assert_eq!(ids(&wrong), [("all", false)], "{wrong}");
        assert!(aside.exists());
        let resumed = stage.resume("all", &all);
        assert_eq!(
            ids(&resumed),
            [("all", true), ("testbed", true), ("testbed_dup", true)],
            "{resumed}"
        );
        stage.until_remembered(&[]);
        assert_eq!(stage.status().get("all_latched"), None);
        let moved = stage
            .client
            .invoke("assemble", &json!({ "step_ms": 1, "steps": 1 }));
        assert_eq!(moved["result"]["success"], true, "{moved}");
        // The service is ended, so that its last write is known.
        stage.service.signal(Signal::TERM);
        assert!(stage.service.end_within(DEADLINE).success());
        assert!(!aside.exists(), "kept until then");
        stage.service = serve(&stage.scene, &mut stage.client, &[]);
        let open = ["testbed", "testbed_dup"].map(|id| (id.to_owned(), None));
        assert_eq!(stage.latched(), open);
    }
}

/// A worn memory card, or a home folder on the network: the disk of the state does not respond for 10 s.
#[test]
fn a_disk_that_does_not_answer_holds_up_nothing_but_motion() {
    const STALL: Duration = Duration::from_secs(10);
    /// The time limit of an answer, with slack for a machine busy with tests.
    const PROMPT: Duration = Duration::from_millis(900);
    let mut stage = stage();
    // This is a pipe: opening it waits until the other end is opened.
    let fresh = stage.state("latches.json.new");
    mknodat(CWD, &fresh, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();

    let stalled = Instant::now();
    let mut longest = [Duration::ZERO; 3];
    let mut rounds = 0;
    while stalled.elapsed() < STALL {
        let mut timed = |kind: usize, begun: Instant| longest[kind] = longest[kind].max(begun.elapsed());
        let start = Instant::now();
        let stopped = stage.stop(&json!({}));
        timed(0, start);
        assert_eq!(ids(&stopped), [("testbed", false)], "{stopped}");
        let error = stopped[0]["error"].as_str().unwrap();
        assert!(
            error.starts_with("StateError: ") && error.contains("does not answer"),
            "{error}"
        );
        let stop_id = stopped[0]["stop_id"].as_str().unwrap().to_owned();
        assert_eq!(ids(&stage.resume("testbed", &stop_id)), [("testbed", true)]);
        for (name, args) in [("add", json!({ "a": 1, "b": 2 })), ("set_mark", json!({}))] {
            let start = Instant::now();
            let answer = stage.client.invoke(name, &args);
            timed(1, start);
            assert!(answer.get("error").is_none(), "{answer}");
        }
        let start = Instant::now();
        let refused = stage
            .client
            .invoke("assemble", &json!({ "step_ms": 1, "steps": 1 }));
        timed(2, start);
        let error = refused["error"].as_str().unwrap_or_default();
        assert!(
            error.starts_with("BusyError: the motion could not be recorded"),
            "{refused}"
        );
        rounds += 1;
    }
    let [stop, call, motion] = longest;
    assert!(
        stop < PROMPT && call < PROMPT,
        "stop {stop:?}, read and write {call:?}"
    );
    assert!(
        motion >= Duration::from_secs(1) && motion < Duration::from_secs(1) + PROMPT,
        "{motion:?}"
    );
    eprintln!("{rounds} rounds; longest: stop {stop:?}, read or write {call:?}, motion refused {motion:?}");

    // The disk responds again. The content written into the pipe is lost, so the next change writes all of it.
    let reader = fs::File::open(&fresh).unwrap();
    fs::remove_file(&fresh).unwrap();
    drop(reader);
    let end = Instant::now() + DEADLINE;
    loop {
        let moved = stage
            .client
            .invoke("assemble", &json!({ "step_ms": 1, "steps": 1 }));
        if moved["result"]["success"] == true {
            break;
        }
        assert!(Instant::now() < end, "{moved}\n{}", stage.service.log());
    }
    let stopped = stage.stop(&json!({}));
    assert_eq!(ids(&stopped), [("testbed", true)], "{stopped}");
    stage.until_remembered(&["testbed"]);
}
