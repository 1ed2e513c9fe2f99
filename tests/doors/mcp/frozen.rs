//! Clients that read nothing while something moves for them: for good, or for a while.

use std::io::{Read, Write as _};
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::mcp::door::{Listening, Stage};
use crate::mcp::order::moves;
use crate::mcp::sessions::{Http, initialize, message, read};

/// How soon a frozen client is noticed.
const NOTICED: Duration = Duration::from_secs(5);

const PARTS: [&str; 4] = ["left_arm", "right_arm", "gantry", "base"];

/// A client with a call under way.
struct Client {
    frozen: Arc<AtomicBool>,
    door: Option<Child>,
}

impl Client {
    /// Sends a call, and reads what comes until it is frozen, or nothing at all.
    fn begin(stage: &Stage, http: Option<&Http>, is_modern: bool, request: &Value, reads: bool) -> Self {
        let frozen = Arc::new(AtomicBool::new(!reads));
        let Some(http) = http else {
            let mut door = stage.at_stdio(&[]);
            let mut stdin = door.stdin.take().unwrap();
            if !is_modern {
                writeln!(stdin, "{}", initialize()).unwrap();
            }
            writeln!(stdin, "{}", message(100, request, is_modern)).unwrap();
            let stdout = door.stdout.take().unwrap();
            follow(stdout, stdin, &frozen);
            return Self {
                frozen,
                door: Some(door),
            };
        };
        let socket = http.send("POST", &http.message(100, request));
        let other = socket.try_clone().unwrap();
        follow(socket, other, &frozen);
        Self { frozen, door: None }
    }

    fn freeze(&self) {
        self.frozen.store(true, Ordering::Relaxed);
    }

    fn thaw(&self) {
        self.frozen.store(false, Ordering::Relaxed);
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if let Some(door) = &mut self.door {
            _ = door.kill();
            _ = door.wait();
        }
    }
}

/// Reads while the client is not frozen, and keeps both ends.
fn follow(mut read: impl Read + Send + 'static, write: impl Send + 'static, frozen: &Arc<AtomicBool>) {
    let frozen = Arc::clone(frozen);
    thread::spawn(move || {
        let mut bytes = vec![0; 1 << 20];
        let mut ended = false;
        loop {
            if ended || frozen.load(Ordering::Relaxed) {
                thread::park_timeout(Duration::from_millis(20));
            } else {
                ended = !matches!(read.read(&mut bytes), Ok(1..));
            }
            _ = &write;
        }
    });
}

/// Fails if another number of calls runs within this time.
fn runs_for(stage: &mut Stage, calls: usize, time: Duration) {
    let end = Instant::now() + time;
    while let Some(left) = end.checked_duration_since(Instant::now()) {
        stage.client.until_phases(&[("running", calls)]);
        thread::park_timeout(left.min(Duration::from_millis(100)));
    }
}

#[test]
fn a_frozen_client_is_noticed_in_each_transport_and_era_with_and_without_progress() {
    // Requests that are not answered before: of one that was, a lease tells.
    let mut stage = Stage::new(&json!({ "http_token": false, "reply_within_ms": 600_000 }));
    let door = Listening::start(&stage);
    for is_modern in [true, false] {
        for reads in [false, true] {
            let http = Http::new(&door, is_modern);
            let rows = [(false, false), (false, true), (true, false), (true, true)];
            let clients: Vec<Client> = rows
                .iter()
                .zip(PARTS)
                .map(|(&(over_http, progress), part)| {
                    let mut request = moves(part, 100_000);
                    if progress {
                        request["params"]["_meta"] = json!({"progressToken": 1});
                    }
                    let http = over_http.then_some(&http);
                    Client::begin(&stage, http, is_modern, &request, reads)
                })
                .collect();
            stage.client.until_phases(&[("running", 4)]);
            if reads {
                // One that reads is not taken for frozen. One of the legacy era would have to answer a ping after that.
                let moved = Duration::from_millis(if is_modern { 4000 } else { 1500 });
                runs_for(&mut stage, 4, moved);
                clients.iter().for_each(Client::freeze);
            }
            let start = Instant::now();
            stage.client.until_phases(&[]);
            let noticed = start.elapsed();
            println!("modern {is_modern}, reads before {reads}: {noticed:?}");
            assert!(
                noticed < NOTICED,
                "modern {is_modern}, reads before {reads}: {noticed:?}"
            );
        }
    }
}

/// An answer waits until the client has read the progress before it. Meanwhile the service must know that the door is there.
#[test]
fn a_client_that_reads_late_does_not_end_what_moves() {
    let mut stage = Stage::new(&json!({ "reply_within_ms": 2000 }));
    let mut request = moves("base", 100_000);
    request["params"]["_meta"] = json!({"progressToken": 1});
    let client = Client::begin(&stage, None, true, &request, true);
    stage.client.until_phases(&[("running", 1)]);
    runs_for(&mut stage, 1, Duration::from_millis(1200));
    client.freeze();
    runs_for(&mut stage, 1, Duration::from_millis(2100));
    client.thaw();
    runs_for(&mut stage, 1, Duration::from_millis(600));
}

/// What the door sends to find out is nothing to a client that reads it.
#[test]
fn a_client_that_reads_gets_its_answer_after_whatever_was_sent_before_it() {
    let stage = Stage::new(&json!({ "http_token": false }));
    let door = Listening::start(&stage);
    let http = Http::new(&door, true);
    for progress in [false, true] {
        let mut request = moves("base", 300);
        if progress {
            request["params"]["_meta"] = json!({"progressToken": 1});
        }
        let text = read(http.send("POST", &http.message(7, &request)));
        assert!(
            text.to_lowercase().contains("content-type: text/event-stream"),
            "{text}"
        );
        assert!(text.contains("\n: "), "nothing was sent before the answer");
        let answer = Http::answer_in(7, &text);
        assert_eq!(answer["result"]["isError"], false, "{answer}");
        let is_whole = |line: &str| line.is_empty() || line.starts_with(':') || line.starts_with("data:");
        let body = text.split_once("\r\n\r\n").unwrap().1;
        assert!(body.lines().all(is_whole), "{body}");
    }
}
