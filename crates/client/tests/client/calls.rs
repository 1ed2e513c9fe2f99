//! Requests and calls on the embedded bus, with a service that answers by script: every answer goes to its own request.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bus::Message;
use ovos_tools_client::payload::{InvokeRequest, ListRequest, ProgressKind};
use ovos_tools_client::{ClientError, News, Patience, Step, topic};
use serde_json::{Value, json};

use crate::rig::{Bus, DEADLINE, call, get, object, soon};

#[tokio::test]
async fn requests_under_one_topic_get_their_own_answers_in_any_order() {
    let bus = Bus::start(0).await;
    let mut waiting: Vec<Message> = Vec::new();
    let _service = bus
        .service(move |message| {
            if message.kind != "ovos.tools.get" {
                return Vec::new();
            }
            waiting.push(message.clone());
            if waiting.len() < 3 {
                return Vec::new();
            }
            let mut replies = Vec::new();
            for request in waiting.drain(..).rev() {
                // Foreign answers come first: of another session, of another request, under another topic.
                let mut foreign = request.response(object(json!({"name": "foreign"})));
                foreign
                    .context
                    .insert("session".into(), json!({"session_id": "kitchen"}));
                foreign.context.insert("ident".into(), json!("kitchen/1"));
                let mut nameless = request.response(object(json!({"name": "nameless"})));
                nameless.context.shift_remove("ident");
                let elsewhere =
                    request.reply("ovos.tools.plan.response", object(json!({"name": "elsewhere"})));
                replies.extend([foreign, nameless, elsewhere]);
                replies.push(request.response(object(json!({"name": request.data["name"]}))));
            }
            replies
        })
        .await;
    let client = bus.client().await;
    let names = ["first", "second", "third"];
    let requests = names.map(get);
    let [a, b, c] = &requests;
    let answers = async {
        tokio::join!(
            client.ask(topic::GET, a, DEADLINE),
            client.ask(topic::GET, b, DEADLINE),
            client.ask(topic::GET, c, DEADLINE)
        )
    };
    let (a, b, c) = soon("the answers", answers).await;
    let answered = [a, b, c].map(|answer| answer.unwrap().read().unwrap().name);
    assert_eq!(answered, names);
}

#[tokio::test]
async fn a_late_answer_is_not_taken_for_the_next_one() {
    let bus = Bus::start(0).await;
    let mut late: Option<Message> = None;
    let _service = bus
        .service(move |message| {
            if message.kind != "ovos.tools.get" {
                return Vec::new();
            }
            let answer = message.response(object(json!({"name": message.data["name"]})));
            match late.take() {
                None => {
                    late = Some(answer);
                    Vec::new()
                }
                Some(late) => vec![late, answer],
            }
        })
        .await;
    let client = bus.client().await;
    let wait = Duration::from_millis(300);
    let error = client.ask(topic::GET, &get("first"), wait).await.unwrap_err();
    assert!(matches!(error, ClientError::NoAnswer { .. }), "{error}");
    assert!(error.to_string().contains(&bus.url), "{error}");
    let answer = client.ask(topic::GET, &get("second"), DEADLINE).await.unwrap();
    assert_eq!(answer.read().unwrap().name, "second");
}

/// A service whose tool runs until it is cancelled.
fn until_cancelled() -> impl FnMut(&Message) -> Vec<Message> + Send + 'static {
    let mut running: Option<Message> = None;
    move |message: &Message| {
        let call_id = message.data.get("call_id").cloned().unwrap_or_default();
        let progress = |of: &Message, call_id: &Value, kind: &str| {
            let data = json!({"call_id": call_id, "kind": kind, "wave": 1, "waves": 2});
            of.reply("ovos.tools.invoke.progress", object(data))
        };
        match message.kind.as_str() {
            "ovos.tools.get" => vec![message.response(object(json!({"error": "Unknown tool: 'reach'"})))],
            "ovos.tools.invoke" => {
                running = Some(message.clone());
                vec![
                    progress(message, &json!("another"), "queued"),
                    progress(message, &call_id, "wave"),
                ]
            }
            "ovos.tools.cancel" => {
                let done = json!({"call_id": call_id, "cancelled": true, "state": "running"});
                let mut replies = vec![message.response(object(done))];
                if let Some(call) = running.take() {
                    let error = json!({"name": "reach", "call_id": call_id, "error": "CancelledError: by a bus client",
                        "error_detail": {"kind": "CancelledError", "data": {"by": "test"}}});
                    replies.push(call.response(object(error)));
                    replies.push(progress(&call, &call_id, "update"));
                }
                replies
            }
            _ => Vec::new(),
        }
    }
}

