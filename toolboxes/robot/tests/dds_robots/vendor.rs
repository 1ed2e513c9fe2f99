//! Unitree's own clients and our adapter ask a G1 for the same things in the same words.
//!
//! The G1 of `dds_robot.py` is made of the vendor's package, too: its types take what the adapter sends, its checksum
//! confirms ours (`words.rs`), and it knows the vendor's functions and actions alone.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::peers::Peer;
use crate::{each, scene};

/// What a robot was asked that it knows, each thing once; without `action_id`, under which the vendor's C++ client has what its Python
/// client calls `data`.
fn asked(frames: &[Value]) -> BTreeSet<String> {
    let known = |frame: &&Value| frame.get("parameter").is_some() && frame["parameter"]["data"] != 1000;
    let requests = frames.iter().filter(known);
    let plain = |frame: &Value| {
        let mut parameter = frame["parameter"].clone();
        parameter.as_object_mut().unwrap().remove("action_id");
        format!("{} {} {parameter}", frame["topic"], frame["api"])
    };
    requests.map(plain).collect()
}

#[test]
fn unitrees_clients_and_our_adapter_say_the_same() {
    each(&["damp", "torque_off"], |&estop| {
        let Some(scene) = scene("g1", estop) else { return };
        scene.robot.say("gesture 1");
        let domain = &scene.config["robots"]["hal"]["unitree_g1"]["ros"]["domain"];
        let client = Peer::start("unitree_client.py", &[&domain.to_string(), estop]).unwrap();
        for answer in ["velocity: 0", "wave: 0", "release: 0", "unknown action: 7402"] {
            client.until(answer);
        }
        client.finish();
        scene.settle();
        let vendor = asked(&scene.new_frames());
        assert_eq!(vendor.len(), 5, "{estop}: {vendor:#?}");

        for (tool, args) in [
            (
                "walk",
                json!({"direction": "forward", "speed": 0.25, "duration": 0.3}),
            ),
            ("wave", json!({"arm": "right"})),
        ] {
            let output = scene.harness.invoke(tool, args).unwrap();
            assert_eq!(output["success"], true, "{estop}, {tool}: {output}");
        }
        scene.harness.halt(&["all"], true).unwrap();
        scene.settle();
        assert_eq!(asked(&scene.new_frames()), vendor, "{estop}");
    });
}
