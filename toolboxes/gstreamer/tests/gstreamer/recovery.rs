//! Which pipelines are started again after a restart, and what is reported about the others.
use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::rig::Rig;
use serde_json::{Value, json};

const LIVE: &str = "videotestsrc is-live=true ! fakesink";

/// (name, state) of all running instances, and (name, reason) of all ended ones.
fn all(rig: &Rig) -> (BTreeMap<String, String>, BTreeMap<String, String>) {
    let listed = rig.ok("get_running_instances", json!({}));
    let pairs = |list: &Value, what: &str| {
        let list = list.as_array().unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        list.iter()
            .map(|entry| (text(&entry["name"]), text(&entry[what])))
            .collect()
    };
    (
        pairs(&listed["instances"], "state"),
        pairs(&listed["ended"], "reason"),
    )
}

/// Starts one pipeline of each kind.
fn three(rig: &Rig) {
    for (name, more) in [
        ("plain", json!({})),
        ("stubborn", json!({"restart": "on_failure"})),
        ("always", json!({"autostart": true})),
    ] {
        let mut args = json!({"pipeline": LIVE, "name": name, "wait_ms": 30_000});
        for (key, value) in more.as_object().unwrap() {
            args[key] = value.clone();
        }
        assert_eq!(rig.ok("start_pipeline", args)["state"], "playing");
    }
}

#[test]
fn after_a_close_what_is_to_start_by_itself_comes_back() {
    let mut rig = Rig::new();
    three(&rig);
    rig.reopen();
    let (live, over) = all(&rig);
    assert_eq!(live.keys().collect::<Vec<_>>(), ["always"]);
    assert!(over.is_empty(), "{over:?}");
    rig.status_until("always", "play", |status| status["state"] == "playing");
    // A stopped pipeline is not started again.
    rig.ok("stop_pipeline", json!({"instance_id": "always"}));
    rig.reopen();
    assert!(all(&rig).0.is_empty());
}

#[test]
fn no_id_comes_twice_and_none_is_the_name_of_another() {
    let mut rig = Rig::with(json!({"autostart": {"cam": {"pipeline": LIVE}}}));
    let mut ids: Vec<String> = Vec::new();
    for restart in 0..3 {
        if restart > 0 {
            rig.reopen();
        }
        let mut start = |name: Option<&str>| {
            let mut args = json!({"pipeline": LIVE, "wait_for": "started"});
            if let Some(name) = name {
                args["name"] = json!(name);
            }
            let started = rig.ok("start_pipeline", args);
            let id = started["instance_id"].as_str().unwrap().to_owned();
            assert!(!ids.contains(&id), "{id} after {ids:?}");
            ids.push(id.clone());
            id
        };
        let first = start(None);
        let number: u64 = first.rsplit('-').next().unwrap().parse().unwrap();
        // What the one after next would be called.
        let name = format!("pipeline-{}", number + 2);
        start(Some(&name));
        assert_ne!(start(None), name);
        let args = json!({"pipeline": LIVE, "name": first});
        let failure = rig.fails("start_pipeline", args);
        assert!(failure.message.contains("the name"), "{failure}");
    }
}

#[test]
fn what_has_ended_by_itself_comes_back_until_it_is_stopped() {
    let mut rig = Rig::with(json!({"max_instances": 2}));
    let short = "videotestsrc num-buffers=5 ! fakesink";
    for name in ["film", "other"] {
        let args = json!({"pipeline": short, "name": name, "autostart": true, "wait_for": "started"});
        rig.ok("start_pipeline", args);
        rig.status_until(name, "end", |status| status["state"] == "ended");
    }
    // They do not accumulate.
    let more = json!({"pipeline": short, "autostart": true, "wait_for": "started"});
    let failure = rig.fails("start_pipeline", more);
    assert!(failure.message.contains("max_instances"), "{failure}");
    rig.ok("stop_pipeline", json!({"instance_id": "other"}));
    for _ in 0..2 {
        rig.reopen();
        // It plays or has ended already: both are runs after the start of the toolbox.
        let status = rig.status_until("film", "end", |status| status["state"] == "ended");
        assert_eq!(status["reason"], "end of stream", "{status}");
        let failure = rig.fails("pipeline_status", json!({"instance_id": "other"}));
        assert!(failure.message.contains("no instance other"), "{failure}");
    }
    rig.ok("stop_pipeline", json!({"instance_id": "film"}));
    rig.reopen();
    let (live, over) = all(&rig);
    assert!(live.is_empty() && over.is_empty(), "{live:?} {over:?}");
}

