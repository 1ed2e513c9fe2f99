//! An arm behind `ros2_control`, made of the published Cyclone DDS, driven with the file of a UR: what it is told, what it does not do,
//! and how it is stopped.

mod hands;
mod points;
mod rosbridge;
mod stops;

use serde_json::{Value, json};

use super::{Scene, peer, scene_of};
use crate::each;
use crate::peers::{Peer, domain};

/// What a UR with a hand has of it.
const HAND: &str = "[channels.arms.right_arm.gripper]\naction = \"/gripper/gripper_cmd\"\njoint = \"finger_joint\"\nopen = 0.08\nclosed = \
    0\n\
                    force = 40\n";

/// The file of a UR with a hand.
fn file() -> String {
    let ur = include_str!("../../../robots/unverified/ur.toml");
    ur.replace("name = \"ur\"", "name = \"arm\"")
        .replace("# gripper =", "gripper =")
        .replace("# [channels.arms.right_arm.gripper]\n", HAND)
        .replace("late = 5", "late = 0.5")
        // The vendor's own: the tests wait less.
        .replace("max_speed = 60", "max_speed = 180")
}

fn scene(kind: &str) -> Option<Scene> {
    scene_with(kind, domain(), &file())
}

fn arm(kind: &str, domain: u16) -> Option<Peer> {
    peer("arm_cyclonedds.py", &[kind, &domain.to_string()])
}

fn scene_with(kind: &str, domain: u16, file: &str) -> Option<Scene> {
    let channels = json!({"ros": {"domain": domain, "interfaces": ["127.0.0.1"], "distro": "humble", "discovery_ms": 8000}});
    Some(scene_of(arm(kind, domain)?, "arm", channels, Some(file)))
}

/// To the pose `ready`, which is some way from home.
fn to_ready() -> (&'static str, Value) {
    ("move_arm", json!({"arm": "right", "position": "ready"}))
}

/// Ten seconds far.
fn far() -> (&'static str, Value) {
    let far = json!({"arm": "right", "position": [170, -90, 90, -90, -90, 0], "speed": 0.1});
    ("move_arm", far)
}

impl Scene {
    /// What a tool has said, also one that was refused.
    fn answer(&self, (tool, args): (&str, Value)) -> Value {
        let done = self.harness.invoke(tool, args);
        done.unwrap_or_else(|failure| json!({"success": false, "message": format!("{failure:?}")}))
    }

    fn does(&self, tool: &str, args: Value) -> Value {
        let done = self.answer((tool, args));
        assert_eq!(done["success"], true, "{tool}: {done:#}");
        done
    }

    /// How many lines of the peer say this.
    fn lines_with(&self, text: &str) -> usize {
        self.base
            .lines()
            .iter()
            .filter(|line| line.contains(text))
            .count()
    }

    /// The angles of the goals that the controller was sent, in degrees.
    fn goals(&self) -> Vec<Vec<f64>> {
        let lines = self.base.lines().into_iter();
        let frames = lines.filter_map(|line| serde_json::from_str::<Value>(&line).ok());
        frames
            .filter_map(|frame| serde_json::from_value(frame["degrees"].clone()).ok())
            .collect()
    }

    fn values(&self, key: &str) -> Vec<f64> {
        let lines = self.base.lines().into_iter();
        let frames = lines.filter_map(|line| serde_json::from_str::<Value>(&line).ok());
        frames.filter_map(|frame| frame[key].as_f64()).collect()
    }
}

/// A controller takes its time before it accepts, and joint states lag behind what a controller says.
#[test]
fn what_comes_late_is_waited_for() {
    let Some(scene) = scene("gripper") else { return };
    scene.base.say("lags");
    scene.base.say("thing");
    let closed = scene.does("gripper", json!({"arm": "right", "action": "close"}));
    assert_eq!(closed["data"]["holding"], true, "{closed:#}");
    assert_eq!(closed["data"]["gripper_percent"], 38.0, "{closed:#}");
    let opened = scene.does("gripper", json!({"arm": "right", "action": "open"}));
    assert_eq!(opened["data"]["gripper_percent"], 100.0, "{opened:#}");
    scene.base.say("dawdles");
    let near = json!({"arm": "right", "position": [3, -90, 90, -90, -90, 0], "speed": 1.0});
    scene.does("move_arm", near);
}

/// Publishers of one topic tell of some joints each, and what they say at once is all heard.
#[test]
fn joints_that_are_told_one_by_one_are_all_known() {
    let Some(scene) = scene("pieces") else { return };
    for pose in ["ready", "home"] {
        scene.does("move_arm", json!({"arm": "right", "position": pose}));
    }
}

