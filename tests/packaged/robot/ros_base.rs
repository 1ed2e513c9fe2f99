//! A base in a graph of ROS behind the real service: its toolbox is killed while the base moves, and its file is compared with it.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::robot::peers::{LOOPBACK, Peer, domain, python};
use crate::support::robot::RobotScene;
use crate::support::scene::Scene;
use crate::support::service::plugins_with;
use crate::support::status::{pid, toolbox};
use rustix::process::{Signal, kill_process};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

pub(crate) fn base(kind: &str, domain: u16) -> Option<Peer> {
    peer("base_cyclonedds.py", &[kind, &domain.to_string(), "drives"])
}

fn peer(script: &str, arguments: &[&str]) -> Option<Peer> {
    let mut command = Command::new(python()?);
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/toolboxes/ros-graph/tests/python");
    command
        .args(["-u", &format!("{folder}/{script}")])
        .args(arguments)
        .env("CYCLONEDDS_URI", LOOPBACK);
    let peer = Peer::run(script, command);
    peer.until("ready");
    Some(peer)
}

/// When the base was told which velocity ahead, in seconds of the machine.
pub(crate) fn velocities(base: &Peer) -> Vec<(f64, f64)> {
    let lines = base.lines();
    let frames = lines
        .iter()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    frames
        .filter_map(|frame| Some((frame["t"].as_f64()?, frame["twist"].as_f64()?)))
        .collect()
}

/// The base follows its last velocity, or its goal, for ever: it comes to rest by the stop that the service has sent, or not at all.
#[test]
fn a_base_comes_to_rest_when_its_toolbox_is_killed() {
    let walk = json!({"direction": "forward", "speed": 0.2, "duration": 30.0});
    for (robot, tool, args, moving) in [
        ("turtlebot3", "walk", walk, "\"twist\": 0.2"),
        (
            "nav2-base",
            "navigate_to",
            json!({"x": 500.0, "y": 0.0}),
            "\"goal\"",
        ),
    ] {
        let domain = domain();
        let Some(base) = base("twist", domain) else { return };
        let ros = json!({"domain": domain, "interfaces": ["127.0.0.1"], "discovery_ms": 8000});
        let mut scene =
            RobotScene::with_robots(&json!({"turtle": {"kind": robot, "channels": {"ros": ros}}}));
        scene.call("moves", tool, &args);
        base.until(moving);
        let before = toolbox(&mut scene.client, "robot");
        let now = clock_gettime(ClockId::Monotonic);
        kill_process(pid(&before).unwrap(), Signal::KILL).unwrap();
        #[allow(
            clippy::cast_precision_loss,
            reason = "seconds since the start of the machine"
        )]
        let killed = now.tv_sec as f64 + now.tv_nsec as f64 / 1e9;
        let rested = base.wait("zero", |_| {
            let velocities = velocities(&base);
            velocities
                .into_iter()
                .find(|(at, speed)| *at > killed && *speed == 0.0)
        });
        let late = Duration::from_secs_f64(rested.0 - killed);
        println!("{tool}: the first zero {late:?} after the kill");
        // The goal is half a second; a machine that does other things as well is given more.
        assert!(late < Duration::from_secs(2), "{tool}: {late:?}");
        if tool == "navigate_to" {
            base.until("\"canceled\"");
        }
        let answer = scene.client.until("the answer", |frame| {
            let is_answer =
                frame["type"] == "ovos.tools.invoke.response" && frame["data"]["call_id"] == "moves";
            is_answer.then(|| frame["data"].clone())
        });
        assert_ne!(answer["result"]["success"], true, "{tool}: {answer:#}");
        let velocities = velocities(&base);
        let after = |(at, speed): &(f64, f64)| *at <= rested.0 || *speed == 0.0;
        assert!(velocities.iter().all(after), "{tool}: {velocities:?}");
    }
}

