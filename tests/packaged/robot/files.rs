//! A reload after the files of robots changed: the robot is driven by what its file says now, or goes on as it was, with the reason.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::client::Client;
use crate::support::process::Process;
use crate::support::robot::invoke;
use crate::support::scene::{Scene, ready};
use crate::support::service::{BusKind, plugins_with};
use serde_json::{Value, json};

/// An arm of this name, with a pose of its own.
fn arm(name: &str, pose: &str) -> String {
    format!(
        r#"
name = "{name}"
driver = "feetech"
mirror = [-1, 1]

[parts.left_arm]
joints = [
    {{ name = "yaw", min = -90, max = 90, max_speed = 60 }},
    {{ name = "gripper", min = 0, max = 50, max_speed = 60 }},
]
gripper = {{ joint = 1, open = 50, closed = 0, max_speed = 60 }}

[[channels.buses]]
name = "left"
port = "/dev/does-not-exist"
motors = [
    {{ id = 1, subsystem = "left_arm", name = "yaw" }},
    {{ id = 2, subsystem = "left_arm", name = "gripper" }},
]

[stop]
emergency = "hold"
order = [["left_arm"]]

[poses]
home = {{ left_arm = [0, 0] }}
{pose} = {{ left_arm = [-45, 10] }}

[keyframes]
home = [0, 0]
"#
    )
}

/// A service whose robots are these, with a folder of files of their owner.
struct Owner {
    client: Client,
    _service: Process,
    _bus: Process,
    _scene: Scene,
    folder: PathBuf,
}

impl Owner {
    /// `named` is the folder that the configuration names; without it the files stand in the user's configuration.
    fn new(robots: &Value, named: Option<&str>) -> Self {
        let scene = Scene::new(&json!({}));
        // `config` is XDG_CONFIG_HOME in a sandbox.
        let folder = scene.sandbox.path(named.unwrap_or("config/ovos-tools/robots"));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("mine.toml"), arm("mine", "salute")).unwrap();
        let mut section = json!({ "robots": robots });
        if named.is_some() {
            section["robots_dir"] = json!(folder);
        }
        let top = json!({ "PHAL": { "ovos-phal-plugin-tools": { "robot": section } } });
        scene.configure(&json!({}), &top);
        let bus = scene.bus(BusKind::Embedded);
        let mut client = Client::connect(scene.port);
        let plugins = plugins_with("robot");
        let mut service = scene.ours("service", &["serve", "--plugins", plugins.to_str().unwrap()]);
        ready(&mut service, &mut client);
        Self {
            client,
            _service: service,
            _bus: bus,
            _scene: scene,
            folder,
        }
    }

    fn generation(&mut self) -> u64 {
        let status = self.client.ask("ovos.tools.status", &json!({}));
        let mut toolboxes = status["toolboxes"].as_array().unwrap().iter();
        let robot = toolboxes.find(|toolbox| toolbox["toolbox_id"] == "robot");
        let generation = robot.and_then(|robot| robot["generation"].as_u64());
        generation.unwrap_or_else(|| panic!("{status:#}"))
    }

    /// Reloads; whether the toolbox was replaced, and why it was not where that failed.
    fn reload(&mut self) -> (bool, Option<String>) {
        let before = self.generation();
        let answer = self.client.ask("ovos.tools.reload", &json!({ "detail": true }));
        let failed = answer["failed"].as_array();
        let reason = failed.unwrap_or_else(|| panic!("{answer:#}")).first();
        let reason = reason.map(|failed| failed["reason"].as_str().unwrap().to_owned());
        (self.generation() != before, reason)
    }

    fn has_pose(&mut self, pose: &str) -> bool {
        let answer = invoke(&mut self.client, "go_to_pose", &json!({ "pose": pose }));
        answer["result"]["success"] == true
    }
}

enum Then {
    Replaced,
    Unchanged,
    /// It goes on, and the reason has these words.
    Kept(&'static [&'static str]),
}

#[test]
fn a_reload_reads_the_files_of_robots_again() {
    let mut owner = Owner::new(&json!({ "five": { "kind": "mine", "simulated": true } }), None);
    let folder = owner.folder.clone();
    type Change = fn(&Path);
    let steps: [(&str, Change, Then, &str); 9] = [
        ("nothing", |_| {}, Then::Unchanged, "salute"),
        (
            "changed",
            |folder| fs::write(folder.join("mine.toml"), arm("mine", "greet")).unwrap(),
            Then::Replaced,
            "greet",
        ),
        (
            "touched",
            |folder| {
                let fresh = folder.join(".fresh");
                fs::write(&fresh, arm("mine", "greet")).unwrap();
                fs::rename(fresh, folder.join("mine.toml")).unwrap();
            },
            Then::Unchanged,
            "greet",
        ),
        (
            "broken",
            |folder| {
                fs::write(
                    folder.join("mine.toml"),
                    arm("mine", "wave").replace("order", "ordre"),
                )
                .unwrap()
            },
            Then::Kept(&["mine.toml", "ordre", "goes on as it is"]),
            "greet",
        ),
        (
            "still broken",
            |_| {},
            Then::Kept(&["mine.toml", "ordre"]),
            "greet",
        ),
        (
            "removed",
            |folder| fs::remove_file(folder.join("mine.toml")).unwrap(),
            Then::Kept(&["mine.toml", "no robot has this name"]),
            "greet",
        ),
        (
            "as it was",
            |folder| fs::write(folder.join("mine.toml"), arm("mine", "greet")).unwrap(),
            Then::Unchanged,
            "greet",
        ),
        (
            "added",
            |folder| fs::write(folder.join("other.toml"), arm("other", "bow")).unwrap(),
            Then::Replaced,
            "greet",
        ),
        (
            "another removed",
            |folder| fs::remove_file(folder.join("other.toml")).unwrap(),
            Then::Replaced,
            "greet",
        ),
    ];
    for (step, change, then, pose) in steps {
        change(&folder);
        let (replaced, reason) = owner.reload();
        let expected = match &then {
            Then::Replaced => replaced && reason.is_none(),
            Then::Unchanged => !replaced && reason.is_none(),
            Then::Kept(words) => {
                let says = |reason: &String| words.iter().all(|word| reason.contains(word));
                !replaced && reason.as_ref().is_some_and(says)
            }
        };
        assert!(expected, "{step}: replaced {replaced}, {reason:?}");
        assert!(owner.has_pose(pose), "{step}: no pose {pose}");
    }
}

/// Of several robots, one whose file broke does not take the others along, nor does it lose its own tools.
#[test]
fn of_several_robots_none_is_lost_to_a_file_that_broke() {
    let robots = json!({
        "five": { "kind": "mine", "simulated": true },
        "six": { "kind": "so101", "simulated": true },
    });
    let mut owner = Owner::new(&robots, Some("robots"));
    let file = owner.folder.join("mine.toml");
    fs::write(&file, "driver = 5").unwrap();
    let (replaced, reason) = owner.reload();
    let reason = reason.unwrap_or_default();
    assert!(!replaced && reason.contains("mine.toml"), "{reason}");
    for (robot, pose) in [("five", "salute"), ("six", "home")] {
        let args = json!({ "robot": robot, "pose": pose });
        let answer = invoke(&mut owner.client, "go_to_pose", &args);
        assert_eq!(answer["result"]["success"], true, "{answer:#}");
    }
}
