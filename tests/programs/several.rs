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

/// Has the program offer these from now on.
pub(crate) fn offer(scene: &mut Scene, ids: &[&str]) {
    let call = json!({ "name": "offer", "args": { "ids": ids }, "toolbox_id": "kitchen" });
    let answer = scene.client.ask("ovos.tools.invoke", &call);
    assert!(answer["result"].is_object(), "{answer}");
}

/// The ids that are loaded.
pub(crate) fn ids(scene: &mut Scene) -> Vec<String> {
    let status = scene.client.ask("ovos.tools.status", &json!({}));
    let toolboxes = status["toolboxes"].as_array().unwrap().iter();
    toolboxes
        .map(|toolbox| toolbox["toolbox_id"].as_str().unwrap().to_owned())
        .collect()
}

#[track_caller]
pub(crate) fn until_gone(scene: &mut Scene, id: &str) {
    let end = std::time::Instant::now() + crate::process::DEADLINE;
    while ids(scene).iter().any(|found| found == id) {
        assert!(std::time::Instant::now() < end, "toolbox `{id}` is still there");
    }
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
        dropped.contains("jump") && dropped.contains("its program has several toolboxes"),
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
fn an_emergency_stop_is_one_halt_and_latches_each() {
    let mut scene = Scene::start(&[company(&["kitchen", "hall"])]);
    for id in ["kitchen", "hall", "good"] {
        ready(&mut scene, id);
    }
    let stopped = scene
        .client
        .ask("ovos.tools.stop", &json!({ "toolbox_id": "kitchen" }));
    assert_eq!(stopped["toolboxes"].as_array().unwrap().len(), 1, "{stopped}");
    assert_eq!(stopped["toolboxes"][0]["ok"], true, "{stopped}");
    let latched = |scene: &mut Scene, id: &str| scene.until(id, "status", |_| true)["latched"].clone();
    assert_eq!(
        (latched(&mut scene, "kitchen"), latched(&mut scene, "hall")),
        (json!(true), json!(false))
    );

    // How many it names depends on how fast the service's threads are; one names both most of the time.
    let named_both = (0..20).any(|_| {
        let stopped = scene.client.ask("ovos.tools.stop", &json!({}));
        let toolboxes = stopped["toolboxes"].as_array().unwrap();
        assert_eq!(toolboxes.len(), 3, "{stopped}");
        for toolbox in toolboxes {
            assert_eq!(toolbox["ok"], true, "{stopped}");
            assert_eq!(latched(&mut scene, toolbox["toolbox_id"].as_str().unwrap()), true);
            let lift = json!({ "toolbox_id": toolbox["toolbox_id"], "stop_id": toolbox["stop_id"] });
            let resumed = scene.client.ask("ovos.tools.resume", &lift);
            assert_eq!(resumed["toolboxes"][0]["ok"], true, "{resumed}");
        }
        let halts = scene.call("kitchen", "halts")["result"]["halts"].clone();
        assert_eq!(halts[0], json!(["kitchen"]), "{halts}");
        halts.as_array().unwrap().contains(&json!(["hall", "kitchen"]))
    });
    assert!(named_both, "no halt named both");
    // Starts of after the resume are new enough for each.
    for id in ["kitchen", "hall"] {
        assert_eq!(scene.call(id, "poke")["result"]["id"], id);
    }
}

#[test]
fn what_does_not_halt_is_told_within_two_seconds_and_not_ended() {
    for (how, expected) in [("silent", [false, false]), ("last", [true, false])] {
        let args: &'static [&'static str] = match how {
            "silent" => &["silent", "hall", "kitchen"],
            _ => &["last", "hall", "kitchen"],
        };
        let mut scene = Scene::start(&[Entry {
            script: "company_deaf",
            ..company(args)
        }]);
        let before = ["hall", "kitchen"].map(|id| ready(&mut scene, id));
        ready(&mut scene, "good");
        let begun = std::time::Instant::now();
        let stopped = scene.client.ask("ovos.tools.stop", &json!({}));
        let took = begun.elapsed();
        assert!(took.as_secs() < 4, "{how}: it took {took:?}");
        let toolboxes = stopped["toolboxes"].as_array().unwrap();
        let of = |id: &str| {
            toolboxes
                .iter()
                .find(|toolbox| toolbox["toolbox_id"] == id)
                .unwrap()
        };
        for (id, ok) in ["hall", "kitchen"].into_iter().zip(expected) {
            assert_eq!(of(id)["ok"], ok, "{how} {id}: {stopped}");
        }
        assert_eq!(of("good")["ok"], true, "{how}: {stopped}");
        let why = of("kitchen")["error"].as_str().unwrap();
        let reason = if how == "silent" {
            "within 2000 ms"
        } else {
            "it hangs"
        };
        assert!(why.contains(reason), "{how}: {why}");
        for (id, before) in ["hall", "kitchen"].into_iter().zip(before) {
            let after = ready(&mut scene, id);
            assert_eq!(after["latched"], true, "{how}: {after}");
            for key in ["pid", "generation", "restarts"] {
                assert_eq!(after[key], before[key], "{how} {id} {key}");
            }
        }
    }
}

