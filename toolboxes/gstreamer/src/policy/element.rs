//! What the policy asks of an element: its names, its role, and the port beside a host.

use gst::glib;
use gst::prelude::*;

use super::access::Role;

/// The name of an element in refusals: its factory, as in the text.
pub(super) fn element_name(element: &gst::Element) -> String {
    element.factory().map_or_else(
        || element.name().to_string(),
        |factory| factory.name().to_string(),
    )
}

/// The factory's name; empty if there is none.
pub(super) fn factory_name(element: &gst::Element) -> String {
    element
        .factory()
        .map_or_else(String::new, |factory| factory.name().to_string())
}

pub(super) fn role_of(element: &gst::Element) -> Role {
    element.factory().as_ref().map_or(Role::Other, Role::of)
}

/// The port that belongs to a host: `port` for `host`, `bind-port` for `bind-address`.
pub(super) fn port_of(element: &gst::Element, property: &str) -> Option<u16> {
    let candidates: &[&str] = match property.split_once('-') {
        Some(("bind", _)) => &["bind-port"],
        _ if property == "localaddress" => &["localport"],
        _ => &["port"],
    };
    candidates.iter().find_map(|name| {
        let spec = element.find_property(name)?;
        if !spec.flags().contains(glib::ParamFlags::READABLE) {
            return None;
        }
        let value = element.property_value(name);
        let port = value
            .get::<i32>()
            .ok()
            .and_then(|port| u16::try_from(port).ok())
            .or_else(|| value.get::<u32>().ok().and_then(|port| u16::try_from(port).ok()))?;
        (port > 0).then_some(port)
    })
}
