//! What a recognition handler answers: an answer is no success by itself.

use std::time::{Duration, Instant};

use ovos_toolbox_sdk::testing::Harness;
use robot::robots::Robots;
use serde_json::{Value, json};

/// Asks `get_known_people` of a handler that gives this answer.
fn asked(answer: &Value) -> Result<Value, String> {
    let harness = Harness::open::<Robots>(json!({"robots": {"five": {}}})).unwrap();
    let given = answer.clone();
    harness.respond("ovos.robot.recognise", move |_| Some(Ok(given.clone())));
    let plan = harness.plan("get_known_people", json!({})).unwrap().unwrap();
    let action = plan.into_iter().next().unwrap();
    let run = harness
        .start_action("get_known_people", action, json!({}))
        .unwrap();
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        harness.deliver();
        if let Some(ended) = run.wait_for(Duration::from_millis(5)) {
            return ended.result().map_err(|failure| failure.message);
        }
        assert!(Instant::now() < end, "{answer}: it does not end");
    }
}

#[test]
fn an_answer_that_says_no_or_nothing_is_no_success() {
    for (answer, said) in [
        (
            json!({"success": false, "message": "the camera is off"}),
            "the camera is off",
        ),
        (json!({"success": "false", "people": []}), "did not work"),
        (json!({"success": 0, "people": []}), "did not work"),
        (json!({"ok": false, "message": "no"}), "no"),
        (json!({"passed": false}), "did not work"),
        (json!({"error": "broken"}), "broken"),
        (json!({"error": {"code": 5}}), "did not work"),
        (json!({}), "an empty answer"),
        (json!({"people": null}), "an empty answer"),
        (json!(null), "an empty answer"),
    ] {
        let failed = asked(&answer).expect_err("a failure");
        assert!(failed.contains(said), "{answer}: {failed}");
    }
    for answer in [
        json!({"people": []}),
        json!({"success": true}),
        json!({"success": null, "people": ["Ada"]}),
        json!({"error": null, "people": ["Ada"]}),
        json!(["Ada"]),
    ] {
        assert!(asked(&answer).is_ok(), "{answer}: {:?}", asked(&answer));
    }
}
