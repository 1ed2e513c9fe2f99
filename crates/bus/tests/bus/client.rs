//! The bus client always reconnects, keeps the answers it owes, and tolerates any frame.

use std::time::Duration;

use crate::support::{Bus, DEADLINE, GREETING, Heard, Hearing, Peer, Recorder, any_port, soon};
use futures_util::{SinkExt, StreamExt};
use ovos_tools_bus::{AnswerError, BusClient, ClientConfig, DialError, Message, ServerConfig};
use serde_json::{Map, Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::Message as Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
use tokio_tungstenite::tungstenite::protocol::frame::{Frame as RawFrame, FrameHeader};
use tokio_tungstenite::{WebSocketStream, accept_async};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// A client under test and the events it reported; shut down by [`Under::stop`].
struct Under {
    client: BusClient,
    hearing: Hearing,
    tasks: TaskTracker,
    shutdown: CancellationToken,
}

impl Under {
    fn start(url: &str, change: impl FnOnce(&mut ClientConfig)) -> Under {
        let mut config = ClientConfig::new(url.parse().unwrap());
        config.first_retry = Duration::from_millis(10);
        config.max_retry = Duration::from_millis(50);
        change(&mut config);
        let (recorder, hearing) = Recorder::new();
        let (tasks, shutdown) = (TaskTracker::new(), CancellationToken::new());
        let client = BusClient::start(config, recorder, &tasks, shutdown.clone());
        Under {
            client,
            hearing,
            tasks,
            shutdown,
        }
    }

    async fn stop(self) {
        self.shutdown.cancel();
        self.tasks.close();
        soon("the client ends", self.tasks.wait()).await;
    }
}

fn message(kind: &str) -> Message {
    Message::new(kind, Map::new())
}

/// A bus that the test scripts.
struct Script(TcpListener);

impl Script {
    async fn start() -> (Script, String) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("ws://{}/core", listener.local_addr().unwrap());
        (Script(listener), url)
    }

    async fn accept(&self) -> WebSocketStream<TcpStream> {
        let (stream, _) = soon("a client", self.0.accept()).await.unwrap();
        soon("the handshake", accept_async(stream)).await.unwrap()
    }
}

async fn kind(stream: &mut WebSocketStream<TcpStream>) -> (String, Frame) {
    loop {
        let frame = soon("a frame", stream.next()).await.unwrap().unwrap();
        if let Frame::Text(text) = &frame {
            return (Message::parse(text).unwrap().kind, frame);
        }
    }
}

#[tokio::test]
async fn messages_go_out_and_come_back_unchanged() {
    let bus = Bus::start(any_port()).await;
    let mut peer = Peer::join(&bus.url).await;
    let mut under = Under::start(&bus.url, |_| {});
    assert_eq!(under.hearing.next().await, Heard::Connected);
    assert_eq!(under.hearing.next().await, Heard::Frame(GREETING.to_owned()));
    let text = r#"{"type":"t","data":{"n":123456789012345678901234567890,"s":"zażółć 🤖"},"context":{}}"#;
    under
        .client
        .answer(Message::parse(text).unwrap().to_text())
        .await
        .unwrap();
    assert_eq!(peer.text().await, text);
    assert_eq!(under.hearing.frame().await, text, "the sender hears itself");
    assert!(under.client.notify(message("progress").to_text()));
    assert_eq!(Message::parse(&peer.text().await).unwrap().kind, "progress");
    under.stop().await;
    peer.send(Frame::text("after")).await;
    assert_eq!(peer.text().await, "after");
}

#[tokio::test]
async fn answers_wait_for_the_bus_and_keep_their_order() {
    let bus = Bus::start(any_port()).await;
    let (port, url) = (bus.address.port(), bus.url.clone());
    let mut under = Under::start(&url, |_| {});
    under.hearing.until(Heard::Connected).await;
    bus.stop().await;
    under.hearing.until(Heard::Disconnected).await;
    assert!(!under.client.connection_now().is_up());
    assert!(
        !under.client.notify(message("progress").to_text()),
        "progress does not wait"
    );
    for i in 0..100 {
        under
            .client
            .answer(message(&format!("answer{i}")).to_text())
            .await
            .unwrap();
    }
    let soon_after = Instant::now() + Duration::from_millis(20);
    assert!(
        !under.client.flush(soon_after).await,
        "nothing can be written yet"
    );

    let _bus = Bus::start(ServerConfig { port, ..any_port() }).await;
    under.hearing.until(Heard::Connected).await;
    for i in 0..100 {
        let text = under.hearing.frame().await;
        assert_eq!(Message::parse(&text).unwrap().kind, format!("answer{i}"));
    }
    assert!(under.client.flush(Instant::now() + DEADLINE).await);
    let counters = under.client.counters();
    assert_eq!((counters.connections, counters.notices_dropped), (2, 1));
    under.stop().await;
}

