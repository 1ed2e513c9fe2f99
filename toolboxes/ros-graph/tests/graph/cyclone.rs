//! A base of the published Cyclone DDS: both velocity types, odometry, battery, scan, services, a Nav2-like action.

use std::time::Duration;

use ros_graph::error::GraphError;
use ros_graph::graph::Graph as _;
use ros_graph::inbox::Bounds;
use serde_json::{Value, json};

use crate::{PATIENCE, SHORT, cyclone, name};

#[tokio::test]
async fn what_the_base_says_is_read_with_its_type() {
    let Some(scene) = cyclone("twist") else { return };
    let graph = &scene.graph;
    let mut odometry = graph
        .subscribe("/odom", None, Bounds::default(), PATIENCE)
        .await
        .unwrap();
    assert_eq!(odometry.type_name(), &name("nav_msgs/msg/Odometry"));
    let first = odometry.next(PATIENCE).await.unwrap().value;
    assert_eq!(
        (&first["child_frame_id"], &first["pose"]["covariance"][35]),
        (&json!("base_link"), &json!(0.0))
    );
    let second = odometry.next(PATIENCE).await.unwrap();
    assert!(
        second.value["pose"]["pose"]["position"]["x"].as_f64()
            > first["pose"]["pose"]["position"]["x"].as_f64()
    );
    assert!(second.age < Duration::from_secs(1));

    let mut battery = graph
        .subscribe("battery_state", None, Bounds::default(), PATIENCE)
        .await
        .unwrap();
    let message = battery.newest(PATIENCE).await.unwrap().value;
    assert_eq!(
        (
            &message["percentage"],
            &message["temperature"],
            &message["voltage"]
        ),
        (&json!(0.5), &json!("NaN"), &json!(12.1))
    );
    let mut scan = graph
        .subscribe("/scan", None, Bounds::default(), PATIENCE)
        .await
        .unwrap();
    assert_eq!(
        scan.next(PATIENCE).await.unwrap().value["ranges"],
        json!([1.0, "Infinity", "NaN", 0.1])
    );

    let entities = graph.entities().await.unwrap();
    let names =
        |list: &[ros_graph::graph::Entity]| list.iter().map(|entity| entity.name.clone()).collect::<Vec<_>>();
    assert_eq!(
        names(&entities.topics),
        ["/battery_state", "/cmd_vel", "/odom", "/scan"]
    );
    assert_eq!(names(&entities.services), ["/motor_power", "/slow"]);
    assert_eq!(names(&entities.actions), ["/navigate_to_pose"]);
    assert!(
        entities.actions[0]
            .types
            .contains("nav2_msgs/action/NavigateToPose")
    );
    assert_eq!(
        (entities.topics[1].sources, entities.topics[1].sinks),
        (Some(0), Some(1))
    );
}

/// A velocity goes out only where it is heard as what it is.
#[tokio::test]
async fn a_velocity_of_another_type_or_without_a_listener_is_never_sent() {
    for (kind, twist, stamped) in [
        ("twist", true, false),
        ("stamped", false, true),
        ("both", true, true),
        ("deaf", false, false),
    ] {
        let Some(scene) = cyclone(kind) else { return };
        // The graph is known when the base's odometry is.
        scene
            .graph
            .subscribe("/odom", None, Bounds::default(), PATIENCE)
            .await
            .unwrap();
        for (of, key, value, heard) in [
            (
                "geometry_msgs/msg/Twist",
                "twist",
                json!({"linear": {"x": 0.25}}),
                twist,
            ),
            (
                "geometry_msgs/msg/TwistStamped",
                "stamped",
                json!({"twist": {"linear": {"x": 0.25}}}),
                stamped,
            ),
        ] {
            let publisher = match scene.graph.publisher("/cmd_vel", &name(of)).await {
                Ok(publisher) => publisher,
                Err(error) => {
                    assert!(
                        !heard && matches!(error, GraphError::OtherType { .. }),
                        "{kind} {of}: {error}"
                    );
                    continue;
                }
            };
            let ready = publisher.ready(if heard { PATIENCE } else { SHORT }).await;
            assert_eq!(ready.is_ok(), heard, "{kind} {of}: {ready:?}");
            let sent = publisher.publish(&value);
            assert_eq!(sent.is_ok(), heard, "{kind} {of}: {sent:?}");
            if heard {
                scene.line(key, &json!(0.25));
                let wrong = publisher.publish(&json!({"speed": 1})).unwrap_err();
                assert!(wrong.to_string().contains("has no field `speed`"), "{wrong}");
            } else {
                assert!(
                    matches!(sent, Err(GraphError::Unheard { .. })),
                    "{kind} {of}: {sent:?}"
                );
            }
        }
        assert_eq!(
            (scene.count("twist"), scene.count("stamped")),
            (usize::from(twist), usize::from(stamped)),
            "{kind}"
        );
    }
}

fn ahead(metres: f64) -> Value {
    json!({"pose": {"header": {"frame_id": "map"}, "pose": {"position": {"x": metres}, "orientation": {"w": 1.0}}}})
}

#[tokio::test]
async fn a_goal_gives_each_feedback_and_its_result() {
    let Some(scene) = cyclone("twist") else { return };
    let goal = scene
        .graph
        .send_goal("/navigate_to_pose", &ahead(3.0), PATIENCE)
        .await
        .unwrap();
    let mut left = Vec::new();
    while left.len() < 3 {
        let feedback = goal.feedback(PATIENCE).await.unwrap().unwrap();
        left.push(feedback["distance_remaining"].as_f64().unwrap());
    }
    assert_eq!(left, [2.0, 1.0, 0.0]);
    let end = goal.end(PATIENCE).await.unwrap().unwrap();
    assert_eq!(end.result, json!({"result": {}}));
    let error = scene.graph.call("no name", &json!({}), SHORT).await.unwrap_err();
    assert!(matches!(error, GraphError::Name(_)), "{error}");
}

