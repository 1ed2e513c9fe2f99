//! Stops, cancels, reloads and closes: which pipelines they end, and how.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::rig::{DEADLINE, Rig};
use crate::running::LIVE;

#[test]
fn stops_leave_pipelines_running_unless_the_configuration_says_otherwise() {
    for (config, runs_on) in [(json!({}), true), (json!({"stop_ends_pipelines": true}), false)] {
        let rig = Rig::with(config);
        let id = rig.start(LIVE);
        for emergency in [false, true] {
            let began = Instant::now();
            rig.toolbox().halt(&["all"], emergency).unwrap();
            assert!(
                began.elapsed() < Duration::from_millis(50),
                "a halt took {:?}",
                began.elapsed()
            );
        }
        if runs_on {
            assert_eq!(rig.status(&id)["state"], "playing");
        } else {
            let status = rig.status_until(&id, "end", |status| status["state"] == "ended");
            assert_eq!(status["reason"], "stopped");
        }
    }
}

/// The user's "stop" arrives as a message, because the call that started the pipeline has ended.
#[test]
fn the_users_stop_finishes_pipelines_where_the_configuration_says_so() {
    for topic in ["ovos.stop", "mycroft.stop"] {
        let keys = json!({"stop_ends_pipelines": true});
        for (config, runs_on) in [(json!({}), true), (keys, false)] {
            let rig = Rig::with(config);
            assert!(
                rig.toolbox()
                    .manifest()
                    .subscribes
                    .iter()
                    .any(|stop| stop == topic),
                "{topic} is not heard"
            );
            let id = rig.start(LIVE);
            rig.toolbox().message(topic, json!({}));
            if runs_on {
                // Executed after the message, by the thread that would have stopped.
                let change =
                    json!({"instance_id": id, "element": "v", "property": "pattern", "value": "ball"});
                rig.ok("set_pipeline_property", change);
                assert_eq!(rig.status(&id)["state"], "playing");
            } else {
                let status = rig.status_until(&id, "end", |status| status["state"] == "ended");
                assert_eq!(
                    (&status["reason"], &status["files_finished"]),
                    (&json!("stopped"), &json!(true)),
                    "{status:#}"
                );
            }
        }
    }
}

#[test]
fn a_start_that_is_cancelled_leaves_its_pipeline_unless_the_configuration_says_otherwise() {
    for (config, runs_on) in [(json!({}), true), (json!({"stop_ends_pipelines": true}), false)] {
        let rig = Rig::with(config);
        // Without input it never plays.
        let ask = json!({"pipeline": "appsrc name=a ! fakesink", "name": "waits", "wait_ms": 60_000});
        let call = rig.toolbox().start("start_pipeline", ask).unwrap();
        let running = |what: &str, count: usize| {
            let end = Instant::now() + DEADLINE;
            loop {
                let running = rig.ok("get_running_instances", json!({}));
                if running["instances"].as_array().unwrap().len() == count {
                    return;
                }
                assert!(Instant::now() < end, "{what}: {running:#}");
                std::thread::park_timeout(Duration::from_millis(20));
            }
        };
        running("it does not start", 1);
        call.cancel();
        call.wait().result().expect_err("it was cancelled");
        if runs_on {
            // Executed by the thread that would have stopped.
            let change =
                json!({"instance_id": "waits", "element": "a", "property": "max-bytes", "value": 1000});
            let end = Instant::now() + DEADLINE;
            while let Err(failure) = rig.call("set_pipeline_property", change.clone()) {
                // Its thread may not have started yet.
                assert_eq!(failure.kind, "BusyError", "{failure}");
                assert!(Instant::now() < end, "{failure}");
                std::thread::park_timeout(Duration::from_millis(20));
            }
            assert_eq!(rig.status("waits")["state"], "starting");
        } else {
            running("it goes on", 0);
        }
    }
}

#[test]
fn a_recording_refuses_a_reload_and_is_finished_by_a_close() {
    let mut rig = Rig::new();
    let idle = rig.start(LIVE);
    rig.toolbox()
        .may_close()
        .expect("what only shows something may be closed");
    rig.ok("stop_pipeline", json!({"instance_id": idle}));
    let file = rig.rec("film.mp4");
    let id = rig.start(&format!(
        "videotestsrc is-live=true ! video/x-raw,width=160,height=120,framerate=25/1 ! \
         x264enc tune=zerolatency speed-preset=ultrafast ! mp4mux ! filesink location={}",
        file.display()
    ));
    rig.status_until(&id, "a second", |status| {
        status["position_s"].as_f64().unwrap_or(0.0) > 1.0
    });
    let refused = rig.toolbox().may_close().unwrap_err();
    assert!(refused.failure.message.contains("recording"), "{refused}");
    rig.close();
    let seconds = duration(&file);
    assert!(seconds > 0.8, "the film is {seconds} s long");
}

