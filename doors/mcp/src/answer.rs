//! Answers in the form of the protocol.

use door::Answer;
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Value, json};

/// JSON-RPC: the request is no request.
pub(crate) const INVALID_REQUEST: i32 = -32600;

/// JSON-RPC: the params are wrong.
pub(crate) const INVALID_PARAMS: i32 = -32602;

/// Creates a result whose text and object say the same. A text that is more than the JSON of the object stands in it, too, as
/// `message`: some hosts give their models nothing but the object.
pub(crate) fn result(answer: Answer) -> CallToolResult {
    let Answer {
        text,
        mut data,
        failed,
    } = answer;
    if !says(&data, &text)
        && let Some(data) = data.as_object_mut()
    {
        data.insert("message".to_owned(), json!(text));
    }
    let text = vec![ContentBlock::text(text)];
    let mut result = if failed {
        CallToolResult::error(text)
    } else {
        CallToolResult::success(text)
    };
    result.structured_content = Some(data);
    result
}

/// Adds a text to a result, and to the object of one that failed, which no client checks with a schema.
pub(crate) fn remark(result: &mut CallToolResult, text: String) {
    if result.is_error == Some(true)
        && let Some(data) = result.structured_content.as_mut().and_then(Value::as_object_mut)
    {
        let message = match data.get("message").and_then(Value::as_str) {
            Some(message) => format!("{message}\n{text}"),
            None => text.clone(),
        };
        data.insert("message".to_owned(), json!(message));
    }
    result.content.push(ContentBlock::text(text));
}

/// Whether an object says all that a text says: the text is its JSON, or the error in it.
fn says(data: &Value, text: &str) -> bool {
    let message = data["error"]["message"].as_str();
    let is_error = message.is_some_and(|message| {
        let kind = text.strip_suffix(message);
        kind.is_some_and(|kind| kind.is_empty() || kind.strip_suffix(": ") == data["error"]["kind"].as_str())
    });
    // What a tool returned may be long, and is written as JSON once.
    is_error || text.starts_with('{')
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_that_reads_the_object_alone_misses_nothing() {
        let error = json!({"error": {"kind": "BusyError", "message": "too many"}});
        for (text, data, is_added) in [
            ("{\"sum\":3}", json!({"sum": 3}), false),
            ("BusyError: too many", error.clone(), false),
            ("too many", error.clone(), false),
            ("BusyError: too many\nTry again in a few seconds.", error, true),
            (
                "`wave` still runs. It is NOT done.",
                json!({"state": "running"}),
                true,
            ),
            ("Nothing was running here.", json!({"stopped": 0}), true),
        ] {
            for failed in [false, true] {
                let (text, data) = (text.to_owned(), data.clone());
                let result = result(Answer {
                    text: text.clone(),
                    data,
                    failed,
                });
                let message = result.structured_content.expect("an object")["message"].clone();
                assert_eq!(message == json!(text), is_added, "{text}: {message}");
            }
        }
    }
}
