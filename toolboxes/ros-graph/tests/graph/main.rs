//! Types, bytes and both carriers, against the published packages: rosbags, Cyclone DDS, ROS 2's own wheels (Fast DDS), roslib.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a failed test panics and prints"
)]

#[allow(dead_code, reason = "each test program uses its part")]
#[path = "../../../robot/tests/support/peers.rs"]
mod peers;

mod carriers;
mod codec;
mod cyclone;
mod python;
mod rclpy;
mod readers;
mod rosbridge;
mod velocity;

use std::process::Command;
use std::time::Duration;

use peers::Peer;
use ros_graph::cdr::Cdr;
use ros_graph::dds::{Dds, DdsConfig};
use ros_graph::definition::TypeName;
use ros_graph::library::Library;
use ros_graph::shipped::Distribution;
use serde_json::Value;

pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
/// What does not come within this time does not come.
pub(crate) const SHORT: Duration = Duration::from_millis(600);

/// A peer, and the graph that it is in.
pub(crate) struct Scene<G = Dds> {
    pub(crate) peer: Peer,
    pub(crate) graph: G,
}

pub(crate) fn cyclone(kind: &str) -> Option<Scene> {
    cyclone_that(kind, None)
}

/// A base that does something besides.
pub(crate) fn cyclone_that(kind: &str, does: Option<&str>) -> Option<Scene> {
    let domain = peers::domain();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/base_cyclonedds.py");
    let mut command = Command::new(python::cyclonedds()?);
    command
        .args(["-u", script, kind, &domain.to_string()])
        .args(does)
        .env("CYCLONEDDS_URI", peers::LOOPBACK);
    let library = Library::shipped(Distribution::Humble).unwrap();
    Some(scene(Peer::run("base_cyclonedds.py", command), domain, library))
}

/// With the definitions of test_msgs, or without: they are not shipped.
pub(crate) fn rclpy(knows_test_msgs: bool) -> Option<Scene> {
    let domain = peers::domain();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/base_rclpy.py");
    let mut command = Command::new(python::ros()?);
    command
        .args(["-u", script])
        .env("ROS_DOMAIN_ID", domain.to_string())
        .env("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
        .env("RMW_IMPLEMENTATION", "rmw_fastrtps_cpp")
        .env("FASTDDS_BUILTIN_TRANSPORTS", "UDPv4")
        .env("ROS_HOME", std::env::temp_dir());
    let peer = Peer::run("base_rclpy.py", command);
    let mut library = Library::shipped(Distribution::Kilted).unwrap();
    if knows_test_msgs {
        let share = python::ros()?.ancestors().nth(2).unwrap().join("share");
        library.add_folder(&share.join("test_msgs")).unwrap();
    }
    Some(scene(peer, domain, library))
}

fn scene(peer: Peer, domain: u16, library: Library) -> Scene {
    peer.until("ready");
    let config = DdsConfig {
        domain,
        interfaces: vec!["127.0.0.1".parse().unwrap()],
    };
    Scene {
        peer,
        graph: Dds::join(&config, library, Cdr::default()).unwrap(),
    }
}

impl<G> Scene<G> {
    /// The first line of the peer that has the key, and where it says `value`.
    pub(crate) fn line(&self, key: &str, value: &Value) -> Value {
        self.peer.wait(&format!("{key} {value}"), |lines| {
            let frames = lines
                .iter()
                .filter_map(|line| serde_json::from_str::<Value>(line).ok());
            let mut frames = frames.filter(|frame| frame.get(key).is_some());
            frames.find(|frame| value.is_null() || frame[key] == *value)
        })
    }

    /// How many lines of the peer have the key.
    pub(crate) fn count(&self, key: &str) -> usize {
        let key = format!("\"{key}\"");
        self.peer
            .lines()
            .iter()
            .filter(|line| line.contains(&key))
            .count()
    }
}

pub(crate) fn name(text: &str) -> TypeName {
    text.parse().unwrap()
}
