//! What an element may be, whatever its properties say.
//!
//! Owns the judgement of a factory by its name, by what it says it does, and by the kinds of its properties. Read
//! [`Policy::check_factory_and_kind`].

use gst::prelude::*;

use super::{Policy, Wrong};

impl Policy {
    /// Checks a factory by its name and class, and by the kinds of its properties: an element with one that reaches out
    /// in a way that is not understood is refused whether it is set or not.
    pub(super) fn check_factory_and_kind(&self, factory: &gst::ElementFactory) -> Result<(), Wrong> {
        self.check_factory(factory)?;
        if self.allowed.contains(factory.name().as_str()) {
            return Ok(());
        }
        let Ok(factory) = factory.clone().load() else {
            return Ok(());
        };
        match &self.reaches.of(&factory, factory.element_type()).always {
            Some(property) => Err(Wrong::new(
                format!("its property {property} is not understood"),
                "allow_elements",
            )),
            None => Ok(()),
        }
    }

    fn check_factory(&self, factory: &gst::ElementFactory) -> Result<(), Wrong> {
        let name = factory.name();
        if self.denied.contains(name.as_str()) {
            return Err(Wrong::new("it is listed", "deny_elements"));
        }
        if self.allowed.contains(name.as_str()) {
            return Ok(());
        }
        let klass = factory.metadata("klass").unwrap_or_default();
        if klass.contains("Adaptive") || klass.contains("Editing") {
            return Err(Wrong::new(
                "it opens by itself what the data names, files included",
                "allow_elements",
            ));
        }
        if klass.contains("Muxer") && writes_by_itself(factory) {
            return Err(Wrong::new(
                "its format writes files or opens connections by itself",
                "allow_elements",
            ));
        }
        Ok(())
    }
}

/// Whether a muxer makes a format of many files or of a session: it opens by itself what it writes to, and what comes out
/// of its pad is nothing. GStreamer has no caps for such a format and calls it by its name in FFmpeg; of the many others
/// without caps, which are mere data, it differs by what it says it is.
fn writes_by_itself(factory: &gst::ElementFactory) -> bool {
    let says = factory.metadata("long-name").unwrap_or_default().to_lowercase();
    let named = says
        .split(|c: char| !c.is_ascii_alphanumeric())
        .any(|word| MANY_FILES.contains(&word));
    named
        && factory.static_pad_templates().iter().any(|template| {
            let caps = template.caps();
            template.direction() == gst::PadDirection::Src
                && caps
                    .iter()
                    .any(|structure| structure.name().starts_with("application/x-gst-av-"))
        })
}

/// What a muxer is called that writes many files, or speaks to a server.
const MANY_FILES: &[&str] = &[
    "streaming",
    "dash",
    "hls",
    "hds",
    "rtsp",
    "rtp",
    "sap",
    "segment",
    "segments",
    "chunk",
    "manifest",
    "tee",
    "fifo",
    "sequence",
    "device",
];
