//! Whether the tools of a toolbox can be used.
//!
//! Pure: turns a text into tools and reasons. An unusable tool is left out, with the reason; its toolbox and the
//! other tools stay, because one bad schema must not remove a robot's brake. Read [`read`] first.

use std::collections::HashSet;
use std::sync::Arc;

use ovos_toolbox_wire::{Effect, Failure, Object, ToolDefinition};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use program::json;
use program::payload::no_list;
use schema::{ArgumentSchema, CompiledTool, OutputSchema, SchemaError, allows_objects};

/// The tools of an open toolbox.
#[derive(Clone, Debug, Default)]
pub struct ToolSet {
    /// The usable tools, in the toolbox's order.
    pub tools: Vec<Arc<CompiledTool>>,
    /// The tools that were left out.
    pub dropped: Vec<DroppedTool>,
    /// Unknown keys, which `check` reports as possible misspellings.
    pub unknown: Vec<UnknownKeys>,
}

/// Keys of a tool's definition that are ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownKeys {
    /// The tool's name, or its place in the list.
    pub name: String,
    /// The unknown keys, in the order of the definition.
    pub keys: Vec<String>,
}

impl std::fmt::Display for UnknownKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "tool `{}`: unknown keys, which are ignored: `{}`; known: {}",
            self.name,
            self.keys.join("`, `"),
            KEYS.join(", ")
        )
    }
}

/// The keys of a tool's definition.
const KEYS: [&str; 12] = [
    "name",
    "description",
    "category",
    "effect",
    "audience",
    "for_models",
    "timeout_ms",
    "agent_end",
    "validates",
    "foreign",
    "argument_schema",
    "output_schema",
];

/// A tool that was left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DroppedTool {
    /// Its name, or its place in the list (`#3`) when it has none.
    pub name: String,
    /// Every problem of the tool.
    pub wrong: Vec<String>,
}

impl std::fmt::Display for DroppedTool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "tool `{}`: {}", self.name, self.wrong.join("; "))
    }
}

const EFFECTS: &str = "write what the tool does: \"effect\": \"read\" (changes nothing), \"write\" (changes something, \
                       moves nothing), \"motion\" (moves a machine), \"safe\" (brings it to safety), \"stop\" (emergency \
                       stop) or \"resume\" (lifts that)";

#[derive(Deserialize)]
struct List {
    tools: Vec<Value>,
}

/// Whether a toolbox may have tools that move something, or end motion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Motion {
    /// The toolbox has a `halt`.
    Halts,
    /// The toolbox has no `halt`.
    HasNoHalt,
    /// The toolbox shares its process with other toolboxes, which could delay its `halt`.
    SharesProcess,
}

/// The kind of a toolbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Maker {
    /// A plugin, whose tools the service validates.
    Plugin,
    /// A program, which may itself validate the arguments and results of tools that move nothing.
    Program,
}

impl Maker {
    fn validates(self, tool: &Object) -> bool {
        let moves_nothing = matches!(tool.get("effect").and_then(Value::as_str), Some("read" | "write"));
        moves_nothing && self.declares(tool, "validates")
    }

    /// Whether the schemas were written for another service. Those of a toolbox that validates its own calls were, even if the
    /// service validates a call, too, because the tool moves something.
    fn is_foreign(self, tool: &Object) -> bool {
        self.declares(tool, "foreign") || self.declares(tool, "validates")
    }

    fn declares(self, tool: &Object, key: &str) -> bool {
        self == Self::Program && tool.get(key) == Some(&Value::Bool(true))
    }
}

/// Reads the list of tools of a toolbox.
///
/// # Errors
/// The text is not a list of tools.
pub(crate) fn read(json: &str, maker: Maker, motion: Motion) -> Result<ToolSet, Failure> {
    let list: List = json::read(json).map_err(|error| no_list(&error))?;
    let mut set = ToolSet::default();
    let mut seen = HashSet::new();
    for (index, value) in list.tools.into_iter().enumerate() {
        let name = value
            .get("name")
            .and_then(Value::as_str)
            .map_or_else(|| format!("#{}", index + 1), str::to_owned);
        let keys = unknown_keys(&value);
        if !keys.is_empty() {
            let name = name.clone();
            set.unknown.push(UnknownKeys { name, keys });
        }
        let taken = !seen.insert(name.clone());
        let taken = taken.then(|| "its name is taken by an earlier tool of this toolbox".to_owned());
        match (compile(value, maker, motion), taken) {
            (Ok(tool), None) => set.tools.push(Arc::new(tool)),
            (Ok(_), Some(taken)) => set.dropped.push(DroppedTool {
                name,
                wrong: vec![taken],
            }),
            (Err(mut wrong), taken) => {
                wrong.extend(taken);
                set.dropped.push(DroppedTool { name, wrong });
            }
        }
    }
    Ok(set)
}

