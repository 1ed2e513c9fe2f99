//! A goal for the drone, with the real mavsdk_server and the simulator.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::time::Instant;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::agent::model::{Model, call, finish};
use crate::agent::stage::{end, lines, made, start};
use crate::support::client::Client;
use crate::support::process::{DEADLINE, Process, free_port};
use crate::support::python::mavsdk_server;
use crate::support::scene::{Scene, ready};
use crate::support::service::{BusKind, plugins_with};

struct Stage {
    client: Client,
    service: Process,
    _bus: Process,
    scene: Scene,
    /// The simulator's control channel.
    control: u16,
}

impl Stage {
    /// With this `agent_end`; `None` if there is no mavsdk_server.
    fn set(agent_end: &str) -> Option<Self> {
        Self::with(agent_end, &json!({}))
    }

    /// The same with these keys of the service.
    fn with(agent_end: &str, service: &Value) -> Option<Self> {
        let Some(server) = mavsdk_server() else {
            skip::skip("mavsdk", "no mavsdk_server (scripts/venv.sh gets it)");
            return None;
        };
        let scene = Scene::new(&json!({}));
        let plugins = plugins_with("drone");
        let control = free_port();
        let drone = json!({
            "mavsdk_server": server,
            "px4_sim": plugins.join("px4-sim"),
            "simulator": {"speed": 4, "args": ["--seed", "1", "--control", format!("127.0.0.1:{control}")]},
            "agent_end": agent_end,
        });
        scene.configure(
            service,
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
            control,
        };
        let until = Instant::now() + DEADLINE;
        while stage.invoke("vehicle_health")["armable"] != true {
            assert!(Instant::now() < until, "never armable\n{}", stage.service.log());
        }
        Some(stage)
    }

