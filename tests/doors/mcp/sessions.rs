//! Sessions of many clients at once, each made of random requests: every request is answered, no call outlives its client,
//! and the door holds as much at the end as before.
//!
//! A hundred and fifty are part of every test run; `make soak` runs ten thousand. `SESSIONS` is their number, `SESSIONS_SEED` the
//! random seed.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::mcp::door::{Listening, Stage};
use crate::support::client::Client;
use crate::support::figures::Held;
use crate::support::process::DEADLINE;

/// Clients at a time.
const AT_ONCE: usize = 8;

/// One session in this many is at stdin and stdout of a door of its own.
const STDIO_EVERY: usize = 60;

/// One session in this many of the legacy era is left open.
const LEFT_OPEN_EVERY: u8 = 50;

/// How much more the door may hold at the end. Sessions that were left open are held for five minutes, a tenth of a megabyte
/// each, and allocators keep freed memory.
const SLACK: Held = Held {
    files: 12,
    threads: 6,
    memory: 24 << 10,
};

const PARTS: [&str; 4] = ["left_arm", "right_arm", "gantry", "base"];

pub(crate) fn number(variable: &str, usually: u64) -> u64 {
    std::env::var(variable).map_or(usually, |number| number.parse().unwrap())
}

#[test]
fn every_request_of_many_sessions_is_answered_and_nothing_stays_behind() {
    let seed = number("SESSIONS_SEED", 0x0014_000d);
    let count = usize::try_from(number("SESSIONS", 150)).unwrap();
    let stage = Stage::new(&json!({ "http_token": false }));
    let door = Listening::start(&stage);
    let start = Instant::now();
    let run = |from: usize, to: usize| {
        let next = AtomicUsize::new(from);
        thread::scope(|threads| {
            let clients: Vec<_> = (0..AT_ONCE)
                .map(|_| {
                    threads.spawn(|| {
                        let mut answers = 0;
                        while let Some(number) =
                            Some(next.fetch_add(1, Ordering::Relaxed)).filter(|n| *n < to)
                        {
                            let random = fastrand::Rng::with_seed(seed ^ number as u64);
                            answers += session(&stage, &door, number, random);
                        }
                        answers
                    })
                })
                .collect();
            clients
                .into_iter()
                .map(|client| client.join().unwrap())
                .sum::<usize>()
        })
    };
    let warm_up = count / 4;
    let mut answers = run(0, warm_up);
    let before = Held::by(door.process.pid());
    answers += run(warm_up, count);
    println!(
        "{count} sessions with seed {seed}, {answers} answers in {:.0} s",
        start.elapsed().as_secs_f64()
    );

    // Of its own: the bus lets a client go that did not read all the while.
    let mut client = Client::connect(stage.scene.port);
    let end = Instant::now() + Duration::from_secs(10);
    let mut held = Held::by(door.process.pid());
    loop {
        let calls = client.ask("ovos.tools.status", &json!({}))["calls"].clone();
        let idle = calls.as_array().is_some_and(Vec::is_empty);
        // Connections that were closed last may not have been noticed yet.
        if idle && held.files <= before.files + SLACK.files && held.threads <= before.threads + SLACK.threads
        {
            break;
        }
        assert!(
            Instant::now() < end,
            "it holds {held}, before {before}; calls that outlive their clients: {calls:#}\n{}",
            door.process.log()
        );
        thread::park_timeout(Duration::from_millis(50));
        held = Held::by(door.process.pid());
    }
    println!("the door: {before} after a quarter of them, {held} at the end");
    assert!(
        held.memory <= before.memory + SLACK.memory,
        "it holds {held}, before {before}"
    );
    let output = door.process.output();
    for sign in ["panicked", "did not end within"] {
        assert!(!output.contains(sign), "{}", door.process.log());
    }
}

/// What a client does, and what it expects.
enum Step {
    /// A request, and whether an answer is right.
    Asks(Value, fn(&Value) -> bool),
    /// A call that takes minutes, from which the client goes away after a moment.
    Leaves(Value, Duration),
}

