//! Costs of the service and the bus, end to end: one table of ratios from one run, with goals.
//!
//! Buses, services and responders run in separate processes; this one is the client. Variants are measured alternately,
//! round by round, so that ratios hold on a busy machine where absolute values do not. `make bench` builds what it
//! needs and runs it; it takes about nine minutes. `cargo bench --bench end_to_end -- agent opm` runs some of it: `stop`,
//! `lists`, `brake`, `embedded`, `isolation`, `console`, `mcp`, `agent`, `opm`, `mounts`, `fabric`, `python`, `start`, `weight`.
#![allow(clippy::print_stdout, reason = "a bench prints its figures")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a bench that cannot run has no figures"
)]
#![allow(clippy::print_stderr, reason = "it says what it does meanwhile")]

mod support {
    pub(crate) mod agent;
    pub(crate) mod brake;
    pub(crate) mod console;
    pub(crate) mod contest;
    pub(crate) mod crash;
    pub(crate) mod door;
    pub(crate) mod embedded;
    pub(crate) mod fabric;
    pub(crate) mod isolation;
    pub(crate) mod lines;
    pub(crate) mod lists;
    pub(crate) mod measure;
    pub(crate) mod memory;
    pub(crate) mod mounts;
    pub(crate) mod opm;
    pub(crate) mod peers;
    #[allow(dead_code, reason = "serves the tests, too")]
    #[path = "../../tests/support/process.rs"]
    pub(crate) mod process;
    pub(crate) mod published;
    #[allow(dead_code, reason = "serves the tests, too")]
    #[path = "../../tests/support/python.rs"]
    pub(crate) mod python;
    pub(crate) mod responder;
    pub(crate) mod start;
    pub(crate) mod stop;
    pub(crate) mod table;
    pub(crate) mod weight;
    pub(crate) mod wire;
}

use std::io;
use std::time::Instant;

use support::table::Table;
use support::{
    agent, brake, console, door, embedded, fabric, isolation, lists, mounts, opm, peers, published, start,
    stop, weight,
};

/// Adds rows to the table.
type Rows = fn(&mut Table) -> io::Result<()>;

/// The parts, in the order of the table.
const PARTS: [(&str, Rows); 14] = [
    ("stop", stop::rows),
    ("lists", lists::rows),
    ("brake", brake::rows),
    ("embedded", embedded::rows),
    ("isolation", isolation::rows),
    ("console", console::rows),
    ("mcp", door::rows),
    ("agent", agent::rows),
    ("opm", opm::rows),
    ("mounts", mounts::rows),
    ("fabric", fabric::rows),
    ("python", published::rows),
    ("start", start::rows),
    ("weight", weight::rows),
];

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(at) = arguments.iter().position(|argument| argument == peers::ROLE) {
        return peers::play(
            &arguments[at + 1],
            arguments[at + 2].parse().map_err(io::Error::other)?,
        );
    }
    if arguments.iter().any(|argument| argument == "--test") {
        // `cargo test --benches` only checks that it starts.
        return Ok(());
    }
    let wanted: Vec<&String> = arguments[1..]
        .iter()
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    if let Some(unknown) = wanted
        .iter()
        .find(|wanted| PARTS.iter().all(|(name, _)| name != *wanted))
    {
        let names = PARTS.map(|(name, _)| name).join(", ");
        return Err(io::Error::other(format!(
            "no part is called {unknown}; there are {names}"
        )));
    }
    let start = Instant::now();
    let mut table = Table::default();
    for (name, rows) in PARTS {
        if wanted.is_empty() || wanted.iter().any(|wanted| *wanted == name) {
            rows(&mut table)?;
        }
    }
    println!("\n{}\n\n{table}", machine());
    println!(
        "a figure before a slash is ours; took {} s",
        start.elapsed().as_secs()
    );
    Ok(())
}

fn machine() -> String {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let cpu = read("/proc/cpuinfo");
    let model = cpu
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    format!(
        "{cores} cores ({}), Linux {}, load {}",
        model.map_or("unknown", |(_, name)| name),
        read("/proc/sys/kernel/osrelease").trim(),
        read("/proc/loadavg")
            .split_whitespace()
            .next()
            .unwrap_or("unknown"),
    )
}
