//! What reaches a base whose velocity is said, and in which type.

use ros_graph::error::GraphError;
use ros_graph::velocity::{Speed, Velocity, VelocityConfig};
use serde_json::json;

use crate::{PATIENCE, SHORT, cyclone, rosbridge};

const AHEAD: Speed = Speed {
    forward: 0.2,
    left: 0.0,
    turn: 0.0,
};

fn only(stamped: bool) -> VelocityConfig {
    VelocityConfig {
        stamped: Some(stamped),
        ..VelocityConfig::default()
    }
}

#[tokio::test]
async fn a_velocity_is_of_the_type_that_the_base_hears() {
    for (kind, config, key) in [
        ("twist", VelocityConfig::default(), "twist"),
        ("stamped", VelocityConfig::default(), "stamped"),
        ("both", VelocityConfig::default(), "twist"),
        ("both", only(true), "stamped"),
    ] {
        let Some(scene) = cyclone(kind) else { return };
        let velocity = Velocity::open(&scene.graph, config, PATIENCE).await.unwrap();
        assert_eq!(velocity.is_stamped(), key == "stamped");
        velocity.say(AHEAD).unwrap();
        scene.line(key, &json!(0.2));
        velocity.say(Speed::default()).unwrap();
        scene.line(key, &json!(0.0));
    }
}

#[tokio::test]
async fn zero_is_said_in_every_type_that_is_heard() {
    for (kind, keys) in [
        ("twist", &["twist"][..]),
        ("stamped", &["stamped"]),
        ("both", &["twist", "stamped"]),
    ] {
        let Some(scene) = cyclone(kind) else { return };
        let config = VelocityConfig::default();
        Velocity::shout_zero(&scene.graph, &config, PATIENCE)
            .await
            .unwrap();
        for key in keys {
            scene.line(key, &json!(0.0));
        }
    }
}

#[tokio::test]
async fn a_base_that_does_not_hear_is_not_commanded() {
    for (kind, config, of_other_type) in [
        ("deaf", VelocityConfig::default(), false),
        ("stamped", only(false), true),
    ] {
        let Some(scene) = cyclone(kind) else { return };
        let opened = Velocity::open(&scene.graph, config.clone(), SHORT)
            .await
            .map(drop);
        let shouted = Velocity::shout_zero(&scene.graph, &config, SHORT).await;
        for error in [opened.unwrap_err(), shouted.unwrap_err()] {
            let is_told = match of_other_type {
                true => matches!(error, GraphError::OtherType { .. }),
                false => matches!(error, GraphError::Unheard { .. }),
            };
            assert!(is_told, "{kind}: {error}");
        }
    }
}

/// A rosbridge does not tell who listens, and shows the type of the topic all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_base_that_does_not_hear_is_not_commanded_over_rosbridge() {
    let Some(scene) = rosbridge::scene().await else {
        return;
    };
    let config = VelocityConfig {
        topic: "/deaf".to_owned(),
        ..VelocityConfig::default()
    };
    let opened = Velocity::open(&scene.graph, config.clone(), SHORT)
        .await
        .map(drop);
    let shouted = Velocity::shout_zero(&scene.graph, &config, SHORT).await;
    for error in [opened.unwrap_err(), shouted.unwrap_err()] {
        assert!(matches!(error, GraphError::Unheard { .. }), "{error}");
    }
}
