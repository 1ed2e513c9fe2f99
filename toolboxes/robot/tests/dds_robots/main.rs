//! The K1, the G1, the Go2 and bases in ROS: every tool, and what reaches a robot made of the published Cyclone DDS.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a failed test panics and prints"
)]

#[allow(dead_code, reason = "the helpers serve several test programs")]
#[path = "../support/catalogue.rs"]
mod catalogue;
#[allow(dead_code, reason = "the helpers serve several test programs")]
#[path = "../support/peers.rs"]
mod peers;
#[path = "../support/people.rs"]
mod people;
#[allow(dead_code, reason = "the helpers serve several test programs")]
#[path = "../support/truth.rs"]
mod truth;

mod arms;
mod booster_vendor;
mod both_arms;
mod endings;
mod every_tool;
mod falls;
mod followed;
mod gestures;
mod go2;
mod graph;
mod late;
mod old_positions;
mod readers;
mod ros_base;
mod silence;
mod stops;
mod success;
mod types;
mod vendor;
mod words;

use std::time::{Duration, Instant};

use catalogue::each;
use ovos_toolbox_sdk::testing::Harness;
use ovos_toolbox_sdk::wire::Action;
use peers::{Peer, domain};
use robot::robots::Robots;
use serde_json::{Value, json};

/// A robot of the published package and the toolbox that drives it, alone in a domain.
pub(crate) struct Scene {
    pub(crate) robot: Peer,
    pub(crate) harness: Harness,
    pub(crate) config: Value,
    /// The lines before this one were looked at.
    pub(crate) seen: std::cell::Cell<usize>,
    _folder: tempfile::TempDir,
}

pub(crate) fn scene(kind: &str, estop: &str) -> Option<Scene> {
    scene_of(kind, estop, "humble")
}

/// With a robot whose ROS is of this distribution.
pub(crate) fn scene_of(kind: &str, estop: &str, distro: &str) -> Option<Scene> {
    scene_with(kind, estop, distro, &json!({}))
}

/// With more keys in the section of the robot's adapter.
pub(crate) fn scene_with(kind: &str, estop: &str, distro: &str, more: &Value) -> Option<Scene> {
    let domain = domain();
    let robot = Peer::start("dds_robot.py", &[kind, &domain.to_string()])?;
    robot.until("ready");
    let folder = tempfile::tempdir().unwrap();
    let ros = json!({"domain": domain, "interfaces": ["127.0.0.1"], "distro": distro});
    let mut own = own(kind, &ros);
    own["estop"] = json!(estop);
    for (key, value) in more.as_object().unwrap() {
        own["booster_k1"][key] = value.clone();
    }
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

/// The section of a robot's configuration.
pub(crate) fn own(kind: &str, ros: &Value) -> Value {
    match kind {
        topics if topics.starts_with("k1_topics") => {
            json!({"adapter": "booster_k1", "booster_k1": {"ros": ros}})
        }
        "k1_rpc" | "k1_rpc_unsaid" => {
            json!({"adapter": "booster_k1", "booster_k1": {"profile": "booster_rpc", "gripper": true, "ros": ros}})
        }
        _ => json!({"adapter": "unitree_g1", "unitree_g1": {"hands": true, "weight_rate": 2.0, "ros": ros}}),
    }
}

impl Scene {
    pub(crate) fn frames(&self) -> Vec<Value> {
        frames(&self.robot)
    }

    /// Waits until the toolbox has said that the robot is away.
    pub(crate) fn lost(&self) {
        self.robot.wait("word that it is lost", |_| {
            let events = self.harness.events();
            let lost = |data: &Value| data["state"] == "lost";
            events
                .iter()
                .any(|event| event.kind == "backend" && event.data.as_ref().is_some_and(lost))
                .then_some(())
        });
    }

    /// Starts the robot again, which remembers nothing.
    pub(crate) fn start_anew(&mut self, kind: &str) {
        let hal = &self.config["robots"]["hal"];
        let own = hal.get("booster_k1").or_else(|| hal.get("unitree_g1")).unwrap();
        let domain = own["ros"]["domain"].to_string();
        self.robot = Peer::start("dds_robot.py", &[kind, &domain]).unwrap();
        self.robot.until("ready");
        self.seen.set(0);
    }

    /// Calls a function as soon as the robot is back.
    pub(crate) fn back(&self, (tool, args): (&str, Value)) {
        let end = Instant::now() + Duration::from_secs(15);
        loop {
            let output = self.harness.invoke(tool, args.clone()).unwrap();
            if output["success"] == true {
                break;
            }
            assert!(Instant::now() < end, "{tool}: {output}");
        }
        self.settle();
    }

    /// The lines since the last call.
    pub(crate) fn new_frames(&self) -> Vec<Value> {
        let all = self.frames();
        let from = self.seen.replace(all.len());
        all[from.min(all.len())..].to_vec()
    }

    /// Waits until nothing has come for a while: DDS delivers a little after an answer.
    pub(crate) fn settle(&self) {
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

    /// Runs the actions of a tool's first wave at the same time, as the service does; what each of them said.
    pub(crate) fn together(&self, tool: &str, args: Value) -> Vec<Value> {
        let plan = self.harness.plan(tool, args).unwrap().unwrap();
        let wave = plan.into_iter().filter(|action| action.dependencies.is_empty());
        let runs: Vec<_> = wave
            .map(|action| self.harness.start_action(tool, action, json!({})).unwrap())
            .collect();
        let outputs = runs
            .into_iter()
            .map(|run| {
                run.wait()
                    .result()
                    .unwrap_or_else(|failure| panic!("{tool}: {failure:?}"))
            })
            .collect();
        self.settle();
        outputs
    }

    /// Starts the one action of a tool.
    pub(crate) fn start(&self, tool: &str, args: Value) -> ovos_toolbox_sdk::testing::Run<'_> {
        let plan = self.harness.plan(tool, args).unwrap().unwrap();
        let action = plan.into_iter().next().unwrap();
        self.harness.start_action(tool, action, json!({})).unwrap()
    }

    /// Waits until a frame like this has come that was not looked at: a busy machine delivers late.
    pub(crate) fn await_frame(&self, what: &str, like: impl Fn(&Value) -> bool) {
        self.robot.wait(what, |_| {
            let all = self.frames();
            all.iter().skip(self.seen.get()).any(&like).then_some(())
        });
    }

    pub(crate) fn call(&self, tool: &str, args: Value) -> Value {
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

pub(crate) fn frames(robot: &Peer) -> Vec<Value> {
    robot
        .lines()
        .iter()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

/// The velocities that a robot of either kind was told.
pub(crate) fn velocities(frames: &[Value]) -> Vec<[f64; 3]> {
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

pub(crate) fn functions(frames: &[Value], topic: &str) -> Vec<i64> {
    frames
        .iter()
        .filter(|frame| frame["topic"] == topic)
        .map(|frame| frame["api"].as_i64().unwrap())
        .collect()
}

/// Starts a long walk and waits until the robot hears of it.
pub(crate) fn walking<'a>(scene: &'a Scene, what: &str) -> ovos_toolbox_sdk::testing::Run<'a> {
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
