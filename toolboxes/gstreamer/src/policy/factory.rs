//! Checks of a factory, independent of property values.
//!
//! Judges a factory by its name, its metadata and the kinds of its properties. Read [`Policy::check_factory_and_kind`].

use gst::prelude::*;

use super::kind::Kind;
use super::{Policy, Wrong};

impl Policy {
    /// Checks a factory by its name and class, and by the kinds of its properties: an element with a property that
    /// gives access in an unknown way is refused whether it is set or not.
    pub(super) fn check_factory_and_kind(&self, factory: &gst::ElementFactory) -> Result<(), Wrong> {
        self.check_factory(factory)?;
        let Ok(factory) = factory.clone().load() else {
            return Ok(());
        };
        let name = factory.name();
        let reach = self.reaches.of(&factory, factory.element_type());
        let wrong = |(_, kind): &&(String, Kind)| !self.trusts(&name, *kind);
        match reach.always.iter().find(wrong) {
            Some((property, _)) => Err(Wrong::new(
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
        if self.trusts(&name, Kind::Unknown) {
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

/// Whether a muxer writes a format of many files or of a session: it opens its outputs itself, and its pad carries
/// nothing. GStreamer has no caps for such a format and uses FFmpeg's name; its long name distinguishes it from other
/// formats without caps, which are plain data.
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

/// Words in the long names of muxers that write many files or connect to a server.
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
