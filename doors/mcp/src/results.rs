//! In which forms a client is given a result, and what it is given instead of one that is too long: a part, and the whole as a
//! resource.
//!
//! The protocol has a structured form since 2025-06-18, demands it where a tool shows its output schema, and wants its text
//! beside it. Which of the two a host gives to its model differs: openai-agents, langchain and Kimi give the text, pydantic-ai and
//! OpenClaw the structure, Home Assistant both. So both say the same, and have one budget.

use std::collections::VecDeque;
use std::sync::Arc;

use door::{Answer, ListedTool, own_id, shorten};
use ovos_toolbox_wire::Object;
use parking_lot::Mutex;
use rmcp::RoleServer;
use rmcp::model::{CallToolResult, ContentBlock, ProtocolVersion, Resource};
use rmcp::service::RequestContext;
use serde_json::{Value, json};

use crate::answer;

/// How many whole results are kept, and how many bytes of them.
const MOST: usize = 16;
const MOST_BYTES: usize = 16 << 20;

/// The whole results of which clients were given a part, the oldest first.
#[derive(Default)]
pub(crate) struct Results(Mutex<VecDeque<(String, Arc<str>)>>);

impl Results {
    /// Keeps a result, and returns the URI under which it can be read.
    fn keep(&self, text: String) -> Option<String> {
        if text.len() > MOST_BYTES {
            return None;
        }
        let uri = format!("ovos-tools://result/{}", own_id("r"));
        let mut kept = self.0.lock();
        kept.push_back((uri.clone(), text.into()));
        while kept.len() > MOST || kept.iter().map(|(_, text)| text.len()).sum::<usize>() > MOST_BYTES {
            kept.pop_front();
        }
        Some(uri)
    }

    /// Returns a result that is still kept.
    pub(crate) fn of(&self, uri: &str) -> Option<Arc<str>> {
        let kept = self.0.lock();
        kept.iter()
            .find(|(known, _)| known == uri)
            .map(|(_, text)| Arc::clone(text))
    }
}

/// Clients that give their models nothing but the structured form where there is one: no picture, no caption and no link. The
/// text says as much.
const TEXT_ALONE: [&str; 1] = ["claude-code"];

/// In which forms a client is given a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Forms {
    Text,
    TextAndStructure,
    /// The same, and the client checks the structure with the schema that it was shown.
    TextAndSchema,
}

impl Forms {
    /// The forms for the client of a request, for a tool whose output schema it was shown or not.
    pub(crate) fn of(context: &RequestContext<RoleServer>, shows_schema: bool) -> Self {
        let version = context.protocol_version();
        let client = context.client_info();
        Self::for_client(
            version.as_ref().map(ProtocolVersion::as_str),
            client.as_ref().map(|client| client.name.as_str()),
            shows_schema,
        )
    }

    fn for_client(version: Option<&str>, client: Option<&str>, shows_schema: bool) -> Self {
        if version.is_some_and(|version| version < ProtocolVersion::V_2025_06_18.as_str()) {
            Self::Text
        } else if shows_schema {
            Self::TextAndSchema
        } else if client.is_some_and(|client| TEXT_ALONE.contains(&client)) {
            Self::Text
        } else {
            Self::TextAndStructure
        }
    }

    /// Leaves out of a result what its client is not given.
    pub(crate) fn apply(self, result: &mut CallToolResult) {
        if self == Self::Text {
            result.structured_content = None;
        }
    }
}

/// Converts an answer for a client. One that takes more than `most` bytes in all its forms is shortened and says so; its whole is
/// kept, and linked.
pub(crate) fn result(
    results: &Results,
    most: usize,
    tool: &ListedTool,
    forms: Forms,
    mut answer: Answer,
) -> CallToolResult {
    let most = match (forms, answer.failed) {
        (Forms::Text, _) => most,
        (_, false) => most / 2,
        // Its text stands in the structure, too.
        (_, true) => most / 3,
    };
    let Some(short) = shorten(tool, &answer.data, most) else {
        answer.text = first(&answer.text, most);
        return answer::result(answer);
    };
    let link = results.keep(answer.data.to_string());
    let mut remark = short.remark;
    if link.is_some() {
        remark.push_str(" The full result is in the linked resource.");
    }
    let mut remarks = None;
    answer.data = match short.value {
        // Hosts that read the structured form alone read it there, too. The text of a failure is not the data.
        Value::Object(data) if forms != Forms::TextAndSchema && !answer.failed => {
            let mut summary = Object::new();
            summary.insert("shortened".to_owned(), json!(remark));
            summary.extend(data);
            Value::Object(summary)
        }
        other => {
            remarks = Some(remark);
            other
        }
    };
    answer.text = if answer.failed {
        first(&answer.text, most)
    } else {
        answer.data.to_string()
    };
    let mut result = answer::result(answer);
    result.content.extend(remarks.map(ContentBlock::text));
    if let Some(uri) = link {
        let name = format!("the whole result of {}", tool.exported);
        let link = Resource::new(uri, name).with_mime_type("application/json");
        result.content.push(ContentBlock::resource_link(link));
    }
    result
}