fn step(random: &mut fastrand::Rng) -> Step {
    let call = |name: &str, arguments: Value| json!({"method": "tools/call", "params": {"name": name, "arguments": arguments}});
    let failed = |answer: &Value| answer["result"]["isError"] == true;
    let part = PARTS[random.usize(..PARTS.len())];
    match random.u8(..9) {
        0 => Step::Asks(json!({"method": "tools/list", "params": {}}), |answer| {
            answer["result"]["tools"]
                .as_array()
                .is_some_and(|tools| tools.len() > 5)
        }),
        1 | 2 => Step::Asks(call("add", json!({"a": 20, "b": 22})), |answer| {
            answer["result"]["structuredContent"]["result"] == 42
        }),
        3 => Step::Asks(call("fail", json!({"message": "as told"})), failed),
        4 => Step::Asks(call("add", json!({"a": "x"})), failed),
        5 => Step::Asks(call("no_such_tool", json!({})), |answer| {
            answer["error"]["code"] == -32602
        }),
        6 => Step::Asks(call("slow", json!({"seconds": 0.02})), |answer| {
            answer["result"]["structuredContent"]["seconds"] == 0.02
        }),
        7 => {
            let arguments = json!({"subsystems": [part], "steps": 1, "step_ms": 1});
            let mut request = call("assemble", arguments);
            request["params"]["_meta"] = json!({"progressToken": "p"});
            // It may wait for others that move the part; those are ended within a second.
            Step::Asks(request, |answer| {
                answer["result"]["structuredContent"]["success"] == true
            })
        }
        _ => {
            let arguments =
                json!({"subsystems": [part], "steps": 100_000, "step_ms": 2, "timeout_ms": 300_000});
            Step::Leaves(
                call("assemble", arguments),
                Duration::from_millis(random.u64(..60)),
            )
        }
    }
}

/// Runs a session to its end; returns how many answers it got.
fn session(stage: &Stage, door: &Listening, number: usize, mut random: fastrand::Rng) -> usize {
    let is_modern = random.bool();
    let steps: Vec<Step> = (0..random.usize(1..4)).map(|_| step(&mut random)).collect();
    if number % STDIO_EVERY == STDIO_EVERY - 1 {
        return at_stdio(stage, is_modern, &steps);
    }
    let client = Http::new(door, is_modern);
    let mut answers = 0;
    for (id, step) in (10..).zip(&steps) {
        match step {
            Step::Asks(request, is_right) => {
                let answer = client.answer(id, request);
                assert!(is_right(&answer), "session {number}: {request}: {answer:#}");
                answers += 1;
            }
            Step::Leaves(request, after) => {
                let socket = client.send("POST", &client.message(id, request));
                // This is no wait for an event: the moment itself is random.
                thread::park_timeout(*after);
                drop(socket);
                break;
            }
        }
    }
    if client.session.is_some() && random.u8(..LEFT_OPEN_EVERY) > 0 {
        let text = read(client.send("DELETE", ""));
        assert!(text.starts_with("HTTP/1.1 20"), "session {number}: {text}");
    }
    answers
}

/// A client over HTTP, with a connection for each request.
pub(crate) struct Http {
    address: String,
    is_modern: bool,
    session: Option<String>,
    version: String,
}

impl Http {
    /// One that has not introduced itself.
    pub(crate) fn of(door: &Listening) -> Self {
        Self {
            address: door.url.split('/').nth(2).unwrap().to_owned(),
            is_modern: false,
            session: None,
            version: "2025-11-25".to_owned(),
        }
    }

    /// Takes the session of an answer to `initialize`.
    pub(crate) fn adopt(&mut self, opened: &str, version: &str) {
        let session = opened
            .lines()
            .find_map(|line| line.strip_prefix("mcp-session-id: "));
        self.session = Some(
            session
                .unwrap_or_else(|| panic!("no session: {opened}"))
                .to_owned(),
        );
        version.clone_into(&mut self.version);
    }

    pub(crate) fn new(door: &Listening, is_modern: bool) -> Self {
        let mut client = Self {
            is_modern,
            ..Self::of(door)
        };
        if !is_modern {
            let text = read(client.send("POST", &initialize().to_string()));
            client.adopt(&text, "2025-11-25");
            let notification = json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string();
            let text = read(client.send("POST", &notification));
            assert!(text.starts_with("HTTP/1.1 202"), "{text}");
        }
        client
    }

    pub(crate) fn message(&self, id: u64, request: &Value) -> String {
        message(id, request, self.is_modern).to_string()
    }

    fn answer(&self, id: u64, request: &Value) -> Value {
        Self::answer_in(id, &read(self.send("POST", &self.message(id, request))))
    }

