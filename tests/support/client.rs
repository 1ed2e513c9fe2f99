//! A bus client that keeps every answer by its `call_id`, so that a test can check that each call has exactly one.
//!
//! It is plain `tungstenite` on a blocking socket and shares nothing with our own client. Read [`Client`].

use std::collections::HashMap;
use std::io::ErrorKind;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::{Error, Message, WebSocket, client};

use super::process::{DEADLINE, Process};

/// The timeout of one read of the socket. It only bounds how late a deadline is noticed.
const LOOK: Duration = Duration::from_millis(20);

/// A connection to the bus, and the answers that came over it.
pub(crate) struct Client {
    socket: WebSocket<TcpStream>,
    port: u16,
    /// Sent as `context.session.session_id`, when there is one.
    session: Option<String>,
    /// Sent as `context.source`.
    source: String,
    /// Sent as `context.peer`, when there is one.
    peer: Option<String>,
    asked: u64,
    answers: HashMap<String, Vec<Value>>,
}

impl Client {
    /// Connects; keeps trying until the deadline, because the bus may just be starting.
    pub(crate) fn connect(port: u16) -> Self {
        Self::new(dial_until(port), port)
    }

    /// Connects once.
    pub(crate) fn try_connect(port: u16) -> Option<Self> {
        Some(Self::new(dial(port)?, port))
    }

    fn new(socket: WebSocket<TcpStream>, port: u16) -> Self {
        Self {
            socket,
            port,
            session: None,
            source: "test".to_owned(),
            peer: None,
            asked: 0,
            answers: HashMap::new(),
        }
    }

    /// Sends in this session from now on.
    pub(crate) fn in_session(mut self, session: &str) -> Self {
        self.session = Some(session.to_owned());
        self
    }

    /// Names this program as the source of its messages.
    pub(crate) fn with_source(mut self, source: &str) -> Self {
        self.source = source.to_owned();
        self
    }

    /// Sends as a hub passes on what a satellite of this name sends.
    pub(crate) fn via_satellite(mut self, name: &str) -> Self {
        self.peer = Some(format!("{name}::1"));
        self
    }

    /// Reconnects as soon as there is a bus; the answers are kept.
    pub(crate) fn reconnect(&mut self) {
        self.socket = dial_until(self.port);
    }

    /// Sends a message; returns the `ident` in the context of its answer.
    pub(crate) fn send(&mut self, topic: &str, data: &Value) -> String {
        self.asked += 1;
        let local = self.socket.get_ref().local_addr().unwrap();
        let ident = format!("{local}-{}", self.asked);
        let mut context = json!({ "source": self.source, "ident": ident });
        if let Some(session) = &self.session {
            context["session"] = json!({ "session_id": session });
        }
        if let Some(peer) = &self.peer {
            context["peer"] = json!(peer);
        }
        self.send_text(&json!({ "type": topic, "data": data, "context": context }).to_string());
        ident
    }

    /// Sends a frame as it is.
    pub(crate) fn send_text(&mut self, text: &str) {
        self.socket
            .send(Message::text(text))
            .expect("the bus takes a frame");
    }

    /// Calls a tool without waiting for the answer.
    pub(crate) fn call(&mut self, call_id: &str, name: &str, args: &Value) {
        self.send(
            "ovos.tools.invoke",
            &json!({ "name": name, "args": args, "call_id": call_id, "toolbox_id": "testbed" }),
        );
    }

    /// The next message, even one for another client; none if the time is up or the bus is gone.
    pub(crate) fn next(&mut self, until: Instant) -> Option<Value> {
        loop {
            match self.socket.read() {
                Ok(Message::Text(text)) => {
                    let frame: Value = serde_json::from_str(&text).expect("the bus relays JSON");
                    self.book(&frame);
                    return Some(frame);
                }
                Ok(_) => {}
                Err(Error::Io(error))
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(_) => return None,
            }
            if Instant::now() >= until {
                return None;
            }
        }
    }

    /// Reads all messages until then.
    pub(crate) fn read_until(&mut self, until: Instant) {
        while Instant::now() < until && self.next(until).is_some() {}
    }

    fn book(&mut self, frame: &Value) {
        let kind = frame["type"].as_str().unwrap_or_default();
        // Other answers have a `call_id`, too, such as that of a cancel.
        let of_call = matches!(
            kind,
            "ovos.tools.invoke.response" | "ovos.tools.run.response" | "ovos.persona.tools.call.response"
        );
        if let (true, Some(call_id)) = (of_call, frame["data"]["call_id"].as_str()) {
            self.answers
                .entry(call_id.to_owned())
                .or_default()
                .push(frame["data"].clone());
        }
    }

    /// Reads until `found`; fails at the deadline, or when the bus goes.
    #[track_caller]
    pub(crate) fn until<T>(&mut self, what: &str, mut found: impl FnMut(&Value) -> Option<T>) -> T {
        let end = Instant::now() + DEADLINE;
        while let Some(frame) = self.next(end) {
            if let Some(value) = found(&frame) {
                return value;
            }
        }
        panic!("{what}: not on the bus within {DEADLINE:?}, or the bus went away");
    }

    /// Sends a request and waits for the answer to it.
    #[track_caller]
    pub(crate) fn ask(&mut self, topic: &str, data: &Value) -> Value {
        self.ask_within(topic, data, DEADLINE)
            .unwrap_or_else(|| panic!("{topic} {data}: no answer"))
    }

    /// The same, for a request that may get no answer.
    pub(crate) fn ask_within(&mut self, topic: &str, data: &Value, wait: Duration) -> Option<Value> {
        let ident = self.send(topic, data);
        let response = format!("{topic}.response");
        let end = Instant::now() + wait;
        loop {
            let frame = self.next(end)?;
            if frame["type"] == response && frame["context"]["ident"] == ident {
                return Some(frame["data"].clone());
            }
        }
    }

