//! The steps of a run: reads and checks them before anything runs, and fills in values from the results of earlier
//! steps. Pure.
//!
//! The results of tools are never interpreted: a `$from` counts only in the request. Read [`Steps::read`], then
//! [`Steps::give`].

use std::collections::HashMap;
use std::time::Duration;

use ovos_toolbox_wire::{Action, Effect, Object};
use serde_json::Value;

use super::memory_budget::MemoryBudget;
use client::read_arguments;
use engine::{Defaults, Plan, PlanError};
use schema::{shorten, shorten_text};

/// How many steps a run may have. Agents plan a handful; without a bound one request could fill the table of calls.
pub(super) const MOST_STEPS: usize = 64;

/// The longest id, in bytes.
const LONGEST_ID: usize = 64;

/// How many values the steps may take from results. Each is remembered until its step begins.
const MOST_VALUES: usize = 4096;

/// How many bytes of memory these values may take together.
const VALUES: usize = 16 << 20;

/// The key of an object that stands for a value from a result.
const FROM: &str = "$from";

/// How many keys or ids an error names, and the longest part of a text that it repeats, in bytes.
const SHOWN: usize = 20;
const LONGEST_SHOWN: usize = 60;

/// Why a run is not valid.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Invalid {
    #[error("'steps' must be a list of 1 to {MOST_STEPS} steps, got {0}")]
    Steps(String),
    #[error("step number {number} must be an object with id and name, got {found}")]
    Shape { number: usize, found: String },
    #[error("step number {number}: 'id' must be 1 to {LONGEST_ID} characters of [A-Za-z0-9_-], got {found}")]
    Id { number: usize, found: String },
    #[error("steps number {first} and {second} both have the id '{id}': ids are unique in a run")]
    DuplicateId { id: String, first: usize, second: usize },
    #[error("step '{step}': '{key}' must be {accepted}, got {found}")]
    Key {
        step: String,
        key: &'static str,
        accepted: &'static str,
        found: String,
    },
    #[error("step '{step}' has the unknown key '{key}'; a step has id, name, args, after and toolbox_id")]
    UnknownKey { step: String, key: String },
    #[error("step '{step}': '{key}' names '{wanted}', which is not a step of this run; its steps are {}", ids.join(", "))]
    UnknownStep {
        step: String,
        key: &'static str,
        wanted: String,
        ids: Vec<String>,
    },
    #[error(
        "step '{step}': a value from a result is {{\"$from\": \"STEP.PATH\"}} and nothing beside it, got {found}"
    )]
    From { step: String, found: String },
    #[error("the steps take more than {MOST_VALUES} values from results")]
    TooManyValues,
    #[error("the steps wait for each other in a circle: {}", .0.join(" -> "))]
    Circle(Vec<String>),
    #[error("{0}")]
    Graph(PlanError),
}

/// Why a step does not get a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum MissingValue {
    #[error("{{\"$from\": \"{from}\"}}: {found}")]
    Value { from: String, found: String },
    #[error(
        "{{\"$from\": \"{from}\"}}: the values that the steps take from results have more than {} MiB together",
        VALUES >> 20
    )]
    TooLarge { from: String },
    #[error("{{\"$from\": \"{from}\"}}: the arguments of a step are an object, got {found}")]
    NotArguments { from: String, found: String },
}

/// One step.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) toolbox_id: Option<String>,
    /// The arguments as the request has them.
    args: Value,
    /// The indexes of the steps that this step waits for.
    pub(super) waits_for: Vec<usize>,
    /// The values that this step takes from results, in their order in `args`.
    takes: Vec<Take>,
    missing: Option<MissingValue>,
}

impl Step {
    /// Whether the step takes values from the results of others.
    pub(super) fn takes_values(&self) -> bool {
        !self.takes.is_empty()
    }

    /// The data of a request that names the step's tool.
    pub(super) fn named(&self) -> Object {
        let mut data = Object::new();
        data.insert("name".to_owned(), Value::from(self.name.as_str()));
        if let Some(toolbox_id) = &self.toolbox_id {
            data.insert("toolbox_id".to_owned(), Value::from(toolbox_id.as_str()));
        }
        data
    }
}

/// A value from the result of another step.
#[derive(Debug)]
struct Take {
    /// The path, such as `find.pose.x`: a step's id, then keys or indexes.
    from: String,
    value: Option<Value>,
}

impl Take {
    fn step(&self) -> &str {
        self.from.split('.').next().unwrap_or_default()
    }
}

/// The steps of a valid run, in the order of the request.
#[derive(Debug)]
pub(super) struct Steps {
    steps: Vec<Step>,
    room: MemoryBudget,
}

