//! A node of ROS 2's own wheels over Fast DDS: its request identities, its hashes, and the types that it describes.

use ros_graph::graph::Graph as _;
use ros_graph::inbox::Bounds;
use serde_json::json;

use crate::{PATIENCE, name, rclpy};

#[tokio::test]
async fn a_node_is_read_commanded_and_called() {
    let Some(scene) = rclpy(false) else { return };
    let graph = &scene.graph;
    let mut odometry = graph
        .subscribe("/odom", None, Bounds::default(), PATIENCE)
        .await
        .unwrap();
    let message = odometry.next(PATIENCE).await.unwrap().value;
    assert_eq!(
        (&message["header"]["frame_id"], &message["pose"]["covariance"][35]),
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
    scene.line("cmd_vel", &json!(0.25));

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
    let message = wide.next(PATIENCE).await.unwrap().value;
    assert_eq!(message["wstring_value"], "wide ä€😀");
    let back = graph
        .publisher("/wide_back", &name("test_msgs/msg/WStrings"))
        .await
        .unwrap();
    back.ready(PATIENCE).await.unwrap();
    back.publish(&json!({"wstring_value": "zurück 😀"})).unwrap();
    scene.line("wide", &json!("zurück 😀"));
    // What no node describes is said.
    let error = graph.definitions(&name("own_msgs/msg/Odd")).await.unwrap_err();
    assert!(error.to_string().contains("own_msgs/msg/Odd"), "{error}");
}

#[tokio::test]
async fn a_goal_gives_its_feedback_and_its_result() {
    let Some(scene) = rclpy(true) else { return };
    let goal = scene
        .graph
        .send_goal("/fibonacci", &json!({"order": 5}), PATIENCE)
        .await
        .unwrap();
    let first = goal.feedback(PATIENCE).await.unwrap().unwrap();
    let figures = first["sequence"].as_array().unwrap();
    assert_eq!(figures[..3], [json!(0), json!(1), json!(1)]);
    let end = goal.end(PATIENCE).await.unwrap().unwrap();
    assert_eq!(end.result["sequence"], json!([0, 1, 1, 2, 3, 5, 8]));
}
