//! `validate_pipeline` agrees with `gst-launch-1.0`: both accept 20 everyday pipelines, and both refuse more than 20
//! typical errors for the same reason. Problems that only running shows are warnings.

mod broken;
mod doubtful;
mod everyday;
mod judged;
mod launch;

use broken::BAD;
use doubtful::DOUBTFUL;
use everyday::GOOD;
use launch::{comparable, launch};
use ovos_toolbox_sdk::prelude::*;
use ovos_toolbox_sdk::testing::Harness;

fn open() -> (Harness, tempfile::TempDir) {
    let state = tempfile::tempdir().unwrap();
    let config = json!({
        "state_dir": state.path(),
        "read_roots": ["/"],
        "write_roots": ["/"],
        "network_targets": ["*"],
        // It opens the targets of a playlist.
        "allow_elements": ["hlsdemux"],
    });
    (crate::rig::harness(config).unwrap(), state)
}

fn validate(toolbox: &Harness, pipeline: &str) -> Value {
    toolbox
        .call("validate_pipeline", json!({"pipeline": pipeline}))
        .unwrap()
}

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

/// gst-launch-1.0 starts these, and they fail later or never work.
#[test]
fn caps_that_can_never_meet_are_found_before_anything_runs() {
    let (toolbox, _state) = open();
    for (pipeline, from, to) in [
        // One muxer accepts only byte-stream, the other only avc, and the parser before the tee can output one of them.
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
    for (pipeline, kind, part) in DOUBTFUL {
        let found = validate(&toolbox, pipeline);
        assert_eq!(found["valid"], json!(true), "{pipeline}: {found}");
        let details = found["warning_details"].as_array().cloned().unwrap_or_default();
        let warned = details.iter().any(|warning| {
            warning["kind"] == json!(kind) && warning["message"].as_str().unwrap().contains(part)
        });
        assert!(warned, "{pipeline}: {found}");
        assert_eq!(found["warnings"].as_array().unwrap().len(), details.len());
    }
}

/// Users and models copy command lines.
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

/// The policy refuses it before anything is made, with the position.
#[test]
fn what_the_configuration_does_not_allow_is_refused_with_its_key() {
    let state = tempfile::tempdir().unwrap();
    let toolbox =
        crate::rig::harness(json!({"state_dir": state.path(), "deny_elements": ["x265enc"]})).unwrap();
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
