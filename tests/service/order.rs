//! First come, first served: calls that one client sends back to back run in the order in which they were sent.

use crate::support::scene::Scene;
use serde_json::json;

#[test]
fn calls_of_one_client_on_one_arm_keep_their_order() {
    let scene = Scene::new(&json!({}));
    let (_bus, _service, mut client) = scene.open();
    let mut requests = Vec::new();
    for round in 0..20 {
        let calls: Vec<String> = (0..8).map(|n| format!("burst-{round}-{n}")).collect();
        for call_id in &calls {
            client.call(
                call_id,
                "assemble",
                &json!({ "subsystems": ["base"], "steps": 0 }),
            );
        }
        client.until_answered(&calls);
        requests.extend(calls);
    }
    let mut ran: Vec<String> = Vec::new();
    for motor in scene.motors() {
        let call_id = motor.run.split('/').next().unwrap_or_default().to_owned();
        if motor.kind == "start" && ran.last() != Some(&call_id) {
            ran.push(call_id);
        }
    }
    assert_eq!(ran, requests);
}
