//! What one connection sends begins in the order of arrival, and a stop ends what arrived before it, whatever stands beside its name.

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, ChildStdout};
use std::time::Instant;

use serde_json::{Value, json};

use crate::mcp::door::{Listening, Stage};
use crate::mcp::sessions::{Http, initialize, message, number, read};
use crate::support::figures::Held;
use crate::support::process::DEADLINE;

/// How many bursts each transport and era gets.
fn bursts() -> u64 {
    number("BURSTS", 100)
}

/// A client that sends several messages at once.
enum Client {
    Stdio {
        door: Child,
        stdin: ChildStdin,
        lines: Lines<BufReader<ChildStdout>>,
        is_modern: bool,
    },
    Http(Http),
}

impl Client {
    fn at_stdio(stage: &Stage, is_modern: bool) -> Self {
        let mut door = stage.at_stdio(&[]);
        let stdin = door.stdin.take().unwrap();
        let lines = BufReader::new(door.stdout.take().unwrap()).lines();
        let mut client = Self::Stdio {
            door,
            stdin,
            lines,
            is_modern,
        };
        if is_modern {
            client.ask(1, &json!({"method": "tools/list", "params": {}}));
        } else {
            let Self::Stdio { stdin, .. } = &mut client else {
                unreachable!()
            };
            writeln!(stdin, "{}", initialize()).unwrap();
            client.answers(&[1]);
        }
        client
    }

    /// Sends all of these without waiting, and returns their answers in the order of the requests.
    fn burst(&mut self, requests: &[(u64, Value)]) -> Vec<Value> {
        match self {
            Self::Stdio { stdin, is_modern, .. } => {
                let lines: Vec<String> = requests
                    .iter()
                    .map(|(id, request)| message(*id, request, *is_modern).to_string() + "\n")
                    .collect();
                stdin.write_all(lines.concat().as_bytes()).unwrap();
                let ids: Vec<u64> = requests.iter().map(|(id, _)| *id).collect();
                self.answers(&ids)
            }
            Self::Http(client) => {
                let sockets: Vec<(u64, TcpStream)> = requests
                    .iter()
                    .map(|(id, request)| (*id, client.send("POST", &client.message(*id, request))))
                    .collect();
                sockets
                    .into_iter()
                    .map(|(id, socket)| Http::answer_in(id, &read(socket)))
                    .collect()
            }
        }
    }

    /// The answers to these, read from stdout.
    fn answers(&mut self, ids: &[u64]) -> Vec<Value> {
        let Self::Stdio { lines, .. } = self else {
            unreachable!("answers over HTTP come by themselves")
        };
        let mut found: Vec<Option<Value>> = vec![None; ids.len()];
        while found.iter().any(Option::is_none) {
            let line = lines.next().expect("an answer").unwrap();
            let reply: Value = serde_json::from_str(&line).unwrap();
            if let Some(at) = ids.iter().position(|id| reply["id"] == *id) {
                found[at] = Some(reply);
            }
        }
        found.into_iter().flatten().collect()
    }

    fn ask(&mut self, id: u64, request: &Value) -> Value {
        self.burst(&[(id, request.clone())]).remove(0)
    }