#[tokio::test]
async fn an_answer_without_an_echo_is_sent_again() {
    let (script, url) = Script::start().await;
    let mut under = Under::start(&url, |_| {});
    let mut first = script.accept().await;
    under.hearing.until(Heard::Connected).await;
    for name in ["echoed", "swallowed", "swallowed_too"] {
        under.client.answer(message(name).to_text()).await.unwrap();
    }
    assert!(under.client.flush(Instant::now() + DEADLINE).await);
    let (name, frame) = kind(&mut first).await;
    assert_eq!(name, "echoed");
    soon("echo", first.send(frame)).await.unwrap();
    assert_eq!(
        Message::parse(&under.hearing.frame().await).unwrap().kind,
        "echoed"
    );
    drop(first);
    under.hearing.until(Heard::Disconnected).await;
    under.client.answer(message("later").to_text()).await.unwrap();

    let mut second = script.accept().await;
    for (name, mark) in [
        ("swallowed", Some(json!({"resent": 1}))),
        ("swallowed_too", Some(json!({"resent": 1}))),
        ("later", None),
    ] {
        let (kind, frame) = kind(&mut second).await;
        assert_eq!(kind, name);
        let text = frame.to_text().unwrap().to_owned();
        assert_eq!(
            Message::parse(&text).unwrap().context.get("ovos_tools"),
            mark.as_ref()
        );
        soon("echo", second.send(frame)).await.unwrap();
        under.hearing.until(Heard::Frame(text)).await;
    }
    drop(second);
    let mut third = script.accept().await;
    under.client.answer(message("only").to_text()).await.unwrap();
    assert_eq!(
        kind(&mut third).await.0,
        "only",
        "what was echoed is not sent again"
    );
    assert_eq!(under.client.counters().answers_resent, 2);
    under.stop().await;
}

#[tokio::test]
async fn no_frame_disturbs_the_connection() {
    let (script, url) = Script::start().await;
    let mut under = Under::start(&url, |config| config.drop_above = 1000);
    let mut bus = script.accept().await;
    under.hearing.until(Heard::Connected).await;
    let raw = |opcode, is_final, payload: &'static [u8]| {
        let header = FrameHeader {
            opcode: OpCode::Data(opcode),
            is_final,
            ..FrameHeader::default()
        };
        Frame::Frame(RawFrame::from_payload(header, payload.into()))
    };
    let deep = "[".repeat(900);
    let rows: Vec<(Frame, Option<&str>)> = vec![
        (Frame::text(""), Some("")),
        (Frame::text("not json"), Some("not json")),
        (Frame::text(deep.as_str()), Some(deep.as_str())),
        (Frame::binary(&b"{}"[..]), Some("{}")),
        (Frame::binary(&b"\xff"[..]), None),
        (raw(Data::Text, true, b"\xff\xfe"), None),
        (raw(Data::Text, false, b"\xff"), None),
        (raw(Data::Continue, true, b"x"), None),
        (raw(Data::Text, false, b"two "), None),
        (Frame::Ping("between".into()), None),
        (raw(Data::Continue, true, b"halves"), Some("two halves")),
        (Frame::Pong("unasked".into()), None),
        (Frame::text("x".repeat(1001)), None),
        (Frame::text("last"), Some("last")),
    ];
    let expected: Vec<String> = rows
        .iter()
        .filter_map(|(_, text)| text.map(str::to_owned))
        .collect();
    for (frame, _) in rows {
        soon("send", bus.send(frame)).await.unwrap();
    }
    for text in expected {
        assert_eq!(under.hearing.next().await, Heard::Frame(text));
    }
    assert_eq!(
        soon("pong", bus.next()).await.unwrap().unwrap(),
        Frame::Pong("between".into())
    );
    let counters = under.client.counters();
    assert_eq!((counters.frames_dropped, counters.connections), (4, 1));
    under.stop().await;
}

#[tokio::test]
async fn a_frame_past_the_limit_costs_the_connection_and_no_more() {
    let (script, url) = Script::start().await;
    let mut under = Under::start(&url, |config| {
        (config.drop_above, config.message_limit) = (1000, 2000)
    });
    let mut bus = script.accept().await;
    soon("send", bus.send(Frame::text("x".repeat(2001))))
        .await
        .unwrap();
    under.hearing.until(Heard::Disconnected).await;
    let mut bus = script.accept().await;
    under.hearing.until(Heard::Connected).await;
    soon("send", bus.send(Frame::text("well"))).await.unwrap();
    assert_eq!(under.hearing.frame().await, "well");

    let mut big = message("t");
    big.data.insert("x".into(), Value::from("x".repeat(1000)));
    let refused = under.client.answer(big.to_text()).await;
    assert!(
        matches!(refused, Err(AnswerError::TooBig { limit: 1000, .. })),
        "{refused:?}"
    );
    assert!(!under.client.notify(big.to_text()));
    under.stop().await;
}

