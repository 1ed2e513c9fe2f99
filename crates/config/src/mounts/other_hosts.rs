//! Translates the servers in the `mcpServers` of other hosts into our keys. Pure. Read [`translated`].

use serde_json::{Map, Value, json};

/// The keys that other hosts have instead of `url`: `httpUrl` of Gemini CLI, `serverUrl` of Windsurf.
const URLS: [&str; 2] = ["httpUrl", "serverUrl"];

/// The names that other hosts have for lists of tools, and our key in `tools`: Gemini CLI's, and Cline's and Roo Code's.
const TOOLS: [(&str, &str); 4] = [
    ("includeTools", "allow"),
    ("enabledTools", "allow"),
    ("excludeTools", "deny"),
    ("disabledTools", "deny"),
];

/// The largest `timeout` that is read as seconds; larger ones are milliseconds. No host accepts more than an hour in seconds, and
/// no host has a timeout of less than 3600 milliseconds for a call.
const MOST_SECONDS: f64 = 3600.0;

/// Returns a server in our keys, and the keys that have no effect here.
pub(super) fn translated(
    mut written: Map<String, Value>,
    is_ours: impl Fn(&str) -> bool,
) -> (Map<String, Value>, Vec<String>) {
    for theirs in URLS {
        if let Some(url) = written.shift_remove(theirs) {
            written.insert("url".to_owned(), url);
        }
    }
    if let Some(names) = written.get_mut("tools").filter(|tools| tools.is_array()) {
        *names = json!({"allow": names});
    }
    // A list of tools that was ignored would let through the tools that it forbids.
    for (theirs, key) in TOOLS {
        if let Some(names) = written.shift_remove(theirs).filter(Value::is_array) {
            let tools = written.entry("tools").or_insert_with(|| json!({}));
            if let Some(tools) = tools.as_object_mut() {
                tools.insert(key.to_owned(), names);
            }
        }
    }
    if let Some(time) = written.get_mut("timeout")
        && let Some(milliseconds) = time.as_f64().filter(|time| *time > MOST_SECONDS)
    {
        *time = json!(milliseconds / 1000.0);
    }
    let says_nothing = |value: &Value| match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    };
    let (ours, theirs): (Map<_, _>, Map<_, _>) = written
        .into_iter()
        .filter(|(_, value)| !says_nothing(value))
        .partition(|(key, _)| is_ours(key));
    (ours, theirs.into_iter().map(|(key, _)| key).collect())
}
