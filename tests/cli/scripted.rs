//! A bus with a scripted service behind it, and the binary with an environment of its own.
//!
//! Like a messagebus it sends every frame back to its sender, too. As on a busy bus, an answer of another session
//! comes before every answer: a client has to keep them apart.

use std::path::Path;
use std::process::{Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message as Frame;

/// Longer than any step of these tests takes, unless something is broken.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

/// The service's messages for a request: (topic, data), in order.
pub(crate) type Script = Box<dyn Fn(&str, &Value) -> Vec<(String, Value)> + Send + Sync>;

pub(crate) struct Bus {
    pub(crate) url: String,
    heard: Arc<Mutex<Vec<(String, Value)>>>,
    changed: watch::Receiver<usize>,
}

impl Bus {
    pub(crate) async fn start(script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("ws://{}/core", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (notify, changed) = watch::channel(0);
        let script = Arc::new(script);
        let log = Arc::clone(&requests);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(converse(
                    stream,
                    Arc::clone(&script),
                    Arc::clone(&log),
                    notify.clone(),
                ));
            }
        });
        Self {
            url,
            heard: requests,
            changed,
        }
    }

    /// A service that answers one topic, always with the same data.
    pub(crate) async fn answering(topic: &str, answer: Value) -> Self {
        let topic = topic.to_owned();
        Self::start(Box::new(move |asked, _| {
            if asked == topic {
                vec![(format!("{topic}.response"), answer.clone())]
            } else {
                Vec::new()
            }
        }))
        .await
    }

    /// The requests under a topic, in order.
    pub(crate) fn requests(&self, topic: &str) -> Vec<Value> {
        let requests = self.heard.lock().unwrap();
        requests
            .iter()
            .filter(|(asked, _)| asked == topic)
            .map(|(_, data)| data.clone())
            .collect()
    }

    /// Waits for a request under a topic.
    pub(crate) async fn hears(&mut self, topic: &str) -> Value {
        let waiting = async {
            loop {
                if let Some(data) = self.requests(topic).into_iter().next() {
                    return data;
                }
                self.changed.changed().await.unwrap();
            }
        };
        timeout(DEADLINE, waiting)
            .await
            .unwrap_or_else(|_| panic!("{topic} was not asked"))
    }
}

async fn converse(
    stream: TcpStream,
    script: Arc<Script>,
    heard: Arc<Mutex<Vec<(String, Value)>>>,
    told: watch::Sender<usize>,
) {
    let Ok(mut socket) = tokio_tungstenite::accept_async(stream).await else {
        return;
    };
    let greeting =
        json!({"type": "connected", "data": {}, "context": {"session": {"session_id": "default"}}});
    let mut replies = vec![greeting];
    loop {
        for reply in replies.drain(..) {
            if socket.send(Frame::text(reply.to_string())).await.is_err() {
                return;
            }
        }
        let Some(Ok(frame)) = socket.next().await else {
            return;
        };
        let Ok(text) = frame.to_text() else { continue };
        let Ok(message) = serde_json::from_str::<Value>(text) else {
            continue;
        };
        let topic = message["type"].as_str().unwrap_or_default().to_owned();
        heard
            .lock()
            .unwrap()
            .push((topic.clone(), message["data"].clone()));
        told.send_modify(|count| *count += 1);
        replies.push(message.clone());
        let elsewhere = json!({"session": {"session_id": "another"}});
        for (kind, data) in script(&topic, &message["data"]) {
            replies.push(json!({"type": kind, "data": {"error": "not yours"}, "context": elsewhere}));
            replies.push(json!({"type": kind, "data": data, "context": message["context"]}));
        }
    }
}

/// The binary, in an environment in which all its folders are below `home`.
pub(crate) fn command(home: &Path, arguments: &[&str]) -> Command {
    command_of(env!("CARGO_BIN_EXE_ovos-tools").as_ref(), home, arguments)
}

/// The same for a program that becomes the binary.
pub(crate) fn command_of(program: &Path, home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).env_clear().env("HOME", home);
    for (name, folder) in [
        ("XDG_CONFIG_HOME", "config"),
        ("XDG_CONFIG_DIRS", "etc"),
        ("XDG_STATE_HOME", "state"),
        ("XDG_DATA_HOME", "data"),
        ("XDG_CACHE_HOME", "cache"),
        ("XDG_RUNTIME_DIR", "run"),
    ] {
        command.env(name, home.join(folder));
    }
    let absent = home.join("absent.conf");
    for name in [
        "OVOS_DEFAULT_CONFIG",
        "OVOS_DISTRIBUTION_CONFIG",
        "MYCROFT_SYSTEM_CONFIG",
    ] {
        command.env(name, &absent);
    }
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// How a run of the binary ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

pub(crate) async fn run(arguments: &[&str]) -> Ran {
    let home = tempfile::tempdir().unwrap();
    finish(command(home.path(), arguments).spawn().unwrap()).await
}

pub(crate) async fn finish(child: Child) -> Ran {
    let Output {
        status,
        stdout,
        stderr,
    } = timeout(DEADLINE, child.wait_with_output())
        .await
        .expect("the program did not end")
        .unwrap();
    Ran {
        code: status.code().unwrap_or(-1),
        out: String::from_utf8(stdout).unwrap(),
        err: String::from_utf8(stderr).unwrap(),
    }
}

/// A port that nothing listens on.
pub(crate) async fn unused_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    format!("ws://{}/core", listener.local_addr().unwrap())
}
