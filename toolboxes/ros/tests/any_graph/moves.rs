//! What moves something: allowed by name, within limits, with an end that comes whatever ends the call.

use std::time::Duration;

use ovos_toolbox_sdk::testing::{Harness, Run};
use ovos_toolbox_sdk::wire::Action;
use ros::Ros;
use serde_json::{Value, json};

use crate::{Scene, cyclone, rosbridge};

/// The keys under which both bases say what they hear.
fn heard_key(scene: &Scene) -> &'static str {
    if scene.config["rosbridge"].is_string() {
        "cmd_vel"
    } else {
        "twist"
    }
}

fn both() -> impl Iterator<Item = Scene> {
    [dds(), rosbridge()].into_iter().flatten()
}

#[test]
fn what_is_not_allowed_is_refused_before_anything_is_joined() {
    let ros = Harness::open::<Ros>(json!({"allow": {"publish": {"/cmd_vel": {}}}})).unwrap();
    for (tool, args, expected) in [
        (
            "ros_publish",
            json!({"topic": "/level", "message": {}}),
            "allow.publish: {\"/level\": {}}",
        ),
        (
            "ros_publish",
            json!({"topic": "/Cmd_vel", "message": {}}),
            "allowed: /cmd_vel. The owner can allow it",
        ),
        (
            "ros_call",
            json!({"service": "motor_power"}),
            "allow.call: [\"/motor_power\"]",
        ),
        (
            "ros_call",
            json!({"service": "/cmd_vel"}),
            "allowed: nothing. The owner can allow it",
        ),
        (
            "ros_goal",
            json!({"action": "/dock"}),
            "allow.goal: {\"/dock\": {}}",
        ),
        (
            "ros_call",
            json!({"service": "/dock/_action/cancel_goal"}),
            "is a part of an action",
        ),
    ] {
        let planned = ros.plan(tool, args.clone()).unwrap_err();
        assert!(planned.to_string().contains(expected), "{planned}");
        // The plan is not all that looks.
        let ran = ros.call(tool, args).unwrap_err();
        assert!(ran.message.contains(expected), "{ran}");
    }
}

#[test]
fn a_velocity_is_said_for_its_time_and_ends_with_zero() {
    for scene in both() {
        let key = heard_key(&scene);
        let answer = scene
            .call(
                "ros_publish",
                json!({"topic": "cmd_vel", "message": {"linear": {"x": 0.2}}, "seconds": 1}),
            )
            .unwrap();
        assert_eq!(
            (&answer["end"], &answer["type"]),
            (&json!("zero"), &json!("geometry_msgs/msg/Twist"))
        );
        let values = scene.until(key, |values| values.last().is_some_and(|last| *last == 0.0));
        assert!(
            values[0] == 0.2 && values.iter().filter(|value| **value == 0.2).count() >= 3,
            "{values:?}"
        );
        let before = scene.values(key).len();
        for (args, expected) in [
            (
                json!({"message": {"linear": {"x": 0.3}}}),
                "linear.x is 0.3, expected -0.2 to 0.2 m/s",
            ),
            (json!({"message": {"speed": 1}}), "has no field `speed`"),
            (json!({"message": {}, "seconds": 31}), "expected 0 to 30"),
            (
                json!({"message": {}, "type": "std_msgs/msg/String"}),
                "the message that ends a std_msgs/msg/String",
            ),
            (
                json!({"message": {}, "type": "own_msgs/msg/Odd"}),
                "own_msgs/msg/Odd",
            ),
            (
                json!({"message": {}, "type": "geometry_msgs/msg/TwistStamped"}),
                "is geometry_msgs/msg/Twist in the graph",
            ),
        ] {
            let mut args = args;
            args["topic"] = json!("/cmd_vel");
            let error = scene.call("ros_publish", args).unwrap_err();
            assert!(error.message.contains(expected), "{expected}: {error}");
        }
        let later: Vec<Value> = scene.values(key).split_off(before);
        assert!(
            later.iter().all(|value| *value == 0.0),
            "nothing but zeros: {later:?}"
        );
    }
}

/// Begins to drive, and waits until the base hears it.
fn driving(scene: &Scene) -> Run<'_> {
    let args = json!({"topic": "/cmd_vel", "message": {"linear": {"x": 0.2}}, "seconds": 30});
    let action: Action = scene.action("ros_publish", args).unwrap().unwrap();
    let run = scene.ros.start_action("ros_publish", action, json!({})).unwrap();
    scene.until(heard_key(scene), |values| values.contains(&json!(0.2)));
    run
}

