//! Both arms at the same time, as the service runs them.

use serde_json::{Value, json};

use crate::scene;

fn of<'a>(frames: &'a [Value], topic: &str) -> Vec<&'a Value> {
    frames.iter().filter(|frame| frame["topic"] == topic).collect()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

#[test]
fn the_weight_of_a_g1_changes_at_the_configured_rate() {
    let Some(scene) = scene("g1", "hold") else { return };
    let _ = scene.new_frames();
    scene.together("go_to_pose", json!({"pose": "arms_up"}));
    let frames = scene.new_frames();
    let arms = of(&frames, "arms");
    let ramp: Vec<[f64; 2]> = arms
        .iter()
        .map(|frame| [number(&frame["t"]), number(&frame["weight"])])
        .take_while(|[_, weight]| *weight < 1.0)
        .collect();
    let ([start, from], [end, to]) = (ramp[0], ramp[ramp.len() - 1]);
    // 2.0 is configured; a fifth more, because messages are received a little sooner or later than they were sent.
    let rate = (to - from) / (end - start);
    assert!(rate < 2.4, "{rate} a second: {ramp:?}");
    let (first, last) = (number(&arms[0]["t"]), number(&arms[arms.len() - 1]["t"]));
    #[allow(clippy::cast_precision_loss, reason = "a few hundred")]
    let often = arms.len() as f64 / (last - first);
    assert!(often < 60.0, "{often} commands a second");
    // Both are where they were sent: 110 degrees up.
    let end = &arms[arms.len() - 1]["motors"];
    for shoulder in ["15", "22"] {
        let angle = number(&end[shoulder][0]).to_degrees();
        assert!((angle + 110.0).abs() < 0.1, "{shoulder}: {angle}");
    }
    scene.together("go_to_pose", json!({"pose": "home"}));
    let frames = scene.new_frames();
    let arms = of(&frames, "arms");
    assert_eq!(arms[arms.len() - 1]["weight"], 0.0, "they are the robot's again");
}

#[test]
fn a_k1_moves_both_arms_at_once() {
    let Some(scene) = scene("k1_topics", "hold") else {
        return;
    };
    let _ = scene.new_frames();
    scene.together("go_to_pose", json!({"pose": "arms_up"}));
    let frames = scene.new_frames();
    let times = |label: &str| -> Vec<f64> {
        let arm = frames.iter().filter(|frame| frame["label"] == label);
        arm.map(|frame| number(&frame["t"])).collect()
    };
    let (left, right) = (times("left_arm"), times("right_arm"));
    assert!(
        left[0] < right[right.len() - 1] && right[0] < left[left.len() - 1],
        "{left:?} {right:?}"
    );
}

#[test]
fn a_k1_by_rpc_leads_both_arms_and_waves_with_both_at_once() {
    let Some(scene) = scene("k1_rpc", "hold") else {
        return;
    };
    let _ = scene.new_frames();
    let begin_and_end = |frames: &[Value]| -> Vec<(i64, i64)> {
        let waves = frames.iter().filter(|frame| frame["api"] == 2005);
        waves
            .map(|frame| {
                let body = &frame["body"];
                (
                    body["hand_index"].as_i64().unwrap(),
                    body["hand_action"].as_i64().unwrap(),
                )
            })
            .collect()
    };
    scene.together("wave", json!({"arm": "both"}));
    let mut waves = begin_and_end(&scene.new_frames());
    waves[..2].sort_unstable();
    waves[2..].sort_unstable();
    assert_eq!(waves, [(0, 0), (1, 0), (0, 1), (1, 1)]);

    scene.together("go_to_pose", json!({"pose": "arms_up"}));
    let frames = scene.new_frames();
    let arms = of(&frames, "joints");
    for first in [2, 6] {
        let weights: Vec<f64> = arms
            .iter()
            .map(|frame| number(&frame["motors"][first][3]))
            .collect();
        let steady = weights
            .windows(2)
            .all(|pair| pair[1] >= pair[0] && pair[1] - pair[0] < 0.011);
        assert!(steady, "{weights:?}");
        assert!((weights[weights.len() - 1] - 0.5).abs() < 1e-3, "{weights:?}");
    }

    // Its own wave waits until the arms are given back.
    let refused = scene.harness.invoke("wave", json!({"arm": "right"})).unwrap();
    assert!(
        refused["message"]
            .as_str()
            .unwrap()
            .contains("call go_to_pose with pose home"),
        "{refused}"
    );
    let refused = scene.harness.invoke("dance", json!({"duration": 0.5})).unwrap();
    assert_eq!(refused["success"], false, "{refused}");
    let _ = scene.new_frames();
    scene.together("go_to_pose", json!({"pose": "home"}));
    let frames = scene.new_frames();
    let last = of(&frames, "joints")[of(&frames, "joints").len() - 1];
    for joint in 2..10 {
        assert_eq!(last["motors"][joint][3], 0.0, "{last}");
    }
    let back: Vec<&Value> = frames.iter().filter(|frame| frame["api"] == 2030).collect();
    assert_eq!(back.len(), 1, "{back:?}");
    assert_eq!(back[0]["body"], json!({"start": false}));
    scene.together("wave", json!({"arm": "both"}));
    assert_eq!(begin_and_end(&scene.new_frames()).len(), 4);
}
