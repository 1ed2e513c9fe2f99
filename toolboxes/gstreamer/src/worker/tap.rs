//! The encoded streams of a pipeline, and the files that hold them.
//!
//! Read [`taps`] and [`container`].

use std::path::Path;

use gst::prelude::*;
use ovos_toolbox_sdk::prelude::ToolError;

/// What may be recorded as it is: the caps, and what has to parse it before a muxer.
const ENCODED: [(&str, Option<&str>); 11] = [
    ("video/x-h264", Some("h264parse")),
    ("video/x-h265", Some("h265parse")),
    ("video/x-vp8", None),
    ("video/x-vp9", Some("vp9parse")),
    ("video/x-av1", Some("av1parse")),
    ("image/jpeg", None),
    ("audio/mpeg,mpegversion=1", Some("mpegaudioparse")),
    ("audio/mpeg,mpegversion={2,4}", Some("aacparse")),
    ("audio/x-opus", Some("opusparse")),
    ("audio/x-vorbis", None),
    ("audio/x-flac", Some("flacparse")),
];

/// The containers: how a file's name ends, and the muxer.
const CONTAINERS: [(&str, &str); 5] = [
    ("mkv", "matroskamux"),
    ("mp4", "mp4mux"),
    ("mov", "qtmux"),
    ("ts", "mpegtsmux"),
    ("webm", "webmmux"),
];

/// A place in a pipeline where an encoded stream comes out.
pub(super) struct Tap {
    pub(super) pad: gst::Pad,
    pub(super) caps: gst::Caps,
    pub(super) parser: Option<&'static str>,
}

impl Tap {
    pub(super) fn is_sound(&self) -> bool {
        self.name().starts_with("audio")
    }

    /// The kind of stream, such as `video/x-h264`.
    pub(super) fn name(&self) -> &str {
        self.caps.structure(0).map_or("", |caps| caps.name().as_str())
    }
}

/// Where the encoded streams are, at most one of video and one of sound.
pub(super) fn taps(pipeline: &gst::Pipeline) -> Vec<Tap> {
    let mut found: Vec<Tap> = Vec::new();
    let mut elements = pipeline.iterate_recurse();
    while let Ok(Some(element)) = elements.next() {
        let klass = element
            .factory()
            .and_then(|factory| factory.metadata("klass").map(str::to_owned));
        if element.parent().as_ref() != Some(pipeline.upcast_ref())
            || klass.is_none_or(|klass| !klass.contains("Encoder"))
        {
            continue;
        }
        for pad in element.src_pads().into_iter().filter(gst::Pad::is_linked) {
            let Some(caps) = pad.current_caps() else { continue };
            let is_known = |known: &str| {
                known
                    .parse::<gst::Caps>()
                    .is_ok_and(|known| known.can_intersect(&caps))
            };
            let Some((_, parser)) = ENCODED.into_iter().find(|(known, _)| is_known(known)) else {
                continue;
            };
            let tap = Tap { pad, caps, parser };
            if found.iter().all(|other| other.is_sound() != tap.is_sound()) {
                found.push(tap);
            }
        }
    }
    found
}

/// How a file's name ends, and the muxer for it.
pub(super) fn container(path: &Path) -> Result<(&'static str, &'static str), ToolError> {
    let extension = path.extension().and_then(|extension| extension.to_str());
    let container = CONTAINERS
        .into_iter()
        .find(|(known, _)| Some(*known) == extension);
    container.ok_or_else(|| {
        let name = path.display();
        ToolError::bad_args(format!(
            "{name} does not name a container: expected a file name that ends in .mkv, .mp4, .mov, .ts or .webm"
        ))
    })
}

/// The error for a stream that a container does not hold.
pub(super) fn misfit(extension: &str, tap: &Tap) -> ToolError {
    let mut caps = tap.caps.clone();
    for structure in caps.make_mut().iter_mut() {
        // The parser converts them.
        structure.remove_fields(["stream-format", "alignment", "framed", "parsed"]);
    }
    let fits = |muxer| gst::ElementFactory::find(muxer).is_some_and(|muxer| muxer.can_sink_any_caps(&caps));
    let others: Vec<String> = CONTAINERS
        .into_iter()
        .filter(|(other, muxer)| *other != extension && fits(muxer))
        .map(|(other, _)| format!(".{other}"))
        .collect();
    ToolError::bad_args(format!(
        "a .{extension} file does not hold {}: expected a file name that ends in {}",
        tap.name(),
        others.join(" or ")
    ))
}
