//! Toolboxes are crashed in every way at once, again and again, while clients call testbed as fast as it answers: no call
//! of testbed is lost, answered wrongly or twice, and its process never notices.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::fixture::FixtureFolder;
use crate::support::process::{DEADLINE, Process};
use crate::support::scene::{Scene, ready};
use crate::support::service::{BusKind, testbed_plugins};
use crate::support::status::signal;
use crate::{SEED, repeated};

const CALLERS: usize = 2;

/// Calls of one caller that are under way.
const AT_ONCE: usize = 16;

/// What is done to a toolbox after a call of its tool.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Then {
    /// It dies by itself.
    Nothing,
    /// An emergency stop, which it survives or not; then its process is killed if it still lives.
    Stop,
    /// A signal, some moments later.
    Signal(Signal),
    /// Its call times out; then it is killed.
    Timeout,
}

/// Toolbox, fixture, tool, and what is done to it.
const WAYS: &[(&str, &str, &str, Then)] = &[
    ("aborts", "aborts", "work", Then::Nothing),
    ("segfaults", "segfaults", "work", Then::Nothing),
    ("exits", "exits", "work", Then::Nothing),
    ("closes_fds", "closes_fds", "work", Then::Nothing),
    ("eats_memory", "eats_memory", "work", Then::Nothing),
    ("spins", "spins", "work", Then::Timeout),
    ("hangs", "hangs_for_ever", "work", Then::Timeout),
    ("floods_log", "floods_log", "work", Then::Signal(Signal::KILL)),
    (
        "floods_progress",
        "floods_progress",
        "work",
        Then::Signal(Signal::KILL),
    ),
    ("sleeps_in_halt", "sleeps_in_halt", "move", Then::Stop),
    ("starts_after_halt", "starts_after_halt", "move", Then::Stop),
    ("killed", "hangs_for_ever", "work", Then::Signal(Signal::KILL)),
    ("frozen", "hangs_for_ever", "work", Then::Signal(Signal::STOP)),
];

/// A service with testbed and a toolbox for each way.
struct Stage {
    scene: Scene,
    _bus: Process,
    service: Process,
    _fixtures: FixtureFolder,
}

impl Stage {
    fn new() -> Self {
        let fixtures = FixtureFolder::new();
        for (id, fixture, ..) in WAYS {
            let id_text = format!("\"{id}\"");
            fixtures.build_as(id, fixture, &[("ID", &id_text)]);
        }
        fs::copy(
            testbed_plugins().join("testbed.so"),
            fixtures.path().join("testbed.so"),
        )
        .unwrap();
        let scene = Scene::new(&json!({}));
        let mut sections = json!({});
        for (id, ..) in WAYS {
            sections[*id] = json!({ "motor": scene.sandbox.path(&format!("motor-{id}")) });
        }
        sections["eats_memory"]["limits"] = json!({ "memory_mb": 128 });
        scene.configure(
            &json!({ "max_failures": 0, "operator_tools": true }),
            &json!({ "PHAL": { "ovos-phal-plugin-tools": sections } }),
        );
        let bus = scene.bus(BusKind::Embedded);
        let mut client = Client::connect(scene.port);
        let mut service = scene.ours(
            "service",
            &["serve", "--plugins", fixtures.path().to_str().unwrap()],
        );
        ready(&mut service, &mut client);
        Self {
            scene,
            _bus: bus,
            service,
            _fixtures: fixtures,
        }
    }
}

/// Calls testbed until it is told to end; returns the number of calls.
fn caller(number: usize, port: u16, over: &AtomicBool) -> usize {
    let mut client = Client::connect(port).in_session(&format!("caller-{number}"));
    let mut made = 0;
    while !over.load(Ordering::Relaxed) {
        let batch: Vec<String> = (made..made + AT_ONCE).map(|n| format!("c{number}-{n}")).collect();
        for (n, call_id) in (made..).zip(&batch) {
            client.call(call_id, "add", &json!({ "a": n, "b": 1 }));
        }
        client.until_answered(&batch);
        for (n, call_id) in (made..).zip(&batch) {
            let answer = client.only_answer(call_id);
            assert_eq!(answer["result"]["result"], n + 1, "a wrong answer: {answer}");
        }
        made += batch.len();
    }
    // An answer that was sent twice has arrived by now.
    client.invoke("ping", &json!({}));
    for n in 0..made {
        client.only_answer(&format!("c{number}-{n}"));
    }
    made
}

/// Every toolbox of [`WAYS`] by id.
fn statuses(client: &mut Client) -> BTreeMap<String, Value> {
    let status = client.ask("ovos.tools.status", &json!({}));
    let toolboxes = status["toolboxes"].as_array().expect("a list of toolboxes");
    let by_id = |toolbox: &Value| {
        (
            toolbox["toolbox_id"].as_str().unwrap().to_owned(),
            toolbox.clone(),
        )
    };
    toolboxes.iter().map(by_id).collect()
}

