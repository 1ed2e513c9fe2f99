//! What others in the domain see of us: named endpoints, and no topic with a type that is not its own.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::{each, scene_of};

/// The topics of a robot, and the types that ROS knows them by.
fn topics(kind: &str) -> BTreeMap<&'static str, &'static str> {
    let topics: &[(&str, &str)] = match kind {
        "k1_topics" => &[
            ("rt/cmd_vel", "geometry_msgs::msg::dds_::Twist_"),
            ("rt/head/pan_tilt", "std_msgs::msg::dds_::Float64MultiArray_"),
            (
                "rt/arm/joint_positions",
                "std_msgs::msg::dds_::Float64MultiArray_",
            ),
            ("rt/joint_states", "sensor_msgs::msg::dds_::JointState_"),
        ],
        "k1_rpc" => &[
            ("rt/LocoApiTopicReq", "booster_msgs::msg::dds_::RpcReqMsg_"),
            ("rt/LocoApiTopicResp", "booster_msgs::msg::dds_::RpcRespMsg_"),
            ("rt/joint_ctrl", "booster_interface::msg::dds_::LowCmd_"),
            ("rt/low_state", "booster_interface::msg::dds_::LowState_"),
            ("rt/fall_down", "booster_interface::msg::dds_::FallDownState_"),
        ],
        _ => &[
            ("rt/api/sport/request", "unitree_api::msg::dds_::Request_"),
            ("rt/api/sport/response", "unitree_api::msg::dds_::Response_"),
            ("rt/api/arm/request", "unitree_api::msg::dds_::Request_"),
            ("rt/api/arm/response", "unitree_api::msg::dds_::Response_"),
            ("rt/arm_sdk", "unitree_hg::msg::dds_::LowCmd_"),
            ("rt/lowstate", "unitree_hg::msg::dds_::LowState_"),
            ("rt/dex3/left/cmd", "unitree_hg::msg::dds_::HandCmd_"),
            ("rt/dex3/right/cmd", "unitree_hg::msg::dds_::HandCmd_"),
        ],
    };
    let info = "rmw_dds_common::msg::dds_::ParticipantEntitiesInfo_";
    topics
        .iter()
        .copied()
        .chain([("ros_discovery_info", info)])
        .collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

fn texts(value: &Value) -> BTreeSet<&str> {
    value.as_array().unwrap().iter().map(text).collect()
}

#[test]
fn every_endpoint_is_our_nodes_and_every_topic_has_its_own_type() {
    let rows = [
        ("k1_topics", "humble", 24),
        ("k1_rpc", "humble", 24),
        ("g1", "humble", 24),
        ("g1", "jazzy", 16),
    ];
    each(&rows, |&(kind, distro, bytes)| {
        let Some(scene) = scene_of(kind, "hold", distro) else {
            return;
        };
        scene.robot.say(&format!("graph {bytes}"));
        scene.robot.until("\"graph\"");
        let frames = scene.frames();
        let nodes: Vec<&Value> = frames.iter().filter(|frame| frame["topic"] == "node").collect();
        assert_eq!(nodes.len(), 1, "{kind}: {nodes:?}");
        let node = nodes[0];
        assert_eq!(node["name"], "/ovos_tools_hal", "{kind}");
        // The first twelve bytes of an id are its participant's; Humble fills it up with zeros.
        let prefix = &text(&node["participant"])[..24];
        let ours: Vec<&Value> = frames
            .iter()
            .filter(|frame| frame["topic"] == "endpoint" && text(&frame["gid"]).starts_with(prefix))
            .collect();
        let ids = |role: &str| -> BTreeSet<String> {
            let of = ours.iter().filter(|endpoint| endpoint["role"] == role);
            of.map(|endpoint| format!("{:0<1$}", text(&endpoint["gid"]), 2 * bytes))
                .collect()
        };
        let named = |role: &str| -> BTreeSet<String> {
            texts(&node[format!("{role}s")])
                .into_iter()
                .map(str::to_owned)
                .collect()
        };
        for role in ["reader", "writer"] {
            assert_eq!(named(role), ids(role), "{kind}: the {role}s without a name");
        }
        let seen: BTreeMap<&str, &str> = ours
            .iter()
            .map(|endpoint| (text(&endpoint["name"]), text(&endpoint["type"])))
            .collect();
        assert_eq!(seen, topics(kind), "{kind}");
    });
}