#[tokio::test]
async fn a_call_tells_its_progress_and_ends_when_it_is_cancelled() {
    let bus = Bus::start(0).await;
    let _service = bus.service(until_cancelled()).await;
    let client = bus.client().await;
    for patience in [Patience::AtMost(DEADLINE), Patience::WhileItRuns] {
        let mut call = client.invoke(call("reach", "c-1"), patience).unwrap();
        let Step::Progress(progress) = soon("progress", call.next()).await.unwrap() else {
            panic!("an answer before the cancel");
        };
        let progress = progress.read().unwrap();
        assert_eq!(
            (progress.call_id.as_str(), progress.kind),
            ("c-1", ProgressKind::Wave)
        );
        assert!(call.cancel().await.unwrap().cancelled);
        let answer = soon("the answer", call.answer()).await.unwrap();
        let ClientError::Refused(refusal) = answer.good().unwrap_err() else {
            panic!("{answer:?} is no error");
        };
        assert_eq!(refusal.kind(), Some("CancelledError"));
        assert_eq!(refusal.to_string(), "CancelledError: by a bus client");
        assert_eq!(refusal.detail.unwrap().data, Some(json!({"by": "test"})));
    }
}

/// How a service behaves that does not answer a call.
#[derive(Clone, Copy, Debug)]
enum Fate {
    /// It runs, and answers the call in the end.
    Answers,
    /// Another one takes its place after its first status.
    Restarts,
    /// It says nothing after its first status.
    Ends,
    /// It has never told a status, as the published service does not, and answers the call in the end.
    Mute,
}

fn with_fate(fate: Fate) -> impl FnMut(&Message) -> Vec<Message> + Send + 'static {
    let (mut running, mut asked): (Option<Message>, u32) = (None, 0);
    let start = std::time::Instant::now();
    move |message: &Message| match message.kind.as_str() {
        "ovos.tools.get" => vec![message.response(object(json!({"name": "reach"})))],
        "ovos.tools.invoke" => {
            running = Some(message.clone());
            Vec::new()
        }
        "ovos.tools.status" => {
            asked += 1;
            let uptime = match (fate, asked) {
                (Fate::Mute, _) | (Fate::Ends, 2..) => None,
                (Fate::Restarts, 2..) => Some(1),
                _ => Some(start.elapsed().as_millis() + 1000),
            };
            let status = |uptime: u128| {
                let uptime = u64::try_from(uptime).unwrap();
                message.response(object(json!({"service": {"pid": 7, "uptime_ms": uptime}})))
            };
            let mut replies: Vec<Message> = uptime.map(status).into_iter().collect();
            let done = matches!((fate, asked), (Fate::Answers, 3..) | (Fate::Mute, _));
            if let Some(call) = running.take_if(|_| done) {
                replies.push(call.response(object(json!({"name": "reach", "result": {"done": true}}))));
            }
            replies
        }
        _ => Vec::new(),
    }
}

async fn check_end(fate: Fate) {
    let bus = Bus::start(0).await;
    let _service = bus.service(with_fate(fate)).await;
    let client = bus.client().await;
    let call = client
        .invoke(call("reach", "c-1"), Patience::WhileItRuns)
        .unwrap();
    let answer = soon("an end", call.answer()).await;
    let as_expected = match fate {
        Fate::Answers | Fate::Mute => answer.is_ok(),
        Fate::Restarts => matches!(answer, Err(ClientError::Restarted { .. })),
        Fate::Ends => matches!(answer, Err(ClientError::NoService { .. })),
    };
    assert!(as_expected, "{fate:?}: {answer:?}");
}

