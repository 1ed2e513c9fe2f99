//! The K1 and the G1: every tool, and what reaches a robot made of the published Cyclone DDS.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a failed test panics and prints"
)]

#[allow(dead_code, reason = "the helpers serve several test programs")]
mod support {
    pub(crate) mod catalogue;
    pub(crate) mod peers;
}

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use ovos_toolbox_sdk::testing::Harness;
use ovos_toolbox_sdk::wire::Action;
use robot::robots::Robots;
use serde_json::{Value, json};
use support::catalogue::{Came, calls, listed, run};
use support::peers::Peer;

/// A robot of the published package and the toolbox that drives it, alone in a domain.
struct Scene {
    robot: Peer,
    harness: Harness,
    config: Value,
    /// The lines before this one were looked at.
    seen: std::cell::Cell<usize>,
    _folder: tempfile::TempDir,
}

fn scene(kind: &str, estop: &str) -> Option<Scene> {
    let domain = fastrand::u16(10..230);
    let robot = Peer::start("dds_robot.py", &[kind, &domain.to_string()])?;
    robot.until("ready");
    let folder = tempfile::tempdir().unwrap();
    let ros = json!({"domain": domain, "interfaces": ["127.0.0.1"]});
    let own = match kind {
        "k1_topics" => json!({"adapter": "booster_k1", "booster_k1": {"ros": ros}}),
        "k1_rpc" => {
            json!({"adapter": "booster_k1", "booster_k1": {"profile": "booster_rpc", "gripper": true, "ros": ros}})
        }
        _ => json!({"adapter": "unitree_g1", "unitree_g1": {"hands": true, "weight_rate": 2.0, "ros": ros}}),
    };
    let mut own = own;
    own["estop"] = json!(estop);
    let config = json!({"robots": {"hal": own}, "data_dir": folder.path(), "recognition_timeout_ms": 100});
    let harness = Harness::open::<Robots>(config.clone())
        .unwrap()
        .with_deadline(Duration::from_secs(60));
    Some(Scene {
        robot,
        harness,
        config,
        seen: std::cell::Cell::new(0),
        _folder: folder,
    })
}

impl Scene {
    fn frames(&self) -> Vec<Value> {
        frames(&self.robot)
    }

    /// What has come since the last time this was asked.
    fn new_frames(&self) -> Vec<Value> {
        let all = self.frames();
        let from = self.seen.replace(all.len());
        all[from.min(all.len())..].to_vec()
    }

    /// Waits until nothing has come for a while: DDS delivers a little after an answer.
    fn settle(&self) {
        let mut count = self.frames().len();
        let mut since = Instant::now();
        while since.elapsed() < Duration::from_millis(150) {
            std::thread::park_timeout(Duration::from_millis(5));
            let now = self.frames().len();
            if now != count {
                (count, since) = (now, Instant::now());
            }
        }
    }

    fn call(&self, tool: &str, args: Value) -> Value {
        self.settle();
        let _ = self.new_frames();
        let output = self
            .harness
            .invoke(tool, args)
            .unwrap_or_else(|failure| panic!("{tool}: {failure:?}"));
        self.settle();
        output
    }
}