    /// A pilot flies from now on.
    fn pilot(&self) {
        let mut control = TcpStream::connect(("127.0.0.1", self.control)).unwrap();
        writeln!(control, "{}", json!({"cmd": "pilot", "mode": "posctl"})).unwrap();
        let mut answer = String::new();
        BufReader::new(control).read_line(&mut answer).unwrap();
        assert!(answer.contains("\"ok\":true"), "{answer}");
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
    // It stands and is disarmed when it is done: what it does at the end changes nothing.
    let Some(mut stage) = Stage::set("land") else {
        return;
    };
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
    let state = model.messages("user").pop().unwrap();
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
    let Some(mut stage) = Stage::set("hold") else {
        return;
    };
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
    let refused = model.messages("tool")[2]["content"].as_str().unwrap().to_owned();
    assert!(refused.starts_with("BudgetError: "), "{refused}");
    let state = stage.invoke("vehicle_state");
    assert_eq!(state["state"]["in_air"], true, "{state:#}");
    let turned = state["flight_rotation_deg"].as_f64().unwrap();
    assert!(turned > 90.0, "{turned}");
    // What the vehicle did when the run ended: it holds, and no further call was made.
    assert_eq!(model.requests().len(), 4);
    assert_eq!(ended.json["agent_end"], Value::Null);
}

#[test]
fn it_lands_or_returns_when_its_budget_ends_in_the_air_and_the_toolbox_is_told_so() {
    for (agent_end, more) in [
        ("land", &["--without", "land"][..]),
        ("rtl", &["--tools", "takeoff,move_forward"]),
    ] {
        let Some(mut stage) = Stage::set(agent_end) else {
            return;
        };
        let model = Model::new(vec![
            call("takeoff", json!({"alt_m": 5, "arm": true})),
            call("move_forward", json!({"cm": 200})),
        ]);
        let record = stage.scene.sandbox.path("run.jsonl");
        // What the model may call changes nothing.
        let more = [more, &["--max-steps", "2", "--record", record.to_str().unwrap()]].concat();
        let ended = end(start(&stage.scene, &model, "fly", &more));
        assert_eq!(
            ended.reason(),
            "steps",
            "{}\n{}",
            ended.output,
            stage.service.log()
        );
        assert_eq!(ended.status.code(), Some(10), "{}", ended.output);
        let made = &ended.json["agent_end"];
        assert_eq!(made.as_array().map(Vec::len), Some(1), "{}", ended.json);
        let [toolbox_id, name, ok] = ["toolbox_id", "name", "ok"].map(|key| &made[0][key]);
        assert_eq!(
            (toolbox_id, name, ok),
            (&json!("drone"), &json!(agent_end), &json!(true))
        );
        assert!(
            made[0]["call_id"].as_str().unwrap().starts_with("agent-"),
            "{made}"
        );
        let text = format!("all steps of the run are used (steps); afterwards {agent_end}: done");
        assert_eq!(ended.json["text"], text);
        assert_eq!(lines(&record).last().unwrap()["agent_end"], *made);
        let state = stage.invoke("vehicle_state");
        assert_eq!(
            (&state["state"]["armed"], &state["state"]["in_air"]),
            (&json!(false), &json!(false)),
            "{agent_end}: {state:#}"
        );
    }
}

#[test]
fn after_people_and_stops_nothing_is_called() {
    type Act = fn(&mut Stage, &Process);
    let rows: [(&str, &str, Act); 3] = [
        ("an emergency stop", "latched", |stage, _| {
            stage.client.ask("ovos.tools.stop", &json!({}));
        }),
        ("a pilot", "takeover", |stage, _| stage.pilot()),
        ("Ctrl-C", "operator", |_, agent| agent.signal(Signal::INT)),
    ];
    for (name, reason, act) in rows {
        let Some(mut stage) = Stage::set("land") else {
            return;
        };
        let model = Model::new(vec![
            call("takeoff", json!({"alt_m": 5, "arm": true})),
            call("hold", json!({"ms": 5000})),
        ]);
        let mut agent = start(&stage.scene, &model, "hover", &[]);
        agent.until("it hovers", |agent| {
            agent.output().contains("hold {").then_some(())
        });
        act(&mut stage, &agent);
        let ended = end(agent);
        assert_eq!(ended.reason(), reason, "{name}: {}", ended.output);
        assert_eq!(ended.json["agent_end"], Value::Null, "{name}");
        let state = stage.invoke("vehicle_state");
        assert_eq!(state["state"]["in_air"], true, "{name}: {state:#}");
    }
}

#[test]
fn a_landing_that_a_rule_forbids_is_not_made_and_the_end_says_so() {
    let rule = json!([{"who": "door:agent", "tools": ["land"], "decide": "deny", "reason": "not here"}]);
    let Some(mut stage) = Stage::with("land", &json!({ "policy": rule })) else {
        return;
    };
    let model = Model::new(vec![call("takeoff", json!({"alt_m": 5, "arm": true}))]);
    let ended = end(start(&stage.scene, &model, "fly", &["--max-steps", "1"]));
    assert_eq!(ended.reason(), "steps", "{}", ended.output);
    assert_eq!(ended.json["agent_end"][0]["ok"], false, "{}", ended.json);
    let text = ended.json["text"].as_str().unwrap();
    assert!(text.contains("; afterwards land: PermissionError: "), "{text}");
    assert_eq!(stage.invoke("vehicle_state")["state"]["in_air"], true);
}

#[test]
fn an_agent_end_that_does_not_exist_is_refused_by_its_name() {
    let scene = Scene::new(&json!({}));
    let drone = json!({"drone": {"agent_end": "glide"}});
    scene.configure(&json!({}), &json!({"PHAL": {"ovos-phal-plugin-tools": drone}}));
    let _bus = scene.bus(BusKind::Embedded);
    let mut client = Client::connect(scene.port);
    let mut service = scene.ours(
        "service",
        &["serve", "--plugins", plugins_with("drone").to_str().unwrap()],
    );
    ready(&mut service, &mut client);
    let status = client.ask("ovos.tools.status", &json!({}));
    let reason = status.to_string();
    assert!(
        reason.contains("agent_end") && reason.contains("glide"),
        "{reason}"
    );
}
