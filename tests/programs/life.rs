//! What a program that behaves gets, and that it is restarted and reloaded as a plugin is.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::scene::{Entry, Scene};
use crate::support::kernel::can_confine;
use crate::support::status;

#[test]
fn a_program_starts_in_surroundings_of_its_own() {
    let mut scene = Scene::start(&[]);
    let toolbox = scene.until("good", "readiness", |toolbox| toolbox["state"] == "ready");
    assert_eq!(
        (&toolbox["version"], &toolbox["isolation"]),
        (&json!("3"), &json!("process"))
    );
    assert_eq!(toolbox["path"], json!(scene.script("good")));
    let answer = scene.call("good", "surroundings");
    let found = &answer["result"];
    let expected = json!({
        "files": [], "mode": 0o700, "umask": 0o077, "stdin": "/dev/null", "output": true, "open": [0, 1, 2, 3, 4],
        "mark": null, "secret": null, "config": { "trace": scene.trace() },
    });
    for (key, value) in expected.as_object().unwrap() {
        assert_eq!(found[key], *value, "{key}: {answer}");
    }
    // The folder goes with the program.
    let folder = found["folder"].as_str().unwrap().to_owned();
    assert!(fs::exists(&folder).unwrap(), "{folder}");
    scene.service.process.signal(Signal::TERM);
    scene
        .service
        .process
        .end_within(crate::support::process::DEADLINE);
    assert!(!fs::exists(&folder).unwrap(), "{folder}");
}

#[test]
fn a_program_that_dies_in_motion_is_brought_to_rest_latched_and_restarted() {
    let mut scene = Scene::ready(&[]);
    let call = json!({ "name": "move", "args": {}, "toolbox_id": "good", "call_id": "m" });
    scene.client.send("ovos.tools.invoke", &call);
    scene.client.until_call("m", "running");
    let toolbox = scene.until("good", "process", |_| true);
    status::signal(&toolbox, Signal::KILL);
    scene.client.until_answered([&"m".to_owned()]);
    let answer = scene.client.only_answer("m").to_string();
    assert!(
        answer.contains("ToolboxCrashed") && answer.contains("SIGKILL"),
        "{answer}"
    );
    let toolbox = scene.until("good", "a restart", |toolbox| {
        toolbox["generation"] == 2 && toolbox["state"] == "ready"
    });
    assert_eq!(
        (&toolbox["latched"], &toolbox["restarts"]),
        (&json!(true), &json!(1)),
        "{toolbox}"
    );
    assert_eq!(fs::read_to_string(scene.trace()).unwrap(), "safe_stop\n");
}

#[test]
fn a_reload_replaces_only_the_programs_that_changed() {
    let with = |env: Value| Entry {
        script: "good",
        more: json!({ "env": env }),
        ..Entry::of("second")
    };
    let mut scene = Scene::ready(&[with(json!({}))]);
    let report = scene.reload();
    assert_eq!(report["unchanged"], json!(["good", "second"]), "{report}");

    scene.configure(&[with(json!({ "MARK": "x" }))]);
    let report = scene.reload();
    assert_eq!(
        (&report["replaced"], &report["unchanged"]),
        (&json!(["second"]), &json!(["good"])),
        "{report}"
    );
    assert_eq!(scene.call("second", "surroundings")["result"]["mark"], "x");

    let script = scene.script("good");
    let text = fs::read_to_string(&script).unwrap() + "\n";
    fs::write(&script, text).unwrap();
    scene.configure(&[Entry::of("silent"), Entry::of("prints")]);
    let report = scene.reload();
    assert_eq!(
        (&report["replaced"], &report["removed"], &report["added"]),
        (&json!(["good"]), &json!(["second"]), &json!(["prints"])),
        "{report}"
    );
    let failed = report["failed"].as_array().unwrap();
    assert_eq!(
        (failed.len(), &failed[0]["toolbox_id"]),
        (1, &json!("silent")),
        "{report}"
    );
}

#[test]
fn check_tries_a_program_out() {
    let scene = Scene::start(&[Entry::of("no_effect"), Entry::of("silent")]);
    let good = scene.service.ask(&["check", "good"]);
    assert_eq!(
        (&good["errors"], &good["manifest"]["id"]),
        (&json!([]), &json!("good")),
        "{good}"
    );
    assert_eq!(good["tools"].as_array().unwrap().len(), 3, "{good}");
    let wrong = scene.service.ask(&["check", "no_effect"]);
    assert!(
        wrong["errors"].to_string().contains("it has no `effect`"),
        "{wrong}"
    );
    assert_eq!(wrong["tools"].as_array().unwrap().len(), 1, "{wrong}");
}

#[test]
fn a_confined_program_reaches_its_own_folder_and_what_its_entry_names() {
    if !can_confine() {
        return;
    }
    let mut scene = Scene::start(&[]);
    let denied = "Permission denied";
    for (confine, socket) in [
        (json!({ "network": false }), denied),
        (json!({ "network": true }), "done"),
    ] {
        let mut confine = confine;
        confine["paths_ro"] = json!([scene.script("program").parent()]);
        scene.configure(&[Entry {
            more: json!({ "confine": confine }),
            ..Entry::of("reaches_out")
        }]);
        let report = scene.reload();
        assert_eq!(report["failed"], json!([]), "{report}");
        let answer = scene.call("reaches_out", "poke");
        let expected = json!({ "own": "done", "home": denied, "list_home": denied, "socket": socket });
        assert_eq!(answer["result"], expected, "{answer}");
    }
}

