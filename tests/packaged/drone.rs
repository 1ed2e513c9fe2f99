//! The drone toolbox over the bus alone, with the real mavsdk_server and the simulator: a mission from health to disarm,
//! the emergency stop, and a service that is killed in flight.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use crate::support::client::Client;
use crate::support::process::{DEADLINE, Process, free_port};
use crate::support::python::mavsdk_server;
use crate::support::scene::{Scene, ready};
use crate::support::service::{BusKind, plugins_with};
use serde_json::{Value, json};

/// A vehicle that stands still where it holds: a stop is judged by its speed.
const STEADY: &str = "all,-hover_wanders,-ground_drifts";

/// A bus, a service with the drone toolbox, and a client.
struct Stage {
    client: Client,
    service: Process,
    _bus: Process,
    scene: Scene,
    control: u16,
    simulator: Option<Process>,
}

impl Stage {
    /// `None` if there is no mavsdk_server. With `foreign` the simulator outlives the service.
    fn set(foreign: bool, quirks: &str) -> Option<Self> {
        let Some(server) = mavsdk_server() else {
            skip::skip("mavsdk", "no mavsdk_server (scripts/venv.sh gets it)");
            return None;
        };
        let scene = Scene::new(&json!({}));
        let (control, udp) = (
            free_port(),
            UdpSocket::bind("127.0.0.1:0")
                .unwrap()
                .local_addr()
                .unwrap()
                .port(),
        );
        let channel = format!("127.0.0.1:{control}");
        let plugins = plugins_with("drone");
        let sim = plugins.join("px4-sim");
        let (simulator, more) = if foreign {
            let mut command = scene.sandbox.command(&sim);
            command.args([
                "--udp",
                &format!("127.0.0.1:{udp}"),
                "--control",
                &channel,
                "--speed",
                "4",
                "--quirks",
                quirks,
            ]);
            let simulator = Process::start("px4-sim", &scene.sandbox, command);
            let url = format!("udpin://127.0.0.1:{udp}");
            (
                Some(simulator),
                json!({"backend": "sitl", "vehicles": [{"id": "drone", "url": url}]}),
            )
        } else {
            (None, json!({"px4_sim": sim}))
        };
        let mut drone = json!({
            "mavsdk_server": server,
            "run_log": scene.sandbox.path("run_log"),
            "simulator": {"speed": 4, "quirks": quirks,
                "args": if foreign { json!([]) } else { json!(["--control", channel, "--seed", "1"]) }},
        });
        drone
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
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
            control,
            simulator,
        };
        stage.until("a healthy vehicle", |stage| {
            stage.run("vehicle_health", json!({}))["armable"] == true
        });
        Some(stage)
    }

    /// Runs a tool to its result.
    #[track_caller]
    fn run(&mut self, name: &str, args: Value) -> Value {
        self.client.result(&self.service, name, &args)
    }

    #[track_caller]
    fn ok(&mut self, name: &str, args: Value) -> Value {
        let result = self.run(name, args);
        assert_eq!(
            (&result["ok"], &result["simulated"]),
            (&json!(true), &json!(true)),
            "{name}: {result}"
        );
        result
    }

    /// The true state, from the simulator.
    fn truth(&self) -> Value {
        let mut stream = TcpStream::connect(("127.0.0.1", self.control)).expect("the control channel");
        writeln!(stream, "{}", json!({"cmd": "truth"})).unwrap();
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).unwrap();
        serde_json::from_str::<Value>(&line).unwrap()["truth"].clone()
    }

    #[track_caller]
    fn until(&mut self, what: &str, mut look: impl FnMut(&mut Self) -> bool) {
        let end = Instant::now() + DEADLINE;
        while !look(self) {
            assert!(
                Instant::now() < end,
                "not within {DEADLINE:?}: {what}\n{}",
                self.service.log()
            );
            std::thread::park_timeout(Duration::from_millis(10));
        }
    }
}

fn speed(truth: &Value) -> f64 {
    let velocity: [f64; 3] = serde_json::from_value(truth["velocity"].clone()).unwrap();
    velocity.iter().map(|part| part * part).sum::<f64>().sqrt()
}

