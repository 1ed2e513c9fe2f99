//! Costs of the service and the bus, end to end: one table of ratios from one run, with goals.
//!
//! Buses, services and responders run in separate processes; this one is the client. Variants are measured alternately,
//! round by round, so that ratios hold on a busy machine where absolute values do not. `make bench` builds what it
//! needs and runs it; it takes about eight minutes. `cargo bench --bench end_to_end -- agent opm` runs some of it: `stop`,
//! `brake`, `embedded`, `isolation`, `mcp`, `agent`, `opm`, `mounts`, `python`, `start`.
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
    pub(crate) mod crash;
    pub(crate) mod door;
    pub(crate) mod lines;
    pub(crate) mod measure;
    pub(crate) mod memory;
    pub(crate) mod mounts;
    pub(crate) mod opm;
    pub(crate) mod peers;
    #[allow(dead_code, reason = "serves the tests, too")]
    #[path = "../../tests/support/process.rs"]
    pub(crate) mod process;
    #[allow(dead_code, reason = "serves the tests, too")]
    #[path = "../../tests/support/python.rs"]
    pub(crate) mod python;
    pub(crate) mod start;
    pub(crate) mod stop;
    pub(crate) mod table;
    pub(crate) mod wire;
}

use std::io;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use support::measure::{Rounds, latency, micros, per_second, quantile, throughput};
use support::peers::{self, Bus, BusKind, ECHO, Question, blob};
use support::table::Table;
use support::wire::Wire;
use support::{agent, brake, crash, door, mounts, opm, python, start, stop};

const ROUNDS: usize = 7;

/// Questions per turn that are asked one at a time.
const ONE_BY_ONE: usize = 500;

/// Duration of a turn with many questions in flight.
const TURN: Duration = Duration::from_millis(600);

/// Questions in flight then.
const MANY: usize = 64;

/// Questions for a list in flight: the reference serves them one after the other.
const LISTS: usize = 8;

/// Number of tools of the services whose lists are compared.
const TOOLS: usize = 100;

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
    let wanted = |name: &str| {
        let mut names = arguments[1..]
            .iter()
            .filter(|argument| !argument.starts_with('-'))
            .peekable();
        names.peek().is_none() || names.any(|wanted| wanted == name)
    };
    let begun = Instant::now();
    let mut table = Table::default();
    if wanted("stop") {
        stops(&mut table)?;
    }
    if wanted("brake") {
        brakes(&mut table)?;
    }
    if wanted("embedded") {
        embedded(&mut table)?;
    }
    if wanted("isolation") {
        isolated(&mut table)?;
    }
    if wanted("mcp") {
        mcp(&mut table)?;
    }
    if wanted("agent") {
        agent::rows(&mut table, ROUNDS, ONE_BY_ONE, TURN)?;
    }
    if wanted("opm") {
        opm::rows(&mut table, ROUNDS, ONE_BY_ONE, TURN)?;
    }
    if wanted("mounts") {
        mounts::rows(&mut table, ROUNDS, ONE_BY_ONE, TURN)?;
    }
    if wanted("python") {
        match python::python() {
            Some(_) => published(&mut table)?,
            None => {
                table.heading("compared with the published packages: SKIPPED, there are none on this machine")
            }
        }
    }
    if wanted("start") {
        started(&mut table)?;
    }
    println!("\n{}\n\n{table}", machine());
    println!(
        "a figure before a slash is ours; took {} s",
        begun.elapsed().as_secs()
    );
    Ok(())
}

