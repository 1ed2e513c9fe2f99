//! `ovos-tools bus`: the binary as a messagebus, with the binary as a client and a service that answers by script.

use std::process::Stdio;

use futures_util::{SinkExt, StreamExt};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message as Frame;

use crate::scripted::{DEADLINE, command, finish, run};

/// Answers every `list` on the bus with no tools.
async fn serve(url: String) {
    let (mut socket, _) = tokio_tungstenite::connect_async(url).await.unwrap();
    while let Some(Ok(frame)) = socket.next().await {
        let Ok(message) = serde_json::from_str::<Value>(frame.to_text().unwrap_or_default()) else {
            continue;
        };
        if message["type"] == "ovos.tools.list" {
            let answer = json!({"type": "ovos.tools.list.response", "data": {"tools": []},
                "context": message["context"]});
            socket.send(Frame::text(answer.to_string())).await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_bus_carries_questions_and_answers_until_it_is_told_to_end() {
    let home = tempfile::tempdir().unwrap();
    let mut bus = command(home.path(), &["bus", "--port", "0", "--route", "/mine", "--json"])
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(bus.stdout.take().unwrap()).lines();
    let line = timeout(DEADLINE, lines.next_line())
        .await
        .unwrap()
        .unwrap()
        .unwrap();
    let reply: Value = serde_json::from_str(&line).unwrap();
    let url = reply["url"].as_str().unwrap().to_owned();
    assert!(
        url.starts_with("ws://127.0.0.1:") && url.ends_with("/mine"),
        "{url}"
    );

    let alone = run(&["list", "--bus", &url, "--timeout", "0.3"]).await;
    assert_eq!(alone.code, 4, "a bus without a service: {alone:?}");
    let service = tokio::spawn(serve(url.clone()));
    // There is no answer until the service is connected.
    let answer = async {
        loop {
            let ran = run(&["list", "--json", "--bus", &url, "--timeout", "0.3"]).await;
            if ran.code != 4 {
                return ran;
            }
        }
    };
    let ran = timeout(DEADLINE, answer).await.unwrap();
    assert_eq!((ran.code, &*ran.out), (0, "{\"tools\":[]}\n"), "{}", ran.err);

    let port = url
        .trim_start_matches("ws://127.0.0.1:")
        .trim_end_matches("/mine");
    let second = run(&["bus", "--port", port]).await;
    assert_eq!(second.code, 5, "{second:?}");
    assert!(
        second.err.contains(&format!("cannot listen on 127.0.0.1:{port}")),
        "{}",
        second.err
    );

    bus.stdout = None;
    kill_process(Pid::from_raw(bus.id().unwrap() as i32).unwrap(), Signal::TERM).unwrap();
    assert_eq!(finish(bus).await.code, 0);
    timeout(DEADLINE, service).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_bus_for_the_network_says_what_that_means() {
    let home = tempfile::tempdir().unwrap();
    let arguments = ["bus", "--host", "0.0.0.0", "--port", "0"];
    let mut bus = command(home.path(), &arguments)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(bus.stderr.take().unwrap()).lines();
    let warned = async {
        while let Some(line) = lines.next_line().await.unwrap() {
            if line.contains("every client that reaches this address can call every tool") {
                return;
            }
        }
        panic!("the bus did not warn");
    };
    timeout(DEADLINE, warned).await.unwrap();
    bus.kill().await.unwrap();
}
