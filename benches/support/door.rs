//! What the MCP door costs: a call through it against the same call over the bus, its start, its memory, its list of tools.

use std::cell::RefCell;
use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::lines::Lines;
use super::measure::{Rounds, has, latency, median, one_by_one};
use super::peers::{Bus, BusKind, Question, built, plugins, service_command};
use super::process::{Process, Sandbox};
use super::start::{MB_A_KIB, field};
use super::table::Table;

const STARTS: usize = 11;

/// How often the list is asked for again.
const LISTS: u32 = 200;

/// Calls, starts and sizes.
pub(crate) struct Door {
    /// Over the bus, at stdin and stdout, over HTTP: microseconds of one call at a time.
    pub(crate) calls: Rounds,
    /// Milliseconds from before the process exists until a client has the list of tools.
    pub(crate) ready: f64,
    /// Resident MB after the calls: at stdin and stdout, over HTTP.
    pub(crate) resident: [f64; 2],
    pub(crate) list: Shipped,
}

/// The list with the toolboxes that come with the service.
pub(crate) struct Shipped {
    pub(crate) bytes: usize,
    pub(crate) tools: usize,
    /// Milliseconds of processor time of one that is asked for again, with nothing changed: in the door, in the service.
    pub(crate) again: [f64; 2],
}

pub(crate) fn rows(table: &mut Table) -> io::Result<()> {
    eprintln!("bench: the MCP door");
    let Some(door) = measure()? else {
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
    let Shipped { bytes, tools, again } = door.list;
    table.note(
        format!("  tools/list of the {tools} tools that come with the service"),
        format!("{:.1} kB", bytes as f64 / 1e3),
    );
    let [of_door, of_service] = again;
    table.goal(
        "  the same again, with nothing changed: processor time of door + service",
        format!("{of_door:.2} + {of_service:.2} ms"),
        "< 2 ms",
        of_door + of_service < 2.0,
    );
    Ok(())
}

/// `None` where the door's program was not built.
fn measure() -> io::Result<Option<Door>> {
    let Some(program) = built("ovos-tools-mcp") else {
        return Ok(None);
    };
    let bus = Bus::start(BusKind::Embedded);
    let _service = bus.service(&json!({}));
    let sandbox = sandbox(&bus)?;
    let question = Question::invoke("add", &json!({"a": 20, "b": 22}));
    let door = || command(&program, &bus, &sandbox);
    let stdio = RefCell::new(Lines::start(door())?);
    let http = RefCell::new(Http::start(door(), &sandbox)?);
    let call = request(
        "tools/call",
        json!({"name": "add", "arguments": {"a": 20, "b": 22}}),
    );
    let right = |answer: &[u8]| has(answer, b"{\"result\":42");
    let calls = Rounds::play(&mut [
        // The bus sends the answers to the doors' calls to every client: one that has been here longer has them.
        &mut || latency(&mut bus.join(), &question),
        &mut || one_by_one(|| right(&stdio.borrow_mut().ask(&call)?)),
        &mut || one_by_one(|| right(&http.borrow_mut().ask("add", &call)?)),
    ])?;
    let resident = [
        resident(stdio.borrow().pid())?,
        resident(http.borrow().process.pid())?,
    ];

    let list = request("tools/list", json!({}));
    let mut ready = Vec::new();
    for round in 0..=STARTS {
        let began_at = Instant::now();
        Lines::start(door())?.ask(&list)?;
        // The first start warms the machine's caches.
        if round > 0 {
            ready.push(began_at.elapsed().as_secs_f64() * 1e3);
        }
    }
    Ok(Some(Door {
        calls,
        ready: median(ready),
        resident,
        list: shipped(&program)?,
    }))
}

fn shipped(program: &Path) -> io::Result<Shipped> {
    let bus = Bus::start(BusKind::Embedded);
    let home = Sandbox::with_bus(bus.port);
    let mut serving = service_command(&home);
    serving.arg("--plugins").arg(plugins("bench-toolboxes"));
    let mut service = Process::start("ovos-tools", &home, serving);
    service.until("all toolboxes", |service| {
        service.output().contains("Try: ovos-tools list").then_some(())
    });
    let sandbox = sandbox(&bus)?;
    let mut door = Lines::start(command(program, &bus, &sandbox))?;
    let question = request("tools/list", json!({}));
    let answer = door.ask(&question)?;
    let list: Value = serde_json::from_slice(&answer)?;
    let tools = list["result"]["tools"].as_array().map_or(0, Vec::len);
    let pids = [door.pid(), service.pid()];
    let spent = || Ok::<_, io::Error>([processor_ms(pids[0])?, processor_ms(pids[1])?]);
    let before = spent()?;
    for _ in 0..LISTS {
        door.ask(&question)?;
    }
    let after = spent()?;
    let each = |at: usize| (after[at] - before[at]) / f64::from(LISTS);
    Ok(Shipped {
        bytes: answer.len(),
        tools,
        again: [each(0), each(1)],
    })
}

/// The processor time of all threads of a process so far.
fn processor_ms(pid: u32) -> io::Result<f64> {
    let mut spent_ns = 0.0;
    for thread in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        // A thread may have ended meanwhile.
        let text = std::fs::read_to_string(thread?.path().join("schedstat")).unwrap_or_default();
        let of_thread = text.split(' ').next().and_then(|text| text.parse::<f64>().ok());
        spent_ns += of_thread.unwrap_or_default();
    }
    Ok(spent_ns / 1e6)
}

