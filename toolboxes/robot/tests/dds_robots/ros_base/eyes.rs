//! What a camera in the robot's graph sees.

use ovos_toolbox_sdk::testing::Harness;
use robot::robots::Robots;
use serde_json::json;

use super::{base_that, channels, domain};

const SEEING: &str = r#"
name = "seeing"
description = "A base with cameras"
driver = "ros"
[parts]
base = { kind = "differential", max_linear = 0.3, max_lateral = 0, max_angular = 1.5, usual_linear = 0.2 }
[cameras.front]
topic = "/camera/image_raw"
[cameras.depth]
topic = "/camera/depth"
[cameras.wrong]
topic = "/odom"
"#;

#[test]
fn a_robot_looks_through_its_cameras_and_listens_to_none_meanwhile() {
    let domain = domain();
    let Some(base) = base_that("twist", domain, "busy") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("seeing.toml"), SEEING).unwrap();
    let config = json!({
        "robots": {"hal": {"kind": "seeing", "channels": {"ros": channels(domain, 8000)["ros"]}}},
        "robots_dir": folder.path(), "data_dir": folder.path(),
    });
    let content = tempfile::tempdir().unwrap();
    let robot = Harness::open::<Robots>(config)
        .unwrap()
        .with_content_folder(content.path());
    for (camera, topic, size) in [
        ("front", "camera/image_raw", [1024, 576]),
        ("depth", "camera/depth", [8, 8]),
    ] {
        // The peer takes a second and more to write a picture of 6 MB, on a busy machine longer than one is waited for.
        let (seen, shown) = base.wait("a picture", |_| {
            let plan = robot.plan("look", json!({"camera": camera})).unwrap().unwrap();
            let run = robot
                .start_action("look", plan.into_iter().next().unwrap(), json!({}))
                .unwrap();
            let outcome = run.wait();
            Some((outcome.result().ok()?, outcome.content()))
        });
        let seen = &seen["data"];
        assert_eq!(
            [&seen["width"], &seen["height"]],
            [&json!(size[0]), &json!(size[1])],
            "{seen:#}"
        );
        assert_eq!(
            (&seen["frame"], &seen["camera"]),
            (&json!("camera"), &json!(camera)),
            "{seen:#}"
        );
        assert!(seen["age_s"].as_f64().is_some_and(|age| age < 5.0), "{seen:#}");
        let [only] = &shown[..] else { panic!("{shown:?}") };
        let only = serde_json::to_value(only).unwrap();
        assert_eq!(only["mime_type"], "image/jpeg");
        let jpeg = std::fs::read(content.path().join(only["path"].as_str().unwrap())).unwrap();
        assert!(jpeg.starts_with(&[0xFF, 0xD8]), "no JPEG");
        let name = json!(topic);
        base.wait("unsubscribed", |lines| {
            let ended =
                |line: &&String| line.contains("unsubscribed") && line.contains(name.as_str().unwrap());
            lines.iter().rev().find(ended).map(drop)
        });
    }
    let wrong = robot.invoke("look", json!({"camera": "wrong"})).unwrap();
    assert_eq!(wrong["success"], false, "{wrong:#}");
    assert!(
        wrong["message"]
            .as_str()
            .unwrap()
            .contains("nav_msgs/msg/Odometry"),
        "{wrong:#}"
    );
}

/// A camera's topic below `/seen`, and the size of its picture, or what is wrong with it.
const COMPRESSED: [(&str, Result<[u32; 2], &str>); 10] = [
    ("jpeg", Ok([16, 8])),
    ("grey", Ok([16, 8])),
    ("camera", Ok([16, 8])),
    // Larger than what is shown.
    ("png", Ok([1024, 2])),
    ("depth", Ok([6, 4])),
    // The bytes say what it is.
    ("mislabelled", Ok([16, 8])),
    (
        "cut",
        Err("a compressed picture (rgb8; jpeg compressed bgr8) that cannot be read"),
    ),
    (
        "text",
        Err("a compressed picture (rgb8; jpeg compressed bgr8) that cannot be read"),
    ),
    ("none", Err("a compressed picture () that cannot be read")),
    ("video", Err("a compressed picture (h264) that cannot be read")),
];

#[test]
fn compressed_pictures_are_seen_and_broken_ones_are_named() {
    let domain = domain();
    let Some(_base) = base_that("twist", domain, "sees") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let cameras: String = COMPRESSED
        .iter()
        .map(|(name, _)| format!("[cameras.{name}]\ntopic = \"/seen/{name}\"\n"))
        .collect();
    let file = SEEING.split("[cameras").next().unwrap().to_owned() + &cameras;
    std::fs::write(folder.path().join("seeing.toml"), file).unwrap();
    let robot = Harness::open::<Robots>(json!({
        "robots": {"hal": {"kind": "seeing", "channels": {"ros": channels(domain, 8000)["ros"]}}},
        "robots_dir": folder.path(), "data_dir": folder.path(),
    }))
    .unwrap()
    .with_content_folder(folder.path());
    for (camera, expected) in COMPRESSED {
        let seen = robot.invoke("look", json!({"camera": camera})).unwrap();
        match expected {
            Ok(size) => assert_eq!(
                [
                    &seen["data"]["width"],
                    &seen["data"]["height"],
                    &seen["data"]["frame"]
                ],
                [&json!(size[0]), &json!(size[1]), &json!("lens")],
                "{camera}: {seen:#}"
            ),
            Err(wrong) => assert!(
                seen["success"] == false
                    && seen["message"]
                        .as_str()
                        .is_some_and(|message| message.contains(wrong)),
                "{camera}: {seen:#}"
            ),
        }
    }
}
