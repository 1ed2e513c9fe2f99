//! A program that is several toolboxes: each is one of its own to the bus, in one process.

use serde_json::{Value, json};

use crate::scene::{Entry, Scene};

/// A program with these toolboxes in its hello, which may offer a few more.
pub(crate) fn company(args: &'static [&'static str]) -> Entry {
    Entry {
        script: "company",
        args,
        more: json!({ "toolboxes": ["kitchen", "hall", "attic", "x-*", "fails-*", "hangs-*", "crashes-*"] }),
        ..Entry::of("house")
    }
}

pub(crate) fn ready(scene: &mut Scene, id: &str) -> Value {
    scene.until(id, "readiness", |toolbox| toolbox["state"] == "ready")
}

/// Calls a tool of a toolbox with arguments, and waits for no answer.
pub(crate) fn send(scene: &mut Scene, call_id: &str, toolbox_id: &str, tool: &str, args: &Value) {
    let call = json!({ "name": tool, "args": args, "toolbox_id": toolbox_id, "call_id": call_id });
    scene.client.send("ovos.tools.invoke", &call);
}

/// The answer to it.
pub(crate) fn answer(scene: &mut Scene, call_id: &str) -> Value {
    scene.client.until_answered([&call_id.to_owned()]);
    scene.client.only_answer(call_id).clone()
}

