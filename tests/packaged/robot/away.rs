//! A robot on the network goes away at any moment: every call is answered, and everything works after its return.
//!
//! The robots use the published Cyclone DDS. The moments are random, from a seed that a failure names.

use std::time::{Duration, Instant};

use crate::robot::peers::{Peer, domain};
use crate::support::client::Client;
use crate::support::process::Process;
use crate::support::scene::{Scene, ready};
use crate::support::service::{BusKind, plugins_with};
use rustix::process::Signal;
use serde_json::{Value, json};

/// How a robot goes away.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// Its power is cut: it sends nothing more and returns as a new participant.
    Dies,
    /// It leaves in order and returns as a new participant.
    Leaves,
    /// The network is cut: it returns as the same participant, with its state.
    CutOff,
}

/// The call under way, and the latest moment at which the robot goes away, in milliseconds.
struct Round {
    call: Option<Call>,
    way: Way,
    latest: u64,
    /// Whether it takes so long that it cannot have completed before the robot goes away.
    long: bool,
}

/// A tool and its arguments.
type Call = (&'static str, &'static str);

const WALK: Call = (
    "walk",
    r#"{"direction": "forward", "speed": 0.2, "duration": 3.0}"#,
);
const STEP: Call = (
    "walk",
    r#"{"direction": "forward", "speed": 0.2, "duration": 0.3}"#,
);
const WAVE: Call = ("wave", r#"{"arm": "right"}"#);
const LOOK: Call = ("look_at", r#"{"target": "left"}"#);
/// For a G1, which has no head.
const ARM: Call = ("go_to_pose", r#"{"pose": "home"}"#);
const TEST: Call = ("self_test", r#"{"subsystems": ["right_arm"]}"#);

const fn round(call: Option<Call>, way: Way, latest: u64, long: bool) -> Round {
    Round {
        call,
        way,
        latest,
        long,
    }
}

const ROUNDS: [Round; 6] = [
    round(Some(WALK), Way::Dies, 900, true),
    round(Some(WAVE), Way::CutOff, 500, true),
    round(Some(LOOK), Way::Leaves, 500, false),
    round(Some(TEST), Way::Dies, 10, false),
    round(Some(WALK), Way::CutOff, 900, true),
    round(None, Way::Dies, 100, false),
];

struct Yard {
    kind: &'static str,
    domain: u16,
    robot: Peer,
    client: Client,
    service: Process,
    calls: u32,
    _bus: Process,
    _scene: Scene,
}

impl Yard {
    /// `None` if the vendors' packages are not installed.
    fn new(kind: &'static str) -> Option<Self> {
        let domain = domain();
        let robot = robot(kind, domain)?;
        let ros = json!({ "domain": domain, "interfaces": ["127.0.0.1"] });
        let config = match kind {
            "k1_topics" => json!({ "adapter": "booster_k1", "booster_k1": { "ros": ros } }),
            "k1_rpc" => {
                json!({ "adapter": "booster_k1", "booster_k1": { "profile": "booster_rpc", "ros": ros } })
            }
            _ => json!({ "adapter": "unitree_g1", "unitree_g1": { "weight_rate": 2.0, "ros": ros } }),
        };
        let scene = Scene::new(&json!({}));
        let section = json!({ "robots": { "hal": config } });
        scene.configure(
            &json!({}),
            &json!({ "PHAL": { "ovos-phal-plugin-tools": { "robot": section } } }),
        );
        let bus = scene.bus(BusKind::Embedded);
        let mut client = Client::connect(scene.port);
        let plugins = plugins_with("robot");
        let mut service = scene.ours("service", &["serve", "--plugins", plugins.to_str().unwrap()]);
        ready(&mut service, &mut client);
        Some(Self {
            kind,
            domain,
            robot,
            client,
            service,
            calls: 0,
            _bus: bus,
            _scene: scene,
        })
    }

    fn call(&mut self, (tool, args): Call) -> String {
        self.calls += 1;
        let call_id = format!("{tool}-{}", self.calls);
        let args: Value = serde_json::from_str(args).unwrap();
        self.client.send(
            "ovos.tools.invoke",
            &json!({ "name": tool, "args": args, "call_id": call_id }),
        );
        call_id
    }

    /// The error of the call; `None` if it completed.
    fn failure(&mut self, call_id: &String) -> Option<String> {
        self.client.until_answered([call_id]);
        let answer = self.client.settled(call_id);
        let result = &answer["result"];
        match result["success"].as_bool() {
            Some(true) => None,
            _ => Some(format!("{} {}", result["message"], answer["error"])),
        }
    }

    fn until_backend(&mut self, state: &str) {
        self.client.until(&format!("word that it is {state}"), |frame| {
            let event = &frame["data"];
            let about = frame["type"] == "ovos.tools.event" && event["kind"] == "backend";
            (about && event["data"]["state"] == state).then_some(())
        });
    }

    fn goes(&self, way: Way) {
        match way {
            Way::Dies => self.robot.signal(Signal::KILL),
            Way::Leaves => self.robot.say("quit"),
            Way::CutOff => self.robot.signal(Signal::STOP),
        }
    }

    fn returns(&mut self, way: Way) {
        match way {
            Way::CutOff => self.robot.signal(Signal::CONT),
            Way::Dies | Way::Leaves => self.robot = robot(self.kind, self.domain).unwrap(),
        }
    }

    /// The process of the toolbox, and how many calls are under way.
    fn status(&mut self) -> (Value, usize) {
        let status = self.client.ask("ovos.tools.status", &json!({}));
        let calls = status["calls"].as_array().unwrap().len();
        (status["toolboxes"][0]["pid"].clone(), calls)
    }
}

fn robot(kind: &str, domain: u16) -> Option<Peer> {
    let robot = Peer::start("dds_robot.py", &[kind, &domain.to_string()])?;
    robot.until("ready");
    Some(robot)
}

/// Whether the last velocity that the robot received moves it; without any it does not move.
fn moves(robot: &Peer) -> bool {
    let velocity = |line: &String| -> Option<Vec<f64>> {
        let frame: Value = serde_json::from_str(line).ok()?;
        let numbers = match frame["topic"].as_str()? {
            "velocity" => frame["velocity"].clone(),
            "rpc" if frame["api"] == 2001 => frame["body"].as_object()?.values().cloned().collect(),
            "sport" if frame["api"] == 7105 => frame["parameter"]["velocity"].clone(),
            _ => return None,
        };
        serde_json::from_value(numbers).ok()
    };
    let last = robot.lines().iter().filter_map(velocity).next_back();
    last.is_some_and(|last| last.iter().any(|number| *number != 0.0))
}

/// The longest duration of a G1's own gestures, according to its vendor.
const GESTURE: Duration = Duration::from_secs(12);

fn goes_and_returns(kind: &'static str, seed: u64) {
    let Some(mut yard) = Yard::new(kind) else { return };
    let mut random = fastrand::Rng::with_seed(seed);
    let (pid, _) = yard.status();
    for (number, round) in ROUNDS.iter().enumerate() {
        let (call, way) = match round.call {
            Some(LOOK) if kind == "g1" => (Some(ARM), round.way),
            call => (call, round.way),
        };
        let moment = Duration::from_millis(random.u64(0..round.latest));
        let what = format!("{kind}, seed {seed}, round {number}: {call:?}, {way:?} after {moment:?}");
        let under_way = call.map(|call| yard.call(call));
        yard.client.read_until(Instant::now() + moment);
        yard.goes(way);
        let gone = Instant::now();
        let failure = under_way.and_then(|call_id| yard.failure(&call_id));
        println!("{what}: {:?} later: {failure:?}", gone.elapsed());
        match failure {
            Some(failure) => assert!(failure.contains("hal is not connected"), "{what}: {failure}"),
            None => assert!(!round.long, "{what}: done without the robot"),
        }
        // The loss need not have been noticed yet: a call may succeed or fail.
        let meanwhile = yard.call(WALK);
        let failure = yard.failure(&meanwhile);
        assert!(
            failure
                .as_ref()
                .is_some_and(|why| why.contains("hal is not connected")),
            "{what}: meanwhile: {failure:?}"
        );
        yard.returns(way);
        yard.until_backend("connected");
        let call_again = if call == Some(WALK) {
            STEP
        } else {
            call.unwrap_or(STEP)
        };
        let back = Instant::now();
        let failure = loop {
            let again = yard.call(call_again);
            let failure = yard.failure(&again);
            // A G1 that was cut off during a gesture completes the gesture first, and answers 7400 meanwhile.
            let busy = failure.as_ref().is_some_and(|why| why.contains("7400"));
            if !busy || back.elapsed() > GESTURE {
                break failure;
            }
        };
        assert_eq!(failure, None, "{what}: when it is back\n{}", yard.service.log());
        yard.robot
            .wait("word to stand", |_| (!moves(&yard.robot)).then_some(()));
        assert_eq!(
            yard.status(),
            (pid.clone(), 0),
            "{what}: the toolbox's process, and calls under way"
        );
    }
}

#[test]
fn a_robot_that_goes_away_is_reported_and_everything_works_when_it_returns() {
    std::thread::scope(|scope| {
        for (seed, kind) in (1..).zip(["k1_topics", "k1_rpc", "g1"]) {
            scope.spawn(move || goes_and_returns(kind, seed));
        }
    });
}
