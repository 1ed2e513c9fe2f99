//! A goal on the simulated robot.

use serde_json::json;

use crate::agent::model::{Model, call, calls, finish};
use crate::agent::stage::{end, made, start};
use crate::support::robot::RobotScene;

#[test]
fn it_waves_at_ada_and_brings_her_the_cup() {
    let scene = RobotScene::new(&json!({ "time_scale": 200 }));
    let model = Model::new(vec![
        call("get_visible_people", json!({})),
        calls(&[
            ("wave", json!({"arm": "right"})),
            ("look_at", json!({"target": "Ada"})),
        ]),
        call("pick_object", json!({"object": "cup"})),
        call("turn", json!({"target": "Ada"})),
        call("move_base", json!({"direction": "forward", "distance": 0.3})),
        call("place_object", json!({"location": "table"})),
        finish(),
    ]);
    let record = scene.scene.sandbox.path("run.jsonl");
    let agent = start(
        &scene.scene,
        &model,
        "wave at Ada and bring her the cup",
        &["--record", record.to_str().unwrap()],
    );
    let ended = end(agent);
    assert_eq!(
        ended.reason(),
        "done",
        "{}\n{}",
        ended.output,
        scene.service.log()
    );
    let calls = made(&record);
    for call in &calls {
        assert_eq!(call["status"], "completed", "{call:#}");
    }
    let picked = &calls[3]["plan"]["waves"];
    assert_eq!(picked.as_array().unwrap().len(), 6, "{picked}");
    // Ada is told apart by what the service said, not by the script.
    assert!(
        calls[0]["observation"].as_str().unwrap().contains("Ada"),
        "{}",
        calls[0]
    );
}
