//! Converts the tools that a server lists to the tools of a toolbox. Pure. Read [`Tools::read`].
//!
//! Each tool is read by itself: a broken tool is left out, and the others stay.

use std::collections::BTreeMap;

use config::{MountConfig, MountOutput};
use ovos_toolbox_wire::{Audience, Effect, Object, ToolDefinition};
use serde_json::{Map, Value, json};

use crate::schemas;
use crate::secrets::Secrets;

/// The longest name of a tool.
const MAX_NAME: usize = 64;

/// The tools of one mount.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Tools {
    /// The definitions that the service receives.
    pub(crate) definitions: Vec<ToolDefinition>,
    /// The names that the server gives the tools, by the names that the service uses.
    remote: BTreeMap<String, String>,
    /// The parts that were left out or have no effect, with the reasons.
    pub(crate) problems: Vec<String>,
}

impl Tools {
    /// Reads the tools that a server lists.
    pub(crate) fn read(listed: &[Value], mount: &MountConfig) -> Self {
        let mut tools = Self::default();
        let (mut seen, mut shortened) = (Vec::new(), Vec::new());
        for (place, one) in listed.iter().enumerate() {
            let Some(remote) = one
                .get("name")
                .and_then(Value::as_str)
                .filter(|name| !name.is_empty())
            else {
                let problem = format!("tool {} of its list has no name", place + 1);
                tools.problems.push(problem);
                continue;
            };
            seen.push(remote);
            if !mount.tools.permits(remote) {
                continue;
            }
            match tools.define(remote, one, mount) {
                Ok((definition, is_shortened)) => {
                    if is_shortened {
                        shortened.push(remote);
                    }
                    tools.remote.insert(definition.name.clone(), remote.to_owned());
                    tools.definitions.push(definition);
                }
                Err(why) => tools.problems.push(format!("tool `{remote}` is left out: {why}")),
            }
        }
        if !shortened.is_empty() {
            let problem = format!(
                "parts of the schemas are not offered, and only the MCP server checks them: {}",
                shortened.join(", ")
            );
            tools.problems.push(problem);
        }
        for name in mount.effects.keys().filter(|name| !seen.contains(&name.as_str())) {
            let problem = format!("`effects` names `{name}`, and the server has no tool of that name");
            tools.problems.push(problem);
        }
        tools
    }

    /// Returns the tools without these secrets in what the service receives. The names stay, because tools are called by them.
    pub(crate) fn hiding(mut self, secrets: &Secrets) -> Self {
        for tool in &mut self.definitions {
            tool.description = secrets.hide_in_text(&tool.description);
            tool.argument_schema = secrets.hide_in_result(&tool.argument_schema);
            tool.output_schema = secrets.hide_in_result(&tool.output_schema);
        }
        self
    }

    /// Returns the name that the server gives a tool.
    pub(crate) fn remote(&self, name: &str) -> Option<&str> {
        self.remote.get(name).map(String::as_str)
    }

    /// Returns the definition of a tool, and whether its schemas have fewer restrictions than those of the server.
    fn define(
        &self,
        remote: &str,
        one: &Value,
        mount: &MountConfig,
    ) -> Result<(ToolDefinition, bool), String> {
        let name = local_name(remote);
        if let Some(other) = self.remote(&name) {
            return Err(format!("its name maps to `{name}`, which `{other}` already uses"));
        }
        if one.pointer("/execution/taskSupport").and_then(Value::as_str) == Some("required") {
            return Err("it runs only as a task, which mounts do not support".to_owned());
        }
        let argument_schema = match one.get("inputSchema") {
            Some(Value::Object(schema)) => {
                object_schema(schema).ok_or("the type of its inputSchema is not `object`")?
            }
            _ => return Err("it has no inputSchema that is an object".to_owned()),
        };
        let (argument_schema, fewer) = schemas::arguments(&argument_schema);
        let (output_schema, less) = schemas::output(&output_schema(one, mount.output));
        let text = |key: &str| one.get(key).and_then(Value::as_str);
        let title = text("title").or_else(|| one.pointer("/annotations/title")?.as_str());
        let definition = ToolDefinition {
            description: text("description").or(title).unwrap_or_default().to_owned(),
            category: None,
            effect: effect(remote, one, mount),
            // The value is at least 100 ms and at most a day, so the conversion loses nothing.
            audience: Audience::Model,
            for_models: Object::new(),
            timeout_ms: Some((mount.timeout * 1000.0).round() as u64),
            agent_end: Vec::new(),
            validates: false,
            foreign: true,
            argument_schema,
            output_schema,
            name,
        };
        Ok((definition, fewer || less))
    }
}

/// Returns the effect that the configuration states, else `write`. The server's own statement counts only if the configuration
/// trusts it.
fn effect(remote: &str, one: &Value, mount: &MountConfig) -> Effect {
    let hint = one.pointer("/annotations/readOnlyHint").and_then(Value::as_bool);
    match mount.effects.get(remote) {
        Some(stated) => *stated,
        None if mount.trust_hints && hint == Some(true) => Effect::Read,
        None => Effect::Write,
    }
}

/// Returns the name of a tool for the service, whose names are `[a-zA-Z_][a-zA-Z0-9_-]*` with at most 64 characters.
fn local_name(remote: &str) -> String {
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let starts_badly = remote.starts_with(|c: char| c.is_ascii_digit() || c == '-');
    let start = starts_badly.then_some('_');
    let rest = remote.chars().map(|c| if legal(c) { c } else { '_' });
    start.into_iter().chain(rest).take(MAX_NAME).collect()
}

