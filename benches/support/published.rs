//! The published bus and service as peers: ours on their bus, against their service, and bus against bus.

use std::io;

use serde_json::{Value, json};

use super::contest::{Contest, add};
use super::measure::{MANY, micros, per_second};
use super::peers::{Bus, BusKind, Question};
use super::python;
use super::responder::{ECHO, blob};
use super::table::Table;
use super::wire::Wire;

/// Questions for a list in flight: the reference serves them one after the other.
const LISTS: usize = 8;

/// Number of tools of the services whose lists are compared.
const TOOLS: usize = 100;

pub(crate) fn rows(table: &mut Table) -> io::Result<()> {
    if python::python().is_none() {
        table.heading("the published bus and service: SKIPPED, they are not installed on this machine");
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
    let _responder = echo_bus.responder("responder");
    for bus in [&our_bus, &their_bus] {
        assert_eq!(tools(&mut bus.join())?, TOOLS, "both list as many tools");
    }

    let mut contest = Contest {
        ours: (our_bus.join(), add()),
        theirs: (echo_bus.join(), ECHO.clone()),
    };
    let one = contest.one_by_one()?;
    let many = contest.many(MANY)?;
    table.heading("invoke `add` against a bare responder, each on a Python bus");
    table.note("  time of one at a time (p50)", micros(&one, 0, 1));
    // 7 rounds of a second on a shared machine are no more precise.
    let met = many.ratio(0, 1) >= 0.9;
    let goal = ">= 1x, within 10 %";
    table.goal(
        format!("  throughput, {MANY} under way (the bus's ceiling)"),
        per_second(&many, 0, 1),
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
        per_second(&contest.many(MANY)?, 0, 1),
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
    table.goal(what, per_second(&many, 0, 1), goal, ratio >= 50.0);
    let mut contest = Contest {
        ours: (our_bus.join(), list),
        theirs: (echo_bus.join(), blob(bytes)),
    };
    let what = format!("    the bus's ceiling for its {bytes} bytes (theirs has {their_bytes})");
    table.note(what, per_second(&contest.many(LISTS)?, 0, 1));

    eprintln!("bench: bus against bus");
    let fast_bus = Bus::start(BusKind::Embedded);
    let _fast = fast_bus.responder("responder");
    let mut contest = Contest {
        ours: (fast_bus.join(), ECHO.clone()),
        theirs: (echo_bus.join(), ECHO.clone()),
    };
    let many = contest.many(MANY)?;
    table.heading("embedded bus against the Python bus, a bare responder on each");
    let met = many.ratio(0, 1) >= 5.0;
    table.goal(
        format!("  round trips, {MANY} under way"),
        per_second(&many, 0, 1),
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
