//! The tools, one file per family.
//!
//! Owns their names, arguments and results; other modules do the work. Read [`all`].

mod board;
mod elements;
mod encoders;
mod instances;
mod pipelines;
mod running;
mod watching;

use std::sync::Arc;

use ovos_toolbox_sdk::prelude::*;

use crate::{Gstreamer, Machine};

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
    tools
}

/// What a tool's `for_models` says to hide these arguments: a model does without them.
fn hidden(arguments: &[&str]) -> Object {
    let each = arguments
        .iter()
        .map(|argument| ((*argument).to_owned(), Value::Null));
    each.collect()
}

/// Runs `look` on a blocking thread.
///
/// # Cancel safety
/// When dropped, `look` continues and its result is discarded.
async fn look<R, F>(context: &Context<Gstreamer>, look: F) -> Result<R, ToolError>
where
    R: Send + 'static,
    F: FnOnce(&Machine) -> R + Send + 'static,
{
    let machine = Arc::clone(&context.toolbox().machine);
    Ok(tokio::task::spawn_blocking(move || look(&machine)).await?)
}

/// Runs a query of about a millisecond in place, because switching threads takes longer.
fn glance<R>(context: &Context<Gstreamer>, glance: impl FnOnce(&Machine) -> R) -> R {
    tokio::task::block_in_place(|| glance(&context.toolbox().machine))
}
