//! A Go2 made of the vendor's package: what it is told, and how it is stopped.

use std::time::Duration;

use ovos_toolbox_sdk::testing::{Harness, Run};
use robot::robots::Robots;
use serde_json::{Value, json};

use crate::peers::{Peer, domain};

struct Scene {
    robot: Peer,
    harness: Harness,
    config: Value,
    _folder: tempfile::TempDir,
}

fn scene() -> Option<Scene> {
    let domain = domain();
    let robot = Peer::start("dds_robot.py", &["go2", &domain.to_string()])?;
    robot.until("ready");
    let folder = tempfile::tempdir().unwrap();
    let ros = json!({"domain": domain, "interfaces": ["127.0.0.1"], "discovery_ms": 8000});
    let config = json!({
        "robots": {"dog": {"kind": "unitree-go2", "channels": {"ros": ros}, "estop": "damp"}}, "data_dir": folder.path(),
    });
    let harness = Harness::open::<Robots>(config.clone())
        .unwrap()
        .with_deadline(Duration::from_secs(60));
    Some(Scene {
        robot,
        harness,
        config,
        _folder: folder,
    })
}

impl Scene {
    fn velocities(&self) -> Vec<Value> {
        let lines = self.robot.lines();
        let frames = lines
            .iter()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        frames
            .map(|frame| frame["velocity"].clone())
            .filter(Value::is_array)
            .collect()
    }

    fn walks(&self) -> Run<'_> {
        let walk = json!({"direction": "forward", "speed": 0.3, "duration": 20.0});
        let plan = self.harness.plan("walk", walk).unwrap().unwrap();
        let before = self.velocities().len();
        let run = self
            .harness
            .start_action("walk", plan.into_iter().next().unwrap(), json!({}))
            .unwrap();
        self.robot.wait("a velocity", |_| {
            self.velocities()[before..]
                .contains(&json!([0.3, 0.0, 0.0]))
                .then_some(())
        });
        run
    }

    fn rests(&self) {
        self.robot.wait("three stops", |_| {
            let received = self.velocities().into_iter().rev();
            let zero = json!([0.0, 0.0, 0.0]);
            (received.take_while(|velocity| *velocity == zero).count() >= 3).then_some(())
        });
    }
}

#[test]
fn a_go2_walks_as_it_says_and_does_what_its_service_knows() {
    let Some(scene) = scene() else { return };
    let walk = json!({"direction": "forward", "speed": 0.4, "duration": 1.5});
    let done = scene.harness.invoke("walk", walk.clone()).unwrap();
    assert_eq!(done["success"], true, "{done:#}");
    assert!(
        (done["data"]["distance_m"].as_f64().unwrap() - 0.6).abs() < 0.2,
        "{done:#}"
    );
    for (tool, api) in [("stand_up", 1004), ("stand_up", 1002), ("lie_down", 1005)] {
        let done = scene.harness.invoke(tool, json!({})).unwrap();
        assert_eq!(done["success"], true, "{tool}: {done:#}");
        scene.robot.until(&format!("\"api\": {api}, \"known\": true"));
    }
    scene.robot.say("stuck 1");
    scene.robot.until("obeys");
    let stuck = scene.harness.invoke("walk", walk.clone()).unwrap();
    assert_eq!(stuck["success"], false, "{stuck:#}");
    assert!(
        stuck["message"].as_str().unwrap().contains("it does not walk"),
        "{stuck:#}"
    );
    // The vendor's code for a parameter that it does not take.
    scene.robot.say("status 3204");
    scene.robot.wait("two words", |lines| {
        (lines.iter().filter(|line| line.contains("obeys")).count() == 2).then_some(())
    });
    let refused = scene.harness.invoke("walk", walk).unwrap();
    assert!(
        refused["message"].as_str().unwrap().contains("wrong parameter"),
        "{refused:#}"
    );
}

#[test]
fn a_go2_is_judged_by_what_it_says_after_its_stop() {
    let Some(scene) = scene() else { return };
    // Too short to tell from its way, and over before the robot counts as silent.
    let walk = json!({"direction": "forward", "speed": 0.3, "duration": 0.3});
    let done = scene.harness.invoke("walk", walk.clone()).unwrap();
    assert_eq!(done["success"], true, "{done:#}");
    // It has said that it rests, and says nothing of this walk.
    scene.robot.say("mute 1");
    scene.robot.until("obeys");
    let unknown = scene.harness.invoke("walk", walk).unwrap();
    assert_eq!(unknown["success"], false, "{unknown:#}");
    let why = unknown["message"].as_str().unwrap();
    assert!(why.contains("on /sportmodestate"), "{why}");
    scene.rests();
}

#[test]
fn a_go2_is_stopped_by_the_vendors_stop() {
    let Some(scene) = scene() else { return };
    let run = scene.walks();
    scene.harness.cancel(run.id());
    scene.harness.halt(&["base"], false).unwrap();
    scene.rests();
    let _ = run.wait();

    let silent = scene.walks();
    scene.robot.say("mute 1");
    assert!(!silent.wait().result().is_ok_and(|done| done["success"] == true));
    scene.rests();
    scene.robot.say("mute 0");

    scene.robot.wait("a walk again", |_| {
        let walk = json!({"direction": "forward", "speed": 0.3, "duration": 0.5});
        let done = scene.harness.invoke("walk", walk).unwrap();
        (done["success"] == true).then_some(())
    });
    let run = scene.walks();
    scene.harness.safe_stop(scene.config.clone()).unwrap();
    scene.robot.until("\"api\": 1001, \"known\": true");
    scene.harness.cancel(run.id());
    scene.harness.halt(&["base"], true).unwrap();
    scene.rests();
    let _ = run.wait();
}
