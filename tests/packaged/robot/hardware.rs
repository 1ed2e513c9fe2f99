//! Whatever is done to the processes that drive a robot, the last command on its bus is a stop.
//!
//! The robots are emulated and independent of the toolbox: servos on a pseudo terminal, and robots that use the
//! published Cyclone DDS.

use std::time::{Duration, Instant};

use crate::robot::peers::{Peer, domain};
use crate::support::client::Client;
use crate::support::process::{DEADLINE, Process};
use crate::support::scene::{Scene, ready};
use crate::support::service::{BusKind, plugins_with};
use crate::support::status::{pid, toolbox, toolbox_until};
use feetech_sim::{Line, Servo, register};
use rustix::process::{Pid, Signal, kill_process};
use rustix::time::{ClockId, Timespec, clock_gettime};
use serde_json::{Value, json};

/// How long the robot is watched after its stop: a toolbox that still runs would send another velocity within this
/// time.
const AT_REST: Duration = Duration::from_secs(1);

/// The longest time from a failure until the robot is told to stop, on a busy machine. On an idle one it is less than
/// a second: each test prints it.
const ON_A_BUSY_MACHINE: Duration = Duration::from_secs(3);

/// An emulated robot.
enum Robot {
    Servos {
        left: Line,
        right: Line,
        _folder: tempfile::TempDir,
    },
    Dds {
        peer: Peer,
        domain: u16,
        kind: &'static str,
    },
}

impl Robot {
    /// `None` if the vendors' packages are not installed.
    fn start(kind: &'static str) -> Option<Self> {
        if kind == "johnny5" {
            let folder = tempfile::tempdir().unwrap();
            let line = |name: &str, ids: std::ops::RangeInclusive<u8>| {
                Line::start_at(&folder.path().join(name), ids.map(Servo::new)).unwrap()
            };
            let (left, right) = (line("left", 1..=11), line("right", 1..=8));
            return Some(Self::Servos {
                left,
                right,
                _folder: folder,
            });
        }
        let domain = domain();
        let peer = Peer::start("dds_robot.py", &[kind, &domain.to_string()])?;
        peer.until("ready");
        Some(Self::Dds { peer, domain, kind })
    }

    fn config(&self) -> Value {
        match self {
            Self::Servos { left, right, .. } => {
                let ports = json!({ "left": left.path(), "right": right.path() });
                json!({ "adapter": "johnny5", "johnny5": { "answer_ms": 150, "ports": ports } })
            }
            Self::Dds { domain, kind, .. } => {
                let ros = json!({ "domain": domain, "interfaces": ["127.0.0.1"] });
                match *kind {
                    "k1_topics" => json!({ "adapter": "booster_k1", "booster_k1": { "ros": ros } }),
                    "k1_rpc" => {
                        json!({ "adapter": "booster_k1", "booster_k1": { "profile": "booster_rpc", "ros": ros } })
                    }
                    _ => json!({ "adapter": "unitree_g1", "unitree_g1": { "ros": ros } }),
                }
            }
        }
    }

    /// For each velocity that its base received so far, whether it moves.
    fn torque_orders(&self) -> Vec<bool> {
        match self {
            Self::Servos { left, .. } => left
                .frames()
                .iter()
                .filter_map(|frame| frame.word(9, register::GOAL_SPEED))
                .map(|speed| speed != 0)
                .collect(),
            Self::Dds { peer, .. } => {
                let frames = peer.lines();
                frames
                    .iter()
                    .filter_map(|line| moves(&serde_json::from_str(line).ok()?))
                    .collect()
            }
        }
    }

    /// From a moment, by two clocks, until the first stop after so many velocities, by the clock of the one that heard it.
    fn stood_after(&self, skip: usize, since: Instant, clock: Timespec) -> Duration {
        match self {
            Self::Servos { left, .. } => {
                let frames = left.frames();
                let mut speeds = frames
                    .iter()
                    .filter(|frame| frame.word(9, register::GOAL_SPEED).is_some());
                let stop = speeds
                    .by_ref()
                    .skip(skip)
                    .find(|frame| frame.word(9, register::GOAL_SPEED) == Some(0));
                stop.unwrap().at.saturating_duration_since(since)
            }
            Self::Dds { peer, .. } => {
                let frames = peer.lines();
                let frames = frames.iter().filter_map(|line| serde_json::from_str(line).ok());
                let mut motions =
                    frames.filter_map(|frame: Value| Some((moves(&frame)?, frame["t"].as_f64()?)));
                let (_, at) = motions.by_ref().skip(skip).find(|(moves, _)| !moves).unwrap();
                // Both are the machine's monotonic clock.
                let from = Duration::new(
                    clock.tv_sec.cast_unsigned(),
                    u32::try_from(clock.tv_nsec).unwrap(),
                );
                Duration::from_secs_f64(at).saturating_sub(from)
            }
        }
    }

