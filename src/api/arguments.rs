//! The arguments of a call: from the keys of a request to what the toolbox gets.
//!
//! A foreign tool gets what stands under its key, as the published contract says. For a native tool the other forms of clients
//! are read, too: a request with its arguments in the wrong place must not run as if it had none. Read [`prepare`].

use std::borrow::Cow;

use ovos_toolbox_wire::{Effect, Object};
use serde_json::Value;

use super::error::WireError;
use super::request::Request;
use crate::registry::Tool;
use client::read_arguments;
use schema::{Problem, ToolArguments};

/// The keys under which requests carry arguments, here and in other interfaces.
const ARGUMENT_KEYS: [&str; 6] = ["args", "kwargs", "arguments", "parameters", "params", "input"];

/// The keys of a call beside its arguments.
const OTHER_KEYS: [&str; 10] = [
    "name",
    "toolbox_id",
    "call_id",
    "timeout_ms",
    "progress",
    "detail",
    "confirm",
    "decline",
    "content",
    "on_behalf",
];

/// The arguments in a request.
#[derive(Clone, Copy)]
pub(super) struct RequestArguments<'a> {
    data: &'a Object,
    key: &'static str,
    null_is_absent: bool,
}

impl<'a> RequestArguments<'a> {
    /// The arguments under this key of a request, or of a step of a run.
    pub(super) fn of(request: &'a Request, key: &'static str) -> Self {
        let takes_values = request.step.as_ref().is_some_and(|step| step.takes_values);
        Self {
            null_is_absent: !takes_values,
            ..Self::in_data(&request.data, key)
        }
    }

    /// The arguments under this key.
    pub(super) fn in_data(data: &'a Object, key: &'static str) -> Self {
        Self {
            data,
            key,
            null_is_absent: true,
        }
    }

    /// What stands under the key.
    pub(super) fn value(self) -> Option<&'a Value> {
        self.data.get(self.key)
    }
}

/// Prepares the arguments for the tool: coerced, with defaults, and valid for its schema.
///
/// # Errors
/// They stand in the wrong place, or do not fit the schema.
pub(super) fn prepare(tool: &Tool, in_request: RequestArguments<'_>) -> Result<ToolArguments, WireError> {
    let (args, misplaced) = if tool.compiled.is_native() {
        let args = read_native(tool, in_request)?;
        let misplaced = find_misplaced(tool, in_request, &args)?;
        (args, misplaced)
    } else {
        let args = match in_request.value() {
            None => Cow::Owned(Object::new()),
            Some(Value::Object(args)) => Cow::Borrowed(args),
            Some(other) => return Err(WireError::arguments_of_type(tool.name(), other)),
        };
        (args, Vec::new())
    };
    let mut prepared = tool
        .compiled
        .prepare(&args, in_request.null_is_absent)
        .map_err(|problems| invalid(tool, &problems))?;
    prepared.ignored.extend(misplaced);
    Ok(prepared)
}

/// Reads a native tool's arguments: those under the key, also as JSON in a string.
///
/// # Errors
/// They are not an object, or other arguments stand under another key, and the tool reads, changes or moves something.
fn read_native<'a>(tool: &Tool, in_request: RequestArguments<'a>) -> Result<Cow<'a, Object>, WireError> {
    let own = match in_request.value() {
        Some(Value::Object(args)) => Cow::Borrowed(args),
        None => Cow::Owned(Object::new()),
        Some(other) => {
            let read = read_arguments(Some(other));
            Cow::Owned(read.map_err(|error| {
                let mut refused = WireError::arguments_of_type(tool.name(), other);
                refused.text = format!("{}: {error}", refused.text);
                refused
            })?)
        }
    };
    let elsewhere = ARGUMENT_KEYS
        .iter()
        .filter(|key| **key != in_request.key)
        .filter_map(|key| {
            let read = read_arguments(Some(in_request.data.get(*key)?)).ok()?;
            (!read.is_empty() && read != *own).then_some((*key, read))
        });
    let mut elsewhere: Vec<(&str, Object)> = elsewhere.collect();
    match (tool.effect(), elsewhere.first()) {
        (_, None) => Ok(own),
        (Effect::Read | Effect::Write | Effect::Motion, Some((key, _))) => {
            let message = format!(
                "the arguments belong under '{}', not under '{key}'",
                in_request.key
            );
            Err(invalid(tool, &[problem(message)]))
        }
        // What brings to safety is carried out in any case: with the arguments under the other key if there are no others, because they
        // say which machine is meant.
        (Effect::Safe | Effect::Stop | Effect::Resume, Some(_)) => match elsewhere.pop() {
            Some((_, read)) if own.is_empty() && elsewhere.is_empty() => Ok(Cow::Owned(read)),
            _ => Ok(own),
        },
    }
}

/// Finds the arguments of the tool that stand beside the key and not under it. They are ignored.
///
/// # Errors
/// There are some, and the tool moves or changes something: it would do so with other arguments than were meant.
fn find_misplaced(
    tool: &Tool,
    in_request: RequestArguments<'_>,
    args: &Object,
) -> Result<Vec<String>, WireError> {
    let declared = &tool.compiled.definition.argument_schema["properties"];
    let is_misplaced = |name: &&String| {
        let name = name.as_str();
        let is_key = ARGUMENT_KEYS.contains(&name) || OTHER_KEYS.contains(&name);
        !is_key && declared.get(name).is_some() && !args.contains_key(name)
    };
    let misplaced: Vec<String> = in_request.data.keys().filter(is_misplaced).cloned().collect();
    match (tool.effect(), misplaced.first()) {
        (Effect::Write | Effect::Motion, Some(name)) => {
            let message = format!(
                "unexpected key '{name}' next to '{}', which takes all arguments",
                in_request.key
            );
            Err(invalid(tool, &[problem(message)]))
        }
        _ => Ok(misplaced),
    }
}

fn problem(message: String) -> Problem {
    Problem {
        path: String::new(),
        message,
    }
}

fn invalid(tool: &Tool, problems: &[Problem]) -> WireError {
    WireError::invalid_arguments(tool.name(), &tool.toolbox_id, problems)
}