#[tokio::test]
async fn a_goal_that_goes_on_after_its_cancel_is_no_success() {
    let Some(scene) = cyclone("stubborn") else { return };
    let goal = scene
        .graph
        .send_goal("/navigate_to_pose", &ahead(500.0), PATIENCE)
        .await
        .unwrap();
    let error = goal.cancel(SHORT).await.unwrap_err();
    assert!(matches!(error, GraphError::GoalGoesOn { .. }), "{error}");
}

/// What was sent may move the robot, and nothing but its id can end it.
#[tokio::test]
async fn a_goal_whose_acceptance_is_not_heard_is_cancelled() {
    for (word, is_cancelled) in [("unheard", true), ("ponders", false)] {
        let Some(scene) = cyclone("twist") else { return };
        scene.peer.say(word);
        let sent = scene
            .graph
            .send_goal("/navigate_to_pose", &ahead(500.0), Duration::from_secs(2))
            .await;
        let Err(error) = sent else {
            panic!("{word}: a goal without an acceptance");
        };
        let goes_on = matches!(error, GraphError::GoalGoesOn { .. });
        assert_eq!(goes_on, !is_cancelled, "{word}: {error}");
        if is_cancelled {
            scene.peer.until("\"canceled\"");
        }
    }
}

#[tokio::test]
async fn a_base_that_leaves_or_falls_silent_is_said() {
    let Some(scene) = cyclone("twist") else { return };
    let graph = &scene.graph;
    let mut odometry = graph
        .subscribe("/odom", None, Bounds::default(), PATIENCE)
        .await
        .unwrap();
    let velocity = graph
        .publisher("/cmd_vel", &name("geometry_msgs/msg/Twist"))
        .await
        .unwrap();
    velocity.ready(PATIENCE).await.unwrap();
    let goal = graph
        .send_goal("/navigate_to_pose", &ahead(500.0), PATIENCE)
        .await
        .unwrap();
    scene.peer.say("silent");
    let error = loop {
        if let Err(error) = odometry.next(SHORT).await {
            break error;
        }
    };
    assert!(matches!(error, GraphError::Silent { .. }), "{error}");

    let crate::Scene { peer, graph } = scene;
    peer.say("quit");
    peer.finish();
    // A process that ends without a word is gone when its lease is over, after ten seconds.
    let end = goal.end(Duration::from_secs(20)).await;
    assert!(matches!(end, Err(GraphError::Lost { .. })), "{end:?}");
    let error = odometry.next(SHORT).await.unwrap_err();
    assert!(matches!(error, GraphError::Lost { .. }), "{error}");
    let error = velocity.publish(&json!({})).unwrap_err();
    assert!(matches!(error, GraphError::Unheard { .. }), "{error}");
    let error = graph.call("/motor_power", &json!({}), SHORT).await.unwrap_err();
    assert!(matches!(error, GraphError::Absent { .. }), "{error}");
}

#[tokio::test]
async fn a_type_that_is_asked_for_must_be_the_one_in_the_graph() {
    let Some(scene) = cyclone("twist") else { return };
    let of = name("std_msgs/msg/String");
    scene
        .graph
        .subscribe("/odom", None, Bounds::default(), PATIENCE)
        .await
        .unwrap();
    let error = scene
        .graph
        .subscribe("/odom", Some(&of), Bounds::default(), SHORT)
        .await
        .map(|_| ())
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "/odom is nav_msgs/msg/Odometry in the graph, expected std_msgs/msg/String"
    );
    let error = scene
        .graph
        .subscribe("/nothing", None, Bounds::default(), SHORT)
        .await
        .map(|_| ())
        .unwrap_err();
    assert!(
        matches!(error, GraphError::Absent { what: "topic", .. }),
        "{error}"
    );
}

/// A peer that learns of us late, because it is frozen while we open what hears it, loses neither what it says nor what it is told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_where_a_peer_is_late() {
    for what in ["feedback", "reply", "publish"] {
        let Some(scene) = cyclone("twist") else { return };
        let graph = &scene.graph;
        // What is in the graph is known when the odometry is.
        graph
            .subscribe("/odom", None, Bounds::default(), PATIENCE)
            .await
            .unwrap();
        scene.peer.signal(rustix::process::Signal::STOP);
        let work = async {
            match what {
                "feedback" => {
                    let goal = graph
                        .send_goal("/navigate_to_pose", &ahead(3.0), PATIENCE)
                        .await
                        .unwrap();
                    let first = goal.feedback(PATIENCE).await.unwrap().unwrap();
                    assert_eq!(first["distance_remaining"], 2.0);
                }
                "reply" => {
                    let answer = graph.call("/motor_power", &json!({"data": true}), PATIENCE).await;
                    assert_eq!(answer.unwrap()["success"], true);
                }
                _ => {
                    let twist = name("geometry_msgs/msg/Twist");
                    let velocity = graph.publisher("/cmd_vel", &twist).await.unwrap();
                    velocity.ready(PATIENCE).await.unwrap();
                    velocity.publish(&json!({"linear": {"x": 0.25}})).unwrap();
                    scene.line("twist", &json!(0.25));
                }
            }
        };
        let thaw = async {
            // Longer than two endpoints need to know each other.
            let still = graph.subscribe("/nothing", None, Bounds::default(), SHORT).await;
            assert!(still.is_err());
            scene.peer.signal(rustix::process::Signal::CONT);
        };
        tokio::join!(work, thaw);
    }
}