/// The ids that are loaded.
pub(crate) fn ids(scene: &mut Scene) -> Vec<String> {
    let status = scene.client.ask("ovos.tools.status", &json!({}));
    let toolboxes = status["toolboxes"].as_array().unwrap().iter();
    toolboxes
        .map(|toolbox| toolbox["toolbox_id"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn each_toolbox_is_one_of_its_own_and_a_reload_replaces_what_changed() {
    let with = |hall: Value| Entry {
        sections: json!({ "kitchen": { "colour": "red", "tools": { "deny": ["waits"] } }, "hall": hall }),
        ..company(&["kitchen", "hall"])
    };
    let mut scene = Scene::start(&[with(json!({}))]);
    let (kitchen, hall) = (ready(&mut scene, "kitchen"), ready(&mut scene, "hall"));
    assert_eq!(kitchen["pid"], hall["pid"], "{kitchen} {hall}");
    for (key, value) in [
        ("generation", json!(1)),
        ("isolation", json!("process")),
        ("latched", json!(false)),
    ] {
        assert_eq!((&kitchen[key], &hall[key]), (&value, &value), "{key}");
    }
    let dropped = hall["dropped_tools"].to_string();
    assert!(
        dropped.contains("jump") && dropped.contains("a program with several toolboxes"),
        "{dropped}"
    );
    let poked = scene.call("kitchen", "poke")["result"].clone();
    assert_eq!(
        (&poked["id"], &poked["config"]),
        (&json!("kitchen"), &json!({ "colour": "red" }))
    );
    assert_eq!(scene.call("hall", "poke")["result"]["id"], "hall");
    assert!(scene.call("kitchen", "waits")["error"].is_string());
    let found = scene
        .client
        .ask("ovos.tools.get", &json!({ "name": "hall__poke" }));
    assert_eq!(found["toolbox_id"], "hall", "{found}");
    let found = scene.client.ask(
        "ovos.persona.tools.hall.call",
        &json!({ "name": "poke", "kwargs": {} }),
    );
    assert!(found.to_string().contains(r#""id":"hall""#), "{found}");

    let report = scene.reload();
    assert_eq!(
        report["unchanged"],
        json!(["good", "hall", "kitchen"]),
        "{report}"
    );
    // A section replaces its toolbox only, in the same process.
    scene.configure(&[with(json!({ "colour": "blue" }))]);
    let report = scene.reload();
    assert_eq!(
        (&report["replaced"], &report["unchanged"]),
        (&json!(["hall"]), &json!(["good", "kitchen"])),
        "{report}"
    );
    let poked = scene.call("hall", "poke")["result"].clone();
    assert_eq!(
        (&poked["pid"], &poked["config"], &poked["opened"]),
        (&kitchen["pid"], &json!({ "colour": "blue" }), &json!(3))
    );
    // A changed entry replaces all.
    let mut changed = with(json!({ "colour": "blue" }));
    changed.more["env"] = json!({ "MARK": "x" });
    scene.configure(&[changed]);
    let report = scene.reload();
    assert_eq!(report["replaced"], json!(["hall", "kitchen"]), "{report}");
    let after = (ready(&mut scene, "kitchen"), ready(&mut scene, "hall"));
    assert_eq!(after.0["pid"], after.1["pid"]);
    assert_ne!(after.0["pid"], kitchen["pid"]);
    // The old process ends.
    ended(&mut scene, &kitchen["pid"]);
    scene.configure(&[]);
    let report = scene.reload();
    assert_eq!(report["removed"], json!(["hall", "kitchen"]), "{report}");
    ended(&mut scene, &after.0["pid"]);
}

/// Waits until a process is gone.
pub(crate) fn ended(scene: &mut Scene, pid: &Value) {
    let pid = rustix::process::Pid::from_raw(pid.as_i64().unwrap().try_into().unwrap()).unwrap();
    scene.service.process.until("the end of the program", |_| {
        rustix::process::test_kill_process(pid).err().map(drop)
    });
}

#[test]
fn a_death_fails_the_calls_of_all_and_all_come_back_until_it_is_too_often() {
    let mut scene = Scene::start(&[company(&["kitchen", "hall"])]);
    ready(&mut scene, "hall");
    for death in 1..=5 {
        for id in ["kitchen", "hall"] {
            scene.until(id, "readiness", |toolbox| {
                toolbox["state"] == "ready" && toolbox["generation"] == death
            });
        }
        let waits = format!("waits-{death}");
        send(&mut scene, &waits, "hall", "waits", &json!({}));
        scene.client.until_call(&waits, "running");
        let dies = format!("dies-{death}");
        send(&mut scene, &dies, "kitchen", "die", &json!({}));
        for call in [&waits, &dies] {
            let text = answer(&mut scene, call).to_string();
            assert!(text.contains("its process ended with exit code 3"), "{text}");
            assert!(text.contains("about to die"), "{text}");
        }
    }
    for id in ["kitchen", "hall"] {
        let failed = scene.until(id, "the end of restarts", |toolbox| toolbox["state"] == "failed");
        assert!(
            failed["reason"].to_string().contains("5 times within a minute"),
            "{failed}"
        );
    }
    let report = scene.reload();
    assert_eq!(report["replaced"], json!(["hall", "kitchen"]), "{report}");
    let pids = ["kitchen", "hall"].map(|id| ready(&mut scene, id)["pid"].clone());
    assert_eq!(pids[0], pids[1]);
    assert_eq!(scene.failure("house"), None);
}

#[test]
fn check_shows_each_toolbox() {
    let scene = Scene::start(&[company(&["kitchen", "cellar", "fails-1"])]);
    let found = scene.service.ask(&["check", "house"]);
    let toolboxes = found["toolboxes"].as_array().unwrap();
    let of = |id: &str| toolboxes.iter().find(|one| one["manifest"]["id"] == id).unwrap();
    assert_eq!(of("kitchen")["tools"].as_array().unwrap().len(), 5, "{found}");
    for (id, error) in [
        ("kitchen", "tool `jump`: its effect is motion"),
        ("cellar", "which its entry does not allow"),
        ("fails-1", "no luck"),
    ] {
        assert!(of(id)["errors"].to_string().contains(error), "{id}: {found}");
    }
}

#[test]
fn it_is_closed_with_the_service() {
    let mut scene = Scene::start(&[company(&["kitchen", "hall"])]);
    let kitchen = ready(&mut scene, "kitchen");
    ready(&mut scene, "hall");
    scene.service.process.signal(rustix::process::Signal::TERM);
    scene
        .service
        .process
        .end_within(std::time::Duration::from_secs(10));
    ended(&mut scene, &kitchen["pid"]);
    let log = scene.service.process.output();
    for wrong in ["did not close", "abandoned", "was killed", "a program ended"] {
        assert!(!log.contains(wrong), "{wrong}: {log}");
    }
}
