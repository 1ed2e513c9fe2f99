//! Pads that nothing is linked to.
//!
//! The parser accepts them; the pipeline fails as soon as data reaches one, or waits for data forever. Read [`ends`].

use gst::prelude::*;

use super::graph::{Graph, class, factory_name};
use crate::description::Endpoint;

/// An element that is not linked as it has to be.
pub(super) struct OpenEnd {
    /// What is wrong.
    pub(super) error: String,
    /// What to do.
    pub(super) suggestion: String,
    /// The element, as it is called in the pipeline.
    pub(super) element: gst::Element,
    /// Its place in the text, or that of the missing `!`.
    pub(super) at: Option<usize>,
    /// Whether the rest of the pipeline runs all the same: a tee goes on with its other branches.
    pub(super) runs: bool,
}

/// The open ends, in the order of the text.
pub(super) fn ends(graph: &Graph<'_>) -> Vec<OpenEnd> {
    let described = &graph.description.elements;
    let of_text = |index: usize| graph.endpoint_element(index);
    let mut found = Vec::new();
    for index in 0..described.len() {
        let Some(element) = of_text(index) else { continue };
        let name = &described[index].factory;
        let starved = lacks(graph, index, element, gst::PadDirection::Sink);
        if lacks(graph, index, element, gst::PadDirection::Src) {
            // `a b`: the next element waits for what this one gives.
            let next = index + 1;
            let waits = of_text(next).filter(|next_element| {
                let follows = !graph
                    .description
                    .links
                    .iter()
                    .any(|link| link.to == Endpoint::Element(next, None));
                follows && lacks(graph, next, next_element, gst::PadDirection::Sink)
            });
            found.push(OpenEnd {
                error: format!("the output of '{name}' goes nowhere"),
                suggestion: match waits {
                    Some(_) => format!(
                        "is a `!` missing between '{name}' and '{}'?",
                        described[next].factory
                    ),
                    None => format!("put `!` and an element behind '{name}', such as a sink"),
                },
                element: element.clone(),
                at: Some(described[if waits.is_some() { next } else { index }].at),
                runs: behind_tee(element),
            });
        } else if starved {
            let named = described
                .iter()
                .enumerate()
                .find(|(other, text)| *other < index && text.factory == *name);
            found.push(OpenEnd {
                error: format!("nothing flows into '{name}'"),
                suggestion: match named {
                    // A second `tee` instead of the first one's name.
                    Some((first, _)) if name == "tee" => match graph.description.given_name(first) {
                        Some(called) => {
                            format!("if the first tee is meant, write `{called}.` in place of '{name}'")
                        }
                        None => {
                            "if the first tee is meant, give it a name (`tee name=t`) and write `t.` here"
                                .to_owned()
                        }
                    },
                    _ => format!("put a source and `!` before '{name}'"),
                },
                element: element.clone(),
                at: Some(described[index].at),
                runs: false,
            });
        }
    }
    found
}

/// Whether an element has pads of a direction and none of them is linked, nor will be.
fn lacks(graph: &Graph<'_>, index: usize, element: &gst::Element, direction: gst::PadDirection) -> bool {
    let names = graph.description.given_name(index);
    let is = |endpoint: &Endpoint| match endpoint {
        Endpoint::Element(other, _) => *other == index,
        Endpoint::Reference(name, _) => names == Some(name.as_str()),
    };
    let described = graph.description.links.iter().any(|link| match direction {
        gst::PadDirection::Src => is(&link.from),
        _ => is(&link.to),
    });
    let pads = match direction {
        gst::PadDirection::Src => element.src_pads(),
        _ => element.sink_pads(),
    };
    if described || pads.iter().any(gst::Pad::is_linked) {
        return false;
    }
    if !pads.is_empty() {
        return true;
    }
    // Pads that appear later: what a demuxer finds, what a muxer or tee is asked for.
    let kind = class(element);
    let says = |words: &[&str]| kind.split('/').any(|part| words.contains(&part));
    let opens = match direction {
        gst::PadDirection::Src => {
            says(&["Demuxer", "Decoder", "Source", "Parser"]) || element.type_().name() == "GstTee"
        }
        _ => says(&["Muxer"]),
    };
    let later = element
        .pad_template_list()
        .iter()
        .any(|template| template.direction() == direction);
    opens && later && (factory_name(element) == "rtspsrc" || !says(&["Player", "Network"]))
}

/// Whether the data comes from a branch of a tee.
fn behind_tee(element: &gst::Element) -> bool {
    let mut at = element.clone();
    // A limit for loops; no real pipeline is this long.
    for _ in 0..256 {
        let before = at
            .sink_pads()
            .first()
            .and_then(|pad| pad.peer()?.parent_element());
        let Some(before) = before else { return false };
        if before.type_().name() == "GstTee" {
            return before.src_pads().iter().filter(|pad| pad.is_linked()).count() > 1;
        }
        at = before;
    }
    false
}