#[test]
fn whatever_ends_a_velocity_the_base_hears_zero_last() {
    for what in ["cancel", "halt", "stop", "close", "a new process"] {
        for scene in both() {
            let run = driving(&scene);
            match what {
                "cancel" => run.cancel(),
                "halt" => scene.ros.halt(&["cmd_vel"], false).unwrap(),
                "stop" => scene.ros.halt(&["all"], true).unwrap(),
                _ => {}
            }
            let key = heard_key(&scene);
            let is_zero = |heard: &[Value]| heard.last().is_some_and(|last| *last == 0.0);
            if what == "close" {
                let Scene {
                    peer,
                    ros,
                    config,
                    _folder,
                } = scene;
                drop(ros);
                let rest = Scene {
                    peer,
                    ros: Harness::open::<Ros>(json!({})).unwrap(),
                    config,
                    _folder,
                };
                rest.until(key, is_zero);
            } else if what == "a new process" {
                // As after a SIGKILL: it knows the section alone. What still runs here says the velocity on.
                scene.ros.safe_stop(scene.config.clone()).unwrap();
                scene.until(key, |heard| heard.iter().any(|said| *said == 0.0));
            } else {
                assert!(run.wait().result().is_err(), "{what}");
                scene.until(key, is_zero);
            }
        }
    }
}

/// Over rosbridge the end is sent, also where what tells who listens fails, says nothing, or names nobody any more.
#[test]
fn a_velocity_ends_with_zero_whatever_rosapi_says() {
    for (word, key) in [
        ("fails", Some("failed")),
        ("mute", Some("unanswered")),
        ("leave", None),
    ] {
        let Some(scene) = rosbridge() else { return };
        let run = driving(&scene);
        scene.peer.say(word);
        if let Some(key) = key {
            // The second question comes when the first one has been answered, or not.
            let looks = |asked: &&Value| **asked == "/rosapi/subscribers";
            scene.until(key, |asked| asked.iter().filter(looks).count() >= 2);
            run.cancel();
        }
        assert!(run.wait().result().is_err(), "{word}");
        scene.until("cmd_vel", |heard| heard.last().is_some_and(|last| *last == 0.0));
    }
}

#[test]
fn a_halt_of_something_else_lets_it_go_on() {
    let Some(scene) = cyclone("twist", "") else { return };
    let run = driving(&scene);
    scene.ros.halt(&["navigate_to_pose"], false).unwrap();
    assert!(!scene.values("twist").contains(&json!(0.0)));
    let before = scene.values("twist").len();
    scene.until("twist", |heard| heard.len() > before + 3);
    run.cancel();
    assert!(run.wait().result().is_err());
}

#[test]
fn a_message_without_a_velocity_ends_as_its_owner_says() {
    let Some(scene) = cyclone("twist", "busy") else {
        return;
    };
    let answer = scene
        .call(
            "ros_publish",
            json!({"topic": "/level", "message": {"data": 1.5}, "seconds": 0.5}),
        )
        .unwrap();
    assert_eq!(answer["end"], json!({"data": 0.0}));
    let values = scene.until("level", |values| values.last().is_some_and(|last| *last == 0.0));
    assert_eq!(values[0], 1.5);
    let error = scene
        .call(
            "ros_publish",
            json!({"topic": "/level", "message": {"data": 2.5}}),
        )
        .unwrap_err();
    assert!(error.message.contains("data is 2.5, expected -2 to 2"), "{error}");
}

#[test]
fn a_service_is_called_and_what_it_does_not_answer_is_said() {
    for scene in both() {
        let answer = scene
            .call(
                "ros_call",
                json!({"service": "motor_power", "request": {"data": true}}),
            )
            .unwrap();
        assert_eq!(answer["response"], json!({"success": true, "message": "on"}));
        for (args, expected) in [
            (json!({"service": "/motor_power", "request": {"data": 1}}), "data"),
            (json!({"service": "/nothing"}), "no service /nothing"),
            (json!({"service": "/slow"}), "it may have done what was asked"),
        ] {
            let error = scene.call("ros_call", args).unwrap_err();
            assert!(error.message.contains(expected), "{expected}: {error}");
        }
    }
}