/// Crashes each toolbox in its way, and waits until each call was answered and each process is gone.
fn crash_all(client: &mut Client, random: &mut fastrand::Rng, round: u64) {
    let before = statuses(client);
    for (id, _, tool, then) in WAYS {
        let timeout_ms = if *then == Then::Timeout {
            300 + random.u64(..500)
        } else {
            60_000
        };
        let data = json!({
            "name": tool, "toolbox_id": id, "call_id": format!("{id}-{round}"), "args": {}, "timeout_ms": timeout_ms,
        });
        client.send("ovos.tools.invoke", &data);
    }
    let (calls, mut stops): (Vec<String>, Vec<&str>) = (
        WAYS.iter().map(|(id, ..)| format!("{id}-{round}")).collect(),
        Vec::new(),
    );
    // All calls are under way, or have ended already.
    let moment = Instant::now() + Duration::from_millis(random.u64(..150));
    client.read_until(moment);
    for (id, _, _, then) in WAYS {
        match then {
            Then::Signal(what) => signal(&before[*id], *what),
            Then::Stop => {
                client.send("ovos.tools.stop", &json!({ "toolbox_id": id }));
                stops.push(id);
            }
            Then::Nothing | Then::Timeout => {}
        }
    }
    client.until_answered(&calls);
    for (call_id, (id, .., then)) in calls.iter().zip(WAYS) {
        let answer = client.only_answer(call_id);
        let error = answer["error"].as_str().unwrap_or_default();
        let expected: &[&str] = match then {
            Then::Nothing => &["ToolboxCrashed"],
            Then::Timeout => &["TimeoutError", "ToolboxCrashed"],
            Then::Signal(Signal::STOP) => &["ToolboxCrashed"],
            // A flood may have ended before, with an output that its schema does not allow.
            Then::Signal(_) => &[""],
            Then::Stop => &["EmergencyStop", "ToolboxCrashed", "TimeoutError"],
        };
        assert!(
            !error.is_empty() && expected.iter().any(|kind| error.starts_with(kind)),
            "{id} in round {round}: {answer}; before: {}",
            before[*id]
        );
    }
    for (id, .., then) in WAYS {
        if matches!(then, Then::Timeout | Then::Stop) {
            signal(&before[*id], Signal::KILL);
        }
    }
    // A stopped toolbox is resumed for the next round, which is possible only while its process lives.
    let end = Instant::now() + DEADLINE;
    loop {
        client.ask("ovos.tools.reload", &json!({}));
        let now = statuses(client);
        let again = |id: &str| now[id]["state"] == "ready" && now[id]["pid"] != before[id]["pid"];
        let missing: Vec<&str> = WAYS.iter().map(|(id, ..)| *id).filter(|id| !again(id)).collect();
        if missing.is_empty() {
            break;
        }
        assert!(
            Instant::now() < end,
            "not back in round {round}: {missing:?}: {:?}",
            missing.iter().map(|id| now[*id].to_string()).collect::<Vec<_>>()
        );
    }
    for id in stops {
        let stop_id = statuses(client)[id]["stop_id"].clone();
        let resumed = client.ask(
            "ovos.tools.resume",
            &json!({ "toolbox_id": id, "stop_id": stop_id }),
        );
        assert_eq!(
            resumed["toolboxes"][0]["ok"], true,
            "{id} in round {round}: {resumed}"
        );
    }
}

#[test]
fn crashes_of_others_lose_nothing_of_testbed() {
    let stage = Stage::new();
    let port = stage.scene.port;
    let mut client = Client::connect(port);
    let before = statuses(&mut client)["testbed"].clone();
    assert_eq!(before["isolation"], "process");

    let rounds = repeated("CRASHES", 20);
    let enough =
        Instant::now() + Duration::from_secs(repeated("CRASH_SECONDS", if rounds > 20 { 7200 } else { 30 }));
    let over = AtomicBool::new(false);
    let (made, done) = thread::scope(|threads| {
        let callers: Vec<_> = (0..CALLERS)
            .map(|n| {
                let over = &over;
                threads.spawn(move || caller(n, port, over))
            })
            .collect();
        let _over = SetOnDrop(&over);
        let mut random = fastrand::Rng::with_seed(SEED);
        let mut done = 0;
        while done < rounds && (done == 0 || Instant::now() < enough) {
            crash_all(&mut client, &mut random, done);
            assert!(
                !callers.iter().any(thread::ScopedJoinHandle::is_finished),
                "a caller gave up in round {done}"
            );
            done += 1;
        }
        over.store(true, Ordering::Relaxed);
        let made: Vec<usize> = callers.into_iter().map(|caller| caller.join().unwrap()).collect();
        (made, done)
    });
    client.invoke("ping", &json!({}));
    for (id, ..) in WAYS {
        for round in 0..done {
            client.only_answer(&format!("{id}-{round}"));
        }
    }
    let now = statuses(&mut client);
    let same = |key: &str| assert_eq!(now["testbed"][key], before[key], "{key}\n{}", stage.service.log());
    ["pid", "generation", "restarts"].into_iter().for_each(same);
    let total: usize = made.iter().sum();
    assert!(total > 0);
    println!(
        "{done} crashes in each of {} ways (seed {SEED:#x}) met {total} calls of testbed: none lost, none twice",
        WAYS.len()
    );
    motors_are_still(&stage.scene.sandbox.path(""));
}

/// The machines of the toolboxes that move were stopped last.
fn motors_are_still(folder: &Path) {
    let mut looked_at = 0;
    for id in ["sleeps_in_halt", "starts_after_halt"] {
        let text = fs::read_to_string(folder.join(format!("motor-{id}"))).unwrap_or_default();
        if id == "sleeps_in_halt" {
            assert_eq!(text.lines().last(), Some("stop"), "{id}");
            looked_at += 1;
        }
    }
    assert!(looked_at > 0);
}

/// Sets a flag when dropped, also if a test fails.
struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
