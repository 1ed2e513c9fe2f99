//! A long conversation over a bad line.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::process::DEADLINE;
use crate::voice::stage::Stage;

const CALLS: usize = 1000;
const CUTS: usize = 50;
const SEED: u64 = 0x0_765;

/// How many calls wait for their answers at the same time.
const OPEN: usize = 12;

/// A chat with 1,000 calls, cut 50 times. The service says some of what was not answered again. No call runs twice, those of the
/// last socket are all answered, and nothing moves in the end.
#[test]
fn a_thousand_calls_over_a_line_that_is_cut_run_once_each() {
    let stage = Stage::new(&json!({}));
    let (observer, ended) = observe(stage.scene.port);
    let (door, mut line) = stage.joined();
    let mut random = fastrand::Rng::with_seed(SEED);
    let mut cuts: BTreeSet<usize> = BTreeSet::new();
    while cuts.len() < CUTS {
        cuts.insert(random.usize(1..CALLS));
    }
    let mut open: BTreeMap<String, (&str, Value)> = BTreeMap::new();
    let mut answers: BTreeMap<String, usize> = BTreeMap::new();
    let mut repeated = 0;
    for number in 0..CALLS {
        while open.len() >= OPEN {
            let frame = line
                .next(DEADLINE)
                .unwrap_or_else(|| panic!("no answer\n{}", door.log()));
            book(&frame, &mut open, &mut answers);
        }
        let (name, args) = match random.u8(0..10) {
            0..=5 => ("add", json!({"a": number, "b": 1})),
            6 => ("set_mark", json!({"ms": random.u8(0..20)})),
            _ => (
                "assemble",
                json!({"subsystems": ["base"], "steps": random.u8(1..4), "step_ms": 2}),
            ),
        };
        let id = format!("call-{number}");
        line.call(&id, name, &args);
        open.insert(id, (name, args));
        if !cuts.contains(&number) {
            continue;
        }
        // In the middle of whatever is under way.
        let end = Instant::now() + Duration::from_millis(random.u64(0..30));
        while let Some(frame) = line.next(end.saturating_duration_since(Instant::now())) {
            book(&frame, &mut open, &mut answers);
        }
        line.cut();
        line = stage.accepted();
        // Half of what was lost is said again, by its own id.
        open.retain(|id, (name, args)| {
            let again = random.bool();
            if again {
                line.call(id, name, args);
                repeated += 1;
            }
            again
        });
    }
    let end = Instant::now() + DEADLINE;
    while !open.is_empty() {
        let frame = line.next(end.saturating_duration_since(Instant::now()));
        let frame = frame.unwrap_or_else(|| panic!("no answer to {:?}\n{}", open.keys(), door.log()));
        book(&frame, &mut open, &mut answers);
    }
    stage.scene.until_at_rest();
    ended.store(true, Ordering::SeqCst);
    let requests = observer.join().unwrap();
    let twice: Vec<_> = requests.iter().filter(|(_, times)| **times > 1).collect();
    assert!(twice.is_empty(), "asked for more than once: {twice:?}");
    let motors = stage.scene.motors();
    let mut starts: BTreeMap<&str, usize> = BTreeMap::new();
    for motor in motors.iter().filter(|motor| motor.kind == "start") {
        *starts.entry(&motor.run).or_default() += 1;
    }
    assert!(
        starts.values().all(|times| *times == 1),
        "started more than once: {starts:?}"
    );
    let unanswered = CALLS - answers.len();
    println!(
        "{} of {CALLS} calls ran, {} were answered, {repeated} were said again, {unanswered} were given up with their sockets",
        requests.len(),
        answers.len()
    );
    assert!(
        requests.len() > CALLS * 9 / 10,
        "only {} calls ran",
        requests.len()
    );
    assert!(answers.values().all(|times| *times == 1), "{answers:?}");
}

fn book(frame: &Value, open: &mut BTreeMap<String, (&str, Value)>, answers: &mut BTreeMap<String, usize>) {
    if let Some(id) = frame["tool_call_id"].as_str() {
        *answers.entry(id.to_owned()).or_default() += 1;
        open.remove(id);
    }
}

/// Counts the calls on the bus by their call_id, until it is told to end.
fn observe(port: u16) -> (std::thread::JoinHandle<BTreeMap<String, usize>>, Arc<AtomicBool>) {
    let ended = Arc::new(AtomicBool::new(false));
    let mut client = Client::connect(port);
    let until = Arc::clone(&ended);
    let observer = std::thread::spawn(move || {
        let mut requests = BTreeMap::new();
        loop {
            let is_last = until.load(Ordering::SeqCst);
            let end = Instant::now() + Duration::from_millis(300);
            while Instant::now() < end {
                let Some(frame) = client.next(end) else { break };
                if frame["type"] == "ovos.tools.invoke" {
                    let call_id = frame["data"]["call_id"].as_str().unwrap();
                    *requests.entry(call_id.to_owned()).or_default() += 1;
                }
            }
            if is_last {
                return requests;
            }
        }
    });
    (observer, ended)
}
