//! A service on a bus of its own, and a client that checks every answer against its published schema.
//!
//! Start with [`World`]; [`Client`] sends and receives, [`meets`] compares with what a test expects.

use std::collections::HashMap;
use std::net::TcpStream;
use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{self, Message, WebSocket, client::client_with_config};

use super::process::{DEADLINE, Process, Sandbox, free_port};

/// The source of every frame that a test sends, so that its echo is recognised.
const ME: &str = "contract test";

/// `ovos-tools serve` with the embedded bus and the toolboxes of `make testbed`, ready.
pub(crate) struct World {
    port: u16,
    process: Process,
    _sandbox: Sandbox,
}

impl World {
    /// `section` is the configuration's `PHAL."ovos-phal-plugin-tools"`.
    pub(crate) fn start(section: &Value) -> Self {
        let binary = Path::new(env!("CARGO_BIN_EXE_ovos-tools"));
        let plugins = binary.ancestors().nth(2).unwrap().join("testbed-plugins");
        assert!(
            plugins.join("testbed.so").exists(),
            "no testbed.so in {}: run `make testbed`",
            plugins.display()
        );
        let port = free_port();
        let sandbox = Sandbox::new();
        let mut section = section.clone();
        // With slack for a machine busy with tests.
        let plan_ms = &mut section["service"]["plan_ms"];
        if plan_ms.is_null() {
            *plan_ms = json!(30_000);
        }
        let conf = json!({
            "websocket": { "host": "127.0.0.1", "port": port },
            "PHAL": { "ovos-phal-plugin-tools": section },
        });
        std::fs::write(sandbox.path("config/mycroft/mycroft.conf"), conf.to_string()).unwrap();
        let mut command = sandbox.command(binary);
        command
            .args(["serve", "--embedded-bus", "always", "--plugins"])
            .arg(plugins);
        let mut process = Process::start("ovos-tools", &sandbox, command);
        let mut client = process.until("a bus", |_| Client::try_connect(port));
        process.until("all toolboxes", |_| client.all_loaded().then_some(()));
        Self {
            port,
            process,
            _sandbox: sandbox,
        }
    }

    pub(crate) fn client(&self) -> Client {
        Client::try_connect(self.port).expect("the bus takes a client")
    }

    /// The address of its bus.
    pub(crate) fn url(&self) -> String {
        format!("ws://127.0.0.1:{}/core", self.port)
    }

    /// The end of the service's log, for a failure message.
    pub(crate) fn log(&self) -> String {
        self.process.log()
    }
}

/// A bus client. Frames that were not taken yet are kept in the order of arrival.
pub(crate) struct Client {
    socket: WebSocket<TcpStream>,
    heard: Vec<Value>,
    requests: u64,
}

