//! Validation leaks no memory and no file descriptors. In its own process, so that nothing else grows.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed test panics and prints"
)]

use gstreamer_toolbox::Gstreamer;
use ovos_toolbox_sdk::prelude::*;
use ovos_toolbox_sdk::testing::Harness;

const ROUNDS: usize = 150;

/// Memory that allocators may keep after all rounds; a leak of one pipeline per round is more.
const SLACK_KB: u64 = 5_000;

fn resident_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
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
    let before = (resident_kb(), count("/proc/self/fd"), count("/proc/self/task"));
    (0..ROUNDS).for_each(|_| round());
    let after = (resident_kb(), count("/proc/self/fd"), count("/proc/self/task"));
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
    // Tokio keeps as many blocking threads as were used at once.
    assert!(after.2 <= before.2 + 3, "{} threads became {}", before.2, after.2);
}
