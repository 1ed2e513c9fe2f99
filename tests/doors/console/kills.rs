//! A console that is killed again and again while it writes: the history has each fact of the record once.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::console::{lines, until};
use crate::support::console::start;
use crate::support::process::DEADLINE;
use crate::support::scene::Scene;

const SEED: u64 = 0x0c05_0135;
const KILLS: usize = 200;

/// How many lines a console that will be killed gets at most: there are enough for all of them.
const LINES: usize = 38;

/// The facts of a call.
const OF_CALL: u64 = 4;

/// What the service has recorded: three runs, the second of which is in two files, and facts that were lost.
fn record() -> Vec<String> {
    let start = |run: usize, first: u64| {
        let time_us = 1_800_000_000_000_000 + i64::try_from(run).unwrap() * 1_000_000;
        json!({"start": {"id": format!("run-{run}"), "format": 1, "version": "1", "time_us": time_us, "first": first}})
    };
    let mut lines = Vec::new();
    let mut number = 0;
    for (run, count) in [(1, 2000), (2, 2000), (3, 4000)] {
        let first = number + 1;
        lines.push(start(run, first));
        for at in 0..count {
            number += 1;
            if run == 2 && at == 1000 {
                lines.push(start(run, first));
            }
            if run == 3 && at == 10 {
                lines.push(json!({"lost": {"from": number, "to": number + 4}}));
                number += 5;
            }
            let call = at / OF_CALL;
            let call = json!({"number": call, "call_id": format!("{run}-{call}"), "tool": "t", "toolbox_id": "b", "effect": "read"});
            lines.push(
                json!({"number": number, "at_us": at, "fact": "wave", "call": call, "wave": at % OF_CALL}),
            );
        }
    }
    lines.iter().map(Value::to_string).collect()
}

/// Stands in the place of the service: sends what comes after the fact that a follower knows, and counts the lines.
struct Service {
    lines: Arc<Vec<String>>,
    sent: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

impl Service {
    fn listen(self, socket: UnixListener) {
        std::thread::spawn(move || {
            for stream in socket.incoming() {
                let (lines, sent) = (self.lines.clone(), self.sent.clone());
                let most = self.most.load(Ordering::SeqCst);
                std::thread::spawn(move || _ = serve(stream.unwrap(), &lines, &sent, most));
            }
        });
    }
}

fn serve(stream: UnixStream, lines: &[String], sent: &AtomicUsize, most: usize) -> std::io::Result<()> {
    let mut request = String::new();
    BufReader::new(&stream).read_line(&mut request)?;
    let Ok(request) = serde_json::from_str::<Value>(&request) else {
        return Ok(());
    };
    assert_eq!(request["do"], "facts", "{request}");
    let after = request["after"]
        .as_str()
        .map(|after| after.split_once('/').unwrap());
    let mut run = String::new();
    let mut is_known = after.is_some();
    let mut out = &stream;
    for line in lines {
        let output: Value = serde_json::from_str(line).unwrap();
        if let Some(id) = output["start"]["id"].as_str() {
            run = id.to_owned();
        } else if let Some((of, number)) = after
            && is_known
        {
            let last = output["number"]
                .as_u64()
                .or(output["lost"]["to"].as_u64())
                .unwrap();
            is_known = run != of || last < number.parse().unwrap();
            continue;
        }
        writeln!(out, "{line}")?;
        if sent.fetch_add(1, Ordering::SeqCst) + 1 == most {
            break;
        }
    }
    // Until the follower is gone.
    BufReader::new(&stream).read_line(&mut String::new())?;
    Ok(())
}

#[test]
fn no_kill_loses_a_fact_or_writes_one_twice() {
    let scene = Scene::new(&json!({"doors": {"console": {"address": "127.0.0.1:0"}}}));
    let lines_of_service = Arc::new(record());
    let sent = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(AtomicUsize::new(LINES));
    let socket = scene.sandbox.path("run/ovos-tools");
    std::fs::create_dir_all(&socket).unwrap();
    Service {
        lines: lines_of_service.clone(),
        sent: sent.clone(),
        most: most.clone(),
    }
    .listen(UnixListener::bind(socket.join("control.sock")).unwrap());

    let mut random = fastrand::Rng::with_seed(SEED);
    for kill in 0..KILLS {
        sent.store(0, Ordering::SeqCst);
        let mut console = start(&scene);
        let wanted = random.usize(1..=LINES);
        let end = Instant::now() + DEADLINE;
        while sent.load(Ordering::SeqCst) < wanted {
            assert!(Instant::now() < end, "kill {kill}: {}", console.log());
            std::thread::yield_now();
        }
        // Within the time that a batch is gathered and written.
        std::thread::park_timeout(Duration::from_micros(random.u64(0..90_000)));
        console.kill();
    }
    most.store(usize::MAX, Ordering::SeqCst);
    let _console = start(&scene);
    let expected: BTreeSet<(u64, u64)> = lines_of_service
        .iter()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .scan(0, |run, line| {
            *run += u64::from(
                line["start"]["first"].is_u64() && line["start"]["id"] != json!(format!("run-{run}")),
            );
            Some((*run, line["number"].as_u64()))
        })
        .filter_map(|(run, number)| Some((run, number?)))
        .collect();
    let last = "3-999";
    until(&scene, &["show", last, "--json"], "last call", |output| {
        output.matches("\"wave\"").count() >= 4
    });
    let found: Vec<(u64, u64)> = lines(&scene, &["export"])
        .iter()
        .flat_map(|call| {
            let run = call["run"].as_u64().unwrap();
            let facts = call["facts"].as_array().unwrap().clone();
            facts
                .into_iter()
                .map(move |fact| (run, fact["number"].as_u64().unwrap()))
        })
        .collect();
    let once: BTreeSet<(u64, u64)> = found.iter().copied().collect();
    assert_eq!(found.len(), once.len(), "a fact is there twice");
    let missing: Vec<_> = expected.difference(&once).collect();
    assert!(
        missing.is_empty() && once.len() == expected.len(),
        "missing: {missing:?}"
    );
}