impl Client {
    fn try_connect(port: u16) -> Option<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
        stream.set_read_timeout(Some(Duration::from_millis(200))).ok()?;
        stream.set_nodelay(true).ok()?;
        let config = WebSocketConfig::default()
            .max_message_size(Some(64 << 20))
            .max_frame_size(Some(64 << 20));
        let (socket, _) =
            client_with_config(format!("ws://127.0.0.1:{port}/core"), stream, Some(config)).ok()?;
        Some(Self {
            socket,
            heard: Vec::new(),
            requests: 0,
        })
    }

    fn all_loaded(&mut self) -> bool {
        let n = self.send("mycroft.ovos_tools.all_loaded", json!({}));
        let end = Instant::now() + Duration::from_millis(200);
        while Instant::now() < end {
            if let Some(answer) = self.answered(n) {
                return answer["status"] == true;
            }
            self.read();
        }
        false
    }

    /// Sends a request; returns the number by which its answer is recognised.
    pub(crate) fn send(&mut self, topic: &str, data: Value) -> u64 {
        self.send_in("", topic, data)
    }

    /// Sends a request in a session.
    pub(crate) fn send_in(&mut self, session: &str, topic: &str, data: Value) -> u64 {
        let mut context = self.context();
        if !session.is_empty() {
            context["session"] = json!({ "session_id": session });
        }
        self.say(&json!({ "type": topic, "data": data, "context": context }).to_string());
        self.requests
    }

    /// A context by which the answer to the next frame is recognised.
    pub(crate) fn context(&mut self) -> Value {
        self.requests += 1;
        json!({ "source": ME, "destination": "tools", "n": self.requests })
    }

    /// The number of the last request.
    pub(crate) fn last(&self) -> u64 {
        self.requests
    }

    /// Sends a text unchanged.
    pub(crate) fn say(&mut self, text: &str) {
        self.put(Message::text(text)).expect("the bus takes a frame");
    }

    /// Sends a frame that the bus may not like.
    pub(crate) fn put(&mut self, frame: Message) -> Result<(), tungstenite::Error> {
        self.socket.send(frame)
    }

    /// Sends a request and waits for the data of its answer.
    pub(crate) fn ask(&mut self, topic: &str, data: Value) -> Value {
        let n = self.send(topic, data);
        self.answer(n)
    }

    pub(crate) fn invoke(&mut self, name: &str, args: Value) -> Value {
        self.ask("ovos.tools.invoke", json!({ "name": name, "args": args }))
    }

    /// Waits for the answer to a request.
    #[track_caller]
    pub(crate) fn answer(&mut self, n: u64) -> Value {
        self.until(&format!("the answer to request {n}"), |frame| is_answer(frame, n))["data"].clone()
    }

    /// The answer to a request, if it was read already.
    pub(crate) fn answered(&mut self, n: u64) -> Option<Value> {
        let at = self.heard.iter().position(|frame| is_answer(frame, n))?;
        Some(self.heard.remove(at)["data"].clone())
    }

    /// Waits for a progress message of this kind.
    #[track_caller]
    pub(crate) fn progress(&mut self, call_id: &str, kind: &str) -> Value {
        self.until(&format!("{kind} of {call_id}"), |frame| {
            frame["type"] == "ovos.tools.invoke.progress"
                && frame["data"]["call_id"] == call_id
                && frame["data"]["kind"] == kind
        })
    }

    /// Takes the first frame that `found` accepts; waits for it until the deadline.
    #[track_caller]
    pub(crate) fn until(&mut self, what: &str, mut found: impl FnMut(&Value) -> bool) -> Value {
        let end = Instant::now() + DEADLINE;
        let mut seen = 0;
        loop {
            if let Some(at) = self.heard[seen..].iter().position(&mut found) {
                return self.heard.remove(seen + at);
            }
            seen = self.heard.len();
            assert!(
                Instant::now() < end,
                "no {what} within {DEADLINE:?}; heard {:?}",
                self.heard
            );
            self.read();
        }
    }

    /// Takes every frame read so far that `wanted` accepts.
    pub(crate) fn take(&mut self, wanted: impl Fn(&Value) -> bool) -> Vec<Value> {
        let (taken, kept) = std::mem::take(&mut self.heard)
            .into_iter()
            .partition(|frame| wanted(frame));
        self.heard = kept;
        taken
    }

    /// Reads until the bus has closed the connection.
    pub(crate) fn until_closed(&mut self) {
        let end = Instant::now() + DEADLINE;
        while Instant::now() < end {
            match self.socket.read() {
                Ok(_) => {}
                Err(tungstenite::Error::Io(error)) if is_timeout(&error) => {}
                Err(_) => return,
            }
        }
        panic!("the bus did not close the connection");
    }

    /// Reads one frame, or gives up after the socket's timeout.
    fn read(&mut self) {
        match self.socket.read() {
            Ok(Message::Text(text)) => {
                let Ok(frame) = serde_json::from_str::<Value>(&text) else {
                    return;
                };
                if frame.is_object() && frame["context"]["source"] != ME {
                    check_schema(&frame);
                    self.heard.push(frame);
                }
            }
            Ok(_) => {}
            Err(tungstenite::Error::Io(error)) if is_timeout(&error) => {}
            Err(error) => panic!("the bus dropped us: {error}"),
        }
    }
}

