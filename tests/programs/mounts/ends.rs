//! No process of a server outlives its mount, however it was started and however it ends.

use std::collections::BTreeSet;

use rustix::process::{Signal, kill_process};
use serde_json::json;

use crate::mounts::scene::{Scene, fake};
use crate::support::process::DEADLINE;
use crate::support::status;

/// A launcher, whose server ignores its end and has a child in a session of its own.
const STUBBORN: &[&str] = &["launcher", "grandchild", "stays"];

/// The processes that the server has told of so far.
fn process_ids(scene: &Scene, name: &str) -> BTreeSet<u32> {
    let trace = scene.trace(name);
    let pids = trace.lines().filter_map(|line| line.strip_prefix("pid "));
    pids.map(|pid| pid.parse().unwrap()).collect()
}

/// Waits until the server has told of so many.
fn until_told(scene: &mut Scene, name: &str, count: usize) -> BTreeSet<u32> {
    let end = std::time::Instant::now() + DEADLINE;
    loop {
        let pids = process_ids(scene, name);
        if pids.len() >= count {
            return pids;
        }
        assert!(std::time::Instant::now() < end, "{pids:?} of {count}");
        std::thread::park_timeout(std::time::Duration::from_millis(20));
    }
}

fn alive(pids: &BTreeSet<u32>) -> Vec<u32> {
    // A process that has ended and whose parent has not noticed yet is still listed.
    let runs = |pid: &&u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(") ")
            .is_some_and(|(_, rest)| !rest.starts_with('Z'))
    };
    pids.iter().filter(runs).copied().collect()
}

fn until_gone(pids: &BTreeSet<u32>, what: &str) {
    let end = std::time::Instant::now() + DEADLINE;
    while !alive(pids).is_empty() {
        assert!(
            std::time::Instant::now() < end,
            "{what}: {:?} of {pids:?}",
            alive(pids)
        );
        std::thread::park_timeout(std::time::Duration::from_millis(20));
    }
}

#[test]
fn no_process_is_left_behind() {
    let mounts = |scene_mark: &str, sandbox: &crate::support::process::Sandbox| {
        let mut mount = fake(sandbox, "fake", STUBBORN);
        mount["env"] = json!({ "MARK": scene_mark });
        json!({ "fake": mount })
    };
    let mut scene = Scene::of(|sandbox| mounts("0", sandbox));
    scene.until_tools("fake", 10);
    let mut seen = until_told(&mut scene, "fake", 3);

    // A reload without a change leaves it alone, and starts no second one.
    let same = mounts("0", &scene.sandbox);
    let report = scene.reload(&same);
    assert_eq!(report["unchanged"], json!(["fake"]), "{report}");
    assert_eq!(process_ids(&scene, "fake"), seen);
    assert_eq!(alive(&seen).len(), 3);

    // One with a change ends the old ones.
    for round in ["1", "2"] {
        let changed = mounts(round, &scene.sandbox);
        let report = scene.reload(&changed);
        assert_eq!(report["replaced"], json!(["fake"]), "{report}");
        scene.until("fake", "ready");
        until_gone(&seen, "reload");
        let all = until_told(&mut scene, "fake", seen.len() + 3);
        assert_eq!(alive(&all).len(), 3, "{all:?}");
        seen = all;
    }

    // The mounts program is killed.
    let toolbox = scene.until("fake", "ready");
    kill_process(status::pid(&toolbox).unwrap(), Signal::KILL).unwrap();
    until_gone(&seen, "SIGKILL of the program");
    seen = until_told(&mut scene, "fake", seen.len() + 3);

    // The service ends.
    scene.until("fake", "ready");
    scene.service.signal(Signal::TERM);
    scene.service.end_within(DEADLINE);
    until_gone(&seen, "the end of the service");
}

#[test]
fn the_service_is_killed() {
    let mut scene = Scene::of(|sandbox| json!({ "fake": fake(sandbox, "fake", STUBBORN) }));
    scene.until_tools("fake", 10);
    let seen = until_told(&mut scene, "fake", 3);
    scene.service.signal(Signal::KILL);
    until_gone(&seen, "SIGKILL of the service");
}

#[test]
fn a_mount_that_is_taken_away_ends() {
    let mut scene = Scene::of(|sandbox| json!({ "fake": fake(sandbox, "fake", &[]) }));
    scene.until_tools("fake", 10);
    let seen = until_told(&mut scene, "fake", 1);
    let report = scene.reload(&json!({}));
    assert_eq!(report["removed"], json!(["fake"]), "{report}");
    until_gone(&seen, "its mount");
    assert!(scene.trace("fake").contains("eof"), "it was asked politely");
}

/// A server that writes something down when it is asked to end.
#[test]
fn a_server_is_asked_to_end_also_behind_a_launcher() {
    for words in [&["flushes"][..], &["launcher", "flushes"]] {
        let mut scene = Scene::of(|sandbox| json!({ "fake": fake(sandbox, "fake", words) }));
        scene.until_tools("fake", 10);
        let seen = until_told(&mut scene, "fake", words.len());
        scene.reload(&json!({}));
        until_gone(&seen, "its mount");
        let trace = scene.trace("fake");
        assert!(trace.contains("flushed"), "{words:?}: {trace}");
    }
}
