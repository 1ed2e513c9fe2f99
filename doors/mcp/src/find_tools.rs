//! `find_tools` and `call_tool` in the form of the protocol.

use std::sync::Arc;

use door::find::{self, CALL_TOOL, CallTool, FIND_TOOLS};
use door::{Answer, Finder};
use ovos_toolbox_wire::{FailureKind, Object};
use rmcp::model::{CallToolRequestParams, CallToolResult, Tool};
use serde_json::json;

use crate::answer;

/// The definition of `find_tools` for clients, without annotations.
pub(crate) fn find_tools() -> Tool {
    let (description, schema) = find::find_tools();
    Tool::new(FIND_TOOLS, description, Arc::new(schema))
}

/// The definition of `call_tool` for clients, without annotations.
pub(crate) fn call_tool() -> Tool {
    let (description, schema) = find::call_tool();
    Tool::new(CALL_TOOL, description, Arc::new(schema))
}

/// The answer to `find_tools`.
pub(crate) fn answer_find(finder: &Finder, arguments: &Object, budget: usize) -> CallToolResult {
    match finder.find(arguments, budget) {
        Ok(found) => answer::result(Answer::success(&found.to_string(), found)),
        Err(why) => refused(FailureKind::ValueError, &why),
    }
}

/// Makes of a call of `call_tool` the call that it stands for.
///
/// # Errors
/// The result for the client where the arguments name no tool.
pub(crate) fn called_tool(
    mut request: CallToolRequestParams,
) -> Result<CallToolRequestParams, Box<CallToolResult>> {
    let inner = CallTool::read(&request.arguments.take().unwrap_or_default());
    let inner = inner.map_err(|why| Box::new(refused(FailureKind::ValueError, &why)))?;
    request.name = inner.name.into();
    request.arguments = Some(inner.arguments);
    Ok(request)
}

/// The answer to a call of `call_tool` that names no tool. Unlike an error of the protocol, a model reads it.
pub(crate) fn unknown(finder: &Finder, name: &str) -> CallToolResult {
    let like = finder.like(name);
    let advice = if like.is_empty() {
        "find one with find_tools".to_owned()
    } else {
        format!("similar ones: {}", like.join(", "))
    };
    refused(
        FailureKind::ValueError,
        &format!("call_tool: there is no tool '{name:.80}'; {advice}"),
    )
}

fn refused(kind: FailureKind, why: &str) -> CallToolResult {
    let data = json!({"error": {"kind": kind, "message": why}});
    answer::result(Answer::failure(&format!("{kind}: {why}"), data))
}