fn unknown_keys(tool: &Value) -> Vec<String> {
    let keys = tool.as_object().into_iter().flat_map(|tool| tool.keys());
    keys.filter(|key| !KEYS.contains(&key.as_str()))
        .cloned()
        .collect()
}

/// The compiled tool, or every problem of its definition.
fn compile(value: Value, maker: Maker, motion: Motion) -> Result<CompiledTool, Vec<String>> {
    let Some(tool) = value.as_object() else {
        return Err(vec!["it is not an object".to_owned()]);
    };
    let mut wrong = Vec::new();
    match tool.get("name") {
        Some(Value::String(name)) if is_tool_name(name) => {}
        Some(name) => wrong.push(format!(
            "its name is {name}; expected a letter or _, then letters, digits, _ and -, at most 64 in all"
        )),
        None => wrong.push("it has no name".to_owned()),
    }
    wrong.extend(wrong_effect(tool.get("effect"), motion));
    let (validates, foreign) = (maker.validates(tool), maker.is_foreign(tool));
    if validates {
        wrong.extend(wrong_schema(tool, "argument_schema", schema::check_shown));
        wrong.extend(wrong_schema(tool, "output_schema", schema::check_shown));
    } else {
        wrong.extend(wrong_schema(tool, "argument_schema", ArgumentSchema::compile));
        wrong.extend(wrong_schema(tool, "output_schema", object_schema));
    }
    if !wrong.is_empty() {
        return Err(wrong);
    }
    let mut definition: ToolDefinition = serde_json::from_value(value).map_err(|e| vec![e.to_string()])?;
    definition.validates = validates;
    definition.foreign = foreign;
    if !definition.agent_end.is_empty() && definition.effect != Effect::Safe {
        return Err(vec![format!(
            "it has `agent_end`, and its effect is {}; only a \"safe\" tool is called when the run of an agent has ended",
            definition.effect
        )]);
    }
    Ok(CompiledTool::new(definition))
}

fn wrong_schema<S>(
    tool: &Object,
    key: &str,
    compile: impl FnOnce(&Value) -> Result<S, SchemaError>,
) -> Option<String> {
    let Some(schema) = tool.get(key) else {
        return Some(format!("`{key}` is missing"));
    };
    compile(schema).err().map(|error| format!("`{key}`: {error}"))
}

fn object_schema(schema: &Value) -> Result<OutputSchema, SchemaError> {
    let compiled = OutputSchema::compile(schema)?;
    if allows_objects(schema) {
        Ok(compiled)
    } else {
        Err(SchemaError::Invalid {
            path: "#/type".to_owned(),
            message: "a result is an object, so `type` must be \"object\"".to_owned(),
        })
    }
}

fn wrong_effect(effect: Option<&Value>, motion: Motion) -> Option<String> {
    let Some(effect) = effect else {
        return Some(format!("it has no `effect`; {EFFECTS}"));
    };
    match serde_json::from_value::<Effect>(effect.clone()) {
        Err(_) => Some(format!("its effect is {effect}; {EFFECTS}")),
        Ok(effect) if effect.needs_halt() => match motion {
            Motion::Halts => None,
            Motion::HasNoHalt => Some(format!(
                "its effect is {effect}, and the toolbox has no `halt` that ends its motion; write one (in the SDK: \
                 `Toolbox::halt` instead of `no_motion!`)"
            )),
            Motion::SharesProcess => Some(format!(
                "its effect is {effect}, which is not allowed in a program with several toolboxes, because the others could \
                 delay its `halt`; put this toolbox into a program of its own"
            )),
        },
        Ok(_) => None,
    }
}

