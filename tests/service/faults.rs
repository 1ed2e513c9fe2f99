//! A toolbox whose code panics costs one call, wherever it runs.

use crate::support::client::Client;
use crate::support::scene::{Scene, assert_still, from_first};
use serde_json::{Value, json};

#[test]
fn a_panic_costs_the_call_that_ran_into_it() {
    let scene = Scene::new(&json!({}));
    let (_bus, service, mut client) = scene.open();
    let generation = |client: &mut Client| -> Value {
        let status = client.ask("ovos.tools.status", &json!({}));
        let toolboxes = status["toolboxes"].as_array().unwrap();
        let testbed = toolboxes.iter().find(|it| it["toolbox_id"] == "testbed");
        testbed.unwrap()["generation"].clone()
    };
    let before = generation(&mut client);
    client.call("bystander", "slow", &json!({ "seconds": 300 }));
    client.until_call("bystander", "running");
    let moves = json!({ "step_ms": 1, "subsystems": ["left_arm"], "panic_at": "move:left_arm" });
    for _ in 0..3 {
        let answer = client.invoke("assemble", &moves);
        let result = &answer["result"];
        assert_eq!(result["success"], false, "{answer}\n{}", service.log());
        assert_eq!(result["failed"], json!(["move:left_arm failed"]), "{answer}");
    }
    let answer = client.invoke("add", &json!({ "a": 1, "b": 2 }));
    assert_eq!(answer["result"]["result"], 3, "{answer}");
    client.until_call("bystander", "running");
    assert_eq!(generation(&mut client), before, "it is the same copy still");
    let motors = scene.motors();
    let after_panics = from_first(&motors, &["halt", "emergency"]);
    assert_still(after_panics.unwrap_or_default());
}
