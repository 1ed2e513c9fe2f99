//! Converts the answer of a server to a call into the result for the service. Pure. Read [`CallOutput::read`].

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use config::MountOutput;
use ovos_toolbox_wire::{Content, ContentKind, Failure};
use serde_json::{Value, json};

use crate::secrets::{HIDDEN, Secrets};

/// The most bytes of content in one result, decoded.
const MAX_CONTENT: usize = 4 << 20;

/// A result, with its content.
#[derive(Debug, PartialEq)]
pub(crate) struct CallOutput {
    pub(crate) output: Value,
    pub(crate) content: Vec<Content>,
}

impl CallOutput {
    /// Reads the result of `tools/call`.
    ///
    /// # Errors
    /// The tool failed, or its result has a form that a mount cannot accept.
    pub(crate) fn read(result: &Value, output: MountOutput, wants_content: bool) -> Result<Self, Failure> {
        match result.get("resultType").and_then(Value::as_str) {
            None | Some("complete") => {}
            Some("input_required") => {
                let why = "the tool asks the user a question (elicitation), which mounts do not support";
                return Err(Failure::new("ToolError", why));
            }
            Some(other) => {
                let why = format!("the server answered with a `{other}`, which a mount cannot follow");
                return Err(Failure::new("ToolError", why));
            }
        }
        let none = Vec::new();
        let blocks = result.get("content").and_then(Value::as_array).unwrap_or(&none);
        let texts: Vec<&str> = blocks.iter().filter_map(text_of).collect();
        let failed = result.get("isError").and_then(Value::as_bool).unwrap_or(false);
        let content = if wants_content {
            content(blocks)
        } else {
            Vec::new()
        };
        if output == MountOutput::Adapter {
            let plain = blocks.iter().filter(|block| kind(block) == "text");
            let plain: Vec<&str> = plain.filter_map(text_of).collect();
            let output = json!({"content": plain.join("\n"), "is_error": failed, "raw": blocks});
            return Ok(Self { output, content });
        }
        let structured = result.get("structuredContent");
        if failed {
            let message = texts.join("\n");
            let message = if message.trim().is_empty() {
                "the tool failed and did not say why".to_owned()
            } else {
                message
            };
            return Err(Failure {
                data: structured.cloned(),
                ..Failure::new("ToolError", message)
            });
        }
        let output = match structured {
            Some(Value::Object(output)) => Value::Object(output.clone()),
            Some(value) => json!({"result": value}),
            None => json!({"content": as_text(blocks)}),
        };
        Ok(Self { output, content })
    }

    /// Returns the result without these secrets. The bytes of pictures and files are not changed.
    pub(crate) fn hiding(mut self, secrets: &Secrets) -> Self {
        self.output = secrets.hide_in_result(&self.output);
        for item in &mut self.content {
            if let Some(title) = &mut item.title {
                *title = secrets.hide_in_text(title);
            }
            if let Some(uri) = &mut item.uri {
                // A URI with blanks is not a URI, so the replacement has none.
                *uri = secrets.hide_in_text(uri).replace(HIDDEN, "not-shown");
            }
        }
        self
    }
}

fn kind(block: &Value) -> &str {
    block.get("type").and_then(Value::as_str).unwrap_or("")
}

/// Returns the text of a block that has one.
fn text_of(block: &Value) -> Option<&str> {
    match kind(block) {
        "text" => block.get("text")?.as_str(),
        "resource" => block.pointer("/resource/text")?.as_str(),
        _ => None,
    }
}

/// Returns everything as one text. Blocks without text are named, so that a caller knows that they exist.
fn as_text(blocks: &[Value]) -> String {
    let line = |block: &Value| match (text_of(block), kind(block)) {
        (Some(text), _) => text.to_owned(),
        (None, "resource_link") => format!("[{}]", string(block, "uri")),
        (None, "resource") => format!("[resource {}]", string(&block["resource"], "uri")),
        (None, kind) => format!("[{kind} {}]", string(block, "mimeType")),
    };
    blocks.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn string<'a>(of: &'a Value, key: &str) -> &'a str {
    of.get(key).and_then(Value::as_str).unwrap_or("")
}

