//! `look`: what a camera of the robot sees, as one small JPEG with its age.
//!
//! Owns where the picture is read. Nothing is subscribed while nobody looks. Read [`look`].

use std::path::Path;
use std::time::{Duration, SystemTime};

use ovos_toolbox_sdk::prelude::*;
use ovos_toolbox_sdk::tokio::task::spawn_blocking;
use ros_graph::picture::Picture;

use crate::adapter::ActionOutput;
use crate::conclude::ActionResult;
use crate::error::tool_error;
use crate::robots::Robots;
use crate::unit::Unit;

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
    let (picture, age, frame) = match (&table.topic, &table.file) {
        (Some(topic), _) => {
            let seen = unit.adapter.picture(topic).await.map_err(tool_error)?;
            let frame = seen.message["header"]["frame_id"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            let picture = spawn_blocking(move || Picture::of(&seen.message, POINTS)).await?;
            (picture.map_err(|error| blind(camera, &error))?, seen.age, frame)
        }
        (None, Some(file)) => {
            let file = file.clone();
            let name = camera.to_owned();
            let read = spawn_blocking(move || of_file(&file).map_err(|why| blind(&name, &why))).await?;
            let (picture, age) = read?;
            (picture, age, camera.to_owned())
        }
        (None, None) => return Err(tool_error(unit.lacks(format!("a picture of {camera}")))),
    };
    let output = ActionOutput::said(format!("what {camera} sees"))
        .with("camera", camera)
        .with("frame", frame)
        .with("age_s", (age.as_secs_f64() * 1000.0).round() / 1000.0)
        .with("width", picture.width)
        .with("height", picture.height)
        .with("original_width", picture.original.0)
        .with("original_height", picture.original.1);
    context
        .show(ContentKind::Image, "image/jpeg", picture.jpeg)
        .await?;
    Ok(output.into())
}

fn blind(camera: &str, why: &dyn std::fmt::Display) -> ToolError {
    ToolError::new("RobotError", format!("the camera {camera} shows nothing: {why}"))
}

fn of_file(file: &Path) -> Result<(Picture, Duration), String> {
    let named = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
    let known = std::fs::metadata(file).map_err(|error| named(&error))?;
    if !known.is_file() || known.len() > LARGEST {
        return Err(named(&"no file of at most 64 MiB"));
    }
    let age = known
        .modified()
        .ok()
        .and_then(|then| SystemTime::now().duration_since(then).ok());
    let bytes = std::fs::read(file).map_err(|error| named(&error))?;
    let picture = Picture::of_file(bytes, POINTS).map_err(|error| named(&error))?;
    Ok((picture, age.unwrap_or_default()))
}