#[test]
fn a_mission_is_flown_over_the_bus_alone() {
    let Some(mut stage) = Stage::set(false, "all") else {
        return;
    };
    let health = stage.ok("vehicle_health", json!({}));
    assert_eq!(health["link_ok"], true, "{health}");
    // Nothing but the simulator is driven, so a door has nothing to confirm, even where the plan names no vehicle.
    let mut door = Client::connect(stage.scene.port).with_source("ovos-tools-mcp");
    let replan = json!({"name": "replan", "args": {"reason": "nothing found"}, "toolbox_id": "drone"});
    let answer = door.ask("ovos.tools.invoke", &replan);
    assert!(answer.get("result").is_some(), "{answer}");
    stage.ok("takeoff", json!({"alt_m": 5, "arm": true}));
    assert_eq!(stage.ok("scan", json!({"object": "red cup"}))["found"], true);
    assert_eq!(
        stage.ok("orient_to_object", json!({"object": "red cup"}))["centered"],
        true
    );
    let near = stage.ok(
        "safe_approach_until",
        json!({"object": "red cup", "stop_dist_m": 1.0}),
    );
    assert!(
        (near["final_dist_m"].as_f64().unwrap() - 1.0).abs() < 0.3,
        "{near}"
    );
    // The cup of the simulator's world, and the true place of the vehicle, which wanders a little.
    let mut dists = Vec::new();
    stage.until("hovered for a while", |stage| {
        let place: [f64; 3] = serde_json::from_value(stage.truth()["position"].clone()).unwrap();
        dists.push((place[0] + 2.0).hypot(place[1] - 5.0).hypot(place[2] + 4.6));
        dists.len() == 400
    });
    let dist = dists.iter().sum::<f64>() / 400.0;
    assert!((dist - 1.0).abs() < 0.6, "really {dist:.2} m away");
    stage.ok("capture_photo", json!({}));
    stage.ok("rtl", json!({}));
    stage.ok("disarm", json!({}));
    assert_eq!(stage.truth()["landed"], "on_ground");
    // The run log has every step.
    let folder = stage.scene.sandbox.path("run_log");
    let file = std::fs::read_dir(folder).unwrap().next().unwrap().unwrap().path();
    stage.until("the answer to disarm in the run log", |_| {
        let text = std::fs::read_to_string(&file).unwrap();
        let is_disarm_answer = |line: &str| line.contains("\"answer\"") && line.contains("\"disarm\"");
        text.lines().any(is_disarm_answer)
    });
    let text = std::fs::read_to_string(&file).unwrap();
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let lines: Vec<&str> = lines
        .iter()
        .filter(|line| line["kind"] == "answer")
        .filter_map(|line| line["tool"].as_str())
        .collect();
    let story = [
        "arm",
        "takeoff",
        "scan",
        "orient_to_object",
        "safe_approach_until",
        "capture_photo",
        "rtl",
        "disarm",
    ];
    assert!(lines.ends_with(&story), "{lines:?}");
}

#[test]
fn an_emergency_stop_over_the_bus_brakes_and_latches() {
    let Some(mut stage) = Stage::set(false, STEADY) else {
        return;
    };
    stage.ok("arm", json!({}));
    stage.ok("takeoff", json!({"alt_m": 5}));
    stage.client.send(
        "ovos.tools.invoke",
        &json!({"name": "goto_local", "args": {"north_m": 60, "east_m": 0, "down_m": -6}, "call_id": "far"}),
    );
    stage.until("under way", |stage| speed(&stage.truth()) > 1.0);
    let braked = stage.run("emergency_brake", json!({}));
    assert!(braked["msg"].is_string(), "{braked}");
    stage.client.until_answered([&"far".to_string()]);
    let far = stage.client.only_answer("far")["result"].clone();
    assert_eq!(
        (&far["ok"], &far["code"]),
        (&json!(false), &json!("stopped")),
        "{far}"
    );
    stage.until("at rest", |stage| {
        stage.truth()["mode"] == "hold" && speed(&stage.truth()) < 0.2
    });
    let refused = stage.client.ask(
        "ovos.tools.invoke",
        &json!({"name": "move_up", "args": {"cm": 50}}),
    );
    assert!(
        refused["error"]
            .as_str()
            .is_some_and(|error| error.contains("emergency stop")),
        "{refused}"
    );
    stage.ok("land", json!({}));
    assert_eq!(stage.truth()["armed"], false);
}

#[test]
fn a_service_that_is_killed_in_flight_leaves_the_vehicle_at_rest() {
    let Some(mut stage) = Stage::set(true, STEADY) else {
        return;
    };
    stage.ok("arm", json!({}));
    stage.ok("takeoff", json!({"alt_m": 5}));
    stage.client.send(
        "ovos.tools.invoke",
        &json!({"name": "goto_local", "args": {"north_m": 60, "east_m": 0, "down_m": -6}}),
    );
    stage.until("under way", |stage| speed(&stage.truth()) > 1.0);
    stage.service.kill();
    let before: [f64; 3] = serde_json::from_value(stage.truth()["position"].clone()).unwrap();
    stage.until("at rest", |stage| {
        stage.truth()["mode"] != "offboard" && speed(&stage.truth()) < 0.2
    });
    let truth = stage.truth();
    let after: [f64; 3] = serde_json::from_value(truth["position"].clone()).unwrap();
    assert!(after[0] - before[0] < 12.0, "it flew on: {before:?} to {after:?}");
    assert_eq!(
        (&truth["armed"], &truth["landed"]),
        (&json!(true), &json!("in_air")),
        "{truth}"
    );
    assert!(
        stage
            .simulator
            .as_mut()
            .is_some_and(|simulator| simulator.ended().is_none())
    );
}
