use ovos_toolbox_sdk::prelude::*;
use ros_graph::definition::TypeName;
use ros_graph::library::Library;
use ros_graph::shape::Shape;
use ros_graph::shipped::Distribution;
use std::sync::Arc;

use super::stamp;
use crate::config::{Allow, Config, PublishRule};

fn shape(of: &str) -> Arc<Shape> {
    let of: TypeName = of.parse().unwrap();
    Library::shipped(Distribution::Kilted)
        .unwrap()
        .shape(&of)
        .unwrap()
}

fn rule(written: Value) -> PublishRule {
    serde_json::from_value(written).unwrap()
}

fn allow(written: Value) -> Result<Allow, ToolError> {
    let config: Config = serde_json::from_value(json!({"allow": written})).unwrap();
    Ok(config.checked()?.allow)
}

#[test]
fn what_is_not_listed_is_refused_with_the_key_that_allows_it() {
    let all = json!({"publish": {"cmd_vel": {}}, "call": ["motor_power"], "goal": {"/dock": {}}});
    for (written, name, allowed) in [
        (json!({}), "/cmd_vel", [false; 3]),
        (all.clone(), "/cmd_vel", [true, false, false]),
        (all.clone(), "cmd_vel", [true, false, false]),
        (all.clone(), "/motor_power", [false, true, false]),
        (all.clone(), "dock", [false, false, true]),
        (all.clone(), "/tb3/cmd_vel", [false; 3]),
        (all.clone(), "/CMD_VEL", [false; 3]),
        (all.clone(), "/cmd_vel/", [false; 3]),
        (all.clone(), "/dock/_action/send_goal", [false; 3]),
        (all, "", [false; 3]),
    ] {
        let allow = allow(written).unwrap();
        let asked = [
            allow.publish(name).map(|_| ()),
            allow.call(name).map(|_| ()),
            allow.goal(name).map(|_| ()),
        ];
        for ((asked, allowed), key) in asked.into_iter().zip(allowed).zip(["publish", "call", "goal"]) {
            assert_eq!(asked.is_ok(), allowed, "{key} {name}");
            if let Err(error) = asked.as_ref().map_err(|error| error.message())
                && !error.contains("not a ROS name")
                && !error.contains("part of an action")
            {
                assert!(error.contains(&format!(".ros.allow.{key}: ")), "{error}");
            }
        }
    }
}

#[test]
fn a_section_that_makes_no_sense_is_refused() {
    for (written, expected) in [
        (json!({"publish": {"/cmd vel": {}}}), "is not a ROS name"),
        (
            json!({"publish": {"/cmd_vel": {"linear": -1.0}}}),
            "ros.allow.publish./cmd_vel.linear is -1, expected 0 to 100",
        ),
        (
            json!({"publish": {"/cmd_vel": {"seconds": 1e9}}}),
            "expected 0 to 600",
        ),
        (
            json!({"publish": {"/a": {"limits": {"data": -2.0}}}}),
            "ros.allow.publish./a.limits.data is -2, expected 0 or more",
        ),
        (
            json!({"publish": {"/cmd_vel": {"linear": 0.1}, "cmd_vel": {"linear": 1.0}}}),
            "ros.allow.publish has /cmd_vel twice, as \"cmd_vel\" and as \"/cmd_vel\": keep one",
        ),
        (
            json!({"goal": {"/dock": {}, "dock": {"seconds": 9.0}}}),
            "ros.allow.goal has /dock twice",
        ),
        (
            json!({"call": ["/a/_action/cancel_goal"]}),
            "is a part of an action",
        ),
        (json!({"goal": {"/a": {"seconds": 4000.0}}}), "expected 0 to 3600"),
    ] {
        let error = allow(written).unwrap_err();
        assert!(error.message().contains(expected), "{error}");
    }
}