/// Side by side, because each of them waits for seconds.
#[tokio::test]
async fn a_call_ends_soon_after_its_service() {
    tokio::join!(
        check_end(Fate::Answers),
        check_end(Fate::Restarts),
        check_end(Fate::Ends),
        check_end(Fate::Mute),
    );
}

#[tokio::test]
async fn all_calls_share_one_question_a_second() {
    let bus = Bus::start(0).await;
    let requests = Arc::new(AtomicU32::new(0));
    let (counted, mut running) = (Arc::clone(&requests), Vec::new());
    let start = std::time::Instant::now();
    let _service = bus
        .service(move |message: &Message| match message.kind.as_str() {
            "ovos.tools.get" => vec![message.response(object(json!({"name": "reach"})))],
            "ovos.tools.invoke" => {
                running.push(message.clone());
                Vec::new()
            }
            "ovos.tools.status" => {
                let uptime = u64::try_from(start.elapsed().as_millis()).unwrap() + 1000;
                let status = json!({"service": {"pid": 7, "uptime_ms": uptime}});
                let mut replies = vec![message.response(object(status))];
                if counted.fetch_add(1, Ordering::Relaxed) == 1 {
                    let done = |call: Message| {
                        call.response(object(json!({"name": "reach", "result": {"done": true}})))
                    };
                    replies.extend(running.drain(..).map(done));
                }
                replies
            }
            _ => Vec::new(),
        })
        .await;
    let client = bus.client().await;
    let mut calls = tokio::task::JoinSet::new();
    for number in 0..20 {
        let request = call("reach", &format!("c-{number}"));
        calls.spawn(client.invoke(request, Patience::WhileItRuns).unwrap().answer());
    }
    for answer in soon("all answers", calls.join_all()).await {
        answer.unwrap();
    }
    assert_eq!(requests.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn the_users_stop_names_the_session() {
    let bus = Bus::start(0).await;
    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
    let _service = bus
        .service(move |message| {
            if message.kind == "ovos.stop" {
                _ = sender.send(message.session_id().map(str::to_owned));
            }
            Vec::new()
        })
        .await;
    let client = bus.client().await;
    client.user_stop().unwrap();
    let session = soon("the stop", receiver.recv()).await.unwrap();
    assert_eq!(session.as_deref(), Some(client.session_id()));
}

/// A program that acts for a person ends when another client stops. Its own stops are not reported to it.
#[tokio::test]
async fn the_stops_of_others_are_news() {
    let bus = Bus::start(0).await;
    let (client, other) = (bus.client().await, bus.client().await);
    let mut events = client.events();
    client.user_stop().unwrap();
    other.user_stop().unwrap();
    let Some(News::UserStop { session_id }) = soon("the user's stop", events.next()).await else {
        panic!("another one first");
    };
    assert_eq!(session_id.as_deref(), Some(other.session_id()));
    assert!(events.arrived().is_none());
    let stop = tokio::spawn(async move { other.stop(None).await });
    assert!(matches!(
        soon("the emergency stop", events.next()).await,
        Some(News::EmergencyStop)
    ));
    stop.abort();
}

/// A request is answered in its own context, and only clients that serve its topic hear it.
#[tokio::test]
async fn a_client_answers_the_topics_that_it_serves() {
    let bus = Bus::start(0).await;
    let (server, client) = (bus.client().await, bus.client().await);
    let mut requests = server.serve(&["ovos.tools.get"]);
    let serving = tokio::spawn(async move {
        let request = requests.next().await.unwrap();
        assert_eq!(request.data()["name"], "add");
        let answer = json!({"name": "add", "description": request.session_id()});
        server.answer(&request, &answer).unwrap();
        server
    });
    let entry = soon("the answer", client.get("add")).await.unwrap();
    assert_eq!(entry.description, client.session_id());
    let server = serving.await.unwrap();
    assert!(!server.session_id().is_empty());
}

/// Also one of more than can wait.
#[tokio::test]
async fn every_request_for_a_served_topic_is_answered() {
    const ASKED: usize = 100;
    let bus = Bus::start(0).await;
    let (server, client) = (bus.client().await, bus.client().await);
    let mut requests = server.serve(&["ovos.tools.get"]);
    let mut news = server.events();
    let mut asking = tokio::task::JoinSet::new();
    for _ in 0..ASKED {
        let client = client.clone();
        asking.spawn(async move { client.get("add").await });
    }
    tokio::task::yield_now().await;
    client.user_stop().unwrap();
    // They are all here, and none is read yet.
    soon("the stop behind them", news.next()).await.unwrap();
    for _ in 0..ASKED {
        let request = soon("a request", requests.next()).await.unwrap();
        let answer = match request.refused() {
            Some(error) => json!({ "error": error }),
            None => json!({"name": "add"}),
        };
        server.answer(&request, &answer).unwrap();
    }
    let answers = soon("the answers", asking.join_all()).await;
    let refused = answers.iter().filter_map(|answer| answer.as_ref().err());
    let refused: Vec<String> = refused.map(ToString::to_string).collect();
    assert_eq!(refused.len(), ASKED - 64, "{refused:?}");
    assert!(
        refused.iter().all(|error| error.contains("BusyError")),
        "{refused:?}"
    );
}

#[tokio::test]
async fn calls_without_an_id_get_one_of_their_own() {
    let bus = Bus::start(0).await;
    let client = bus.client().await;
    let ids = [(), ()].map(|()| {
        let call = client.invoke(InvokeRequest::default(), Patience::AtMost(DEADLINE));
        call.unwrap().call_id().to_owned()
    });
    assert_ne!(ids[0], ids[1]);
}

/// A service that pages, one that knows nothing of pages, and one that forgets how the list was in between.
#[tokio::test]
async fn a_list_is_put_together_from_its_pages() {
    let bus = Bus::start(0).await;
    let client = bus.client().await;
    let names = |names: &[&str]| -> Vec<Value> { names.iter().map(|name| json!({ "name": name })).collect() };
    let page = |tools: &[&str], next: Option<&str>| {
        let mut page = json!({ "tools": names(tools) });
        if let Some(next) = next {
            page["next_cursor"] = json!(next);
        }
        page
    };
    let forgotten = json!({"error": "ValueError: begin again"});
    for (pages, expected) in [
        (
            vec![
                page(&["a", "b"], Some("2")),
                page(&["c"], Some("3")),
                page(&["d"], None),
            ],
            Some("abcd"),
        ),
        (vec![page(&["a", "b", "c"], None)], Some("abc")),
        (
            vec![
                page(&["a"], Some("2")),
                forgotten.clone(),
                page(&["x"], Some("2")),
                page(&["y"], None),
            ],
            Some("xy"),
        ),
        (vec![forgotten.clone()], None),
    ] {
        let mut left = pages.into_iter();
        let mut cursor = Value::Null;
        let _service = bus
            .service(move |message| {
                if message.kind != "ovos.tools.list" {
                    return Vec::new();
                }
                let requested = message.data.get("cursor").cloned().unwrap_or_default();
                assert!(
                    requested == cursor || requested.is_null(),
                    "{requested} is not the cursor of the answer, {cursor}"
                );
                let Some(answer) = left.next() else {
                    return Vec::new();
                };
                cursor = answer.get("next_cursor").cloned().unwrap_or_default();
                vec![message.response(object(answer))]
            })
            .await;
        let list = client.list(&ListRequest::default()).await;
        let list = list.map(|tools| tools.into_iter().map(|tool| tool.name).collect::<String>());
        assert_eq!(list.ok().as_deref(), expected);
    }
}

#[tokio::test]
async fn a_list_that_never_ends_is_an_error() {
    let bus = Bus::start(0).await;
    let client = bus.client().await;
    let _service = bus
        .service(|message| {
            if message.kind != "ovos.tools.list" {
                return Vec::new();
            }
            vec![message.response(object(json!({"tools": [], "next_cursor": "again"})))]
        })
        .await;
    let error = soon("the end", client.list(&ListRequest::default()))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("does not end"), "{error}");
}
