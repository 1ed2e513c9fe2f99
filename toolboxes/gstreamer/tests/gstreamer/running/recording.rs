//! A running pipeline is recorded while it plays on.

use std::net::UdpSocket;
use std::sync::mpsc::{Receiver, channel};

use serde_json::json;

use crate::rig::{DEADLINE, Rig};

/// What a packet of RTP says of its place in the stream.
#[derive(Clone, Copy)]
struct Place {
    sequence: u16,
    time: u32,
}

/// A peer that receives the stream, and knows nothing of the pipeline.
struct Listener {
    port: u16,
    packets: Receiver<Place>,
    last: Option<Place>,
}

/// From one frame to the next, at 25 a second by the clock of RTP's video.
const STEP: u32 = 90_000 / 25;

impl Listener {
    fn new() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        let (tell, packets) = channel();
        std::thread::spawn(move || {
            let mut packet = [0; 65_536];
            while let Ok(length) = socket.recv(&mut packet) {
                assert!(length > 12, "a header of RTP has 12 bytes");
                let place = Place {
                    sequence: u16::from_be_bytes([packet[2], packet[3]]),
                    time: u32::from_be_bytes([packet[4], packet[5], packet[6], packet[7]]),
                };
                if tell.send(place).is_err() {
                    return;
                }
            }
        });
        Self {
            port,
            packets,
            last: None,
        }
    }

    /// Waits for some frames from now on, of which none may be missing, late by its time stamp, or there twice.
    #[track_caller]
    fn hears(&mut self, mut frames: u32) {
        // What has come before is looked at, but does not count.
        while let Ok(place) = self.packets.try_recv() {
            self.follow(place);
        }
        while frames > 0 {
            let place = self.packets.recv_timeout(DEADLINE).unwrap();
            frames -= self.follow(place);
        }
    }

    /// Looks at a packet, and returns how many frames begin with it.
    #[track_caller]
    fn follow(&mut self, place: Place) -> u32 {
        let last = self.last.replace(place);
        let Some(last) = last else { return 1 };
        assert_eq!(
            place.sequence,
            last.sequence.wrapping_add(1),
            "a packet is missing"
        );
        let step = place.time.wrapping_sub(last.time);
        assert!(
            step == 0 || step.abs_diff(STEP) <= 1,
            "a gap of {step} where {STEP} is a frame"
        );
        u32::from(step > 0)
    }
}

const ENCODED: &str = "videotestsrc is-live=true ! video/x-raw,width=64,height=64,framerate=25/1 ! \
     x264enc tune=zerolatency speed-preset=ultrafast key-int-max=500";

