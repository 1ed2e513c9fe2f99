//! Graphs of pipelines.
//!
//! Makes GStreamer's DOT dump without secrets. Blocks. Read [`draw`].

use gst::glib;
use gst::prelude::*;

use super::change::names;
use crate::report::Drawing;

/// The graph in the DOT language, without passphrases, passwords and similar secrets.
pub(super) fn draw(pipeline: &gst::Pipeline, caps: bool, properties: bool) -> Drawing {
    let details = match (caps, properties) {
        (_, true) => gst::DebugGraphDetails::all(),
        (true, false) => gst::DebugGraphDetails::STATES | gst::DebugGraphDetails::CAPS_DETAILS,
        (false, false) => gst::DebugGraphDetails::STATES,
    };
    let mut text = pipeline.debug_to_dot_data(details).to_string();
    let mut elements = pipeline.iterate_recurse();
    while let Ok(Some(element)) = elements.next() {
        for property in element.list_properties() {
            if let Some(secret) = secret(&element, &property) {
                text = text.replace(&secret, "***");
            }
        }
    }
    Drawing {
        dot: text,
        elements: names(pipeline),
    }
}

fn secret(element: &gst::Element, property: &glib::ParamSpec) -> Option<String> {
    let words = [
        "passphrase",
        "password",
        "passwd",
        "pw",
        "token",
        "secret",
        "key",
        "auth",
    ];
    let is_secret = property.name().split('-').any(|word| words.contains(&word));
    let readable = property.flags().contains(glib::ParamFlags::READABLE);
    if !is_secret || !readable || property.value_type() != glib::Type::STRING {
        return None;
    }
    element
        .property::<Option<String>>(property.name())
        .filter(|text| !text.is_empty())
}
