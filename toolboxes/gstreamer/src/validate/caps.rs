//! Finds incompatible caps.
//!
//! The parser compares caps when it links existing pads. It does not compare pads that appear later (a demuxer's), nor
//! check an earlier link again after a later one has narrowed its caps.

use gst::prelude::*;

use super::graph::Graph;
use crate::description::LinkText;

/// Two linked elements without common caps.
pub(super) struct Never {
    pub(super) from: gst::Element,
    pub(super) to: gst::Element,
    pub(super) gives: gst::Caps,
    pub(super) takes: gst::Caps,
    /// Position of the link in the text.
    pub(super) at: Option<usize>,
}

/// The first two linked elements without common caps.
pub(super) fn never(graph: &Graph<'_>) -> Option<Never> {
    linked(graph).or_else(|| graph.description.links.iter().find_map(|link| later(graph, link)))
}

/// Checks the existing links.
fn linked(graph: &Graph<'_>) -> Option<Never> {
    graph.elements.iter().find_map(|from| {
        from.src_pads().into_iter().find_map(|pad| {
            let peer = pad.peer()?;
            let to = peer.parent_element()?;
            let takes = peer.query_caps(None);
            // Accepts anything: the source need not be queried, which would query everything before it.
            if takes.is_any() {
                return None;
            }
            let gives = pad.query_caps(None);
            // A pad with empty caps does not know them yet.
            let has_caps = !gives.is_empty() && !takes.is_empty();
            (has_caps && !gives.can_intersect(&takes)).then(|| Never {
                at: position(graph, from, &to),
                from: from.clone(),
                to,
                gives,
                takes,
            })
        })
    })
}

fn position(graph: &Graph<'_>, from: &gst::Element, to: &gst::Element) -> Option<usize> {
    let is = |endpoint, element: &gst::Element| {
        graph
            .endpoint(endpoint)
            .is_some_and(|(found, _)| found == element)
    };
    let both = graph
        .description
        .links
        .iter()
        .find(|link| is(&link.from, from) && is(&link.to, to));
    let either = || {
        graph
            .description
            .links
            .iter()
            .find(|link| is(&link.from, from) || is(&link.to, to))
    };
    both.or_else(either).map(|link| link.at)
}

/// Checks links that are made when the pad appears.
fn later(graph: &Graph<'_>, link: &LinkText) -> Option<Never> {
    let (from, pad) = graph.endpoint(&link.from)?;
    let (to, _) = graph.endpoint(&link.to)?;
    let is_linked = from.src_pads().iter().any(|pad| leads_to(pad, to));
    if is_linked {
        return None;
    }
    let templates = from.pad_template_list();
    let mut gives = gst::Caps::new_empty();
    for template in templates.iter().filter(|template| {
        template.direction() == gst::PadDirection::Src
            && template.presence() == gst::PadPresence::Sometimes
            && pad.is_none_or(|pad| could_be(template.name_template(), pad))
    }) {
        gives.merge(template.caps().clone());
    }
    if let Some(filter) = &link.caps {
        let filter = filter.parse::<gst::Caps>().ok()?;
        gives = gives.intersect(&filter);
    }
    let takes = sinks(to);
    if gives.is_empty() || takes.is_empty() || gives.can_intersect(&takes) {
        return None;
    }
    Some(Never {
        from: from.clone(),
        to: to.clone(),
        gives,
        takes,
        at: Some(link.at),
    })
}

/// Whether a pad is linked to an element, directly or through a caps filter.
fn leads_to(pad: &gst::Pad, to: &gst::Element) -> bool {
    let Some(next) = pad.peer().and_then(|peer| peer.parent_element()) else {
        return false;
    };
    next == *to
        || next
            .src_pads()
            .iter()
            .filter_map(|pad| pad.peer())
            .any(|peer| peer.parent_element().as_ref() == Some(to))
}

/// Whether a pad of the template `video_%u` can have the name `video_0`.
fn could_be(template: &str, pad: &str) -> bool {
    match template.split_once('%') {
        Some((start, _)) => pad.starts_with(start),
        None => template == pad,
    }
}

/// The caps that an element accepts: on its free pads, including what follows them, and on the pads that it can add.
fn sinks(element: &gst::Element) -> gst::Caps {
    let mut takes = gst::Caps::new_empty();
    for pad in element.sink_pads().iter().filter(|pad| !pad.is_linked()) {
        takes.merge(pad.query_caps(None));
    }
    for template in element.pad_template_list().iter().filter(|template| {
        template.direction() == gst::PadDirection::Sink && template.presence() == gst::PadPresence::Request
    }) {
        takes.merge(template.caps().clone());
    }
    takes
}