#[test]
fn recordings_come_and_go_without_a_gap_in_the_stream_and_each_file_plays() {
    let rig = Rig::new();
    for (name, stream) in [
        ("direct", "rtph264pay ! udpsink host=127.0.0.1 port=PORT"),
        (
            "parsed",
            "h264parse ! queue ! rtph264pay ! udpsink host=127.0.0.1 port=PORT",
        ),
        (
            "shared",
            "tee name=t t. ! queue ! rtph264pay ! udpsink host=127.0.0.1 port=PORT t. ! queue ! fakesink",
        ),
    ] {
        let mut listener = Listener::new();
        let stream = stream.replace("PORT", &listener.port.to_string());
        let id = rig.start(&format!("{ENCODED} ! {stream}"));
        for container in ["mkv", "mp4", "ts"] {
            let file = rig.rec(&format!("{name}.{container}"));
            let ask = json!({"instance_id": id, "path": file});
            listener.hears(5);
            assert_eq!(rig.ok("record", ask.clone())["path"], json!(file));
            let failure = rig.fails("record", ask);
            assert!(
                ["BusyError", "ValueError"].contains(&failure.kind.as_str()),
                "{failure}"
            );
            assert!(rig.toolbox().may_close().is_err(), "it records");
            listener.hears(50);
            let stopped = rig.ok("stop_recording", json!({"instance_id": id}));
            assert_eq!(stopped["file_finished"], true, "{}: {stopped}", file.display());
            listener.hears(5);
            let seconds = super::stopping::duration(&file);
            assert!(
                (1.5..30.0).contains(&seconds),
                "{} is {seconds} s long",
                file.display()
            );
            let failure = rig.fails("stop_recording", json!({"instance_id": id}));
            assert!(failure.message.contains("no recording is running"), "{failure}");
        }
        // Two at once; the end of the pipeline finishes what is recorded then.
        let files = ["first", "last"].map(|which| rig.rec(&format!("{name}-{which}.mkv")));
        // A path that is not absolute is below the folder for recordings.
        for file in &files {
            let ask = json!({"instance_id": id, "path": file.file_name().unwrap().to_str()});
            assert_eq!(rig.ok("record", ask)["path"], json!(file));
        }
        let failure = rig.fails("stop_recording", json!({"instance_id": id}));
        assert!(
            failure.message.contains("must be one of the running recordings"),
            "{failure}"
        );
        listener.hears(50);
        let named = files[0].file_name().unwrap().to_str();
        let stopped = rig.ok("stop_recording", json!({"instance_id": id, "path": named}));
        assert_eq!(stopped["path"], json!(files[0]));
        let status = rig.status(&id);
        assert_eq!(
            (&status["state"], &status["files"]),
            (&json!("playing"), &json!([files[1]])),
            "{status:#}"
        );
        let stopped = rig.ok("stop_pipeline", json!({"instance_id": id}));
        assert_eq!(stopped["files_finished"], true, "{stopped}");
        for file in &files {
            assert!(super::stopping::duration(file) > 1.5, "{}", file.display());
        }
    }
}

#[test]
fn what_cannot_be_recorded_is_refused_and_plays_on() {
    let rig = Rig::new();
    let bare = "videotestsrc is-live=true ! fakesink";
    let encoded = format!("{ENCODED} ! fakesink");
    // The kernel refuses a name as long as that, once the recording is under way.
    let long = rig.rec(&format!("{}.mkv", "x".repeat(300)));
    for (pipeline, path, kind, expected) in [
        (bare, rig.rec("a.mkv"), "ValueError", "add an encoder"),
        (
            bare,
            rig.rec("a.xyz"),
            "ValueError",
            "expected a file name that ends in .mkv",
        ),
        (bare, rig.private("a.mkv"), "PermissionError", "write_roots"),
        (&encoded, rig.private("a.mkv"), "PermissionError", "write_roots"),
        (&encoded, long, "PipelineError", "cannot be written"),
    ] {
        let id = rig.start(pipeline);
        let failure = rig.fails("record", json!({"instance_id": id, "path": path}));
        assert_eq!(failure.kind, kind, "{failure}");
        assert!(failure.message.contains(expected), "{failure}");
        assert!(!path.exists(), "{}", path.display());
        // The stream goes on, and nothing of the recording is left in it.
        let frames = |status: &serde_json::Value| status["flows"][0]["buffers"].as_u64().unwrap();
        let status = rig.status(&id);
        assert_eq!(status["files"], json!([]), "{status:#}");
        let before = frames(&status);
        rig.status_until(&id, "five frames", |status| frames(status) > before + 5);
        assert_eq!(rig.status(&id)["state"], "playing");
        rig.ok("stop_pipeline", json!({"instance_id": id}));
    }
}

#[test]
fn a_recording_without_a_frame_is_not_called_finished() {
    let rig = Rig::new();
    let slow = ENCODED.replace("framerate=25/1", "framerate=1/2");
    for container in ["mkv", "mp4", "ts"] {
        for tool in ["stop_recording", "stop_pipeline"] {
            let id = rig.start(&format!("{slow} ! fakesink"));
            let frames = |status: &serde_json::Value| status["flows"][0]["buffers"].as_u64();
            rig.status_until(&id, "a frame", |status| frames(status) > Some(0));
            let file = rig.rec(&format!("{tool}.{container}"));
            rig.ok("record", json!({"instance_id": id, "path": file}));
            let stopped = rig.ok(tool, json!({"instance_id": id}));
            let finished = stopped.get("file_finished").or(stopped.get("files_finished"));
            assert_eq!(finished, Some(&json!(false)), "{tool} {container}: {stopped}");
            let status = rig.toolbox().call("pipeline_status", json!({"instance_id": id}));
            let text = format!("{stopped} {status:?}");
            assert!(
                text.contains("no key frame arrived"),
                "{tool} {container}: {text}"
            );
        }
    }
}