fn ahead(metres: f64) -> Value {
    let pose = json!({"header": {"frame_id": "map"}, "pose": {"position": {"x": metres}, "orientation": {"w": 1.0}}});
    json!({"action": "/navigate_to_pose", "goal": {"pose": pose}})
}

#[test]
fn a_goal_is_followed_refused_or_cancelled() {
    for scene in both() {
        let action = scene.action("ros_goal", ahead(3.0)).unwrap().unwrap();
        let run = scene.ros.start_action("ros_goal", action, json!({})).unwrap();
        let reached = run.wait().result().unwrap();
        assert_eq!(
            (&reached["success"], &reached["status"]),
            (&json!(true), &json!("succeeded")),
            "{reached:#}"
        );
        assert!(
            reached["feedback"]["distance_remaining"].is_number(),
            "{reached:#}"
        );
        assert!(!run.progress().is_empty());
        let error = scene.call("ros_goal", ahead(5000.0)).unwrap_err();
        assert!(error.message.contains("refused"), "{error}");
        for what in ["cancel", "halt", "stop"] {
            let before = scene.values("canceled").len();
            let goals = scene.values("goal").len();
            let action = scene.action("ros_goal", ahead(500.0)).unwrap().unwrap();
            let run = scene.ros.start_action("ros_goal", action, json!({})).unwrap();
            scene.until("goal", |said| said.len() > goals);
            match what {
                "cancel" => run.cancel(),
                "halt" => scene.ros.halt(&["navigate_to_pose"], false).unwrap(),
                _ => scene.ros.halt(&["all"], true).unwrap(),
            }
            assert!(run.wait().result().is_err(), "{what}");
            scene.until("canceled", |said| said.len() > before);
        }
        // As after a SIGKILL.
        let goals = scene.values("goal").len();
        let action = scene.action("ros_goal", ahead(500.0)).unwrap().unwrap();
        let run = scene.ros.start_action("ros_goal", action, json!({})).unwrap();
        scene.until("goal", |said| said.len() > goals);
        let before = scene.values("canceled").len();
        scene.ros.safe_stop(scene.config.clone()).unwrap();
        scene.until("canceled", |said| said.len() > before);
        assert_eq!(run.wait().result().unwrap()["status"], "canceled");
    }
}

#[test]
fn a_goal_that_takes_too_long_is_cancelled() {
    let Some(scene) = cyclone("twist", "") else { return };
    let mut config = scene.config.clone();
    config["allow"]["goal"]["/navigate_to_pose"]["seconds"] = json!(1.5);
    let ros = Harness::open::<Ros>(config).unwrap();
    let ended = ros.call("ros_goal", ahead(500.0)).unwrap();
    assert_eq!(
        (&ended["success"], &ended["status"]),
        (&json!(false), &json!("timed_out")),
        "{ended:#}"
    );
    scene.until("canceled", |said| said.len() == 1);
}

#[test]
fn a_goal_that_is_accepted_after_the_stop_is_cancelled() {
    let Some(scene) = cyclone("twist", "") else {
        return;
    };
    scene.peer.say("hesitates");
    let action = scene.action("ros_goal", ahead(500.0)).unwrap().unwrap();
    let run = scene.ros.start_action("ros_goal", action, json!({})).unwrap();
    scene.until("asked", |said| !said.is_empty());
    scene.ros.halt(&["all"], true).unwrap();
    assert!(run.wait().result().is_err());
    scene.until("canceled", |said| said.len() == 1);
}

/// The action refuses the cancel of the call once, and pursues its goal until the next stop.
#[test]
fn a_goal_whose_cancel_was_not_confirmed_is_cancelled_by_the_next_stop() {
    for parts in ["navigate_to_pose", "all"] {
        for scene in both() {
            let case = format!("{} {parts}", heard_key(&scene));
            scene.peer.say("objects");
            let action = scene.action("ros_goal", ahead(500.0)).unwrap().unwrap();
            let run = scene.ros.start_action("ros_goal", action, json!({})).unwrap();
            scene.until("goal", |goals| !goals.is_empty());
            run.cancel();
            assert!(run.wait().result().is_err(), "{case}");
            scene.until("objected", |refused| refused.len() == 1);
            assert!(scene.values("canceled").is_empty(), "{case}");
            let cancels = || ["cancel", "cancel_one"].map(|key| scene.values(key).len());
            let before = cancels();
            scene.ros.halt(&["cmd_vel"], false).unwrap();
            assert_eq!(cancels(), before, "{case}: a stop of another part");
            scene.ros.halt(&[parts], false).unwrap();
            scene.until("canceled", |ended| ended.len() == 1);
        }
    }
}

