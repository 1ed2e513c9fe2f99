//! The record of the facts: what it keeps through restarts, what it does not show, and that no call and no stop waits for it.

use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::support::client::Client;
use crate::support::process::DEADLINE;
use crate::support::scene::{Scene, ready};
use crate::support::service::BusKind;
use crate::support::stage::Stage;
use serde_json::{Value, json};

/// How long a call may take while the disk does not respond, with slack for a machine busy with tests.
const PROMPT: Duration = Duration::from_secs(2);

fn file(scene: &Scene) -> PathBuf {
    scene.sandbox.path("state/ovos-tools/facts.jsonl")
}

/// The whole lines of all files, the oldest first.
fn recorded(scene: &Scene) -> Vec<Value> {
    let newest = file(scene).display().to_string();
    let names = [".3", ".2", ".1", ""].map(|end| newest.clone() + end);
    let texts = names.iter().filter_map(|name| fs::read_to_string(name).ok());
    let text: String = texts.collect();
    // A line that a kill has cut is passed over.
    text.lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

/// Waits for lines of the record that satisfy `found`.
#[track_caller]
fn until_recorded<T>(scene: &Scene, what: &str, mut found: impl FnMut(&[Value]) -> Option<T>) -> T {
    let end = Instant::now() + DEADLINE;
    loop {
        let lines = recorded(scene);
        if let Some(value) = found(&lines) {
            return value;
        }
        assert!(Instant::now() < end, "no {what} in {lines:#?}");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

/// The facts of the call of this id.
fn of_call<'a>(lines: &'a [Value], call_id: &str) -> Vec<&'a Value> {
    let of_it = lines.iter().filter(|line| line["call"]["call_id"] == call_id);
    of_it.collect()
}

fn kinds(facts: &[&Value]) -> String {
    let kinds: Vec<&str> = facts.iter().map(|fact| fact["fact"].as_str().unwrap()).collect();
    kinds.join(" ")
}

#[track_caller]
fn until_answered(scene: &Scene, call_id: &str) -> Vec<Value> {
    until_recorded(scene, call_id, |lines| {
        let facts = of_call(lines, call_id);
        let over = facts.last().is_some_and(|fact| fact["fact"] == "answered");
        over.then(|| facts.into_iter().cloned().collect())
    })
}

/// The numbers of facts, in the order of the record; those that were lost are among them.
fn numbers(lines: &[Value]) -> Vec<u64> {
    let of_line = |line: &Value| match line["lost"]["from"].as_u64() {
        Some(from) => (from..=line["lost"]["to"].as_u64().unwrap()).collect(),
        None => line["number"].as_u64().into_iter().collect::<Vec<_>>(),
    };
    lines.iter().flat_map(of_line).collect()
}

#[track_caller]
fn assert_consecutive(lines: &[Value]) {
    for pair in numbers(lines).windows(2) {
        assert_eq!(pair[1], pair[0] + 1, "a number is missing or comes twice");
    }
}

/// A connection to the control socket that follows the facts.
struct Stream {
    lines: BufReader<UnixStream>,
}

impl Stream {
    fn after(scene: &Scene, after: Option<&str>) -> Self {
        let mut stream = UnixStream::connect(scene.sandbox.path("run/ovos-tools/control.sock")).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        let request = json!({ "do": "facts", "after": after });
        stream.write_all(format!("{request}\n").as_bytes()).unwrap();
        Self {
            lines: BufReader::new(stream),
        }
    }

    fn next(&mut self) -> Value {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    /// The lines up to the answer of a call.
    fn until_answered(&mut self, call_id: &str) -> Vec<Value> {
        let mut lines = Vec::new();
        loop {
            let line = self.next();
            let last = line["fact"] == "answered" && line["call"]["call_id"] == call_id;
            lines.push(line);
            if last {
                return lines;
            }
        }
    }
}

#[test]
fn a_call_is_recorded_step_by_step_for_its_owner_only() {
    let scene = Scene::new(&json!({}));
    let _bus = scene.bus(BusKind::Embedded);
    let mut client = Client::connect(scene.port).in_session("kitchen");
    let _service = scene.service(&mut client);
    client.ask(
        "ovos.tools.invoke",
        &json!({ "name": "slow", "args": { "seconds": 0.25 }, "toolbox_id": "testbed", "call_id": "a" }),
    );
    let facts = until_answered(&scene, "a");
    let facts: Vec<&Value> = facts.iter().collect();
    assert_eq!(
        kinds(&facts),
        "received policy planned wave action_started action_ended answered"
    );
    let (first, last) = (facts[0], facts[facts.len() - 1]);
    assert_eq!(first["asked"]["topic"], "ovos.tools.invoke");
    assert_eq!(first["asked"]["session_id"], "kitchen");
    assert_eq!(first["asked"]["request"]["args"], json!({ "seconds": 0.25 }));
    assert_eq!(last["answer"]["result"]["seconds"], 0.25);
    assert!(last["answer"]["elapsed_ms"].as_u64().unwrap() >= 250, "{last}");
    assert!(last.get("asked").is_none(), "the request is there twice: {last}");
    let passed = last["at_us"].as_u64().unwrap() - first["at_us"].as_u64().unwrap();
    assert!(passed >= 250_000, "{passed} µs for a call of 250 ms");
    let start = &recorded(&scene)[0]["start"];
    assert_eq!((&start["format"], &start["first"]), (&json!(1), &json!(1)));
    let mode = fs::metadata(file(&scene)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "other users can read the arguments");
    let status = client.ask("ovos.tools.status", &json!({}));
    assert!(
        status["facts"]["path"]
            .as_str()
            .unwrap()
            .ends_with("ovos-tools/facts.jsonl")
    );
    assert_eq!(
        (&status["facts"]["lost"], status["facts"].get("trouble")),
        (&json!(0), None)
    );
}

#[test]
fn secrets_and_long_arguments_are_not_recorded() {
    let scene = Scene::new(&json!({ "facts_hide": ["key", "*phrase*"] }));
    let (_bus, _service, mut client) = scene.open();
    let long = "x".repeat(17 << 10);
    let args = [
        json!({ "seconds": 0.0, "key": "Sesame1", "WLAN-Phrase": { "a": "Sesame1" } }),
        json!("{\"seconds\": 0.0, \"key\": \"Sesame1\"}"),
        // It is refused, and its error is not shown.
        json!({ "seconds": "never", "key": "Sesame1" }),
        json!({ "seconds": 0.0, "note": long }),
    ];
    for (call_id, args) in ["a", "b", "c", "d"].iter().zip(&args) {
        client.ask(
            "ovos.tools.invoke",
            &json!({ "name": "slow", "args": args, "toolbox_id": "testbed", "call_id": call_id }),
        );
    }
    let last = until_answered(&scene, "d");
    let arguments = &last[0]["asked"]["request"]["args"];
    assert_eq!(
        arguments["bytes"].as_u64().unwrap(),
        args[3].to_string().len() as u64,
        "{arguments}"
    );
    assert_eq!(arguments["sha256"].as_str().unwrap().len(), 64, "{arguments}");
    let lines = recorded(&scene);
    assert_eq!(
        of_call(&lines, "a")[0]["asked"]["request"]["args"]["key"],
        "(hidden)"
    );
    assert_eq!(kinds(&of_call(&lines, "c")), "received refused answered");
    let text = fs::read_to_string(file(&scene)).unwrap();
    assert!(!text.contains("Sesame1"), "{text}");
}

#[test]
fn numbers_go_on_through_restarts_and_the_size_is_bounded() {
    // Files of 250 kB.
    let scene = Scene::new(&json!({ "facts_mb": 1 }));
    let _bus = scene.bus(BusKind::Embedded);
    let mut client = Client::connect(scene.port);
    let text = "x".repeat(12 << 10);
    let mut starts = Vec::new();
    for run in 0..3 {
        let mut service = scene.service_started(&[]);
        ready(&mut service, &mut client);
        for call in 0..40 {
            client.ask(
                "ovos.tools.invoke",
                &json!({ "name": "ping", "args": { "note": text }, "call_id": format!("r{run}-{call}") }),
            );
        }
        let call_id = format!("r{run}-39");
        until_answered(&scene, &call_id);
        assert_consecutive(&recorded(&scene));
        // Each file says at its beginning which run its facts are of.
        let newest = file(&scene);
        let begin = fs::read_to_string(&newest).unwrap();
        let begin: Value = serde_json::from_str(begin.lines().next().unwrap()).unwrap();
        starts.push(begin["start"]["id"].as_str().unwrap().to_owned());
        // A kill takes no fact that was recorded, and may cut the last.
        service.kill();
        let mut torn = OpenOptions::new().append(true).open(&newest).unwrap();
        torn.write_all(b"{\"number\":1,\"at").unwrap();
    }
    starts.dedup();
    assert_eq!(starts.len(), 3, "each run has an id of its own");
    let newest = file(&scene).display().to_string();
    let sizes =
        ["", ".1", ".2", ".3", ".4"].map(|end| fs::metadata(newest.clone() + end).map_or(0, |it| it.len()));
    assert!(sizes.iter().sum::<u64>() <= 1_000_000, "{sizes:?}");
    assert!(sizes[3] > 0 && sizes[4] == 0, "{sizes:?}");
}

#[test]
fn the_facts_are_streamed_after_any_that_is_known() {
    let mut stage = Stage::with_plugins(&["testbed"], &[], Scene::new(&json!({})));
    let mut live = Stream::after(&stage.scene, None);
    let call = |stage: &mut Stage, call_id: &str| {
        stage.client.ask(
            "ovos.tools.invoke",
            &json!({ "name": "ping", "args": {}, "call_id": call_id }),
        );
    };
    call(&mut stage, "a");
    let lines = live.until_answered("a");
    let start = lines[0]["start"]["id"].as_str().unwrap().to_owned();
    assert_consecutive(&lines);
    let last = lines.last().unwrap()["number"].as_u64().unwrap();
    call(&mut stage, "b");
    live.until_answered("b");
    let place = format!("{start}/{last}");
    // Once from the record, with what happens then.
    let mut again = Stream::after(&stage.scene, Some(&place));
    call(&mut stage, "c");
    let lines = again.until_answered("c");
    assert_eq!(lines[0]["start"]["id"], start.as_str());
    assert_consecutive(&lines);
    assert_eq!(numbers(&lines)[0], last + 1);
    assert_eq!(
        kinds(&of_call(&lines, "b")),
        "received policy planned wave action_started action_ended answered"
    );
    let last = numbers(&lines).pop().unwrap();

    // The next run of the service has what the last one recorded.
    stage.service.kill();
    stage.service = crate::support::stage::serve(&stage.scene, &mut stage.client, &[]);
    call(&mut stage, "d");
    let lines = Stream::after(&stage.scene, Some(&place)).until_answered("d");
    assert_consecutive(&lines);
    let starts: Vec<&Value> = lines.iter().filter(|line| line.get("start").is_some()).collect();
    assert_eq!(starts.len(), 2, "{lines:#?}");
    let after = format!("{start}/{last}");
    let lines = Stream::after(&stage.scene, Some(&after)).until_answered("d");
    assert!(of_call(&lines, "c").is_empty(), "{lines:#?}");

    // A place that no run has: everything from the oldest.
    let lines = Stream::after(&stage.scene, Some("another/7")).until_answered("d");
    assert_eq!(numbers(&lines)[0], 1);

    // What is not in the record was lost, and the stream says so.
    fs::remove_file(file(&stage.scene)).unwrap();
    call(&mut stage, "e");
    let mut stream = Stream::after(&stage.scene, Some(&after));
    call(&mut stage, "f");
    let lines = stream.until_answered("f");
    let lost = lines.iter().find(|line| line.get("lost").is_some());
    assert!(lost.is_some(), "{lines:#?}");
    let of_this_run = lines.iter().skip_while(|line| line.get("lost").is_none());
    assert_consecutive(&of_this_run.cloned().collect::<Vec<_>>());
}

#[test]
fn followers_of_the_facts_leave_room_for_a_stop() {
    let mut stage = Stage::with_plugins(&["testbed"], &[], Scene::new(&json!({})));
    let mut streams: Vec<Stream> = (0..8).map(|_| Stream::after(&stage.scene, None)).collect();
    for stream in &mut streams {
        stream.next();
    }
    let refused = Stream::after(&stage.scene, None).next();
    assert!(
        refused["error"]
            .as_str()
            .unwrap()
            .contains("8 programs already follow"),
        "{refused}"
    );
    let mut socket = UnixStream::connect(stage.scene.sandbox.path("run/ovos-tools/control.sock")).unwrap();
    socket.set_read_timeout(Some(DEADLINE)).unwrap();
    socket.write_all(b"{\"do\":\"stop\"}\n").unwrap();
    let mut answer = String::new();
    BufReader::new(socket).read_line(&mut answer).unwrap();
    assert!(answer.contains("\"ok\":true"), "{answer}");
    // One that leaves makes room.
    streams.pop();
    let end = Instant::now() + DEADLINE;
    while Stream::after(&stage.scene, None).next().get("error").is_some() {
        assert!(Instant::now() < end, "its place is not free");
    }
    let status = stage.client.ask("ovos.tools.status", &json!({}));
    assert_eq!(status["toolboxes"][0]["latched"], true);
}

#[test]
fn with_0_mb_nothing_is_written_and_facts_are_streamed() {
    let mut stage = Stage::with_plugins(&["testbed"], &[], Scene::new(&json!({ "facts_mb": 0 })));
    let mut stream = Stream::after(&stage.scene, None);
    stream.next();
    stage.client.ask(
        "ovos.tools.invoke",
        &json!({ "name": "ping", "args": {}, "call_id": "a" }),
    );
    assert_consecutive(&stream.until_answered("a"));
    assert!(!file(&stage.scene).exists());
    let status = stage.client.ask("ovos.tools.status", &json!({}));
    assert_eq!(status["facts"], json!({ "lost": 0 }));
}

/// Calls are answered and a stop is obeyed, and the status mentions the trouble.
#[track_caller]
fn holds_up_nothing(stage: &mut Stage, trouble: &str) {
    let text = "x".repeat(8 << 10);
    let mut longest = Duration::ZERO;
    let end = Instant::now() + DEADLINE;
    loop {
        for _ in 0..50 {
            let start = Instant::now();
            let answer = stage.client.invoke("ping", &json!({ "ignored": text }));
            longest = longest.max(start.elapsed());
            assert!(answer.get("error").is_none(), "{answer}");
        }
        let status = stage.client.ask("ovos.tools.status", &json!({}));
        let reason = status["facts"]["trouble"].as_str().unwrap_or_default();
        if reason.contains(trouble) {
            break;
        }
        assert!(
            Instant::now() < end,
            "the status does not mention it: {}",
            status["facts"]
        );
    }
    let start = Instant::now();
    let stopped = stage.client.ask("ovos.tools.stop", &json!({}));
    assert_eq!(stopped["toolboxes"][0]["ok"], true, "{stopped}");
    assert!(
        start.elapsed() < PROMPT && longest < PROMPT,
        "{longest:?} {:?}",
        start.elapsed()
    );
}

/// The file is a pipe that nothing reads.
#[test]
fn a_disk_that_does_not_respond_delays_nothing() {
    let scene = Scene::new(&json!({}));
    let path = file(&scene);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
    assert!(made.success());
    let mut stage = Stage::with_plugins(&["testbed"], &[], scene);
    holds_up_nothing(&mut stage, "has not responded");
    // The facts are streamed all the same.
    let mut stream = Stream::after(&stage.scene, Some("none/0"));
    stream.next();
    stage.client.ask(
        "ovos.tools.invoke",
        &json!({ "name": "ping", "args": {}, "call_id": "z" }),
    );
    stream.until_answered("z");
}

/// The file is on a device that takes nothing. When it is a file again, what was lost is said there.
#[test]
fn a_full_disk_delays_nothing_and_what_it_lost_is_told() {
    let scene = Scene::new(&json!({}));
    let path = file(&scene);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink("/dev/full", &path).unwrap();
    let mut stage = Stage::with_plugins(&["testbed"], &[], scene);
    holds_up_nothing(&mut stage, "No space left");
    fs::remove_file(&path).unwrap();
    until_recorded(&stage.scene, "facts that are recorded again", |lines| {
        stage.client.invoke("ping", &json!({}));
        lines.iter().any(|line| line["fact"] == "answered").then_some(())
    });
    let status = stage.client.ask("ovos.tools.status", &json!({}));
    assert!(status["facts"].get("trouble").is_none(), "{status}");
    let lines = recorded(&stage.scene);
    let lost = lines.iter().filter(|line| line.get("lost").is_some()).cloned();
    let lost = numbers(&lost.collect::<Vec<_>>());
    assert_eq!(lost[0], 1, "every fact from the first on");
    assert_eq!(status["facts"]["lost"], lost.len());
    assert_consecutive(&recorded(&stage.scene));
    let log = stage.service.output();
    assert!(
        log.contains("the record of calls is not written") && log.contains("written again"),
        "{log}"
    );
}

#[test]
fn the_key_of_the_former_log_is_accepted_and_explained() {
    let scene = Scene::new(&json!({ "log_calls": true }));
    let (_bus, _service, _client) = scene.open();
    assert!(!scene.sandbox.path("state/ovos-tools/calls.jsonl").exists());
    let doctor = scene.ours("doctor", &["doctor"]).finish();
    assert!(
        doctor.contains("log_calls") && doctor.contains("facts.jsonl"),
        "{doctor}"
    );
}
