//! "Stream HDMI at 15 Mbps to an SRT listener on port 5000", with a test source instead of HDMI: from tool calls to
//! decoded frames in a separate process, and a recording of the same that can be played.
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::rig::{DEADLINE, Rig};
use serde_json::{Value, json};

/// The encoder's bitrate. Snow of this size needs as much, and takes a fraction of a core.
const BITRATE: u32 = 15_000_000;

#[test]
fn a_stream_reaches_a_listener_while_it_is_recorded() {
    let rig = Rig::new();
    let port = free_port();
    let file = rig.rec("story.mkv");
    let mut listener = Listener::start(port);

    let pipeline = format!(
        "videotestsrc is-live=true pattern=snow ! video/x-raw,format=I420,width=640,height=360,framerate=30/1 \
         ! x264enc name=encoder tune=zerolatency speed-preset=ultrafast bitrate={} key-int-max=30 ! tee name=t \
         t. ! queue ! h264parse ! mpegtsmux alignment=7 ! srtsink name=out uri=srt://127.0.0.1:{port} \
         t. ! queue ! h264parse ! matroskamux ! filesink name=file location={}",
        BITRATE / 1000,
        file.display()
    );
    let valid = rig.ok("validate_pipeline", json!({"pipeline": pipeline}));
    assert_eq!(valid["valid"], true, "{valid}");
    let id = rig.start(&pipeline);

    listener.received(100);
    // Long enough for the encoder's rate control to settle.
    let status = rig.status_until(&id, "6 s of stream", |status| {
        status["position_s"].as_f64().unwrap_or(0.0) > 6.0
    });
    assert_eq!(
        (&status["state"], &status["live"]),
        (&json!("playing"), &json!(true))
    );
    assert_eq!(status["error"], Value::Null);
    let flow = |element: &str| {
        let flows = status["flows"].as_array().unwrap();
        flows
            .iter()
            .find(|flow| flow["element"] == element)
            .unwrap()
            .clone()
    };
    let encoder = flow("encoder");
    let bitrate = encoder["bitrate"].as_f64().unwrap();
    let off = (bitrate / f64::from(BITRATE) - 1.0).abs();
    assert!(
        off < 0.15,
        "{bitrate} bit/s is {:.1} % off: {encoder}",
        off * 100.0
    );
    let sent = flow("out")["bitrate"].as_f64().unwrap();
    assert!(
        sent > bitrate * 0.9 && sent < bitrate * 1.15,
        "{sent} bit/s leave of {bitrate}: {:#}",
        status["flows"]
    );
    println!("asked for {BITRATE} bit/s: encoded {bitrate:.0}, sent {sent:.0}");

    // The status reports the file's real size.
    let written = flow("file")["bytes"].as_u64().unwrap();
    let size = std::fs::metadata(&file).unwrap().len();
    assert!(
        size.abs_diff(written) < u64::from(BITRATE) / 8,
        "{written} bytes were counted, {size} are there"
    );
    assert_eq!(status["files"], json!([file]), "{status:#}");

    let stopped = rig.ok("stop_pipeline", json!({"instance_id": id}));
    assert_eq!(stopped["files_finished"], true);
    listener.ended();
    let frames = played(&file);
    assert!(frames >= 150, "the recording has {frames} frames");
    let status = rig.status(&id);
    assert_eq!(
        (&status["state"], &status["reason"]),
        (&json!("ended"), &json!("stopped"))
    );
    assert_eq!(status["error"], Value::Null, "{status:#}");
}

#[test]
fn a_listener_that_goes_away_is_told() {
    let rig = Rig::new();
    let port = free_port();
    let listener = Listener::start(port);
    let id = rig.start(&format!(
        "videotestsrc is-live=true ! video/x-raw,format=I420,width=160,height=120,framerate=30/1 \
         ! x264enc tune=zerolatency speed-preset=ultrafast ! mpegtsmux alignment=7 \
         ! srtsink auto-reconnect=false uri=srt://127.0.0.1:{port}"
    ));
    rig.status_until(&id, "data", |status| {
        status["position_s"].as_f64().unwrap_or(0.0) > 1.0
    });
    drop(listener);
    let status = rig.status_until(&id, "failure", |status| status["state"] != "playing");
    assert_eq!(status["state"], "failed", "{status:#}");
    assert!(status["last_error"]["debug"].is_string(), "{status:#}");
}

/// A separate receiver that decodes and reports each frame.
struct Listener {
    child: Child,
    output: std::path::PathBuf,
    _dir: tempfile::TempDir,
}

impl Listener {
    fn start(port: u16) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let output = dir.path().join("said");
        let child = Command::new("gst-launch-1.0")
            .args(["-v", "srtsrc"])
            .arg(format!("uri=srt://127.0.0.1:{port}?mode=listener"))
            .args(["!", "tsdemux", "!", "h264parse", "!", "avdec_h264"])
            .args(["!", "fakesink", "name=end", "silent=false", "sync=false"])
            .stdin(Stdio::null())
            .stdout(std::fs::File::create(&output).unwrap())
            .stderr(Stdio::null())
            .spawn()
            .expect("gst-launch-1.0 is needed");
        let listener = Self {
            child,
            output,
            _dir: dir,
        };
        // It has bound its port when binding it fails here.
        let end = Instant::now() + DEADLINE;
        while UdpSocket::bind(("127.0.0.1", port)).is_ok() {
            assert!(Instant::now() < end, "nothing listens on {port}");
            std::thread::park_timeout(Duration::from_millis(20));
        }
        listener
    }

    fn frames(&self) -> usize {
        let output = std::fs::read(&self.output).unwrap_or_default();
        String::from_utf8_lossy(&output)
            .matches("last-message = chain")
            .count()
    }

    fn received(&self, frames: usize) {
        let end = Instant::now() + DEADLINE;
        while self.frames() < frames {
            assert!(
                Instant::now() < end,
                "{} frames were decoded, not {frames}",
                self.frames()
            );
            std::thread::park_timeout(Duration::from_millis(50));
        }
    }

    /// Waits until it has noticed the end of the sender.
    fn ended(&mut self) {
        let end = Instant::now() + DEADLINE;
        while self.child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < end, "the listener did not notice the end");
            std::thread::park_timeout(Duration::from_millis(50));
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// Plays a file to its end with a separate player, and counts the decoded frames.
fn played(file: &Path) -> usize {
    let player = Command::new("gst-launch-1.0")
        .args(["-v", "filesrc"])
        .arg(format!("location={}", file.display()))
        .args(["!", "decodebin", "!", "fakesink", "silent=false"])
        .output()
        .unwrap();
    assert!(
        player.status.success(),
        "{}",
        String::from_utf8_lossy(&player.stderr)
    );
    String::from_utf8_lossy(&player.stdout)
        .matches("last-message = chain")
        .count()
}

fn free_port() -> u16 {
    UdpSocket::bind(("127.0.0.1", 0))
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
}
