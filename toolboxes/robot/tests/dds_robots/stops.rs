//! The stop of every robot on a network that ships as a file: what its peer is told, and how soon.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use ovos_toolbox_sdk::testing::Harness;
use robot::robots::Robots;
use serde_json::{Value, json};

use crate::peers::{LOOPBACK, Peer, domain, python};
use crate::ros_base::now;
use crate::{each, frames};

/// The speed ahead that a robot of any kind was told.
fn ahead(frame: &Value) -> Option<f64> {
    let speeds = [
        &frame["twist"],
        &frame["stamped"],
        &frame["velocity"][0],
        &frame["body"]["vx"],
        &frame["parameter"]["velocity"][0],
    ];
    speeds.into_iter().find_map(Value::as_f64)
}

/// The first that a robot hears after a halt is zero, and it hears nothing else but zeros. The latency is printed: the goal is 20 ms.
#[test]
fn a_halt_is_the_last_word() {
    let base = "../ros-graph/tests/python/base_cyclonedds.py";
    let robot = "tests/python/dds_robot.py";
    let rows = [
        ("turtlebot3", base, "twist"),
        ("turtlebot3", base, "stamped"),
        ("create3", base, "twist"),
        ("nav2-base", base, "twist"),
        ("booster-k1", robot, "k1_rpc"),
        ("booster-k1-topics", robot, "k1_topics"),
        ("unitree-g1", robot, "g1"),
        ("unitree-go2", robot, "go2"),
    ];
    let check = |&(file, script, kind): &(&str, &str, &str)| {
        let Some(python) = python() else { return };
        let domain = domain();
        let mut command = Command::new(python);
        command
            .arg("-u")
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join(script))
            .args([kind, &domain.to_string()])
            .args((script == base).then_some("drives"))
            .env("CYCLONEDDS_URI", LOOPBACK);
        let peer = Peer::run(script, command);
        peer.until("ready");
        let folder = tempfile::tempdir().unwrap();
        let ros = json!({"domain": domain, "interfaces": ["127.0.0.1"], "discovery_ms": 8000});
        let harness = Harness::open::<Robots>(json!({
            "robots": {"hal": {"kind": file, "channels": {"ros": ros}}}, "data_dir": folder.path(),
        }))
        .unwrap()
        .with_deadline(Duration::from_secs(60));
        let walk = json!({"direction": "forward", "speed": 0.2, "duration": 30.0});
        let plan = harness.plan("walk", walk).unwrap().unwrap();
        let run = harness
            .start_action("walk", plan.into_iter().next().unwrap(), json!({}))
            .unwrap();
        let received = || -> Vec<(f64, f64)> {
            let frames = frames(&peer).into_iter();
            let speeds = frames.filter_map(|frame| Some((frame["t"].as_f64()?, ahead(&frame)?)));
            speeds.collect()
        };
        peer.wait("a velocity", |_| {
            received().last().filter(|(_, speed)| *speed > 0.0).map(drop)
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
        println!(
            "{file} {kind}: the first zero {:.1} ms after the halt",
            (zero - since) * 1000.0
        );
        // What was under way when the halt began may have come after it began, and nothing comes after the first zero.
        let received = received();
        let first = received
            .iter()
            .position(|(at, speed)| *at >= since && *speed == 0.0)
            .unwrap();
        assert!(
            received[first..].iter().all(|(_, speed)| *speed == 0.0),
            "{file} {kind}: {received:?}"
        );
    };
    rows.chunks(4).for_each(|some| each(some, check));
}
