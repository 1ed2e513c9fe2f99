//! Programs of several toolboxes that die, hang or offer too much: what becomes of their toolboxes, and of their process.

use std::fs;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::scene::{Entry, Scene};
use crate::several::{answer, company, ended, ids, ready, send};
use crate::support::process::DEADLINE;
use crate::support::status;

/// Whether a process runs or is stopped; a zombie is neither.
fn lives(pid: &Value) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    state.is_some_and(|state| state != 'Z')
}

/// Waits until `status` shows a failure with this text.
#[track_caller]
fn until_failed(scene: &mut Scene, text: &str) -> String {
    let end = Instant::now() + DEADLINE;
    loop {
        let status = scene.client.ask("ovos.tools.status", &json!({}));
        let failed = status["failed"].to_string();
        if failed.contains(text) {
            return failed;
        }
        assert!(Instant::now() < end, "no {text:?}: {failed}");
    }
}

#[test]
fn a_program_that_hangs_does_not_outlive_the_service() {
    let slow = json!({ "hangs-1": { "limits": { "open_ms": 60_000 } } });
    for args in [&["kitchen", "hall"] as &[&str], &["kitchen", "hangs-1"]] {
        let mut scene = Scene::start(&[Entry {
            script: "company_hung",
            sections: slow.clone(),
            ..company(args)
        }]);
        let kitchen = ready(&mut scene, "kitchen");
        assert!(lives(&kitchen["pid"]));
        scene.service.process.signal(Signal::TERM);
        scene.service.process.end_within(Duration::from_secs(20));
        let end = Instant::now() + Duration::from_secs(2);
        while lives(&kitchen["pid"]) {
            if Instant::now() > end {
                status::signal(&kitchen, Signal::KILL);
                panic!("{args:?}: its process lives on");
            }
        }
    }
}

