//! The embedded bus behaves on the wire as the Python bus does, and no client can harm another.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use crate::support::{Bus, GREETING, Heard, Peer, Recorder, any_port, soon};
use futures_util::SinkExt;
use ovos_tools_bus::{BusClient, ClientConfig, EmbeddedBus, InProcessLink, ServerConfig, reachable};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::Builder;
use tokio::sync::mpsc::unbounded_channel;
use tokio_tungstenite::tungstenite::Message as Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
use tokio_tungstenite::tungstenite::protocol::frame::{Frame as RawFrame, FrameHeader};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

fn raw(opcode: Data, is_final: bool, payload: &'static [u8]) -> Frame {
    // tungstenite masks a raw frame only if its header already has a mask.
    let header = FrameHeader {
        opcode: OpCode::Data(opcode),
        is_final,
        mask: Some([7, 1, 2, 3]),
        ..FrameHeader::default()
    };
    Frame::Frame(RawFrame::from_payload(header, payload.into()))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_client_gets_every_frame_in_the_same_order() {
    let bus = Bus::start(any_port()).await;
    let (mut a, mut b, mut c) = (
        Peer::join(&bus.url).await,
        Peer::join(&bus.url).await,
        Peer::join(&bus.url).await,
    );
    let sends =
        |name: &'static str| (0..500).map(move |i| Frame::text(format!("{{\"type\":\"{name}{i}\"}}")));
    let (from_a, from_b) = (sends("a"), sends("b"));
    tokio::join!(
        async {
            for frame in from_a {
                a.send(frame).await;
            }
        },
        async {
            for frame in from_b {
                b.send(frame).await;
            }
        },
    );
    let mut seen = Vec::new();
    for peer in [&mut a, &mut b, &mut c] {
        let mut texts = Vec::new();
        for _ in 0..1000 {
            texts.push(peer.text().await);
        }
        seen.push(texts);
    }
    assert_eq!(seen[0], seen[1]);
    assert_eq!(seen[0], seen[2]);
    let from_a: Vec<&String> = seen[0].iter().filter(|text| text.contains("\"a")).collect();
    assert!(
        (0..500).all(|i| from_a[i].contains(&format!("a{i}\""))),
        "each sender's order is kept"
    );
}

#[tokio::test]
async fn frames_of_every_kind_are_relayed_or_dropped() {
    let bus = Bus::start(any_port()).await;
    let (mut sender, mut other) = (Peer::join(&bus.url).await, Peer::join(&bus.url).await);
    let deep = format!(
        r#"{{"type":"t","data":{}1{}}}"#,
        r#"{"a":"#.repeat(100_000),
        "}".repeat(100_000)
    );
    let big = r#"{"type":"t","data":{"n":123456789012345678901234567890,"s":"zażółć 🤖"}}"#;
    let rejected = r#"{"type": "ovos.session.rejected", "data": {"msg_type": "t", "reason": "malformed_carrier"}, "context": {}}"#;
    let rows: Vec<(Frame, Option<&str>)> = vec![
        (Frame::text(big), Some(big)),
        (Frame::text("hello"), Some("hello")),
        (Frame::text(""), Some("")),
        (Frame::text("[]"), Some("[]")),
        (Frame::text("5"), Some("5")),
        (Frame::text("{\"type\":"), Some("{\"type\":")),
        (Frame::binary(big.as_bytes()), Some(big)),
        (Frame::binary(&b"\xff\xfe"[..]), None),
        (Frame::text(deep), None),
        (
            Frame::text(r#"{"type":"t","context":{"session":"s"}}"#),
            Some(rejected),
        ),
        (Frame::Ping("p".into()), None),
        (raw(Data::Text, false, b"{\"type\":"), None),
        (Frame::Ping("p".into()), None),
        (raw(Data::Continue, false, b"\"za\xc5"), None),
        (raw(Data::Continue, true, b"\xbc\"}"), Some(r#"{"type":"zaż"}"#)),
        (Frame::text("last"), Some("last")),
    ];
    let expected: Vec<String> = rows
        .iter()
        .filter_map(|(_, text)| text.map(str::to_owned))
        .collect();
    for (frame, _) in rows {
        sender.send(frame).await;
    }
    for text in expected {
        assert_eq!(other.text().await, text);
        assert_eq!(sender.text().await, text);
    }
}

/// Each row violates a rule and gives the close code that the sender receives; other clients are not affected.
#[tokio::test]
async fn a_violation_closes_its_sender_alone() {
    let bus = Bus::start(ServerConfig {
        max_message: 1000,
        ..any_port()
    })
    .await;
    let mut other = Peer::join(&bus.url).await;
    for (frame, code) in [
        (Frame::text("x".repeat(1001)), 1009),
        (raw(Data::Text, true, b"\xff\xfe"), 1007),
        (raw(Data::Continue, true, b"x"), 1002),
        (raw(Data::Reserved(3), true, b"x"), 1002),
    ] {
        let mut sender = Peer::join(&bus.url).await;
        sender.send(Frame::text("before")).await;
        sender.send(frame).await;
        assert_eq!(sender.closed().await, Some(code));
        assert_eq!(other.text().await, "before");
    }
    let just = "x".repeat(1000);
    other.send(Frame::text(just.as_str())).await;
    assert_eq!(other.text().await, just);
}

#[tokio::test]
async fn a_goodbye_is_answered() {
    let bus = Bus::start(any_port()).await;
    let mut peer = Peer::join(&bus.url).await;
    soon("close", peer.0.close(None)).await.unwrap();
    peer.closed().await;
    let mut other = Peer::join(&bus.url).await;
    bus.stop().await;
    assert_eq!(other.closed().await, Some(1001));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_read_is_disconnected_and_delays_no_other() {
    let config = ServerConfig {
        client_queue_messages: 50,
        ..any_port()
    };
    let bus = Bus::start(config).await;
    let mut slow = TcpStream::connect(bus.address).await.unwrap();
    let request = "GET /core HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                   Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    // In two pieces: a handshake may arrive like that.
    slow.write_all(&request.as_bytes()[..50]).await.unwrap();
    slow.flush().await.unwrap();
    slow.write_all(&request.as_bytes()[50..]).await.unwrap();
    let mut head = [0; 12];
    soon("the handshake", slow.read_exact(&mut head)).await.unwrap();
    assert_eq!(&head, b"HTTP/1.1 101");

    let mut quick = Peer::join(&bus.url).await;
    let text = "x".repeat(500_000);
    // Far more than the kernel's buffers and the queue hold.
    for _ in 0..200 {
        quick.send(Frame::text(text.as_str())).await;
        assert_eq!(quick.text().await.len(), text.len());
    }
    // Read what the kernel still holds, up to the end of the stream.
    let mut sink = vec![0; 1 << 20];
    let mut read = 0;
    soon("the end of the slow client", async {
        while let Ok(size @ 1..) = slow.read(&mut sink).await {
            read += size;
        }
    })
    .await;
    assert!(read < 150 * text.len(), "{read} bytes came through");
}

#[tokio::test]
async fn other_requests_get_the_answer_of_tornado() {
    let bus = Bus::start(any_port()).await;
    let upgrade = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
                   Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    for (request, status) in [
        (
            format!("GET /core HTTP/1.1\r\nHost: 127.0.0.1\r\n{upgrade}\r\n"),
            "101",
        ),
        (
            format!("GET /core?x=1 HTTP/1.1\r\nHost: 127.0.0.1\r\n{upgrade}\r\n"),
            "101",
        ),
        (
            format!("GET /other HTTP/1.1\r\nHost: 127.0.0.1\r\n{upgrade}\r\n"),
            "404",
        ),
        (
            format!("GET /core/ HTTP/1.1\r\nHost: 127.0.0.1\r\n{upgrade}\r\n"),
            "404",
        ),
        ("GET /core HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".to_owned(), "400"),
        ("nonsense\r\n\r\n".to_owned(), "400"),
        (
            format!("GET /core HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(50_000)),
            "400",
        ),
    ] {
        let mut stream = TcpStream::connect(bus.address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut head = [0; 12];
        soon("an answer", stream.read_exact(&mut head)).await.unwrap();
        assert_eq!(String::from_utf8_lossy(&head[9..]), status, "{request:.60}");
    }
    // The bus still works.
    let mut peer = Peer::join(&bus.url).await;
    soon("send", peer.0.send(Frame::text("x"))).await.unwrap();
    assert_eq!(peer.text().await, "x");
}

/// A page that a browser shows may open a websocket to any address; the browser says which page it is.
#[tokio::test]
async fn a_web_page_is_refused_with_a_reason() {
    let bus = Bus::start(ServerConfig {
        hosts: vec!["bus.example".to_owned()],
        origins: vec!["http://localhost:3000".to_owned()],
        ..any_port()
    })
    .await;
    let here = bus.address.to_string();
    let own = format!("Origin: http://{here}\r\n");
    for (host, origin, status) in [
        (here.as_str(), "", "101"),
        (&here, &own, "101"),
        (&here, "Origin: http://localhost:3000\r\n", "101"),
        ("bus.example", "", "101"),
        (&here, "Origin: https://evil.example\r\n", "403"),
        (&here, "Origin: null\r\n", "403"),
        ("evil.example", "Origin: http://evil.example\r\n", "403"),
        ("evil.example", "", "403"),
    ] {
        let mut stream = TcpStream::connect(bus.address).await.unwrap();
        let request = format!(
            "GET /core HTTP/1.1\r\nHost: {host}\r\n{origin}Upgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        if status == "101" {
            let mut head = [0; 12];
            soon("an answer", stream.read_exact(&mut head)).await.unwrap();
            assert_eq!(String::from_utf8_lossy(&head[9..]), status, "{request}");
        } else {
            let mut answer = String::new();
            soon("an answer", stream.read_to_string(&mut answer))
                .await
                .unwrap();
            assert!(
                answer.starts_with("HTTP/1.1 403 ") && answer.contains("service.embedded_bus_http_"),
                "{request}{answer}"
            );
        }
    }
}

/// Clients of each kind keep their sockets open; a new one still gets in, and the client of this process stays.
#[tokio::test(flavor = "multi_thread")]
async fn idle_clients_do_not_keep_a_new_one_out() {
    let own = Arc::new(InProcessLink::new());
    let bus = Bus::start(ServerConfig {
        max_clients: 8,
        own: Some(own.clone()),
        ..any_port()
    })
    .await;
    let (recorder, mut hearing) = Recorder::new();
    let shutdown = CancellationToken::new();
    let _end = shutdown.clone().drop_guard();
    let config = ClientConfig {
        own: Some(own),
        ..ClientConfig::new(bus.url.parse().unwrap())
    };
    let client = BusClient::start(config, recorder, &TaskTracker::new(), shutdown);
    hearing.until(Heard::Connected).await;
    let mut idle = Vec::new();
    for round in 0..30 {
        // Half-open, part of a handshake, joined and silent, joined with a message.
        idle.push(TcpStream::connect(bus.address).await.unwrap());
        let mut part = TcpStream::connect(bus.address).await.unwrap();
        part.write_all(b"GET /core HTTP/1.1\r\nHost: ").await.unwrap();
        idle.push(part);
        let silent = Peer::join(&bus.url).await;
        let mut talks = Peer::join(&bus.url).await;
        talks.send(Frame::text("hello")).await;
        let mut newest = Peer::join(&bus.url).await;
        let text = format!("{{\"type\":\"stop{round}\"}}");
        newest.send(Frame::text(text.as_str())).await;
        while newest.text().await != text {}
        for peer in [silent, talks, newest] {
            if let tokio_tungstenite::MaybeTlsStream::Plain(socket) = peer.0.into_inner() {
                idle.push(socket);
            }
        }
    }
    assert!(client.connection_now().is_up());
    assert_eq!(client.counters().connections, 1, "the bus kept its own client");
}

#[tokio::test]
async fn an_unfinished_message_has_a_time_limit() {
    let bus = Bus::start(ServerConfig {
        frame_wait: Duration::from_millis(300),
        ..any_port()
    })
    .await;
    for begin in [raw(Data::Text, false, b"{\"type\":"), raw(Data::Text, false, b"")] {
        let mut slow = Peer::join(&bus.url).await;
        slow.send(begin).await;
        // A control frame finishes nothing.
        slow.send(Frame::Ping("p".into())).await;
        slow.send(raw(Data::Continue, false, b"x")).await;
        assert_eq!(slow.closed().await, Some(1008));
    }
    let mut quick = Peer::join(&bus.url).await;
    quick.send(raw(Data::Text, false, b"a")).await;
    quick.send(raw(Data::Continue, true, b"b")).await;
    assert_eq!(quick.text().await, "ab");
}

#[tokio::test]
async fn unfinished_messages_share_a_bound_and_the_longest_pays() {
    let bus = Bus::start(ServerConfig {
        unfinished_bytes: 1 << 20,
        ..any_port()
    })
    .await;
    static PART: [u8; 700_000] = [b'x'; 700_000];
    let mut short = Peer::join(&bus.url).await;
    short.send(raw(Data::Text, false, &PART[..200_000])).await;
    let mut long = Peer::join(&bus.url).await;
    long.send(raw(Data::Text, false, &PART)).await;
    let mut third = Peer::join(&bus.url).await;
    third.send(raw(Data::Text, false, &PART[..300_000])).await;
    assert_eq!(long.closed().await, None);
    short.send(raw(Data::Continue, true, b"!")).await;
    assert_eq!(short.text().await.len(), 200_001);
}

/// What waits for a client that reads late arrives behind the urgent answer, and whole.
#[tokio::test(flavor = "multi_thread")]
async fn an_urgent_answer_overtakes_between_frames() {
    let own = Arc::new(InProcessLink::new());
    own.overtake(|text| text.contains("urgent request"));
    let bus = Bus::start(ServerConfig {
        own: Some(own.clone()),
        ..any_port()
    })
    .await;
    let (recorder, mut hearing) = Recorder::new();
    let shutdown = CancellationToken::new();
    let _end = shutdown.clone().drop_guard();
    let config = ClientConfig {
        own: Some(own),
        ..ClientConfig::new(bus.url.parse().unwrap())
    };
    let client = BusClient::start(config, recorder, &TaskTracker::new(), shutdown);
    hearing.until(Heard::Connected).await;
    let mut late = Peer::join(&bus.url).await;
    let mut other = Peer::join(&bus.url).await;
    // More than the buffers of the kernel hold.
    const PAGES: usize = 60;
    let page = |n: usize| {
        format!(
            "{{\"type\":\"page\",\"data\":{{\"n\":{n},\"x\":\"{}\"}}}}",
            "x".repeat(1 << 20)
        )
    };
    for n in 0..PAGES {
        client.answer(page(n)).await.unwrap();
    }
    // The client's own echo shows that the bus has queued all of them for the late client.
    while hearing.frame().await != page(PAGES - 1) {}
    let answer = r#"{"type":"urgent answer"}"#.to_owned();
    client.answer_urgent(answer.clone()).await.unwrap();
    while hearing.frame().await != answer {}
    let request = r#"{"type":"urgent request"}"#;
    other.send(Frame::text(request)).await;
    while hearing.frame().await != request {}
    let mut texts = Vec::new();
    for _ in 0..PAGES + 2 {
        texts.push(late.text().await);
    }
    let place = |text: &str| texts.iter().position(|texts| texts == text).unwrap();
    let (answer_place, request_place) = (place(&answer), place(request));
    assert!(
        answer_place < request_place,
        "urgent ones keep their order: {answer_place}, {request_place}"
    );
    assert!(
        request_place < PAGES / 2,
        "it waited behind {request_place} pages"
    );
    let pages: Vec<&String> = texts.iter().filter(|text| text.contains("page")).collect();
    assert!((0..PAGES).all(|n| *pages[n] == page(n)), "the others keep theirs");
}

#[tokio::test]
async fn an_urgent_message_is_seen_while_every_worker_is_busy() {
    let workers = Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let (seen, mut urgent) = unbounded_channel();
    let own = Arc::new(InProcessLink::new());
    own.overtake(move |text| {
        let is_urgent = text.contains("urgent");
        is_urgent && seen.send(()).is_ok()
    });
    let bus = Bus::start(ServerConfig {
        own: Some(own),
        workers: Some(workers.handle().clone()),
        ..any_port()
    })
    .await;
    let mut peer = Peer::join(&bus.url).await;
    let ((begun, begins), (release, held)) = (channel(), channel::<()>());
    workers.spawn(async move {
        begun.send(()).unwrap();
        held.recv()
    });
    begins.recv().unwrap();
    let request = r#"{"type":"urgent"}"#;
    peer.send(Frame::text(request)).await;
    soon("a look at the request", urgent.recv()).await.unwrap();
    release.send(()).unwrap();
    assert_eq!(peer.text().await, request);
    workers.shutdown_background();
}

#[tokio::test]
async fn a_port_in_use_is_named_and_seen() {
    let bus = Bus::start(any_port()).await;
    let url = bus.url.parse().unwrap();
    assert!(reachable(&url).await);
    let port = bus.address.port();
    let error = EmbeddedBus::bind(ServerConfig { port, ..any_port() })
        .await
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.contains(&format!("127.0.0.1:{port}")) && error.contains("another bus"),
        "{error}"
    );
    bus.stop().await;
    assert!(!reachable(&url).await);
    assert!(GREETING.contains("connected"));
}
