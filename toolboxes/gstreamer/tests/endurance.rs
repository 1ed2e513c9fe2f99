//! Many pipelines at once, and many one after another, leak nothing.
//!
//! One test in its own process: it counts the threads, descriptors and memory of this process.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on fails"
)]

#[path = "support/rig.rs"]
mod rig;

use rig::Rig;
use serde_json::json;

/// More than the libraries' caches take, less than a leak of one pipeline per cycle.
const MOST_GROWTH_KIB: u64 = 24 * 1024;

/// Threads, and their descriptors, that the pools of tokio and GStreamer may hold; a leak in every tenth cycle is more.
const POOLS: usize = 16;

#[test]
fn twenty_at_once_and_two_hundred_after_each_other_leave_nothing_behind() {
    let rig = Rig::new();
    let pipeline = |n: usize| {
        format!(
            "videotestsrc is-live=true ! video/x-raw,format=I420,width=64,height=48,framerate=15/1 ! queue \
             ! x264enc tune=zerolatency speed-preset=ultrafast ! mpegtsmux ! filesink location={}",
            rig.rec(&format!("{n}.ts")).display()
        )
    };
    let twenty = || {
        let ids: Vec<String> = (0..20).map(|n| rig.start(&pipeline(n))).collect();
        for id in &ids {
            rig.status_until(id, "frames", |status| {
                status["flows"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .any(|flow| flow["place"] == "sink" && flow["bytes"].as_u64() > Some(0))
            });
        }
        let running = rig.ok("get_running_instances", json!({}));
        assert_eq!(running["instances"].as_array().unwrap().len(), 20);
        for id in &ids {
            let stopped = rig.ok("stop_pipeline", json!({"instance_id": id}));
            assert_eq!(stopped["files_finished"], true, "{id}");
        }
        for n in 0..20 {
            assert!(std::fs::metadata(rig.rec(&format!("{n}.ts"))).unwrap().len() > 0);
        }
    };
    let cycle = || {
        let id =
            rig.start("videotestsrc ! video/x-raw,width=64,height=48 ! queue ! jpegenc ! fakesink sync=true");
        rig.ok("stop_pipeline", json!({"instance_id": id, "force": true}));
    };
    twenty();
    for _ in 0..20 {
        cycle();
    }
    let before = Footprint::now();
    for _ in 0..200 {
        cycle();
    }
    let after = Footprint::now();
    println!("before {before:?}, after {after:?}");
    assert!(after.threads <= before.threads + POOLS, "{before:?} {after:?}");
    assert!(
        after.descriptors <= before.descriptors + POOLS,
        "{before:?} {after:?}"
    );
    assert!(
        after.resident_kib <= before.resident_kib + MOST_GROWTH_KIB,
        "{before:?} {after:?}"
    );
}

#[derive(Debug)]
struct Footprint {
    threads: usize,
    descriptors: usize,
    resident_kib: u64,
}

impl Footprint {
    fn now() -> Self {
        let count = |folder| std::fs::read_dir(folder).unwrap().count();
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let resident = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .unwrap();
        Self {
            threads: count("/proc/self/task"),
            descriptors: count("/proc/self/fd"),
            resident_kib: resident.split_whitespace().next().unwrap().parse().unwrap(),
        }
    }
}
