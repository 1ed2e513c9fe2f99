//! Latency of an emergency stop while the service and the bus are busy.
//!
//! Three times of one clock (CLOCK_MONOTONIC): when the client sends, when the service has read the frame (from its
//! log) and when the toolbox's `halt` is entered (testbed records it).

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

use super::measure::quantile;
use super::peers::{Bus, BusKind, Question};
use super::table::Table;
use super::wire::{Wire, is};

/// Calls in the queue when the stop arrives.
const QUEUED: usize = 1000;

/// Unrelated messages per second on the bus.
const NOISE: u32 = 1000;

/// The most stops; the 99th percentile needs at least a hundred.
const STOPS: usize = 120;
/// The longest time that they may take.
const TIME: Duration = Duration::from_secs(45);

/// Time after which an answer counts as lost.
const PATIENCE: Duration = Duration::from_secs(20);

/// Latencies in milliseconds, one per stop.
pub(crate) struct Stops {
    pub(crate) in_service: Vec<f64>,
    pub(crate) end_to_end: Vec<f64>,
    pub(crate) queued: usize,
    /// Messages per second that the bus carried besides the calls.
    pub(crate) noise: f64,
}

pub(crate) fn rows(table: &mut Table) -> io::Result<()> {
    eprintln!("bench: emergency stops");
    let stops = measure()?;
    let figure = |times: &Vec<f64>| {
        let at = |share| quantile(times.clone(), share);
        (
            at(0.99),
            format!("{:.2} / {:.2} / {:.2} ms", at(0.5), at(0.99), at(1.0)),
        )
    };
    table.heading(format!(
        "emergency stop ({} of them, {} calls queued, {:.0} messages/s on the bus), p50 / p99 / worst",
        stops.in_service.len(),
        stops.queued,
        stops.noise
    ));
    let (p99, text) = figure(&stops.in_service);
    table.goal("  frame read -> halt entered", text, "p99 < 10 ms", p99 < 10.0);
    table.note("  client sends -> halt entered", figure(&stops.end_to_end).1);
    Ok(())
}

fn measure() -> io::Result<Stops> {
    let dir = tempfile::tempdir()?;
    let motor_log = dir.path().join("motors");
    let bus = Bus::start(BusKind::Embedded);
    let service = bus.service(&json!({
        "motor_log": motor_log,
        "limits": {"max_waiting": 4 * QUEUED, "max_wait_ms": 600_000},
    }));
    let noise = Noise::start(bus.join());
    let mut wire = bus.join();
    let mut sent = Vec::new();
    let mut least = usize::MAX;
    let start = Instant::now();
    while sent.len() < STOPS && start.elapsed() < TIME {
        let (at, queued) = stop(&mut wire)?;
        sent.push(at);
        least = least.min(queued);
    }
    let noise = noise.end();
    let log = service.process.output();
    let read: Vec<u64> = log
        .lines()
        .filter_map(|line| {
            line.split_once("read_ns=")?
                .1
                .split_whitespace()
                .next()?
                .parse()
                .ok()
        })
        .collect();
    let motors = std::fs::read_to_string(&motor_log)?;
    let halted: Vec<u64> = motors
        .lines()
        .filter_map(|line| line.split_once(" emergency ")?.0.parse().ok())
        .collect();
    if read.len() != sent.len() {
        return Err(io::Error::other(format!(
            "{} stops were sent and {} read",
            sent.len(),
            read.len()
        )));
    }
    let mut stops = Stops {
        in_service: Vec::new(),
        end_to_end: Vec::new(),
        queued: least,
        noise,
    };
    for (sent, read) in sent.into_iter().zip(read) {
        let halted = halted.iter().find(|halted| **halted >= read);
        let halted = *halted.ok_or_else(|| io::Error::other("a stop was read and nothing halted"))?;
        stops.in_service.push((halted - read) as f64 / 1e6);
        stops.end_to_end.push((halted - sent) as f64 / 1e6);
    }
    Ok(stops)
}

/// Fills the queue, stops, waits until every call is answered, and resumes. Returns the time of sending and the number
/// of calls.
fn stop(wire: &mut Wire) -> io::Result<(u64, usize)> {
    let call = Question::invoke(
        "assemble",
        &json!({"subsystems": ["left_arm"], "steps": 1000, "step_ms": 1000}),
    );
    let status = Question::new("ovos.tools.status", &json!({}));
    let stop = Question::new("ovos.tools.stop", &json!({"toolbox_id": "testbed"}));
    (0..QUEUED).for_each(|_| wire.put(call.request.as_bytes()));
    let queued = loop {
        wire.send(status.request.as_bytes())?;
        let answer = wire.until(&status.answer, |text| serde_json::from_slice::<Value>(text))??;
        let calls = answer["data"]["calls"].as_array().map_or(0, Vec::len);
        if calls >= QUEUED {
            break calls;
        }
    };
    let sent = monotonic_ns();
    wire.send(stop.request.as_bytes())?;
    let start = Instant::now();
    let (mut answered, mut stopped) = (0, None);
    while answered < QUEUED || stopped.is_none() {
        while let Some(text) = wire.take()? {
            if is(text, &call.answer) {
                answered += 1;
            } else if is(text, &stop.answer) {
                stopped = Some(serde_json::from_slice::<Value>(text)?);
            }
        }
        if answered < QUEUED || stopped.is_none() {
            // The background traffic continues, so no read blocks for long.
            if start.elapsed() > PATIENCE {
                let text =
                    format!("{answered} of {QUEUED} calls were answered within {PATIENCE:?} of a stop");
                return Err(io::Error::other(text));
            }
            wire.read()?;
        }
    }
    let stopped = stopped.unwrap_or_default();
    let toolbox = &stopped["data"]["toolboxes"][0];
    let data = json!({"toolbox_id": toolbox["toolbox_id"], "stop_id": toolbox["stop_id"]});
    let resume = Question::new("ovos.tools.resume", &data);
    wire.send(resume.request.as_bytes())?;
    let resumed = wire.until(&resume.answer, |text| serde_json::from_slice::<Value>(text))??;
    if resumed["data"]["toolboxes"][0]["ok"] != true {
        return Err(io::Error::other(format!(
            "not resumed: {resumed}; stopped: {stopped}"
        )));
    }
    Ok((sent, queued))
}

/// Traffic beside the stops: one thread floods the bus, another reads its own socket.
struct Noise {
    over: Arc<AtomicBool>,
    talking: thread::JoinHandle<f64>,
}

impl Noise {
    fn start(mut wire: Wire) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let ends = over.clone();
        let mut writer = wire.writer().expect("a socket can be cloned");
        let talking = thread::spawn(move || {
            let noise = Question::new("bench.noise", &json!({"text": "x".repeat(100)}));
            let start = Instant::now();
            let mut sent = 0;
            while !ends.load(Ordering::Relaxed) {
                let due = (start.elapsed().as_secs_f64() * f64::from(NOISE)) as u32;
                (sent..due).for_each(|_| writer.put(noise.request.as_bytes()));
                sent = due;
                if writer.flush().is_err() {
                    break;
                }
                thread::sleep(Duration::from_millis(1));
            }
            f64::from(sent) / start.elapsed().as_secs_f64()
        });
        // Ends with the bus.
        thread::spawn(move || while wire.take().is_ok_and(|text| text.is_some()) || wire.read().is_ok() {});
        Self { over, talking }
    }

    fn end(self) -> f64 {
        self.over.store(true, Ordering::Relaxed);
        self.talking.join().unwrap_or(0.0)
    }
}

pub(crate) fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}
