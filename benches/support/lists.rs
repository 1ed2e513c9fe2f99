//! Stops while many tools are listed: 7,000 tools, ten clients that ask for page after page, and one that stops.
//!
//! Every client hears every page, as on any OVOS bus, so what a stop's answer could wait behind is there. The bus is the
//! service's own.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::measure::quantile;
use super::peers::{Peer, Question, plugins, service_command};
use super::process::{Sandbox, free_port};
use super::stop::monotonic_ns;
use super::table::Table;
use super::wire::Wire;

/// Tools, and the bytes of each one's description: those of mounted servers have some hundreds.
const TOOLS: usize = 7000;
const DESCRIPTION: usize = 500;

/// Clients that list, and the tools that they ask for at a time.
const CLIENTS: usize = 10;
const PAGE: usize = 500;

/// Greatest number of stops and greatest duration; the 99th percentile needs at least a hundred.
const STOPS: usize = 120;
const TIME: Duration = Duration::from_secs(60);

/// How long the service may take to load the tools.
const LOADING: Duration = Duration::from_secs(300);

/// How long something moves before it is stopped.
const MOVES: Duration = Duration::from_millis(50);

pub(crate) fn rows(table: &mut Table) -> io::Result<()> {
    eprintln!("bench: stops while tools are listed");
    let port = free_port();
    let sandbox = Sandbox::new();
    let motor_log = sandbox.path("motors");
    let testbed = json!({ "motor_log": motor_log, "grown": TOOLS, "grown_bytes": DESCRIPTION });
    let conf = json!({
        "websocket": {"host": "127.0.0.1", "port": port},
        "PHAL": {"ovos-phal-plugin-tools": {"testbed": testbed}},
    });
    std::fs::write(sandbox.path("config/mycroft/mycroft.conf"), conf.to_string())?;
    let mut command = service_command(&sandbox);
    command
        .args(["--embedded-bus", "always", "--plugins"])
        .arg(plugins("bench-plugins"));
    let service = Peer::start("ovos-tools", sandbox, command);
    // Printed when the toolboxes are loaded; without optimization, the schemas of so many tools take a minute.
    let start = Instant::now();
    while !service.process.output().contains("ready after") {
        if start.elapsed() > LOADING {
            return Err(io::Error::other(service.process.log()));
        }
        thread::sleep(Duration::from_millis(50));
    }
    let mut wire = Wire::join(port)?;

    let over = Arc::new(AtomicBool::new(false));
    let lists = Arc::new(AtomicU64::new(0));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let (over, lists) = (over.clone(), lists.clone());
            thread::spawn(move || list(port, number, &over, &lists))
        })
        .collect();
    let start = Instant::now();
    let (mut starts, mut answers) = (Vec::new(), Vec::new());
    while starts.len() < STOPS && start.elapsed() < TIME {
        let (at, answer_ms) = stop(&mut wire)?;
        starts.push(at);
        answers.push(answer_ms);
    }
    let lists_per_s = lists.load(Ordering::Relaxed) as f64 / start.elapsed().as_secs_f64();
    over.store(true, Ordering::Relaxed);
    for client in clients {
        // A client ends with an error when the bus ends before it; only its listing counts.
        drop(client.join());
    }

    let motors = std::fs::read_to_string(&motor_log)?;
    let halts: Vec<u64> = motors
        .lines()
        .filter_map(|line| line.split_once(" emergency ")?.0.parse().ok())
        .collect();
    let halted = starts.iter().map(|starts| {
        let halt = halts.iter().find(|halt| *halt >= starts);
        halt.map(|halt| (halt - starts) as f64 / 1e6)
    });
    let halted: Option<Vec<f64>> = halted.collect();
    let halted = halted.ok_or_else(|| io::Error::other("a stop halted nothing"))?;
    let figure = |times: &Vec<f64>| {
        let at = |share| quantile(times.clone(), share);
        (
            at(0.99),
            format!("{:.1} / {:.1} / {:.1} ms", at(0.5), at(0.99), at(1.0)),
        )
    };
    table.heading(format!(
        "emergency stop ({} of them) while {CLIENTS} clients list {TOOLS} tools in pages of {PAGE} ({lists_per_s:.1} lists/s), p50 / p99 / \
         worst",
        starts.len()
    ));
    let (p99, text) = figure(&halted);
    table.goal("  client sends -> halt entered", text, "p99 < 10 ms", p99 < 10.0);
    let (p99, text) = figure(&answers);
    table.goal("  client sends -> its answer", text, "p99 < 50 ms", p99 < 50.0);
    Ok(())
}

/// Lists all tools again and again. Each client hears the pages of the others, too, and knows its own by the context,
/// which is at the end of a frame.
fn list(port: u16, number: usize, over: &AtomicBool, lists: &AtomicU64) -> io::Result<()> {
    /// The part of a frame in which the context is.
    const END: usize = 300;
    let mut wire = Wire::join(port)?;
    let own = format!(r#""bench":"lister {number}""#);
    let mut cursor = Value::Null;
    while !over.load(Ordering::Relaxed) {
        let data = json!({"limit": PAGE, "cursor": cursor});
        let request = format!(r#"{{"type":"ovos.tools.list","data":{data},"context":{{{own}}}}}"#);
        wire.send(request.as_bytes())?;
        let page = loop {
            let found = wire.until("ovos.tools.list.response", |text| {
                let end = &text[text.len().saturating_sub(END)..];
                let is_own = end.windows(own.len()).any(|part| part == own.as_bytes());
                is_own.then(|| serde_json::from_slice::<Value>(text))
            })?;
            if let Some(page) = found {
                break page?;
            }
        };
        cursor = page["data"]["next_cursor"].clone();
        if cursor.is_null() {
            lists.fetch_add(1, Ordering::Relaxed);
        }
    }
    Ok(())
}

/// Moves something and stops it. Returns when the stop was sent, and how many milliseconds later its answer was read.
fn stop(wire: &mut Wire) -> io::Result<(u64, f64)> {
    let call = Question::invoke(
        "assemble",
        &json!({"subsystems": ["left_arm"], "steps": 1000, "step_ms": 10}),
    );
    let stop = Question::new("ovos.tools.stop", &json!({"toolbox_id": "testbed"}));
    wire.send(call.request.as_bytes())?;
    let start = Instant::now();
    while start.elapsed() < MOVES {
        // What the bus sends meanwhile is read, as a client does.
        while wire.take()?.is_some() {}
        wire.read()?;
    }
    let (at, sent) = (monotonic_ns(), Instant::now());
    let stopped = ask(wire, &stop)?;
    let took = sent.elapsed().as_secs_f64() * 1e3;
    let toolbox = &stopped["toolboxes"][0];
    let resume = json!({"toolbox_id": toolbox["toolbox_id"], "stop_id": toolbox["stop_id"]});
    let resumed = ask(wire, &Question::new("ovos.tools.resume", &resume))?;
    if resumed["toolboxes"][0]["ok"] != true {
        return Err(io::Error::other(format!(
            "not resumed: {resumed}; stopped: {stopped}"
        )));
    }
    Ok((at, took))
}

fn ask(wire: &mut Wire, question: &Question) -> io::Result<Value> {
    wire.send(question.request.as_bytes())?;
    let frame = wire.until(&question.answer, |text| serde_json::from_slice::<Value>(text))?;
    Ok(frame.map_err(io::Error::other)?["data"].clone())
}
