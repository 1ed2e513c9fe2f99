//! What another toolbox's crashes do to calls.

use std::cell::RefCell;
use std::io;

use serde_json::json;

use super::contest::add;
use super::crash;
use super::measure::{MANY, Rounds, TURN, latency, micros, per_second, throughput};
use super::peers::{Bus, BusKind};
use super::table::Table;

pub(crate) fn rows(table: &mut Table) -> io::Result<()> {
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
        "invoke `add` of testbed while testbed_dup is killed and reloaded {:.1} times a second, against an idle service",
        crashes as f64 / time.as_secs_f64()
    ));
    table.note("  time of one at a time (p50)", micros(&one, 0, 1));
    table.note(format!("  throughput, {MANY} under way"), per_second(&many, 0, 1));
    Ok(())
}
