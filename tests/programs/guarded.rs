//! Toolboxes of Python authors that move something, with their guard, under the real service.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::scene::{Entry, Scene};
use crate::support::status;

/// What a stop of a toolbox that halts may take, and of one whose guard has to kill it first; much more than is promised, for a
/// busy machine.
const HALTED: Duration = Duration::from_secs(1);
const KILLED: Duration = Duration::from_secs(3);

/// A service with a Python file of this tree, under the id of its toolbox.
fn scene(id: &'static str, file: &str) -> Scene {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let scene = Scene::start(&[]);
    let entry = Entry {
        more: json!({
            "command": ["/usr/bin/python3", root.join(file)],
            "args": [],
            "env": { "PYTHONPATH": root.join("programs/python") },
        }),
        sections: json!({ id: { "journal": journal(&scene) } }),
        ..Entry::of(id)
    };
    scene.configure(&[entry]);
    let mut scene = scene;
    let report = scene.reload();
    assert_eq!(report["added"], json!([id]), "{report}");
    scene
}

fn journal(scene: &Scene) -> std::path::PathBuf {
    scene.service.sandbox.path("journal")
}

/// Waits until what reached the machine has such a line.
fn until_line(scene: &mut Scene, what: &str) {
    let journal = journal(scene);
    scene.service.process.until(what, |_| {
        let lines = fs::read_to_string(&journal).unwrap_or_default();
        lines.contains(what).then_some(())
    });
}

/// The last line of what reached the machine, without its time.
fn last_line(scene: &Scene) -> String {
    let lines = fs::read_to_string(journal(scene)).unwrap();
    lines.trim_end().rsplit('\n').next().unwrap().to_owned()
}

fn begin(scene: &mut Scene, id: &str, tool: &str, args: &Value, seen: &str) {
    let call = json!({ "name": tool, "args": args, "toolbox_id": id, "call_id": "moves" });
    scene.client.send("ovos.tools.invoke", &call);
    until_line(scene, seen);
}

/// Stops a toolbox, and returns the answer and how long that took.
fn stop(scene: &mut Scene, id: &str) -> (Value, Duration) {
    let begun = Instant::now();
    let stopped = scene.client.ask("ovos.tools.stop", &json!({ "toolbox_id": id }));
    (stopped["toolboxes"][0].clone(), begun.elapsed())
}

fn answer(scene: &mut Scene) -> Value {
    scene.client.until_answered(&["moves".to_owned()]);
    scene.client.only_answer("moves").clone()
}

#[test]
fn the_example_is_stopped_and_its_death_brings_the_joint_to_rest() {
    let mut scene = scene("mover", "examples/mover.py");
    begin(&mut scene, "mover", "move", &json!({ "angle": 90 }), "angle 5");
    let (stopped, took) = stop(&mut scene, "mover");
    assert_eq!(stopped["ok"], true, "{stopped}");
    assert!(took < HALTED, "{took:?}");
    let ended = answer(&mut scene);
    assert!(ended["error"].to_string().contains("EmergencyStop"), "{ended}");
    assert!(last_line(&scene).ends_with("torque off"), "{}", last_line(&scene));
    let lift = json!({ "toolbox_id": "mover", "stop_id": stopped["stop_id"] });
    let resumed = scene.client.ask("ovos.tools.resume", &lift);
    assert_eq!(resumed["toolboxes"][0]["ok"], true, "{resumed}");

    let back = json!({ "name": "move", "args": { "angle": -90 }, "toolbox_id": "mover" });
    scene.client.send("ovos.tools.invoke", &back);
    until_line(&mut scene, "angle -5");
    let before = scene.until("mover", "a process", |toolbox| toolbox["state"] == "ready");
    status::signal(&before, Signal::KILL);
    let after = scene.until("mover", "a new process", |toolbox| {
        toolbox["generation"] == 2 && toolbox["state"] == "ready"
    });
    assert_eq!(after["latched"], true, "{after}");
    let lines = fs::read_to_string(journal(&scene)).unwrap();
    let (_, rest) = lines.rsplit_once("safe stop").expect(&lines);
    assert!(!rest.contains("angle"), "{lines}");
}

#[test]
fn one_that_keeps_pythons_lock_is_killed_to_be_stopped() {
    let mut scene = scene("awkward", "programs/python/tests/samples/awkward.py");
    begin(&mut scene, "awkward", "keeps_the_lock", &json!({}), "locked");
    let (stopped, took) = stop(&mut scene, "awkward");
    assert!(took < KILLED, "{took:?}: {stopped}");
    assert_eq!(stopped["ok"], false, "{stopped}");
    let ended = answer(&mut scene);
    assert!(ended["error"].is_string(), "{ended}");
    let toolbox = scene.until("awkward", "a new process", |toolbox| {
        toolbox["generation"] == 2 && toolbox["state"] == "ready"
    });
    assert_eq!(toolbox["latched"], true, "{toolbox}");
    let lines = fs::read_to_string(journal(&scene)).unwrap();
    let (_, after) = lines.split_once("locked\n").expect(&lines);
    // The guard and a fresh process may both bring it to rest.
    let opened = after.trim_start_matches("safe stop\n");
    assert!(
        opened.len() < after.len() && opened.starts_with("open\n"),
        "{lines}"
    );
}
