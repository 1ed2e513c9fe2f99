//! `find_tools` and `call_tool`: what a door shows instead of a list of tools that is too long for a model. Pure.
//!
//! [`Finder`] searches the tools that the door shows, and answers `find_tools`. [`CallTool`] reads a call of `call_tool`, which is
//! then carried out as a call of the tool itself: with its effect, its place in the order and its confirmation.

mod everyday;
mod index;
mod requests;
mod words;

use std::sync::Arc;

use ovos_toolbox_wire::Object;
use serde_json::{Value, json};

use crate::{Guide, ListedTool};
use index::Index;

/// The name of the tool that searches.
pub const FIND_TOOLS: &str = "find_tools";

/// The name of the tool that calls what was found.
pub const CALL_TOOL: &str = "call_tool";

/// How many tools are shown where the request does not say it, and at most.
const LIMIT: usize = 5;
const MOST: usize = 20;

/// How many names are suggested for an unknown one.
const SUGGESTED: usize = 5;

const FIND: &str = "Find the tools for a request. Call it first, with what the user wants in plain words, such as `bring the cup` \
or `how full is the battery`. Returns the tools that fit best, with their arguments; call them with call_tool. With `guide` it \
returns the page of a toolbox instead, which says how its tools go together.";

const CALL: &str =
    "Call a tool that find_tools has shown. It does what that tool does, which may move a machine.";

/// The description and the schema of the arguments of `find_tools`.
#[must_use]
pub fn find_tools() -> (&'static str, Object) {
    let schema = json!({
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "What is wanted, in plain words."},
            "limit": {"type": "integer", "minimum": 1, "maximum": MOST, "default": LIMIT, "description": "How many tools to show."},
            "guide": {"type": "string", "description": "The id of a toolbox, to read its page."},
        },
    });
    (FIND, object(schema))
}

/// The description and the schema of the arguments of `call_tool`.
#[must_use]
pub fn call_tool() -> (&'static str, Object) {
    let schema = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "The name of the tool."},
            "arguments": {"type": "object", "additionalProperties": true, "description": "The arguments of the tool."},
        },
        "required": ["name"],
    });
    (CALL, object(schema))
}

fn object(schema: Value) -> Object {
    match schema {
        Value::Object(schema) => schema,
        _ => Object::new(),
    }
}

/// A call of `call_tool`: the tool that is meant, and its arguments.
#[derive(Clone, Debug, PartialEq)]
pub struct CallTool {
    /// The name of the tool.
    pub name: String,
    /// Its arguments.
    pub arguments: Object,
}

impl CallTool {
    /// Reads the arguments of `call_tool`.
    ///
    /// # Errors
    /// What is wrong with them: there is no name, or the arguments of the tool are no object.
    pub fn read(arguments: &Object) -> Result<Self, String> {
        let name = arguments.get("name").and_then(Value::as_str).map(str::trim);
        let name = name.filter(|name| !name.is_empty());
        let name = name.ok_or("call_tool: expected `name`, the name of a tool that find_tools has shown")?;
        let inner = client::read_arguments(arguments.get("arguments"))
            .map_err(|_| format!("call_tool: expected `arguments` of {name} to be an object"))?;
        Ok(Self {
            name: name.to_owned(),
            arguments: inner,
        })
    }
}

/// The tools that a door shows, ready to be searched.
pub struct Finder {
    index: Index,
    tools: Vec<Arc<ListedTool>>,
    guides: Vec<Guide>,
}