    /// Runs a tool of testbed to its answer.
    #[track_caller]
    pub(crate) fn invoke(&mut self, name: &str, args: &Value) -> Value {
        self.ask(
            "ovos.tools.invoke",
            &json!({ "name": name, "args": args, "toolbox_id": "testbed" }),
        )
    }

    /// Runs a tool to its result. A failure shows the log of the service.
    #[track_caller]
    pub(crate) fn result(&mut self, service: &Process, name: &str, args: &Value) -> Value {
        let answer = self.ask("ovos.tools.invoke", &json!({"name": name, "args": args}));
        assert!(answer["error"].is_null(), "{name}: {answer}\n{}", service.log());
        answer["result"].clone()
    }

    /// The phases of the calls under way, by call id.
    #[track_caller]
    pub(crate) fn calls(&mut self) -> HashMap<String, String> {
        let status = self.ask("ovos.tools.status", &json!({}));
        let calls = status["calls"].as_array().expect("a list of calls");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        calls
            .iter()
            .map(|call| (text(&call["call_id"]), text(&call["phase"])))
            .collect()
    }

    /// Asks for the status until exactly this many calls are in these phases, and none in any other.
    #[track_caller]
    pub(crate) fn until_phases(&mut self, wanted: &[(&str, usize)]) {
        let end = Instant::now() + DEADLINE;
        loop {
            let calls = self.calls();
            let count = |wanted: &str| calls.values().filter(|phase| *phase == wanted).count();
            let total: usize = wanted.iter().map(|(_, number)| number).sum();
            if calls.len() == total && wanted.iter().all(|(phase, number)| count(phase) == *number) {
                return;
            }
            let answers = self.answers.iter().take(3);
            assert!(
                Instant::now() < end,
                "expected {wanted:?}, found {} calls; answered were {} calls, such as {:?}",
                calls.len(),
                self.answers.len(),
                answers.collect::<Vec<_>>()
            );
        }
    }

    /// Asks for the status until this call is in this phase.
    #[track_caller]
    pub(crate) fn until_call(&mut self, call_id: &str, phase: &str) {
        let end = Instant::now() + DEADLINE;
        while self.calls().get(call_id).is_none_or(|found| found != phase) {
            assert!(
                Instant::now() < end,
                "{call_id}: expected {phase}, found {:?}",
                self.calls()
            );
        }
    }

    /// Reads until each of these calls has an answer.
    #[track_caller]
    pub(crate) fn until_answered<'a>(&mut self, call_ids: impl IntoIterator<Item = &'a String>) {
        let mut left: Vec<&String> = call_ids.into_iter().collect();
        let end = Instant::now() + DEADLINE;
        loop {
            left.retain(|call_id| !self.answers.contains_key(*call_id));
            if left.is_empty() {
                return;
            }
            assert!(
                self.next(end).is_some(),
                "{} calls without an answer, such as {}",
                left.len(),
                left[0]
            );
        }
    }

    /// Reads until one of these calls has an answer.
    #[track_caller]
    pub(crate) fn until_any_answered(&mut self, call_ids: &[String]) {
        let end = Instant::now() + DEADLINE;
        while !call_ids.iter().any(|call_id| self.answers.contains_key(call_id)) {
            assert!(
                self.next(end).is_some(),
                "none of {} calls has an answer",
                call_ids.len()
            );
        }
    }

    /// The first answer of a call, if there is one.
    pub(crate) fn answer_of(&self, call_id: &str) -> Option<&Value> {
        self.answers.get(call_id)?.first()
    }

    /// Every call that was answered so far.
    pub(crate) fn answered(&self) -> Vec<String> {
        self.answers.keys().cloned().collect()
    }

    /// The only answer of a call; any other number fails the test. All answers sent before that to the last
    /// [`ask`](Self::ask) have arrived, because the bus keeps the order.
    #[track_caller]
    pub(crate) fn only_answer(&self, call_id: &str) -> &Value {
        match self.answers.get(call_id).map(Vec::as_slice) {
            Some([answer]) => answer,
            Some(answers) => panic!("{call_id} was answered {} times: {answers:?}", answers.len()),
            None => panic!("{call_id} was never answered"),
        }
    }

    /// As [`only_answer`](Self::only_answer), and forgets the call: a later answer to it is a stray.
    #[track_caller]
    pub(crate) fn settled(&mut self, call_id: &str) -> Value {
        let answer = self.only_answer(call_id).clone();
        self.answers.remove(call_id);
        answer
    }

    /// The answers to calls whose ids start like this; answers to calls of other clients are forgotten.
    pub(crate) fn strays(&mut self, of: &str) -> Vec<String> {
        self.answers.retain(|call_id, _| call_id.starts_with(of));
        self.answers.keys().cloned().collect()
    }
}

fn dial_until(port: u16) -> WebSocket<TcpStream> {
    let end = Instant::now() + DEADLINE;
    loop {
        if let Some(socket) = dial(port) {
            return socket;
        }
        assert!(Instant::now() < end, "no bus on port {port}");
        // A port that opens cannot be awaited, so it is polled quickly.
        std::thread::park_timeout(Duration::from_millis(1));
    }
}

fn dial(port: u16) -> Option<WebSocket<TcpStream>> {
    let stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_nodelay(true).ok()?;
    // The handshake may take its time on a busy machine.
    stream.set_read_timeout(Some(DEADLINE)).ok()?;
    let (socket, _) = client(format!("ws://127.0.0.1:{port}/core"), stream).ok()?;
    socket.get_ref().set_read_timeout(Some(LOOK)).ok()?;
    Some(socket)
}
