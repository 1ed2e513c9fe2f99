//! Booster's own client and our adapter ask a robot for the same things in the same words, and both take its answers.
//!
//! The robot here is made of our own message types, so the client checks these types; the adapter then says to the same
//! robot what the client said.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::peers::{Peer, domain};
use ovos_toolbox_sdk::testing::Harness;
use robot::dds::Participant;
use robot::dds::booster::{
    FALL_DOWN, FALL_DOWN_STATE, FallDownState, LOW_COMMAND, LOW_STATE, LowCmd, LowState, MotorState, REQUEST,
    REQUESTS, RESPONSE, RESPONSES, RpcMsg,
};
use robot::robots::Robots;
use robot::ros::RosConfig;
use serde_json::{Value, json};

/// A K1 that answers everything, has its joints where they are told to be, and refuses to lie down.
struct Robot {
    _participant: Participant,
    asked: Arc<Mutex<Vec<(i64, Value)>>>,
    /// Says that it has fallen.
    fallen: Arc<AtomicBool>,
}

impl Robot {
    fn start(config: &RosConfig) -> Self {
        let participant = Participant::join(config, "k1").unwrap();
        let asked: Arc<Mutex<Vec<(i64, Value)>>> = Arc::default();
        let answers = participant.publish::<RpcMsg>(RESPONSES, RESPONSE).unwrap();
        let joints = Arc::new(Mutex::new(vec![MotorState::default(); 22]));
        let (requests, head) = (Arc::clone(&asked), Arc::clone(&joints));
        let answer = move |request: RpcMsg| {
            let header: Value = serde_json::from_str(&request.header).unwrap();
            let api = header["api_id"].as_i64().unwrap();
            let body: Value = serde_json::from_str(&request.body).unwrap_or_default();
            if let (2004 | 2043, Some(yaw), Some(pitch)) = (api, body["yaw"].as_f64(), body["pitch"].as_f64())
            {
                let mut joints = head.lock().unwrap();
                (joints[0].q, joints[1].q) = (yaw as f32, pitch as f32);
            }
            requests.lock().unwrap().push((api, body));
            let status = if api == 2007 { 501 } else { 0 };
            let body = if api == 2017 {
                json!({"mode": 1}).to_string()
            } else {
                String::new()
            };
            let header = json!({ "status": status }).to_string();
            answers
                .publish(RpcMsg {
                    uuid: request.uuid,
                    header,
                    body,
                })
                .unwrap();
        };
        participant.subscribe(REQUESTS, REQUEST, true, answer).unwrap();
        let followed = Arc::clone(&joints);
        let follow = move |command: LowCmd| {
            let mut joints = followed.lock().unwrap();
            let obeyed = joints.iter_mut().zip(&command.motor_cmd);
            obeyed
                .filter(|(_, told)| told.weight > 0.0)
                .for_each(|(joint, told)| joint.q = told.q);
        };
        participant
            .subscribe("/joint_ctrl", LOW_COMMAND, true, follow)
            .unwrap();
        let state = participant.publish::<LowState>("/low_state", LOW_STATE).unwrap();
        let posture = participant
            .publish::<FallDownState>(FALL_DOWN, FALL_DOWN_STATE)
            .unwrap();
        let fallen = Arc::new(AtomicBool::new(true));
        let falls = Arc::clone(&fallen);
        participant
            .start(async move {
                loop {
                    let motors = joints.lock().unwrap().clone();
                    let low = LowState {
                        motor_state_serial: motors,
                    };
                    let _ = state.publish(low);
                    let down = falls.load(Ordering::SeqCst);
                    let _ = posture.publish(FallDownState {
                        fall_down_state: if down { 2 } else { 0 },
                        is_recovery_available: down,
                    });
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            })
            .unwrap();
        Self {
            _participant: participant,
            asked,
            fallen,
        }
    }

    /// What it was asked, each thing once in a row.
    fn take(&self) -> Vec<(i64, Value)> {
        let mut asked = std::mem::take(&mut *self.asked.lock().unwrap());
        asked.dedup();
        asked
    }
}

#[test]
fn the_vendors_client_and_our_adapter_say_the_same() {
    let domain = domain();
    let ros = json!({"domain": domain, "interfaces": ["127.0.0.1"]});
    let robot = Robot::start(&serde_json::from_value(ros.clone()).unwrap());
    let Some(client) = Peer::start("booster_client.py", &[&domain.to_string()]) else {
        return;
    };
    client.until("the vendor's client is content");
    assert!(
        client.until("REFUSED").contains("501"),
        "a refusal reaches the client"
    );
    client.finish();
    robot.fallen.store(false, Ordering::SeqCst);
    let vendor = robot.take();
    let of = |asked: &[(i64, Value)], api: i64| -> Vec<Value> {
        asked
            .iter()
            .filter(|(of, _)| *of == api)
            .map(|(_, body)| body.clone())
            .collect()
    };

    let own = json!({"profile": "booster_rpc", "gripper": true, "ros": ros});
    let config = json!({"robots": {"k1": {"adapter": "booster_k1", "booster_k1": own}}});
    let harness = Harness::open::<Robots>(config)
        .unwrap()
        .with_deadline(Duration::from_secs(30));
    let mut ours = Vec::new();
    for (tool, args) in [
        (
            "walk",
            json!({"direction": "forward", "speed": 0.25, "duration": 0.3}),
        ),
        ("look_at", json!({"target": "left"})),
        ("wave", json!({"arm": "right"})),
        ("dance", json!({"style": "happy", "duration": 0.5})),
        ("go_to_pose", json!({"pose": "arms_up"})),
        ("gripper", json!({"arm": "right", "action": "close"})),
    ] {
        let output = harness.invoke(tool, args).unwrap();
        assert_eq!(output["success"], true, "{tool}: {output}");
        let end = Instant::now() + Duration::from_secs(2);
        while robot.asked.lock().unwrap().is_empty() && Instant::now() < end {
            std::thread::park_timeout(Duration::from_millis(5));
        }
        ours.extend(robot.take());
    }
    // Word for word, keys and values.
    for api in [2000, 2005, 2010, 2030] {
        assert_eq!(of(&ours, api), of(&vendor, api), "function {api}");
    }
    // Velocities: the same ones, in this order.
    let velocities: Vec<Value> = of(&ours, 2001)
        .into_iter()
        .filter(|body| *body != json!({"vx": 0.0, "vy": 0.0, "vyaw": 0.0}))
        .collect();
    assert_eq!(velocities[0], of(&vendor, 2001)[0]);
    assert_eq!(of(&ours, 2001).last(), of(&vendor, 2001).last(), "zero");
    assert_eq!(of(&ours, 2016)[0], of(&vendor, 2016)[0], "the same dance");
    let keys = |body: &Value| {
        body.as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(keys(&of(&ours, 2043)[0]), keys(&of(&vendor, 2043)[0]), "the head");
}
