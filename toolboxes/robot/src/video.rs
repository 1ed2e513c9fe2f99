//! One picture of a camera of this machine, through GStreamer's own program.
//!
//! Owns that process, which ends with its picture, or is killed when it takes too long or nobody waits for it any more. Read [`take`].

use std::io::Read;
use std::os::unix::fs::FileTypeExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// The program; Debian has it in `gstreamer1.0-tools`, and what it needs for cameras and JPEG in `gstreamer1.0-plugins-good`.
const PROGRAM: &str = "gst-launch-1.0";
/// The device that shows GStreamer's test picture.
pub(crate) const TEST: &str = "test";
/// How many pictures are taken: the first ones of many cameras are dark. The last is shown.
const PICTURES: &str = "num-buffers=5";
/// How long a camera may take: some need two seconds for their first picture.
const PATIENCE: Duration = Duration::from_secs(8);
/// How long what it has written may take to be read when it has ended: something that it has started may have its pipes.
const LAST: Duration = Duration::from_millis(200);
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
        ".device: {device:?} is not a device; expected one such as \"/dev/video0\", or \"test\" for a test picture"
    ))
}

/// A JPEG of what the camera sees now. Blocks, at most for 8 s, and not after the other end of the pipe `awaited` is closed.
///
/// # Errors
/// There is no device, another program has it, or GStreamer is not there; for a person.
pub(crate) fn take(device: &str, awaited: &OwnedFd) -> Result<Vec<u8>, String> {
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
    let (pictures, complaint) = watched(child, PATIENCE, awaited).map_err(|error| named(&error))?;
    let last = pictures.windows(BEGIN.len()).rposition(|bytes| bytes == BEGIN);
    match last.and_then(|at| pictures.get(at..)) {
        Some(picture) => Ok(picture.to_vec()),
        None => Err(named(&reason(&complaint))),
    }
}

/// A process that is killed, and not left to anybody, whatever comes between.
struct Reaped(Child);

impl Drop for Reaped {
    fn drop(&mut self) {
        // Fails only where it has ended.
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

/// What a program writes until it ends, or is killed because it does not, or because the other end of `awaited` is closed.
fn watched(child: Child, patience: Duration, awaited: &OwnedFd) -> std::io::Result<(Vec<u8>, String)> {
    let mut child = Reaped(child);
    let pictures = reading(child.0.stdout.take(), LARGEST)?;
    let complaint = reading(child.0.stderr.take(), COMPLAINT)?;
    let pid = i32::try_from(child.0.id()).ok().and_then(Pid::from_raw);
    let ended = pid_handle(pid)?;
    let until = Instant::now() + patience;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let mut fds = [
            PollFd::new(&ended, PollFlags::IN),
            // Nothing is written into it: it says that its other end is closed.
            PollFd::new(awaited, PollFlags::empty()),
        ];
        match poll(&mut fds, Timespec::try_from(left).ok().as_ref()) {
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
            Ok(_) => break,
        }
    }
    drop(child);
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ok((
        pictures.recv_timeout(LAST).unwrap_or_default(),
        text(complaint.recv_timeout(LAST).unwrap_or_default()),
    ))
}

fn pid_handle(pid: Option<Pid>) -> std::io::Result<OwnedFd> {
    let pid = pid.ok_or(std::io::ErrorKind::InvalidData)?;
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}

/// Reads a pipe to its end, on a thread that ends there.
fn reading(pipe: Option<impl Read + Send + 'static>, most: u64) -> std::io::Result<Receiver<Vec<u8>>> {
    let (sender, bytes) = channel();
    std::thread::Builder::new().spawn(move || {
        let mut bytes = Vec::new();
        if let Some(pipe) = pipe {
            _ = pipe.take(most).read_to_end(&mut bytes);
        }
        // Nobody may wait any more.
        _ = sender.send(bytes);
    })?;
    Ok(bytes)
}

/// Why there is no picture: GStreamer's first error, or what the system said.
fn reason(complaint: &str) -> String {
    let busy = complaint.contains("busy") || complaint.contains("Busy");
    let first = complaint.lines().find_map(|line| line.split_once("ERROR: "));
    let cause = first.map_or(complaint.lines().next().unwrap_or_default(), |(_, rest)| rest);
    match (busy, cause.is_empty()) {
        (true, _) => format!("another program has it open; one alone can ({cause})"),
        (false, true) => format!("no picture within {} s", PATIENCE.as_secs()),
        (false, false) => cause.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use rustix::pipe::{PipeFlags, pipe_with};

    use super::*;

    /// It is gone, not even a zombie, when it took too long and when nobody waits for it.
    #[test]
    fn no_process_is_left_behind() {
        for (patience, is_awaited) in [
            (Duration::from_millis(20), true),
            (Duration::from_secs(600), false),
        ] {
            let child = Command::new("sleep")
                .arg("600")
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            let process = format!("/proc/{}", child.id());
            let (awaited, waits) = pipe_with(PipeFlags::CLOEXEC).unwrap();
            let waits = is_awaited.then_some(waits);
            let (pictures, complaint) = watched(child, patience, &awaited).unwrap();
            assert!(pictures.is_empty() && complaint.is_empty(), "{complaint}");
            assert!(!std::path::Path::new(&process).exists(), "{process}");
            drop(waits);
        }
    }

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
