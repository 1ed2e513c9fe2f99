//! Servers that hang, die, print junk or list broken tools: each costs only itself, and the status says why.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::mounts::scene::{Scene, fake};

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
            "pages",
            &["pages"],
            "down",
            "its list of tools has more than 100 pages",
            0,
        ),
        (
            "collides",
            &["collides"],
            "ready",
            "`two/parts` is left out: its name maps to `two_parts`",
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
        let why = toolbox["backend"]["reason"].as_str().unwrap();
        assert!(why.contains(reason), "{name}: {why}");
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
        "`no-such-server` was not found in the service's PATH",
        "loose has mode 0777",
        "loose.py has mode 0666",
    ] {
        assert!(failed.contains(told), "{told}: {failed}");
    }
    unknown_tools_are_told_with_the_reason(&mut scene);
}

/// A toolbox of which no tool is known yet.
fn unknown_tools_are_told_with_the_reason(scene: &mut Scene) {
    let down = "toolbox 'dies' offers no tools now (down): the server ended with status 4; its last lines: its token";
    for (mount, expected) in [
        ("dies", down),
        ("missing", "`no-such-server` was not found in the service's PATH"),
        ("wrong", "mounts.wrong.timeot: unknown key"),
    ] {
        let by_id = scene.call(mount, "echo", &json!({}))["error"].to_string();
        let alias = json!({ "name": format!("{mount}__echo"), "args": {} });
        let by_alias = scene.client.ask("ovos.tools.invoke", &alias)["error"].to_string();
        for (error, name) in [(by_id, "echo".to_owned()), (by_alias, format!("{mount}__echo"))] {
            let fixed = format!("Unknown tool: '{name}': toolbox '{mount}'");
            let whole = error.contains(&fixed)
                && error.contains(expected)
                && ["ovos-tools status", "ovos-tools reload"]
                    .iter()
                    .any(|advice| error.contains(advice));
            assert!(whole, "{expected}: {error}");
        }
    }
    let alias = json!({ "name": "good__nothing", "args": {} });
    let answer = scene.client.ask("ovos.tools.invoke", &alias);
    assert_eq!(answer["error"], "Unknown tool: 'good__nothing'");
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
fn a_server_that_freezes_in_a_call_comes_back() {
    let mut scene = Scene::of(|sandbox| {
        let mut mount = fake(sandbox, "fake", &["freezes"]);
        mount["timeout"] = json!(1);
        json!({ "fake": mount })
    });
    scene.until_tools("fake", 10);
    // The next call comes each time before the server has owed an answer for long.
    let end = Instant::now() + Duration::from_secs(40);
    loop {
        let answer = scene.call("fake", "echo", &json!({ "text": "again" }));
        if answer["result"]["content"] == "again" {
            break;
        }
        assert!(Instant::now() < end, "{answer}");
        std::thread::park_timeout(Duration::from_secs(2));
    }
    assert_eq!(scene.trace("fake").matches("it is frozen").count(), 1);
    let toolbox = scene.until_tools("fake", 10);
    assert_eq!(toolbox["restarts"], 0, "the toolbox has stayed: {toolbox}");
}

#[test]
fn a_server_that_hangs_at_its_first_start_comes_back() {
    let mut scene = Scene::of(|sandbox| {
        let mut mount = fake(sandbox, "fake", &["hangs_first"]);
        mount["startup_timeout"] = json!(3);
        json!({ "fake": mount })
    });
    scene.until("fake", "down");
    scene.until("fake", "ready");
    let answer = scene.call("fake", "echo", &json!({ "text": "hello" }));
    assert_eq!(answer["result"]["content"], "hello", "{answer}");
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

#[test]
fn a_storm_of_changes_is_listed_once_a_second_and_holds_nothing_up() {
    let mut scene = Scene::of(|sandbox| json!({ "fake": fake(sandbox, "fake", &["storm"]) }));
    scene.until_tools("fake", 10);
    let lists = |scene: &Scene| scene.trace("fake").matches("list\n").count() / 2;
    let (began, before) = (Instant::now(), lists(&scene));
    let answer = scene.call("fake", "slow", &json!({ "steps": 40 }));
    assert_eq!(answer["result"]["content"], "done", "{answer}");
    let (listed, seconds) = (lists(&scene) - before, began.elapsed().as_secs());
    assert!(listed >= 2, "it is listed again: {listed} in {seconds} s");
    assert!(listed as u64 <= seconds + 2, "{listed} lists in {seconds} s");
    let short = json!({ "timeout_ms": 300 });
    let answer = scene.ask("fake", "slow", &json!({ "steps": 600 }), &short)["error"].to_string();
    assert!(answer.contains("TimeoutError"), "{answer}");
    scene.until_trace("fake", "cancelled");
}

#[test]
fn a_server_that_is_busy_with_a_call_owes_no_list() {
    let mut scene = Scene::of(|sandbox| {
        let mut mount = fake(sandbox, "fake", &["one_at_a_time"]);
        mount["startup_timeout"] = json!(1);
        json!({ "fake": mount })
    });
    scene.until_tools("fake", 10);
    let answer = scene.call("fake", "slow", &json!({ "steps": 40 }));
    assert_eq!(answer["result"]["content"], "done", "{answer}");
    assert_eq!(
        scene.trace("fake").matches("pid ").count(),
        1,
        "it was never ended"
    );
}

#[test]
fn a_mount_ends_while_its_server_owes_a_list() {
    let mut scene = Scene::of(|sandbox| json!({ "fake": fake(sandbox, "fake", &["owes"]) }));
    scene.until_tools("fake", 10);
    scene.call("fake", "renew", &json!({}));
    scene.until_trace("fake", "owes");
    let began = Instant::now();
    let report = scene.reload(&json!({}));
    assert_eq!(report["removed"], json!(["fake"]), "{report}");
    // The server sees the end of its input, and is not killed when the time of the close is over, 10 s.
    scene.until_trace("fake", "eof");
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
}

#[test]
fn a_script_that_has_changed_is_checked_before_it_is_started_again() {
    let mut scene = Scene::of(|sandbox| {
        let script = sandbox.path("own.py");
        fs::copy(crate::mounts::scene::script("server.py"), &script).unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o644)).unwrap();
        let mut mount = fake(sandbox, "fake", &[]);
        mount["args"][0] = json!(script);
        json!({ "fake": mount })
    });
    let script = scene.sandbox.path("own.py");
    scene.until_tools("fake", 10);
    // A new version that only its owner can have written is used.
    fs::set_permissions(&script, fs::Permissions::from_mode(0o600)).unwrap();
    let answer = scene.call("fake", "die", &json!({})).to_string();
    assert!(answer.contains("it dies as it was told"), "{answer}");
    status_has_restarted(&mut scene);
    // One that others can have written is not.
    fs::set_permissions(&script, fs::Permissions::from_mode(0o666)).unwrap();
    let starts = scene.trace("fake").matches("pid ").count();
    scene.call("fake", "die", &json!({}));
    let client = &mut scene.client;
    scene.service.until("the reason in the status", |_| {
        let status = client.ask("ovos.tools.status", &json!({})).to_string();
        status.contains("own.py has mode 0666").then_some(())
    });
    assert_eq!(scene.trace("fake").matches("pid ").count(), starts);
}

fn status_has_restarted(scene: &mut Scene) {
    crate::support::status::toolbox_until(&mut scene.client, "fake", "a restart", |toolbox| {
        toolbox["restarts"] == 1 && toolbox["backend"]["state"] == "ready" && toolbox["tools"] == 10
    });
}
