//! Reload under load: plugins are added, replaced, broken and removed while clients call their tools all the time.
//!
//! testbed is replaced by other builds of itself (`TESTBED_VERSION`), its file is replaced by garbage and put back,
//! and testbed_dup is added and removed. No call of a tool that was present all the time fails or is answered wrongly
//! or twice, and after the answer to a reload the new build answers.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use crate::support::client::Client;
use crate::support::scene::{Scene, ready};
use crate::support::service::{BusKind, testbed_plugins};
use crate::support::versions::builds;
use serde_json::{Value, json};

const SEED: u64 = 0x000b_0550_0106;
const CLIENTS: usize = 4;

const CHANGES: usize = 100;

/// The plugin folder and its files.
struct Shelf {
    dir: PathBuf,
    broken: bool,
    dup: bool,
}

impl Shelf {
    fn new(scene: &Scene) -> Self {
        let dir = scene.sandbox.path("plugins");
        fs::create_dir(&dir).unwrap();
        Self {
            dir,
            broken: false,
            dup: false,
        }
    }

    /// Written beside and renamed, as an installer does.
    fn put(&self, name: &str, content: &[u8]) {
        let fresh = self.dir.join(".fresh");
        fs::write(&fresh, content).unwrap();
        fs::rename(fresh, self.dir.join(name)).unwrap();
    }
}

/// What one client has seen.
#[derive(Default)]
struct Seen {
    calls: usize,
    versions: Vec<String>,
}

/// Calls tools until it is told to end, several at the same time.
fn caller(number: usize, port: u16, over: &AtomicBool, made: &AtomicUsize) -> Seen {
    let mut client = Client::connect(port).in_session(&format!("caller-{number}"));
    let mut random = fastrand::Rng::with_seed(SEED + number as u64);
    let mut seen = Seen::default();
    while !over.load(Ordering::Relaxed) {
        let batch: Vec<(String, u8, i64)> = (0..8)
            .map(|n| {
                (
                    format!("c{number}-{}", seen.calls + n),
                    random.u8(..4),
                    random.i64(-1_000_000..1_000_000),
                )
            })
            .collect();
        for (call_id, kind, number) in &batch {
            match kind {
                0 => client.call(call_id, "add", &json!({ "a": number, "b": 1 })),
                1 => client.call(call_id, "echo", &json!({ "text": format!("text {number}") })),
                2 => client.call(call_id, "version", &json!({})),
                // Long enough to be under way while the file is replaced.
                _ => client.call(call_id, "slow", &json!({ "seconds": 0.02 })),
            }
        }
        client.until_answered(batch.iter().map(|(call_id, ..)| call_id));
        for (call_id, kind, number) in &batch {
            let answer = client.only_answer(call_id);
            let result = &answer["result"];
            let right = match kind {
                0 => result["result"] == number + 1,
                1 => result["text"] == format!("text {number}"),
                2 => result["version"].is_string(),
                _ => result["seconds"] == 0.02,
            };
            assert!(right, "a wrong answer: {answer}");
            if *kind == 2 {
                seen.versions.push(result["version"].as_str().unwrap().to_owned());
            }
        }
        seen.calls += batch.len();
        made.fetch_add(batch.len(), Ordering::Relaxed);
    }
    // An answer that was sent twice has arrived by now.
    client.invoke("ping", &json!({}));
    for n in 0..seen.calls {
        client.only_answer(&format!("c{number}-{n}"));
    }
    seen
}

/// The backend that one copy reported does not apply to the copy that replaces it.
#[test]
fn a_new_copy_has_not_reported_its_backend() {
    let scene = Scene::new(&json!({}));
    let silent = |more: Value| {
        let mut testbed = json!({"simulated": false});
        testbed
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let testbed = json!({"PHAL": {"ovos-phal-plugin-tools": {"testbed": testbed}}});
        scene.configure(&json!({}), &testbed);
    };
    silent(json!({}));
    let (_bus, _service, mut client) = scene.open();
    let testbed = |client: &mut Client| -> Value {
        let status = client.ask("ovos.tools.status", &json!({}));
        let toolboxes = status["toolboxes"].as_array().unwrap();
        let found = toolboxes.iter().find(|it| it["toolbox_id"] == "testbed");
        found.unwrap().clone()
    };
    client.invoke(
        "emit_event",
        &json!({"kind": "backend", "data": {"state": "ready"}}),
    );
    let before = testbed(&mut client);
    assert_eq!(before["backend"]["state"], "ready", "{before:#}");
    silent(json!({"limits": {"open_ms": 20_000}}));
    client.send("configuration.updated", &json!({}));
    let reloaded = client.ask("ovos.tools.reload", &json!({}));
    let after = testbed(&mut client);
    assert_ne!(after["generation"], before["generation"], "{reloaded:#}");
    assert_eq!(after["backend"], Value::Null, "{after:#}");
}

