//! What a client sees of its connection: a bus that goes and comes back, the events on it, and none at all.

#[path = "../../examples/call.rs"]
mod example;

use bus::Message;
use ovos_tools_client::payload::{ListRequest, StatusRequest};
use ovos_tools_client::{Address, Client, ClientError, News, Patience, topic};
use serde_json::json;

use crate::rig::{Bus, DEADLINE, call, object, soon};

#[tokio::test]
async fn the_bus_may_go_and_come_back() {
    let bus = Bus::start(0).await;
    let port = bus.port;
    let client = bus.client().await;
    let mut events = client.events();
    let mut call = client
        .invoke(call("reach", "c-1"), Patience::AtMost(DEADLINE))
        .unwrap();
    let url = bus.url.clone();
    bus.stop().await;
    let lost = soon("the loss", call.next()).await.unwrap_err();
    assert!(matches!(lost, ClientError::Lost { .. }), "{lost}");
    let expected = format!("the bus at {url} closed the connection: ");
    assert!(lost.to_string().starts_with(&expected), "{lost}");
    let disconnected = |news: &News| matches!(news, News::Disconnected { .. });
    assert!(
        soon("news", events.next())
            .await
            .as_ref()
            .is_some_and(disconnected)
    );
    let refused = client
        .ask(topic::STATUS, &StatusRequest::default(), DEADLINE)
        .await;
    assert!(matches!(refused, Err(ClientError::NotSent { .. })));

    let bus = Bus::start(port).await;
    assert!(matches!(soon("news", events.next()).await, Some(News::Connected)));
    let _service = bus
        .service(|message| match message.kind.as_str() {
            "ovos.tools.list" => vec![message.response(object(json!({"tools": [{"name": "add"}]})))],
            _ => Vec::new(),
        })
        .await;
    let tools = client.list(&ListRequest::default()).await.unwrap();
    assert_eq!(tools[0].name, "add");
    client.close().await;
    let ended = client.list(&ListRequest::default()).await;
    assert!(matches!(ended, Err(ClientError::NotSent { .. })));
}

#[tokio::test]
async fn a_cancel_right_before_the_close_is_sent() {
    let bus = Bus::start(0).await;
    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
    let _service = bus
        .service(move |message| {
            if message.kind == "ovos.tools.cancel" {
                sender.send(message.data["call_id"].clone()).unwrap();
            }
            Vec::new()
        })
        .await;
    let client = bus.client().await;
    client.cancel_unheard("c-9").unwrap();
    client.close().await;
    assert_eq!(soon("the cancel", receiver.recv()).await, Some(json!("c-9")));
}

#[tokio::test]
async fn events_and_reloads_are_followed() {
    let bus = Bus::start(0).await;
    let event = json!({"toolbox_id": "robot", "kind": "battery", "severity": "warning", "data": {"percent": 20},
        "ts": 1.5});
    let _service = bus
        .service(move |message| match message.kind.as_str() {
            "ovos.tools.reload" => vec![
                Message::new("ovos.tools.event", object(json!({"kind": 5}))),
                Message::new("ovos.tools.event", object(event.clone())),
                message.response(object(
                    json!({"tools": [], "loaded": ["robot"], "total_tools": 0}),
                )),
            ],
            _ => Vec::new(),
        })
        .await;
    let (client, other) = (bus.client().await, bus.client().await);
    let mut events = client.events();
    assert_eq!(other.reload().await.unwrap().loaded, ["robot"]);
    let Some(News::Event(event)) = soon("the event", events.next()).await else {
        panic!("no event first");
    };
    assert_eq!(
        (event.toolbox_id.as_str(), event.kind.as_str()),
        ("robot", "battery")
    );
    assert!(matches!(
        soon("the reload", events.next()).await,
        Some(News::Reloaded)
    ));
}

#[tokio::test]
async fn without_a_bus_it_is_said_what_to_do() {
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .unwrap()
        .local_addr()
        .unwrap();
    let bus = Bus::start(0).await;
    for (url, problem, advice) in [
        (
            format!("ws://{closed}/core"),
            "refused",
            "`ovos-tools serve --embedded-bus auto`",
        ),
        (
            bus.url.replace("/core", "/other"),
            "404",
            "`ovos-tools serve --embedded-bus auto`",
        ),
        (
            bus.url.replace("ws:", "http:"),
            "expected ws://",
            "wss://host:port/route",
        ),
        (bus.url.replace("ws:", "wss:"), "TLS", "websocket.ssl_cert"),
    ] {
        let address = Address {
            url: url.parse().unwrap(),
            certificate: None,
        };
        let Err(error) = Client::connect(address, "test", DEADLINE).await else {
            panic!("{url} is a bus")
        };
        let error = error.to_string();
        for part in [problem, url.as_str(), advice] {
            assert!(error.contains(part), "{error:?} does not say {part:?}");
        }
    }
}

#[tokio::test]
async fn the_example_follows_a_call_to_its_end() {
    let bus = Bus::start(0).await;
    let _service = bus
        .service(|message| match message.kind.as_str() {
            "ovos.tools.invoke" => {
                let progress =
                    json!({"call_id": message.data["call_id"], "kind": "wave", "wave": 1, "waves": 1});
                let sum = json!({"name": "add", "result": {"result": message.data["args"]["a"]}});
                vec![
                    message.reply("ovos.tools.invoke.progress", object(progress)),
                    message.response(object(sum)),
                ]
            }
            _ => Vec::new(),
        })
        .await;
    let mut lines = Vec::new();
    let called = example::call(&bus.url, "add", r#"{"a": 3}"#, |line| lines.push(line));
    soon("the example", called).await.unwrap();
    assert_eq!(lines, ["wave 1 of 1", r#"{"result":3}"#]);
}
