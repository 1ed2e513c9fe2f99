//! What only looks: lists, descriptions, messages, pictures, parameters.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::{cyclone, rosbridge};

#[test]
fn each_kind_of_entity_is_listed_and_described() {
    let all = [("cyclone", cyclone("twist", "")), ("rosbridge", rosbridge())];
    for (name, scene) in all.into_iter().filter_map(|(name, scene)| Some((name, scene?))) {
        let list = scene.call("ros_list", json!({})).unwrap();
        let all = list.to_string();
        for expected in ["/odom", "/cmd_vel", "/motor_power", "/navigate_to_pose"] {
            assert!(all.contains(expected), "{name}: {expected} in {list:#}");
        }
        assert_eq!(list["count"]["actions"], 1, "{name}");
        for (asked, kind, text) in [
            ("/odom", "topic", "geometry_msgs/msg/PoseWithCovariance pose"),
            ("odom", "topic", "string child_frame_id"),
            ("nav_msgs/msg/Odometry", "type", "float64 x"),
            ("geometry_msgs/Twist", "type", "geometry_msgs/msg/Vector3 linear"),
            ("std_srvs/srv/SetBool", "type", "bool success"),
            (
                "nav2_msgs/action/NavigateToPose",
                "type",
                "float32 distance_remaining",
            ),
        ] {
            let described = scene.call("ros_describe", json!({"name": asked})).unwrap();
            assert_eq!(described["kind"], kind, "{name}: {asked}");
            let definition = described["definition"].as_str().unwrap_or_default();
            assert!(definition.contains(text), "{name}: {asked} is {described:#}");
        }
        for (asked, expected) in [
            ("/nothing", "no topic, service or action /nothing in the graph"),
            ("a b", "is not a ROS name"),
        ] {
            let error = scene.call("ros_describe", json!({"name": asked})).unwrap_err();
            assert!(error.message.contains(expected), "{name}: {error}");
        }
        // A type that nothing knows is said, not guessed.
        let described = scene
            .call("ros_describe", json!({"name": "own_msgs/msg/Odd"}))
            .unwrap();
        assert!(
            described["note"].as_str().unwrap().contains("own_msgs/msg/Odd"),
            "{name}: {described:#}"
        );
    }
}

#[test]
fn topics_are_read_once_for_a_time_and_in_part() {
    let all = [("cyclone", cyclone("twist", "")), ("rosbridge", rosbridge())];
    for (name, scene) in all.into_iter().filter_map(|(name, scene)| Some((name, scene?))) {
        let one = scene.call("ros_read", json!({"topic": "/odom"})).unwrap();
        assert_eq!(
            (&one["type"], one["messages"].as_array().unwrap().len()),
            (&json!("nav_msgs/msg/Odometry"), 1)
        );
        let covariance = &one["messages"][0]["message"]["pose"]["covariance"];
        assert_eq!(covariance["length"], 36, "{name}: {covariance}");
        let some = scene
            .call("ros_read", json!({"topic": "odom", "seconds": 1.5, "count": 3, "fields": ["pose.pose.position.x", "child_frame_id"]}))
            .unwrap();
        let x = |at: usize| {
            some["messages"][at]["message"]["pose.pose.position.x"]
                .as_f64()
                .unwrap()
        };
        assert!(
            x(0) < x(1) && x(1) < x(2),
            "{name}: the newest is the last: {some:#}"
        );
        assert!(
            some["received"].as_u64().unwrap() >= 5 && some["rate_hz"].as_f64().unwrap() > 3.0,
            "{name}: {some:#}"
        );
        let scan = scene
            .call("ros_read", json!({"topic": "/scan", "fields": ["ranges"]}))
            .unwrap();
        assert!(
            scan["messages"][0]["message"]["ranges"].is_array(),
            "{name}: {scan:#}"
        );
        for (args, expected) in [
            (
                json!({"topic": "/odom", "fields": ["speed"]}),
                "the message has no field speed",
            ),
            (
                json!({"topic": "/odom", "type": "std_msgs/msg/String"}),
                "is nav_msgs/msg/Odometry in the graph",
            ),
            (
                json!({"topic": "/odom", "type": "std_srvs/srv/SetBool"}),
                "is not a type of this kind",
            ),
            (json!({"topic": "/nothing"}), "no topic /nothing in the graph"),
            (
                json!({"topic": "/navigate_to_pose/_action/feedback"}),
                "is a part of an action",
            ),
        ] {
            let error = scene.call("ros_read", args).unwrap_err();
            assert!(error.message.contains(expected), "{name}: {error}");
        }
    }
    // What is there and says nothing is not the same as what is not there.
    let Some(scene) = rosbridge() else { return };
    let error = scene.call("ros_read", json!({"topic": "/deaf"})).unwrap_err();
    assert!(error.message.contains("nothing came on /deaf"), "{error}");
}

