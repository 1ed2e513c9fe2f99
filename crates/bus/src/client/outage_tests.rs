//! The client against a bus that goes away, over pipes in memory and on a paused clock.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use bytes::BytesMut;
use futures_util::{SinkExt, StreamExt};
use serde_json::{Map, Value, json};
use tokio::io::DuplexStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message as Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role};
use url::Url;

use super::dial::Line;
use super::*;
use crate::message::Message;

type Socket = WebSocketStream<DuplexStream>;

/// Gives the client connections to a bus that the test plays.
struct Pipes {
    capacity: usize,
    is_up: Arc<AtomicBool>,
    attempts: Arc<Mutex<Vec<Instant>>>,
    accepted: mpsc::UnboundedSender<DuplexStream>,
}

impl Dial for Pipes {
    async fn dial(&mut self) -> Result<Line, DialError> {
        self.attempts.lock().unwrap().push(Instant::now());
        if !self.is_up.load(Ordering::Acquire) {
            return Err(DialError::Unreachable {
                url: url(),
                source: std::io::ErrorKind::ConnectionRefused.into(),
            });
        }
        let (near, far) = tokio::io::duplex(self.capacity);
        self.accepted.send(far).unwrap();
        Ok(Line {
            stream: Box::new(near),
            read: BytesMut::new(),
        })
    }
}

struct Handler {
    frames: mpsc::UnboundedSender<(String, Instant)>,
    reasons: mpsc::UnboundedSender<String>,
}

impl BusHandler for Handler {
    fn frame(&self, text: Utf8Bytes) {
        let _ = self.frames.send((text.to_string(), Instant::now()));
    }

    fn connected(&self) {}

    fn disconnected(&self, reason: &str) {
        let _ = self.reasons.send(reason.to_owned());
    }

    fn instead(&self, answer: &str, reason: &str) -> Option<String> {
        let mut message = Message::parse(answer).ok()?;
        message.data = Map::from_iter([("error".to_owned(), reason.into())]);
        Some(message.to_text())
    }
}

/// A client, its events, and the bus ends of its connections.
struct Scene {
    client: BusClient,
    is_up: Arc<AtomicBool>,
    attempts: Arc<Mutex<Vec<Instant>>>,
    accepted: mpsc::UnboundedReceiver<DuplexStream>,
    received: mpsc::UnboundedReceiver<(String, Instant)>,
    /// Why connections ended.
    reasons: mpsc::UnboundedReceiver<String>,
    _shutdown: tokio_util::sync::DropGuard,
}

impl Scene {
    /// Starts a client whose connections buffer `capacity` bytes in each direction.
    fn start(capacity: usize, change: impl FnOnce(&mut ClientConfig)) -> Self {
        let (to_bus, accepted) = mpsc::unbounded_channel();
        let (frames, received) = mpsc::unbounded_channel();
        let (to_test, reasons) = mpsc::unbounded_channel();
        let pipes = Pipes {
            capacity,
            is_up: Arc::new(AtomicBool::new(true)),
            attempts: Arc::default(),
            accepted: to_bus,
        };
        let (is_up, attempts) = (pipes.is_up.clone(), pipes.attempts.clone());
        let mut config = ClientConfig::new(url());
        change(&mut config);
        let shutdown = CancellationToken::new();
        let handler = Arc::new(Handler {
            frames,
            reasons: to_test,
        });
        let client = BusClient::start_on(
            pipes,
            None,
            config,
            handler,
            &TaskTracker::new(),
            shutdown.clone(),
        );
        Self {
            client,
            is_up,
            attempts,
            accepted,
            received,
            reasons,
            _shutdown: shutdown.drop_guard(),
        }
    }

    async fn accept(&mut self) -> Socket {
        let pipe = soon(self.accepted.recv()).await.unwrap();
        WebSocketStream::from_raw_socket(pipe, Role::Server, None).await
    }

    /// Echoes one answer, so that the client knows that this bus echoes.
    async fn echo_once(&mut self, bus: &mut Socket) {
        self.client.answer(answer("first", 1).to_text()).await.unwrap();
        echo(bus).await;
        soon(self.received.recv()).await.unwrap();
        assert!(self.client.echoes());
    }
}

/// Fails after ten minutes of the paused clock, which take no real time.
async fn soon<F: Future>(future: F) -> F::Output {
    let outcome = tokio::time::timeout(Duration::from_secs(600), future).await;
    outcome.expect("within ten minutes")
}

fn url() -> Url {
    Url::parse("ws://127.0.0.1:8181/core").unwrap()
}

