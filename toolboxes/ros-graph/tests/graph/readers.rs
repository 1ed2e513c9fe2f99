//! What a reader of a topic hears, and from when on.

use ros_graph::graph::{Graph, Subscription};
use ros_graph::inbox::Bounds;
use serde_json::{Value, json};

use crate::carriers::boxed;
use crate::{PATIENCE, Scene, cyclone_that, rosbridge};

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