#[test]
fn a_hundred_changes_under_load() {
    let builds = builds();
    let dup = fs::read(testbed_plugins().join("testbed_dup.so")).unwrap();
    let scene = Scene::new(&json!({}));
    let mut shelf = Shelf::new(&scene);
    shelf.put("testbed.so", &builds[0].1);
    let _bus = scene.bus(BusKind::Embedded);
    let mut client = Client::connect(scene.port);
    let mut service = scene.ours("service", &["serve", "--plugins", shelf.dir.to_str().unwrap()]);
    ready(&mut service, &mut client);
    check_answers_per_request(scene.port, 1);

    let (over, made) = (AtomicBool::new(false), AtomicUsize::new(0));
    let (mut live, mut replaced) = (0, 0);
    let seen: Vec<Seen> = thread::scope(|threads| {
        let callers: Vec<_> = (0..CLIENTS)
            .map(|number| {
                threads.spawn({
                    let (over, made) = (&over, &made);
                    move || caller(number, scene.port, over, made)
                })
            })
            .collect();
        let mut random = fastrand::Rng::with_seed(SEED);
        // The callers end also if a change fails.
        let _over = SetOnDrop(&over);
        for change in 0..CHANGES {
            let what = random.u8(..4);
            match what {
                // The next build, which also repairs a broken file.
                0 | 1 => {
                    live = (live + 1) % builds.len();
                    shelf.put("testbed.so", &builds[live].1);
                    shelf.broken = false;
                    replaced += 1;
                }
                2 => {
                    shelf.put("testbed.so", b"\x7fELF and then nothing of the kind");
                    shelf.broken = true;
                }
                _ if shelf.dup => {
                    fs::remove_file(shelf.dir.join("testbed_dup.so")).unwrap();
                    shelf.dup = false;
                }
                _ => {
                    shelf.put("testbed_dup.so", &dup);
                    shelf.dup = true;
                }
            }
            let before = made.load(Ordering::Relaxed);
            let answer = client.ask("ovos.tools.reload", &json!({ "detail": true }));
            check_reload(change, what, &answer, &shelf);
            // The change is in force when the answer arrives.
            let found = client.invoke("version", &json!({}));
            assert_eq!(
                found["result"]["version"], builds[live].0,
                "after change {change}: {answer} {found}"
            );
            if callers.iter().any(thread::ScopedJoinHandle::is_finished) {
                break;
            }
            // The callers have made calls meanwhile, so that each change meets calls.
            while made.load(Ordering::Relaxed) == before
                && !callers.iter().any(thread::ScopedJoinHandle::is_finished)
            {
                client.invoke("ping", &json!({}));
            }
        }
        over.store(true, Ordering::Relaxed);
        callers
            .into_iter()
            .map(|caller| caller.join().expect("a caller saw something wrong"))
            .collect()
    });

    check_answers_per_request(scene.port, if shelf.dup { 2 } else { 1 });
    let calls: usize = seen.iter().map(|seen| seen.calls).sum();
    let mut versions: Vec<&String> = seen.iter().flat_map(|seen| &seen.versions).collect();
    versions.sort_unstable();
    versions.dedup();
    assert_eq!(
        versions.len(),
        builds.len(),
        "every build answered at some time: {versions:?}"
    );
    let status = client.ask("ovos.tools.status", &json!({}));
    assert_eq!(status["calls"], json!([]), "nothing is left under way");
    println!(
        "{} changes, {replaced} of them replacements, met {calls} calls",
        CHANGES
    );
}

