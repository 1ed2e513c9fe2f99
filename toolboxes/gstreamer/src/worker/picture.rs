//! Pictures from running pipelines.
//!
//! Finds a pad with uncompressed video, waits for one frame and compresses it. Does not remove or delay data. Blocks.
//! Read [`take`].

use std::path::PathBuf;
use std::sync::mpsc::sync_channel;

use gst::prelude::*;
use ovos_toolbox_sdk::prelude::*;

use crate::folder::write_new;
use crate::order::Format;
use crate::report::Picture;

/// Time limit of waiting for a frame; enough for one frame per second.
const FRAME: Duration = Duration::from_secs(5);
const COMPRESS: gst::ClockTime = gst::ClockTime::from_seconds(10);

/// Takes a picture of an element's video, or of any uncompressed video, and writes it to a new file.
///
/// # Errors
/// The element does not exist, there is no such video, no frame arrived, or the file exists or cannot be written.
pub(super) fn take(
    pipeline: &gst::Pipeline,
    element: Option<&str>,
    format: Format,
    path: PathBuf,
) -> Result<Picture, ToolError> {
    let candidates = match element {
        Some(name) => vec![pipeline.by_name(name).ok_or_else(|| {
            ToolError::bad_args(format!(
                "no element {name}; elements with video: {}",
                with_video(pipeline)
            ))
        })?],
        None => all(pipeline),
    };
    let last = candidates
        .iter()
        .find_map(|element| Some((element, last_sample(element)?)));
    let (element, sample) = match last {
        Some(found) => found,
        None => {
            let (element, pad) = candidates
                .iter()
                .find_map(|element| Some((element, raw_pad(element)?)))
                .ok_or_else(|| {
                    ToolError::bad_args(format!(
                        "{} has no uncompressed video; elements that have: {}",
                        element.unwrap_or("this pipeline"),
                        with_video(pipeline)
                    ))
                })?;
            if pipeline.current_state() == gst::State::Paused {
                return Err(ToolError::busy(
                    "the pipeline is paused, so no picture comes: use resume_pipeline first",
                ));
            }
            (element, next_sample(&pad)?)
        }
    };
    let caps = gst::Caps::new_empty_simple(format.mime_type());
    let compressed = gst_video::convert_sample(&sample, &caps, Some(COMPRESS))
        .map_err(|error| ToolError::new("PipelineError", format!("cannot compress the picture: {error}")))?;
    let size = |name| {
        let caps = compressed.caps()?;
        let value = caps.structure(0)?.get::<i32>(name).ok()?;
        u32::try_from(value).ok()
    };
    let buffer = compressed
        .buffer()
        .ok_or_else(|| ToolError::msg("the compressed picture is empty"))?;
    let map = buffer.map_readable()?;
    write_new(&path, map.as_slice())?;
    Ok(Picture {
        path,
        width: size("width").unwrap_or(0),
        height: size("height").unwrap_or(0),
        element: element.name().to_string(),
    })
}

fn all(pipeline: &gst::Pipeline) -> Vec<gst::Element> {
    let mut found = Vec::new();
    let mut elements = pipeline.iterate_recurse();
    while let Ok(Some(element)) = elements.next() {
        found.push(element);
    }
    found
}

fn with_video(pipeline: &gst::Pipeline) -> String {
    let mut names: Vec<String> = all(pipeline)
        .iter()
        .filter(|element| raw_pad(element).is_some())
        .map(|element| element.name().to_string())
        .collect();
    names.sort_unstable();
    if names.is_empty() {
        "no element".to_owned()
    } else {
        names.join(", ")
    }
}

fn is_raw(caps: &gst::CapsRef) -> bool {
    caps.structure(0)
        .is_some_and(|structure| structure.name() == "video/x-raw")
}

/// The last frame of a sink, which is available even while the pipeline is paused.
fn last_sample(element: &gst::Element) -> Option<gst::Sample> {
    let property = element.find_property("last-sample")?;
    if property.value_type() != gst::Sample::static_type() {
        return None;
    }
    let sample = element.property::<Option<gst::Sample>>("last-sample")?;
    (sample.buffer().is_some() && sample.caps().is_some_and(is_raw)).then_some(sample)
}

fn raw_pad(element: &gst::Element) -> Option<gst::Pad> {
    let raw = |pad: &gst::Pad| pad.current_caps().is_some_and(|caps| is_raw(&caps));
    let (sources, sinks) = (element.src_pads(), element.sink_pads());
    sources.into_iter().chain(sinks).find(raw)
}

fn next_sample(pad: &gst::Pad) -> Result<gst::Sample, ToolError> {
    // The first frame suffices; the probe is removed with it.
    let (sender, frames) = sync_channel(1);
    let probe = pad.add_probe(gst::PadProbeType::BUFFER, move |pad, info| {
        let (Some(buffer), Some(caps)) = (info.buffer(), pad.current_caps()) else {
            return gst::PadProbeReturn::Ok;
        };
        let sample = gst::Sample::builder().buffer(buffer).caps(&caps).build();
        _ = sender.try_send(sample);
        gst::PadProbeReturn::Remove
    });
    frames.recv_timeout(FRAME).map_err(|_| {
        if let Some(probe) = probe {
            pad.remove_probe(probe);
        }
        ToolError::new(
            "TimeoutError",
            format!("no video frame within {} s", FRAME.as_secs()),
        )
    })
}
