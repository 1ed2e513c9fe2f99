//! The published OPM toolboxes in Python: a call, and the memory of all of them, here, in the published service and at a
//! bare pipe.

use std::cell::RefCell;
use std::io;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::lines::Lines;
use super::measure::{Rounds, TURN, has, latency, micros, one_by_one, per_second, throughput};
use super::memory::{self, Memory};
use super::peers::{Bus, BusKind, Peer, Question};
use super::process::Sandbox;
use super::python;
use super::table::Table;

const TOOLBOX: &str = "ovos-math-tools";
const TOOL: &str = "evaluate_expression";

/// Its result, in every answer.
const RIGHT: &[u8] = b"4.0";

/// No side reaches a network: a toolbox would download a dictionary.
const NO_NETWORK: &str = "http://127.0.0.1:9";

/// Calls in flight where many are.
const SOME: usize = 8;

pub(crate) fn rows(table: &mut Table) -> io::Result<()> {
    let Some(python) = python::opm_python() else {
        table.heading("the published OPM toolboxes: SKIPPED, there is no Python on this machine");
        return Ok(());
    };
    invoke(table, python)?;
    weigh(table, python)
}

fn invoke(table: &mut Table, python: &Path) -> io::Result<()> {
    eprintln!("bench: a tool in Python");
    let args = json!({"expression": "2 + 2"});
    let [bus, same_bus] = [(); 2].map(|()| Bus::start(BusKind::Embedded));
    let their_bus = Bus::start(BusKind::Python);
    let _peers = [
        ours(&bus, python),
        theirs(&same_bus, python),
        theirs(&their_bus, python),
    ];
    let sandbox = Sandbox::new();
    let mut command = sandbox.command(python);
    command
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/support/pipe.py"))
        .arg(TOOLBOX);
    quiet(&mut command);
    let pipe = RefCell::new(Lines::start(command)?);
    let line = json!([TOOL, args]).to_string();

    let question = Question::invoke(TOOL, &args);
    for bus in [&bus, &same_bus, &their_bus] {
        let mut wire = bus.join();
        wire.send(question.request.as_bytes())?;
        right(&wire.until(&question.answer, <[u8]>::to_vec)?)?;
    }
    let over = |bus: &Bus| latency(&mut bus.join(), &question);
    let one = Rounds::play(&mut [
        &mut || over(&bus),
        &mut || over(&same_bus),
        &mut || over(&their_bus),
        &mut || one_by_one(|| right(&pipe.borrow_mut().ask(&line)?)),
    ])?;
    let many = Rounds::play(&mut [
        &mut || throughput(&mut bus.join(), &question, SOME, TURN),
        &mut || throughput(&mut same_bus.join(), &question, SOME, TURN),
    ])?;

    table.heading(format!(
        "call `{TOOL}` of {TOOLBOX}, a published toolbox in Python"
    ));
    table.goal(
        "  on the embedded bus, one at a time (p50)",
        format!("{:.0} µs", one.figure(0)),
        "< 500 µs",
        one.figure(0) < 500.0,
    );
    table.note(
        "    against ovos-PHAL-plugin-tools on the embedded bus",
        micros(&one, 0, 1),
    );
    table.note(
        "    against ovos-PHAL-plugin-tools on the Python bus",
        micros(&one, 0, 2),
    );
    table.note(
        "    against the same function behind a bare pipe",
        micros(&one, 0, 3),
    );
    table.note(
        format!("  throughput, {SOME} under way, against ovos-PHAL-plugin-tools on the embedded bus"),
        per_second(&many, 0, 1),
    );
    Ok(())
}

fn weigh(table: &mut Table, python: &Path) -> io::Result<()> {
    eprintln!("bench: memory of the toolboxes in Python");
    // One after the other: side by side they would share pages of the interpreter.
    let bus = Bus::start(BusKind::Embedded);
    let question = Question::invoke(TOOL, &json!({"expression": "2 + 2"}));
    let weigh = |peer: Peer| -> io::Result<(Memory, Memory, usize)> {
        let mut wire = bus.join();
        wire.send(question.request.as_bytes())?;
        right(&wire.until(&question.answer, <[u8]>::to_vec)?)?;
        let pid = peer.process.pid();
        let (below, processes) = memory::below(pid);
        Ok((memory::own(pid), below, processes))
    };
    let (service, program, processes) = weigh(ours(&bus, python))?;
    let (phal, below, _) = weigh(theirs(&bus, python))?;
    let theirs = phal.pss + below.pss;
    table.heading("memory of the twelve published toolboxes in Python, shared pages in parts (PSS)");
    let ours = service.pss + program.pss;
    table.goal(
        format!("  their program ({processes} processes) and the service"),
        format!("{:.1} + {:.1} = {ours:.1} MB", program.pss, service.pss),
        "< 136 MB",
        ours < 136.0,
    );
    table.note(
        "    against ovos-PHAL-plugin-tools with the same",
        format!("{:.2}x ({ours:.1} / {theirs:.1} MB)", ours / theirs),
    );
    table.note(
        "    resident, a shared page for each process",
        format!(
            "{:.1} / {:.1} MB",
            service.rss + program.rss,
            phal.rss + below.rss
        ),
    );
    Ok(())
}

/// Our service with the toolboxes of this interpreter and no others.
fn ours(bus: &Bus, python: &Path) -> Peer {
    let mut env = json!({});
    for (name, value) in variables() {
        env[name] = json!(value);
    }
    let entry = json!({ "enabled": true, "interpreter": python, "env": env });
    let mut sections = sections();
    sections["service"] = json!({ "programs": { "python": entry }, "probe_ms": 30_000 });
    loaded(bus, bus.serve(&sections, None), "ovos_tools")
}

/// The published service with them.
fn theirs(bus: &Bus, python: &Path) -> Peer {
    let sandbox = bus.configured(&sections());
    let mut command = sandbox.command(python);
    command.args(["-m", "ovos_PHAL"]);
    quiet(&mut command);
    loaded(bus, Peer::start("ovos_PHAL", sandbox, command), "PHAL")
}

fn loaded(bus: &Bus, peer: Peer, name: &str) -> Peer {
    let topic = format!("mycroft.{name}.all_loaded");
    let peer = bus.answers(peer, &topic, |data| data["status"] == true);
    bus.lists(peer, TOOL, 1)
}

/// Some have tools only when they are configured.
fn sections() -> Value {
    json!({ "ovos-filesystem-tools": { "root_path": "." }, "ovos-shell-tools": { "allow_shell": true } })
}

fn variables() -> impl Iterator<Item = (&'static str, &'static str)> {
    let proxies = [
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "http_proxy",
        "https_proxy",
    ];
    let bus = [
        ("NO_PROXY", "127.0.0.1"),
        ("no_proxy", "127.0.0.1"),
        ("OVOS_DEFAULT_LOG_LEVEL", "ERROR"),
    ];
    proxies.into_iter().map(|name| (name, NO_NETWORK)).chain(bus)
}

fn quiet(command: &mut Command) {
    command.envs(variables());
}

fn right(answer: &[u8]) -> io::Result<()> {
    has(answer, RIGHT)
}
