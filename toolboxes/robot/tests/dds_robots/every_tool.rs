//! What holds for every tool on every robot.

use std::collections::BTreeSet;
use std::sync::Mutex;

use crate::catalogue::{Came, calls, listed, run};
use crate::{each, scene, velocities};
use serde_json::Value;

type Done = Mutex<BTreeSet<(&'static str, &'static str)>>;

/// What holds for every tool on every robot.
fn hold(kind: &'static str, calls: &[(&'static str, Value)], done: &Done) {
    let Some(scene) = scene(kind, "hold") else { return };
    let names = listed(&scene.harness);
    for &(tool, ref args) in calls {
        let _ = scene.new_frames();
        let outcome = run(&scene.harness, &names, tool, args);
        scene.settle();
        let frames = scene.new_frames();
        match &outcome {
            Came::Done(_) => drop(done.lock().unwrap().insert((kind, tool))),
            Came::Failed(why) => {
                let known = [
                    "not supported by hal",
                    "Recognition handler not configured",
                    "does not know where",
                    "cannot tell whether right_arm h",
                ];
                assert!(
                    known.iter().any(|known| why.contains(known)),
                    "{kind}: {tool} {args}: {why}"
                );
            }
            Came::Absent => {}
        }
        let received = velocities(&frames);
        if matches!(tool, "walk" | "move_base" | "spin" | "turn") {
            assert!(
                received.iter().any(|velocity| *velocity != [0.0; 3]),
                "{kind}: {tool} does not drive: {frames:?}"
            );
        }
        assert!(
            received.last().is_none_or(|last| *last == [0.0; 3]),
            "{kind}: {tool} ends with {:?}",
            received.last()
        );
        if received.iter().any(|velocity| *velocity != [0.0; 3]) {
            let zeros = received
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
}

#[test]
fn every_tool_on_every_robot() {
    let robots = [("k1_topics", 15), ("k1_rpc", 16), ("g1", 14)];
    // Two of each kind share the motions, which take their time.
    let calls = calls();
    let motions = calls.iter().position(|(tool, _)| *tool == "scan_motors").unwrap();
    let (first, second) = calls.split_at(motions / 2);
    let rows = robots.map(|(kind, _)| [(kind, first), (kind, second)]).concat();
    let done = Done::default();
    each(&rows, |&(kind, calls)| hold(kind, calls, &done));
    let done = done.into_inner().unwrap();
    println!("{done:?}");
    for (kind, at_least) in robots {
        let tools = done.iter().filter(|(of, _)| *of == kind).count();
        // Where nothing plays the robots, none has done anything.
        assert!(
            done.is_empty() || tools >= at_least,
            "{kind}: only {tools} tools work: {done:?}"
        );
    }
}
