//! Programs of several toolboxes that misbehave: each costs itself, or what it said, and never another program.

use serde_json::json;

use crate::scene::{Entry, Scene};
use crate::several::{answer, company, ids, ready, send};

#[test]
fn a_toolbox_that_does_not_open_costs_itself_only() {
    let limits = json!({ "limits": { "open_ms": 500, "close_ms": 1000 } });
    let mut scene = Scene::start(&[Entry {
        sections: json!({ "hangs-1": limits }),
        ..company(&["hangs-1", "kitchen", "fails-1", "hall"])
    }]);
    let kitchen = ready(&mut scene, "kitchen");
    ready(&mut scene, "hall");
    let end = std::time::Instant::now() + crate::support::process::DEADLINE;
    let failed = loop {
        let status = scene.client.ask("ovos.tools.status", &json!({}));
        let failed = status["failed"].to_string();
        if failed.contains("hangs-1") && failed.contains("fails-1") {
            break failed;
        }
        assert!(std::time::Instant::now() < end, "{failed}");
    };
    assert!(
        failed.contains("open() of toolbox `hangs-1` did not return within 0.5 s")
            && failed.contains("no luck"),
        "{failed}"
    );
    let after = ready(&mut scene, "kitchen");
    assert_eq!(
        (&after["pid"], &after["generation"]),
        (&kitchen["pid"], &kitchen["generation"])
    );
    assert_eq!(scene.call("hall", "poke")["result"]["id"], "hall");
    assert_eq!(ids(&mut scene), ["good", "hall", "kitchen"]);
}

#[test]
fn what_is_said_in_the_name_of_another_program_or_of_none_is_dropped() {
    let neighbour = Entry {
        script: "company",
        args: &["next-door"],
        more: json!({ "toolboxes": ["next-door"] }),
        ..Entry::of("neighbour")
    };
    let forger = Entry {
        script: "company_forger",
        ..company(&["all", "kitchen", "hall"])
    };
    let mut scene = Scene::start(&[forger, neighbour]);
    let before = ["kitchen", "hall", "good", "next-door"].map(|id| ready(&mut scene, id));
    for (call, id) in [("waits", "hall"), ("waits-next-door", "next-door")] {
        send(&mut scene, call, id, "waits", &json!({}));
        scene.client.until_call(call, "running");
    }
    assert_eq!(scene.call("kitchen", "poke")["result"]["id"], "kitchen");
    // What it said after that was read, too.
    assert_eq!(scene.call("hall", "poke")["result"]["id"], "hall");
    for call in ["waits", "waits-next-door"] {
        let answer = scene.client.answer_of(call);
        assert!(answer.is_none(), "another toolbox ended its run: {answer:?}");
    }
    for before in before {
        let after = ready(&mut scene, before["toolbox_id"].as_str().unwrap());
        for key in ["pid", "generation", "restarts", "latched"] {
            assert_eq!(after[key], before[key], "{key}");
        }
    }
    // It was under way all the time.
    send(&mut scene, "dies", "kitchen", "die", &json!({}));
    let gone = answer(&mut scene, "waits");
    assert!(gone["error"].is_string(), "{gone}");
}

#[test]
fn a_frame_that_cannot_be_read_costs_its_program() {
    let entry = |name, args| Entry {
        script: "company_forger",
        args,
        more: json!({ "toolboxes": ["a-*", "b-*"] }),
        ..Entry::of(name)
    };
    let mut scene = Scene::start(&[
        entry("addresses", &["address", "a-1", "a-2"]),
        entry("nonsense", &["nonsense", "b-1", "b-2"]),
    ]);
    let good = ready(&mut scene, "good");
    for (first, second) in [("a-1", "a-2"), ("b-1", "b-2")] {
        ready(&mut scene, first);
        ready(&mut scene, second);
        send(&mut scene, second, second, "waits", &json!({}));
        scene.client.until_call(second, "running");
        send(&mut scene, first, first, "poke", &json!({}));
        for call in [first, second] {
            let text = answer(&mut scene, call).to_string();
            assert!(text.contains("it sent a frame that cannot be read"), "{text}");
        }
        for id in [first, second] {
            scene.until(id, "a restart", |toolbox| {
                toolbox["state"] == "ready" && toolbox["generation"] == 2
            });
        }
    }
    let after = ready(&mut scene, "good");
    assert_eq!(
        (&after["pid"], &after["restarts"]),
        (&good["pid"], &good["restarts"])
    );
}

#[test]
fn a_program_that_is_something_else_the_second_time_is_refused() {
    let mut scene = Scene::start(&[Entry {
        script: "company_changes",
        ..company(&["kitchen"])
    }]);
    ready(&mut scene, "good");
    let end = std::time::Instant::now() + crate::support::process::DEADLINE;
    loop {
        let failure = scene.failure("house").unwrap_or_default();
        if failure.contains("its hello no longer names several toolboxes") {
            break;
        }
        assert!(std::time::Instant::now() < end, "{failure}");
    }
    assert_eq!(ids(&mut scene), ["good"]);
}
