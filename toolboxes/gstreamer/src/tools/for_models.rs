//! What models see of a tool's arguments.

use ovos_toolbox_sdk::prelude::*;

/// What a tool's `for_models` says to hide these arguments: a model does without them.
pub(super) fn hidden(arguments: &[&str]) -> Object {
    let each = arguments
        .iter()
        .map(|argument| ((*argument).to_owned(), Value::Null));
    each.collect()
}

/// What a tool's `for_models` says to leave out the texts of these arguments: their names and choices say as much.
pub(super) fn untold(arguments: &[&str]) -> Object {
    let each = arguments
        .iter()
        .map(|argument| ((*argument).to_owned(), json!({"description": null})));
    each.collect()
}
