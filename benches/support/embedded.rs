//! What the service adds to an answer: against peers on an embedded bus that only answer.

use std::io;

use serde_json::json;

use super::contest::add;
use super::measure::{MANY, Rounds, TURN, latency, micros, per_second, throughput};
use super::peers::{Bus, BusKind};
use super::responder::ECHO;
use super::table::Table;

/// A service with testbed, a bare responder, and a relay: a responder whose child process knows the answer, as a
/// toolbox in a process of its own does. The relay shows what the two hops to such a process cost by themselves.
pub(crate) fn rows(table: &mut Table) -> io::Result<()> {
    eprintln!("bench: invoke over the embedded bus");
    let [bus, bare_bus, relay_bus] = [(); 3].map(|()| Bus::start(BusKind::Embedded));
    let _service = bus.service(&json!({}));
    let _peers = [bare_bus.responder("responder"), relay_bus.responder("relay")];
    let (mut ours, mut bare, mut relay) = (bus.join(), bare_bus.join(), relay_bus.join());
    let question = add();
    let one = Rounds::play(&mut [
        &mut || latency(&mut ours, &question),
        &mut || latency(&mut bare, &ECHO),
        &mut || latency(&mut relay, &ECHO),
    ])?;
    let many = Rounds::play(&mut [
        &mut || throughput(&mut ours, &question, MANY, TURN),
        &mut || throughput(&mut bare, &ECHO, MANY, TURN),
        &mut || throughput(&mut relay, &ECHO, MANY, TURN),
    ])?;
    table.heading("invoke `add` against a bare responder, each on an embedded bus");
    table.goal(
        "  time of one at a time (p50)",
        micros(&one, 0, 1),
        "<= 1.40x",
        one.ratio(0, 1) <= 1.4,
    );
    table.goal(
        format!("  throughput, {MANY} under way"),
        per_second(&many, 0, 1),
        ">= 0.75x",
        many.ratio(0, 1) >= 0.75,
    );
    table.note(
        "    a responder that asks a process of its own, against the bare one: time",
        micros(&one, 2, 1),
    );
    table.note("      throughput", per_second(&many, 2, 1));
    table.note(
        "    the service against the responder that asks a process: time",
        micros(&one, 0, 2),
    );
    table.note("      throughput", per_second(&many, 0, 2));
    Ok(())
}