fn frames(robot: &Peer) -> Vec<Value> {
    robot
        .lines()
        .iter()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

/// The velocities that a robot was told, whichever it is.
fn velocities(frames: &[Value]) -> Vec<[f64; 3]> {
    let of = |frame: &Value| {
        let (x, y, turn) = match frame["topic"].as_str()? {
            "velocity" => (
                &frame["velocity"][0],
                &frame["velocity"][1],
                &frame["velocity"][2],
            ),
            "rpc" if frame["api"] == 2001 => {
                (&frame["body"]["vx"], &frame["body"]["vy"], &frame["body"]["vyaw"])
            }
            "sport" if frame["api"] == 7105 => {
                let velocity = &frame["parameter"]["velocity"];
                assert!(frame["parameter"]["duration"].as_f64()? <= 1.0, "{frame}");
                (&velocity[0], &velocity[1], &velocity[2])
            }
            _ => return None,
        };
        Some([x.as_f64()?, y.as_f64()?, turn.as_f64()?])
    };
    frames.iter().filter_map(of).collect()
}

fn functions(frames: &[Value], topic: &str) -> Vec<i64> {
    frames
        .iter()
        .filter(|frame| frame["topic"] == topic)
        .map(|frame| frame["api"].as_i64().unwrap())
        .collect()
}

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

/// Robots side by side: they wait most of the time.
fn each<T: Send + Sync>(rows: &[T], check: impl Fn(&T) + Sync) {
    std::thread::scope(|scope| {
        for row in rows {
            let check = &check;
            scope.spawn(move || check(row));
        }
    });
}

#[test]
fn every_tool_on_every_robot() {
    each(
        &[("k1_topics", 15), ("k1_rpc", 16), ("g1", 14)],
        |&(kind, at_least)| whole_catalogue(kind, at_least),
    );
}

#[test]
fn the_k1s_topics_carry_what_they_are_documented_to() {
    let Some(scene) = scene("k1_topics", "hold") else {
        return;
    };
    scene.call(
        "walk",
        json!({"direction": "forward", "speed": 0.3, "duration": 1.0}),
    );
    let told = velocities(&scene.new_frames());
    let walking = told
        .iter()
        .filter(|velocity| **velocity == [0.3, 0.0, 0.0])
        .count();
    assert!((5..=12).contains(&walking), "ten times a second: {told:?}");
    scene.call("look_at", json!({"target": "left"}));
    let frames = scene.new_frames();
    let head: Vec<&Value> = frames.iter().filter(|frame| frame["topic"] == "head").collect();
    assert_eq!(head.last().unwrap()["data"], json!([-45.0, 0.0]), "{head:?}");
    scene.call("go_to_pose", json!({"pose": "arms_up"}));
    let frames = scene.new_frames();
    for (arm, sign) in [("left_arm", -1.0), ("right_arm", 1.0)] {
        let arms: Vec<&Value> = frames.iter().filter(|frame| frame["label"] == arm).collect();
        let last: Vec<f64> = serde_json::from_value(arms.last().unwrap()["data"].clone()).unwrap();
        assert_eq!(last[..4], [-110.0, sign * 20.0, 0.0, 10.0], "{arm}");
        // Led there in small steps: 90 degrees a second at most.
        let angles: Vec<f64> = arms
            .iter()
            .map(|frame| frame["data"][0].as_f64().unwrap())
            .collect();
        let times: Vec<f64> = arms.iter().map(|frame| frame["t"].as_f64().unwrap()).collect();
        let span = times.last().unwrap() - times[0];
        assert!(
            angles.len() > 10 && (angles[0] + 110.0).abs() / span < 100.0,
            "{arm}: {angles:?} in {span} s"
        );
    }
}

#[test]
fn the_k1s_own_functions_are_called_as_they_should() {
    let Some(scene) = scene("k1_rpc", "damp") else {
        return;
    };
    scene.call("walk", json!({"direction": "rotate_left", "duration": 0.5}));
    let frames = scene.new_frames();
    let functions_called = functions(&frames, "rpc");
    assert_eq!(
        functions_called[..3],
        [2017, 2000, 2001],
        "the mode once, then velocities: {functions_called:?}"
    );
    assert!(
        functions_called[3..].iter().all(|api| *api == 2001),
        "{functions_called:?}"
    );
    for frame in frames.iter().filter(|frame| frame["topic"] == "rpc") {
        assert_eq!(frame["header"]["req_id"], frame["uuid"], "{frame}");
    }
    scene.call("wave", json!({"arm": "right"}));
    let frames = scene.new_frames();
    let bodies: Vec<&Value> = frames
        .iter()
        .filter(|frame| frame["api"] == 2005)
        .map(|frame| &frame["body"])
        .collect();
    assert_eq!(
        bodies,
        [
            &json!({"hand_index": 1, "hand_action": 0}),
            &json!({"hand_index": 1, "hand_action": 1})
        ]
    );
    scene.call("look_at", json!({"target": "left"}));
    let frames = scene.new_frames();
    let head = frames.iter().find(|frame| frame["api"] == 2043).unwrap();
    assert!(
        (head["body"]["yaw"].as_f64().unwrap() - 45f64.to_radians()).abs() < 1e-6,
        "{head}"
    );
    scene.call("dance", json!({"style": "victory", "duration": 1.0}));
    let frames = scene.new_frames();
    let dances: Vec<i64> = frames
        .iter()
        .filter(|frame| frame["api"] == 2016)
        .map(|frame| frame["body"]["dance_id"].as_i64().unwrap())
        .collect();
    assert_eq!(dances, [6, 1000]);
    scene.call("go_to_pose", json!({"pose": "arms_up"}));
    let frames = scene.new_frames();
    assert_eq!(
        functions(&frames, "rpc").first(),
        Some(&2030),
        "the arms become ours first"
    );
    let weights: Vec<f64> = frames
        .iter()
        .filter(|frame| frame["topic"] == "joints")
        .map(|frame| frame["motors"][6][3].as_f64().unwrap())
        .collect();
    assert!(weights.len() > 20, "{weights:?}");
    assert!(
        weights
            .windows(2)
            .all(|pair| pair[1] >= pair[0] && pair[1] - pair[0] < 0.011),
        "{weights:?}"
    );
    assert!(weights.iter().all(|weight| *weight <= 0.5001));
    for frame in frames.iter().filter(|frame| frame["topic"] == "joints") {
        assert_eq!(frame["motors"].as_array().unwrap().len(), 22);
        assert_eq!(
            frame["motors"][12],
            json!([0.0, 0.0, 0.0, 0.0]),
            "no leg is touched: {frame}"
        );
    }
    let _ = scene.new_frames();
    scene.harness.halt(&["all"], true).unwrap();
    scene.settle();
    let functions_called = functions(&scene.new_frames(), "rpc");
    assert_eq!(functions_called[..2], [2001, 2000], "zero, then damping");
}

#[test]
fn the_g1s_own_functions_are_called_as_they_should() {
    let Some(scene) = scene("g1", "damp") else { return };
    scene.call(
        "walk",
        json!({"direction": "forward", "speed": 0.3, "duration": 1.0}),
    );
    let told = velocities(&scene.new_frames());
    assert!(
        told.iter()
            .filter(|velocity| **velocity == [0.3, 0.0, 0.0])
            .count()
            >= 4,
        "{told:?}"
    );
    scene.call("wave", json!({"arm": "right", "style": "shy"}));
    let frames = scene.new_frames();
    let actions: Vec<&Value> = frames
        .iter()
        .filter(|frame| frame["topic"] == "arm")
        .map(|frame| &frame["parameter"])
        .collect();
    assert_eq!(
        actions,
        [
            &json!({"action_id": 25, "data": 25}),
            &json!({"action_id": 99, "data": 99})
        ]
    );

    scene.call("go_to_pose", json!({"pose": "arms_open"}));
    let frames = scene.new_frames();
    let arms: Vec<&Value> = frames.iter().filter(|frame| frame["topic"] == "arms").collect();
    let weights: Vec<f64> = arms
        .iter()
        .map(|frame| frame["weight"].as_f64().unwrap())
        .collect();
    assert!(
        weights[0] <= 0.041 && (weights.last().unwrap() - 1.0).abs() < 1e-6,
        "{weights:?}"
    );
    assert!(
        weights
            .windows(2)
            .all(|pair| pair[1] - pair[0] < 0.041 && pair[1] >= pair[0]),
        "{weights:?}"
    );
    for frame in &arms {
        assert_eq!(frame["crc"], true, "the vendor's checksum: {frame}");
        for joint in 12..29 {
            assert!(
                frame["motors"][joint.to_string()][1].as_f64().unwrap() > 0.0,
                "joint {joint} hangs: {frame}"
            );
        }
        assert!(
            (frame["motors"]["12"][0].as_f64().unwrap() - 0.1).abs() < 1e-6,
            "the waist stays: {frame}"
        );
        assert!(frame["motors"].get("0").is_none(), "no leg is touched: {frame}");
    }
    let roll = arms.last().unwrap()["motors"]["23"][0].as_f64().unwrap();
    assert!(
        (roll - 60f64.to_radians()).abs() < 1e-3,
        "right shoulder roll at {roll}"
    );
    // Two actions at once would fight: its own waits until the arms are given back.
    let refused = scene.harness.invoke("wave", json!({"arm": "right"})).unwrap();
    assert!(
        refused["message"].as_str().unwrap().contains("send them home"),
        "{refused}"
    );
    scene.call("go_to_pose", json!({"pose": "home"}));
    let frames = scene.new_frames();
    let last = frames
        .iter()
        .rev()
        .find(|frame| frame["topic"] == "arms")
        .unwrap();
    assert_eq!(last["weight"], 0.0, "and the arms are the robot's again");
    scene.call("gripper", json!({"arm": "left", "action": "close"}));
    let frames = scene.new_frames();
    assert!(
        frames
            .iter()
            .any(|frame| frame["topic"] == "hand" && frame["side"] == "left")
    );
    let _ = scene.new_frames();
    scene.harness.halt(&["all"], true).unwrap();
    scene.settle();
    let frames = scene.new_frames();
    assert_eq!(
        functions(&frames, "sport")[..2],
        [7105, 7101],
        "zero, then damping: {frames:?}"
    );
}

/// Starts a long walk and waits until the robot hears of it.
fn walking<'a>(scene: &'a Scene, what: &str) -> ovos_toolbox_sdk::testing::Run<'a> {
    let plan = scene
        .harness
        .plan(
            "walk",
            json!({"direction": "forward", "speed": 0.2, "duration": 30.0}),
        )
        .unwrap()
        .unwrap();
    let _ = scene.new_frames();
    let action: Action = plan.into_iter().next().unwrap();
    let run = scene.harness.start_action("walk", action, json!({})).unwrap();
    scene.robot.wait(what, |_| {
        velocities(&scene.frames())
            .last()
            .filter(|last| last[0] > 0.0)
            .map(drop)
    });
    run
}