fn stops(table: &mut Table) -> io::Result<()> {
    eprintln!("bench: emergency stops");
    let stops = stop::measure()?;
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

fn brakes(table: &mut Table) -> io::Result<()> {
    eprintln!("bench: emergency brakes of a drone");
    let Some(brakes) = brake::measure()? else {
        table.heading(
            "emergency brake of a drone: SKIPPED, there is no mavsdk_server (scripts/venv.sh gets it)",
        );
        return Ok(());
    };
    table.heading(format!(
        "emergency brake of a drone in flight ({} of them), p50 / p99 / worst",
        brakes.raw.len()
    ));
    let text = |less: f64| {
        let at = |share| quantile(brakes.raw.clone(), share) - less;
        format!("{:.2} / {:.2} / {:.2} ms", at(0.5), at(0.99), at(1.0))
    };
    table.note(
        "  client sends -> zero velocity in the simulator, everything included",
        text(0.0),
    );
    table.note(
        "    of it the simulator's own time to notice something (median)",
        format!("{:.2} ms", brakes.simulator),
    );
    let p99 = quantile(brakes.raw.clone(), 0.99) - brakes.simulator;
    table.goal(
        "  the same without the simulator's own",
        text(brakes.simulator),
        "p99 < 20 ms",
        p99 < 20.0,
    );
    Ok(())
}

fn add() -> Question {
    Question::invoke("add", &json!({"a": 20, "b": 22}))
}

/// Two services with one question each, on separate buses, so that neither reads the other's messages.
struct Contest {
    ours: (Wire, Question),
    theirs: (Wire, Question),
}

impl Contest {
    fn one_by_one(&mut self) -> io::Result<Rounds> {
        let Self { ours, theirs } = self;
        Rounds::play(
            ROUNDS,
            &mut [
                &mut || latency(&mut ours.0, &ours.1, ONE_BY_ONE, TURN),
                &mut || latency(&mut theirs.0, &theirs.1, ONE_BY_ONE, TURN),
            ],
        )
    }

    fn many(&mut self, under_way: usize) -> io::Result<Rounds> {
        let Self { ours, theirs } = self;
        Rounds::play(
            ROUNDS,
            &mut [
                &mut || throughput(&mut ours.0, &ours.1, under_way, TURN),
                &mut || throughput(&mut theirs.0, &theirs.1, under_way, TURN),
            ],
        )
    }
}

fn embedded(table: &mut Table) -> io::Result<()> {
    eprintln!("bench: invoke over the embedded bus");
    for (isolation, wanted_time, wanted_rate) in [("process", 1.25, 0.8), ("in_process", 1.25, 0.7)] {
        let (bus, echo_bus) = (Bus::start(BusKind::Embedded), Bus::start(BusKind::Embedded));
        let section = json!({"isolation": isolation});
        let (_service, _responder) = (bus.service(&section), echo_bus.responder());
        let mut contest = Contest {
            ours: (bus.join(), add()),
            theirs: (echo_bus.join(), ECHO.clone()),
        };
        contest.many(MANY)?;
        let one = contest.one_by_one()?;
        let many = contest.many(MANY)?;
        table.heading(format!(
            "invoke `add`, isolation `{isolation}`, against a bare responder, each on an embedded bus"
        ));
        table.goal(
            "  time of one at a time (p50)",
            micros(&one, 0, 1),
            &format!("<= {wanted_time:.2}x"),
            one.ratio(0, 1) <= wanted_time,
        );
        table.goal(
            format!("  throughput, {MANY} under way"),
            per_second(&many),
            &format!(">= {wanted_rate:.2}x"),
            many.ratio(0, 1) >= wanted_rate,
        );
    }
    Ok(())
}

/// The cost of process isolation for a call, and of another toolbox's crashes.
fn isolated(table: &mut Table) -> io::Result<()> {
    eprintln!("bench: a process of its own against the service's process");
    let (apart_bus, inside_bus) = (Bus::start(BusKind::Embedded), Bus::start(BusKind::Embedded));
    let _apart = apart_bus.service(&json!({"isolation": "process"}));
    let _inside = inside_bus.service(&json!({"isolation": "in_process"}));
    let mut contest = Contest {
        ours: (apart_bus.join(), add()),
        theirs: (inside_bus.join(), add()),
    };
    contest.many(MANY)?;
    let one = contest.one_by_one()?;
    let many = contest.many(MANY)?;
    table
        .heading("invoke `add`, testbed in a process of its own against in process, each on an embedded bus");
    let added = one.difference(0, 1);
    let figure = format!("{added:.0} µs ({:.0} / {:.0} µs)", one.figure(0), one.figure(1));
    table.goal("  added to one at a time (p50)", figure, "< 60 µs", added < 60.0);
    let met = many.ratio(0, 1) >= 0.7;
    table.goal(
        format!("  throughput, {MANY} under way"),
        per_second(&many),
        ">= 0.70x",
        met,
    );

    eprintln!("bench: while another toolbox crashes");
    let bus = Bus::start(BusKind::Embedded);
    let _service = bus.service_with(&json!({"service": {"max_failures": 0}}));
    let crashing = crash::Crashing::start(&bus);
    let (mut wire, question) = (bus.join(), add());
    throughput(&mut wire, &question, MANY, TURN)?;
    let wire = std::cell::RefCell::new(wire);
    let one = Rounds::play(
        ROUNDS,
        &mut [
            &mut || crashing.during(|| latency(&mut wire.borrow_mut(), &question, ONE_BY_ONE, TURN)),
            &mut || latency(&mut wire.borrow_mut(), &question, ONE_BY_ONE, TURN),
        ],
    )?;
    let many = Rounds::play(
        ROUNDS,
        &mut [
            &mut || crashing.during(|| throughput(&mut wire.borrow_mut(), &question, MANY, TURN)),
            &mut || throughput(&mut wire.borrow_mut(), &question, MANY, TURN),
        ],
    )?;
    let (crashes, time) = crashing.end();
    table.heading(format!(
        "invoke `add` of testbed while testbed_dup is killed and loaded again ({:.1} times a second), against calm",
        crashes as f64 / time.as_secs_f64()
    ));
    table.note("  time of one at a time (p50)", micros(&one, 0, 1));
    table.note(format!("  throughput, {MANY} under way"), per_second(&many));
    Ok(())
}

/// The cost of the MCP door.
fn mcp(table: &mut Table) -> io::Result<()> {
    eprintln!("bench: the MCP door");
    let Some(door) = door::measure(ROUNDS, ONE_BY_ONE, TURN)? else {
        table.heading(
            "the MCP door: SKIPPED, it is not built (cargo build --release --package ovos-tools-mcp)",
        );
        return Ok(());
    };
    table.heading("call `add` through the MCP door against the same call over the embedded bus");
    for (who, what, goal) in [(1, "stdin and stdout", 500.0), (2, "HTTP", 1000.0)] {
        let added = door.calls.difference(who, 0);
        let figure = format!(
            "{added:.0} µs ({:.0} / {:.0} µs)",
            door.calls.figure(who),
            door.calls.figure(0)
        );
        let bound = format!("< {goal} µs");
        table.goal(
            format!("  {what}, added to one at a time (p50)"),
            figure,
            &bound,
            added < goal,
        );
    }
    table.note("  start to the list of tools", format!("{:.0} ms", door.ready));
    let [stdio, http] = door.resident;
    table.note(
        "  resident memory after the calls, stdin and stdout / HTTP",
        format!("{stdio:.1} / {http:.1} MB"),
    );
    let (bytes, tools) = door.list;
    table.note(
        format!("  tools/list of the {tools} tools that come with the service"),
        format!("{:.1} kB", bytes as f64 / 1e3),
    );
    Ok(())
}

fn published(table: &mut Table) -> io::Result<()> {
    if python::python().is_none() {
        table.heading("compared with the published packages: SKIPPED, there are none on this machine");
        return Ok(());
    }
    eprintln!("bench: the published bus and service");
    let [our_bus, their_bus, echo_bus] = [(); 3].map(|()| Bus::start(BusKind::Python));
    let own = {
        let _service = our_bus.service(&json!({}));
        tools(&mut our_bus.join())?
    };
    let _ours = our_bus.service(&json!({"grown": TOOLS - own}));
    let theirs = their_bus.reference(0);
    let own = tools(&mut their_bus.join())?;
    drop(theirs);
    let _theirs = their_bus.reference(TOOLS - own);
    let _responder = echo_bus.responder();
    for bus in [&our_bus, &their_bus] {
        assert_eq!(tools(&mut bus.join())?, TOOLS, "both list as many tools");
    }

    let mut contest = Contest {
        ours: (our_bus.join(), add()),
        theirs: (echo_bus.join(), ECHO.clone()),
    };
    contest.many(MANY)?;
    let one = contest.one_by_one()?;
    let many = contest.many(MANY)?;
    table.note("  Python bus, time of one at a time (p50)", micros(&one, 0, 1));
    // 7 rounds of a second on a shared machine are no more precise.
    let met = many.ratio(0, 1) >= 0.9;
    let goal = ">= 1x, within 10 %";
    table.goal(
        format!("  Python bus, throughput, {MANY} under way (its ceiling)"),
        per_second(&many),
        goal,
        met,
    );

    eprintln!("bench: against the published service");
    let mut contest = Contest {
        ours: (our_bus.join(), add()),
        theirs: (their_bus.join(), add()),
    };
    table.heading("against ovos-PHAL-plugin-tools, each on a Python bus");
    table.note(
        "  invoke `add`, time of one at a time (p50)",
        micros(&contest.one_by_one()?, 0, 1),
    );
    table.note(
        format!("  invoke `add`, throughput, {MANY} under way"),
        per_second(&contest.many(MANY)?),
    );
    let list = Question::new("ovos.tools.list", &json!({}));
    let bytes = answer(&mut our_bus.join(), &list)?.len();
    let their_bytes = answer(&mut their_bus.join(), &list)?.len();
    let mut contest = Contest {
        ours: (our_bus.join(), list.clone()),
        theirs: (their_bus.join(), list.clone()),
    };
    let many = contest.many(LISTS)?;
    let (ratio, goal) = (many.ratio(0, 1), ">= 50x");
    let what = format!("  list of {TOOLS} tools, throughput, {LISTS} under way");
    table.goal(what, per_second(&many), goal, ratio >= 50.0);
    let mut contest = Contest {
        ours: (our_bus.join(), list),
        theirs: (echo_bus.join(), blob(bytes)),
    };
    let what = format!("    the bus's ceiling for its {bytes} bytes (theirs has {their_bytes})");
    table.note(what, per_second(&contest.many(LISTS)?));

    eprintln!("bench: bus against bus");
    let fast_bus = Bus::start(BusKind::Embedded);
    let _fast = fast_bus.responder();
    let mut contest = Contest {
        ours: (fast_bus.join(), ECHO.clone()),
        theirs: (echo_bus.join(), ECHO.clone()),
    };
    contest.many(MANY)?;
    let many = contest.many(MANY)?;
    table.heading("embedded bus against the Python bus, a bare responder on each");
    let met = many.ratio(0, 1) >= 5.0;
    table.goal(
        format!("  round trips, {MANY} under way"),
        per_second(&many),
        ">= 5x",
        met,
    );
    table.note(
        "  time of one at a time (p50)",
        micros(&contest.one_by_one()?, 0, 1),
    );
    Ok(())
}

fn answer(wire: &mut Wire, question: &Question) -> io::Result<Vec<u8>> {
    wire.send(question.request.as_bytes())?;
    wire.until(&question.answer, <[u8]>::to_vec)
}

/// The number of tools that a service lists.
fn tools(wire: &mut Wire) -> io::Result<usize> {
    let list = answer(wire, &Question::new("ovos.tools.list", &json!({})))?;
    let list: Value = serde_json::from_slice(&list)?;
    Ok(list["data"]["tools"].as_array().map_or(0, Vec::len))
}

fn started(table: &mut Table) -> io::Result<()> {
    eprintln!("bench: starts");
    let start = start::measure()?;
    table.heading(format!(
        "the service with every toolbox that ships, each in a process of its own ({} threads)",
        start.threads
    ));
    table.goal(
        "  start to ready",
        format!("{:.0} ms", start.ready),
        "< 300 ms",
        start.ready < 300.0,
    );
    table.note(
        "  start to the last toolbox",
        format!("{:.0} ms", start.all_loaded),
    );
    table.goal(
        "  private memory of the service then",
        format!("{:.1} MB", start.anonymous),
        "< 12 MB",
        start.anonymous < 12.0,
    );
    table.note("    with pages of files", format!("{:.1} MB", start.resident));
    table.note(
        "    the same after two seconds of calls",
        format!("{:.1} MB", start.resident_later),
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
