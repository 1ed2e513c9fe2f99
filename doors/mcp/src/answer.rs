//! Answers in the form of the protocol.

use door::Answer;
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Value, json};

/// JSON-RPC: the request is no request.
pub(crate) const INVALID_REQUEST: i32 = -32600;

/// JSON-RPC: the params are wrong.
pub(crate) const INVALID_PARAMS: i32 = -32602;

/// Creates a result whose text and object have the same content.
pub(crate) fn result(answer: Answer) -> CallToolResult {
    let text = vec![ContentBlock::text(answer.text)];
    let mut result = if answer.failed {
        CallToolResult::error(text)
    } else {
        CallToolResult::success(text)
    };
    result.structured_content = Some(answer.data);
    result
}

/// Returns a result as JSON, for a request that the library has not seen.
pub(crate) fn result_value(answer: Answer, modern: bool) -> Value {
    let mut result = serde_json::to_value(result(answer)).unwrap_or_default();
    if let Some(result) = result.as_object_mut().filter(|_| !modern) {
        result.shift_remove("resultType");
    }
    result
}

/// Returns the answer to a request that the library does not see.
pub(crate) fn refused(id: &Value, code: i32, why: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": why}})
}