impl Steps {
    /// Reads and checks the steps of a request. Does not check whether the tools exist.
    ///
    /// # Errors
    /// The first problem.
    pub(super) fn read(data: &Object) -> Result<Self, Invalid> {
        let items = match data.get("steps") {
            Some(Value::Array(items)) if (1..=MOST_STEPS).contains(&items.len()) => items,
            Some(Value::Array(items)) => return Err(Invalid::Steps(format!("a list of {}", items.len()))),
            Some(other) => return Err(Invalid::Steps(shorten(other))),
            None => return Err(Invalid::Steps("nothing".to_owned())),
        };
        let mut steps = Vec::with_capacity(items.len());
        let mut after = Vec::with_capacity(items.len());
        let mut numbers = HashMap::new();
        let mut values = 0;
        for (number, item) in (1..).zip(items) {
            let (step, named) = read_step(number, item)?;
            if let Some(first) = numbers.insert(step.id.clone(), number) {
                let (id, second) = (step.id, number);
                return Err(Invalid::DuplicateId { id, first, second });
            }
            values += step.takes.len();
            if values > MOST_VALUES {
                return Err(Invalid::TooManyValues);
            }
            steps.push(step);
            after.push(named);
        }
        for (step, after) in steps.iter_mut().zip(&after) {
            let named = after.iter().map(|id| ("after", id.as_str()));
            let taken = step.takes.iter().map(|take| (FROM, take.step()));
            let mut unknown = named.chain(taken).filter(|(_, id)| !numbers.contains_key(*id));
            if let Some((key, wanted)) = unknown.next() {
                let ids = items.iter().filter_map(|item| item.get("id")?.as_str());
                return Err(Invalid::UnknownStep {
                    step: step.id.clone(),
                    key,
                    wanted: shorten_text(wanted, LONGEST_SHOWN),
                    ids: ids.take(SHOWN).map(str::to_owned).collect(),
                });
            }
        }
        order(&mut steps, after)?;
        let room = MemoryBudget::new(VALUES);
        Ok(Self { steps, room })
    }

    /// The steps.
    pub(super) fn all(&self) -> &[Step] {
        &self.steps
    }

    /// The paths of the values that a step still waits for.
    pub(super) fn open(&self, index: usize) -> Vec<String> {
        let takes = self.steps[index].takes.iter();
        let open = takes.filter(|take| take.value.is_none());
        open.map(|take| take.from.clone()).collect()
    }

    /// The ids of the steps that a step waits for.
    pub(super) fn waits_for(&self, index: usize) -> Vec<String> {
        let before = self.steps[index].waits_for.iter();
        before.map(|&index| self.steps[index].id.clone()).collect()
    }

    /// Copies values from the result of step `index` to the steps that take them. The result is not needed afterwards.
    pub(super) fn give(&mut self, index: usize, result: &Value) {
        let id = self.steps[index].id.clone();
        for step in &mut self.steps {
            for take in step.takes.iter_mut().filter(|take| take.step() == id) {
                match look_up(&take.from, result) {
                    Ok(value) if self.room.takes_value(value) => take.value = Some(value.clone()),
                    Ok(_) => {
                        let from = take.from.clone();
                        step.missing.get_or_insert(MissingValue::TooLarge { from });
                    }
                    Err(found) => {
                        let from = take.from.clone();
                        step.missing.get_or_insert(MissingValue::Value { from, found });
                    }
                }
            }
        }
    }

    /// The arguments of a step that begins, with the values from results filled in.
    ///
    /// # Errors
    /// The first value that the step did not get.
    pub(super) fn arguments(&mut self, index: usize) -> Result<Value, MissingValue> {
        let step = &mut self.steps[index];
        if let Some(missing) = step.missing.take() {
            return Err(missing);
        }
        let mut values = step.takes.iter_mut().map(|take| take.value.take());
        let args = filled(&step.args, &mut values);
        // A client may write no arguments as "", but a result of "" is a mistake: the forms of clients count only in the request.
        match (&args, step.takes.first()) {
            (Value::Object(_), _) | (_, None) => Ok(args),
            (other, Some(take)) => Err(MissingValue::NotArguments {
                from: take.from.clone(),
                found: shorten(other),
            }),
        }
    }
}

/// Reads one step, and the ids of the steps after which it begins.
fn read_step(number: usize, item: &Value) -> Result<(Step, Vec<String>), Invalid> {
    let Value::Object(entries) = item else {
        let found = shorten(item);
        return Err(Invalid::Shape { number, found });
    };
    let id = match entries.get("id") {
        Some(Value::String(id)) if is_id(id) => id.clone(),
        other => {
            let found = describe_value(other);
            return Err(Invalid::Id { number, found });
        }
    };
    let wrong = |key, accepted, value: Option<&Value>| Invalid::Key {
        step: id.clone(),
        key,
        accepted,
        found: describe_value(value),
    };
    let keys = ["id", "name", "args", "after", "toolbox_id"];
    if let Some(key) = entries.keys().find(|key| !keys.contains(&key.as_str())) {
        return Err(Invalid::UnknownKey {
            step: id,
            key: shorten_text(key, LONGEST_SHOWN),
        });
    }
    let name = match entries.get("name") {
        Some(Value::String(name)) if !name.is_empty() => name.clone(),
        other => return Err(wrong("name", "the name of a tool", other)),
    };
    let toolbox_id = match entries.get("toolbox_id") {
        None | Some(Value::Null) => None,
        Some(Value::String(toolbox_id)) => Some(toolbox_id.clone()),
        other => return Err(wrong("toolbox_id", "a string", other)),
    };
    let args = entries.get("args");
    let args = read_arguments(args).map_err(|_| wrong("args", "an object", args))?;
    let args = Value::Object(args);
    let accepted = "a list of ids of steps";
    let after = match entries.get("after") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(after)) => {
            let id = |value: &Value| match value {
                Value::String(id) => Ok(id.clone()),
                other => Err(wrong("after", accepted, Some(other))),
            };
            after.iter().map(id).collect::<Result<_, _>>()?
        }
        other => return Err(wrong("after", accepted, other)),
    };
    let mut takes = Vec::new();
    find_takes(&args, &mut takes).map_err(|found| Invalid::From {
        step: id.clone(),
        found: shorten(found),
    })?;
    let step = Step {
        id,
        name,
        toolbox_id,
        args,
        waits_for: Vec::new(),
        takes,
        missing: None,
    };
    Ok((step, after))
}

