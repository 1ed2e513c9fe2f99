//! The headers of H.264 and H.265 streams, kept from their beginning.
//!
//! Many encoders send them once, before the first picture (`v4l2h264enc` of a Raspberry Pi and `x265enc` do). A recording that begins
//! later is unreadable without them. Read [`Headers::of`].

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use gst::prelude::*;

/// How many buffers may come before the one with the headers.
const LATEST: u32 = 4;

/// The headers of the streams of a pipeline, by the pad of the encoder.
#[derive(Default)]
pub(super) struct Headers(Vec<(gst::Pad, Arc<OnceLock<Vec<u8>>>)>);

impl Headers {
    /// Listens to the encoders of a pipeline that has not begun to play.
    pub(super) fn of(pipeline: &gst::Pipeline) -> Self {
        let mut streams = Vec::new();
        let mut elements = pipeline.iterate_recurse();
        while let Ok(Some(element)) = elements.next() {
            let is_encoder = element
                .factory()
                .is_some_and(|factory| factory.has_type(gst::ElementFactoryType::VIDEO_ENCODER));
            for pad in element.src_pads().into_iter().filter(|_| is_encoder) {
                let kept = Arc::<OnceLock<Vec<u8>>>::default();
                let (keep, seen) = (Arc::clone(&kept), AtomicU32::new(0));
                pad.add_probe(gst::PadProbeType::BUFFER, move |pad, info| {
                    let found = pad
                        .current_caps()
                        .zip(info.buffer())
                        .map(|(caps, buffer)| in_buffer(&caps, buffer))
                        .unwrap_or_default();
                    if found.is_empty() && seen.fetch_add(1, Ordering::Relaxed) < LATEST {
                        return gst::PadProbeReturn::Ok;
                    }
                    // It is set once: the probe is removed.
                    _ = keep.set(found);
                    gst::PadProbeReturn::Remove
                });
                streams.push((pad, kept));
            }
        }
        Self(streams)
    }

    /// The headers of the stream that comes out of a pad; empty if it has none of its own.
    pub(super) fn from(&self, pad: &gst::Pad) -> Vec<u8> {
        let kept = self.0.iter().find(|(other, _)| other == pad);
        kept.and_then(|(_, kept)| kept.get()).cloned().unwrap_or_default()
    }
}

/// Puts headers before a buffer that has none.
pub(super) fn prepend(headers: &[u8], caps: &gst::Caps, buffer: &mut gst::Buffer) {
    if !headers.is_empty() && in_buffer(caps, buffer).is_empty() {
        let headers = gst::Memory::from_slice(headers.to_vec());
        buffer.make_mut().prepend_memory(headers);
    }
}

/// The headers in a buffer.
fn in_buffer(caps: &gst::Caps, buffer: &gst::Buffer) -> Vec<u8> {
    match (caps.structure(0), buffer.map_readable()) {
        (Some(caps), Ok(data)) => parameter_sets(caps.name(), &data),
        _ => Vec::new(),
    }
}

/// The parameter sets in a byte stream, with their start codes (H.264 annex B, 7.4.1: types 7 and 8; H.265 annex B, 7.4.2.2: types
/// 32 to 34).
fn parameter_sets(media_type: &str, data: &[u8]) -> Vec<u8> {
    let is_header = |first: u8| match media_type {
        "video/x-h264" => matches!(first & 0x1f, 7 | 8),
        "video/x-h265" => matches!((first >> 1) & 0x3f, 32..=34),
        _ => false,
    };
    let starts: Vec<usize> = (0..data.len().saturating_sub(3))
        .filter(|at| data[*at..].starts_with(&[0, 0, 1]))
        .collect();
    let mut sets = Vec::new();
    for (number, start) in starts.iter().enumerate() {
        let end = starts.get(number + 1).copied().unwrap_or(data.len());
        if is_header(data[start + 3]) {
            sets.extend_from_slice(&data[*start..end]);
        }
    }
    sets
}

#[cfg(test)]
mod tests {
    use super::parameter_sets;

    #[test]
    fn parameter_sets_are_found_between_start_codes() {
        for (media_type, data, expected) in [
            (
                "video/x-h264",
                &b"\0\0\0\x01\x67ab\0\0\x01\x68c\0\0\x01\x65pic"[..],
                &b"\0\0\x01\x67ab\0\0\x01\x68c"[..],
            ),
            ("video/x-h264", b"\0\0\x01\x41pic", b""),
            (
                "video/x-h265",
                b"\0\0\x01\x40\x01v\0\0\x01\x42\x01s\0\0\x01\x44\x01p\0\0\x01\x26\x01i",
                b"\0\0\x01\x40\x01v\0\0\x01\x42\x01s\0\0\x01\x44\x01p",
            ),
            ("video/x-vp8", b"\0\0\x01\x67ab", b""),
            ("video/x-h264", b"\0\0\x01", b""),
            ("video/x-h264", b"", b""),
        ] {
            assert_eq!(
                parameter_sets(media_type, data),
                expected,
                "{media_type} {data:?}"
            );
        }
    }
}