#[test]
fn check_compares_a_file_with_the_robot() {
    let scene = Scene::new(&json!({}));
    let plugins = plugins_with("robot");
    scene.configure(&json!({ "plugins_dir": [plugins] }), &json!({}));
    for (kind, odometry, elsewhere, code, expected) in [
        (
            "twist",
            "/odom",
            false,
            0,
            &[
                "walk",
                "nothing serves the action /charge: start it",
                "topic /imaginary",
            ][..],
        ),
        (
            "twist",
            "/odometry",
            false,
            1,
            &["/odometry is not available: no odometry has come on it"],
        ),
        (
            "twist",
            "/odom",
            true,
            1,
            &["nothing else is in it; check the robot's power, ros.domain"],
        ),
        ("deaf", "/odom", false, 1, &["nothing subscribes to /cmd_vel"]),
        (
            "text",
            "/odom",
            false,
            1,
            &["/cmd_vel is std_msgs/msg/String in the graph"],
        ),
    ] {
        let domain = domain();
        let Some(base) = base(kind, domain) else { return };
        let named = if elsewhere { super::peers::domain() } else { domain };
        let file = scene.sandbox.path("my-base.toml");
        let text = format!(
            "name = \"my-base\"\ndriver = \"ros\"\n\n[parts]\nbase = {{ kind = \"differential\", max_linear = 0.3, max_lateral = 0, \
             max_angular = 1.0, usual_linear = 0.2 }}\n\n[channels]\nodometry = \"{odometry}\"\nbattery = \
             \"/imaginary\"\n\n[channels.ros]\n\
             domain = {named}\ninterfaces = [\"127.0.0.1\"]\n\n[channels.tools.dock]\nabout = \"Dock\"\naction = \"/charge\"\n"
        );
        std::fs::write(&file, text).unwrap();
        let (status, output) = check(&scene, &file);
        assert_eq!(status, Some(code), "{kind}: {output}");
        for part in expected {
            assert!(output.contains(part), "{kind}: {part}: {output}");
        }
        assert!(velocities(&base).iter().all(|(_, speed)| *speed == 0.0), "{kind}");
    }
}

/// What `check --live` says of a file, and its status.
fn check(scene: &Scene, file: &Path) -> (Option<i32>, String) {
    let checked = scene
        .sandbox
        .command(env!("CARGO_BIN_EXE_ovos-tools"))
        .args(["check", "--live"])
        .arg(file)
        .output()
        .unwrap();
    let output = [&checked.stdout, &checked.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    (checked.status.code(), output.concat())
}

/// The controller of an arm is away, or is another; its joints are told or not.
#[test]
fn check_names_the_controller_that_an_arm_lacks() {
    let scene = Scene::new(&json!({}));
    let plugins = plugins_with("robot");
    scene.configure(&json!({ "plugins_dir": [plugins] }), &json!({}));
    let ur = include_str!("../../../toolboxes/robot/robots/unverified/ur.toml");
    let controller = "/scaled_joint_trajectory_controller/follow_joint_trajectory";
    for (kind, joints, code, expected) in [
        ("gripper", "/joint_states", 0, "move_arm".to_owned()),
        (
            "absent",
            "/joint_states",
            0,
            format!("nothing serves the action {controller}: start it"),
        ),
        (
            "other",
            "/joint_states",
            0,
            format!("{controller} is control_msgs/action/GripperCommand in the graph"),
        ),
        (
            "gripper",
            "/imaginary",
            1,
            "no position of shoulder_pan_joint has arrived for a second".to_owned(),
        ),
    ] {
        let domain = domain();
        let Some(_arm) = peer("arm_cyclonedds.py", &[kind, &domain.to_string()]) else {
            return;
        };
        let file = scene.sandbox.path("ur.toml");
        let graph = format!(
            "\n[channels.ros]\ndomain = {domain}\ninterfaces = [\"127.0.0.1\"]\ndistro = \"humble\"\n"
        );
        std::fs::write(
            &file,
            ur.replace("\"/joint_states\"", &format!("{joints:?}")) + &graph,
        )
        .unwrap();
        let (status, output) = check(&scene, &file);
        assert_eq!(status, Some(code), "{kind}: {output}");
        assert!(output.contains(&expected), "{kind}: {expected}: {output}");
    }
}