#[test]
fn a_halt_is_the_last_word() {
    each(&["k1_topics", "k1_rpc", "g1"], |&kind| {
        let Some(scene) = scene(kind, "hold") else { return };
        let run = walking(&scene, "walk");
        scene.harness.cancel(run.id());
        let start = Instant::now();
        scene.harness.halt(&["all"], false).unwrap();
        assert!(
            start.elapsed() < Duration::from_millis(200),
            "{kind}: {:?}",
            start.elapsed()
        );
        let _ = run.wait();
        scene.robot.wait("three stops", |_| {
            let told = velocities(&scene.frames());
            (told
                .iter()
                .rev()
                .take_while(|velocity| **velocity == [0.0; 3])
                .count()
                >= 3)
                .then_some(())
        });
        scene.settle();
        let told = velocities(&scene.frames());
        let first = told.iter().position(|velocity| velocity[0] > 0.0).unwrap();
        let stop = first
            + told[first..]
                .iter()
                .position(|velocity| *velocity == [0.0; 3])
                .unwrap();
        assert!(
            told[stop..].iter().all(|velocity| *velocity == [0.0; 3]),
            "{kind}: {told:?}"
        );
    });
}

#[test]
fn a_safe_stop_needs_nobody() {
    let rows = [
        ("k1_topics", "hold", 0),
        ("k1_rpc", "damp", 2000),
        ("g1", "torque_off", 7101),
    ];
    each(&rows, |&(kind, estop, last)| {
        let Some(scene) = scene(kind, estop) else { return };
        scene.settle();
        let _ = scene.new_frames();
        let start = Instant::now();
        scene.harness.safe_stop(scene.config.clone()).unwrap();
        println!("{kind}: safe_stop took {:?}", start.elapsed());
        scene.settle();
        let frames = scene.new_frames();
        assert!(velocities(&frames).contains(&[0.0; 3]), "{kind}: {frames:?}");
        if last != 0 {
            assert!(
                frames.iter().any(|frame| frame["api"] == last),
                "{kind}: {frames:?}"
            );
        }
    });
}