#[test]
fn a_toolbox_is_removed_while_an_interpreter_does_not_say_what_it_has() {
    let mut scene = Scene::ready(&[]);
    let site = scene.service.sandbox.path("site");
    fs::create_dir(&site).unwrap();
    fs::set_permissions(&site, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(site.join("sitecustomize.py"), "import time\ntime.sleep(60)\n").unwrap();
    let python = json!({ "enabled": true, "interpreter": "/usr/bin/python3", "env": { "PYTHONPATH": site } });
    scene.set("service", &json!({ "programs": { "python": python } }));
    scene.client.send("configuration.updated", &json!({}));
    scene.client.send("ovos.tools.reload", &json!({}));
    scene.until("good", "its end", Value::is_null);
    // It is asked for 10 s.
    let status = scene.client.ask("ovos.tools.status", &json!({}));
    let is_asked_still = status["pythons"].as_array().is_none_or(Vec::is_empty);
    assert!(is_asked_still, "the interpreter was waited for: {status}");
}

#[test]
fn a_script_that_changed_is_not_run_again_where_its_hash_is_pinned() {
    let mut scene = Scene::ready(&[]);
    let toolbox = scene.until("good", "a hash", |toolbox| toolbox["sha256"].is_string());
    scene.set("good", &json!({ "allow_sha256": [toolbox["sha256"]] }));
    scene.reload();
    let toolbox = scene.until("good", "the pinned copy", |toolbox| {
        toolbox["generation"] == 2 && toolbox["state"] == "ready"
    });
    let script = scene.script("good");
    fs::write(&script, fs::read_to_string(&script).unwrap() + "\n").unwrap();
    status::signal(&toolbox, Signal::KILL);
    let toolbox = scene.until("good", "its end", |toolbox| toolbox["state"] == "failed");
    let why = toolbox["last_death"].as_str().unwrap();
    assert!(why.contains("which is not in `allow_sha256`"), "{why}");
    assert!(
        !fs::exists(scene.trace()).unwrap(),
        "the safe stop ran what is not allowed"
    );
}

#[test]
fn a_program_that_is_being_opened_when_the_service_ends_is_ended_with_all_that_it_left() {
    let folder = tempfile::tempdir().unwrap();
    let left = folder.path().join("left");
    let mut scene = Scene::start(&[Entry {
        more: json!({ "env": { "LEFT": left } }),
        ..Entry::of("never_opens")
    }]);
    let pid = scene
        .service
        .process
        .until("the process that it leaves", |_| fs::read_to_string(&left).ok());
    scene.service.process.signal(Signal::TERM);
    scene
        .service
        .process
        .end_within(crate::support::process::DEADLINE);
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    assert!(stat.is_empty() || stat.contains(") Z "), "{stat}");
}

#[test]
fn a_program_that_wants_to_be_replaced_while_something_moves_has_crashed() {
    let mut scene = Scene::ready(&[Entry::of("leaves_moving")]);
    for (tool, kind) in [("poke", "toolbox_restarted"), ("move", "toolbox_crashed")] {
        let call = json!({ "name": tool, "args": {}, "toolbox_id": "leaves_moving" });
        scene.client.send("ovos.tools.invoke", &call);
        let first = scene.client.until("an event of its death", |frame| {
            let event = &frame["data"];
            let of_it = frame["type"] == "ovos.tools.event" && event["toolbox_id"] == "leaves_moving";
            let kind = event["type"].as_str().or(event["kind"].as_str())?;
            (of_it && kind.starts_with("toolbox_")).then(|| kind.to_owned())
        });
        assert_eq!(first, kind);
    }
}

#[test]
fn a_toolbox_that_yields_leaves_its_tools_to_others_of_the_same_name() {
    let mut scene = Scene::ready(&[Entry::of("yields")]);
    let owners = |scene: &mut Scene, tool: &str| -> Vec<String> {
        let list = scene.client.ask("ovos.tools.list", &json!({}));
        let tools = list["tools"].as_array().unwrap().iter();
        let of_name = tools.filter(|listed| listed["name"] == tool);
        of_name
            .map(|tool| tool["toolbox_id"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(owners(&mut scene, "poke"), ["good"]);
    assert_eq!(owners(&mut scene, "own"), ["yields"]);
    let toolbox = scene.until("yields", "its tools", |_| true);
    assert_eq!(
        toolbox["yielded_tools"],
        json!(["`poke` is hidden because `good` offers it, too; list it in `tools.allow` to show both"]),
        "{toolbox}"
    );
    // Only its name is left to others.
    for call in [
        json!({ "name": "poke", "args": {}, "toolbox_id": "yields" }),
        json!({ "name": "yields__poke", "args": {} }),
    ] {
        let answer = scene.client.ask("ovos.tools.invoke", &call);
        assert_eq!(answer["error"], Value::Null, "{answer}");
    }

    scene.set("yields", &json!({ "tools": { "allow": ["poke", "own"] } }));
    scene.reload();
    assert_eq!(owners(&mut scene, "poke"), ["good", "yields"]);

    scene.set("yields", &json!({ "tools": null }));
    scene.set("good", &json!({ "enabled": false }));
    scene.reload();
    assert_eq!(owners(&mut scene, "poke"), ["yields"]);
}
