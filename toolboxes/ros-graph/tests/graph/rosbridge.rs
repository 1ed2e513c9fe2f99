//! The graph over rosbridge, against a base that the published roslib has judged.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use ros_graph::cdr::Cdr;
use ros_graph::error::GraphError;
use ros_graph::graph::Graph as _;
use ros_graph::inbox::Bounds;
use ros_graph::library::Library;
use ros_graph::rosbridge::Rosbridge;
use ros_graph::shipped::Distribution;
use serde_json::{Value, json};

use crate::peers::Peer;
use crate::{PATIENCE, SHORT, Scene, name, python};

fn script(name: &str) -> Option<Command> {
    let node = python::node()?;
    let modules = node.ancestors().nth(2).unwrap().join("node_modules");
    let mut command = Command::new(node);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/node");
    command.arg(folder.join(name)).arg(modules);
    Some(command)
}

/// A peer and the address of its rosbridge.
fn peer(name: &str) -> Option<(Peer, String)> {
    let peer = Peer::run(name, script(name)?);
    let ready: Value = serde_json::from_str(&peer.until("ready")).unwrap();
    let url = format!("ws://127.0.0.1:{}", ready["port"]);
    Some((peer, url))
}

fn base() -> Option<(Peer, String)> {
    peer("rosbridge_base.mjs")
}

pub(crate) async fn scene() -> Option<Scene<Rosbridge>> {
    let (peer, url) = base()?;
    let library = Library::shipped(Distribution::Humble).unwrap();
    let graph = Rosbridge::connect(&url, library, Cdr::default()).await.unwrap();
    Some(Scene { peer, graph })
}

fn ahead(metres: f64) -> Value {
    json!({"pose": {"pose": {"position": {"x": metres}, "orientation": {"w": 1.0}}}})
}

#[test]
fn roslib_takes_the_peers_for_a_rosbridge() {
    for (name, word) in [("rosbridge_base.mjs", None), ("rosbridge_arm.mjs", Some("arm"))] {
        let Some((_peer, url)) = peer(name) else { return };
        let mut judge = script("roslib_judge.mjs").unwrap();
        let output = judge.arg(url).args(word).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {errors}");
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "judged", "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn topics_are_read_and_written_with_their_types() {
    let Some(Scene { peer: base, graph }) = scene().await else {
        return;
    };
    let entities = graph.entities().await.unwrap();
    let names: Vec<&str> = entities.topics.iter().map(|topic| topic.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "/cmd_vel", "/counted", "/deaf", "/kept", "/odom", "/picture", "/scan"
        ]
    );
    assert!(entities.topics[4].types.contains("nav_msgs/msg/Odometry"));
    assert_eq!(entities.services.len(), 2);
    assert_eq!(entities.actions[0].name, "/navigate_to_pose");

    let mut odometry = graph
        .subscribe("/odom", None, Bounds::default(), PATIENCE)
        .await
        .unwrap();
    assert_eq!(odometry.type_name(), &name("nav_msgs/msg/Odometry"));
    assert_eq!(
        odometry.next(PATIENCE).await.unwrap().value["child_frame_id"],
        "base_link"
    );
    let mut scan = graph
        .subscribe("/scan", None, Bounds::default(), PATIENCE)
        .await
        .unwrap();
    assert_eq!(
        scan.next(PATIENCE).await.unwrap().value["ranges"],
        json!([1.0, "NaN", 0.1])
    );
    let mut picture = graph
        .subscribe("/picture", None, Bounds::default(), PATIENCE)
        .await
        .unwrap();
    let data = picture.next(PATIENCE).await.unwrap().value["data"]
        .as_str()
        .unwrap()
        .len();
    assert_eq!(data, 1336);

    let twist = name("geometry_msgs/msg/Twist");
    let velocity = graph.publisher("/cmd_vel", &twist).await.unwrap();
    velocity.ready(PATIENCE).await.unwrap();
    velocity.publish(&json!({"linear": {"x": 0.25}})).unwrap();
    base.until("\"cmd_vel\":0.25");
    let wrong = velocity.publish(&json!({"speed": 1})).unwrap_err();
    assert!(wrong.to_string().contains("has no field `speed`"), "{wrong}");
    let endless = velocity
        .publish(&json!({"linear": {"x": "Infinity"}}))
        .unwrap_err();
    assert!(matches!(endless, GraphError::Unsupported { .. }), "{endless}");

    let deaf = graph.publisher("/deaf", &twist).await.unwrap();
    assert!(matches!(deaf.ready(SHORT).await, Err(GraphError::Unheard { .. })));
    assert!(matches!(
        deaf.publish(&json!({})),
        Err(GraphError::Unheard { .. })
    ));
    let stamped = name("geometry_msgs/msg/TwistStamped");
    let other = graph
        .publisher("/cmd_vel", &stamped)
        .await
        .map(|_| ())
        .unwrap_err();
    assert!(matches!(other, GraphError::OtherType { .. }), "{other}");
    let absent = graph
        .subscribe("/nothing", None, Bounds::default(), SHORT)
        .await
        .map(|_| ())
        .unwrap_err();
    assert!(
        matches!(absent, GraphError::Absent { what: "topic", .. }),
        "{absent}"
    );

    drop(odometry);
    base.until("\"unsubscribe\":\"/odom\"");
    drop(velocity);
    base.until("\"unadvertise\":\"/cmd_vel\"");
}

