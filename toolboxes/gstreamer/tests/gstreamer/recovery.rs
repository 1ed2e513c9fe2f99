//! Which pipelines are started again after a restart, and what is reported about the others.
use crate::rig::Rig;
use serde_json::{Value, json};
use std::collections::BTreeMap;

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
        assert!(failure.message.contains("no pipeline other"), "{failure}");
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

/// A crash costs its own pipeline; the others play on, and their files are finished.
#[test]
fn a_pipeline_that_crashes_is_reported_with_its_element_and_costs_only_itself() {
    crate::rig::faulty();
    let rig = Rig::new();
    let file = rig.rec("film.mkv");
    let film = format!(
        "videotestsrc is-live=true ! video/x-raw,width=64,height=64,framerate=25/1 ! x264enc tune=zerolatency ! \
         matroskamux ! filesink location={}",
        file.display()
    );
    let film = rig.start(&film);
    for args in [
        json!({"pipeline": "faultycrash name=bomb"}),
        json!({"pipeline": "videotestsrc ! fakesink faultycrash name=bomb"}),
    ] {
        let failure = rig.fails("start_pipeline", args.clone());
        assert_eq!(failure.kind, "PipelineError", "{args}: {failure}");
        for part in ["bomb", "signal"] {
            assert!(failure.message.contains(part), "{args}: {failure}");
        }
    }
    // One that is to be started again waits longer each time.
    let again =
        json!({"pipeline": "faultycrash", "name": "again", "restart": "on_failure", "wait_for": "started"});
    rig.ok("start_pipeline", again);
    rig.status_until("again", "third start", |status| {
        status["restarts"].as_u64().unwrap() >= 2
    });
    rig.ok("stop_pipeline", json!({"instance_id": "again"}));
    assert_eq!(rig.status(&film)["state"], "playing");
    let stopped = rig.ok("stop_pipeline", json!({"instance_id": film}));
    assert_eq!(stopped["files_finished"], true, "{stopped}");
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
