//! Several vehicles, a simulator that somebody else runs, and the stop from a process that knows nothing.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "a failed test panics and prints"
)]

#[path = "support/rig.rs"]
mod rig;

use std::net::{SocketAddr, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use drone::Drone;
use ovos_toolbox_sdk::prelude::*;
use ovos_toolbox_sdk::testing::Harness;
use rig::Rig;

/// A simulator that is not the toolbox's: it outlives it.
struct Foreign {
    child: Child,
    udp: u16,
    control: SocketAddr,
}

impl Foreign {
    fn start() -> Self {
        let udp = UdpSocket::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let control = SocketAddr::from(([127, 0, 0, 1], rig::free_port()));
        let child = Command::new(rig::px4_sim())
            .args([
                "--udp",
                &format!("127.0.0.1:{udp}"),
                "--control",
                &control.to_string(),
                "--speed",
                "4",
            ])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let end = Instant::now() + Duration::from_secs(20);
        while std::net::TcpStream::connect(control).is_err() {
            assert!(Instant::now() < end, "px4-sim did not start");
            std::thread::sleep(Duration::from_millis(20));
        }
        Self { child, udp, control }
    }

    fn config(&self) -> Value {
        json!({
            "backend": "sitl",
            "mavsdk_server": rig::mavsdk_server(),
            "simulator": {"speed": 4},
            "vehicles": [{"id": "sitl", "url": format!("udpin://127.0.0.1:{}", self.udp)}],
        })
    }

    fn truth(&self) -> Value {
        rig::ask(self.control, json!({"cmd": "truth"}))["truth"].clone()
    }

    fn until(&self, what: &str, look: impl Fn(&Value) -> bool) {
        let end = Instant::now() + Duration::from_secs(30);
        while !look(&self.truth()) {
            assert!(Instant::now() < end, "not within 30 s: {what}: {}", self.truth());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn speed(truth: &Value) -> f64 {
    let velocity: [f64; 3] = serde_json::from_value(truth["velocity"].clone()).unwrap();
    velocity.iter().map(|part| part * part).sum::<f64>().sqrt()
}

fn open(config: Value, control: SocketAddr) -> Rig {
    let harness = Harness::open::<Drone>(config)
        .expect("opens")
        .with_deadline(Duration::from_secs(120));
    let rig = Rig { harness, control };
    rig.until("a healthy vehicle", |rig| {
        rig.call("vehicle_health", json!({}))["armable"] == true
    });
    rig
}

#[test]
fn a_simulation_somebody_else_runs_is_stopped_from_nothing() {
    if rig::mavsdk_server().is_none() {
        eprintln!("skipped: no mavsdk_server (scripts/venv.sh gets it)");
        return;
    }
    let foreign = Foreign::start();
    let rig = open(foreign.config(), foreign.control);
    rig.take_off(5.0);
    let run = rig
        .harness
        .start("goto_local", json!({"north_m": 60, "east_m": 0, "down_m": -6}))
        .unwrap();
    foreign.until("under way", |truth| {
        truth["mode"] == "offboard" && speed(truth) > 1.0
    });
    assert!(rig.harness.may_close().is_err(), "in flight");
    // The toolbox goes away in flight: its server ends with it, and PX4 stops for lack of set points.
    let _ = run.id();
    drop(rig);
    foreign.until("stopped by itself", |truth| {
        truth["mode"] != "offboard" && speed(truth) < 0.2
    });
    // A fresh process is asked for nothing but the stop.
    let table = Harness::open::<Drone>(json!({"px4_sim": "/nowhere", "mavsdk_server": rig::mavsdk_server()}))
        .unwrap();
    table.safe_stop(foreign.config()).unwrap();
    foreign.until("hold", |truth| truth["mode"] == "hold");
    assert!(
        foreign.truth()["armed"] == true && foreign.truth()["landed"] == "in_air",
        "{}",
        foreign.truth()
    );
    // And another one finds it in the air and brings it home.
    let again = open(foreign.config(), foreign.control);
    again.ok("move_up", json!({"cm": 100}));
    again.ok("rtl", json!({}));
    assert_eq!(foreign.truth()["armed"], false);
}

#[test]
fn two_vehicles_are_told_apart() {
    let Some((config, _)) = Rig::config(json!({})) else {
        return;
    };
    let (one, two) = (Foreign::start(), Foreign::start());
    let vehicle =
        |id: &str, foreign: &Foreign| json!({"id": id, "url": format!("udpin://127.0.0.1:{}", foreign.udp)});
    let config = rig::over(
        config,
        json!({"backend": "sitl", "vehicles": [vehicle("one", &one), vehicle("two", &two)]}),
    );
    let harness = Harness::open::<Drone>(config)
        .expect("opens")
        .with_deadline(Duration::from_secs(120));
    let call = |tool: &str, args: Value| harness.call(tool, args).unwrap();
    let end = Instant::now() + Duration::from_secs(30);
    for id in ["one", "two"] {
        while call("vehicle_health", json!({"vehicle": id}))["armable"] != true {
            assert!(Instant::now() < end, "{id} is not healthy");
        }
    }
    assert_eq!(call("arm", json!({}))["code"], "bad_args");
    assert_eq!(call("arm", json!({"vehicle": "three"}))["code"], "bad_args");
    let ok = |tool: &str, args: Value| {
        let answer = call(tool, args);
        assert_eq!(answer["ok"], true, "{tool}: {answer}");
    };
    ok("arm", json!({"vehicle": "two"}));
    assert_eq!(
        (one.truth()["armed"].clone(), two.truth()["armed"].clone()),
        (json!(false), json!(true))
    );
    let plan = harness
        .plan("move_up", json!({"cm": 50, "vehicle": "one"}))
        .unwrap()
        .unwrap();
    assert_eq!(plan[0].subsystems, ["one/flight"]);
    ok("takeoff", json!({"alt_m": 3, "vehicle": "two"}));
    let start = |id: &str| {
        let action = Action {
            params: json!({"cm": 300, "vehicle": id}).as_object().unwrap().clone(),
            subsystems: vec![format!("{id}/flight")],
            ..Action::named("move_up")
        };
        harness.start_action("move_up", action, json!({})).unwrap()
    };
    // A halt of one leaves the other alone.
    let run = start("two");
    harness.halt(&["one/all"], false).unwrap();
    let ended = run.wait().result().unwrap();
    assert_eq!(ended["ok"], true, "{ended}");
    let run = start("two");
    harness.halt(&["two/flight"], false).unwrap();
    run.cancel();
    let _ = run.wait();
    two.until("hold", |truth| truth["mode"] == "hold" && speed(truth) < 0.2);
    ok("land", json!({"vehicle": "two"}));
}