#[test]
fn a_large_graph_is_within_what_a_model_reads_and_wrong_types_are_said() {
    let Some(scene) = cyclone("twist", "busy") else {
        return;
    };
    let list = scene.call("ros_list", json!({})).unwrap();
    let size = list.to_string().len();
    println!("300 topics and what else there is in {size} bytes");
    assert!(size <= 16_000, "{size} bytes");
    let shown: usize = list["topics"]
        .as_object()
        .unwrap()
        .values()
        .map(|names| names.as_array().unwrap().len())
        .sum();
    assert!(
        list["count"]["topics"].as_u64().unwrap() >= 305,
        "{}",
        list["count"]
    );
    assert_eq!(
        json!(shown),
        list["count"]["topics"],
        "all are shown: {}",
        list["left_out"]
    );
    assert_eq!(list["nodes"], json!(["/base"]));

    let params = scene.call("ros_params", json!({"node": "base"})).unwrap();
    let expected = json!({"use_sim_time": false, "speed.max": 0.5, "frames": ["map", "odom"]});
    assert_eq!(params["parameters"], expected);
    let params = scene
        .call("ros_params", json!({"node": "/base", "filter": "speed"}))
        .unwrap();
    assert_eq!(params["parameters"], json!({"speed.max": 0.5}));
    let error = scene.call("ros_params", json!({"node": "/other"})).unwrap_err();
    assert!(error.message.contains("known: /base"), "{error}");

    for (topic, expected) in [
        ("/odd", "own_msgs/msg/Odd"),
        ("/mixed", "std_msgs/msg/Int64 and std_msgs/msg/String"),
    ] {
        let error = scene.call("ros_read", json!({"topic": topic})).unwrap_err();
        assert!(error.message.contains(expected), "{error}");
    }
    // The owner's folder knows the first, and the caller says which the second is.
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("own_msgs/msg")).unwrap();
    std::fs::write(folder.path().join("own_msgs/msg/Odd.msg"), "int32 value\n").unwrap();
    let mut config = scene.config.clone();
    config["types"] = json!([folder.path()]);
    let ros = ovos_toolbox_sdk::testing::Harness::open::<ros::Ros>(config).unwrap();
    let read = |args| ros.call("ros_read", args).unwrap()["messages"][0]["message"].clone();
    assert_eq!(read(json!({"topic": "/odd"})), json!({"value": 1}));
    assert_eq!(
        read(json!({"topic": "/mixed", "type": "std_msgs/msg/Int64"})),
        json!({"data": 1})
    );
}

#[test]
fn an_address_that_this_machine_has_not_is_named() {
    // Reserved for documentation: no machine has it.
    let config = json!({"domain": 7, "interfaces": ["127.0.0.1", "203.0.113.77"]});
    let ros = ovos_toolbox_sdk::testing::Harness::open::<ros::Ros>(config.clone()).unwrap();
    let expected = "this machine has no address 203.0.113.77, which ros.interfaces names";
    let error = ros.call("ros_list", json!({})).unwrap_err().to_string();
    assert!(error.contains(expected), "{error}");
    let unheard = ros.safe_stop(config).unwrap_err().to_string();
    assert!(unheard.contains(expected), "{unheard}");
}

fn file(scene: &crate::Scene, content: &[ovos_toolbox_sdk::wire::Content]) -> Vec<u8> {
    let [only] = content else { panic!("{content:?}") };
    let only = serde_json::to_value(only).unwrap();
    assert_eq!(only["mime_type"], "image/jpeg");
    let path = Path::new(scene._folder.path()).join(only["path"].as_str().unwrap());
    std::fs::read(path).unwrap()
}

