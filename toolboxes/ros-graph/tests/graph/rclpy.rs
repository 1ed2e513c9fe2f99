//! A node of ROS 2's own wheels over Fast DDS: its request identities, its hashes, and the types that it describes.

use std::time::{Duration, Instant};

use ros_graph::graph::{GoalStatus, Graph as _};
use ros_graph::inbox::Bounds;
use serde_json::{Value, json};

use crate::{PATIENCE, name, rclpy};

#[tokio::test]
async fn a_node_is_read_commanded_and_called() {
    let Some(scene) = rclpy(false) else { return };
    let graph = &scene.graph;
    let mut odometry = graph
        .subscribe("/odom", None, Bounds::default(), PATIENCE)
        .await
        .unwrap();
    let said = odometry.next(PATIENCE).await.unwrap().value;
    assert_eq!(
        (&said["header"]["frame_id"], &said["pose"]["covariance"][35]),
        (&json!("odom"), &json!("Infinity"))
    );
    // What was said before it was asked for.
    let mut description = graph
        .subscribe("/robot_description", None, Bounds::default(), PATIENCE)
        .await
        .unwrap();
    assert_eq!(
        description.next(PATIENCE).await.unwrap().value,
        json!({"data": "<robot/>"})
    );

    let velocity = graph
        .publisher("/cmd_vel", &name("geometry_msgs/msg/Twist"))
        .await
        .unwrap();
    velocity.ready(PATIENCE).await.unwrap();
    velocity.publish(&json!({"linear": {"x": 0.25}})).unwrap();
    scene.heard("cmd_vel", &json!(0.25));

    let mut times: Vec<Duration> = Vec::new();
    for number in 0..100 {
        let start = Instant::now();
        let answer = graph
            .call("/motor_power", &json!({"data": number % 2 == 0}), PATIENCE)
            .await
            .unwrap();
        times.push(start.elapsed());
        assert_eq!(answer["success"], json!(number % 2 == 0));
    }
    times.sort();
    println!(
        "calls one after another: least {:?}, median {:?}, most {:?}",
        times[0], times[50], times[99]
    );
    let parameters = graph
        .call(
            "/base/get_parameters",
            &json!({"names": ["use_sim_time"]}),
            PATIENCE,
        )
        .await
        .unwrap();
    assert_eq!(
        (
            &parameters["values"][0]["type"],
            &parameters["values"][0]["bool_value"]
        ),
        (&json!(1), &json!(false))
    );
}

/// test_msgs is not shipped: its definitions come from the node.
#[tokio::test]
async fn a_type_that_is_not_known_is_described_by_the_node() {
    let Some(scene) = rclpy(false) else { return };
    let graph = &scene.graph;
    let mut wide = graph
        .subscribe("/wide", None, Bounds::default(), PATIENCE)
        .await
        .unwrap();
    let said = wide.next(PATIENCE).await.unwrap().value;
    assert_eq!(said["wstring_value"], "wide ä€😀");
    let back = graph
        .publisher("/wide_back", &name("test_msgs/msg/WStrings"))
        .await
        .unwrap();
    back.ready(PATIENCE).await.unwrap();
    back.publish(&json!({"wstring_value": "zurück 😀"})).unwrap();
    scene.heard("wide", &json!("zurück 😀"));
}

#[tokio::test]
async fn goals_are_followed_cancelled_and_refused() {
    let Some(scene) = rclpy(true) else { return };
    let graph = &scene.graph;
    let goal = graph
        .send_goal("/fibonacci", &json!({"order": 5}), PATIENCE)
        .await
        .unwrap();
    let first = goal.feedback(PATIENCE).await.unwrap().unwrap();
    assert_eq!(
        first["sequence"].as_array().unwrap()[..3],
        [json!(0), json!(1), json!(1)]
    );
    let end = goal.end(PATIENCE).await.unwrap().unwrap();
    assert_eq!(
        (end.status, &end.result["sequence"]),
        (GoalStatus::Succeeded, &json!([0, 1, 1, 2, 3, 5, 8]))
    );

    let goal = graph
        .send_goal("/fibonacci", &json!({"order": 90}), PATIENCE)
        .await
        .unwrap();
    goal.feedback(PATIENCE).await.unwrap().unwrap();
    let start = Instant::now();
    assert_eq!(goal.cancel(PATIENCE).await.unwrap().status, GoalStatus::Canceled);
    println!("cancelled after {:?}", start.elapsed());
    scene.heard("canceled", &Value::Null);
    assert!(
        graph
            .send_goal("/fibonacci", &json!({"order": 99}), PATIENCE)
            .await
            .is_err()
    );

    let goal = graph
        .send_goal("/fibonacci", &json!({"order": 90}), PATIENCE)
        .await
        .unwrap();
    graph.cancel_all("/fibonacci", PATIENCE).await.unwrap();
    assert_eq!(
        goal.end(PATIENCE).await.unwrap().unwrap().status,
        GoalStatus::Canceled
    );
}
