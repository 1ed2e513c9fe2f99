//! A tool of a mounted MCP server, called over the bus, against the published client of the same server.

use std::cell::RefCell;
use std::io;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use super::lines::Lines;
use super::measure::{ONE_BY_ONE, Rounds, TURN, has, latency, micros, one_by_one};
use super::peers::{Bus, BusKind, Question, built};
use super::process::{Process, Sandbox, free_port};
use super::python;
use super::table::Table;

pub(crate) fn rows(table: &mut Table) -> io::Result<()> {
    let Some(python) = python::mcp_python() else {
        table.heading("mounted MCP servers: SKIPPED, there is no Python on this machine");
        return Ok(());
    };
    if built("ovos-tools-mounts").is_none() {
        table.heading(
            "mounted MCP servers: SKIPPED, the program is not built (cargo build --release --package ovos-tools-mounts)",
        );
        return Ok(());
    }
    eprintln!("bench: mounted MCP servers");
    let server = source("tests/programs/mounts/scripts/fast.py");
    let sandbox = Sandbox::new();
    let port = free_port();
    let mut command = sandbox.command(python);
    command.arg(&server).arg(port.to_string());
    let mut listening = Process::start("server", &sandbox, command);
    listening.until("the server", |_| TcpStream::connect(("127.0.0.1", port)).ok());
    let url = format!("http://127.0.0.1:{port}/mcp");

    let bus = Bus::start(BusKind::Embedded);
    let mounts = json!({ "piped": { "command": python, "args": [server] }, "listening": { "url": url } });
    let _service = bus.lists(
        bus.serve(&json!({ "service": { "mounts": mounts } }), None),
        "add",
        2,
    );
    let ours = |mount: &str| {
        let call = json!({"name": "add", "args": {"a": 20, "b": 22}, "toolbox_id": mount});
        Question::new("ovos.tools.invoke", &call)
    };
    let (piped, http) = (ours("piped"), ours("listening"));
    for question in [&piped, &http] {
        let mut wire = bus.join();
        wire.send(question.request.as_bytes())?;
        right(&wire.until(&question.answer, <[u8]>::to_vec)?)?;
    }

    let client = |of: &[&str]| {
        let mut command = sandbox.command(python);
        command.arg(source("benches/support/mcp_client.py")).args(of);
        Lines::start(command).map(RefCell::new)
    };
    let interpreter = python.to_string_lossy();
    let piped_client = client(&["stdio", &interpreter, &server.to_string_lossy()])?;
    let http_client = client(&["http", &url])?;
    let their_median = |client: &RefCell<Lines>| -> io::Result<f64> {
        let line = format!("{ONE_BY_ONE} {}", TURN.as_millis());
        let answer = client.borrow_mut().ask(&line)?;
        let text = String::from_utf8_lossy(&answer);
        text.trim().parse().map_err(io::Error::other)
    };
    let mut command = sandbox.command(python);
    command.arg(&server);
    let pipe = RefCell::new(raw(command)?);
    let params = json!({"name": "add", "arguments": {"a": 20, "b": 22}});
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();

    let one = Rounds::play(&mut [
        &mut || latency(&mut bus.join(), &piped),
        &mut || their_median(&piped_client),
        &mut || one_by_one(|| right(&pipe.borrow_mut().ask(&call)?)),
        &mut || latency(&mut bus.join(), &http),
        &mut || their_median(&http_client),
    ])?;
    table.heading(
        "call `add` of a mounted server made with fastmcp, over the embedded bus, one at a time (p50)",
    );
    for (what, who, to) in [
        ("  stdin and stdout, against the published client in Python", 0, 1),
        ("    against bare lines at such a server's pipe", 0, 2),
        ("  HTTP, against the published client in Python", 3, 4),
    ] {
        table.note(what, micros(&one, who, to));
    }
    Ok(())
}

fn source(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(file)
}

/// The server at a pipe, ready for calls.
fn raw(command: Command) -> io::Result<Lines> {
    let mut server = Lines::start(command)?;
    let client = json!({"name": "bench", "version": "1"});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
    server.ask(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}).to_string())?;
    server.tell(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string())?;
    Ok(server)
}

fn right(answer: &[u8]) -> io::Result<()> {
    has(answer, b"42")
}