/// A broken connection is said at once, nothing that was meant for it is sent late, and what was heard is heard again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_breaks_is_said_and_made_again() {
    let Some(Scene { peer: base, graph }) = scene().await else {
        return;
    };
    let mut odometry = graph
        .subscribe("/odom", None, Bounds::default(), PATIENCE)
        .await
        .unwrap();
    odometry.next(PATIENCE).await.unwrap();
    let velocity = graph
        .publisher("/cmd_vel", &name("geometry_msgs/msg/Twist"))
        .await
        .unwrap();
    velocity.ready(PATIENCE).await.unwrap();
    let goal = graph
        .send_goal("/navigate_to_pose", &ahead(500.0), PATIENCE)
        .await
        .unwrap();
    let (calling, nothing) = (graph.clone(), json!({}));
    let call = tokio::spawn(async move { calling.call("/slow", &nothing, PATIENCE).await });
    base.until("\"slow\"");
    base.say("away 1500");
    let lost = call.await.unwrap().unwrap_err();
    assert!(matches!(lost, GraphError::Lost { .. }), "{lost}");
    let end = goal.end(PATIENCE).await.unwrap_err();
    assert!(matches!(end, GraphError::Lost { .. }), "{end}");
    let late = velocity.publish(&json!({"linear": {"x": 0.75}})).unwrap_err();
    assert!(matches!(late, GraphError::Lost { .. }), "{late}");
    let silent = loop {
        if let Err(error) = odometry.next(Duration::from_millis(300)).await {
            break error;
        }
    };
    assert!(matches!(silent, GraphError::Lost { .. }), "{silent}");

    odometry.next(PATIENCE).await.unwrap();
    velocity.ready(PATIENCE).await.unwrap();
    velocity.publish(&json!({"linear": {"x": 0.5}})).unwrap();
    base.until("\"cmd_vel\":0.5");
    assert!(
        !base.lines().iter().any(|line| line.contains("\"cmd_vel\":0.75")),
        "a velocity was sent late"
    );
}

/// The announcement of each publisher is its own, on this connection and on the next one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_publisher_that_goes_leaves_what_another_has_announced() {
    let Some(Scene { peer: base, graph }) = scene().await else {
        return;
    };
    let twist = name("geometry_msgs/msg/Twist");
    let old = graph.publisher("/cmd_vel", &twist).await.unwrap();
    let new = graph.publisher("/cmd_vel", &twist).await.unwrap();
    new.ready(PATIENCE).await.unwrap();
    drop(old);
    base.until("\"unadvertise\":\"/cmd_vel\"");
    new.publish(&json!({"linear": {"x": 0.25}})).unwrap();
    base.wait("a velocity", |lines| {
        let is_answer = |line: &&String| line.contains("\"cmd_vel\":0.25") || line.contains("unannounced");
        let line = lines.iter().find(is_answer)?;
        assert!(!line.contains("unannounced"), "the new one is not announced");
        Some(())
    });
    base.say("drop");
    base.wait("a third announcement", |lines| {
        let announced = lines.iter().filter(|line| line.contains("\"advertise\""));
        (announced.count() == 3).then_some(())
    });
    new.ready(PATIENCE).await.unwrap();
    new.publish(&json!({"linear": {"x": 0.5}})).unwrap();
    base.until("\"cmd_vel\":0.5");
}

/// What may be a stop is sent wherever the connection stands; that it is heard is said only where rosapi has not said otherwise.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_published_is_sent_whatever_rosapi_says() {
    for (word, key, is_heard) in [
        ("fails", "failed", true),
        ("mute", "unanswered", true),
        ("leave", "", false),
    ] {
        let Some(Scene { peer: base, graph }) = scene().await else {
            return;
        };
        let twist = name("geometry_msgs/msg/Twist");
        let velocity = graph.publisher("/cmd_vel", &twist).await.unwrap();
        velocity.ready(PATIENCE).await.unwrap();
        base.say(word);
        if is_heard {
            // The second question comes when the first one has been answered, or not.
            let asked = format!("\"{key}\":\"/rosapi/subscribers\"");
            base.wait("two looks for listeners", |lines| {
                (lines.iter().filter(|line| line.contains(&asked)).count() >= 2).then_some(())
            });
        } else {
            base.wait("nothing that listens", |_| velocity.check_listener().err());
        }
        let sent = velocity.publish(&json!({"linear": {"x": 0.125}}));
        match is_heard {
            true => sent.unwrap(),
            false => assert!(
                matches!(sent, Err(GraphError::Unheard { .. })),
                "{word}: {sent:?}"
            ),
        }
        base.until("\"cmd_vel\":0.125");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_no_rosbridge_is_it_is_said() {
    let error = Rosbridge::connect("ws://127.0.0.1:1", Library::empty(), Cdr::default())
        .await
        .map(|_| ())
        .unwrap_err();
    assert!(matches!(error, GraphError::Join { .. }), "{error}");
    assert!(error.to_string().starts_with("ws://127.0.0.1:1: "), "{error}");
}
