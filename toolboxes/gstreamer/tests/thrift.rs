//! Validation leaks no memory and no file descriptors. In its own process, so that nothing else grows.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed test panics and prints"
)]

use gstreamer_toolbox::Gstreamer;
use ovos_toolbox_sdk::prelude::*;
use ovos_toolbox_sdk::testing::{self, Harness};

const ROUNDS: usize = 150;

/// Memory that allocators may keep after all rounds; a leak of one pipeline per round is more.
const SLACK_KB: u64 = 5_000;

/// The judge: the only process that this one has started.
fn judge() -> String {
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    let children =
        threads.map(|thread| std::fs::read_to_string(thread.unwrap().path().join("children")).unwrap());
    let children = children.collect::<String>();
    let mut children = children.split_whitespace();
    let judge = children.next().expect("it sits").to_owned();
    assert_eq!(children.next(), None, "one process judges");
    judge
}

fn resident_kb() -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", judge())).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

fn count(folder: &str) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

#[test]
fn checking_pipelines_leaves_nothing_behind() {
    testing::role_host(env!("CARGO_BIN_EXE_gstreamer-role"));
    let state = tempfile::tempdir().unwrap();
    let config = json!({"state_dir": state.path(), "sysroot": state.path()});
    let toolbox = Harness::open::<Gstreamer>(config).unwrap();
    let pipelines = [
        "videotestsrc ! video/x-raw,width=640,height=360,framerate=30/1 ! x264enc ! h264parse ! tee name=t \
         t. ! queue ! mpegtsmux ! fakesink t. ! queue ! fakesink",
        "videotestsrc ! nosuchelement ! fakesink",
        "videotestsrc patern=ball ! fakesink",
        "audiotestsrc ! queue ! x264enc ! fakesink",
        "videotestsrc ! x264enc ! h264parse ! tee name=t t. ! queue ! mpegtsmux ! fakesink t. ! queue ! mp4mux ! fakesink",
        "( videotestsrc ! fakesink",
        "filesrc location=/etc/passwd ! fakesink",
    ];
    let round = || {
        for pipeline in pipelines {
            toolbox
                .call("validate_pipeline", json!({"pipeline": pipeline}))
                .unwrap();
        }
    };
    // Warm-up: plugins are loaded, packages looked up, arenas grown.
    (0..ROUNDS / 4).for_each(|_| round());
    let used = || {
        let judge = judge();
        let kb = resident_kb();
        (
            kb,
            count(&format!("/proc/{judge}/fd")),
            count(&format!("/proc/{judge}/task")),
        )
    };
    let before = used();
    (0..ROUNDS).for_each(|_| round());
    let after = used();
    assert!(
        after.0 <= before.0 + SLACK_KB,
        "{} kB became {} kB",
        before.0,
        after.0
    );
    assert!(
        after.1 <= before.1,
        "{} file descriptors became {}",
        before.1,
        after.1
    );
    // The thread of the last answer may still be there.
    assert!(after.2 <= before.2 + 1, "{} threads became {}", before.2, after.2);
}