fn is_id(id: &str) -> bool {
    let legal = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    (1..=LONGEST_ID).contains(&id.len()) && id.bytes().all(legal)
}

fn describe_value(value: Option<&Value>) -> String {
    value.map_or_else(|| "nothing".to_owned(), shorten)
}

/// Collects the values that arguments take from results, in order. The error is an object that has the key `$from` but
/// is not valid.
fn find_takes<'a>(at: &'a Value, takes: &mut Vec<Take>) -> Result<(), &'a Value> {
    match at {
        Value::Object(entries) => match entries.get(FROM) {
            None => entries.values().try_for_each(|value| find_takes(value, takes)),
            Some(Value::String(from))
                if entries.len() == 1 && from.split('.').all(|part| !part.is_empty()) =>
            {
                let from = from.clone();
                takes.push(Take { from, value: None });
                Ok(())
            }
            Some(_) => Err(at),
        },
        Value::Array(items) => items.iter().try_for_each(|value| find_takes(value, takes)),
        _ => Ok(()),
    }
}

/// The arguments with these values filled in. A `$from` inside a value is not interpreted.
fn filled(at: &Value, values: &mut impl Iterator<Item = Option<Value>>) -> Value {
    match at {
        Value::Object(entries) if entries.contains_key(FROM) => values.next().flatten().unwrap_or_default(),
        Value::Object(entries) => {
            let entries = entries.iter();
            Value::Object(
                entries
                    .map(|(key, value)| (key.clone(), filled(value, values)))
                    .collect(),
            )
        }
        Value::Array(items) => items.iter().map(|value| filled(value, values)).collect(),
        other => other.clone(),
    }
}

/// Sets the steps that each step waits for. The engine's graph finds circles.
fn order(steps: &mut [Step], after: Vec<Vec<String>>) -> Result<(), Invalid> {
    let nodes = steps.iter().zip(after).map(|(step, mut dependencies)| {
        dependencies.extend(step.takes.iter().map(|take| take.step().to_owned()));
        Action {
            id: Some(step.id.clone()),
            dependencies,
            ..Action::named(&step.id)
        }
    });
    let defaults = Defaults {
        effect: Effect::Read,
        timeout: Duration::ZERO,
    };
    let plan = Plan::new(nodes.collect(), defaults).map_err(|error| match error {
        PlanError::Cycle { path } => Invalid::Circle(path),
        other => Invalid::Graph(other),
    })?;
    for (step, node) in steps.iter_mut().zip(plan.actions) {
        step.waits_for = node.dependencies;
    }
    Ok(())
}

/// The value at a path such as `find.pose.x` in the result of `find`. The error says what the result has instead.
fn look_up<'a>(from: &str, result: &'a Value) -> Result<&'a Value, String> {
    let mut parts = from.split('.');
    let mut whose = format!("the result of step '{}'", parts.next().unwrap_or_default());
    let mut at = result;
    for part in parts {
        let next = match at {
            Value::Object(entries) => entries.get(part),
            Value::Array(items) if part.bytes().all(|b| b.is_ascii_digit()) => {
                part.parse().ok().and_then(|index: usize| items.get(index))
            }
            _ => None,
        };
        let text = shorten_text(part, LONGEST_SHOWN);
        at = next.ok_or_else(|| format!("{whose} has no '{text}': {}", describe_content(at)))?;
        whose = format!("its '{text}'");
    }
    Ok(at)
}

/// Describes a value in the error for a path that it does not have.
fn describe_content(value: &Value) -> String {
    match value {
        Value::Object(entries) if entries.is_empty() => "it is empty".to_owned(),
        Value::Object(entries) => {
            let keys = entries.keys().take(SHOWN);
            let keys: Vec<String> = keys.map(|key| shorten_text(key, LONGEST_SHOWN)).collect();
            format!("it has {}", keys.join(", "))
        }
        Value::Array(items) => format!("it is a list of {}", items.len()),
        other => format!("it is {}", shorten(other)),
    }
}
