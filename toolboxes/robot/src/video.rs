//! One picture of a camera of this machine, through GStreamer's own program.
//!
//! Owns that process, which ends with its picture or is killed. Read [`take`].

use std::io::Read;
use std::os::unix::fs::FileTypeExt as _;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// The program; Debian has it in `gstreamer1.0-tools`, and what it needs for cameras and JPEG in `gstreamer1.0-plugins-good`.
const PROGRAM: &str = "gst-launch-1.0";
/// The device that shows GStreamer's test picture.
pub(crate) const TEST: &str = "test";
/// How many pictures are taken: the first ones of many cameras are dark. The last is shown.
const PICTURES: &str = "num-buffers=5";
/// How long a camera may take: some need two seconds for their first picture.
const PATIENCE: Duration = Duration::from_secs(8);
/// The most bytes of all pictures, and of what the program complains of.
const LARGEST: u64 = 64 << 20;
const COMPLAINT: u64 = 16 << 10;
/// What a JPEG begins with; in its data the first of these bytes is never followed by the second.
const BEGIN: [u8; 3] = [0xff, 0xd8, 0xff];

/// Checks that a device is one of a file name that goes into a pipeline as it is.
///
/// # Errors
/// It goes after the camera's key.
pub(crate) fn check(device: &str) -> Result<(), String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/_-.:".contains(&byte);
    let is_device = device.strip_prefix("/dev/").is_some_and(|name| !name.is_empty());
    if device == TEST || is_device && !device.contains("..") && device.bytes().all(plain) {
        return Ok(());
    }
    Err(format!(
        ".device: {device:?} is no device; expected one such as \"/dev/video0\", or \"test\" for a test picture"
    ))
}

/// A JPEG of what the camera sees now. Blocks, at most for 8 s.
///
/// # Errors
/// There is no device, another program has it, or GStreamer is not there; for a person.
pub(crate) fn take(device: &str) -> Result<Vec<u8>, String> {
    let named = |why: &dyn std::fmt::Display| format!("{device}: {why}");
    let mut command = Command::new(PROGRAM);
    command.arg("-q");
    if device == TEST {
        command.args(["videotestsrc", PICTURES]);
    } else {
        let known = std::fs::metadata(device).map_err(|error| named(&error))?;
        if !known.file_type().is_char_device() {
            return Err(named(&"expected a camera's device"));
        }
        command.args(["v4l2src", &format!("device={device}"), PICTURES]);
    }
    command.args([
        "!",
        "decodebin",
        "!",
        "videoconvert",
        "!",
        "jpegenc",
        "!",
        "fdsink",
        "fd=1",
    ]);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let child = command.spawn().map_err(|error| {
        named(&format!(
            "{PROGRAM} cannot be started ({error}); install gstreamer1.0-tools and gstreamer1.0-plugins-good"
        ))
    })?;
    let (pictures, complaint) = watched(child).map_err(|error| named(&error))?;
    let last = pictures.windows(BEGIN.len()).rposition(|bytes| bytes == BEGIN);
    match last.and_then(|at| pictures.get(at..)) {
        Some(picture) => Ok(picture.to_vec()),
        None => Err(named(&reason(&complaint))),
    }
}

/// What a program writes until it ends, or is killed because it does not.
fn watched(mut child: Child) -> std::io::Result<(Vec<u8>, String)> {
    let pictures = reading(child.stdout.take(), LARGEST);
    let complaint = reading(child.stderr.take(), COMPLAINT);
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let ended = pid.map(|pid| pidfd_open(pid, PidfdFlags::empty())).transpose()?;
    let patience = Timespec::try_from(PATIENCE).ok();
    if let Some(ended) = &ended {
        _ = poll(&mut [PollFd::new(ended, PollFlags::IN)], patience.as_ref());
    }
    // Fails only where it has ended.
    _ = child.kill();
    child.wait()?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ok((
        pictures.join().unwrap_or_default(),
        text(complaint.join().unwrap_or_default()),
    ))
}

fn reading(pipe: Option<impl Read + Send + 'static>, most: u64) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(pipe) = pipe {
            _ = pipe.take(most).read_to_end(&mut bytes);
        }
        bytes
    })
}

/// Why there is no picture: GStreamer's first error, or what the system said.
fn reason(complaint: &str) -> String {
    let busy = complaint.contains("busy") || complaint.contains("Busy");
    let first = complaint.lines().find_map(|line| line.split_once("ERROR: "));
    let said = first.map_or(complaint.lines().next().unwrap_or_default(), |(_, rest)| rest);
    match (busy, said.is_empty()) {
        (true, _) => format!("another program has it open; one alone can ({said})"),
        (false, true) => format!("no picture within {} s", PATIENCE.as_secs()),
        (false, false) => said.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_complaint_of_gstreamer_becomes_a_reason() {
        for (complaint, expected) in [
            ("", "no picture within 8 s"),
            (
                "WARNING: erroneous pipeline: no element \"jpegenc\"\n",
                "WARNING: erroneous pipeline: no element \"jpegenc\"",
            ),
            (
                "ERROR: from element /GstPipeline:pipeline0/GstV4l2Src:v4l2src0: Cannot identify device '/dev/video9'.\n",
                "from element /GstPipeline:pipeline0/GstV4l2Src:v4l2src0: Cannot identify device '/dev/video9'.",
            ),
            (
                "ERROR: from element v4l2src0: Failed to allocate a buffer\nsystem error: Device or resource busy\n",
                "another program has it open; one alone can (from element v4l2src0: Failed to allocate a buffer)",
            ),
        ] {
            assert_eq!(reason(complaint), expected);
        }
    }

    #[test]
    fn only_a_device_goes_into_a_pipeline() {
        for device in ["/dev/video0", "/dev/v4l/by-id/usb-046d_C920-video-index0", "test"] {
            check(device).unwrap();
        }
        for device in [
            "",
            "video0",
            "/dev/",
            "/dev/../etc/passwd",
            "/dev/video0 ! filesink location=x",
            "/etc/passwd",
        ] {
            assert!(check(device).is_err(), "{device}");
        }
    }
}
