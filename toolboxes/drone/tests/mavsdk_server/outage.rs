//! Several vehicles, a simulator that another program runs or that no call asks for, and the stop from a fresh process.

use std::net::{SocketAddr, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::rig::Rig;
use drone::Drone;
use ovos_toolbox_sdk::prelude::*;
use ovos_toolbox_sdk::testing::Harness;

/// A simulator that the toolbox did not start and that outlives it.
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
        let control = SocketAddr::from(([127, 0, 0, 1], crate::rig::free_port()));
        let child = Command::new(crate::rig::px4_sim())
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
            "mavsdk_server": crate::rig::mavsdk_server(),
            "simulator": {"speed": 4},
            "vehicles": [{"id": "sitl", "url": format!("udpin://127.0.0.1:{}", self.udp)}],
        })
    }

    fn truth(&self) -> Value {
        crate::rig::ask(self.control, json!({"cmd": "truth"}))["truth"].clone()
    }

    fn north(&self) -> f64 {
        self.truth()["position"][0].as_f64().unwrap()
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
        .with_deadline(Duration::from_secs(120))
        .as_operator();
    let rig = Rig { harness, control };
    rig.until("a healthy vehicle", |rig| {
        rig.call("vehicle_health", json!({}))["armable"] == true
    });
    rig
}

/// A toolbox in a fresh process, without a connection to the vehicle.
fn fresh() -> Harness {
    Harness::open::<Drone>(json!({"px4_sim": "/nowhere", "mavsdk_server": crate::rig::mavsdk_server()}))
        .unwrap()
}

/// A position this many metres north of home.
fn north(metres: f64) -> Value {
    let lat = 47.397_742 + (metres / 6_371_000.0_f64).to_degrees();
    json!({"lat": lat, "lon": 8.545_594, "alt_m": 6})
}

#[test]
fn a_simulation_that_another_client_runs_is_not_stopped() {
    if crate::rig::mavsdk_server().is_none() {
        return;
    }
    let foreign = Foreign::start();
    let rig = open(foreign.config(), foreign.control);
    // With a remote control PX4 stops in position mode; without one it returns.
    rig.sim(json!({"cmd": "set_health", "rc": true}));
    rig.take_off(5.0);
    let run = rig
        .harness
        .start("goto_local", json!({"north_m": 60, "east_m": 0, "down_m": -6}))
        .unwrap();
    foreign.until("under way", |truth| {
        truth["mode"] == "offboard" && speed(truth) > 1.0
    });
    assert!(rig.harness.may_close().is_err(), "in flight");
    // The toolbox ends in flight: its server ends with it, and PX4 stops because setpoints are missing.
    let _ = run.id();
    drop(rig);
    foreign.until("stopped by itself", |truth| {
        truth["mode"] != "offboard" && speed(truth) < 0.2
    });
    // Another toolbox finds the vehicle in the air. A flight by GPS continues when that one ends, too.
    let again = open(foreign.config(), foreign.control);
    again.ok("hold", json!({"ms": 0}));
    let run = again.harness.start("goto_gps", north(90.0)).unwrap();
    foreign.until("under way", |truth| speed(truth) > 4.0);
    let _ = run.id();
    drop(again);
    assert!(speed(&foreign.truth()) > 4.0, "{}", foreign.truth());
    // The fresh process only stops. A server that does not answer does not keep it from the other vehicle.
    let deaf = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", deaf.local_addr().unwrap());
    let mut both = foreign.config();
    both["vehicles"]
        .as_array_mut()
        .unwrap()
        .insert(0, json!({"id": "deaf", "address": address}));
    let folder = tempfile::tempdir().unwrap();
    both["run_log"] = json!(folder.path());
    let before = foreign.north();
    let failed = fresh().safe_stop(both).unwrap_err().to_string();
    assert!(failed.contains("deaf") && !failed.contains("sitl"), "{failed}");
    foreign.until("at rest in hold", |truth| {
        truth["mode"] == "hold" && speed(truth) < 0.2
    });
    let on = foreign.north() - before;
    assert!(on < 40.0, "it flew {on:.0} m on");
    assert!(
        foreign.truth()["armed"] == true && foreign.truth()["landed"] == "in_air",
        "{}",
        foreign.truth()
    );
    // Its commands are in a run log of its own.
    let file = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap();
    let text = std::fs::read_to_string(file.path()).unwrap();
    let entries: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let has = |kind: &str, key: &str, value: Value| {
        let found = |line: &Value| line["kind"] == kind && line["brake"] == 1 && line[key] == value;
        assert!(entries.iter().any(found), "{kind} {key} {value}: {entries:#?}");
    };
    has("brake", "asked_by", json!("the end of the process that flew it"));
    has("command", "command", json!("Hold"));
    has("ack", "ack", json!("done"));
    // Another toolbox can bring it home.
    let again = open(foreign.config(), foreign.control);
    again.ok("move_up", json!({"cm": 100}));
    again.ok("rtl", json!({}));
    assert_eq!(foreign.truth()["armed"], false);
}

