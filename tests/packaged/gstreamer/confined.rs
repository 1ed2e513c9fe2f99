//! The kernel confines pipelines, even those with elements that the toolbox does not know.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::gstreamer::Service;
use crate::support::fixture::FixtureFolder;
use crate::support::kernel::can_confine;

/// How the pipelines of a row end: in a section without confinement, in a confined one, and in a confined one without
/// devices and network.
type Ends = [End; 3];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// It runs, or has ended without an error.
    Runs,
    /// Its element tried, and got an error.
    Fails,
    /// The toolbox did not start it.
    Refused,
}

use End::{Fails, Refused, Runs};

/// The attempts of the element `faultyreach`. The toolbox cannot know the use of its property, which is in base64.
const ATTEMPTS: &[(&str, Ends)] = &[
    ("read:YARD/secret/file", [Runs, Fails, Fails]),
    ("write:YARD/secret/new", [Runs, Fails, Fails]),
    ("read:YARD/ro/file", [Runs, Runs, Runs]),
    ("write:YARD/ro/new", [Runs, Fails, Fails]),
    ("write:YARD/rw/new", [Runs, Runs, Runs]),
    // Where the toolbox keeps its list of the pipelines that come back.
    ("write:STATE/new", [Runs, Fails, Fails]),
    ("write:STATE/scratch/new", [Runs, Runs, Runs]),
    ("device:/dev/ptmx", [Runs, Runs, Fails]),
    ("tcp:PORT", [Runs, Runs, Fails]),
    ("udp:PORT", [Runs, Runs, Fails]),
];

const PIPELINES: &[(&str, Ends)] = &[
    (
        "videotestsrc num-buffers=5 ! filesink location=YARD/rw/video",
        [Runs, Runs, Runs],
    ),
    ("filesrc location=YARD/ro/file ! fakesink", [Runs, Runs, Runs]),
    (
        "filesrc location=YARD/secret/file ! fakesink",
        [Refused, Refused, Refused],
    ),
    // Files that every program can read are judged by the toolbox.
    (
        "filesrc location=/etc/passwd ! fakesink",
        [Refused, Refused, Refused],
    ),
    // So are hosts of the network.
    (
        "videotestsrc ! udpsink host=198.51.100.7",
        [Refused, Refused, Refused],
    ),
    // The options of a library may name files, which the toolbox does not read.
    (
        "videotestsrc num-buffers=5 ! x264enc option-string=keyint=30:bframes=0 ! fakesink",
        [Refused, Runs, Runs],
    ),
    (
        "videotestsrc num-buffers=5 ! x264enc option-string=dump-yuv=YARD/secret/new ! fakesink",
        [Refused, Fails, Fails],
    ),
    (
        "videotestsrc num-buffers=5 ! x264enc option-string=dump-yuv=STATE/new ! fakesink",
        [Refused, Fails, Fails],
    ),
    // A script is harmless in a process that can open no socket.
    ("faultyscript startup-script=x", [Refused, Refused, Runs]),
    ("fdsrc fd=0 ! fakesink", [Refused, Refused, Refused]),
    ("fdsrc ! fakesink", [Refused, Refused, Refused]),
    // A relative path out of the folder, the other spelling of a property, a host beside an allowed one.
    (
        "videotestsrc ! filesink location=../secret/new",
        [Refused, Refused, Refused],
    ),
    (
        "videotestsrc ! x264enc pass=pass1 multipass_cache_file=YARD/secret/new ! fakesink",
        [Refused, Refused, Refused],
    ),
    (
        "videotestsrc ! udpsink host=127.0.0.1 bind_address=0.0.0.0",
        [Refused, Refused, Refused],
    ),
    // A link out of the folder, a conversion that is no counter, and the toolbox's own list.
    (
        "videotestsrc ! filesink location=YARD/rw/link",
        [Refused, Refused, Refused],
    ),
    (
        "multifilesrc location=YARD/ro/%n ! fakesink",
        [Refused, Refused, Refused],
    ),
    (
        "videotestsrc ! filesink location=STATE/instances.json",
        [Refused, Refused, Refused],
    ),
    // An element inside a property: it would look its host up as soon as it is made.
    (
        "playbin uri=file:///YARD/ro/file video-sink=\"udpsink host=198.51.100.7\"",
        [Refused, Refused, Refused],
    ),
    (
        "videotestsrc ! multiudpsink clients=evil.example:5",
        [Refused, Refused, Refused],
    ),
];

/// A folder that may be written, one that may be read, and one that the section does not name.
fn yard() -> TempDir {
    let yard = tempfile::tempdir().unwrap();
    for folder in ["rw", "ro", "secret"] {
        fs::create_dir(yard.path().join(folder)).unwrap();
        fs::write(yard.path().join(folder).join("file"), "held").unwrap();
    }
    symlink(yard.path().join("secret/file"), yard.path().join("rw/link")).unwrap();
    yard
}