/// Sets a flag when dropped, also if a test fails.
struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[track_caller]
fn check_reload(change: usize, what: u8, answer: &Value, shelf: &Shelf) {
    assert!(answer.get("error").is_none(), "change {change}: {answer}");
    let failed = answer["failed"].as_array().map_or(0, Vec::len);
    assert_eq!(
        failed,
        usize::from(shelf.broken),
        "change {change} ({what}): {}",
        answer["failed"]
    );
    let loaded = answer["tools"].to_string();
    assert!(
        loaded.contains("add"),
        "a broken file takes nothing away: {answer}"
    );
}

/// The number of answers to a request does not grow with the reloads: one, or one from each toolbox where the
/// contract says so.
#[track_caller]
fn check_answers_per_request(port: u16, toolboxes: usize) {
    let mut client = Client::connect(port);
    let rows = [
        ("ovos.tools.list", json!({}), 1),
        ("ovos.tools.get", json!({ "name": "add" }), 1),
        (
            "ovos.tools.invoke",
            json!({ "name": "add", "args": { "a": 1, "b": 1 } }),
            1,
        ),
        ("ovos.persona.tools.discover", json!({}), toolboxes),
        (
            "ovos.persona.tools.call",
            json!({ "toolbox_id": "testbed", "name": "ping", "kwargs": {} }),
            1,
        ),
        ("mycroft.ovos_tools.is_ready", json!({}), 1),
    ];
    for (topic, data, expected) in &rows {
        let response = format!("{topic}.response");
        let ident = client.send(topic, data);
        let mut answers = 0;
        // The answer to a later question comes behind all answers to this one.
        client.until("the answers and what comes behind them", |frame| {
            if frame["type"] == response && frame["context"]["ident"] == ident {
                answers += 1;
            }
            (answers >= *expected).then_some(())
        });
        let later = client.send("ovos.tools.cancel", &json!({ "call_id": "unknown" }));
        client.until("the marker", |frame| {
            if frame["type"] == response && frame["context"]["ident"] == ident {
                answers += 1;
            }
            (frame["type"] == "ovos.tools.cancel.response" && frame["context"]["ident"] == later)
                .then_some(())
        });
        assert_eq!(answers, *expected, "answers to {topic}");
    }
}

/// A toolbox that is added takes the own name from a tool of another one: the reload says so, and the status goes on to.
#[test]
fn a_reload_names_the_tools_whose_names_became_ambiguous() {
    let scene = Scene::new(&json!({}));
    let _bus = scene.bus(BusKind::Embedded);
    let shelf = Shelf::new(&scene);
    let mut client = Client::connect(scene.port);
    let put = |name: &str| shelf.put(name, &fs::read(testbed_plugins().join(name)).unwrap());
    put("testbed.so");
    let mut service = scene.ours("service", &["serve", "--plugins", shelf.dir.to_str().unwrap()]);
    ready(&mut service, &mut client);
    let renamed = |client: &mut Client| {
        client.ask("ovos.tools.status", &json!({}))["toolboxes"][0]["renamed_tools"].take()
    };
    assert_eq!(renamed(&mut client), json!(null));
    put("testbed_dup.so");
    let reloaded = client.ask("ovos.tools.reload", &json!({ "detail": true }));
    let of_testbed = "`dup` is called `testbed__dup`: testbed_dup also has a tool with this name";
    let of_other = "`dup` is called `testbed_dup__dup`: testbed also has a tool with this name";
    let reports = [
        format!("testbed: {of_testbed}"),
        format!("testbed_dup: {of_other}"),
    ];
    assert_eq!(reloaded["renamed"], json!(reports), "{reloaded}");
    assert_eq!(renamed(&mut client), json!([of_testbed]));
    let reloaded = client.ask("ovos.tools.reload", &json!({ "detail": true }));
    assert_eq!(reloaded.get("renamed"), None, "nothing is new");
    let published = client.ask("ovos.tools.reload", &json!({}));
    let keys: Vec<&String> = published.as_object().unwrap().keys().collect();
    assert_eq!(
        keys,
        ["tools", "loaded", "total_tools"],
        "the published keys alone"
    );
}