/// An operator who lets frames be longer names one number.
#[tokio::test]
async fn what_may_be_sent_is_also_received() {
    let (script, url) = Script::start().await;
    let mut under = Under::start(&url, |config| {
        (config.drop_above, config.message_limit) = (3000, 2000)
    });
    let mut bus = script.accept().await;
    under.hearing.until(Heard::Connected).await;
    let longest = "x".repeat(3000);
    soon("send", bus.send(Frame::text(longest.as_str())))
        .await
        .unwrap();
    assert_eq!(under.hearing.next().await, Heard::Frame(longest));
    under.stop().await;
}

#[tokio::test]
async fn the_queue_of_answers_is_bounded() {
    let (script, url) = Script::start().await;
    let mut under = Under::start(&url, |config| config.answer_queue = 4);
    let bus = script.accept().await;
    under.hearing.until(Heard::Connected).await;
    drop(bus);
    under.hearing.until(Heard::Disconnected).await;
    drop(script);
    for i in 0..4 {
        under
            .client
            .answer(message(&format!("a{i}")).to_text())
            .await
            .unwrap();
    }
    let fifth = message("a4");
    let waiting = under.client.answer(fifth.to_text());
    assert!(
        tokio::time::timeout(Duration::from_millis(30), waiting)
            .await
            .is_err(),
        "there is room for a fifth"
    );
    let Under {
        client,
        tasks,
        shutdown,
        ..
    } = under;
    shutdown.cancel();
    tasks.close();
    soon("the client ends", tasks.wait()).await;
    assert_eq!(client.answer(fifth.to_text()).await, Err(AnswerError::Closed));
}

#[tokio::test]
async fn the_shutdown_writes_what_was_flushed_and_says_goodbye() {
    let (script, url) = Script::start().await;
    let mut under = Under::start(&url, |_| {});
    let mut bus = script.accept().await;
    under.hearing.until(Heard::Connected).await;
    under.client.answer(message("last").to_text()).await.unwrap();
    assert!(under.client.flush(Instant::now() + DEADLINE).await);
    let stop = under.stop();
    let received = async {
        assert_eq!(kind(&mut bus).await.0, "last");
        let Some(Ok(Frame::Close(Some(close)))) = soon("goodbye", bus.next()).await else {
            panic!("no goodbye");
        };
        assert_eq!(u16::from(close.code), 1000);
        let _ = bus.next().await;
    };
    tokio::join!(stop, received);
}

#[tokio::test]
async fn a_client_that_needs_its_first_connection_has_it_or_says_why() {
    let bus = Bus::start(any_port()).await;
    let (recorder, mut hearing) = Recorder::new();
    let (tasks, shutdown) = (TaskTracker::new(), CancellationToken::new());
    let config = ClientConfig::new(bus.url.parse().unwrap());
    let connected = BusClient::connect(config, recorder, &tasks, shutdown.clone());
    let client = soon("the first connection", connected).await.unwrap();
    assert!(client.notify(message("at.once").to_text()), "it is connected");
    assert_eq!(hearing.next().await, Heard::Connected);
    assert_eq!(Message::parse(&hearing.frame().await).unwrap().kind, "at.once");
    shutdown.cancel();
    tasks.close();
    soon("the client ends", tasks.wait()).await;

    let other = bus.url.replace("/core", "/other").parse().unwrap();
    let (recorder, _) = Recorder::new();
    let (tasks, shutdown) = (TaskTracker::new(), CancellationToken::new());
    let refused = BusClient::connect(ClientConfig::new(other), recorder, &tasks, shutdown).await;
    assert!(matches!(refused, Err(DialError::NotABus { .. })));
    assert!(tasks.is_empty(), "nothing goes on");
}

#[tokio::test]
async fn a_bus_that_takes_nothing_does_not_hold_up_the_shutdown() {
    let (script, url) = Script::start().await;
    let mut under = Under::start(&url, |_| {});
    let _bus = script.accept().await;
    under.hearing.until(Heard::Connected).await;
    let mut big = message("t");
    big.data.insert("x".into(), Value::from("x".repeat(20 << 20)));
    under.client.answer(big.to_text()).await.unwrap();
    assert!(
        !under
            .client
            .flush(Instant::now() + Duration::from_millis(50))
            .await,
        "the kernel took 20 MB"
    );
    under.stop().await;
}
