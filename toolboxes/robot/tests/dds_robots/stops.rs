//! The stop of every robot on a network that ships as a file: what its peer is told, and how soon.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use ovos_toolbox_sdk::testing::Harness;
use robot::robots::Robots;
use serde_json::{Value, json};

use crate::peers::{LOOPBACK, Peer, domain, python};
use crate::ros_base::{now, over_rosbridge};
use crate::{each, frames};

/// The speed ahead that a robot of any kind was told.
fn ahead(frame: &Value) -> Option<f64> {
    let speeds = [
        &frame["twist"],
        &frame["cmd_vel"],
        &frame["stamped"],
        &frame["velocity"][0],
        &frame["body"]["vx"],
        &frame["parameter"]["velocity"][0],
    ];
    speeds.into_iter().find_map(Value::as_f64)
}

/// What a robot is in these tests.
#[derive(Clone, Copy, Debug, PartialEq)]
enum PeerKind {
    Base,
    Rosbridge,
    Vendor,
}

/// The peer of a row, and how it is reached.
fn peer(peer_kind: PeerKind, kind: &str) -> Option<(Peer, Value)> {
    if peer_kind == PeerKind::Rosbridge {
        let (peer, port) = over_rosbridge::base(0, kind)?;
        return Some((peer, over_rosbridge::channels(port, 8000)));
    }
    let domain = domain();
    let script = match peer_kind {
        PeerKind::Vendor => "tests/python/dds_robot.py",
        _ => "../ros-graph/tests/python/base_cyclonedds.py",
    };
    let mut command = Command::new(python()?);
    command
        .arg("-u")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join(script))
        .args([kind, &domain.to_string()])
        .args((peer_kind == PeerKind::Base).then_some("drives"))
        .env("CYCLONEDDS_URI", LOOPBACK);
    let peer = Peer::run(script, command);
    peer.until("ready");
    let ros = json!({"domain": domain, "interfaces": ["127.0.0.1"], "discovery_ms": 8000});
    Some((peer, json!({ "ros": ros })))
}

/// The first that a robot hears after a halt is zero, and it hears nothing else but zeros. The latency is printed: the goal is 20 ms.
///
/// `ROBOT_STOPS=100` makes as many for each robot, one robot after the other, and prints the middle, the 99th of a hundred and the longest.
#[test]
fn a_halt_is_the_last_word() {
    let stops = std::env::var("ROBOT_STOPS").ok();
    let at_a_time = if stops.is_some() { 1 } else { 4 };
    let stops: usize = stops.map_or(1, |stops| stops.parse().unwrap());
    let rows = [
        ("turtlebot3", PeerKind::Base, "twist"),
        ("turtlebot3", PeerKind::Base, "stamped"),
        ("create3", PeerKind::Base, "twist"),
        ("nav2-base", PeerKind::Base, "twist"),
        ("nav2-base", PeerKind::Rosbridge, "twist"),
        ("booster-k1", PeerKind::Vendor, "k1_rpc"),
        ("booster-k1-topics", PeerKind::Vendor, "k1_topics"),
        ("unitree-g1", PeerKind::Vendor, "g1"),
        ("unitree-go2", PeerKind::Vendor, "go2"),
    ];
    let check = |&(file, peer_kind, kind): &(&str, PeerKind, &str)| {
        let Some((peer, channels)) = peer(peer_kind, kind) else {
            return;
        };
        let folder = tempfile::tempdir().unwrap();
        let harness = Harness::open::<Robots>(json!({
            "robots": {"hal": {"kind": file, "channels": channels}}, "data_dir": folder.path(),
        }))
        .unwrap()
        .with_deadline(Duration::from_secs(60));
        let mut latencies: Vec<f64> = (0..stops).map(|_| first_zero(&peer, &harness)).collect();
        latencies.sort_by(f64::total_cmp);
        let at = |share: usize| latencies[(latencies.len() * share).div_ceil(100) - 1];
        println!(
            "{file} {kind} {peer_kind:?}: {stops} halts: the first zero after {:.1} ms in the middle, {:.1} ms the 99th of a hundred, {:.1} ms at most",
            at(50),
            at(99),
            at(100)
        );
    };
    rows.chunks(at_a_time).for_each(|some| each(some, check));
}

/// Has a robot walk and halts it. Returns how long after the halt it heard the first zero, in milliseconds.
fn first_zero(peer: &Peer, harness: &Harness) -> f64 {
    let received = || -> Vec<(f64, f64)> {
        let frames = frames(peer).into_iter();
        let speeds = frames.filter_map(|frame| Some((frame["t"].as_f64()?, ahead(&frame)?)));
        speeds.collect()
    };
    let before = received().len();
    let walk = json!({"direction": "forward", "speed": 0.2, "duration": 30.0});
    let plan = harness.plan("walk", walk).unwrap().unwrap();
    let run = harness
        .start_action("walk", plan.into_iter().next().unwrap(), json!({}))
        .unwrap();
    peer.wait("a velocity", |_| {
        received()
            .get(before..)?
            .last()
            .filter(|(_, speed)| *speed > 0.0)
            .map(drop)
    });
    let since = now();
    harness.cancel(run.id());
    harness.halt(&["all"], false).unwrap();
    let _ = run.wait();
    let zero = peer.wait("three zeros", |_| {
        let received = received();
        let zeros = received
            .iter()
            .rev()
            .take_while(|(_, speed)| *speed == 0.0)
            .count();
        (zeros >= 3).then(|| received[received.len() - zeros].0)
    });
    // What was under way when the halt began may have come after it began, and nothing comes after the first zero.
    let received = received();
    let first = received
        .iter()
        .position(|(at, speed)| *at >= since && *speed == 0.0)
        .unwrap();
    assert!(
        received[first..].iter().all(|(_, speed)| *speed == 0.0),
        "{received:?}"
    );
    (zero - since) * 1000.0
}
