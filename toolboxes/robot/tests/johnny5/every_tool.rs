//! Every tool on Johnny Five, and the frames that reach its servos.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;

use crate::catalogue::{Came, calls, each, listed, run};
use crate::servos::Body;
use feetech_sim::{Frame, Instruction, Line, Servo, register as r};
use ovos_toolbox_sdk::testing::Harness;
use robot::robots::Robots;
use serde_json::{Value, json};

/// What a robot without cameras, microphones and a charger's sensor cannot do.
fn may_fail(tool: &str, why: &str) -> bool {
    let asks = [
        "get_visible_people",
        "identify_person",
        "enroll_person",
        "get_speaker_direction",
        "identify_speaker",
        "enroll_voice",
        "get_known_people",
        "forget_person",
        "who_said_that",
        "look_at_speaker",
        "get_last_seen",
        "what_is_there",
        "point_at_person",
    ];
    asks.contains(&tool)
        && (why.contains("Recognition handler not configured") || why.contains("does not know where"))
        || why.contains("not supported by five")
        // Nothing lies where the hand goes, and nothing to hold hangs in the hitch.
        || tool == "pick_object" && why.contains("right_arm has closed on nothing")
        || matches!(tool, "dock_charger" | "tow_cart" | "place_object") && why.contains("holds nothing")
}

/// The servos whose motion registers were written to: `(left bus?, id)`.
fn moved(frames: &[Frame], left: bool) -> BTreeSet<(bool, u8)> {
    let goal = |frame: &Frame, id| {
        frame.word(id, r::GOAL_POSITION).is_some()
            || frame.word(id, r::GOAL_SPEED).is_some_and(|speed| speed != 0)
    };
    (1..=20)
        .filter(|id| frames.iter().any(|frame| goal(frame, *id)))
        .map(|id| (left, id))
        .collect()
}

/// Which servos a tool may move: left bus, right bus.
fn allowed(tool: &str) -> (Vec<u8>, Vec<u8>) {
    let arm = || (1..=6).collect::<Vec<u8>>();
    let base = || vec![7, 8, 9];
    match tool {
        "wave" => (arm(), arm()),
        "go_to_pose" | "express" | "dance" => ([arm(), vec![10]].concat(), [arm(), vec![7, 8]].concat()),
        "move_arm" | "gripper" | "self_test" => (vec![], arm()),
        "look_at" | "nod" | "calibrate_gantry" | "look_at_speaker" | "setup_robot" => (vec![], vec![7, 8]),
        "pick_object" | "place_object" | "point_at_person" | "alert_hazard" => {
            (arm(), [arm(), vec![7, 8]].concat())
        }
        "move_base" | "walk" | "spin" | "go_to_place" | "calibrate_base" => (base(), vec![]),
        "turn" => (base(), vec![7, 8]),
        "lift" | "calibrate_lift" => (vec![10], vec![]),
        "hitch" | "calibrate_hitch" => (vec![11], vec![]),
        "tow_cart" => ([base(), vec![11]].concat(), vec![]),
        "dock_charger" => ([base(), vec![11]].concat(), vec![7, 8]),
        "test_motor" => (vec![], vec![1]),
        // At the position where they are.
        "enable_torque" => (vec![], arm()),
        "calibrate_arm" => (arm(), vec![]),
        "set_home_position" => (vec![], vec![7, 8]),
        "load_config" => ((1..=11).collect(), (1..=8).collect()),
        "recover_servo" => (vec![3], vec![]),
        _ => (vec![], vec![]),
    }
}

#[test]
fn a_thing_is_picked_with_an_open_hand_and_put_down() {
    let body = Body::new();
    let config = json!({"robots": {"five": {"adapter": "johnny5", "johnny5": body.section()}}});
    let harness = Harness::open::<Robots>(config)
        .unwrap()
        .with_deadline(Duration::from_secs(90));
    // Something 20 degrees wide.
    body.right
        .servo(6, |servo| servo.block(1820.0, f64::INFINITY))
        .unwrap();
    let goals = || {
        let frames = body.right.take_frames();
        let goal = |frame: &Frame| frame.word(6, r::GOAL_POSITION);
        frames.iter().filter_map(goal).collect::<Vec<u16>>()
    };
    let picked = harness.invoke("pick_object", json!({"object": "cup"})).unwrap();
    assert_eq!(picked["success"], true, "{picked:#}");
    assert_eq!(goals(), [1906, 2503, 1593], "power, open, closed");
    let placed = harness
        .invoke("place_object", json!({"location": "table"}))
        .unwrap();
    assert_eq!(placed["success"], true, "{placed:#}");
    assert_eq!(goals(), [2503], "opened where it is put down");
}

/// What the servos of a line keep without power, and would keep.
fn kept(line: &Line) -> Vec<(u8, Vec<u8>)> {
    let of = |id| line.servo(id, |servo| (0..40).map(|at| servo.byte(at)).collect());
    (1..=20).filter_map(|id| Some((id, of(id)?))).collect()
}

fn speeds(line: &Line) -> Vec<Option<u16>> {
    (1..=20)
        .map(|id| line.servo(id, |servo| servo.word(r::GOAL_SPEED)))
        .collect()
}

