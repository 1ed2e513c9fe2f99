//! Elements without the address that they need, and addresses that are none.
//!
//! The parser accepts them; the pipeline fails as soon as it starts. Read [`wrong`].

use gst::glib;
use gst::prelude::*;

use super::graph::{Graph, class, factory_name};
use crate::suggest::nearest;

/// An element that cannot start with the address that it has.
pub(super) struct WrongAddress {
    /// What is wrong.
    pub(super) error: String,
    /// What to do.
    pub(super) suggestion: String,
    /// The place of the address in the text, or that of its element.
    pub(super) at: Option<usize>,
}

/// The properties that say where data comes from or goes to.
const ADDRESSES: [&str; 3] = ["location", "uri", "socket-path"];

/// Elements that need no address: other properties say the same, or the file is an extra.
const WITHOUT: [&str; 3] = ["rfbsrc", "sdpsrc", "videocodectestsink"];

/// The first wrong address, in the order of the text.
pub(super) fn wrong(graph: &Graph<'_>) -> Option<WrongAddress> {
    graph.elements.iter().find_map(|element| {
        let text = graph.text(element)?;
        let name = needed(element)?;
        let address = element.property::<Option<String>>(name).unwrap_or_default();
        let (error, suggestion) = match name {
            _ if !address.is_empty() => unreadable(element, &text.factory, name, &address)?,
            "uri" => lacking(&text.factory, "uri=file:///folder/clip.mp4, or another address"),
            name => lacking(
                &text.factory,
                &format!("{name}=/folder/file, or what else it reads or writes"),
            ),
        };
        let set = text.properties.iter().find(|property| property.name == name);
        Some(WrongAddress {
            error,
            suggestion,
            at: Some(set.map_or(text.at, |set| set.at)),
        })
    })
}

/// The property that has the address of a source or sink.
fn needed(element: &gst::Element) -> Option<&'static str> {
    let templates = element.pad_template_list();
    let has = |direction| templates.iter().any(|pad| pad.direction() == direction);
    let inside = has(gst::PadDirection::Src) && has(gst::PadDirection::Sink);
    if inside || WITHOUT.contains(&factory_name(element).as_str()) {
        return None;
    }
    let both = glib::ParamFlags::READABLE | glib::ParamFlags::WRITABLE;
    ADDRESSES.into_iter().find(|name| {
        element
            .find_property(name)
            .is_some_and(|spec| spec.flags().contains(both) && spec.value_type() == glib::Type::STRING)
    })
}

fn lacking(factory: &str, example: &str) -> (String, String) {
    let name = example.split('=').next().unwrap_or_default();
    (format!("'{factory}' has no {name}"), format!("write {example}"))
}

/// Why an element cannot use an address, and what to do.
fn unreadable(
    element: &gst::Element,
    factory: &str,
    property: &str,
    address: &str,
) -> Option<(String, String)> {
    if property != "uri" {
        return None;
    }
    let Some(scheme) = scheme(address) else {
        let path = if address.starts_with('/') {
            address
        } else {
            "/folder/file"
        };
        return Some((
            format!("the uri '{address}' of '{factory}' is a path"),
            format!("write uri=file://{path}"),
        ));
    };
    let own = element
        .factory()
        .map(|factory| factory.uri_protocols())
        .unwrap_or_default();
    let players = if own.is_empty()
        && (class(element).contains("Player") || factory_name(element).starts_with("uri"))
    {
        // It looks for a source by itself.
        readable()
    } else {
        own.iter().map(|scheme| scheme.to_ascii_lowercase()).collect()
    };
    if players.is_empty() || players.contains(&scheme) {
        return None;
    }
    let suggestion = match nearest(&scheme, players.clone()) {
        Some(near) => format!("Did you mean '{near}:'?"),
        None => format!("it takes {}", players.join(", ")),
    };
    let error = format!("no element of this machine takes '{scheme}:' for '{factory}'");
    Some((error, suggestion))
}

/// The schemes for which this machine has a source.
fn readable() -> Vec<String> {
    let sources = gst::ElementFactory::factories_with_type(gst::ElementFactoryType::SRC, gst::Rank::NONE);
    let mut schemes: Vec<String> = sources
        .iter()
        .filter(|factory| factory.uri_type() == gst::URIType::Src)
        .flat_map(gst::ElementFactory::uri_protocols)
        .map(|scheme| scheme.to_ascii_lowercase())
        .collect();
    schemes.sort_unstable();
    schemes.dedup();
    schemes
}

/// The scheme of a URI, in small letters; `None` if the text is none.
fn scheme(text: &str) -> Option<String> {
    let (scheme, _) = text.split_once(':')?;
    let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"+.-".contains(&byte));
    is_scheme.then(|| scheme.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is refused without an address does not start without one: GStreamer is asked.
    #[test]
    fn an_element_without_its_address_does_not_start() {
        gst::init().unwrap();
        let (mut refused, mut starts) = (0, Vec::new());
        for feature in gst::Registry::get().features(gst::ElementFactory::static_type()) {
            let Ok(element) = feature
                .downcast::<gst::ElementFactory>()
                .unwrap()
                .create()
                .build()
            else {
                continue;
            };
            let empty = |name| {
                element
                    .property::<Option<String>>(name)
                    .is_none_or(|text| text.is_empty())
            };
            if !needed(&element).is_some_and(empty) {
                continue;
            }
            refused += 1;
            let bus = gst::Bus::new();
            element.set_bus(Some(&bus));
            let failed = element.set_state(gst::State::Playing).is_err()
                || bus
                    .timed_pop_filtered(gst::ClockTime::from_seconds(2), &[gst::MessageType::Error])
                    .is_some();
            if !failed {
                starts.push(factory_name(&element));
            }
            element.set_state(gst::State::Null).unwrap();
        }
        assert!(refused > 5, "{refused}");
        // These two fail with the first data only.
        starts.retain(|name| !["souphttpclientsink", "splitmuxsink"].contains(&name.as_str()));
        assert!(starts.is_empty(), "{starts:?}");
    }
}