    /// Sends a message as it is; returns the answer with this id.
    fn raw(&mut self, id: u64, text: &str) -> Value {
        match self {
            Self::Stdio { stdin, .. } => {
                writeln!(stdin, "{text}").unwrap();
                self.answers(&[id]).remove(0)
            }
            Self::Http(client) => Http::answer_in(id, &read(client.send("POST", text))),
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if let Self::Stdio { door, .. } = self {
            _ = door.kill();
            _ = door.wait();
        }
    }
}

/// Runs `what` with a client of each transport and era.
fn each(stage: &mut Stage, mut what: impl FnMut(&mut Stage, &mut Client, &str)) {
    for is_modern in [false, true] {
        let era = if is_modern { "modern" } else { "legacy" };
        let mut client = Client::at_stdio(stage, is_modern);
        what(stage, &mut client, &format!("stdio, {era}"));
        drop(client);
        let door = Listening::start(stage);
        let mut client = Client::Http(Http::new(&door, is_modern));
        what(stage, &mut client, &format!("http, {era}"));
    }
}

fn call(name: &str, arguments: &Value) -> Value {
    json!({"method": "tools/call", "params": {"name": name, "arguments": arguments}})
}

pub(crate) fn moves(subsystem: &str, steps: u64) -> Value {
    call(
        "assemble",
        &json!({"subsystems": [subsystem], "steps": steps, "step_ms": 2, "timeout_ms": 300_000}),
    )
}

#[test]
fn calls_begin_in_the_order_of_arrival() {
    let mut stage = Stage::new(&json!({ "http_token": false }));
    each(&mut stage, |stage, client, how| {
        for burst in 0..bursts() {
            let requests: Vec<(u64, Value)> = (0..6)
                .map(|at| (100 + at, call("add", &json!({"a": burst, "b": at}))))
                .collect();
            for (at, answer) in client.burst(&requests).iter().enumerate() {
                assert_eq!(
                    answer["result"]["structuredContent"]["result"],
                    burst + at as u64,
                    "{answer}"
                );
            }
            let mut starts = Vec::new();
            stage.client.until("six calls", |message| {
                if message["type"] == "ovos.tools.invoke" && message["data"]["args"]["a"] == burst {
                    starts.push(message["data"]["args"]["b"].as_u64().unwrap());
                }
                (starts.len() == 6).then_some(())
            });
            assert_eq!(starts, [0, 1, 2, 3, 4, 5], "burst {burst}, {how}");
        }
    });
}

#[test]
fn stop_moving_ends_what_arrived_before_it_and_nothing_else() {
    let mut stage = Stage::new(&json!({ "http_token": false }));
    each(&mut stage, |stage, client, how| {
        for burst in 0..bursts() {
            let requests = [
                (100, moves("left_arm", 100_000)),
                (101, moves("right_arm", 100_000)),
                (102, call("stop_moving", &json!({}))),
                (103, moves("base", 0)),
            ];
            let start = Instant::now();
            let answers = client.burst(&requests);
            let failed: Vec<bool> = answers
                .iter()
                .map(|answer| answer["result"]["isError"] == true)
                .collect();
            assert_eq!(
                failed,
                [true, true, false, false],
                "burst {burst}, {how}: {answers:#?}"
            );
            let stopped = &answers[2]["result"]["structuredContent"];
            assert!(
                stopped["stopped"] == 2 && stopped["running"] == json!([]),
                "burst {burst}, {how}: {stopped}"
            );
            assert!(start.elapsed() < DEADLINE, "burst {burst}, {how}");
        }
        let calls = stage.client.ask("ovos.tools.status", &json!({}))["calls"].clone();
        assert_eq!(calls, json!([]), "{how}");
    });
}

/// They are kept for clients that come back, and clients that do not must not fill the memory. What the first of them take is the table
/// up to its bound and what the allocator keeps; after that nothing grows.
#[test]
fn sessions_that_are_never_used_are_bounded() {
    let stage = Stage::new(&json!({ "http_token": false }));
    let door = Listening::start(&stage);
    let open = |count: usize| (0..count).for_each(|_| _ = Http::new(&door, false));
    open(1200);
    let before = Held::by(door.process.pid());
    open(900);
    let after = Held::by(door.process.pid());
    println!("{after}, before {before}");
    assert!(
        after.memory < before.memory + (5 << 10),
        "{after}, before {before}"
    );
    assert!(after.files <= before.files + 8, "{after}, before {before}");
}

#[test]
fn clients_that_do_not_know_empty_events_get_none() {
    let stage = Stage::new(&json!({ "http_token": false }));
    let door = Listening::start(&stage);
    for (version, has_empty) in [("2025-03-26", false), ("2025-06-18", false), ("2025-11-25", true)] {
        let mut client = Http::of(&door);
        let mut opening = initialize();
        opening["params"]["protocolVersion"] = json!(version);
        let opened = read(client.send("POST", &opening.to_string()));
        client.adopt(&opened, version);
        let list = read(client.send("POST", &client.message(5, &json!({"method": "tools/list"}))));
        for text in [opened, list] {
            let is_empty = |line: &str| line.trim_end() == "data:";
            assert_eq!(text.lines().any(is_empty), has_empty, "{version}: {text}");
        }
    }
}

/// What clients put beside the name of a tool that has no arguments, and what they should not.
const FORMS: [&str; 20] = [
    "",
    r#","arguments":{}"#,
    r#","arguments":null"#,
    r#","arguments":[]"#,
    r#","arguments":[1,2]"#,
    r#","arguments":"""#,
    r#","arguments":"{}""#,
    r#","arguments":"[]""#,
    r#","arguments":"at once""#,
    r#","arguments":0"#,
    r#","arguments":1e999"#,
    r#","arguments":false"#,
    r#","arguments":{"toolbox_id":[],"reason":null}"#,
    r#","arguments":{"a":"\ud800"}"#,
    r#","arguments":{},"arguments":5"#,
    r#","args":{},"input":[]"#,
    r#","_meta":5,"arguments":{}"#,
    r#","_meta":[]"#,
    r#","_meta":{"progressToken":{}}"#,
    r#","_meta":{"x":[null]},"task":7"#,
];

#[test]
fn every_stop_is_carried_out_whatever_its_arguments_are() {
    let mut stage = Stage::new(&json!({ "http_token": false }));
    each(&mut stage, |stage, client, how| {
        let deep = format!(r#","arguments":{}{}"#, "[".repeat(2000), "]".repeat(2000));
        for form in FORMS.iter().copied().chain([deep.as_str()]) {
            // The last is a tool of the toolbox.
            for name in ["emergency_stop", "stop_moving", "stop"] {
                let text = format!(
                    r#"{{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{{"name":"{name}"{form}}}}}"#
                );
                let answer = client.raw(9, &text);
                let result = &answer["result"];
                assert_eq!(result["isError"], false, "{name}{form}, {how}: {answer}");
                let held = stage.client.ask("ovos.tools.status", &json!({}))["toolboxes"].clone();
                let latched = held
                    .as_array()
                    .unwrap()
                    .iter()
                    .find(|toolbox| toolbox["toolbox_id"] == "testbed")
                    .unwrap();
                assert_eq!(latched["latched"], name != "stop_moving", "{name}{form}, {how}");
                if name != "stop_moving" {
                    let resume = json!({"toolbox_id": "testbed", "stop_id": latched["stop_id"]});
                    stage.client.ask("ovos.tools.resume", &resume);
                }
            }
        }
    });
}

#[test]
fn ill_formed_requests_are_answered_with_their_id() {
    let mut stage = Stage::new(&json!({ "http_token": false }));
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    each(&mut stage, |_, client, how| {
        let is_modern = how.ends_with("modern");
        for (method, mut params, code) in [
            ("tools/call", json!({"name": "add", "arguments": 5}), -32602),
            ("tools/call", json!({"name": "add", "arguments": [1]}), -32602),
            ("tools/call", json!({"name": "add", "arguments": "x"}), -32602),
            ("tools/call", json!({"name": 5}), -32602),
            ("tools/call", json!({}), -32602),
            ("tools/call", json!([]), -32602),
            ("tools/call", json!("x"), -32602),
            ("tools/call", json!({"name": "add", "_meta": 5}), -32602),
            ("tools/list", json!({"_meta": "x"}), -32602),
            ("tools/list", json!(5), -32602),
            ("resources/read", json!({}), -32602),
            ("resources/read", json!({"uri": 5}), -32602),
            ("prompts/get", json!({}), -32601),
            ("no/such", json!({}), -32601),
        ] {
            if is_modern && params.is_object() && params.get("_meta").is_none() {
                params["_meta"] = meta.clone();
            }
            let text = json!({"jsonrpc": "2.0", "id": 9, "method": method, "params": params}).to_string();
            let answer = client.raw(9, &text);
            assert_eq!(answer["error"]["code"], code, "{text}, {how}: {answer}");
            let message = answer["error"]["message"].as_str().unwrap();
            assert!(
                code == -32601 || message.contains("expected"),
                "{text}, {how}: {answer}"
            );
        }
        // What some languages write for no params.
        for params in [json!([]), json!(null), json!("")] {
            if is_modern {
                break;
            }
            let text =
                json!({"jsonrpc": "2.0", "id": 9, "method": "tools/list", "params": params}).to_string();
            let answer = client.raw(9, &text);
            assert!(answer["result"]["tools"].is_array(), "{text}, {how}: {answer}");
        }
        let text =
            json!({"method": "tools/call", "params": {"name": "add", "arguments": "{\"a\": 2, \"b\": 3}"}});
        let answer = client.ask(9, &text);
        assert_eq!(
            answer["result"]["structuredContent"]["result"], 5,
            "{how}: {answer}"
        );
    });
}
