//! `validate_pipeline` says what `gst-launch-1.0` says: 20 pipelines of everyday use that both take, 20 and more that
//! are broken in typical ways and that both refuse for the same reason. What only running shows is a warning.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed test panics and prints"
)]

use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use gstreamer_toolbox::Gstreamer;
use ovos_toolbox_sdk::prelude::*;
use ovos_toolbox_sdk::testing::Harness;

/// How long gst-launch-1.0 may take to load plugins and parse.
const LAUNCH: Duration = Duration::from_secs(20);

fn open() -> (Harness, tempfile::TempDir) {
    let state = tempfile::tempdir().unwrap();
    let config = json!({
        "state_dir": state.path(),
        "read_roots": ["/"],
        "write_roots": ["/"],
        "network_targets": ["*"],
        // It opens what a playlist names.
        "allow_elements": ["hlsdemux"],
    });
    (Harness::open::<Gstreamer>(config).unwrap(), state)
}

fn validate(toolbox: &Harness, pipeline: &str) -> Value {
    toolbox
        .call("validate_pipeline", json!({"pipeline": pipeline}))
        .unwrap()
}

/// What gst-launch-1.0 says about a command line: `Ok` when it begins to start the pipeline (it is ended then), or its
/// error.
fn launch(pipeline: &str) -> Result<(), String> {
    // The shell takes the quotes away, as it does for people. Parentheses are its own.
    let line = if pipeline.contains(['"', '\'']) {
        pipeline.to_owned()
    } else {
        pipeline.replace('(', "\\(").replace(')', "\\)")
    };
    let mut child = Command::new("sh")
        .arg("-c")
        .arg(format!("exec gst-launch-1.0 {line} 2>&1"))
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = child.stdout.take().unwrap();
    let (sender, receiver) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        let mut text = Vec::new();
        let mut some = [0; 4096];
        while let Ok(length @ 1..) = output.read(&mut some) {
            text.extend_from_slice(&some[..length]);
            let started = String::from_utf8_lossy(&text).contains("Setting pipeline to");
            if started {
                break;
            }
        }
        let _ = sender.send(String::from_utf8_lossy(&text).into_owned());
    });
    let deadline = Instant::now() + LAUNCH;
    let text = receiver.recv_timeout(deadline - Instant::now());
    let _ = child.kill();
    child.wait().unwrap();
    reader.join().unwrap();
    let text = text.unwrap_or_else(|_| panic!("gst-launch-1.0 says nothing: {pipeline}"));
    if text.contains("Setting pipeline to") {
        return Ok(());
    }
    for start in [
        "WARNING: erroneous pipeline: ",
        "ERROR: pipeline could not be constructed: ",
    ] {
        if let Some((_, error)) = text.split_once(start) {
            return Err(error.lines().next().unwrap().trim_end_matches('.').to_owned());
        }
    }
    panic!("gst-launch-1.0 {pipeline}: {text}");
}

/// Quotes are written in two ways, and elements without a name are numbered by how many a process has made.
fn comparable(error: &str) -> String {
    let error = error.replace('"', "'");
    let words: Vec<&str> = error
        .split(' ')
        .map(|word| {
            let comma = word.ends_with(',');
            let bare = word
                .trim_end_matches(',')
                .trim_end_matches(|letter: char| letter.is_ascii_digit());
            if comma {
                bare
            } else if bare.is_empty() {
                word
            } else {
                bare
            }
        })
        .collect();
    words.join(" ").trim_end_matches('.').to_owned()
}

