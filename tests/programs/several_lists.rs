//! Which toolboxes a program of several has: those that it offers, in its hello or later, and may offer.

use serde_json::{Value, json};

use crate::scene::{Entry, Scene};
use crate::several::{answer, company, ids, offer, ready, send, until_gone};

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
        (
            "house",
            "it offers a manifest that cannot be used: `id` is \"Wrong\"",
        ),
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
    let end = std::time::Instant::now() + crate::support::process::DEADLINE;
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
