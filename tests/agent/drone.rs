//! A goal for the drone, with the real mavsdk_server and the simulator.

use std::time::Instant;

use serde_json::{Value, json};

use crate::model::{Model, call, finish};
use crate::stage::{end, made, start};
use crate::support::client::Client;
use crate::support::process::{DEADLINE, Process};
use crate::support::python::mavsdk_server;
use crate::support::scene::{Scene, ready};
use crate::support::service::{BusKind, plugins_with};

struct Stage {
    client: Client,
    service: Process,
    _bus: Process,
    scene: Scene,
}

impl Stage {
    /// `None` if there is no mavsdk_server.
    fn set() -> Option<Self> {
        let Some(server) = mavsdk_server() else {
            skip::skip("mavsdk", "no mavsdk_server (scripts/venv.sh gets it)");
            return None;
        };
        let scene = Scene::new(&json!({}));
        let plugins = plugins_with("drone");
        let drone = json!({
            "mavsdk_server": server,
            "px4_sim": plugins.join("px4-sim"),
            "simulator": {"speed": 4, "args": ["--seed", "1"]},
        });
        scene.configure(
            &json!({}),
            &json!({"PHAL": {"ovos-phal-plugin-tools": {"drone": drone}}}),
        );
        let bus = scene.bus(BusKind::Embedded);
        let mut client = Client::connect(scene.port);
        let mut service = scene.ours("service", &["serve", "--plugins", plugins.to_str().unwrap()]);
        ready(&mut service, &mut client);
        let mut stage = Self {
            client,
            service,
            _bus: bus,
            scene,
        };
        let until = Instant::now() + DEADLINE;
        while stage.invoke("vehicle_health")["armable"] != true {
            assert!(Instant::now() < until, "never armable\n{}", stage.service.log());
        }
        Some(stage)
    }

    fn invoke(&mut self, name: &str) -> Value {
        let answer = self
            .client
            .ask("ovos.tools.invoke", &json!({"name": name, "args": {}}));
        answer["result"].clone()
    }
}

#[test]
fn it_goes_to_the_red_cup_takes_a_photo_and_returns_within_its_budgets() {
    let Some(mut stage) = Stage::set() else { return };
    let cup = json!({"object": "red cup"});
    let model = Model::new(vec![
        call("vehicle_health", json!({})),
        call("takeoff", json!({"alt_m": 5, "arm": true})),
        call("scan", cup.clone()),
        call("orient_to_object", cup.clone()),
        call("object_pose", cup.clone()),
        call(
            "safe_approach_until",
            json!({"object": "red cup", "stop_dist_m": 1.0}),
        ),
        call("capture_photo", json!({})),
        call("rtl", json!({})),
        call("disarm", json!({})),
        finish(),
    ]);
    let record = stage.scene.sandbox.path("run.jsonl");
    let more = ["--record", record.to_str().unwrap()];
    let ended = end(start(&stage.scene, &model, "goto the red cup", &more));
    assert_eq!(
        ended.reason(),
        "done",
        "{}\n{}",
        ended.output,
        stage.service.log()
    );
    for call in made(&record) {
        assert_eq!(call["status"], "completed", "{call:#}");
    }
    let used = |key: &str| ended.json["used"][key].as_f64().unwrap();
    assert!(
        used("rotation_deg") > 0.0 && used("rotation_deg") <= 360.0,
        "{}",
        ended.json
    );
    assert!(
        used("forward_m") > 1.0 && used("forward_m") <= 5.0,
        "{}",
        ended.json
    );
    let state = model.told("user").pop().unwrap();
    let state = state["content"]
        .as_str()
        .unwrap()
        .strip_prefix("State: ")
        .unwrap()
        .to_owned();
    let state: Value = serde_json::from_str(&state).unwrap();
    assert_eq!(state["last_detection"]["object"], "red cup", "{state:#}");
    for key in ["battery_pct", "gps_ok", "ekf_ok", "free_ahead"] {
        assert!(!state["safety"][key].is_null(), "no {key}: {state:#}");
    }
    let state = stage.invoke("vehicle_state");
    assert_eq!(
        (&state["state"]["armed"], &state["state"]["in_air"]),
        (&json!(false), &json!(false)),
        "{state:#}"
    );
}

#[test]
fn it_ends_when_its_degrees_are_used_and_the_vehicle_holds() {
    let Some(mut stage) = Stage::set() else { return };
    let model = Model::new(vec![
        call("takeoff", json!({"alt_m": 5, "arm": true})),
        call("turn_cw", json!({"deg": 60})),
        call("turn_cw", json!({"deg": 61})),
        // How far this one turns is not in its arguments: it is charged from what the vehicle counts.
        call("set_yaw", json!({"deg": 170})),
    ]);
    let more = ["--max-rotation-deg", "90"];
    let ended = end(start(&stage.scene, &model, "turn round and round", &more));
    assert_eq!(
        ended.reason(),
        "rotation",
        "{}\n{}",
        ended.output,
        stage.service.log()
    );
    assert_eq!(ended.status.code(), Some(16));
    let refused = model.told("tool")[2]["content"].as_str().unwrap().to_owned();
    assert!(refused.starts_with("BudgetError: "), "{refused}");
    let state = stage.invoke("vehicle_state");
    assert_eq!(state["state"]["in_air"], true, "{state:#}");
    let turned = state["flight_rotation_deg"].as_f64().unwrap();
    assert!(turned > 90.0, "{turned}");
    // What the vehicle did when the run ended: it holds, and no further call was made.
    assert_eq!(model.asked().len(), 4);
}