fn is_tool_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    let first = bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
    first && name.len() <= 64 && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(tool: &Value, expected: &[&str]) {
        let set = read(
            &json!({"tools": [tool]}).to_string(),
            Maker::Plugin,
            Motion::Halts,
        )
        .unwrap();
        let wrong: Vec<String> = set.dropped.into_iter().flat_map(|d| d.wrong).collect();
        assert_eq!(wrong.len(), expected.len(), "{tool}: {wrong:?}");
        for (found, expected) in wrong.iter().zip(expected) {
            assert!(found.contains(expected), "{found:?} should contain {expected:?}");
        }
    }

    #[test]
    fn a_tool_is_taken_or_left_out_with_every_reason() {
        let object = json!({"type": "object"});
        check(
            &json!({"name": "add", "effect": "read", "argument_schema": object, "output_schema": object}),
            &[],
        );
        check(
            &json!({"name": "add", "argument_schema": object, "output_schema": object}),
            &["it has no `effect`; write what the tool does: \"effect\": \"read\""],
        );
        check(
            &json!({"name": "add", "effect": "read", "argument_schema": {"$ref": "#/$defs/a", "$defs": {"a": object}}, "output_schema": object}),
            &[],
        );
        let ends = |effect| json!({"name": "land", "effect": effect, "agent_end": [{}], "argument_schema": object, "output_schema": object});
        check(&ends("safe"), &[]);
        check(
            &ends("motion"),
            &["it has `agent_end`, and its effect is motion; only a \"safe\" tool"],
        );
        check(&json!("add"), &["not an object"]);
        check(
            &json!({}),
            &[
                "no name",
                "no `effect`",
                "`argument_schema` is missing",
                "`output_schema` is missing",
            ],
        );
        check(
            &json!({"name": "9 lives", "effect": "magic", "argument_schema": {"type": "array"}, "output_schema": {"type": 5}}),
            &[
                "its name",
                "its effect",
                "`argument_schema`: schema at #/type",
                "`output_schema`: schema at #/type",
            ],
        );
    }

    #[test]
    fn the_first_of_two_tools_of_one_name_wins() {
        let tool = json!({"name": "add", "effect": "read", "argument_schema": {}, "output_schema": {}});
        let set = read(
            &json!({"tools": [tool, tool]}).to_string(),
            Maker::Plugin,
            Motion::Halts,
        )
        .unwrap();
        assert_eq!((set.tools.len(), set.dropped.len()), (1, 1));
    }

    #[test]
    fn without_a_halt_only_tools_that_move_nothing_are_accepted() {
        for effect in Effect::ALL {
            let tool = json!({"name": "t", "effect": effect, "argument_schema": {}, "output_schema": {}});
            let list = json!({"tools": [tool]}).to_string();
            let taken = |motion| read(&list, Maker::Plugin, motion).unwrap().tools.len();
            let moves_nothing = usize::from(matches!(effect, Effect::Read | Effect::Write | Effect::Resume));
            let taken = [Motion::Halts, Motion::HasNoHalt, Motion::SharesProcess].map(taken);
            assert_eq!(taken, [1, moves_nothing, moves_nothing], "{effect}");
        }
    }

    #[test]
    fn only_a_program_validates_by_itself_and_only_where_nothing_moves() {
        let odd = json!({"type": "object", "properties": {"q": {"type": "string", "default": null}}});
        for effect in Effect::ALL {
            let validated = |maker, schema: &Value| {
                let tool = json!({"name": "t", "effect": effect, "validates": true, "argument_schema": schema, "output_schema": {}});
                let list = json!({"tools": [tool]}).to_string();
                let set = read(&list, maker, Motion::Halts).unwrap();
                set.tools.first().map(|tool| tool.definition.validates)
            };
            let by_itself = matches!(effect, Effect::Read | Effect::Write);
            assert_eq!(validated(Maker::Program, &json!({})), Some(by_itself), "{effect}");
            assert_eq!(validated(Maker::Plugin, &json!({})), Some(false), "{effect}");
            // The default violates the schema, which matters only if the service validates.
            assert_eq!(
                validated(Maker::Program, &odd),
                by_itself.then_some(true),
                "{effect}"
            );
            assert_eq!(validated(Maker::Plugin, &odd), None, "{effect}");
            assert_eq!(
                validated(Maker::Program, &json!({"type": "array"})),
                None,
                "{effect}"
            );
        }
    }

    #[test]
    fn only_a_program_has_schemas_of_another_service() {
        for (keys, maker, foreign) in [
            (json!({"foreign": true}), Maker::Program, true),
            // Also where the service validates all the same.
            (json!({"validates": true}), Maker::Program, true),
            (json!({}), Maker::Program, false),
            (json!({"foreign": true, "validates": true}), Maker::Plugin, false),
        ] {
            let mut tool =
                json!({"name": "t", "effect": "motion", "argument_schema": {}, "output_schema": {}});
            tool.as_object_mut()
                .unwrap()
                .extend(keys.as_object().unwrap().clone());
            let set = read(&json!({"tools": [tool]}).to_string(), maker, Motion::Halts).unwrap();
            assert_eq!(set.tools[0].definition.foreign, foreign, "{keys} {maker:?}");
            assert_eq!(set.tools[0].is_native(), !foreign, "{keys} {maker:?}");
        }
    }

    #[test]
    fn keys_that_mean_nothing_are_named() {
        let schema = schemars::schema_for!(ovos_toolbox_wire::ToolDefinition);
        let properties: Vec<&String> = schema
            .get("properties")
            .unwrap()
            .as_object()
            .unwrap()
            .keys()
            .collect();
        assert_eq!(properties, KEYS.iter().collect::<Vec<_>>());
        let tool = json!({"name": "t", "efect": "motion", "subsystems": ["arm"]});
        let set = read(
            &json!({"tools": [tool, 5]}).to_string(),
            Maker::Plugin,
            Motion::Halts,
        )
        .unwrap();
        let named: Vec<String> = set.unknown.iter().map(ToString::to_string).collect();
        assert_eq!(named.len(), 1, "{named:?}");
        assert!(
            named[0].starts_with(
                "tool `t`: unknown keys, which are ignored: `efect`, `subsystems`; known: name, "
            )
        );
    }
}