    /// Whether the last velocity has ended without a command, because a G1 ends each after a while.
    fn stood_by_itself(&self) -> bool {
        let Self::Dds { peer, .. } = self else {
            return false;
        };
        let lines = peer.lines();
        let word = "stands by itself";
        lines.iter().any(|line| line.contains(word))
    }

    fn until(&self, what: &str, since: Instant, limit: Duration, seen: impl Fn(&[bool]) -> bool) -> Duration {
        while !seen(&self.torque_orders()) {
            assert!(
                since.elapsed() < limit,
                "no {what} within {limit:?}: {:?}",
                self.torque_orders()
            );
            // Neither end can be awaited by the test, so both are polled.
            std::thread::park_timeout(Duration::from_millis(2));
        }
        since.elapsed()
    }
}

/// For a frame with a velocity, whether it moves.
fn moves(frame: &Value) -> Option<bool> {
    let numbers: Vec<&Value> = match frame["topic"].as_str()? {
        "velocity" => frame["velocity"].as_array()?.iter().collect(),
        "rpc" if frame["api"] == 2001 => frame["body"].as_object()?.values().collect(),
        "sport" if frame["api"] == 7105 => frame["parameter"]["velocity"].as_array()?.iter().collect(),
        _ => return None,
    };
    Some(numbers.iter().any(|number| number.as_f64() != Some(0.0)))
}

// Dropped in this order: a service that outlives its robot would search for it, and could find the terminal of
// another test.
struct Drive {
    service: Process,
    client: Client,
    _bus: Process,
    scene: Scene,
    robot: Robot,
}

impl Drive {
    /// A service with this robot, whose base moves.
    fn start(kind: &'static str) -> Option<Self> {
        Self::with(kind, &json!({}), |_| json!({}))
    }

    /// The same with more keys of the robot, and of the toolbox's section.
    fn with(kind: &'static str, keys: &Value, more: impl Fn(&Scene) -> Value) -> Option<Self> {
        let robot = Robot::start(kind)?;
        let scene = Scene::new(&json!({}));
        let mut own = robot.config();
        merge(&mut own, keys);
        let mut section = json!({ "isolation": "process", "robots": { "hal": own } });
        merge(&mut section, &more(&scene));
        scene.configure(
            &json!({ "operator_tools": true }),
            &json!({ "PHAL": { "ovos-phal-plugin-tools": { "robot": section } } }),
        );
        let bus = scene.bus(BusKind::Embedded);
        let mut client = Client::connect(scene.port);
        let plugins = plugins_with("robot");
        let mut service = scene.ours("service", &["serve", "--plugins", plugins.to_str().unwrap()]);
        ready(&mut service, &mut client);
        let mut drive = Self {
            robot,
            service,
            client,
            _bus: bus,
            scene,
        };
        drive.walk("walk");
        Some(drive)
    }

    /// Walks, and returns when the robot does.
    fn walk(&mut self, call_id: &str) {
        let before = self.robot.torque_orders().len();
        let walk = json!({ "direction": "forward", "speed": 0.2, "duration": 25.0 });
        self.client.send(
            "ovos.tools.invoke",
            &json!({ "name": "walk", "args": walk, "call_id": call_id }),
        );
        let end = Instant::now() + DEADLINE;
        let moves = |orders: &[bool]| orders.iter().skip(before).filter(|moves| **moves).count() >= 3;
        while !moves(&self.robot.torque_orders()) {
            self.client.read_until(Instant::now() + Duration::from_millis(10));
            let ended = self.client.answer_of(call_id);
            assert!(ended.is_none(), "it does not walk: {ended:?}");
            assert!(
                Instant::now() < end,
                "no motion: {:?}",
                self.robot.torque_orders()
            );
        }
    }