fn is_answer(frame: &Value, n: u64) -> bool {
    frame["context"]["n"] == n
        && frame["type"]
            .as_str()
            .is_some_and(|topic| topic.ends_with(".response"))
}

fn is_timeout(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
    )
}

/// Checks a frame of the service against its schema in `schemas/bus`.
fn check_schema(frame: &Value) {
    static SCHEMAS: OnceLock<HashMap<String, jsonschema::Validator>> = OnceLock::new();
    let schemas = SCHEMAS.get_or_init(|| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas/bus");
        let compile = |entry: std::io::Result<std::fs::DirEntry>| {
            let path = entry.unwrap().path();
            let schema: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
            let topic = path.file_stem().unwrap().to_str().unwrap().to_owned();
            (topic, jsonschema::validator_for(&schema).unwrap())
        };
        std::fs::read_dir(folder).unwrap().map(compile).collect()
    });
    let topic = frame["type"].as_str().unwrap_or_default();
    let sent_by_service =
        topic.ends_with(".response") || topic.ends_with(".progress") || topic.ends_with(".event");
    let shape = match topic.strip_prefix("ovos.persona.tools.") {
        Some(call) if call.ends_with(".call.response") => "ovos.persona.tools.call.response",
        _ if topic.starts_with("mycroft.ovos_tools.") => "mycroft.ovos_tools.is_ready.response",
        _ => topic,
    };
    let Some(schema) = schemas.get(shape).filter(|_| sent_by_service) else {
        let ours = sent_by_service && topic.starts_with("ovos.");
        assert!(!ours, "no schema for {topic}");
        return;
    };
    let wrong: Vec<String> = schema
        .iter_errors(&frame["data"])
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(
        wrong.is_empty(),
        "{topic} is not what its schema says: {wrong:?}\n{frame:#}"
    );
}

/// Compares a value with the expected one: `"*"` stands for any value, `"~text"` for a text that contains `text`, an
/// object with the key `"..."` may have more keys, and anything else stands for itself.
pub(crate) fn meets(expected: &Value, found: &Value) -> Result<(), String> {
    let wrong = || format!("expected {expected}, found {found}");
    let same = match (expected, found) {
        (Value::String(text), _) if text == "*" => true,
        (Value::String(text), Value::String(found)) if text.starts_with('~') => found.contains(&text[1..]),
        (Value::Array(expected), Value::Array(found)) if expected.len() == found.len() => {
            return expected.iter().zip(found).try_for_each(|(e, f)| meets(e, f));
        }
        (Value::Object(expected), Value::Object(found)) => return meets_object(expected, found),
        _ => expected == found,
    };
    if same { Ok(()) } else { Err(wrong()) }
}

fn meets_object(expected: &Map<String, Value>, found: &Map<String, Value>) -> Result<(), String> {
    for (key, expected) in expected.iter().filter(|(key, _)| *key != "...") {
        let found = found.get(key).ok_or_else(|| format!("no `{key}` in {found:?}"))?;
        meets(expected, found).map_err(|wrong| format!("{key}: {wrong}"))?;
    }
    let more = found.keys().find(|key| !expected.contains_key(*key));
    match more {
        Some(key) if !expected.contains_key("...") => Err(format!("`{key}` is too much: {found:?}")),
        _ => Ok(()),
    }
}

/// [`meets`], or the test fails.
#[track_caller]
pub(crate) fn expect(what: &str, expected: &Value, found: &Value) {
    if let Err(wrong) = meets(expected, found) {
        panic!("{what}: {wrong}\nwhole answer: {found:#}");
    }
}
