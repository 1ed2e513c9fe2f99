//! The program that hosts all OPM toolboxes of an interpreter in one process, with the published ones.

use std::collections::BTreeSet;
use std::path::Path;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::scene::{Entry, Scene};
use crate::several::ready;
use crate::support::python::opm_python;
use crate::support::status;

/// What a call of a tool is answered.
fn call(scene: &mut Scene, toolbox_id: &str, tool: &str, args: &Value) -> Value {
    let call = json!({ "name": tool, "args": args, "toolbox_id": toolbox_id });
    scene.client.ask("ovos.tools.invoke", &call)
}

fn sum(scene: &mut Scene) {
    let answer = call(
        scene,
        "ovos-math-tools",
        "evaluate_expression",
        &json!({ "expression": "2 + 3" }),
    );
    assert_eq!(answer["result"]["result"].as_f64(), Some(5.0), "{answer}");
}

/// Its toolboxes that are ready, and their processes.
fn hosted(scene: &mut Scene) -> (Vec<String>, BTreeSet<u64>) {
    let status = scene.client.ask("ovos.tools.status", &json!({}));
    let toolboxes = status["toolboxes"].as_array().unwrap().iter();
    let of_it = toolboxes.filter(|toolbox| toolbox["state"] == "ready" && toolbox["toolbox_id"] != "good");
    of_it
        .map(|toolbox| {
            let id = toolbox["toolbox_id"].as_str().unwrap().to_owned();
            (id, toolbox["pid"].as_u64().unwrap())
        })
        .unzip()
}

#[test]
fn the_published_toolboxes_of_opm_live_in_one_process() {
    let Some(python) = opm_python() else { return };
    let packages = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs/python");
    let mut scene = Scene::start(&[]);
    let entry = Entry {
        script: "opm_host",
        more: json!({
            "toolboxes": ["ovos-*"],
            "command": [python, scene.script("opm_host")],
            "args": ["opm", packages],
        }),
        ..Entry::of("opm")
    };
    scene.configure(&[entry]);
    let report = scene.reload();
    let added = report["added"].as_array().unwrap();
    assert!(added.len() >= 10, "{report}");
    assert_eq!(report["failed"], json!([]), "{report}");
    let (ids, pids) = hosted(&mut scene);
    assert_eq!((ids.len(), pids.len()), (added.len(), 1), "{ids:?} {pids:?}");

    sum(&mut scene);
    let clock = call(&mut scene, "ovos-clock-tools", "get_current_datetime", &json!({}));
    assert!(clock["result"].is_object(), "{clock}");
    let wrong = json!({ "path": "../secret" });
    let refused = call(&mut scene, "ovos-filesystem-tools", "read_file", &wrong);
    assert!(refused.to_string().contains("outside the sandbox"), "{refused}");
    let found = scene
        .client
        .ask("ovos.tools.get", &json!({ "name": "evaluate_expression" }));
    assert_eq!(found["toolbox_id"], "ovos-math-tools", "{found}");

    let stopped = scene.client.ask("ovos.tools.stop", &json!({}));
    let stopped = stopped["toolboxes"].as_array().unwrap();
    assert_eq!(stopped.len(), ids.len() + 1, "{stopped:?}");
    for toolbox in stopped {
        assert_eq!(toolbox["ok"], true, "{toolbox}");
        let lift = json!({ "toolbox_id": toolbox["toolbox_id"], "stop_id": toolbox["stop_id"] });
        let resumed = scene.client.ask("ovos.tools.resume", &lift);
        assert_eq!(resumed["toolboxes"][0]["ok"], true, "{resumed}");
    }
    sum(&mut scene);

    let before = ready(&mut scene, "ovos-math-tools");
    status::signal(&before, Signal::KILL);
    for id in &ids {
        scene.until(id, "a restart", |toolbox| {
            toolbox["state"] == "ready" && toolbox["generation"] == 2
        });
    }
    sum(&mut scene);
    let (again, pids) = hosted(&mut scene);
    assert_eq!((again, pids.len()), (ids.clone(), 1));
    scene.configure(&[]);
    let report = scene.reload();
    assert_eq!(report["removed"].as_array().unwrap().len(), ids.len(), "{report}");
}