#[test]
fn who_flies_or_lands_it_is_left_alone_from_nothing() {
    if crate::rig::mavsdk_server().is_none() {
        return;
    }
    let foreign = Foreign::start();
    let rig = open(foreign.config(), foreign.control);
    rig.take_off(8.0);
    drop(rig);
    let fresh = fresh();
    for (takes, mode) in [
        (
            json!({"cmd": "pilot", "mode": "posctl", "sticks": [1, 0, 0]}),
            "posctl",
        ),
        (
            json!({"cmd": "failsafe", "mode": "return", "text": "Failsafe activated: battery"}),
            "return",
        ),
        (json!({"cmd": "ground_station", "mode": "land"}), "land"),
    ] {
        assert_eq!(crate::rig::ask(foreign.control, takes)["ok"], true);
        fresh.safe_stop(foreign.config()).unwrap();
        assert_eq!(foreign.truth()["mode"], mode, "{}", foreign.truth());
        assert_eq!(foreign.truth()["armed"], true, "{mode}");
    }
    // A standing vehicle is not stopped either.
    foreign.until("landed", |truth| truth["armed"] == false);
    fresh.safe_stop(foreign.config()).unwrap();
    assert_eq!(foreign.truth()["armed"], false);
}

#[test]
fn a_simulator_that_no_call_asks_for_stands_still() {
    let Some(rig) = Rig::open(json!({})) else {
        return;
    };
    let backend = |state: &str| {
        let events = rig.harness.events();
        events.iter().any(|event| {
            event.kind == "backend" && event.data.as_ref().is_some_and(|data| data["state"] == state)
        })
    };
    // In the air it is needed, however long nothing is asked.
    rig.take_off(3.0);
    let flies_until = Instant::now() + Duration::from_secs(12);
    rig.until("a while in the air", |_| Instant::now() >= flies_until);
    assert!(!backend("asleep"), "{:#?}", rig.harness.events());
    rig.ok("land", json!({}));
    let before = rig.truth();
    rig.until("asleep", |_| backend("asleep"));
    // Its time stands still, for twenty looks in a row.
    let (mut last, mut same) = (Value::Null, 0);
    rig.until("a time that stands still", |rig| {
        let now = rig.truth()["t"].clone();
        same = if now == last { same + 1 } else { 0 };
        last = now;
        same == 20
    });
    // A stop has nothing to stop and says so; a call of any effect wakes the vehicle, which is where it was.
    assert!(rig.harness.halt(&["all"], true).is_ok());
    rig.harness.resume().unwrap();
    let start = Instant::now();
    rig.ok("battery_status", json!({}));
    println!("awake after {:?}", start.elapsed());
    rig.ok("vehicle_health", json!({}));
    assert_eq!(rig.truth()["landed"], before["landed"]);
    rig.take_off(3.0);
    rig.ok("land", json!({}));
}

#[test]
fn two_vehicles_are_told_apart() {
    let Some((config, _)) = Rig::config(json!({})) else {
        return;
    };
    let (one, two) = (Foreign::start(), Foreign::start());
    let vehicle =
        |id: &str, foreign: &Foreign| json!({"id": id, "url": format!("udpin://127.0.0.1:{}", foreign.udp)});
    let config = crate::rig::over(
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
    // A halt of one vehicle does not affect the other.
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