#[test]
fn a_robot_that_refuses_or_goes_silent_is_said_and_stopped() {
    let rows = [
        ("k1_rpc", "status 501", "501 (refused)"),
        ("k1_rpc", "silent", "no answer on /LocoApiTopicReq"),
        ("g1", "status 7301", "7301 (not available in the robot's state"),
        ("g1", "silent", "no answer on /api/sport/request"),
    ];
    each(&rows, |&(kind, command, expected)| {
        let Some(scene) = scene(kind, "hold") else { return };
        let run = walking(&scene, "walk");
        scene.robot.say(command);
        let failure = run.wait().result().unwrap_err();
        assert!(
            failure.message.contains(expected),
            "{kind} {command}: {failure:?}"
        );
        scene.settle();
        assert_eq!(
            velocities(&scene.frames()).last(),
            Some(&[0.0; 3]),
            "{kind} {command}"
        );
    });
}

#[test]
fn a_robot_that_goes_away_is_said_and_comes_back() {
    each(&["k1_topics", "k1_rpc", "g1"], |&kind| {
        let Some(mut scene) = scene(kind, "hold") else {
            return;
        };
        let run = walking(&scene, "walk");
        scene.robot.say("quit");
        scene.robot.wait("word that it is lost", |_| {
            let events = scene.harness.events();
            events
                .iter()
                .any(|event| {
                    event.kind == "backend" && event.data.as_ref().is_some_and(|data| data["state"] == "lost")
                })
                .then_some(())
        });
        let failure = run.wait().result().unwrap_err();
        assert!(
            failure.message.contains("is not connected"),
            "{kind}: {failure:?}"
        );
        let away = scene.harness.invoke("walk", json!({"duration": 0.5})).unwrap();
        assert_eq!(away["success"], false, "{kind}: {away}");
        let ros = &scene.config["robots"]["hal"];
        let own = ros.get("booster_k1").or_else(|| ros.get("unitree_g1")).unwrap();
        let domain = own["ros"]["domain"].to_string();
        scene.robot = Peer::start("dds_robot.py", &[kind, &domain]).unwrap();
        scene.robot.until("ready");
        scene.seen.set(0);
        let end = Instant::now() + Duration::from_secs(15);
        loop {
            let back = scene
                .harness
                .invoke("walk", json!({"direction": "forward", "duration": 0.5}))
                .unwrap();
            if back["success"] == true {
                break;
            }
            assert!(Instant::now() < end, "{kind}: {back}");
        }
        scene.settle();
        assert!(
            velocities(&scene.frames())
                .iter()
                .any(|velocity| velocity[0] > 0.0),
            "{kind}"
        );
    });
}

#[test]
fn a_robot_that_is_not_there_keeps_nobody_waiting() {
    let domain = fastrand::u16(10..230);
    let ros = json!({"domain": domain, "interfaces": ["127.0.0.1"], "discovery_ms": 300});
    let config = json!({"robots": {"hal": {"adapter": "unitree_g1", "unitree_g1": {"ros": ros}}}});
    let harness = Harness::open::<Robots>(config).unwrap();
    let away = harness.invoke("walk", json!({"duration": 0.5})).unwrap();
    assert!(
        away["message"].as_str().unwrap().contains("hal is not connected"),
        "{away}"
    );
    harness.halt(&["all"], true).unwrap();
    let other =
        json!({"robots": {"hal": {"adapter": "unitree_g1", "unitree_g1": {"ros": {"distro": "jazzy"}}}}});
    let refused = Harness::open::<Robots>(other).unwrap();
    let away = refused.invoke("walk", json!({"duration": 0.5})).unwrap();
    assert_eq!(away["success"], false);
}
