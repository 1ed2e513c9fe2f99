//! What every carrier promises, in one table: DDS to Cyclone's base and to a node of Fast DDS, and rosbridge.

use std::time::{Duration, Instant};

use ros_graph::error::GraphError;
use ros_graph::graph::{GoalStatus, Graph};
use serde_json::{Value, json};

use crate::{PATIENCE, SHORT, Scene, cyclone, rclpy, rosbridge};

/// A base whose action takes a number: so many metres, or so many figures.
struct Carried {
    name: &'static str,
    scene: Scene<Box<dyn Graph>>,
    action: &'static str,
    goal: fn(i32) -> Value,
    /// Reached soon, not reached within a test, and not accepted.
    numbers: [i32; 3],
}

fn ahead(metres: i32) -> Value {
    json!({"pose": {"header": {"frame_id": "map"}, "pose": {"position": {"x": metres}, "orientation": {"w": 1.0}}}})
}

pub(crate) fn boxed(scene: Scene<impl Graph + 'static>) -> Scene<Box<dyn Graph>> {
    Scene {
        peer: scene.peer,
        graph: Box::new(scene.graph),
    }
}

/// Those of which this machine has the peers.
async fn carried() -> Vec<Carried> {
    let base = |name, scene| Carried {
        name,
        scene,
        action: "/navigate_to_pose",
        goal: ahead,
        numbers: [3, 500, 5000],
    };
    let node = |scene| Carried {
        action: "/fibonacci",
        goal: |order| json!({ "order": order }),
        numbers: [5, 90, 99],
        ..base("rclpy", scene)
    };
    let all = [
        cyclone("twist").map(|scene| base("cyclone", boxed(scene))),
        rclpy(true).map(|scene| node(boxed(scene))),
        rosbridge::scene()
            .await
            .map(|scene| base("rosbridge", boxed(scene))),
    ];
    all.into_iter().flatten().collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_answers_its_caller_or_the_call_says_why_not() {
    for Carried { name, scene, .. } in carried().await {
        let graph = &scene.graph;
        let power =
            |on: Value| async move { graph.call("/motor_power", &json!({ "data": on }), PATIENCE).await };
        assert_eq!(power(json!(true)).await.unwrap()["success"], true, "{name}");
        // Each answer is that of its own request, also where many are under way. A server of ROS keeps ten requests that wait.
        let many = if name == "rclpy" { 10 } else { 30 };
        let calls = (0..many).map(|number| async move {
            let answer = power(json!(number % 3 == 0)).await.unwrap();
            assert_eq!(answer["success"], json!(number % 3 == 0), "{name}");
        });
        futures_util::future::join_all(calls).await;
        let mut times: Vec<Duration> = Vec::new();
        for _ in 0..100 {
            let start = Instant::now();
            power(json!(false)).await.unwrap();
            times.push(start.elapsed());
        }
        times.sort();
        println!(
            "{name}, calls one after another: least {:?}, median {:?}, most {:?}",
            times[0], times[50], times[99]
        );
        let wrong = power(json!(1)).await.unwrap_err();
        assert_eq!(
            wrong.to_string(),
            "data: expected true or false, found 1",
            "{name}"
        );
        let absent = graph.call("/nothing", &json!({}), SHORT).await.unwrap_err();
        let is_absent = matches!(absent, GraphError::Absent { what: "service", .. });
        assert!(is_absent, "{name}: {absent}");
        if name != "rclpy" {
            let error = graph.call("/slow", &json!({}), SHORT).await.unwrap_err();
            assert!(matches!(error, GraphError::NoAnswer { .. }), "{name}: {error}");
            assert!(
                error.to_string().contains("it may have done what was asked"),
                "{name}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_goal_is_followed_to_its_end_cancelled_or_refused() {
    for Carried {
        name,
        scene,
        action,
        goal,
        numbers: [near, far, refused],
    } in carried().await
    {
        let send = |number: i32| {
            let (graph, goal) = (&scene.graph, goal(number));
            async move { graph.send_goal(action, &goal, PATIENCE).await }
        };
        let reached = send(near).await.unwrap();
        reached.feedback(PATIENCE).await.unwrap().unwrap();
        let end = reached.end(PATIENCE).await.unwrap().unwrap();
        assert_eq!(end.status, GoalStatus::Succeeded, "{name}");

        let cancelled = send(far).await.unwrap();
        cancelled.feedback(PATIENCE).await.unwrap().unwrap();
        let start = Instant::now();
        let end = cancelled.cancel(Duration::from_secs(2)).await.unwrap();
        assert_eq!(end.status, GoalStatus::Canceled, "{name}");
        println!("{name}: cancelled after {:?}", start.elapsed());
        scene.line("canceled", &Value::Null);
        // What has ended is cancelled at once.
        let again = cancelled.cancel(PATIENCE).await.unwrap();
        assert_eq!(again.status, GoalStatus::Canceled, "{name}");

        // An empty cancel is for every goal, those of other clients too.
        let both = [send(far).await.unwrap(), send(far - 1).await.unwrap()];
        scene.graph.cancel_all(action, PATIENCE).await.unwrap();
        for goal in both {
            let end = goal.end(PATIENCE).await.unwrap().unwrap();
            assert_eq!(end.status, GoalStatus::Canceled, "{name}");
        }
        let error = send(refused).await.map(drop).unwrap_err();
        assert!(matches!(error, GraphError::Refused { .. }), "{name}: {error}");
        let absent = scene.graph.send_goal("/dock", &json!({}), SHORT).await;
        let absent = absent.map(drop).unwrap_err();
        let is_absent = matches!(absent, GraphError::Absent { what: "action", .. });
        assert!(is_absent, "{name}: {absent}");
    }
}