/// How a goal is lost: what the base is told before it, while it is pursued, and after its call; what the call says; and whether the goals
/// of everyone are cancelled, because nothing else reaches ours.
struct Loss {
    meet: fn() -> Option<Scene>,
    before: &'static [&'static str],
    meanwhile: &'static [&'static str],
    is_cancelled: bool,
    after: &'static [&'static str],
    says: &'static str,
    everyones: bool,
}

const LOSS: Loss = Loss {
    meet: rosbridge,
    before: &[],
    meanwhile: &[],
    is_cancelled: false,
    after: &[],
    says: "",
    everyones: true,
};

fn dds() -> Option<Scene> {
    cyclone("twist", "")
}

/// Nothing stops anything here: what was lost is cancelled by itself.
#[test]
fn a_goal_that_was_lost_is_cancelled_as_soon_as_something_answers() {
    let forgotten = Loss {
        before: &["forgets"],
        says: "\"unknown\"",
        ..LOSS
    };
    let rows = [
        Loss {
            meet: dds,
            ..forgotten
        },
        forgotten,
        // Its acceptance is lost, and so is its id.
        Loss {
            meet: dds,
            before: &["unheard", "busy"],
            after: &["answers"],
            says: "may still be running",
            ..LOSS
        },
        Loss {
            before: &["vanishes"],
            says: "may still be running",
            ..LOSS
        },
        // Its id is known, and reaches it later.
        Loss {
            meet: dds,
            before: &["busy"],
            is_cancelled: true,
            after: &["answers"],
            says: "did not answer",
            everyones: false,
            ..LOSS
        },
        Loss {
            meanwhile: &["away 1000"],
            says: "is not available",
            ..LOSS
        },
    ];
    for row in rows {
        let Some(scene) = (row.meet)() else { continue };
        let case = format!("{} {:?} {:?}", heard_key(&scene), row.before, row.meanwhile);
        row.before.iter().for_each(|word| scene.peer.say(word));
        let action = scene.action("ros_goal", ahead(500.0)).unwrap().unwrap();
        let run = scene.ros.start_action("ros_goal", action, json!({})).unwrap();
        scene.until("goal", |goals| !goals.is_empty());
        if row.is_cancelled || !row.meanwhile.is_empty() {
            scene
                .peer
                .wait("feedback", |_| (!run.progress().is_empty()).then_some(()));
        }
        row.meanwhile.iter().for_each(|word| scene.peer.say(word));
        if row.is_cancelled {
            run.cancel();
        }
        let ended = match run.wait().result() {
            Ok(ended) => {
                assert_eq!(ended["success"], false, "{case}: {ended:#}");
                ended.to_string()
            }
            Err(failure) => failure.message,
        };
        assert!(ended.contains(row.says), "{case}: {ended}");
        row.after.iter().for_each(|word| scene.peer.say(word));
        scene.until("canceled", |ends| ends.len() == 1);
        let everyones = scene.values("all").contains(&json!(true));
        assert_eq!(everyones, row.everyones, "{case}");
    }
}

#[test]
fn a_stop_ends_the_goals_of_other_clients_only_in_an_emergency() {
    for scene in both() {
        let other = Harness::open::<Ros>(scene.config.clone())
            .unwrap()
            .with_deadline(Duration::from_secs(60));
        let action = || scene.action("ros_goal", ahead(500.0)).unwrap().unwrap();
        let theirs = other.start_action("ros_goal", action(), json!({})).unwrap();
        scene.until("goal", |goals| goals.len() == 1);
        let ours = scene.ros.start_action("ros_goal", action(), json!({})).unwrap();
        scene.until("goal", |goals| goals.len() == 2);
        scene.ros.halt(&["navigate_to_pose"], false).unwrap();
        assert!(ours.wait().result().is_err());
        scene.until("canceled", |ends| ends.len() == 1);
        assert!(!scene.values("all").contains(&json!(true)));
        scene.ros.halt(&["cmd_vel"], true).unwrap();
        assert_eq!(scene.values("canceled").len(), 1, "an emergency of another part");
        scene.ros.halt(&["navigate_to_pose"], true).unwrap();
        scene.until("canceled", |ends| ends.len() == 2);
        assert_eq!(theirs.wait().result().unwrap()["status"], "canceled");
    }
}