#[test]
fn a_stop_finishes_the_file_while_a_buffer_fills() {
    crate::rig::faulty();
    let rig = Rig::new();
    let file = rig.rec("film.mp4");
    let id = rig.start(&format!(
        "faultybuffer videotestsrc ! video/x-raw,width=160,height=120,framerate=25/1 ! \
         x264enc tune=zerolatency speed-preset=ultrafast ! mp4mux ! filesink location={}",
        file.display()
    ));
    let stopped = rig.ok("stop_pipeline", json!({"instance_id": id}));
    assert_eq!(stopped["files_finished"], true, "{stopped}");
    assert!(duration(&file) > 0.0);
}

#[test]
fn what_is_being_stopped_is_not_held_again() {
    let rig = Rig::with(json!({"eos_timeout_ms": 30_000}));
    // A closed valve blocks the end of stream.
    let id = rig.start("videotestsrc is-live=true ! valve drop=true ! fakesink async=false");
    let stop = rig
        .toolbox()
        .start("stop_pipeline", json!({"instance_id": id}))
        .unwrap();
    rig.status_until(&id, "stop", |status| status["state"] == "stopping");
    for tool in ["pause_pipeline", "resume_pipeline"] {
        let failure = rig.fails(tool, json!({"instance_id": id}));
        assert_eq!(failure.kind, "BusyError", "{tool}: {failure}");
        assert!(failure.message.contains("being stopped"), "{tool}: {failure}");
    }
    rig.ok("stop_pipeline", json!({"instance_id": id, "force": true}));
    let stopped = stop.wait().result().unwrap();
    assert_eq!(stopped["files_finished"], false, "{stopped}");
}

#[test]
fn a_start_that_is_still_under_way_does_not_outlive_a_close() {
    crate::rig::faulty();
    let mut rig = Rig::new();
    let path = |end: &str| rig.dir.path().join(format!("slow{end}"));
    let (slow, here, gone) = (path(""), path(".here"), path(".gone"));
    let appears = |path: &std::path::Path| {
        let end = Instant::now() + DEADLINE;
        while !path.exists() {
            assert!(Instant::now() < end, "no {}", path.display());
            std::thread::park_timeout(Duration::from_millis(10));
        }
    };
    let record = rig.rec("film.raw");
    let pipeline = format!(
        "faultyslow gadget={} videotestsrc is-live=true ! filesink location={}",
        gst::glib::base64_encode(slow.to_str().unwrap().as_bytes()),
        record.display()
    );
    rig.toolbox()
        .start("start_pipeline", json!({"pipeline": pipeline}))
        .unwrap();
    appears(&here);
    rig.close();
    // Its process is killed with the toolbox's close: it is not even freed.
    std::fs::write(&slow, "").unwrap();
    assert!(!gone.exists() && !record.exists());
}

/// The duration of a file, read by a separate player. A player that has not come to the end of a file of seconds within half a minute
/// hangs, as decodebin sometimes does with a file that it plays the next time; another one plays it then.
pub(super) fn duration(file: &std::path::Path) -> f64 {
    gst::init().unwrap();
    let play = || {
        std::process::Command::new("timeout")
            .args(["--signal=KILL", "30", "gst-launch-1.0", "filesrc"])
            .arg(format!("location={}", file.display()))
            .args(["!", "decodebin", "!", "fakesink", "silent=false", "-v"])
            .output()
            .unwrap()
    };
    let mut discovered = play();
    if discovered.status.code() == Some(128 + 9) {
        discovered = play();
    }
    assert!(
        discovered.status.success(),
        "{}: {}",
        file.display(),
        String::from_utf8_lossy(&discovered.stderr)
    );
    let text = String::from_utf8_lossy(&discovered.stdout).into_owned();
    let frames = text.matches("last-message = chain").count();
    f64::from(u32::try_from(frames).unwrap()) / 25.0
}