impl Finder {
    /// Searches these tools, of which `guides` may say more.
    #[must_use]
    pub fn new<'a>(tools: &[Arc<ListedTool>], guides: impl Iterator<Item = &'a Guide>) -> Self {
        let is_shown = |guide: &&Guide| tools.iter().any(|tool| tool.toolbox_id == guide.toolbox_id);
        Self {
            index: Index::new(tools),
            tools: tools.to_vec(),
            guides: guides.filter(is_shown).cloned().collect(),
        }
    }

    /// Returns the tools that fit a request, the best first.
    #[must_use]
    pub fn ranked(&self, request: &str) -> Vec<&Arc<ListedTool>> {
        self.index.ranked(request)
    }

    /// The answer to a call of `find_tools`, with at most about `budget` bytes of JSON.
    ///
    /// # Errors
    /// What is wrong with the arguments.
    pub fn find(&self, arguments: &Object, budget: usize) -> Result<Value, String> {
        let text = |key: &str| arguments.get(key).and_then(Value::as_str).map(str::trim);
        if let Some(id) = text("guide").filter(|id| !id.is_empty()) {
            return self.guide(id, budget);
        }
        let query = text("query").unwrap_or_default();
        if query.is_empty() {
            return Err("find_tools: expected `query`, what is wanted in plain words".to_owned());
        }
        let limit = arguments.get("limit").and_then(Value::as_u64);
        let limit = limit.map_or(LIMIT, |limit| usize::try_from(limit).unwrap_or(MOST));
        let found = self.ranked(query);
        if found.is_empty() {
            return Ok(self.nothing(query));
        }
        let (mut shown, mut size) = (Vec::new(), 0);
        for tool in found.into_iter().take(limit.clamp(1, MOST)) {
            let entry = entry(tool);
            size += entry.to_string().len();
            // The best one is always shown.
            if !shown.is_empty() && size > budget {
                break;
            }
            shown.push(entry);
        }
        Ok(json!({ "tools": shown }))
    }

    /// What there is, where nothing fits.
    fn nothing(&self, query: &str) -> Value {
        let toolboxes = self.guides.iter().map(|guide| {
            let tools = self.tools.iter().filter(|tool| tool.toolbox_id == guide.toolbox_id);
            json!({"toolbox": guide.toolbox_id, "for": guide.description, "tools": tools.count(), "guide": guide.uri()})
        });
        json!({
            "tools": [],
            "nothing_found": format!("No tool has the words of '{query:.80}'. Try other words, or read the `guide` of a toolbox."),
            "toolboxes": toolboxes.collect::<Vec<_>>(),
        })
    }

    fn guide(&self, id: &str, budget: usize) -> Result<Value, String> {
        let named = |guide: &&Guide| guide.toolbox_id == id || guide.skill() == id || guide.uri() == id;
        match self.guides.iter().find(named) {
            Some(guide) => {
                let mut page = guide.page(&self.tools);
                if page.len() > budget {
                    page.truncate(page.floor_char_boundary(budget));
                    page.push_str(
                        "...\n\nThis page is shortened: search for its other tools with words for what they do.\n",
                    );
                }
                Ok(json!({"toolbox": guide.toolbox_id, "guide": page}))
            }
            None => {
                let ids: Vec<&str> = self
                    .guides
                    .iter()
                    .map(|guide| guide.toolbox_id.as_str())
                    .collect();
                Err(format!(
                    "find_tools: there is no toolbox '{id:.80}'; there are {}",
                    ids.join(", ")
                ))
            }
        }
    }

    /// The names of tools that are like one that no tool has.
    #[must_use]
    pub fn like(&self, name: &str) -> Vec<&str> {
        let ranked = self.ranked(name).into_iter().take(SUGGESTED);
        ranked.map(|tool| tool.exported.as_str()).collect()
    }
}

/// A tool as it is found.
fn entry(tool: &ListedTool) -> Value {
    let mut entry = json!({
        "name": tool.exported,
        "toolbox": tool.toolbox_id,
        "effect": tool.effect,
        "does": tool.description,
    });
    let arguments = compact(&Value::Object((*tool.arguments).clone()));
    if arguments.get("properties").is_some() {
        entry["arguments"] = arguments;
    }
    entry
}

/// A schema without what a model does not need to fill it in.
fn compact(schema: &Value) -> Value {
    match schema {
        Value::Object(entries) => entries
            .iter()
            .filter(|(key, value)| {
                !matches!(key.as_str(), "$schema" | "title" | "additionalProperties") || value.is_object()
            })
            .filter(|(key, value)| {
                key.as_str() != "properties" || !value.as_object().is_some_and(Object::is_empty)
            })
            .map(|(key, value)| (key.clone(), compact(value)))
            .collect::<Object>()
            .into(),
        Value::Array(items) => items.iter().map(compact).collect(),
        other => other.clone(),
    }
}
