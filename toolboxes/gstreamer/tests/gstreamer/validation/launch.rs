//! gst-launch-1.0's verdict on a pipeline.

use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Time limit of gst-launch-1.0 for loading plugins and parsing.
const LAUNCH: Duration = Duration::from_secs(20);

/// Runs gst-launch-1.0 on a command line: `Ok` when it begins to start the pipeline (it is killed then), or its error.
pub(crate) fn launch(pipeline: &str) -> Result<(), String> {
    // The shell removes quotes; parentheses have a meaning of their own in it.
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

/// Normalises quotes and the numbers in default names.
pub(crate) fn comparable(error: &str) -> String {
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
