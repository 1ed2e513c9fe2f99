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

use ovos_toolbox_sdk::prelude::*;

use crate::judge::Answered;
use crate::question::Question;
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
    tools
}

/// What a tool's `for_models` says to hide these arguments: a model does without them.
fn hidden(arguments: &[&str]) -> Object {
    let each = arguments
        .iter()
        .map(|argument| ((*argument).to_owned(), Value::Null));
    each.collect()
}

/// Asks the judge.
///
/// # Cancel safety
/// When dropped, the answer is discarded.
async fn ask<T>(context: &Context<Gstreamer>, question: Question) -> Result<Answered<T>, ToolError> {
    let toolbox = context.toolbox();
    toolbox.judge.ask(question, toolbox.instances.holders()).await
}
