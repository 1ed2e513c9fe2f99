//! Keeps the libraries of network protocols initialised.
//!
//! The first element of such a library initialises it and the last one ends it (SRT: with a thread), which takes longer
//! than making the element. This keeps one element of each such factory that was part of a valid pipeline, in NULL
//! state, with nothing set. Read [`Spares::keep`].

use std::collections::HashMap;

use parking_lot::Mutex;

use super::graph::{class, factory_name};

/// Kept elements, by their factory.
#[derive(Default)]
pub(crate) struct Spares {
    kept: Mutex<HashMap<String, gst::Element>>,
}

/// Greatest number of kept elements: there are hardly more network factories, and each element takes some kilobytes.
const MOST: usize = 32;

impl Spares {
    /// Keeps one element of each network factory.
    pub(super) fn keep(&self, elements: &[gst::Element]) {
        let network = |element: &&gst::Element| class(element).split('/').any(|part| part == "Network");
        for element in elements.iter().filter(network) {
            let name = factory_name(element);
            let mut kept = self.kept.lock();
            if kept.len() >= MOST || kept.contains_key(&name) {
                continue;
            }
            if let Ok(spare) = gst::ElementFactory::make(&name).build() {
                kept.insert(name, spare);
            }
        }
    }
}