/// A pipeline, its elements, and the kinds of its warnings.
type Good = (&'static str, &'static [&'static str], &'static [&'static str]);

const GOOD: &[Good] = &[
    // Streams
    (
        "videotestsrc is-live=true ! video/x-raw,width=1280,height=720,framerate=30/1 ! x264enc tune=zerolatency bitrate=15000 \
         ! h264parse ! mpegtsmux ! srtsink uri=srt://:5000?mode=listener wait-for-connection=false",
        &["videotestsrc", "x264enc", "h264parse", "mpegtsmux", "srtsink"],
        &[],
    ),
    (
        "srtsrc uri=srt://192.0.2.1:5000 ! tsdemux ! h264parse ! avdec_h264 ! videoconvert ! autovideosink",
        &[
            "srtsrc",
            "tsdemux",
            "h264parse",
            "avdec_h264",
            "videoconvert",
            "autovideosink",
        ],
        &["unknown_peer"],
    ),
    (
        "videotestsrc is-live=true ! video/x-raw,width=640,height=360,framerate=25/1 ! x264enc bitrate=1500 ! h264parse \
         ! flvmux name=mux streamable=true ! rtmpsink location=rtmp://live.example.org/app/key \
         audiotestsrc is-live=true ! audioconvert ! avenc_aac ! aacparse ! mux.",
        &[
            "videotestsrc",
            "x264enc",
            "h264parse",
            "flvmux",
            "rtmpsink",
            "audiotestsrc",
            "audioconvert",
            "avenc_aac",
            "aacparse",
        ],
        &["unknown_peer"],
    ),
    (
        "rtspsrc location=rtsp://192.0.2.1/stream latency=200 ! rtph264depay ! h264parse ! avdec_h264 ! videoconvert ! fakesink",
        &[
            "rtspsrc",
            "rtph264depay",
            "h264parse",
            "avdec_h264",
            "videoconvert",
            "fakesink",
        ],
        &["unknown_peer"],
    ),
    (
        "videotestsrc is-live=true ! video/x-raw,width=640,height=360,framerate=30/1 ! x264enc key-int-max=60 ! h264parse \
         ! hlssink2 location=/tmp/segment%05d.ts playlist-location=/tmp/list.m3u8 target-duration=2",
        &["videotestsrc", "x264enc", "h264parse", "hlssink2"],
        &[],
    ),
    (
        "souphttpsrc location=http://192.0.2.1/list.m3u8 ! hlsdemux ! tsdemux ! h264parse ! avdec_h264 ! fakesink",
        &[
            "souphttpsrc",
            "hlsdemux",
            "tsdemux",
            "h264parse",
            "avdec_h264",
            "fakesink",
        ],
        &["unknown_peer"],
    ),
    (
        "webrtcbin name=peer bundle-policy=max-bundle videotestsrc is-live=true ! video/x-raw,width=640,height=360,framerate=30/1 \
         ! vp8enc deadline=1 ! rtpvp8pay ! application/x-rtp,media=video,encoding-name=VP8,payload=96 ! peer.",
        &["webrtcbin", "videotestsrc", "vp8enc", "rtpvp8pay"],
        &[],
    ),
    (
        "udpsrc port=0 caps=application/x-rtp,media=video,encoding-name=H264,payload=96 ! rtpjitterbuffer ! rtph264depay \
         ! avdec_h264 ! videoconvert ! fakesink",
        &[
            "udpsrc",
            "rtpjitterbuffer",
            "rtph264depay",
            "avdec_h264",
            "videoconvert",
            "fakesink",
        ],
        &[],
    ),
    (
        "videotestsrc is-live=true ! video/x-raw,width=320,height=240,framerate=15/1 ! jpegenc ! rtpjpegpay \
         ! udpsink host=127.0.0.1 port=5004",
        &["videotestsrc", "jpegenc", "rtpjpegpay", "udpsink"],
        &[],
    ),
    // Recordings
    (
        "videotestsrc ! video/x-raw,width=640,height=480,framerate=30/1 ! x264enc key-int-max=10 ! h264parse \
         ! splitmuxsink location=/tmp/part%02d.mp4 max-size-time=10000000000",
        &["videotestsrc", "x264enc", "h264parse", "splitmuxsink"],
        &[],
    ),
    (
        "videotestsrc is-live=true ! video/x-raw,width=640,height=480,framerate=30/1 ! x264enc tune=zerolatency \
         ! tee name=t t. ! queue ! h264parse ! mpegtsmux ! udpsink host=127.0.0.1 port=5004 \
         t. ! queue ! h264parse ! mp4mux ! filesink location=/tmp/a.mp4",
        &[
            "videotestsrc",
            "x264enc",
            "tee",
            "queue",
            "h264parse",
            "mpegtsmux",
            "udpsink",
            "queue",
            "h264parse",
            "mp4mux",
            "filesink",
        ],
        &[],
    ),
    (
        "v4l2src device=/dev/video77 ! image/jpeg,width=1280,height=720,framerate=30/1 ! jpegdec ! videoconvert ! queue \
         ! x264enc ! h264parse ! matroskamux ! filesink location=/tmp/a.mkv",
        &[
            "v4l2src",
            "jpegdec",
            "videoconvert",
            "queue",
            "x264enc",
            "h264parse",
            "matroskamux",
            "filesink",
        ],
        &["missing_device"],
    ),
    (
        "alsasrc device=hw:0,0 ! queue ! audioconvert ! audioresample ! opusenc bitrate=64000 ! oggmux ! filesink location=/tmp/a.ogg",
        &[
            "alsasrc",
            "queue",
            "audioconvert",
            "audioresample",
            "opusenc",
            "oggmux",
            "filesink",
        ],
        &[],
    ),
    (
        "videotestsrc num-buffers=1 ! video/x-raw,width=640,height=480 ! jpegenc quality=90 ! filesink location=/tmp/still.jpg",
        &["videotestsrc", "jpegenc", "filesink"],
        &[],
    ),
    // Mixing
    (
        "compositor name=mix sink_1::xpos=320 sink_1::ypos=180 ! videoconvert ! fakesink videotestsrc \
         ! video/x-raw,width=640,height=360 ! mix. videotestsrc pattern=ball ! video/x-raw,width=160,height=90 ! mix.",
        &[
            "compositor",
            "videoconvert",
            "fakesink",
            "videotestsrc",
            "videotestsrc",
        ],
        &[],
    ),
    (
        "audiomixer name=mix ! audioconvert ! audioresample ! fakesink audiotestsrc freq=440 ! mix. audiotestsrc freq=880 volume=0.2 ! mix.",
        &[
            "audiomixer",
            "audioconvert",
            "audioresample",
            "fakesink",
            "audiotestsrc",
            "audiotestsrc",
        ],
        &[],
    ),
    (
        "videotestsrc ! videobalance saturation=0.5 ! videoscale ! \"video/x-raw, width=(int)800, height=(int)600\" ! videoconvert ! fakesink",
        &[
            "videotestsrc",
            "videobalance",
            "videoscale",
            "videoconvert",
            "fakesink",
        ],
        &[],
    ),
    // Files
    (
        "filesrc location=/nonexistent/film.mp4 ! qtdemux name=d d.video_0 ! queue ! h264parse ! avdec_h264 ! fakesink \
         d.audio_0 ! queue ! aacparse ! avdec_aac ! audioconvert ! fakesink",
        &[
            "filesrc",
            "qtdemux",
            "queue",
            "h264parse",
            "avdec_h264",
            "fakesink",
            "queue",
            "aacparse",
            "avdec_aac",
            "audioconvert",
            "fakesink",
        ],
        &["missing_file"],
    ),
    (
        "uridecodebin uri=file:///nonexistent/film.webm name=d d. ! queue ! videoconvert ! videoscale ! video/x-raw,width=640,height=360 \
         ! vp8enc ! webmmux name=m ! filesink location=/tmp/b.webm d. ! queue ! audioconvert ! vorbisenc ! m.",
        &[
            "uridecodebin",
            "queue",
            "videoconvert",
            "videoscale",
            "vp8enc",
            "webmmux",
            "filesink",
            "queue",
            "audioconvert",
            "vorbisenc",
        ],
        &["missing_file"],
    ),
    (
        "( videotestsrc ! video/x-raw,width=320,height=240,framerate=10/1 ! identity ) ( audiotestsrc wave=ticks ! fakesink )",
        &["videotestsrc", "identity", "audiotestsrc", "fakesink"],
        &[],
    ),
    (
        "playbin uri=http://192.0.2.1/film.mp4",
        &["playbin"],
        &["unknown_peer"],
    ),
];

#[test]
fn everyday_pipelines_are_valid_and_start() {
    let (toolbox, _state) = open();
    assert!(GOOD.len() >= 20);
    let mut wrong = Vec::new();
    for (pipeline, elements, warnings) in GOOD {
        let found = validate(&toolbox, pipeline);
        if let Err(error) = launch(pipeline) {
            wrong.push(format!("gst-launch-1.0 {pipeline}\n    {error}"));
        }
        let kinds: Vec<Value> = found["warning_details"]
            .as_array()
            .map(|all| all.iter().map(|warning| warning["kind"].clone()).collect())
            .unwrap_or_default();
        if found["valid"] != json!(true)
            || found["elements"] != json!(elements)
            || json!(kinds) != json!(warnings)
        {
            wrong.push(format!("{pipeline}\n    {found}"));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// A pipeline, the kind of its error, what stands where the error is, and a part of the suggestion.
type Bad = (&'static str, &'static str, &'static str, &'static str);

const BAD: &[Bad] = &[
    (
        "videotestsrc ! aml_h264enc bitrate=15000000 ! h264parse ! fakesink",
        "no_element",
        "aml_h264enc",
        "Did you mean 'x264enc'?",
    ),
    (
        "videotestsrc ! x264encc ! fakesink",
        "no_element",
        "x264encc",
        "Did you mean 'x264enc'?",
    ),
    (
        "vidoetestsrc ! autovideosink",
        "no_element",
        "vidoetestsrc",
        "Did you mean 'videotestsrc'?",
    ),
    (
        "videotestsrc ! invalid_element ! fakesink",
        "no_element",
        "invalid_element",
        "",
    ),
    (
        "videotestsrc ! x264enc ! h264parser ! fakesink",
        "no_element",
        "h264parser",
        "Did you mean 'h264parse'?",
    ),
    (
        "videotestsrc patern=ball ! fakesink",
        "no_property",
        "patern=ball",
        "Did you mean 'pattern'?",
    ),
    (
        "videotestsrc ! x264enc bit-rate=500 ! fakesink",
        "no_property",
        "bit-rate=500",
        "Did you mean 'bitrate'?",
    ),
    (
        "videotestsrc ! fakesink location=/tmp/x",
        "no_property",
        "location=/tmp/x",
        "",
    ),
    (
        "videotestsrc pattern=bal ! fakesink",
        "bad_value",
        "bal ! fakesink",
        "Did you mean 'ball'?",
    ),
    (
        "videotestsrc ! x264enc bitrate=4M ! fakesink",
        "bad_value",
        "4M ! fakesink",
        "from 1 to 2048000",
    ),
    (
        "videotestsrc is-live=maybe ! fakesink",
        "bad_value",
        "maybe ! fakesink",
        "boolean",
    ),
    ("videotestsrc !", "syntax", "!", "nothing follows"),
    (
        "videotestsrc ! ! fakesink",
        "syntax",
        "! fakesink",
        "nothing stands before",
    ),
    (
        "( videotestsrc ! fakesink",
        "syntax",
        "( videotestsrc",
        "not closed",
    ),
    (
        "videotestsrc ! audioconvert ! fakesink",
        "link",
        "! audioconvert",
        "",
    ),
    ("videotestsrc ! mp4mux ! fakesink", "link", "! mp4mux", "put "),
    (
        "videotestsrc ! x265enc ! flvmux ! fakesink",
        "link",
        "! flvmux",
        "",
    ),
    (
        "videotestsrc ! video/x-raw,format=NOPE ! fakesink",
        "link",
        "! video/x-raw,format=NOPE",
        "videotestsrc",
    ),
    (
        "videotestsrc ! video/x-raw,width=wide ! fakesink",
        "link",
        "! video/x-raw,width=wide",
        "",
    ),
    (
        "videotestsrc ! video/x-h264 ! fakesink",
        "link",
        "! video/x-h264",
        "put ",
    ),
    (
        "audiotestsrc ! queue ! x264enc ! fakesink",
        "link",
        "! x264enc",
        "",
    ),
    (
        "videotestsrc ! fakesink ! filesink location=/tmp/x",
        "link",
        "! filesink",
        "it is a sink",
    ),
    (
        "videotestsrc ! audiotestsrc ! fakesink",
        "link",
        "! audiotestsrc",
        "it is a source",
    ),
    (
        "videotestsrc ! tee name=t t. ! fakesink tea. ! fakesink",
        "link",
        "! fakesink",
        "elements with a name: t",
    ),
    (
        "videotestsrc name=source ! fakesink source.video ! fakesink",
        "link",
        "! fakesink",
        "",
    ),
];

#[test]
fn broken_pipelines_are_refused_for_the_reason_gst_launch_gives() {
    let (toolbox, _state) = open();
    assert!(BAD.len() >= 20);
    let mut wrong = Vec::new();
    for (pipeline, kind, near, suggestion) in BAD {
        let found = validate(&toolbox, pipeline);
        let theirs = launch(pipeline).expect_err(pipeline);
        let error = found["error"].as_str().unwrap_or_default();
        let at = found["position"]["near"].as_str().unwrap_or_default();
        let suggested = found["suggestion"].as_str().unwrap_or_default();
        let offset = found["position"]["offset"]
            .as_u64()
            .and_then(|offset| usize::try_from(offset).ok());
        let placed = offset.is_some_and(|offset| pipeline[offset..].starts_with(near))
            && near.starts_with(at.get(..near.len()).unwrap_or(at));
        if found["valid"] != json!(false)
            || found["error_kind"] != json!(kind)
            || comparable(error) != comparable(&theirs)
            || !placed
            || !suggested.contains(suggestion)
        {
            wrong.push(format!("{pipeline}\n    {found}\n    gst-launch-1.0: {theirs}"));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn an_empty_pipeline_is_none() {
    let (toolbox, _state) = open();
    for pipeline in ["", "  "] {
        let found = validate(&toolbox, pipeline);
        assert_eq!(found["valid"], json!(false), "{found}");
        assert_eq!(found["error_kind"], json!("syntax"), "{found}");
    }
}

/// gst-launch-1.0 starts these and fails later, or never.
#[test]
fn caps_that_can_never_meet_are_found_before_anything_runs() {
    let (toolbox, _state) = open();
    for (pipeline, from, to) in [
        // One muxer takes byte-stream alone, the other avc alone, and the parser before the tee can give one of them.
        (
            "videotestsrc ! x264enc ! h264parse ! tee name=t t. ! queue ! mpegtsmux ! fakesink t. ! queue ! mp4mux ! fakesink",
            "h264parse",
            "tee",
        ),
        (
            "filesrc location=/tmp/x ! flvdemux name=d d.audio ! h264parse ! fakesink",
            "flvdemux",
            "h264parse",
        ),
        (
            "rtspsrc location=rtsp://192.0.2.1/x ! x264enc ! fakesink",
            "rtspsrc",
            "x264enc",
        ),
    ] {
        assert_eq!(launch(pipeline), Ok(()), "{pipeline}");
        let found = validate(&toolbox, pipeline);
        assert_eq!(found["error_kind"], json!("caps"), "{pipeline}: {found}");
        let error = found["error"].as_str().unwrap();
        assert!(
            error.starts_with(&format!("'{from}' and '{to}' can never agree")),
            "{error}"
        );
    }
}

#[test]
fn what_will_not_work_as_meant_is_a_warning() {
    let (toolbox, _state) = open();
    let raw = "video/x-raw,width=320,height=240,framerate=30/1";
    for (pipeline, kind, part) in [
        (
            format!("videotestsrc ! {raw} ! tee name=t t. ! fakesink t. ! queue ! fakesink"),
            "no_queue_after_tee",
            "put 'queue' after the tee",
        ),
        (
            format!("videotestsrc ! {raw} ! x264enc ! mpegtsmux ! fakesink"),
            "no_parser",
            "'h264parse'",
        ),
        (
            format!("videotestsrc is-live=true ! {raw} ! filesink location=/tmp/raw"),
            "blocked_live_source",
            "put a queue between them",
        ),
        (
            "videotestsrc ! videoconvert ! x264enc ! h264parse ! fakesink".to_owned(),
            "no_raw_caps",
            "put caps between them",
        ),
        (
            format!("videotestsrc ! {raw} ! x264enc bitrate=9999999 ! fakesink"),
            "out_of_range",
            "1 to 2048000",
        ),
        (
            "videomixer ! fakesink".to_owned(),
            "deprecated",
            "Deprecated by compositor",
        ),
        (
            "videotestsrc ! videoflip method=clockwise ! fakesink".to_owned(),
            "deprecated",
            "video-direction",
        ),
        (
            "filesrc location=/nonexistent ! fakesink".to_owned(),
            "missing_file",
            "/nonexistent",
        ),
        (
            "v4l2src device=/dev/video77 ! fakesink".to_owned(),
            "missing_device",
            "/dev/video77",
        ),
    ] {
        let found = validate(&toolbox, &pipeline);
        assert_eq!(found["valid"], json!(true), "{pipeline}: {found}");
        let details = found["warning_details"].as_array().cloned().unwrap_or_default();
        let warned = details.iter().any(|warning| {
            warning["kind"] == json!(kind) && warning["message"].as_str().unwrap().contains(part)
        });
        assert!(warned, "{pipeline}: {found}");
        assert_eq!(found["warnings"].as_array().unwrap().len(), details.len());
    }
}

/// People and models copy command lines.
#[test]
fn a_whole_command_line_is_understood() {
    let (toolbox, _state) = open();
    for pipeline in [
        "gst-launch-1.0 -v -e videotestsrc ! 'video/x-raw, format=I420, width=320' ! fakesink",
        "videotestsrc ! \"video/x-raw,format=I420\" ! fakesink name=\"a b\"",
    ] {
        assert_eq!(
            launch(pipeline.trim_start_matches("gst-launch-1.0 ")),
            Ok(()),
            "{pipeline}"
        );
        let found = validate(&toolbox, pipeline);
        assert_eq!(
            found["elements"],
            json!(["videotestsrc", "fakesink"]),
            "{pipeline}: {found}"
        );
    }
}

/// The policy says no before anything is made, and where.
#[test]
fn what_the_configuration_does_not_allow_is_refused_with_its_key() {
    let state = tempfile::tempdir().unwrap();
    let toolbox =
        Harness::open::<Gstreamer>(json!({"state_dir": state.path(), "deny_elements": ["x265enc"]})).unwrap();
    for (pipeline, key, near) in [
        (
            "filesrc location=/etc/passwd ! fakesink",
            "read_roots",
            "location=/etc/passwd",
        ),
        (
            "videotestsrc ! filesink location=/etc/x",
            "write_roots",
            "location=/etc/x",
        ),
        ("videotestsrc ! x265enc ! fakesink", "deny_elements", "x265enc"),
        (
            "videotestsrc ! jpegenc ! tcpclientsink host=192.0.2.1 port=80",
            "network_targets",
            "host=192.0.2.1",
        ),
    ] {
        let found = validate(&toolbox, pipeline);
        assert_eq!(found["error_kind"], json!("policy"), "{pipeline}: {found}");
        assert!(
            found["error"].as_str().unwrap().contains(key),
            "{pipeline}: {found}"
        );
        let offset = usize::try_from(found["position"]["offset"].as_u64().unwrap()).unwrap();
        assert!(pipeline[offset..].starts_with(near), "{pipeline}: {found}");
    }
}
