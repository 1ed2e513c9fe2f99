//! Costs of the tools compared with the programs they replace: one table of ratios, with goals.
//!
//! Both are measured alternately, so that ratios hold on a busy machine; processor time is listed too, because it
//! excludes waiting. The programs start anew for each call, as they do for a user without this toolbox; the toolbox is
//! warm.
//!
//! The comparison is text with text: the toolbox is called through its C table with JSON in and JSON out; the programs'
//! output is read but not parsed. gst-launch-1.0 is timed until it has parsed the pipeline and says so, and is killed
//! then, because it cannot parse without starting.
#![allow(clippy::print_stdout, reason = "a bench prints its figures")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a bench that cannot run has no figures"
)]

use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use gst::prelude::*;
use gstreamer_toolbox::Gstreamer;
use ovos_toolbox_sdk::prelude::*;
use ovos_toolbox_sdk::testing::{self, Harness};

/// Rounds per row.
const ROUNDS: usize = 15;

/// Calls of the toolbox per round; the program runs once.
const CALLS: u32 = 40;

const PIPELINE: &str = "videotestsrc is-live=true ! video/x-raw,width=1280,height=720,framerate=30/1 ! x264enc bitrate=15000 \
    ! h264parse ! mpegtsmux ! srtsink uri=srt://127.0.0.1:5000?mode=listener";

fn main() {
    let state = tempfile::tempdir().unwrap();
    testing::role_host(env!("CARGO_BIN_EXE_gstreamer-role"));
    let toolbox = Harness::open::<Gstreamer>(json!({"state_dir": state.path()})).unwrap();
    // Prepared once: the harness would list all tools before each call, which no host does.
    let request = |tool: &str, arguments: Value| {
        let call = json!({"call_id": "bench", "toolbox_id": "gstreamer", "tool": tool, "deadline_ms": 10_000, "stop_epoch": 0});
        let action =
            json!({"id": tool, "name": tool, "subsystems": [], "params": arguments, "effect": "read"});
        json!({"call": call, "action": action, "inputs": {}}).to_string()
    };
    let call = |request: &str| toolbox.start_text(request).unwrap().wait();
    let validation = request("validate_pipeline", json!({"pipeline": PIPELINE}));
    let question = request("get_gst_element_info", json!({"element": "x264enc"}));
    // The first answer is checked; later ones must have the same length.
    let check = |request: &str, key: &str, expected: Value| {
        let ended = call(request);
        let found = ended.result().unwrap();
        assert_eq!(found[key], expected, "{found}");
        ended.text.len()
    };
    let valid = check(&validation, "valid", json!(true));
    let described = check(&question, "element", json!("x264enc"));
    println!(
        "gst toolbox, {}, {ROUNDS} turns each, medians",
        gst::version_string()
    );
    let rows = [
        row(
            "validate_pipeline : gst-launch-1.0 up to \"Setting pipeline\"",
            Some(50.0),
            || assert_eq!(call(&validation).text.len(), valid),
            launch,
        ),
        row(
            "  of it GStreamer's own parser, making and dropping : the same",
            None,
            parse,
            launch,
        ),
        row(
            "get_gst_element_info (warm) : gst-inspect-1.0",
            Some(100.0),
            || assert_eq!(call(&question).text.len(), described),
            inspect,
        ),
    ];
    for row in &rows {
        println!("{row}");
    }
}

/// `theirs` returns its duration.
fn row(what: &str, goal: Option<f64>, ours: impl Fn(), theirs: impl Fn() -> Duration) -> String {
    // The first call loads plugins.
    ours();
    theirs();
    let mut times = (Vec::new(), Vec::new());
    let before = processor();
    for _ in 0..ROUNDS {
        let start = Instant::now();
        (0..CALLS).for_each(|_| ours());
        times.0.push(start.elapsed() / CALLS);
        times.1.push(theirs());
    }
    let after = processor();
    let (ours, theirs) = (median(times.0), median(times.1));
    let ratio = theirs.as_secs_f64() / ours.as_secs_f64();
    let goal = goal.map_or_else(String::new, |goal| {
        let met = if ratio >= goal { "met" } else { "NOT MET" };
        format!("goal {goal}x  {met}")
    });
    let calls = f64::from(CALLS);
    let processor = (after.1 - before.1) / ((after.0 - before.0) / calls);
    format!(
        "  {what:<62} {ours:>10.1?} : {theirs:>8.1?}  {ratio:>6.0}x  {goal:<17} (processor time {processor:.0}x)"
    )
}

/// Processor time of this process and of its awaited children, in ticks: fields 14 to 17 of /proc/self/stat.
fn processor() -> (f64, f64) {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    // The process name may contain spaces and ends with the last parenthesis; the third field follows.
    let (_, rest) = stat.rsplit_once(") ").unwrap();
    let ticks: Vec<f64> = rest
        .split(' ')
        .skip(11)
        .take(4)
        .map(|field| field.parse().unwrap())
        .collect();
    (ticks[0] + ticks[1], ticks[2] + ticks[3])
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// The time until it has parsed and starts the pipeline; killing it afterwards is not counted.
fn launch() -> Duration {
    let start = Instant::now();
    let mut child = Command::new("gst-launch-1.0")
        .args(PIPELINE.split_whitespace())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut first = [0; 16];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    let parsed = start.elapsed();
    assert!(first.starts_with(b"Setting pipeline"));
    child.kill().unwrap();
    child.wait().unwrap();
    parsed
}

/// The minimum for any validation with GStreamer's own parser.
fn parse() {
    let element = gst::parse::launch(PIPELINE).unwrap();
    assert!(element.is::<gst::Pipeline>());
}

fn inspect() -> Duration {
    let start = Instant::now();
    let output = Command::new("gst-inspect-1.0")
        .arg("x264enc")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success());
    start.elapsed()
}