    /// The one answer of a call.
    fn answer(&mut self, call_id: &str) -> Value {
        self.client.until_answered([&call_id.to_owned()]);
        self.client.only_answer(call_id).clone()
    }

    /// Lifts the stop that holds the robot.
    fn resume(&mut self) {
        let held = toolbox_until(&mut self.client, "robot", "latch", |robot| {
            robot["stop_id"].is_string() && robot["state"] == "ready"
        });
        let resume = json!({ "toolbox_id": "robot", "stop_id": held["stop_id"] });
        let answer = self.client.ask("ovos.tools.resume", &resume);
        assert_eq!(answer["toolboxes"][0]["ok"], true, "{answer} {held}");
    }

    fn toolbox(&mut self) -> Pid {
        let robot = toolbox(&mut self.client, "robot");
        pid(&robot).unwrap_or_else(|| panic!("no pid in {robot:#}"))
    }

    /// Checks that the robot is told to stop, and nothing after that.
    fn rests(&self, since: Instant, what: &str) {
        let before = self.robot.torque_orders().len();
        if let Robot::Dds { kind: "g1", .. } = self.robot {
            let stood = self.robot.until("rest", since, ON_A_BUSY_MACHINE, |orders| {
                orders.last() == Some(&false) || self.robot.stood_by_itself()
            });
            println!("{what}: stood after {stood:?}");
        }
        let took = self.robot.until("stop", since, 10 * AT_REST, |orders| {
            orders.last() == Some(&false)
        });
        let alone = match self.robot.stood_by_itself() {
            true => ", when it stood by itself already",
            false => "",
        };
        println!("{what}: stopped after {took:?}{alone}");
        assert!(took <= ON_A_BUSY_MACHINE, "{what}: stopped after {took:?}");
        // Long enough for a toolbox that still runs to send another velocity.
        let end = Instant::now() + AT_REST;
        while Instant::now() < end {
            assert_eq!(
                self.robot.torque_orders().last(),
                Some(&false),
                "{what}: it moves again"
            );
            std::thread::park_timeout(Duration::from_millis(20));
        }
        let orders = self.robot.torque_orders();
        let stop = before.min(orders.len())
            + orders[before.min(orders.len())..]
                .iter()
                .position(|moves| !moves)
                .unwrap_or(0);
        assert!(orders[stop..].iter().all(|moves| !moves), "{what}: {orders:?}");
        if let Robot::Servos { left, .. } = &self.robot {
            assert!(!left.moves(), "{what}: a wheel turns");
        }
    }
}

/// For one robot, everything that can be done to a process.
fn whatever_happens(kind: &'static str) {
    for what in [
        "SIGKILL of the toolbox",
        "SIGSTOP of the toolbox",
        "SIGKILL of the service",
    ] {
        let Some(mut drive) = Drive::start(kind) else {
            return;
        };
        let toolbox = drive.toolbox();
        let since = Instant::now();
        match what {
            "SIGKILL of the toolbox" => kill_process(toolbox, Signal::KILL).unwrap(),
            "SIGSTOP of the toolbox" => kill_process(toolbox, Signal::STOP).unwrap(),
            _ => drive.service.signal(Signal::KILL),
        }
        drive.rests(since, &format!("{kind}: {what}"));
        if what == "SIGKILL of the toolbox" {
            let answer = drive.answer("walk");
            assert!(
                answer["error"]
                    .as_str()
                    .is_some_and(|error| error.contains("ToolboxCrashed")),
                "{answer}"
            );
        }
    }
}

fn merge(into: &mut Value, more: &Value) {
    for (key, value) in more.as_object().into_iter().flatten() {
        match into.get_mut(key) {
            Some(inner) if inner.is_object() => merge(inner, value),
            _ => into[key] = value.clone(),
        }
    }
}

/// Waits until the robot's servos are as expected.
fn servos_until(drive: &Drive, what: &str, fits: impl Fn(&mut Servo) -> bool) {
    let Robot::Servos { left, right, .. } = &drive.robot else {
        unreachable!("it has servos")
    };
    let end = Instant::now() + ON_A_BUSY_MACHINE;
    let all = || {
        (1..=11).all(|id| left.servo(id, &fits) == Some(true))
            && (1..=8).all(|id| right.servo(id, &fits) == Some(true))
    };
    while !all() {
        assert!(Instant::now() < end, "not all servos: {what}");
        std::thread::park_timeout(Duration::from_millis(2));
    }
}