/// What is encoded goes into every container that takes it; another one is refused, with those that do, before a file is made.
#[test]
fn every_codec_is_recorded_into_the_containers_that_hold_it() {
    let rig = Rig::new();
    let video = |encoder: &str| {
        let raw = "video/x-raw,width=64,height=64,framerate=25/1,format=I420";
        format!("videotestsrc is-live=true ! {raw} ! {encoder} ! fakesink")
    };
    let sound = |encoder: &str| {
        let raw = "audio/x-raw,rate=48000,channels=2";
        format!("audiotestsrc is-live=true ! {raw} ! audioconvert ! {encoder} ! fakesink")
    };
    let h264 = video("x264enc tune=zerolatency key-int-max=500");
    let both = format!("{h264} {}", sound("avenc_aac"));
    let rows = [
        (h264, "mkv mp4 mov ts", "webm", ".mkv or .mp4"),
        // Asked for a key frame, it makes a picture that is none; so a recording waits for the next.
        (
            video("x265enc tune=zerolatency key-int-max=20"),
            "mkv mp4 ts",
            "webm",
            ".mkv",
        ),
        (
            video("vp8enc deadline=1 keyframe-max-dist=500"),
            "mkv webm",
            "ts",
            ".webm",
        ),
        (
            video("vp9enc deadline=1 keyframe-max-dist=500"),
            "mkv webm mp4",
            "ts",
            ".webm",
        ),
        (video("jpegenc"), "mkv mov", "webm", ".mkv"),
        (sound("avenc_aac"), "mkv mp4 ts", "webm", ".ts"),
        (sound("lamemp3enc"), "mkv mp4 ts", "webm", ".ts"),
        (sound("opusenc"), "mkv webm mp4 ts", "", ""),
        (sound("vorbisenc"), "mkv webm", "mp4", ".webm"),
        (sound("flacenc"), "mkv", "ts", ".mkv"),
        (both, "mkv mp4 ts", "webm", ".mkv"),
    ];
    let record = |(pipeline, holding, other, hint): (String, &str, &str, &str)| {
        let id = rig.start(&pipeline);
        let count = |status: &serde_json::Value| status["flows"][0]["buffers"].as_u64().unwrap_or(0);
        rig.status_until(&id, "data", |status| count(status) > 2);
        for container in holding.split_whitespace() {
            let file = rig.rec(&format!("{id}.{container}"));
            let row = format!("{pipeline}: {container}");
            rig.ok("record", json!({"instance_id": id, "path": file}));
            let before = count(&rig.status(&id));
            rig.status_until(&id, "more data", |status| count(status) > before + 45);
            let stopped = rig.ok("stop_recording", json!({"instance_id": id}));
            assert_eq!(stopped["file_finished"], true, "{row}: {stopped}");
            assert!(super::stopping::duration(&file) > 0.5, "{row}");
        }
        if !other.is_empty() {
            let file = rig.rec(&format!("{id}.{other}"));
            let failure = rig.fails("record", json!({"instance_id": id, "path": file}));
            assert_eq!(failure.kind, "ValueError", "{pipeline}: {failure}");
            assert!(failure.message.contains(hint), "{pipeline}: {failure}");
            assert!(!file.exists(), "{pipeline}: {other}");
        }
        assert_eq!(rig.status(&id)["state"], "playing", "{pipeline}");
        rig.ok("stop_pipeline", json!({"instance_id": id}));
    };
    let record = &record;
    std::thread::scope(|scope| {
        for row in rows {
            scope.spawn(move || record(row));
        }
    });
}