/// Returns the media in the blocks, as far as the limits allow.
fn content(blocks: &[Value]) -> Vec<Content> {
    let mut room = MAX_CONTENT;
    let mut found = Vec::new();
    for block in blocks {
        if found.len() == Content::MAX_ITEMS {
            break;
        }
        let (holder, data, kind) = match kind(block) {
            "image" => (block, "data", ContentKind::Image),
            "audio" => (block, "data", ContentKind::Audio),
            "resource" => (&block["resource"], "blob", ContentKind::Resource),
            "resource_link" => {
                let mime = Some(string(block, "mimeType")).filter(|mime| !mime.is_empty());
                let uri = string(block, "uri");
                if !uri.is_empty() {
                    found.push(titled(
                        Content::link(mime.unwrap_or("application/octet-stream"), uri),
                        block,
                    ));
                }
                continue;
            }
            _ => continue,
        };
        let data = string(holder, data);
        let mime = Some(string(holder, "mimeType")).filter(|mime| !mime.is_empty());
        // Data that is not base64 would make the service refuse the whole result.
        let Ok(decoded) = STANDARD.decode(data) else {
            continue;
        };
        if decoded.is_empty() || decoded.len() > room {
            continue;
        }
        room -= decoded.len();
        found.push(titled(
            Content {
                kind,
                mime_type: mime.unwrap_or("application/octet-stream").to_owned(),
                path: None,
                data: Some(data.to_owned()),
                uri: None,
                title: None,
            },
            block,
        ));
    }
    found
}

fn titled(content: Content, block: &Value) -> Content {
    let title = string(block, "title");
    let title = if title.is_empty() {
        string(block, "name")
    } else {
        title
    };
    if title.is_empty() {
        content
    } else {
        content.titled(title)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test panics and prints")]

    use super::*;

    #[test]
    fn structured_content_is_the_output_else_the_text() {
        let text = json!({"type": "text", "text": "hello"});
        for (result, output) in [
            (
                json!({"content": [text], "structuredContent": {"a": 1}}),
                json!({"a": 1}),
            ),
            (json!({"structuredContent": [1]}), json!({"result": [1]})),
            (json!({"structuredContent": null}), json!({"result": null})),
            (
                json!({"content": [text, text], "resultType": "complete"}),
                json!({"content": "hello\nhello"}),
            ),
            (json!({"content": []}), json!({"content": ""})),
            (
                json!({"content": [{"type": "image", "mimeType": "image/png", "data": "AAAA"}, {"type": "new"}]}),
                json!({"content": "[image image/png]\n[new ]"}),
            ),
            (
                json!({"content": [{"type": "resource", "resource": {"uri": "a:b", "text": "t"}}]}),
                json!({"content": "t"}),
            ),
        ] {
            let read = CallOutput::read(&result, MountOutput::Structured, false).unwrap();
            assert_eq!(
                read,
                CallOutput {
                    output,
                    content: Vec::new()
                },
                "{result}"
            );
        }
    }

    #[test]
    fn an_error_of_the_tool_is_ours_with_its_text() {
        let read = |result: Value| CallOutput::read(&result, MountOutput::Structured, true).unwrap_err();
        let failed = read(json!({"isError": true, "content": [{"type": "text", "text": "no such city"}]}));
        assert_eq!(failed, Failure::new("ToolError", "no such city"));
        assert!(read(json!({"isError": true})).message.contains("did not say why"));
        let asks = read(json!({"resultType": "input_required", "inputRequests": []}));
        assert!(asks.message.contains("elicitation"), "{asks}");
        assert!(read(json!({"resultType": "task"})).message.contains("`task`"));
    }

    #[test]
    fn the_adapters_shape_keeps_errors_as_results() {
        let blocks = json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]);
        let result = json!({"isError": true, "content": blocks, "structuredContent": {"x": 1}});
        let read = CallOutput::read(&result, MountOutput::Adapter, false).unwrap();
        assert_eq!(
            read.output,
            json!({"content": "a\nb", "is_error": true, "raw": blocks})
        );
    }

    #[test]
    fn media_become_content_as_far_as_there_is_room() {
        let large = STANDARD.encode(vec![0; 3 << 20]);
        let picture = |data: &str| json!({"type": "image", "mimeType": "image/png", "data": data});
        let blocks = json!([
            picture(&large),
            picture(&large),
            picture("no base64!"),
            picture("AAAA"),
            {"type": "audio", "mimeType": "audio/wav", "data": "AAAA"},
            {"type": "resource_link", "uri": "https://example.org/a", "name": "A"},
            {"type": "resource", "resource": {"uri": "a:b", "blob": "AAAA"}},
        ]);
        let result = json!({"content": blocks});
        let read = CallOutput::read(&result, MountOutput::Structured, true).unwrap();
        let kinds: Vec<ContentKind> = read.content.iter().map(|item| item.kind).collect();
        use ContentKind::{Audio, Image, Resource};
        assert_eq!(kinds, [Image, Image, Audio, Resource, Resource]);
        assert_eq!(read.content[3].title.as_deref(), Some("A"));
        let many: Vec<Value> = (0..20).map(|_| picture("AAAA")).collect();
        let read = CallOutput::read(&json!({"content": many}), MountOutput::Structured, true).unwrap();
        assert_eq!(read.content.len(), Content::MAX_ITEMS);
    }
}
