//! What a process of its own costs a toolbox's calls, and what another toolbox's crashes do.

use std::cell::RefCell;
use std::io;

use serde_json::json;

use super::contest::{Contest, add};
use super::crash;
use super::measure::{MANY, Rounds, TURN, latency, micros, per_second, throughput};
use super::peers::{Bus, BusKind};
use super::table::Table;

pub(crate) fn rows(table: &mut Table) -> io::Result<()> {
    eprintln!("bench: a process of its own against the service's process");
    let (apart_bus, inside_bus) = (Bus::start(BusKind::Embedded), Bus::start(BusKind::Embedded));
    let _apart = apart_bus.service(&json!({"isolation": "process"}));
    let _inside = inside_bus.service(&json!({"isolation": "in_process"}));
    let mut contest = Contest {
        ours: (apart_bus.join(), add()),
        theirs: (inside_bus.join(), add()),
    };
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
        per_second(&many, 0, 1),
        ">= 0.70x",
        met,
    );

    eprintln!("bench: while another toolbox crashes");
    let bus = Bus::start(BusKind::Embedded);
    let _service = bus.service_with(&json!({"service": {"max_failures": 0}}));
    let crashing = crash::Crashing::start(&bus);
    let (wire, question) = (bus.join(), add());
    let wire = RefCell::new(wire);
    let one = Rounds::play(&mut [
        &mut || crashing.during(|| latency(&mut wire.borrow_mut(), &question)),
        &mut || latency(&mut wire.borrow_mut(), &question),
    ])?;
    let many = Rounds::play(&mut [
        &mut || crashing.during(|| throughput(&mut wire.borrow_mut(), &question, MANY, TURN)),
        &mut || throughput(&mut wire.borrow_mut(), &question, MANY, TURN),
    ])?;
    let (crashes, time) = crashing.end();
    table.heading(format!(
        "invoke `add` of testbed while testbed_dup is killed and loaded again ({:.1} times a second), against calm",
        crashes as f64 / time.as_secs_f64()
    ));
    table.note("  time of one at a time (p50)", micros(&one, 0, 1));
    table.note(format!("  throughput, {MANY} under way"), per_second(&many, 0, 1));
    Ok(())
}