fn answer(call_id: &str, size: usize) -> Message {
    let data = json!({ "name": "t", "call_id": call_id, "result": { "x": "x".repeat(size) } });
    let Value::Object(data) = data else {
        unreachable!("an object, four lines up")
    };
    let mut message = Message::new("ovos.tools.invoke.response", data);
    message.context.insert("ident".to_owned(), call_id.into());
    message
}

async fn read(bus: &mut Socket) -> Message {
    loop {
        if let Frame::Text(text) = soon(bus.next()).await.unwrap().unwrap() {
            return Message::parse(&text).unwrap();
        }
    }
}

async fn echo(bus: &mut Socket) -> Message {
    let message = read(bus).await;
    bus.send(Frame::text(message.to_text())).await.unwrap();
    message
}

fn resent(message: &Message) -> Option<u64> {
    message.context.get("ovos_tools")?["resent"].as_u64()
}

/// The bus hangs for a minute with 200 answers in flight and is killed; the bus that replaces it may be killed again.
async fn hang(seed: u64) -> u64 {
    let mut random = fastrand::Rng::with_seed(seed);
    // Of the data written to a dead connection some fits into the kernel's buffers and some does not.
    let mut scene = Scene::start(1 << random.u32(10..=20), |_| {});
    let mut bus = scene.accept().await;
    scene.echo_once(&mut bus).await;

    let sizes: HashMap<String, usize> = (0..200)
        .map(|n| (format!("call-{n}"), random.usize(0..4096)))
        .collect();
    for (call_id, size) in sizes.clone() {
        let (client, due) = (scene.client.clone(), Duration::from_millis(random.u64(0..60_000)));
        tokio::spawn(async move {
            sleep(due).await;
            client.answer(answer(&call_id, size).to_text()).await.unwrap();
        });
    }
    sleep(Duration::from_secs(60)).await;
    drop(bus);

    let mut arrived = HashSet::new();
    let mut cuts = random.u32(0..=1);
    while arrived.len() < sizes.len() {
        let mut bus = scene.accept().await;
        let mut left = if cuts > 0 {
            random.usize(0..200)
        } else {
            usize::MAX
        };
        cuts = cuts.saturating_sub(1);
        let mut marked_only = true;
        while left > 0 && arrived.len() < sizes.len() {
            let message = echo(&mut bus).await;
            let call_id = message.data["call_id"].as_str().unwrap().to_owned();
            let mut unmarked = message.clone();
            let mark = unmarked.context.shift_remove("ovos_tools");
            assert_eq!(unmarked, answer(&call_id, sizes[&call_id]), "seed {seed}");
            if let Some(mark) = &mark {
                assert_eq!(mark["call_id"], call_id, "seed {seed}");
                assert!(
                    marked_only,
                    "seed {seed}: {call_id} is sent again behind a new answer"
                );
            }
            marked_only = mark.is_some();
            assert!(
                arrived.insert(call_id.clone()) || mark.is_some(),
                "seed {seed}: {call_id} came twice without a mark"
            );
            left -= 1;
        }
    }
    let counters = scene.client.counters();
    assert_eq!(counters.answers_given_up, 0, "seed {seed}");
    counters.answers_resent
}

