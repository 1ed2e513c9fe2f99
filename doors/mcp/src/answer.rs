//! Answers in the form of the protocol.

use door::Answer;
use rmcp::model::{CallToolResult, ContentBlock};

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
