//! A goal for GStreamer, with the tools of the source document and the one that starts what was built.
//!
//! Needs the built toolbox (`cargo build -p gstreamer-toolbox`) and GStreamer's elements; where one is missing the test says so and
//! checks nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::agent::model::{Model, call, calls, finish};
use crate::agent::stage::{end, made, start};
use crate::support::client::Client;
use crate::support::process::DEADLINE;
use crate::support::scene::{Scene, ready};
use crate::support::service::BusKind;

/// The seven of the document, and the one that runs a pipeline.
const TOOLS: &str = "get_board_info,list_video_devices,check_storage,get_encoder_info,get_gst_element_info,validate_pipeline,\
                     get_running_instances,start_pipeline";

/// The newest build of the toolbox beside the service.
fn built() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_BIN_EXE_ovos-tools")).parent().unwrap();
    ["libgstreamer_toolbox.so", "deps/libgstreamer_toolbox.so"]
        .iter()
        .map(|name| folder.join(name))
        .filter_map(|path| Some((fs::metadata(&path).ok()?.modified().ok()?, path)))
        .max()
        .map(|(_, path)| path)
}

#[test]
fn it_records_the_camera_for_five_seconds() {
    let Some(library) = built() else {
        skip::skip(
            "gstreamer",
            "libgstreamer_toolbox.so was not built (cargo build -p gstreamer-toolbox)",
        );
        return;
    };
    let scene = Scene::new(&json!({}));
    let plugins = scene.sandbox.path("plugins");
    let recordings = scene.sandbox.path("recordings");
    fs::create_dir(&plugins).unwrap();
    fs::create_dir(&recordings).unwrap();
    fs::copy(&library, plugins.join("gstreamer.so")).unwrap();
    // To scan all plugins of a machine takes longer than a toolbox usually may take to open.
    let section = json!({"write_roots": [&recordings], "state_dir": scene.sandbox.path("gst"), "limits": {"open_ms": 60_000}});
    // To write a file is a `write` on a toolbox that is no simulator, which a door has to confirm unless a rule allows it.
    let rule = json!({"who": "door:agent", "tools": ["start_pipeline"], "decide": "allow"});
    scene.configure(
        &json!({ "policy": [rule] }),
        &json!({"PHAL": {"ovos-phal-plugin-tools": {"gstreamer": section}}}),
    );
    let _bus = scene.bus(BusKind::Embedded);
    let mut client = Client::connect(scene.port);
    let mut service = scene.ours("service", &["serve", "--plugins", plugins.to_str().unwrap()]);
    ready(&mut service, &mut client);

    // No camera is here: a live test source stands for it, 150 pictures at 30 a second.
    let file = recordings.join("camera.ogg");
    let pipeline = format!(
        "videotestsrc is-live=true num-buffers=150 ! video/x-raw,width=320,height=240,framerate=30/1 ! queue ! theoraenc ! oggmux ! \
         filesink location={}",
        file.display()
    );
    let model = Model::new(vec![
        calls(&[
            ("get_board_info", json!({})),
            ("list_video_devices", json!({})),
            ("check_storage", json!({})),
        ]),
        calls(&[
            ("get_encoder_info", json!({"encoder": "all"})),
            ("get_gst_element_info", json!({"element": "theoraenc"})),
        ]),
        call("validate_pipeline", json!({ "pipeline": pipeline })),
        call(
            "start_pipeline",
            json!({ "pipeline": pipeline, "name": "camera" }),
        ),
        call("get_running_instances", json!({})),
        finish(),
    ]);
    let record = scene.sandbox.path("run.jsonl");
    let ended = end(start(
        &scene,
        &model,
        "record the camera for five seconds",
        &["--tools", TOOLS, "--record", record.to_str().unwrap()],
    ));
    assert_eq!(ended.reason(), "done", "{}\n{}", ended.output, service.log());
    for call in made(&record) {
        assert_eq!(call["status"], "completed", "{call:#}");
    }
    let count = model.requests()[0]["tools"].as_array().unwrap().len();
    assert_eq!(count, 3 + 8);
    let until = Instant::now() + DEADLINE;
    let last = loop {
        let running = client.ask(
            "ovos.tools.invoke",
            &json!({"name": "get_running_instances", "args": {}}),
        );
        let ended: Vec<Value> = running["result"]["ended"].as_array().cloned().unwrap_or_default();
        if let Some(last) = ended.into_iter().next_back() {
            break last;
        }
        assert!(Instant::now() < until, "it never ends: {running:#}");
        std::thread::park_timeout(Duration::from_millis(100));
    };
    assert_eq!(last["name"], "camera", "{last:#}");
    assert!(fs::metadata(&file).unwrap().len() > 10_000, "{last:#}");
}