#[tokio::test(start_paused = true)]
#[allow(clippy::print_stderr, reason = "the figures")]
async fn no_answer_is_lost_on_a_bus_that_hangs_for_a_minute() {
    let seeds: Vec<_> = (0..50).map(|seed| tokio::spawn(hang(seed))).collect();
    let mut again = 0;
    for seed in seeds {
        again += soon(seed).await.unwrap();
    }
    eprintln!("50 times 200 answers: none lost, {again} sent again");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_costs_the_connection_becomes_an_error() {
    let mut scene = Scene::start(1 << 16, |_| {});
    let mut bus = scene.accept().await;
    scene.echo_once(&mut bus).await;
    scene.client.answer(answer("poison", 10).to_text()).await.unwrap();
    for round in 0..6 {
        let message = read(&mut bus).await;
        assert_eq!(resent(&message), (round > 0).then_some(round), "round {round}");
        assert_eq!(message.context["ident"], "poison");
        assert_eq!(message.data.contains_key("error"), round >= 3, "{message:?}");
        drop(bus);
        bus = scene.accept().await;
    }
    // The error is written three times at most.
    scene.client.answer(answer("next", 10).to_text()).await.unwrap();
    assert_eq!(read(&mut bus).await, answer("next", 10));
    let counters = scene.client.counters();
    assert_eq!((counters.answers_resent, counters.answers_given_up), (5, 1));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_too_long_with_its_mark_becomes_an_error_that_says_so() {
    let longest = answer("long", 1000).to_text().len();
    let mut scene = Scene::start(1 << 16, |config| config.drop_above = longest);
    let mut bus = scene.accept().await;
    scene.echo_once(&mut bus).await;
    scene.client.answer(answer("long", 1000).to_text()).await.unwrap();
    assert_eq!(read(&mut bus).await, answer("long", 1000));
    drop(bus);
    let mut bus = scene.accept().await;
    let error = read(&mut bus).await.data["error"].to_string();
    for part in [
        "lost once",
        "too long to be sent again",
        &format!("at most {longest}"),
    ] {
        assert!(error.contains(part), "no {part:?}: {error}");
    }
}

/// A bus that closes with a code, as for a frame that is too long, also breaks a write that is under way.
#[tokio::test(start_paused = true)]
async fn the_code_of_a_bus_that_closes_during_a_write_is_the_reason() {
    let mut scene = Scene::start(1 << 10, |_| {});
    let mut bus = scene.accept().await;
    scene.echo_once(&mut bus).await;
    scene.client.answer(answer("lost", 4000).to_text()).await.unwrap();
    sleep(Duration::from_secs(1)).await;
    drop(bus);
    soon(scene.reasons.recv()).await.unwrap();
    let mut bus = scene.accept().await;
    let too_big = CloseFrame {
        code: CloseCode::Size,
        reason: "".into(),
    };
    bus.send(Frame::Close(Some(too_big))).await.unwrap();
    drop(bus);
    let reason = soon(scene.reasons.recv()).await.unwrap();
    assert!(reason.contains("code 1009"), "{reason}");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_again_on_a_bus_that_never_echoed() {
    let mut scene = Scene::start(1 << 16, |_| {});
    let mut bus = scene.accept().await;
    scene.client.answer(answer("a", 10).to_text()).await.unwrap();
    assert_eq!(read(&mut bus).await, answer("a", 10));
    drop(bus);
    let mut bus = scene.accept().await;
    scene.client.answer(answer("b", 10).to_text()).await.unwrap();
    assert_eq!(read(&mut bus).await, answer("b", 10));
    assert!(!scene.client.echoes());
    assert_eq!(scene.client.counters().answers_resent, 0);
}

/// Resent answers go first, but a bus that does not read them delays no stop.
#[tokio::test(start_paused = true)]
async fn requests_wait_for_what_is_sent_again_and_no_longer_than_100_ms() {
    for (capacity, wait) in [(1 << 16, Duration::ZERO), (1 << 10, Duration::from_millis(100))] {
        let mut scene = Scene::start(capacity, |_| {});
        let mut bus = scene.accept().await;
        scene.echo_once(&mut bus).await;
        scene.client.answer(answer("lost", 4000).to_text()).await.unwrap();
        sleep(Duration::from_secs(1)).await;
        drop(bus);
        let mut bus = scene.accept().await;
        let start = Instant::now();
        bus.send(Frame::text("request")).await.unwrap();
        let (request, at) = soon(scene.received.recv()).await.unwrap();
        assert_eq!(request, "request");
        let waited = at - start;
        // The timer counts whole milliseconds.
        assert!(
            wait <= waited && waited <= wait + Duration::from_millis(2),
            "{waited:?}"
        );
        assert_eq!(resent(&read(&mut bus).await), Some(1));
    }
}

#[tokio::test(start_paused = true)]
#[allow(clippy::print_stderr, reason = "the figures")]
async fn the_client_is_back_soon_and_asks_seldom() {
    let ms = Duration::from_millis;
    // The configured times for a bus on this machine, and for one elsewhere.
    for (first, max, promise, per_second) in
        [(ms(200), ms(500), ms(1000), 4), (ms(500), ms(2000), ms(5000), 2)]
    {
        let mut random = fastrand::Rng::with_seed(7);
        let mut longest = Duration::ZERO;
        let mut scene = Scene::start(1 << 16, |config| {
            (config.first_retry, config.max_retry) = (first, max);
        });
        for _ in 0..100 {
            // The present connection, which may be new or old.
            let bus = scene.accept().await;
            sleep(ms(random.u64(0..5_000))).await;
            scene.is_up.store(false, Ordering::Release);
            drop(bus);
            sleep(ms(random.u64(0..120_000))).await;
            scene.is_up.store(true, Ordering::Release);
            let back = Instant::now();
            let mut connection = scene.client.connection();
            soon(connection.wait_for(Connection::is_up)).await.unwrap();
            longest = longest.max(back.elapsed());
            assert!(longest < promise, "back after {longest:?}");
        }
        let attempts = scene.attempts.lock().unwrap();
        eprintln!(
            "100 outages: back after {longest:?} at most, {} attempts",
            attempts.len()
        );
        for (n, later) in attempts.iter().skip(per_second).enumerate() {
            let (several, took) = (per_second + 1, *later - attempts[n]);
            assert!(took > ms(1000), "{several} attempts in {took:?}");
        }
    }
}