    /// The one answer to a request in a whole response.
    pub(crate) fn answer_in(id: u64, text: &str) -> Value {
        let body = text.split_once("\r\n\r\n").unwrap_or_default().1;
        let messages = body
            .lines()
            .map(|line| line.strip_prefix("data: ").unwrap_or(line));
        let mut answers = messages
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .filter(|message| message["id"] == id);
        let answer = answers
            .next()
            .unwrap_or_else(|| panic!("no answer to {id}: {text}"));
        assert!(answers.next().is_none(), "answered twice: {text}");
        answer
    }

    pub(crate) fn send(&self, method: &str, body: &str) -> TcpStream {
        let mut head = format!(
            "{method} /mcp HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Type: application/json\r\nAccept: \
             application/json, text/event-stream\r\nContent-Length: {}\r\n",
            self.address,
            body.len()
        );
        if let Some(session) = &self.session {
            head += &format!(
                "Mcp-Session-Id: {session}\r\nMCP-Protocol-Version: {}\r\n",
                self.version
            );
        }
        if self.is_modern {
            // What a test sends may be no JSON for us.
            let named = || body.split(r#""name":""#).nth(1)?.split('"').next();
            let call = || json!({"method": "tools/call", "params": {"name": named()}});
            let request: Value = serde_json::from_str(body).unwrap_or_else(|_| call());
            let method = request["method"].as_str().unwrap();
            head += &format!("MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n");
            if let Some(name) = request["params"]["name"].as_str() {
                head += &format!("Mcp-Name: {name}\r\n");
            }
        }
        let mut socket = TcpStream::connect(&self.address).unwrap();
        socket.set_read_timeout(Some(DEADLINE)).unwrap();
        socket.write_all(format!("{head}\r\n{body}").as_bytes()).unwrap();
        socket
    }
}

/// A whole response, without the sizes of its chunks.
pub(crate) fn read(mut socket: TcpStream) -> String {
    let mut bytes = Vec::new();
    let read = socket.read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes).into_owned();
    read.unwrap_or_else(|error| panic!("no end: {error}: {text}"));
    let Some((head, mut body)) = text.split_once("\r\n\r\n") else {
        return text;
    };
    if !head.to_lowercase().contains("transfer-encoding: chunked") {
        return text;
    }
    let mut whole = format!("{}\r\n\r\n", head.to_lowercase().replacen("http/", "HTTP/", 1));
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        let (chunk, rest) = rest.split_at(size);
        whole += chunk;
        body = rest.strip_prefix("\r\n").unwrap_or(rest);
    }
    whole
}

pub(crate) fn initialize() -> Value {
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "soak", "version": "1"}});
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
}

pub(crate) fn message(id: u64, request: &Value, is_modern: bool) -> Value {
    let mut message = request.clone();
    message["jsonrpc"] = json!("2.0");
    message["id"] = json!(id);
    if is_modern {
        let meta = &mut message["params"]["_meta"];
        meta["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
        meta["io.modelcontextprotocol/clientInfo"] = json!({"name": "soak", "version": "1"});
        meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
    }
    message
}

/// The same with a door of its own, which ends with its client.
fn at_stdio(stage: &Stage, is_modern: bool, steps: &[Step]) -> usize {
    let mut door = stage.at_stdio(&[]);
    let mut stdin = door.stdin.take().unwrap();
    let mut lines = BufReader::new(door.stdout.take().unwrap()).lines();
    let mut until = |id: u64| loop {
        let line = lines
            .next()
            .unwrap_or_else(|| panic!("no answer to {id}"))
            .unwrap();
        let reply: Value = serde_json::from_str(&line).unwrap();
        if reply["id"] == id {
            return reply;
        }
    };
    let mut answers = 0;
    if !is_modern {
        writeln!(stdin, "{}", initialize()).unwrap();
        until(1);
        writeln!(
            stdin,
            "{}",
            json!({"jsonrpc": "2.0", "method": "notifications/initialized"})
        )
        .unwrap();
    }
    for (id, step) in (10..).zip(steps) {
        match step {
            Step::Asks(request, is_right) => {
                writeln!(stdin, "{}", message(id, request, is_modern)).unwrap();
                let answer = until(id);
                assert!(is_right(&answer), "{request}: {answer:#}");
                answers += 1;
            }
            Step::Leaves(request, after) => {
                writeln!(stdin, "{}", message(id, request, is_modern)).unwrap();
                // As above.
                thread::park_timeout(*after);
                break;
            }
        }
    }
    drop(stdin);
    // A door that does not end fails the test, which ends it.
    assert!(door.wait().unwrap().success());
    answers
}
