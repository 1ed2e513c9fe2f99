//! Servers that hang, die, print junk or list broken tools: each costs only itself, and the status says why.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::scene::{Scene, fake};

#[test]
fn a_server_that_misbehaves_costs_only_itself() {
    // words, state, part of the reason, tools
    let cases: &[(&str, &[&str], &str, &str, usize)] = &[
        ("good", &[], "ready", "10 tools", 10),
        (
            "hangs",
            &["hangs"],
            "down",
            "did not answer within 2 s (startup_timeout)",
            0,
        ),
        (
            "dies",
            &["dies"],
            "down",
            "ended with status 4; its last lines: its token is not set | the licence has run out",
            0,
        ),
        ("junk", &["junk"], "ready", "10 tools", 10),
        (
            "broken",
            &["broken_tool"],
            "ready",
            "tool `broken` is left out: it has no inputSchema",
            10,
        ),
        (
            "crowded",
            &["crowded"],
            "down",
            "it lists more than 1000 tools",
            0,
        ),
        (
            "collides",
            &["collides"],
            "ready",
            "`two/parts` is left out: its name becomes `two_parts`",
            11,
        ),
    ];
    let began = Instant::now();
    let mut scene = Scene::of(|sandbox| {
        let mounts = cases.iter().map(|(name, words, ..)| {
            let mut mount = fake(sandbox, name, words);
            mount["startup_timeout"] = json!(if *name == "hangs" { 2 } else { 60 });
            ((*name).to_owned(), mount)
        });
        let mut mounts: serde_json::Map<String, Value> = mounts.collect();
        mounts.insert("missing".to_owned(), json!({ "command": "no-such-server" }));
        let (command, loose) = (sandbox.path("loose"), sandbox.path("loose.py"));
        for (path, mode) in [(&command, 0o777), (&loose, 0o666)] {
            fs::write(path, "").unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
        mounts.insert("loose".to_owned(), json!({ "command": command }));
        mounts.insert(
            "script".to_owned(),
            json!({ "command": "/usr/bin/python3", "args": [loose] }),
        );
        mounts.insert("wrong".to_owned(), json!({ "command": "x", "timeot": 1 }));
        Value::Object(mounts)
    });
    let ready = began.elapsed();
    let status = scene.client.ask("ovos.tools.status", &json!({}));
    let hangs = status["toolboxes"].as_array().unwrap().iter();
    let hangs = hangs.filter(|toolbox| toolbox["toolbox_id"] == "hangs");
    assert!(
        hangs
            .clone()
            .any(|toolbox| toolbox["backend"]["state"] == "starting")
            || ready > Duration::from_secs(2),
        "no server delays readiness ({ready:?}): {status}"
    );
    for (name, _, state, reason, tools) in cases {
        let toolbox = scene.until(name, state);
        let told = toolbox["backend"]["reason"].as_str().unwrap();
        assert!(told.contains(reason), "{name}: {told}");
        scene.until_tools(name, *tools);
        if *tools > 0 {
            let answer = scene.call(name, "echo", &json!({ "text": name }));
            assert_eq!(answer["result"]["content"], *name, "{answer}");
        }
    }
    let failed = scene.client.ask("ovos.tools.status", &json!({}))["failed"].to_string();
    assert!(
        failed.contains("mounts.wrong.timeot: unknown key (did you mean \\\"timeout\\\"?)"),
        "{failed}"
    );
    for told in [
        "`no-such-server` is in no folder of the service's PATH",
        "loose has mode 0777",
        "loose.py has mode 0666",
    ] {
        assert!(failed.contains(told), "{told}: {failed}");
    }
}

#[test]
fn a_server_that_died_says_why_and_comes_back() {
    let mut scene = Scene::of(|sandbox| json!({ "fake": fake(sandbox, "fake", &[]) }));
    scene.until_tools("fake", 10);
    let answer = scene.call("fake", "die", &json!({}))["error"].to_string();
    assert!(
        answer.contains("ConnectionError")
            && answer.contains(
                "ended with status 3; its last lines: its token is not set | it dies as it was told"
            ),
        "{answer}"
    );
    scene.until("fake", "ready");
    let answer = scene.call("fake", "echo", &json!({ "text": "again" }));
    assert_eq!(answer["result"]["content"], "again", "{answer}");
    let toolbox = scene.until_tools("fake", 10);
    assert_eq!(toolbox["restarts"], 0, "the toolbox has stayed: {toolbox}");
}

#[test]
fn a_call_while_a_server_is_tried_again_is_answered_with_the_reason() {
    let mut scene = Scene::of(|sandbox| {
        // Its list is known, and then it hangs at each further start.
        let mut good = fake(sandbox, "good", &["hangs_later"]);
        good["startup_timeout"] = json!(5);
        json!({ "good": good })
    });
    scene.until_tools("good", 10);
    scene.call("good", "die", &json!({}));
    // The third start is an attempt after one that has failed.
    let began = |trace: &str| trace.matches("pid ").count();
    let end = Instant::now() + Duration::from_secs(60);
    while began(&scene.trace("good")) < 3 {
        assert!(Instant::now() < end, "{}", scene.trace("good"));
        std::thread::park_timeout(Duration::from_millis(20));
    }
    let short = json!({ "timeout_ms": 1000 });
    let answer = scene.ask("good", "echo", &json!({ "text": "x" }), &short)["error"].to_string();
    assert!(answer.contains("did not answer within 5 s"), "{answer}");
}

#[test]
fn a_server_of_the_old_era_that_is_too_slow_for_the_probe_is_greeted_in_the_old_way() {
    let mut scene = Scene::of(|sandbox| {
        let mut mount = fake(sandbox, "fake", &["silent"]);
        mount["startup_timeout"] = json!(3);
        json!({ "fake": mount })
    });
    scene.until_tools("fake", 10);
}

#[test]
fn a_server_of_the_old_era_is_probed_once() {
    let mut scene = Scene::of(|sandbox| json!({ "fake": fake(sandbox, "fake", &["silent"]) }));
    // The probe takes 10 s.
    scene.until_tools("fake", 10);
    scene.call("fake", "die", &json!({}));
    scene.until("fake", "down");
    let back = Instant::now();
    scene.until("fake", "ready");
    assert!(back.elapsed() < Duration::from_secs(9), "{:?}", back.elapsed());
    let probes = scene.trace("fake").matches("unknown server/discover").count();
    assert_eq!(probes, 1, "{}", scene.trace("fake"));
}