#[test]
fn after_a_crash_what_may_be_restarted_comes_back_and_the_rest_is_reported() {
    let mut rig = Rig::new();
    three(&rig);
    let list = rig.dir.path().join("state/instances.json");
    let running = std::fs::read(&list).unwrap();
    let id = rig.status("stubborn")["instance_id"].clone();
    rig.close();
    // The list on disk when the process dies.
    std::fs::write(&list, running).unwrap();
    rig.open();
    let (live, over) = all(&rig);
    assert_eq!(live.keys().collect::<Vec<_>>(), ["always", "stubborn"]);
    assert_eq!(over["plain"], "the toolbox's process died");
    let event = rig.toolbox().wait_event("pipeline_ended").data.unwrap();
    assert_eq!(event["name"], "plain", "{event}");
    let status = rig.status_until("stubborn", "play", |status| status["state"] == "playing");
    assert_eq!(status["instance_id"], id, "it is the same instance");
    let new = rig.start("fakesrc is-live=true ! fakesink");
    assert_ne!(json!(new), id);
}

/// Closes and opens the toolbox as after a crash of its process, with this instance on trial or with those that were.
fn crash(rig: &mut Rig, on_trial: Option<&str>) {
    let path = rig.dir.path().join("state/instances.json");
    let mut list = read(&path);
    rig.close();
    for entry in list["instances"].as_array_mut().unwrap() {
        if let Some(name) = on_trial {
            entry["on_trial"] = json!(entry["name"] == name);
        }
    }
    std::fs::write(&path, list.to_string()).unwrap();
    rig.open();
}

fn read(list: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(list).unwrap()).unwrap()
}

#[test]
fn what_takes_the_process_with_it_again_and_again_is_left_alone() {
    let mut rig = Rig::new();
    let args = json!({"pipeline": LIVE, "name": "stubborn", "restart": "on_failure", "wait_ms": 30_000});
    rig.ok("start_pipeline", args);
    for crashes in 1..=3 {
        crash(&mut rig, None);
        if crashes < 3 {
            rig.status_until("stubborn", "play", |status| status["state"] == "playing");
        }
    }
    let (live, over) = all(&rig);
    assert!(live.is_empty(), "{live:?}");
    assert!(over["stubborn"].contains("died 3 times"), "{over:?}");
}

#[test]
fn suspects_come_back_one_after_another_the_least_suspicious_first() {
    let mut rig = Rig::new();
    three(&rig);
    for (tried, waits) in [("stubborn", "always"), ("always", "stubborn")] {
        crash(&mut rig, None);
        rig.status_until(tried, "play", |status| status["state"] == "playing");
        assert_eq!(rig.status(waits)["state"], "restarting", "{waits}");
    }
    // A waiting instance can be stopped.
    rig.ok("stop_pipeline", json!({"instance_id": "stubborn"}));
    assert!(!all(&rig).0.contains_key("stubborn"));
}