#[test]
fn a_toolbox_that_its_program_forgets_keeps_its_id_until_a_reload_and_costs_no_other() {
    let mut scene = Scene::start(&[Entry {
        script: "company_forgets",
        ..company(&["kitchen", "hall"])
    }]);
    for id in ["kitchen", "hall"] {
        ready(&mut scene, id);
    }
    // The program offers `kitchen` alone from now on.
    send(&mut scene, "die", "kitchen", "die", &json!({}));
    answer(&mut scene, "die");
    let kitchen = scene.until("kitchen", "a restart", |toolbox| {
        toolbox["state"] == "ready" && toolbox["generation"] == 2
    });
    // A call waits for its toolbox, and a stop holds it.
    send(&mut scene, "waits", "hall", "poke", &json!({}));
    let stopped = scene.client.ask("ovos.tools.stop", &json!({}));
    let mut named: Vec<&str> = stopped["toolboxes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|toolbox| toolbox["toolbox_id"].as_str().unwrap())
        .collect();
    named.sort_unstable();
    assert_eq!(named, ["good", "hall", "kitchen"], "{stopped}");
    let hall = scene.until("hall", "the end of restarts", |toolbox| {
        toolbox["state"] == "failed"
    });
    assert_eq!(hall["latched"], true, "{hall}");
    assert!(
        hall["reason"]
            .to_string()
            .contains("its program does not offer toolbox `hall` any more; reload"),
        "{hall}"
    );
    assert!(answer(&mut scene, "waits")["error"].is_string());
    assert_eq!(ready(&mut scene, "kitchen")["pid"], kitchen["pid"]);
    let report = scene.reload();
    assert_eq!(
        (&report["removed"], &report["replaced"]),
        (&json!(["hall"]), &json!(["kitchen"])),
        "{report}"
    );
    assert_eq!(scene.reload()["unchanged"], json!(["good", "kitchen"]));
}

#[test]
fn a_toolbox_whose_opening_ends_the_process_costs_itself_only() {
    let mut scene = Scene::start(&[company(&["kitchen", "crashes-1", "hall"])]);
    until_failed(&mut scene, "its program ended while it opened this toolbox");
    for id in ["kitchen", "hall"] {
        ready(&mut scene, id);
        assert_eq!(scene.call(id, "poke")["result"]["id"], id);
    }
    assert_eq!(ids(&mut scene), ["good", "hall", "kitchen"]);
}

#[test]
fn what_a_program_offers_is_opened_although_its_first_start_failed() {
    let mut scene = Scene::start(&[Entry {
        script: "company_stumbles",
        ..company(&["kitchen", "hall"])
    }]);
    for id in ["kitchen", "hall"] {
        ready(&mut scene, id);
    }
    assert_eq!(scene.failure("house"), None);
}

#[test]
fn a_reload_starts_a_program_again_that_hangs() {
    let limits = json!({ "hangs-1": { "limits": { "open_ms": 500, "close_ms": 500 } } });
    let entry = || Entry {
        sections: limits.clone(),
        ..company(&["kitchen", "hangs-1"])
    };
    let mut scene = Scene::start(&[entry()]);
    let kitchen = ready(&mut scene, "kitchen");
    until_failed(&mut scene, "hangs-1");
    let report = scene.reload();
    assert_eq!(report["replaced"], json!(["kitchen"]), "{report}");
    assert_ne!(ready(&mut scene, "kitchen")["pid"], kitchen["pid"]);
    ended(&mut scene, &kitchen["pid"]);
}

#[test]
fn what_a_section_asks_for_and_its_process_cannot_give_is_refused() {
    let pinned = json!({ "allow_sha256": ["0".repeat(64)] });
    let sections = json!({
        "hall": { "limits": { "memory_mb": 64 } },
        "attic": { "confine": { "network": false } },
        "next-1": pinned,
        "next-2": pinned,
    });
    let pinned = Entry {
        script: "company_stumbles",
        args: &["next-1", "next-2"],
        more: json!({ "toolboxes": ["next-1", "next-2"] }),
        ..Entry::of("pinned")
    };
    let house = Entry {
        sections,
        ..company(&["kitchen", "hall", "attic"])
    };
    let mut scene = Scene::start(&[house, pinned]);
    ready(&mut scene, "kitchen");
    let failed = until_failed(&mut scene, "limits.memory_mb");
    assert!(failed.contains("`confine` of toolbox"), "{failed}");
    until_failed(&mut scene, "allow_sha256");
    assert_eq!(ids(&mut scene), ["good", "kitchen"]);
    let starts = [1, 2].map(|number| {
        let mark = format!("company_start_{number}");
        scene.service.sandbox.path(&mark).exists()
    });
    assert_eq!(starts, [true, false], "it was started to stay");
}

#[test]
fn a_script_that_changed_is_not_run_again_where_a_hash_is_pinned() {
    let mut scene = Scene::start(&[company(&["kitchen"])]);
    let toolbox = ready(&mut scene, "kitchen");
    // Its program starts again, with what is allowed now.
    let mut entry = company(&["kitchen"]);
    entry.more["env"] = json!({ "MARK": "x" });
    entry.sections = json!({ "kitchen": { "allow_sha256": [toolbox["sha256"]] } });
    scene.configure(&[entry]);
    let report = scene.reload();
    assert_eq!(report["replaced"], json!(["kitchen"]), "{report}");
    let script = scene.script("company");
    let text = fs::read_to_string(&script).unwrap();
    let runs = "import os\nopen(os.environ['TMPDIR'] + '/company_changed', 'w').close()\n";
    fs::write(&script, format!("{runs}{text}")).unwrap();
    send(&mut scene, "die", "kitchen", "die", &json!({}));
    answer(&mut scene, "die");
    let failed = scene.until("kitchen", "its end", |toolbox| toolbox["state"] == "failed");
    assert!(
        failed.to_string().contains("which is not in `allow_sha256`"),
        "{failed}"
    );
    assert!(
        !scene.service.sandbox.path("company_changed").exists(),
        "what is not allowed was run"
    );
}