#[test]
fn a_stop_gets_through_while_plan_start_and_conclude_hang() {
    let mut scene = Scene::start(&[Entry {
        script: "company_stuck",
        ..company(&["kitchen", "hall"])
    }]);
    for id in ["kitchen", "hall", "good"] {
        ready(&mut scene, id);
    }
    for phase in ["plan", "start", "conclude"] {
        send(&mut scene, phase, "kitchen", phase, &json!({}));
        let hangs = scene.service.sandbox.path(&format!("company_hangs_{phase}"));
        let hangs = |_: &mut crate::process::Process| hangs.exists().then_some(());
        scene.service.process.until("a program that hangs", hangs);
        let stopped = scene.client.ask("ovos.tools.stop", &json!({}));
        let toolboxes = stopped["toolboxes"].as_array().unwrap();
        assert_eq!(toolboxes.len(), 3, "{phase}: {stopped}");
        // It hangs until here.
        for toolbox in toolboxes {
            assert_eq!(toolbox["ok"], true, "{phase}: {stopped}");
            let lift = json!({ "toolbox_id": toolbox["toolbox_id"], "stop_id": toolbox["stop_id"] });
            let resumed = scene.client.ask("ovos.tools.resume", &lift);
            assert_eq!(resumed["toolboxes"][0]["ok"], true, "{phase}: {resumed}");
        }
        // Ended by the stop or, where its program was just in time, done.
        answer(&mut scene, phase);
    }
    for id in ["kitchen", "hall"] {
        assert_eq!(ready(&mut scene, id)["restarts"], 0);
    }
}

#[test]
fn a_toolbox_that_hangs_while_it_is_opened_delays_no_reload() {
    let hangs = |good: Value| Entry {
        sections: json!({ "good": good, "hangs-1": { "limits": { "open_ms": 60_000, "close_ms": 1000 } } }),
        ..company(&["kitchen"])
    };
    let mut scene = Scene::start(&[hangs(json!({}))]);
    let kitchen = ready(&mut scene, "kitchen");
    ready(&mut scene, "good");
    offer(&mut scene, &["kitchen", "hangs-1", "hall"]);
    ready(&mut scene, "hall");
    let begun = std::time::Instant::now();
    scene.configure(&[hangs(json!({ "trace": "/dev/null" }))]);
    let report = scene.reload();
    assert_eq!(
        (&report["replaced"], &report["unchanged"], &report["failed"]),
        (&json!(["good"]), &json!(["hall", "kitchen"]), &json!([])),
        "{report}"
    );
    // What hangs goes with its program.
    scene.configure(&[]);
    let report = scene.reload();
    assert_eq!(report["removed"], json!(["hall", "kitchen"]), "{report}");
    ended(&mut scene, &kitchen["pid"]);
    let took = begun.elapsed();
    assert!(took.as_secs() < 30, "it took {took:?}");
    let status = scene.client.ask("ovos.tools.status", &json!({}));
    assert_eq!(status["failed"], json!([]), "{status}");
    assert_eq!(ids(&mut scene), ["good"]);
    assert!(!status.to_string().contains("hangs-1"), "{status}");
}