/// A home whose door asks for no token.
fn sandbox(bus: &Bus) -> io::Result<Sandbox> {
    let sandbox = Sandbox::new();
    let conf = json!({
        "websocket": {"host": "127.0.0.1", "port": bus.port},
        "PHAL": {"ovos-phal-plugin-tools": {"service": {"doors": {"mcp": {"http_token": false}}}}},
    });
    std::fs::write(sandbox.path("config/mycroft/mycroft.conf"), conf.to_string())?;
    Ok(sandbox)
}

fn command(program: &Path, bus: &Bus, sandbox: &Sandbox) -> Command {
    let mut command = sandbox.command(program);
    command.args(["--bus", &format!("ws://127.0.0.1:{}/core", bus.port)]);
    command
}

/// A request of the revision of 2026-07-28.
fn request(method: &str, mut params: Value) -> String {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string()
}

fn resident(pid: u32) -> io::Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    Ok(field(&status, "VmRSS") * MB_A_KIB)
}

/// A door that listens, and a connection to it that stays open.
struct Http {
    process: Process,
    address: String,
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Http {
    fn start(mut command: Command, sandbox: &Sandbox) -> io::Result<Self> {
        command.args(["--http", "127.0.0.1:0"]);
        let mut process = Process::start("door", sandbox, command);
        let address = process.until("its address", |door| {
            let output = door.output();
            let (_, rest) = output.split_once("MCP server listening at http://")?;
            Some(rest.split_once('/')?.0.to_owned())
        });
        let stream = TcpStream::connect(&address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        Ok(Self {
            process,
            address,
            stream,
            buffer: Vec::new(),
        })
    }

    /// Asks, and reads the response to its last chunk.
    fn ask(&mut self, tool: &str, request: &str) -> io::Result<Vec<u8>> {
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nAccept: application/json, \
             text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: \
             {tool}\r\nContent-Length: {}\r\n\r\n",
            self.address,
            request.len()
        );
        self.stream.write_all(format!("{head}{request}").as_bytes())?;
        self.buffer.clear();
        let mut room = [0; 16 << 10];
        while !is_whole(&self.buffer) {
            let read = self.stream.read(&mut room)?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.buffer.extend_from_slice(&room[..read]);
        }
        Ok(self.buffer.clone())
    }
}

/// Whether a response has its length, or its last chunk.
fn is_whole(response: &[u8]) -> bool {
    let text = String::from_utf8_lossy(response);
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    match length.and_then(|length| length.parse::<usize>().ok()) {
        Some(length) => body.len() >= length,
        None => body.ends_with("0\r\n\r\n"),
    }
}