#[test]
fn an_arm_and_its_hand_go_where_the_joint_states_say() {
    each(&["gripper", "parallel"], |kind| {
        let Some(scene) = scene(kind) else { return };
        scene.does("go_to_pose", json!({"pose": "ready"}));
        let angles = json!({"arm": "right", "position": [20, -80, 90, -100, -90, 10], "speed": 1.0});
        let done = scene.does("move_arm", angles);
        assert_eq!(done["data"]["positions"]["shoulder_pan_joint"], 20.0, "{done:#}");
        // No joint is faster than its part of 180 degrees a second, and the tolerance of the file is given.
        let fastest = scene.values("fastest");
        assert!(fastest[0] < 91.0 && fastest[1] < 181.0, "{fastest:?}");
        assert!((scene.values("path_tolerance")[0] - 10.0).abs() < 0.01);
        let sent = fastest.len();
        let beyond = json!({"arm": "right", "position": [181, -80, 90, -100, -90, 10]});
        assert_eq!(scene.answer(("move_arm", beyond))["success"], false);
        assert_eq!(
            scene.values("fastest").len(),
            sent,
            "a goal beyond a limit was sent"
        );

        let done = scene.does("move_arm", json!({"arm": "right", "x": 0.4, "y": -0.2, "z": 0.3}));
        assert!(done["data"]["off_mm"].as_f64().unwrap() < 5.0, "{done:#}");
        let status = scene.does("motor_status", json!({"subsystem": "right_arm"}));
        assert_eq!(status["data"]["gripper_percent"], 100.0, "{status:#}");

        scene.does("gripper", json!({"arm": "right", "action": "close"}));
        let missed = scene.answer((
            "pick_object",
            json!({"object": "cup", "x": 0.4, "y": 0.1, "z": 0.2}),
        ));
        assert!(missed.to_string().contains("closed on nothing"), "{missed:#}");
        scene.base.say("thing");
        let picked = scene.does(
            "pick_object",
            json!({"object": "cup", "x": 0.4, "y": 0.1, "z": 0.2}),
        );
        assert!(picked.to_string().contains("\"holding\":true"), "{picked:#}");
        assert_eq!(scene.values("effort").last(), Some(&20.0), "half of its force");
        scene.does(
            "place_object",
            json!({"location": "table", "x": 0.4, "y": -0.1, "z": 0.2}),
        );
        // What it does not hold any more is not put down.
        scene.does(
            "pick_object",
            json!({"object": "cup", "x": 0.4, "y": 0.1, "z": 0.2}),
        );
        scene.base.say("lets go");
        let gone = scene.base.wait("an empty hand", |_| {
            let gone = scene.answer((
                "place_object",
                json!({"location": "table", "x": 0.4, "y": -0.1, "z": 0.2}),
            ));
            (gone["success"] == false).then_some(gone)
        });
        assert!(gone.to_string().contains("holds nothing"), "{gone:#}");
    });
}

/// Whether the word is said before the call or while the arm moves.
#[derive(Clone, Copy, Debug, PartialEq)]
enum When {
    Before,
    Moving,
}

#[test]
fn what_an_arm_has_not_done_is_said_and_never_a_success() {
    let close = || ("gripper", json!({"arm": "right", "action": "close"}));
    let open = || ("gripper", json!({"arm": "right", "action": "open"}));
    type Call = fn() -> (&'static str, Value);
    let (ready, far, grip, open): (Call, Call, Call, Call) = (to_ready, far, close, open);
    let rows = [
        (
            "gripper",
            "rejects",
            When::Before,
            ready,
            "the goal was not accepted",
        ),
        (
            "gripper",
            "stuck",
            When::Before,
            ready,
            "left its path by more than path_tolerance",
        ),
        (
            "gripper",
            "short",
            When::Before,
            ready,
            "did not come as close as goal_tolerance",
        ),
        (
            "gripper",
            "lies",
            When::Before,
            ready,
            "says that its goal is reached, and /joint_states says",
        ),
        ("gripper", "mute", When::Before, ready, "has not said within"),
        (
            "gripper",
            "silent",
            When::Before,
            ready,
            "has arrived for a second",
        ),
        (
            "gripper",
            "silent",
            When::Moving,
            far,
            "no position of shoulder_pan_joint",
        ),
        (
            "absent",
            "",
            When::Before,
            ready,
            "no action /scaled_joint_trajectory_controller/follow_joint_trajectory",
        ),
        (
            "other",
            "",
            When::Before,
            ready,
            "is control_msgs/action/GripperCommand in the graph, expected control_msgs/action/Follow",
        ),
        (
            "gripper",
            "forgets",
            When::Before,
            far,
            "is not known to the robot any more",
        ),
        ("gripper", "jams", When::Before, grip, "did not close"),
        ("parallel", "jams", When::Before, grip, "did not close"),
        ("half", "sticks", When::Before, grip, "did not close"),
        ("half", "sticks", When::Before, open, "aborted by the robot"),
    ];
    let check = |&(kind, word, when, call, expected): &(&str, &str, When, Call, &str)| {
        let case = format!("{kind} {word} {when:?}");
        let Some(scene) = scene(kind) else { return };
        let (tool, args) = call();
        let ended = if when == When::Moving {
            let run = scene.start(tool, args);
            scene.base.until("\"goal\"");
            scene.base.say(word);
            let ended = run.wait().result();
            ended.unwrap_or_else(|failure| json!({"success": false, "message": format!("{failure:?}")}))
        } else {
            if word == "silent" {
                // Silence is a second without a word.
                scene.base.say(word);
                scene.base.wait("silence", |_| {
                    let events = format!("{:?}", scene.harness.events());
                    events.contains("lost").then_some(())
                });
            } else {
                scene.base.say(word);
            }
            scene.answer((tool, args))
        };
        assert_ne!(ended["success"], true, "{case}: {ended:#}");
        assert!(ended.to_string().contains(expected), "{case}: {ended:#}");
        if matches!((word, when), ("mute" | "forgets", _) | ("silent", When::Moving)) {
            scene.base.until("\"canceled\"");
        }
    };
    rows.chunks(3).for_each(|some| each(some, check));
}
