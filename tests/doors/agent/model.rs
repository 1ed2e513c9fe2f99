//! A model that plays a script: an HTTP server at a port of its own, which keeps what it was asked.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

/// What the model does with one request.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// Answers with this message.
    Says(Value),
    /// Answers with these bytes as they are, and this status.
    Raw(u16, String),
    /// Answers only then.
    Late(Duration, Box<Reply>),
    /// Closes the connection in the middle of its answer.
    Cut,
}

/// A running model.
pub(crate) struct Model {
    pub(crate) url: String,
    asked: Arc<Mutex<Vec<Value>>>,
}

/// A call by its name and arguments.
pub(crate) fn call(name: &str, arguments: Value) -> Reply {
    calls(&[(name, arguments)])
}

/// Several calls in one answer, with ids of their own.
pub(crate) fn calls(calls: &[(&str, Value)]) -> Reply {
    let calls = calls.iter().enumerate().map(|(number, (name, arguments))| {
        json!({
            "id": format!("{name}-{number}"),
            "type": "function",
            "function": {"name": name, "arguments": arguments.to_string()},
        })
    });
    Reply::Says(json!({"role": "assistant", "content": null, "tool_calls": calls.collect::<Vec<_>>()}))
}

/// The last call of most scripts.
pub(crate) fn finish() -> Reply {
    call("finish", json!({"reached": true, "summary": "It is done."}))
}

impl Model {
    /// Plays these replies, and the last one for ever.
    pub(crate) fn new(script: Vec<Reply>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&requests);
        // It ends with the test's process.
        thread::spawn(move || {
            let script = Arc::new(Mutex::new(script));
            for stream in listener.incoming().map_while(Result::ok) {
                let (script, kept) = (Arc::clone(&script), Arc::clone(&kept));
                thread::spawn(move || serve(stream, &script, &kept));
            }
        });
        Self { url, asked: requests }
    }

    /// The requests so far.
    pub(crate) fn requests(&self) -> Vec<Value> {
        self.asked.lock().unwrap().clone()
    }

    /// The messages of the last request that have this role.
    pub(crate) fn messages(&self, role: &str) -> Vec<Value> {
        let requests = self.requests();
        let messages = requests.last().expect("it was asked")["messages"].clone();
        let messages = messages.as_array().unwrap().clone();
        messages
            .into_iter()
            .filter(|message| message["role"] == role)
            .collect()
    }
}

fn serve(stream: TcpStream, script: &Mutex<Vec<Reply>>, kept: &Mutex<Vec<Value>>) {
    let mut writer = stream.try_clone().unwrap();
    let mut reader = BufReader::new(stream);
    loop {
        let mut length = 0;
        let mut path = String::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            if path.is_empty() {
                path = line.split(' ').nth(1).unwrap_or_default().to_owned();
            }
            let line = line.trim_end().to_ascii_lowercase();
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if line.is_empty() {
                break;
            }
        }
        assert_eq!(path, "/v1/chat/completions");
        let mut body = vec![0; length];
        if reader.read_exact(&mut body).is_err() {
            return;
        }
        kept.lock().unwrap().push(serde_json::from_slice(&body).unwrap());
        let reply = {
            let mut script = script.lock().unwrap();
            if script.len() > 1 {
                script.remove(0)
            } else {
                script[0].clone()
            }
        };
        if answer(&mut writer, reply).is_none() {
            return;
        }
    }
}

/// `None`: the connection is closed.
fn answer(writer: &mut TcpStream, reply: Reply) -> Option<()> {
    let (status, body) = match reply {
        Reply::Says(message) => {
            let finish = if message["tool_calls"].is_array() {
                "tool_calls"
            } else {
                "stop"
            };
            let choice = json!({"index": 0, "finish_reason": finish, "message": message});
            let usage = json!({"prompt_tokens": 90, "completion_tokens": 10, "total_tokens": 100});
            (
                200,
                json!({"id": "x", "object": "chat.completion", "choices": [choice], "usage": usage})
                    .to_string(),
            )
        }
        Reply::Raw(status, body) => (status, body),
        Reply::Late(by, reply) => {
            thread::sleep(by);
            return answer(writer, *reply);
        }
        Reply::Cut => {
            _ = writer.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{\"choices\": [{\"mess");
            _ = writer.shutdown(std::net::Shutdown::Both);
            return None;
        }
    };
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\nretry-after: 0\r\n\r\n",
        body.len()
    );
    writer.write_all(head.as_bytes()).ok()?;
    writer.write_all(body.as_bytes()).ok()
}
