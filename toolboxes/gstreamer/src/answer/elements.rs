//! Elements.

use std::sync::Arc;

use ovos_toolbox_sdk::prelude::*;

use crate::catalog::{CatalogError, Query, SearchResult, Sheet};
use crate::machine::Machine;
use crate::question::Search;

/// The data sheet of an element.
///
/// # Errors
/// There is none, or it cannot be made.
pub(super) fn one(machine: &Machine, name: &str) -> Result<Arc<Sheet>, ToolError> {
    machine.catalog.element(name).map_err(|error| match error {
        CatalogError::Unknown(name) => {
            if !machine.suggestions.is_fresh() {
                machine.suggestions.refresh();
            }
            let suggestion = machine.suggestions.element(&name);
            ToolError::bad_args(format!("no element '{name}'. {suggestion}"))
        }
        broken @ CatalogError::Broken { .. } => broken.into(),
    })
}

/// The elements that fit.
///
/// # Errors
/// The caps are invalid.
pub(super) fn search(machine: &Machine, search: Search) -> Result<SearchResult, ToolError> {
    let query = Query {
        words: search.words,
        class: search.class,
        caps: search.caps,
        direction: search.source.map(|source| {
            if source {
                gst::PadDirection::Src
            } else {
                gst::PadDirection::Sink
            }
        }),
        rank: search.rank,
        limit: search.limit,
    };
    machine.catalog.search(&query).map_err(ToolError::bad_args)
}