#[test]
fn a_camera_is_one_small_jpeg_and_nothing_is_subscribed_while_nothing_looks() {
    let Some(scene) = cyclone("twist", "busy") else {
        return;
    };
    for (topic, size, original) in [
        ("/camera/image_raw", [1024, 576], [1920, 1080]),
        ("camera/depth", [8, 8], [8, 8]),
    ] {
        // The peer takes a second and more to write a picture of 6 MB, on a busy machine longer than one is waited for.
        let outcome = scene.peer.wait("a picture", |_| {
            let run = scene.ros.start("ros_image", json!({"topic": topic})).unwrap();
            let outcome = run.wait();
            let silent = outcome
                .result()
                .is_err_and(|error| error.message.contains("nothing came on"));
            (!silent).then_some(outcome)
        });
        let output = outcome.result().unwrap();
        assert_eq!(
            [&output["width"], &output["height"]],
            [&json!(size[0]), &json!(size[1])],
            "{output:#}"
        );
        assert_eq!(
            [&output["original_width"], &output["original_height"]],
            [&json!(original[0]), &json!(original[1])]
        );
        assert_eq!(output["frame"], "camera");
        let jpeg = file(&scene, &outcome.content());
        let picture = image::load_from_memory_with_format(&jpeg, image::ImageFormat::Jpeg).unwrap();
        assert_eq!([picture.width(), picture.height()], size);
        let name = json!(topic.trim_start_matches('/'));
        scene.until("unsubscribed", |said| said.contains(&name));
    }
    let error = scene.call("ros_image", json!({"topic": "/odom"})).unwrap_err();
    assert!(
        error
            .message
            .contains("/odom is nav_msgs/msg/Odometry, expected sensor_msgs/msg/Image"),
        "{error}"
    );
    // Over rosbridge a picture comes that is none.
    let Some(scene) = rosbridge() else { return };
    let error = scene.call("ros_image", json!({"topic": "/picture"})).unwrap_err();
    assert!(error.message.contains("(jpeg) that cannot be read"), "{error}");
    let picture = json!("/picture");
    scene.until("unsubscribe", |said| said.contains(&picture));
}

/// What this process has in memory, in KiB.
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_fast_topic_takes_no_memory() {
    let Some(scene) = cyclone("twist", "busy") else {
        return;
    };
    let read = || -> Value {
        scene
            .call("ros_read", json!({"topic": "/fast", "seconds": 2, "count": 20}))
            .unwrap()
    };
    // The first reads make what stays: threads, buffers, the graph.
    read();
    let (before, mut received, mut rate) = (memory(), 0, 0.0_f64);
    while received < 40_000 {
        let answer = read();
        assert_eq!(answer["messages"].as_array().unwrap().len(), 20);
        received += answer["received"].as_u64().unwrap();
        rate = rate.max(answer["rate_hz"].as_f64().unwrap());
    }
    let grown = memory().saturating_sub(before);
    println!("{received} messages, {rate} a second at most: {grown} KiB more than before");
    assert!(grown < 16 << 10, "{grown} KiB more after {received} messages");
}

#[test]
fn no_more_topics_are_read_at_the_same_time_than_are_allowed() {
    let Some(scene) = cyclone("twist", "") else { return };
    scene.call("ros_list", json!({})).unwrap();
    let args = || json!({"topic": "/odom", "seconds": 20});
    // One more than are allowed: whichever comes last is refused.
    let reads: Vec<_> = (0..9)
        .map(|_| scene.ros.start("ros_read", args()).unwrap())
        .collect();
    let busy = scene.peer.wait("a refusal", |_| {
        let refused =
            |read: &ovos_toolbox_sdk::testing::Run<'_>| read.wait_for(Duration::ZERO)?.result().err();
        reads.iter().find_map(refused)
    });
    assert_eq!(busy.kind, "BusyError", "{busy}");
    // A read that is cancelled gives its place back.
    for read in &reads {
        read.cancel();
        assert!(read.wait().result().is_err());
    }
    scene.call("ros_read", json!({"topic": "/odom"})).unwrap();
}