#[test]
fn what_has_run_for_a_while_does_not_pay_for_what_kills_the_process() {
    let mut rig = Rig::new();
    let args = json!({"pipeline": LIVE, "name": "cam", "restart": "on_failure", "wait_ms": 30_000});
    rig.ok("start_pipeline", args);
    runs_long_enough(&rig.dir.path().join("state/instances.json"));
    // It stands for an element that crashes the process at each start.
    let args = json!({"pipeline": LIVE, "name": "killer", "autostart": true, "wait_ms": 30_000});
    rig.ok("start_pipeline", args);
    for crashes in 1..=3 {
        // From the second time on it was started when the other had passed its trial.
        crash(&mut rig, Some("killer"));
        rig.status_until("cam", "play", |status| status["state"] == "playing");
        let (live, over) = all(&rig);
        if crashes < 3 {
            assert_eq!(live["killer"], "restarting", "after {crashes}");
        } else {
            assert!(over["killer"].contains("died 3 times"), "{over:?}");
        }
    }
    // It is held back: another crash does not start it, a proper restart does.
    crash(&mut rig, Some("nobody"));
    assert!(!all(&rig).0.contains_key("killer"));
    rig.reopen();
    rig.status_until("killer", "play", |status| status["state"] == "playing");
}

/// Environment variable with the state folder for the child process of a test.
const STATE: &str = "OVOS_TEST_STATE";

#[test]
fn a_pipeline_that_kills_its_process_waits_and_the_other_plays_on() {
    let state = tempfile::tempdir().unwrap();
    let died = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "recovery::the_process_that_is_killed", "--ignored"])
        .env(STATE, state.path())
        // Its temporary files are removed with the test.
        .env("TMPDIR", state.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&died.stderr);
    assert!(died.status.signal().is_some(), "it ended otherwise: {said}");
    crate::rig::faulty();
    let rig = Rig::with(json!({"state_dir": state.path()}));
    rig.status_until("cam", "play", |status| status["state"] == "playing");
    let status = rig.status("bomb");
    assert_eq!(status["state"], "restarting", "{status:#}");
    rig.ok("stop_pipeline", json!({"instance_id": "bomb"}));
    assert_eq!(rig.status("cam")["state"], "playing");
}

#[test]
#[ignore = "another test starts it in a process of its own, which dies"]
fn the_process_that_is_killed() {
    let Some(state) = std::env::var_os(STATE) else {
        return;
    };
    crate::rig::faulty();
    let state = std::path::PathBuf::from(state);
    let rig = Rig::with(json!({"state_dir": state}));
    let args = json!({"pipeline": LIVE, "name": "cam", "restart": "on_failure", "wait_ms": 30_000});
    rig.ok("start_pipeline", args);
    runs_long_enough(&state.join("instances.json"));
    let args = json!({"pipeline": "faultycrash", "name": "bomb", "restart": "always"});
    rig.ok("start_pipeline", args);
}

/// Waits until the first pipeline of a list is off trial.
fn runs_long_enough(list: &Path) {
    let end = Instant::now() + crate::rig::DEADLINE;
    while read(list)["instances"][0]["on_trial"] != false {
        assert!(Instant::now() < end, "it is on trial for ever");
        std::thread::park_timeout(Duration::from_millis(50));
    }
}

#[test]
fn a_list_that_cannot_be_read_is_put_aside() {
    let mut rig = Rig::new();
    three(&rig);
    rig.close();
    let list = rig.dir.path().join("state/instances.json");
    for text in ["{ half", r#"{"version": 99, "closed": true, "instances": []}"#] {
        std::fs::write(&list, text).unwrap();
        rig.open();
        assert!(all(&rig).0.is_empty());
        rig.start(LIVE);
        let aside = std::fs::read_to_string(list.with_extension("json.unreadable")).unwrap();
        assert_eq!(aside, text);
        rig.close();
    }
}

#[test]
fn the_configuration_starts_pipelines_and_what_it_says_now_counts() {
    let mut rig = Rig::with(json!({"autostart": {
        "wall": {"pipeline": LIVE, "restart": "on_failure"},
        "wrong": {"pipeline": "filesrc location=/etc/passwd ! fakesink"},
    }}));
    rig.status_until("wall", "play", |status| status["state"] == "playing");
    let wrong = rig.status_until("wrong", "refusal", |status| status["state"] == "failed");
    assert!(
        wrong["error"].as_str().unwrap().contains("read_roots"),
        "{wrong:#}"
    );
    rig.reopen();
    let (live, _) = all(&rig);
    assert_eq!(live.keys().filter(|name| *name == "wall").count(), 1, "{live:?}");
}
