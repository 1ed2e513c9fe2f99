//! Toolboxes of Python authors that move something, with their guard, under the real service.

#[path = "../../toolboxes/robot/tests/support/peers.rs"]
#[allow(dead_code, reason = "each test program uses its part")]
mod peers;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use self::peers::Peer;
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
    let start = Instant::now();
    let stopped = scene.client.ask("ovos.tools.stop", &json!({ "toolbox_id": id }));
    (stopped["toolboxes"][0].clone(), start.elapsed())
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

/// A base in ROS 2 follows its last velocity for ever: what drives it with `rclpy` is killed, and it stands.
#[test]
fn the_example_with_rclpy_drives_a_base_which_stands_after_its_death() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = root.join(".venv-ros/bin/python");
    if cfg!(not(target_arch = "x86_64")) || !python.exists() {
        skip::skip(
            "rclpy-wheels",
            "PyPI has ROS 2's own wheels for x86_64 alone; scripts/venv.sh makes .venv-ros",
        );
        return;
    }
    let scene = Scene::start(&[]);
    let domain = peers::domain();
    let folder = scene.service.sandbox.path("").display().to_string();
    let ros: BTreeMap<&str, String> = [
        ("ROS_DOMAIN_ID", domain.to_string()),
        ("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST".to_owned()),
        ("RMW_IMPLEMENTATION", "rmw_fastrtps_cpp".to_owned()),
        ("FASTDDS_BUILTIN_TRANSPORTS", "UDPv4".to_owned()),
        ("ROS_HOME", folder),
        ("PYTHONPATH", root.join("programs/python").display().to_string()),
    ]
    .into();
    let mut command = Command::new(&python);
    let script = root.join("toolboxes/ros-graph/tests/python/base_rclpy.py");
    command.arg("-u").arg(script).envs(&ros);
    let base = Peer::run("base_rclpy.py", command);
    base.until("ready");
    scene.configure(&[Entry {
        more: json!({ "command": [python, root.join("examples/rclpy_base.py")], "args": [], "env": ros }),
        sections: json!({ "rclpy_base": { "domain": domain } }),
        ..Entry::of("rclpy_base")
    }]);
    let mut scene = scene;
    let report = scene.reload();
    assert_eq!(report["added"], json!(["rclpy_base"]), "{report}");
    let mut invoke = |name: &str, args: Value| {
        let call = json!({ "name": name, "args": args, "toolbox_id": "rclpy_base" });
        scene.client.ask("ovos.tools.invoke", &call)
    };
    let end = Instant::now() + Duration::from_secs(30);
    while invoke("where", json!({}))["result"].is_null() {
        assert!(Instant::now() < end, "the base was not found");
    }
    // The odometry of this peer grows by itself.
    let driven = invoke("drive", json!({ "distance": 0.2 }));
    assert!(driven["result"]["x"].as_f64().is_some(), "{driven}");
    base.until("\"cmd_vel\": 0.0");

    let call = json!({ "name": "drive", "args": { "distance": 5, "speed": 0.3 }, "toolbox_id": "rclpy_base", "call_id": "moves" });
    scene.client.send("ovos.tools.invoke", &call);
    base.until("\"cmd_vel\": 0.3");
    let before = scene.until("rclpy_base", "a process", |toolbox| toolbox["state"] == "ready");
    status::signal(&before, Signal::KILL);
    scene.until("rclpy_base", "a new process", |toolbox| {
        toolbox["generation"] == 2 && toolbox["state"] == "ready"
    });
    let last = base.lines();
    let last = last.iter().rfind(|line| line.contains("cmd_vel")).unwrap();
    assert!(last.contains("\"cmd_vel\": 0.0"), "{last}");
}
