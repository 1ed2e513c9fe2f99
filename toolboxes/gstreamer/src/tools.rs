//! The tools, one file per family.
//!
//! Owns their names, arguments and results; other modules do the work. Read [`all`].

mod board;
mod elements;
mod encoders;
mod for_models;
mod instances;
mod pipelines;
mod recordings;
mod running;
mod watching;

use ovos_toolbox_sdk::prelude::*;

use crate::toolbox::Gstreamer;

/// Every tool.
pub(crate) fn all() -> Vec<Tool<Gstreamer>> {
    let mut tools = Vec::new();
    tools.extend(board::tools());
    tools.extend(encoders::tools());
    tools.extend(elements::tools());
    tools.extend(pipelines::tools());
    tools.extend(running::tools());
    tools.extend(instances::tools());
    tools.extend(watching::tools());
    tools.extend(recordings::tools());
    tools
}
