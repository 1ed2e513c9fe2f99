//! What a reader of a topic hears, and from when on.

use std::time::Instant;

use ros_graph::graph::{Graph, Subscription};
use ros_graph::inbox::Bounds;
use serde_json::{Value, json};

use crate::carriers::boxed;
use crate::{PATIENCE, SHORT, Scene, cyclone_that, rosbridge};

fn offering() -> Option<Scene> {
    cyclone_that("twist", Some("offers"))
}

async fn hear(graph: &dyn Graph, topic: &str) -> Subscription {
    graph
        .subscribe(topic, None, Bounds::default(), PATIENCE)
        .await
        .unwrap()
}

async fn number(reader: &mut Subscription) -> i64 {
    let message = reader.next(PATIENCE).await.unwrap();
    message.value["data"].as_i64().unwrap()
}

/// Both carriers, and how their peers say that a subscription has ended.
async fn carried() -> Vec<(Scene<Box<dyn Graph>>, &'static str, Vec<(&'static str, Value)>)> {
    let cyclone = offering().map(|scene| {
        let topics = vec![
            ("/counted", json!("counted")),
            ("/counted_loosely", json!("counted_loosely")),
        ];
        (boxed(scene), "unsubscribed", topics)
    });
    let rosbridge = rosbridge::scene()
        .await
        .map(|scene| (boxed(scene), "unsubscribe", vec![("/counted", json!("/counted"))]));
    [cyclone, rosbridge].into_iter().flatten().collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_hears_nothing_that_came_before_it() {
    for (scene, key, topics) in carried().await {
        for (topic, said) in topics {
            for thousands in 1..=3 {
                let mut reader = hear(scene.graph.as_ref(), topic).await;
                for _ in 0..3 {
                    let number = number(&mut reader).await;
                    assert_eq!(number / 1000, thousands, "{key} {topic}: {number}");
                }
                drop(reader);
                scene.peer.wait("an end of the subscription", |lines| {
                    let frames = lines
                        .iter()
                        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
                    let ended = frames.filter(|frame| frame[key] == said).count();
                    (i64::try_from(ended) == Ok(thousands)).then_some(())
                });
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_reader_hears_what_is_kept() {
    for (scene, ..) in carried().await {
        let mut first = hear(scene.graph.as_ref(), "/kept").await;
        assert_eq!(number(&mut first).await, 1);
        let mut second = hear(scene.graph.as_ref(), "/kept").await;
        assert_eq!(number(&mut second).await, 1);
        drop(first);
        let mut third = hear(scene.graph.as_ref(), "/kept").await;
        assert_eq!(number(&mut third).await, 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_kept_is_the_newest_and_as_old_as_it_is() {
    let Some(scene) = offering() else { return };
    let mut first = hear(&scene.graph, "/kept").await;
    assert_eq!(number(&mut first).await, 1);
    scene.peer.say("renews");
    assert_eq!(number(&mut first).await, 3);
    let start = Instant::now();
    let nothing = scene
        .graph
        .subscribe("/nothing", None, Bounds::default(), SHORT)
        .await;
    assert!(nothing.is_err());
    let waited = start.elapsed();
    let one = Bounds {
        messages: 1,
        ..Bounds::default()
    };
    let mut second = scene.graph.subscribe("/kept", None, one, PATIENCE).await.unwrap();
    let kept = second.next(PATIENCE).await.unwrap();
    assert_eq!(kept.value["data"], 3);
    assert!(kept.age >= waited, "{:?}, not {waited:?}", kept.age);
}

/// One that offers less than those that were there: best effort among reliable ones, volatile among those that keep.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_publisher_that_joins_later_is_heard_whatever_it_offers() {
    for topic in ["/firm", "/kept"] {
        let Some(scene) = offering() else { return };
        let mut reader = hear(&scene.graph, topic).await;
        assert_eq!(number(&mut reader).await, 1, "{topic}");
        scene.peer.say("joins");
        let joined = async { while number(&mut reader).await != 2 {} };
        let outcome = tokio::time::timeout(PATIENCE, joined).await;
        assert!(outcome.is_ok(), "{topic}: the one that joined is not heard");
    }
}