fn section(yard: &Path, keys: &Value) -> Value {
    let mut section = json!({
        "read_roots": [yard.join("ro")],
        "write_roots": [yard.join("rw")],
        "devices": ["/dev/ptm*"],
        // An element that reaches out in a way that is not understood; the kernel bounds it all the same.
        "allow_elements": ["faultyreach"],
    });
    for (key, value) in keys.as_object().unwrap() {
        section[key] = value.clone();
    }
    section
}

impl Service {
    fn end_of(&self, pipeline: &str) -> (End, Value) {
        let answer = self.invoke(
            "start_pipeline",
            &json!({"pipeline": pipeline, "wait_ms": 30_000}),
        );
        let error = answer["error"].as_str().unwrap_or_default();
        let end = match answer["result"]["state"].as_str() {
            Some("playing" | "ended") => Runs,
            None if error.contains("reached for it") => Fails,
            None if error.starts_with("PermissionError") || error.contains("is not allowed:") => Refused,
            None if error.contains("PipelineError:") => Fails,
            _ => panic!("{pipeline}: {answer:#}\n{}", self.0.process.log()),
        };
        (end, answer)
    }

    fn status(&self) -> Value {
        let status = self.ask(&["status"]);
        let toolboxes = status["toolboxes"].as_array().unwrap();
        let own = toolboxes
            .iter()
            .find(|toolbox| toolbox["toolbox_id"] == "gstreamer");
        own.unwrap().clone()
    }
}

#[test]
fn pipelines_reach_only_what_the_section_allows() {
    if !can_confine() {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let mut wrong = Vec::new();
    for (column, keys) in [
        // The control: without the kernel all of it works.
        json!({"confine": false}),
        json!({}),
        json!({"network_targets": [], "devices": []}),
    ]
    .into_iter()
    .enumerate()
    {
        let (fixtures, yard) = (FixtureFolder::new(), yard());
        let Some(service) = Service::start(&fixtures, &section(yard.path(), &keys)) else {
            return;
        };
        assert_eq!(service.status()["reason"], Value::Null, "{keys}");
        let filled = |text: &str| {
            let text = text.replace("YARD", yard.path().to_str().unwrap());
            let state = service.0.sandbox.path("state/gstreamer");
            let text = text.replace("STATE", state.to_str().unwrap());
            text.replace("PORT", &port)
        };
        let reaching = |attempt: &str| format!("faultyreach gadget={}", base64(&filled(attempt)));
        let attempts = ATTEMPTS.iter().map(|(text, ends)| (text, reaching(text), ends));
        let pipelines = PIPELINES.iter().map(|(text, ends)| (text, filled(text), ends));
        for (text, pipeline, ends) in attempts.chain(pipelines) {
            let (end, answer) = service.end_of(&pipeline);
            if end != ends[column] {
                wrong.push(format!("{keys}: {text}: expected {:?}: {answer}", ends[column]));
            }
        }
        // The library of the sound server wants a folder, which the kernel would refuse.
        let log = service.0.process.output();
        assert!(!log.contains("secure directory"), "{keys}: {log}");
        let video = fs::metadata(yard.path().join("rw/video")).unwrap();
        assert!(video.len() > 0, "{keys}: the recording is empty");
        assert_eq!(yard.path().join("secret/new").exists(), column == 0, "{keys}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The toolbox works and judges by its lists alone, and the service reports that.
#[test]
fn without_landlock_the_toolbox_runs_and_the_status_says_so() {
    let fixtures = FixtureFolder::new();
    let program = fixtures.program(
        "without_landlock",
        &[("PROGRAM", concat!("\"", env!("CARGO_BIN_EXE_ovos-tools"), "\""))],
    );
    let yard = yard();
    let keys = section(yard.path(), &json!({"network_targets": []}));
    let Some(service) = Service::start_as(&program, &fixtures, &keys) else {
        return;
    };
    let text = "runs unconfined: this kernel cannot confine a process";
    let reason = service.status()["reason"].as_str().unwrap_or_default().to_owned();
    assert!(
        reason.starts_with(text) && reason.contains("Linux 6.2"),
        "{reason}"
    );
    let log = service.0.process.output();
    assert!(log.contains("the toolbox runs unconfined"), "{log}");
    let mut check = service.0.sandbox.command(&program);
    let file = fixtures.path().join("plugins/gstreamer.so");
    let checked = check.args(["--json", "check"]).arg(file).output().unwrap();
    let checked = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(checked.contains(text), "{checked}");

    for (pipeline, expected) in [
        ("videotestsrc num-buffers=5 ! fakesink", Runs),
        ("faultyscript startup-script=x", Refused),
    ] {
        let (end, answer) = service.end_of(pipeline);
        assert_eq!(end, expected, "{pipeline}: {answer}");
    }
}

fn base64(text: &str) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut coded = String::new();
    for three in text.as_bytes().chunks(3) {
        let byte = |at: usize| u32::from(three.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * place)) as usize & 63];
            coded.push(if place > three.len() {
                '='
            } else {
                char::from(letter)
            });
        }
    }
    coded
}
