//! What holds for every tool on every robot.

use std::collections::BTreeSet;

use crate::catalogue::{Came, calls, listed, run};
use crate::{each, scene, velocities};

/// What holds for every tool on every robot.
fn whole_catalogue(kind: &str, at_least: usize) {
    let Some(scene) = scene(kind, "hold") else { return };
    let names = listed(&scene.harness);
    let mut done = BTreeSet::new();
    for (tool, args) in calls() {
        let _ = scene.new_frames();
        let came = run(&scene.harness, &names, tool, &args);
        scene.settle();
        let frames = scene.new_frames();
        match &came {
            Came::Done(_) => drop(done.insert(tool)),
            Came::Failed(why) => {
                let known = [
                    "not supported by hal",
                    "Recognition handler not configured",
                    "does not know where",
                ];
                assert!(
                    known.iter().any(|known| why.contains(known)),
                    "{kind}: {tool} {args}: {why}"
                );
            }
            Came::Absent => {}
        }
        let told = velocities(&frames);
        if matches!(tool, "walk" | "move_base" | "spin" | "turn") {
            assert!(
                told.iter().any(|velocity| *velocity != [0.0; 3]),
                "{kind}: {tool} does not drive: {frames:?}"
            );
        }
        assert!(
            told.last().is_none_or(|last| *last == [0.0; 3]),
            "{kind}: {tool} ends with {:?}",
            told.last()
        );
        if told.iter().any(|velocity| *velocity != [0.0; 3]) {
            let zeros = told
                .iter()
                .rev()
                .take_while(|velocity| **velocity == [0.0; 3])
                .count();
            assert!(zeros >= 3, "{kind}: {tool} says stop only {zeros} times");
        }
        for frame in frames.iter().filter(|frame| frame["topic"] == "arms") {
            assert_eq!(frame["crc"], true, "{kind}: {tool}: {frame}");
            assert_eq!(frame["machine"], 5, "{kind}: {tool} does not echo mode_machine");
        }
    }
    println!("{kind}: done: {done:?}");
    assert!(
        done.len() >= at_least,
        "{kind}: only {} tools work: {done:?}",
        done.len()
    );
}

#[test]
fn every_tool_on_every_robot() {
    each(
        &[("k1_topics", 15), ("k1_rpc", 16), ("g1", 14)],
        |&(kind, at_least)| whole_catalogue(kind, at_least),
    );
}
