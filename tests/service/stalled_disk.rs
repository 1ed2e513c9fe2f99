//! A disk does not respond for 10 s: that of the plugins, of their private copies, of the configuration. A stop and
//! calls that read and write are answered meanwhile.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::support::scene::Scene;
use crate::support::stage::{Stage, ids, put};
use crate::support::stalled_disk::StalledDisk;
use serde_json::{Value, json};

const STALL: Duration = Duration::from_secs(10);
/// The time limit of an answer, with slack for a machine busy with tests.
const PROMPT: Duration = Duration::from_millis(900);

fn stage(plugins: &[&str]) -> (Stage, StalledDisk) {
    let scene = Scene::new(&json!({}));
    let disk = StalledDisk::new(&scene.sandbox);
    (Stage::with_plugins(plugins, &disk.variables(), scene), disk)
}

/// Stalls a function in a folder, sends a request that needs it, and checks for 10 s that nothing else waits. `waits`
/// are parts of the names of the files that are waited for.
fn holds_up_nothing(stage: &mut Stage, disk: &StalledDisk, stall: (&str, &str), topic: &str, waits: &[&str]) {
    let (function, folder) = stall;
    disk.stall(function, &stage.scene.sandbox.path(folder));
    stage.client.send(topic, &json!({}));
    let start = Instant::now();
    let mut longest = [Duration::ZERO; 2];
    let mut rounds = 0;
    while start.elapsed() < STALL {
        let mut timed = |kind: usize, asked: Instant| longest[kind] = longest[kind].max(asked.elapsed());
        let start = Instant::now();
        let stopped = stage.stop(&json!({ "toolbox_id": "testbed" }));
        timed(0, start);
        assert_eq!(ids(&stopped), [("testbed", true)], "{stopped}");
        let stop_id = stopped[0]["stop_id"].as_str().unwrap().to_owned();
        assert_eq!(ids(&stage.resume("testbed", &stop_id)), [("testbed", true)]);
        for (name, args) in [("add", json!({ "a": 1, "b": 2 })), ("set_mark", json!({}))] {
            let start = Instant::now();
            let answer = stage.client.invoke(name, &args);
            timed(1, start);
            assert!(answer.get("error").is_none(), "{answer}");
        }
        rounds += 1;
    }
    let reached = disk.reached();
    for file in waits {
        assert!(reached.contains(file), "{file} was not waited for: {reached:?}");
    }
    let [stop, call] = longest;
    assert!(
        stop < PROMPT && call < PROMPT,
        "stop {stop:?}, read and write {call:?}; stalled: {reached}"
    );
    eprintln!("{folder}: {rounds} rounds; longest: stop {stop:?}, read or write {call:?}");
    disk.answer();
}

fn toolboxes(stage: &mut Stage) -> Vec<String> {
    let status = stage.status();
    let toolboxes = status["toolboxes"].as_array().unwrap();
    let id = |toolbox: &Value| toolbox["toolbox_id"].as_str().unwrap().to_owned();
    toolboxes.iter().map(id).collect()
}

#[test]
fn a_plugin_folder_that_does_not_answer_holds_up_its_reload_alone() {
    let (mut stage, disk) = stage(&["testbed"]);
    put(&stage.scene, "testbed_dup");
    holds_up_nothing(
        &mut stage,
        &disk,
        ("*", "plugins"),
        "ovos.tools.reload",
        &["plugins"],
    );
    stage.reload();
    assert_eq!(toolboxes(&mut stage), ["testbed", "testbed_dup"]);
}

/// The copies of a removed toolbox, and of a file whose content is loaded already.
#[test]
fn copies_that_cannot_be_removed_delay_nothing() {
    let (mut stage, disk) = stage(&["testbed", "testbed_dup"]);
    let plugins = stage.scene.sandbox.path("plugins");
    fs::remove_file(plugins.join("testbed_dup.so")).unwrap();
    fs::copy(plugins.join("testbed.so"), plugins.join("twin.so")).unwrap();
    let copies = ["/twin.", "/testbed_dup."];
    holds_up_nothing(&mut stage, &disk, ("unlink", "run"), "ovos.tools.reload", &copies);
    let reached = disk.reached();
    let copies = Path::new(reached.lines().next().unwrap().trim_start_matches("unlink "));
    let copies = copies.parent().unwrap();
    stage.service.until("the end of the copies", |_| {
        let names = fs::read_dir(copies)
            .unwrap()
            .map(|file| file.unwrap().file_name());
        let left = names
            .filter(|name| name.to_string_lossy().ends_with(".so"))
            .count();
        (left == 1).then_some(())
    });
    assert_eq!(toolboxes(&mut stage), ["testbed"]);
}

#[test]
fn a_configuration_that_cannot_be_read_holds_up_nothing() {
    let (mut stage, disk) = stage(&["testbed"]);
    let greets = json!({ "PHAL": { "ovos-phal-plugin-tools": { "testbed": { "greeting": "good day" } } } });
    stage.scene.configure(&json!({}), &greets);
    let file = ["config/mycroft/"];
    holds_up_nothing(&mut stage, &disk, ("*", "config"), "configuration.updated", &file);
    stage.reload();
    let version = stage.client.invoke("version", &json!({}));
    assert_eq!(version["result"]["greeting"], "good day");
}
