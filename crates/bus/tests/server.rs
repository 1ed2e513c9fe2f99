//! The embedded bus behaves on the wire as the Python bus does, and no client can harm another.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "support/bus.rs"]
mod support;

use futures_util::SinkExt;
use ovos_tools_bus::{EmbeddedBus, ServerConfig, reachable};
use support::{Bus, GREETING, Peer, any_port, soon};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message as Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
use tokio_tungstenite::tungstenite::protocol::frame::{Frame as RawFrame, FrameHeader};

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
    let request = "GET /core HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
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
        (format!("GET /core HTTP/1.1\r\nHost: x\r\n{upgrade}\r\n"), "101"),
        (
            format!("GET /core?x=1 HTTP/1.1\r\nHost: x\r\n{upgrade}\r\n"),
            "101",
        ),
        (format!("GET /other HTTP/1.1\r\nHost: x\r\n{upgrade}\r\n"), "404"),
        (format!("GET /core/ HTTP/1.1\r\nHost: x\r\n{upgrade}\r\n"), "404"),
        ("GET /core HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(), "400"),
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
