//! `look`: what a camera of the robot sees, as one small JPEG with its age.
//!
//! Owns where the picture is read. Nothing is subscribed while nobody looks. Read [`look`].

use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use ovos_toolbox_sdk::prelude::*;
use ovos_toolbox_sdk::tokio::task::spawn_blocking;
use ros_graph::picture::Picture;
use rustix::fd::OwnedFd;
use rustix::fs::OFlags;
use rustix::pipe::{PipeFlags, pipe_with};

use crate::adapter::ActionOutput;
use crate::conclude::ActionResult;
use crate::error::tool_error;
use crate::robots::Robots;
use crate::unit::Unit;
use crate::video;

/// The longer side of what is shown, in points.
const POINTS: u32 = 1024;
/// The largest file that is read as a picture.
const LARGEST: u64 = 64 << 20;

/// Shows what a camera sees now.
///
/// # Errors
/// There is no picture, or it cannot be read.
///
/// # Cancel safety
/// A subscription ends with the future.
pub(crate) async fn look(
    context: &Context<Robots>,
    unit: &Unit,
    camera: &str,
) -> Result<ActionResult, ToolError> {
    let cameras = &unit.capabilities().cameras;
    let table = cameras
        .get(camera)
        .ok_or_else(|| tool_error(unit.lacks(format!("a camera {camera}"))))?;
    let (picture, age, frame) = match (&table.topic, &table.file, &table.device) {
        (Some(topic), ..) => {
            let seen = unit.adapter.picture(topic).await.map_err(tool_error)?;
            let frame = seen.message["header"]["frame_id"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            let age = seen.age;
            let picture = reading(context, move || Picture::of(&seen.message, POINTS)).await?;
            (picture.map_err(|error| blind(camera, &error))?, Some(age), frame)
        }
        (None, Some(file), _) => {
            let file = file.clone();
            let read = reading(context, move || of_file(&file)).await?;
            let (picture, age) = read.map_err(|why| blind(camera, &why))?;
            (picture, age, camera.to_owned())
        }
        (None, None, Some(device)) => {
            let device = device.clone();
            // Closed when nobody waits for the picture any more: then GStreamer's process is killed.
            let (awaited, waits) = pipe_with(PipeFlags::CLOEXEC).map_err(|error| blind(camera, &error))?;
            let read = reading(context, move || of_device(&device, &awaited)).await?;
            drop(waits);
            let (picture, age) = read.map_err(|why| blind(camera, &why))?;
            (picture, Some(age), camera.to_owned())
        }
        (None, None, None) => return Err(tool_error(unit.lacks(format!("a picture of {camera}")))),
    };
    let mut output = ActionOutput::new(format!("what {camera} sees"))
        .with("camera", camera)
        .with("frame", frame)
        .with("width", picture.width)
        .with("height", picture.height)
        .with("original_width", picture.original.0)
        .with("original_height", picture.original.1);
    output = match age {
        Some(age) => output.with("age_s", (age.as_secs_f64() * 1000.0).round() / 1000.0),
        None => output.note(format!(
            "how old the picture of {camera} is is not known: the time of its file is unknown or in the future"
        )),
    };
    context
        .show(ContentKind::Image, "image/jpeg", picture.jpeg)
        .await?;
    Ok(output.into())
}

fn blind(camera: &str, why: &dyn std::fmt::Display) -> ToolError {
    ToolError::new("RobotError", format!("the camera {camera} shows nothing: {why}"))
}

/// Reads a picture on a thread that may wait and compute. One is read at a time, and one whose call has ended meanwhile counts until it
/// has been read.
async fn reading<R: Send + 'static>(
    context: &Context<Robots>,
    read: impl FnOnce() -> R + Send + 'static,
) -> Result<R, ToolError> {
    let eyes = Arc::clone(context.toolbox().eyes());
    let right = eyes
        .acquire_owned()
        .await
        .map_err(|error| ToolError::msg(error.to_string()))?;
    let read = spawn_blocking(move || {
        let read = read();
        drop(right);
        read
    });
    Ok(read.await?)
}

/// The picture of a camera of this machine, and the age that it has at most.
fn of_device(device: &str, awaited: &OwnedFd) -> Result<(Picture, Duration), String> {
    let begun = Instant::now();
    let jpeg = video::take(device, awaited)?;
    let picture = Picture::of_file(jpeg, POINTS).map_err(|error| format!("{device}: {error}"))?;
    Ok((picture, begun.elapsed()))
}

/// The picture of a file and its age, where the file's time says it.
fn of_file(file: &Path) -> Result<(Picture, Option<Duration>), String> {
    let named = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
    // A pipe does not hold the thread up, and what is looked at is what is read.
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).map_err(|error| named(&error))?;
    let mut options = std::fs::OpenOptions::new();
    let opened = options.read(true).custom_flags(flags).open(file);
    let opened = opened.map_err(|error| named(&error))?;
    let known = opened.metadata().map_err(|error| named(&error))?;
    let unfit = || named(&"expected a file of at most 64 MiB");
    if !known.is_file() || known.len() > LARGEST {
        return Err(unfit());
    }
    let age = known
        .modified()
        .ok()
        .and_then(|then| SystemTime::now().duration_since(then).ok());
    let mut bytes = Vec::new();
    // It may grow meanwhile.
    let read = opened.take(LARGEST + 1).read_to_end(&mut bytes);
    let length = read.map_err(|error| named(&error))?;
    if length as u64 > LARGEST {
        return Err(unfit());
    }
    let picture = Picture::of_file(bytes, POINTS).map_err(|error| named(&error))?;
    Ok((picture, age))
}