/// The beginning of a text, with its size if that is not all of it.
fn first(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(most);
    format!("{}... ({} bytes in all)", &text[..end], text.len())
}

#[cfg(test)]
mod tests {
    use ovos_toolbox_wire::Effect;

    use super::*;

    fn tool() -> ListedTool {
        let arguments = json!({"type": "object", "properties": {"limit": {"type": "integer"}}});
        ListedTool {
            exported: "search".to_owned(),
            name: "search".to_owned(),
            toolbox_id: "media".to_owned(),
            effect: Effect::Read,
            category: None,
            description: String::new(),
            arguments: Arc::new(arguments.as_object().cloned().unwrap_or_default()),
            output: None,
            agent_end: Vec::new(),
        }
    }

    #[test]
    fn each_client_gets_the_forms_that_it_reads() {
        for (version, client, shows_schema, expected) in [
            (Some("2024-11-05"), "mcp", true, Forms::Text),
            (Some("2025-03-26"), "mcp", false, Forms::Text),
            (Some("2025-06-18"), "mcp", false, Forms::TextAndStructure),
            (Some("2026-07-28"), "mcp", false, Forms::TextAndStructure),
            (None, "mcp", false, Forms::TextAndStructure),
            (Some("2025-11-25"), "claude-code", false, Forms::Text),
            // It would refuse a result without.
            (Some("2025-11-25"), "claude-code", true, Forms::TextAndSchema),
        ] {
            let forms = Forms::for_client(version, Some(client), shows_schema);
            assert_eq!(forms, expected, "{version:?} {client} {shows_schema}");
        }
    }

    #[test]
    fn all_forms_of_a_result_share_one_budget_and_each_says_that_it_is_shortened() {
        const BUDGET: usize = 4096;
        for (items, is_short) in [(10, false), (200, true), (10_000, true)] {
            for forms in [Forms::Text, Forms::TextAndStructure, Forms::TextAndSchema] {
                let items: Vec<String> = (0..items)
                    .map(|at| format!("an item of the list, no. {at}"))
                    .collect();
                let data = json!({ "items": items });
                let answer = Answer::success(&data.to_string(), data.clone());
                let mut result = result(&Results::default(), BUDGET, &tool(), forms, answer);
                forms.apply(&mut result);
                let text = result.content[0].as_text().expect("text").text.clone();
                let structure = result.structured_content.clone();
                assert_eq!(structure.is_none(), forms == Forms::Text);
                let size = text.len()
                    + structure
                        .as_ref()
                        .map_or(0, |structure| structure.to_string().len());
                // What is said about it, and its key, come on top in each form.
                let remarks = 300 * 2;
                assert!(size <= BUDGET + remarks, "{forms:?}: {size}");
                assert!(
                    structure.is_none() || serde_json::from_str::<Value>(&text).ok() == structure,
                    "{forms:?}"
                );
                let content = serde_json::to_string(&result.content).expect("JSON");
                assert_eq!(
                    content.contains("Ask for less by `limit`."),
                    is_short,
                    "{forms:?}: {content}"
                );
                assert_eq!(
                    text.contains("\"shortened\""),
                    is_short && forms != Forms::TextAndSchema
                );
                assert_eq!(content.contains("resource_link"), is_short);
            }
        }
    }

    #[test]
    fn a_failure_that_is_too_long_says_so_in_each_form() {
        for forms in [Forms::Text, Forms::TextAndStructure] {
            let data = json!({"error": {"kind": "RuntimeError", "message": "it failed ".repeat(2000)}});
            let answer = Answer::failure(&"it failed ".repeat(2000), data);
            let mut result = result(&Results::default(), 4096, &tool(), forms, answer);
            forms.apply(&mut result);
            let content = serde_json::to_string(&result.content).expect("JSON");
            assert!(
                content.contains("20000 bytes in all") && content.contains("Ask for less by"),
                "{content}"
            );
            assert_eq!(result.is_error, Some(true));
            assert!(serde_json::to_string(&result).expect("JSON").len() < 4096 + 1000);
        }
    }

    #[test]
    fn as_much_is_kept_as_is_promised() {
        let results = Results::default();
        let uris: Vec<String> = (0..MOST + 3)
            .map(|number| results.keep(number.to_string()).expect("it is short"))
            .collect();
        assert_eq!(results.of(&uris[2]), None);
        assert_eq!(results.of(&uris[3]).as_deref(), Some("3"));
        assert_eq!(results.keep("x".repeat(MOST_BYTES + 1)), None);
        let large = results.keep("x".repeat(MOST_BYTES)).expect("it fits");
        assert!(results.of(&large).is_some() && results.of(&uris[MOST + 2]).is_none());
    }
}
