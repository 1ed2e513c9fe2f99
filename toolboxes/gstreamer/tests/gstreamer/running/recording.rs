//! A running pipeline is recorded while it plays on.

use serde_json::json;

use crate::rig::Rig;

/// Frames that have come to the element `end`.
fn frames(status: &serde_json::Value) -> u64 {
    let flows = status["flows"].as_array().unwrap();
    let end = flows.iter().find(|flow| flow["element"] == "end").unwrap();
    end["buffers"].as_u64().unwrap()
}

#[test]
fn recordings_come_and_go_without_a_gap_in_the_stream_and_each_file_plays() {
    let rig = Rig::new();
    let id = rig.start(
        "videotestsrc is-live=true ! video/x-raw,width=64,height=64,framerate=25/1 ! timeoverlay ! \
         x264enc tune=zerolatency speed-preset=ultrafast key-int-max=500 ! h264parse ! fakesink name=end sync=false",
    );
    for name in ["one.mkv", "two.mp4", "three.ts"] {
        let file = rig.rec(name);
        let ask = json!({"instance_id": id, "path": file});
        assert_eq!(rig.ok("record", ask.clone())["path"], json!(file));
        let failure = rig.fails("record", ask.clone());
        assert!(
            ["BusyError", "ValueError"].contains(&failure.kind.as_str()),
            "{failure}"
        );
        assert!(rig.toolbox().may_close().is_err(), "it records");
        let before = frames(&rig.status(&id));
        rig.status_until(&id, "two seconds", |status| frames(status) > before + 50);
        let stopped = rig.ok("stop_recording", json!({"instance_id": id}));
        assert_eq!(stopped["file_finished"], true, "{name}: {stopped}");
        let seconds = super::stopping::duration(&file);
        assert!((1.5..4.0).contains(&seconds), "{name} is {seconds} s long");
        let failure = rig.fails("stop_recording", json!({"instance_id": id}));
        assert!(failure.message.contains("none runs"), "{failure}");
    }
    // As many frames as its clock says: no buffer was lost, and none waited.
    let status = rig.status(&id);
    let due = status["position_s"].as_f64().unwrap() * 25.0;
    #[expect(clippy::cast_precision_loss, reason = "some hundreds")]
    let missing = due - frames(&status) as f64;
    assert!(missing < 5.0, "{missing} of {due} frames are missing: {status:#}");
    assert_eq!(
        (&status["state"], &status["dropped_frames"]),
        (&json!("playing"), &json!(0)),
        "{status:#}"
    );
    // The end of the pipeline finishes what is recorded then.
    let file = rig.rec("last.mkv");
    rig.ok("record", json!({"instance_id": id, "path": file}));
    let before = frames(&rig.status(&id));
    rig.status_until(&id, "two seconds", |status| frames(status) > before + 50);
    let stopped = rig.ok("stop_pipeline", json!({"instance_id": id}));
    assert_eq!(stopped["files_finished"], true, "{stopped}");
    assert!(super::stopping::duration(&file) > 1.5);
}

#[test]
fn what_cannot_be_recorded_is_refused_and_plays_on() {
    let rig = Rig::new();
    let id = rig.start("videotestsrc is-live=true ! fakesink");
    for (path, kind, said) in [
        (rig.rec("a.mkv"), "ValueError", "put an encoder into it"),
        (rig.rec("a.xyz"), "ValueError", "expected a file name with .mkv"),
        (rig.private("a.mkv"), "PermissionError", "write_roots"),
    ] {
        let failure = rig.fails("record", json!({"instance_id": id, "path": path}));
        assert_eq!(failure.kind, kind, "{failure}");
        assert!(failure.message.contains(said), "{failure}");
    }
    assert_eq!(rig.status(&id)["state"], "playing");
}
