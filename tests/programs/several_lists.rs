//! Which toolboxes a program of several has: those that it offers in its hello, and may offer.

use serde_json::{Value, json};

use crate::scene::{Entry, Scene};
use crate::several::{answer, company, ids, ready, send};

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
            "toolbox id `good` already belongs to the program `good`, which comes first",
        ),
        (
            "rival",
            "toolbox id `attic` already belongs to the program `house`, which comes first",
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
            .contains("`attic` already belongs to the program `house`"),
        "{report}"
    );
    for id in ["kitchen", "attic"] {
        scene.until(id, "a restart", |toolbox| {
            toolbox["state"] == "ready" && toolbox["generation"] == 2
        });
    }
}

#[test]
fn a_program_that_names_no_toolbox_is_told_so() {
    let mut scene = Scene::start(&[Entry {
        script: "company",
        ..Entry::of("empty")
    }]);
    ready(&mut scene, "good");
    let failure = scene.failure("empty").unwrap();
    assert!(
        failure.contains("it names no toolbox in its hello; a program names all of its toolboxes there"),
        "{failure}"
    );
}

#[test]
fn what_a_program_says_after_its_hello_changes_no_list() {
    let mut scene = Scene::start(&[company(&["kitchen", "hall"])]);
    let before = ["kitchen", "hall"].map(|id| ready(&mut scene, id));
    let offers = json!({ "ids": ["kitchen", "attic"] });
    send(&mut scene, "offers", "kitchen", "offer", &offers);
    assert!(answer(&mut scene, "offers")["result"].is_object());
    let report = scene.reload();
    assert_eq!(
        report["unchanged"],
        json!(["good", "hall", "kitchen"]),
        "{report}"
    );
    for before in before {
        let after = ready(&mut scene, before["toolbox_id"].as_str().unwrap());
        for key in ["pid", "generation", "restarts"] {
            assert_eq!(after[key], before[key], "{key}");
        }
    }
}