/// Every tool with every call of the catalogue, none of which says `write`, on the one-armed layouts.
#[test]
fn no_tool_writes_what_the_servos_keep_and_their_speed_is_theirs_afterwards() {
    let rows = [
        ("so101", 6, false),
        ("so101", 6, true),
        ("lekiwi", 9, false),
        ("lekiwi", 9, true),
    ];
    each(&rows, |&(layout, last, allowed)| {
        let line = Line::start((1..=last).map(|id| {
            let mut servo = Servo::new(id).at(1900 + u16::from(id)).calibrated(700, 3400, 20);
            servo.set_byte(r::MODE, u8::from(id > 6));
            servo
        }))
        .unwrap();
        let (before, speed) = (kept(&line), speeds(&line));
        let folder = tempfile::tempdir().unwrap();
        let config = json!({
            "robots": {"so": {"kind": layout, "channels": {
                "answer_ms": 500, "ports": {"right": line.path()},
                "allow_calibration_write": allowed,
            }}},
            "data_dir": folder.path(), "recognition_timeout_ms": 100,
        });
        let harness = Harness::open::<Robots>(config)
            .unwrap()
            .with_deadline(Duration::from_secs(90));
        let names = listed(&harness);
        for (tool, args) in calls() {
            // Its purpose is another register, the id.
            if tool != "set_motor_id" {
                let _ = run(&harness, &names, tool, &args);
                assert_eq!(kept(&line), before, "{layout}: {tool} {args}");
            }
        }
        drop(harness.close());
        crate::servos::within("their own speed", || (speeds(&line) == speed).then_some(()));
    });
}

/// The tools for people and those for upkeep, each kind on a robot of its own: the motions take their time.
#[test]
fn every_tool_moves_what_it_says_and_nothing_else() {
    let all = calls();
    let upkeep = all.iter().position(|(tool, _)| *tool == "scan_motors").unwrap();
    let done = Mutex::default();
    let (acts, upkeep) = all.split_at(upkeep);
    each(&[acts, upkeep], |calls| {
        every_call_moves_what_it_says(calls, &done)
    });
    let done = done.into_inner().unwrap();
    println!("done: {done:?}");
    assert!(done.len() >= 40, "only {} tools work: {done:?}", done.len());
}

fn every_call_moves_what_it_says(calls: &[(&'static str, Value)], done: &Mutex<BTreeSet<&'static str>>) {
    let body = Body::new();
    let folder = tempfile::tempdir().unwrap();
    let mut section = body.section();
    section["allow_calibration_write"] = json!(true);
    let config = json!({
        "robots": {"five": {"adapter": "johnny5", "johnny5": section}},
        "data_dir": folder.path(),
        "recognition_timeout_ms": 100,
    });
    let harness = Harness::open::<Robots>(config.clone())
        .unwrap()
        .with_deadline(Duration::from_secs(90));
    assert!(!body.powered(), "open powers nothing");
    let names = listed(&harness);
    for tool in &names {
        assert!(
            crate::catalogue::calls().iter().any(|(name, _)| name == tool),
            "{tool} is not in the catalogue"
        );
    }
    let lasting = || [kept(&body.left), kept(&body.right)];
    for (tool, args) in calls {
        let (_, _) = (body.left.take_frames(), body.right.take_frames());
        let before = lasting();
        let outcome = run(&harness, &names, tool, args);
        match &outcome {
            Came::Done(_) => drop(done.lock().unwrap().insert(*tool)),
            Came::Failed(why) => assert!(may_fail(tool, why), "{tool} {args}: {why}"),
            Came::Absent => println!("{tool} is absent"),
        }
        if *tool != "set_motor_id" {
            assert_eq!(lasting(), before, "{tool} {args}");
        }
        let (left, right) = (body.left.frames(), body.right.frames());
        let moved: BTreeSet<(bool, u8)> = moved(&left, true)
            .into_iter()
            .chain(moved(&right, false))
            .collect();
        let (may_left, may_right) = allowed(tool);
        let may: BTreeSet<(bool, u8)> = may_left
            .into_iter()
            .map(|id| (true, id))
            .chain(may_right.into_iter().map(|id| (false, id)))
            .collect();
        let strange: Vec<_> = moved.difference(&may).collect();
        assert!(
            strange.is_empty(),
            "{tool} moves {strange:?} (true is the left bus)"
        );
        let motion = !may.is_empty()
            && !matches!(
                *tool,
                "enable_torque" | "point_at_person" | "look_at_speaker" | "load_config" | "recover_servo"
            );
        if motion && matches!(outcome, Came::Done(_)) {
            assert!(
                !moved.is_empty() || tool.starts_with("calibrate") || *tool == "set_home_position",
                "{tool} moves nothing"
            );
        }
        assert!(!body.moves(), "{tool}: something still moves after its answer");
        for wheel in 7..=9 {
            let speeds: Vec<u16> = left
                .iter()
                .filter_map(|frame| frame.word(wheel, r::GOAL_SPEED))
                .collect();
            assert!(
                speeds.last().is_none_or(|speed| *speed == 0),
                "{tool}: wheel {wheel}: {speeds:?}"
            );
        }
        if *tool == "stop" {
            crate::servos::within("power off", || (!body.powered()).then_some(()));
        }
    }
    // Every servo answers the wire's own questions at all times: nothing was sent that the bus does not know.
    assert!(
        !body
            .left
            .frames()
            .iter()
            .any(|frame| matches!(frame.instruction, Instruction::Other(_)))
    );
    let closed = harness.close();
    drop(closed);
    // Other programs expect the servos' own speed.
    let all = |speeds: Vec<Option<u16>>| speeds.into_iter().flatten().all(|speed| speed == 0);
    crate::servos::within("their own speed", || {
        (all(speeds(&body.left)) && all(speeds(&body.right))).then_some(())
    });
}
