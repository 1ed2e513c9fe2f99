//! A speech service on this machine: takes the door's sockets one after the other, and says what a test wants.

use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message, WebSocket, accept_hdr};

use crate::support::process::DEADLINE;

/// One look at the socket. It only bounds how late something is sent.
const LOOK: Duration = Duration::from_millis(2);

/// The service.
pub(crate) struct Speech {
    listener: TcpListener,
}

/// A socket of the door.
pub(crate) struct Line {
    /// The path and the query that it asked for.
    pub(crate) path: String,
    /// The header that holds the key.
    pub(crate) key: String,
    orders: Sender<Order>,
    frames: Receiver<Value>,
    _thread: JoinHandle<()>,
}

enum Order {
    Send(Message),
    /// Breaks the connection.
    Cut,
    /// Reads and writes nothing more, and keeps the connection.
    Freeze,
    /// Ends the conversation.
    Close(CloseCode),
}

impl Speech {
    pub(crate) fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        Self { listener }
    }

    pub(crate) fn url(&self) -> String {
        format!("ws://{}", self.listener.local_addr().unwrap())
    }

    /// The next socket of the door.
    #[track_caller]
    pub(crate) fn accept(&self) -> Line {
        self.accept_within(DEADLINE).expect("the door opens a socket")
    }

    /// The next connection of the door, which waits for its websocket: [`Line::new`] opens it.
    #[track_caller]
    pub(crate) fn dialled(&self) -> TcpStream {
        self.dialled_within(DEADLINE).expect("the door dials")
    }

    pub(crate) fn accept_within(&self, wait: Duration) -> Option<Line> {
        self.dialled_within(wait).map(Line::new)
    }

    fn dialled_within(&self, wait: Duration) -> Option<TcpStream> {
        let end = Instant::now() + wait;
        while Instant::now() < end {
            if let Ok((stream, _)) = self.listener.accept() {
                return Some(stream);
            }
            std::thread::park_timeout(LOOK);
        }
        None
    }
}

impl Line {
    pub(crate) fn new(stream: TcpStream) -> Self {
        stream.set_nonblocking(false).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        let (mut path, mut key) = (String::new(), String::new());
        #[expect(clippy::result_large_err, reason = "the library wants it so")]
        let look = |request: &Request, response: Response| -> Result<Response, ErrorResponse> {
            path = request.uri().to_string();
            let header = |name| request.headers().get(name)?.to_str().ok();
            let found = header("X-Hume-Api-Key").or_else(|| header("Authorization"));
            key = found.unwrap_or_default().to_owned();
            Ok(response)
        };
        let socket = accept_hdr(stream, look).unwrap();
        socket.get_ref().set_read_timeout(Some(LOOK)).unwrap();
        let ((orders, ordered), (heard, frames)) = (channel(), channel());
        let thread = std::thread::spawn(move || serve(socket, &ordered, &heard));
        Self {
            path,
            key,
            orders,
            frames,
            _thread: thread,
        }
    }

    pub(crate) fn say(&self, frame: &Value) {
        self.say_raw(Message::text(frame.to_string()));
    }

    pub(crate) fn say_raw(&self, message: Message) {
        // It may have been cut.
        _ = self.orders.send(Order::Send(message));
    }

    /// As Hume asks for a call.
    pub(crate) fn call(&self, id: &str, name: &str, args: &Value) {
        self.say(&tool_call(id, name, &args.to_string()));
    }

    pub(crate) fn cut(&self) {
        _ = self.orders.send(Order::Cut);
    }

    pub(crate) fn freeze(&self) {
        _ = self.orders.send(Order::Freeze);
    }

    pub(crate) fn close(&self, code: CloseCode) {
        _ = self.orders.send(Order::Close(code));
    }

    /// The next frame of the door; none if the time is up or the socket is closed.
    pub(crate) fn next(&self, wait: Duration) -> Option<Value> {
        self.frames.recv_timeout(wait).ok()
    }

    /// Reads until `found`.
    #[track_caller]
    pub(crate) fn until<T>(&self, what: &str, mut found: impl FnMut(&Value) -> Option<T>) -> T {
        let end = Instant::now() + DEADLINE;
        while let Some(frame) = self.next(end.saturating_duration_since(Instant::now())) {
            if let Some(value) = found(&frame) {
                return value;
            }
        }
        panic!("{what}: the door did not say it");
    }

    /// The answer to a call of Hume.
    #[track_caller]
    pub(crate) fn answer(&self, id: &str) -> Value {
        self.until(id, |frame| (frame["tool_call_id"] == id).then(|| frame.clone()))
    }

    /// The answer to a call that worked, as the model reads it.
    #[track_caller]
    pub(crate) fn result(&self, id: &str) -> Value {
        let answer = self.answer(id);
        assert_eq!(answer["type"], "tool_response", "{answer}");
        serde_json::from_str(answer["content"].as_str().unwrap()).unwrap()
    }

    /// The names of the tools that the door tells next.
    #[track_caller]
    pub(crate) fn tools(&self) -> Vec<String> {
        self.until("the tools", |frame| {
            let tools = frame["tools"]
                .as_array()
                .or(frame["session"]["tools"].as_array())?;
            let name = |tool: &Value| tool["name"].as_str().unwrap().to_owned();
            Some(tools.iter().map(name).collect())
        })
    }

    /// Everything that the door said so far, and says until it has answered one more call.
    #[track_caller]
    pub(crate) fn all_so_far(&self, probe: &str) -> Vec<Value> {
        self.call(probe, "add", &json!({"a": 1, "b": 2}));
        let mut texts = Vec::new();
        self.until(probe, |frame| {
            let is_it = frame["tool_call_id"] == probe;
            if !is_it {
                texts.push(frame.clone());
            }
            is_it.then_some(())
        });
        texts
    }
}

/// As Hume asks for a call, with these arguments as text.
pub(crate) fn tool_call(id: &str, name: &str, parameters: &str) -> Value {
    json!({
        "type": "tool_call", "tool_type": "function", "response_required": true,
        "tool_call_id": id, "name": name, "parameters": parameters,
    })
}

fn serve(mut socket: WebSocket<TcpStream>, ordered: &Receiver<Order>, heard: &Sender<Value>) {
    loop {
        while let Ok(order) = ordered.try_recv() {
            match order {
                Order::Send(message) => {
                    if socket.send(message).is_err() {
                        return;
                    }
                }
                Order::Cut => {
                    _ = socket.get_ref().shutdown(Shutdown::Both);
                    return;
                }
                Order::Freeze => {
                    // Until the test ends or cuts it.
                    while !matches!(ordered.recv(), Ok(Order::Cut) | Err(_)) {}
                    return;
                }
                Order::Close(code) => {
                    let reason = "as the test wants".into();
                    _ = socket.close(Some(CloseFrame { code, reason }));
                }
            }
        }
        match socket.read() {
            Ok(Message::Text(text)) => {
                let frame = serde_json::from_str(&text).expect("the door says JSON");
                if heard.send(frame).is_err() {
                    return;
                }
            }
            Ok(_) => {}
            Err(Error::Io(error))
                if matches!(
                    error.kind(),
                    std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
                ) => {}
            Err(_) => return,
        }
    }
}
