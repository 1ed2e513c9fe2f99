//! Emergency stops of a program that is several toolboxes, and what does not answer them.

use serde_json::json;

use crate::scene::{Entry, Scene};
use crate::several::{answer, company, ready, send};

#[test]
fn an_emergency_stop_halts_and_latches_each() {
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
    let mut halts: Vec<&str> = halts
        .as_array()
        .unwrap()
        .iter()
        .map(|id| id.as_str().unwrap())
        .collect();
    assert_eq!(halts.remove(0), "kitchen");
    halts.sort_unstable();
    assert_eq!(halts, ["hall", "kitchen"]);
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
        let start = std::time::Instant::now();
        let stopped = scene.client.ask("ovos.tools.stop", &json!({}));
        let took = start.elapsed();
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
        let hangs = |_: &mut crate::support::process::Process| hangs.exists().then_some(());
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