#[test]
fn velocities_are_within_limits_wherever_they_lie() {
    let twist = "geometry_msgs/msg/Twist";
    let stamped = "geometry_msgs/msg/TwistStamped";
    let with_covariance = "geometry_msgs/msg/TwistWithCovarianceStamped";
    for (of, message, refused) in [
        (twist, json!({}), None),
        (
            twist,
            json!({"linear": {"x": 0.2, "y": -0.2}, "angular": {"z": 0.5}}),
            None,
        ),
        (
            twist,
            json!({"linear": {"x": 0.21}}),
            Some("linear.x is 0.21, expected -0.2 to 0.2 m/s"),
        ),
        (twist, json!({"linear": {"y": -1}}), Some("linear.y is -1")),
        (
            twist,
            json!({"angular": {"z": 0.6}}),
            Some("angular.z is 0.6, expected -0.5 to 0.5 rad/s"),
        ),
        (
            twist,
            json!({"linear": {"x": "NaN"}}),
            Some("linear.x is \"NaN\""),
        ),
        (twist, json!({"linear": {"x": "Infinity"}}), Some("linear.x is")),
        (twist, json!({"linear": {"x": "0.1"}}), Some("linear.x is")),
        (stamped, json!({"twist": {"linear": {"x": 0.1}}}), None),
        (
            stamped,
            json!({"twist": {"linear": {"x": 1}}}),
            Some("twist.linear.x is 1"),
        ),
        (
            with_covariance,
            json!({"twist": {"twist": {"angular": {"x": 9}}}}),
            Some("twist.twist.angular.x is 9"),
        ),
    ] {
        let checked = rule(json!({})).check("/cmd_vel", &shape(of), &message);
        match (checked, refused) {
            // A velocity ends with zero.
            (Ok(checked), None) => assert_eq!(checked.end, Some(json!({})), "{of} {message}"),
            (Err(error), Some(refused)) => {
                assert!(error.message().contains(refused), "{error}");
                assert!(
                    error.message().contains("(ros.allow.publish./cmd_vel."),
                    "{error}"
                );
            }
            (checked, _) => panic!("{of} {message}: {checked:?}"),
        }
    }
}

#[test]
fn what_has_no_end_of_its_own_needs_one() {
    let number = "std_msgs/msg/Float64";
    for (of, written, message, expected) in [
        (
            number,
            json!({}),
            json!({"data": 1.0}),
            Err("the message that ends a std_msgs/msg/Float64 on /a is not known"),
        ),
        (number, json!({"end": "nothing"}), json!({"data": 1.0}), Ok(None)),
        (
            number,
            json!({"end": {"data": 0.0}}),
            json!({"data": 1.0}),
            Ok(Some(json!({"data": 0.0}))),
        ),
        (
            number,
            json!({"end": "nothing", "limits": {"data": 1.0}}),
            json!({"data": 1.5}),
            Err("data is 1.5, expected -1 to 1"),
        ),
        (
            number,
            json!({"end": "nothing", "limits": {"speed": 1.0}}),
            json!({}),
            Err("has no such field"),
        ),
        ("std_msgs/msg/Empty", json!({}), json!({}), Ok(None)),
        // No rule takes the zero from a velocity.
        (
            "geometry_msgs/msg/Twist",
            json!({"end": "nothing"}),
            json!({}),
            Ok(Some(json!({}))),
        ),
        (
            "geometry_msgs/msg/Twist",
            json!({"end": {"linear": {"x": 9}}}),
            json!({}),
            Ok(Some(json!({}))),
        ),
        (
            "trajectory_msgs/msg/JointTrajectory",
            json!({"end": "nothing", "limits": {"points.velocities": 0.5}}),
            json!({"points": [{"velocities": [0.1, 0.7]}]}),
            Err("points.velocities is 0.7"),
        ),
    ] {
        match (rule(written.clone()).check("/a", &shape(of), &message), expected) {
            (Ok(checked), Ok(end)) => assert_eq!(checked.end, end, "{of} {written}"),
            (Err(error), Err(expected)) => assert!(error.message().contains(expected), "{error}"),
            (checked, _) => panic!("{of} {written}: {checked:?}"),
        }
    }
}

#[test]
fn a_header_without_a_time_gets_that_of_now() {
    let stamped = shape("geometry_msgs/msg/TwistStamped");
    let given = json!({"header": {"frame_id": "base", "stamp": {"sec": 5}}});
    assert_eq!(stamp(&stamped, &given), given);
    for message in [json!({}), json!({"header": {"frame_id": "base"}})] {
        let stamped_message = stamp(&stamped, &message);
        assert!(
            stamped_message["header"]["stamp"]["sec"].as_u64().unwrap() > 1_700_000_000,
            "{stamped_message}"
        );
        assert_eq!(
            stamped_message["header"]["frame_id"],
            message["header"]["frame_id"]
        );
    }
    assert_eq!(stamp(&shape("geometry_msgs/msg/Twist"), &json!({})), json!({}));
}