/// Returns the schema with the type `object`, which its root must have; `None` if it has another type.
fn object_schema(schema: &Map<String, Value>) -> Option<Value> {
    match schema.get("type") {
        Some(kind) if kind == "object" => Some(Value::Object(schema.clone())),
        Some(_) => None,
        None => {
            let mut schema = schema.clone();
            schema.insert("type".to_owned(), json!("object"));
            Some(Value::Object(schema))
        }
    }
}

/// Returns the schema of a tool's output. A result that is not an object is put into one.
fn output_schema(one: &Value, output: MountOutput) -> Value {
    if output == MountOutput::Adapter {
        return json!({
            "type": "object",
            "properties": {
                "content": {"type": "string"},
                "is_error": {"type": "boolean"},
                "raw": {"type": "array", "items": {"type": "object"}},
            },
            "required": ["content", "is_error", "raw"],
        });
    }
    match one.get("outputSchema") {
        Some(Value::Object(schema)) => object_schema(schema).unwrap_or_else(
            || json!({"type": "object", "properties": {"result": schema}, "required": ["result"]}),
        ),
        // The tool may return structured content although it declares no schema.
        _ => json!({"type": "object"}),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test panics and prints")]

    use super::*;

    fn read(listed: &Value, mount: &Value) -> Tools {
        let mut written = serde_json::to_value(MountConfig::default()).unwrap();
        written
            .as_object_mut()
            .unwrap()
            .extend(mount.as_object().unwrap().clone());
        let mount = serde_json::from_value(written).unwrap();
        Tools::read(listed.as_array().unwrap(), &mount)
    }

    fn names(tools: &Tools) -> Vec<&str> {
        tools.definitions.iter().map(|one| one.name.as_str()).collect()
    }

    #[test]
    fn a_broken_tool_costs_itself() {
        let schema = json!({"type": "object"});
        let list = json!([
            {"name": "first", "inputSchema": schema},
            {"name": "no_schema"},
            {"inputSchema": schema},
            7,
            {"name": "a_list", "inputSchema": {"type": "array"}},
            {"name": "task", "inputSchema": schema, "execution": {"taskSupport": "required"}},
            {"name": "empty", "inputSchema": {}},
        ]);
        let tools = read(&list, &json!({}));
        assert_eq!(names(&tools), ["first", "empty"]);
        assert_eq!(tools.definitions[1].argument_schema, schema);
        let problems = tools.problems.join("\n");
        for part in ["`no_schema`", "tool 3", "tool 4", "`a_list`", "`task`"] {
            assert!(problems.contains(part), "{part}: {problems}");
        }
    }

    #[test]
    fn names_become_legal_and_a_collision_is_told() {
        let long = "x".repeat(80);
        let list: Value = ["a.b", "a/b", "1st", "ümlaut", &long]
            .map(|name| json!({"name": name, "inputSchema": {}}))
            .into();
        let tools = read(&list, &json!({}));
        assert_eq!(names(&tools), ["a_b", "_1st", "_mlaut", &long[..64]]);
        assert_eq!(tools.remote("a_b"), Some("a.b"));
        assert!(
            tools.problems[0].contains("`a/b`") && tools.problems[0].contains("`a.b`"),
            "{:?}",
            tools.problems
        );
    }

    #[test]
    fn an_effect_is_stated_or_write_and_hints_count_where_they_are_trusted() {
        let list = json!([
            {"name": "says_read", "inputSchema": {}, "annotations": {"readOnlyHint": true}},
            {"name": "stated", "inputSchema": {}, "annotations": {"readOnlyHint": true}},
            {"name": "silent", "inputSchema": {}},
        ]);
        let effects = |mount: Value| {
            let tools = read(&list, &mount);
            tools.definitions.iter().map(|one| one.effect).collect::<Vec<_>>()
        };
        use Effect::{Read, Write};
        assert_eq!(effects(json!({})), [Write, Write, Write]);
        assert_eq!(effects(json!({"trust_hints": true})), [Read, Read, Write]);
        let stated = json!({"trust_hints": true, "effects": {"stated": "write", "silent": "read"}});
        assert_eq!(effects(stated), [Read, Write, Read]);
        let unknown = read(&list, &json!({"effects": {"other": "read"}}));
        assert!(unknown.problems[0].contains("`other`"), "{:?}", unknown.problems);
    }

    #[test]
    fn allow_and_deny_take_the_servers_names() {
        let list: Value = ["a.x", "a.y", "b"]
            .map(|name| json!({"name": name, "inputSchema": {}}))
            .into();
        let tools = read(&list, &json!({"tools": {"allow": ["a.*"], "deny": ["a.y"]}}));
        assert_eq!(names(&tools), ["a_x"]);
        assert!(tools.problems.is_empty(), "what is denied is no problem");
    }

    #[test]
    fn results_that_are_no_objects_are_put_into_one() {
        let list = json!([
            {"name": "n", "inputSchema": {}, "outputSchema": {"type": "integer"}},
            {"name": "o", "inputSchema": {}, "outputSchema": {"properties": {"a": {}}}},
            {"name": "u", "inputSchema": {}},
        ]);
        let tools = read(&list, &json!({}));
        let schemas: Vec<&Value> = tools.definitions.iter().map(|one| &one.output_schema).collect();
        assert_eq!(schemas[0]["properties"]["result"], json!({"type": "integer"}));
        assert_eq!(schemas[1], &json!({"properties": {"a": {}}, "type": "object"}));
        assert_eq!(schemas[2], &json!({"type": "object"}));
        let old = read(&list, &json!({"output": "adapter"}));
        assert_eq!(
            old.definitions[0].output_schema["required"],
            json!(["content", "is_error", "raw"])
        );
    }
}
