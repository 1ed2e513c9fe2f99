//! The parsed pipeline together with its text.

use gst::prelude::*;

use crate::description::{Description, ElementText, Endpoint};

/// The elements of a pipeline, in the order of the text.
pub(super) struct Graph<'a> {
    pub(super) description: &'a Description,
    /// Every element except plain bins; includes caps filters.
    pub(super) elements: Vec<gst::Element>,
    /// Pairs of an element's index in the text and in `elements`, for every element of the text except bins. Empty if one of them
    /// has no match.
    matched: Vec<(usize, usize)>,
}

impl<'a> Graph<'a> {
    pub(super) fn of(pipeline: &gst::Pipeline, description: &'a Description) -> Self {
        let mut elements = Vec::new();
        if factory_name(pipeline.upcast_ref()) == "pipeline" {
            collect(pipeline.upcast_ref(), &mut elements);
        } else {
            // playbin is a pipeline itself, with its own children.
            elements.push(pipeline.clone().upcast());
        }
        let matched = match_up(&elements, description);
        Self {
            description,
            elements,
            matched,
        }
    }

    /// The factories of the elements in the text, in order.
    pub(super) fn factories(&self) -> Vec<String> {
        let is_in_text = |index: usize| {
            factory_name(&self.elements[index]) != "capsfilter"
                || self.matched.iter().any(|(_, element)| *element == index)
        };
        (0..self.elements.len())
            .filter(|index| is_in_text(*index))
            .map(|index| factory_name(&self.elements[index]))
            .collect()
    }

    /// The text of an element.
    pub(super) fn text(&self, element: &gst::Element) -> Option<&'a ElementText> {
        let (text, _) = self
            .matched
            .iter()
            .find(|(_, index)| self.elements[*index] == *element)?;
        self.description.elements.get(*text)
    }

    /// The element that was made from the element at this index of the text.
    pub(super) fn endpoint_element(&self, text: usize) -> Option<&gst::Element> {
        let (_, index) = self.matched.iter().find(|(matched, _)| *matched == text)?;
        Some(&self.elements[*index])
    }

    /// The element at an end of a link, and the pad if named.
    pub(super) fn endpoint(&self, endpoint: &'a Endpoint) -> Option<(&gst::Element, Option<&'a str>)> {
        let (element, pad) = match endpoint {
            Endpoint::Element(text, pad) => {
                let (_, index) = self.matched.iter().find(|(matched, _)| matched == text)?;
                (&self.elements[*index], pad)
            }
            Endpoint::Reference(name, pad) => {
                let element = self
                    .elements
                    .iter()
                    .find(|element| element.name() == name.as_str())?;
                (element, pad)
            }
        };
        Some((element, pad.as_deref()))
    }
}

/// Collects the elements of a bin in the order of the text. The list is read backwards, because the parser puts each new element
/// at its front.
fn collect(bin: &gst::Bin, elements: &mut Vec<gst::Element>) {
    for child in bin.children().into_iter().rev() {
        match child.downcast::<gst::Bin>() {
            Ok(bin) if factory_name(bin.upcast_ref()) == "bin" => collect(&bin, elements),
            Ok(bin) => elements.push(bin.upcast()),
            Err(element) => elements.push(element),
        }
    }
}

/// The name of an element's factory, as the text has it; empty if the element has none.
pub(super) fn factory_name(element: &gst::Element) -> String {
    element
        .factory()
        .map_or_else(String::new, |factory| factory.name().to_string())
}

/// The class of an element, such as `Codec/Encoder/Video`.
pub(super) fn class(element: &gst::Element) -> String {
    element
        .factory()
        .map_or_else(String::new, |factory| factory.klass().to_owned())
}

/// Finds the element that was made from each element of the text. Both lists are in the order of the text, but their indexes
/// differ: the parser adds caps filters, and the text lists a bin beside its elements.
fn match_up(elements: &[gst::Element], description: &Description) -> Vec<(usize, usize)> {
    let mut matched: Vec<(usize, usize)> = Vec::new();
    for (text_index, text) in description.elements.iter().enumerate() {
        if text.factory == "bin" {
            continue;
        }
        let fits = |index: &usize| {
            let element = &elements[*index];
            let free = !matched.iter().any(|(_, taken)| taken == index);
            let name = description.given_name(text_index);
            free && (text.is_address || factory_name(element) == text.factory)
                && match name {
                    Some(name) => element.name() == name,
                    None => true,
                }
        };
        let Some(index) = (0..elements.len()).find(fits) else {
            // A partial match would point at the wrong element.
            return Vec::new();
        };
        matched.push((text_index, index));
    }
    matched
}