#[test]
fn an_id_that_it_may_not_have_costs_no_other() {
    let rival = Entry {
        script: "company",
        args: &["good", "attic", "x-1"],
        more: json!({ "toolboxes": ["good", "attic", "x-*"] }),
        ..Entry::of("rival")
    };
    let house = company(&["kitchen", "attic", "cellar", "kitchen", "fails-1", "Wrong", "off"]);
    let mut more = house.more.clone();
    more["toolboxes"].as_array_mut().unwrap().extend([json!("off")]);
    let house = Entry {
        more,
        sections: json!({ "off": { "enabled": false } }),
        ..house
    };
    let mut scene = Scene::start(&[house, rival]);
    for id in ["good", "kitchen", "attic", "x-1"] {
        ready(&mut scene, id);
    }
    assert_eq!(ids(&mut scene), ["attic", "good", "kitchen", "x-1"]);
    let pid = |scene: &mut Scene, id: &str| ready(scene, id)["pid"].clone();
    assert_eq!(
        pid(&mut scene, "attic"),
        pid(&mut scene, "kitchen"),
        "the first program has it"
    );
    let status = scene.client.ask("ovos.tools.status", &json!({}));
    let failed = status["failed"].as_array().unwrap();
    let expected = [
        ("house", "it offers toolbox `cellar`, and may offer `kitchen`"),
        ("house", "it offers toolbox `kitchen` twice"),
        ("house", "no luck"),
        ("house", "it offers a manifest that is none: `id` is \"Wrong\""),
        (
            "rival",
            "toolbox id `good` is taken by the program `good`, which comes first",
        ),
        (
            "rival",
            "toolbox id `attic` is taken by the program `house`, which comes first",
        ),
    ];
    assert_eq!(failed.len(), expected.len(), "{failed:?}");
    for (program, reason) in expected {
        let beginning = format!("program `{program}`: ");
        let is_it = |failed: &Value| {
            let text = failed["reason"].as_str().unwrap();
            text.starts_with(&beginning) && text.contains(reason)
        };
        assert!(failed.iter().any(is_it), "{reason}: {failed:?}");
    }
    // Its owner keeps an id while it is started again.
    send(&mut scene, "die", "kitchen", "die", &json!({}));
    answer(&mut scene, "die");
    let report = scene.reload();
    assert!(
        report["failed"]
            .to_string()
            .contains("`attic` is taken by the program `house`"),
        "{report}"
    );
    for id in ["kitchen", "attic"] {
        scene.until(id, "a restart", |toolbox| {
            toolbox["state"] == "ready" && toolbox["generation"] == 2
        });
    }
}