/// The thread that owns a servo bus panics while an arm and the base move: its process ends, so that a stop from nothing
/// reaches the servos and a new process serves.
#[test]
fn a_bus_thread_that_panics_ends_in_a_stop_and_a_new_start() {
    for (estop, powered) in [("torque_off", false), ("hold", true)] {
        let what = format!("a panic of the bus thread, estop {estop}");
        let fuse = |scene: &Scene| {
            let file = scene.sandbox.path("panics");
            json!({ "env": { "OVOS_TEST_PANICS_AT_FILE": file } })
        };
        let mut drive = Drive::with("johnny5", &json!({ "estop": estop }), fuse).expect("it needs no Python");
        let before = drive.toolbox();
        let moves = json!({ "arm": "right", "position": "[60, -45, 90, 45, 0, 20]", "speed": 0.1 });
        drive.client.send(
            "ovos.tools.invoke",
            &json!({ "name": "move_arm", "args": moves, "call_id": "arm" }),
        );
        let Robot::Servos { right, .. } = &drive.robot else {
            unreachable!("it has servos")
        };
        let end = Instant::now() + DEADLINE;
        while !right.moves() {
            assert!(Instant::now() < end, "the arm does not move");
            std::thread::park_timeout(Duration::from_millis(2));
        }
        let since = Instant::now();
        std::fs::write(drive.scene.sandbox.path("panics"), "").unwrap();
        drive.rests(since, &what);
        for call in ["walk", "arm"] {
            let answer = drive.answer(call);
            let error = answer["error"].as_str().unwrap_or_default();
            assert!(error.contains("ToolboxCrashed"), "{what}: {call}: {answer}");
        }
        // Joints that hold are told to go nowhere: each at the smallest speed, or at the place where it is.
        servos_until(&drive, &what, |servo| {
            servo.speed() == 0.0 && (powered || servo.byte(register::TORQUE_ENABLE) == 0)
        });
        let again = toolbox_until(&mut drive.client, "robot", "new process", |robot| {
            robot["state"] == "ready" && pid(robot).is_some_and(|new| new != before)
        });
        assert!(again["stop_id"].is_string(), "{what}: it is not latched: {again}");
        let refused = drive.client.ask(
            "ovos.tools.invoke",
            &json!({ "name": "walk", "args": { "duration": 0.5 } }),
        );
        assert!(
            refused.to_string().contains("emergency stop"),
            "{what}: {refused}"
        );
        drive.resume();
        drive.walk("again");
        println!("{what}: walks again {:?} after it", since.elapsed());
    }
}

/// From an emergency stop on the bus until the robot is told to stand, as its independent peer hears it.
///
/// `ROBOT_STOPS=20` makes as many for each kind of robot, and prints the middle and the longest.
#[test]
fn a_stop_is_heard_at_once() {
    let stops: usize = std::env::var("ROBOT_STOPS").map_or(3, |stops| stops.parse().unwrap());
    for kind in ["johnny5", "k1_topics", "k1_rpc", "g1"] {
        let Some(mut drive) = Drive::start(kind) else {
            continue;
        };
        let mut took = Vec::new();
        for round in 0..stops {
            let (since, clock) = (Instant::now(), clock_gettime(ClockId::Monotonic));
            let before = drive.robot.torque_orders().len();
            drive.client.send("ovos.tools.stop", &json!({}));
            drive.robot.until("stop", since, ON_A_BUSY_MACHINE, |orders| {
                orders.get(before..).unwrap_or_default().contains(&false)
            });
            let stood = drive.robot.stood_after(before, since, clock);
            took.push(stood);
            drive.rests(since, &format!("{kind}: stop {round}"));
            drive.resume();
            drive.walk(&format!("walk-{round}"));
        }
        took.sort();
        println!(
            "{kind}: {stops} stops: from the frame to the peer: middle {:?}, longest {:?}",
            took[took.len() / 2],
            took[took.len() - 1]
        );
    }
}

#[test]
fn johnny5_is_stopped() {
    whatever_happens("johnny5");
}

#[test]
fn a_k1_behind_topics_is_stopped() {
    whatever_happens("k1_topics");
}

#[test]
fn a_k1_behind_its_own_interface_is_stopped() {
    whatever_happens("k1_rpc");
}

#[test]
fn a_g1_is_stopped() {
    whatever_happens("g1");
}