#[test]
fn a_new_list_brings_and_takes_toolboxes_and_disturbs_no_other() {
    let mut scene = Scene::start(&[company(&["kitchen", "hall"])]);
    let kitchen = ready(&mut scene, "kitchen");
    ready(&mut scene, "hall");
    send(&mut scene, "stays", "kitchen", "waits", &json!({}));
    send(&mut scene, "goes", "hall", "waits", &json!({}));
    scene.client.until_call("stays", "running");
    scene.client.until_call("goes", "running");
    offer(&mut scene, &["kitchen", "attic", "cellar"]);
    assert_eq!(ready(&mut scene, "attic")["pid"], kitchen["pid"]);
    until_gone(&mut scene, "hall");
    let gone = answer(&mut scene, "goes");
    assert!(
        gone["error"].as_str().unwrap().contains("reloaded or removed"),
        "{gone}"
    );
    assert!(scene.failure("house").unwrap().contains("`cellar`"));
    // It comes back, as its next generation.
    offer(&mut scene, &["kitchen", "hall"]);
    assert_eq!(ready(&mut scene, "hall")["generation"], 2);
    until_gone(&mut scene, "attic");
    assert_eq!(scene.failure("house"), None);
    let report = scene.reload();
    assert_eq!(
        report["unchanged"],
        json!(["good", "hall", "kitchen"]),
        "{report}"
    );

    // A flood is taken a list a second, and the last one counts.
    send(
        &mut scene,
        "flood",
        "kitchen",
        "flood",
        &json!({ "ids": ["kitchen", "hall", "x-last"] }),
    );
    assert!(answer(&mut scene, "flood")["result"].is_object());
    ready(&mut scene, "x-last");
    // One of the lists before it may have been taken.
    let end = std::time::Instant::now() + crate::process::DEADLINE;
    loop {
        let ids = ids(&mut scene);
        if ids == ["good", "hall", "kitchen", "x-last"] {
            break;
        }
        assert!(std::time::Instant::now() < end, "{ids:?}");
    }
    let after = ready(&mut scene, "kitchen");
    for key in ["pid", "generation", "restarts"] {
        assert_eq!(after[key], kitchen[key], "{key}");
    }
    assert_eq!(ready(&mut scene, "hall")["generation"], 2);
    assert!(scene.client.answer_of("stays").is_none(), "its call goes on");
    let opened = scene.call("kitchen", "poke")["result"]["opened"]
        .as_u64()
        .unwrap();
    assert!(opened < 20, "{opened} toolboxes were opened");
}

#[test]
fn a_program_without_a_toolbox_waits_until_it_has_some() {
    let mut scene = Scene::start(&[
        Entry {
            script: "company_later",
            ..company(&["kitchen", "hall"])
        },
        Entry {
            script: "company",
            ..Entry::of("empty")
        },
    ]);
    for id in ["kitchen", "hall"] {
        ready(&mut scene, id);
    }
    assert_eq!(scene.failure("empty"), None);
    // A restarted one offers them again.
    send(&mut scene, "die", "kitchen", "die", &json!({}));
    answer(&mut scene, "die");
    for id in ["kitchen", "hall"] {
        scene.until(id, "a restart", |toolbox| {
            toolbox["state"] == "ready" && toolbox["generation"].as_u64() > Some(1)
        });
    }
    assert_eq!(scene.call("hall", "poke")["result"]["id"], "hall");
}

#[test]
fn a_toolbox_may_be_offered_anew_under_another_id_while_it_is_opened() {
    let mut scene = Scene::start(&[Entry {
        script: "company_renames",
        ..company(&["kitchen"])
    }]);
    let before = ready(&mut scene, "x-kitchen");
    assert_eq!(ids(&mut scene), ["good", "x-kitchen"]);
    assert_eq!(scene.failure("house"), None);
    let report = scene.reload();
    assert_eq!(report["unchanged"], json!(["good", "x-kitchen"]), "{report}");
    // The next process offers it as the first one did.
    send(&mut scene, "die", "x-kitchen", "die", &json!({}));
    answer(&mut scene, "die");
    let after = scene.until("x-kitchen", "a restart", |toolbox| {
        toolbox["state"] == "ready" && toolbox["pid"] != before["pid"]
    });
    assert_eq!(
        scene.call("x-kitchen", "poke")["result"]["id"],
        "x-kitchen",
        "{after}"
    );
    assert_eq!(ids(&mut scene), ["good", "x-kitchen"]);
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
    assert_eq!(of("kitchen")["tools"].as_array().unwrap().len(), 6, "{found}");
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
