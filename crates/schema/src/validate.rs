//! The validator of a compiled schema, and the error texts for refused values.
//!
//! Patterns run on the linear-time `regex` engine (as in pydantic), so no input makes them slow, and a schema with
//! look-around is refused when it is compiled. References never leave the document.

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::paths::LocationSegment;
use jsonschema::{JsonType, PatternOptions, ValidationError, ValidationOptions, Validator};
use serde_json::{Map, Value};

use super::problem::{MAX_PROBLEMS, Problem, SchemaError};
use super::shorten::{shorten, shorten_text};
use super::unit;

/// The largest size of a compiled pattern, and of its cache, in bytes. Large repetitions (`(a{1000}){1000}`) are
/// refused and not built.
const PATTERN_BYTES: usize = 1 << 20;

/// The largest number of `enum` values that an error lists.
const MAX_MEMBERS: usize = 12;

/// The longest message, in bytes.
const MAX_TEXT: usize = 400;

/// Whether a refusal says where and why, or only that the value does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Words {
    Full,
    Brief,
}

#[derive(Debug)]
pub(super) struct Checker {
    validator: Validator,
    /// For error texts: an error knows the keyword that failed, but not the keywords beside it.
    schema: Value,
}

impl Checker {
    pub(super) fn compile(schema: &Value) -> Result<Self, SchemaError> {
        let validator = options().build(schema).map_err(|error| schema_error(&error))?;
        Ok(Self {
            validator,
            schema: schema.clone(),
        })
    }

    pub(super) fn check(&self, value: &Value, words: Words) -> Result<(), Vec<Problem>> {
        // Much cheaper than collecting errors, and nearly every call is valid.
        if self.validator.is_valid(value) {
            return Ok(());
        }
        if words == Words::Brief {
            let message =
                "does not match the schema; it is too large and too deeply nested to locate the problem"
                    .to_owned();
            return Err(vec![Problem {
                path: String::new(),
                message,
            }]);
        }
        let mut problems: Vec<Problem> = Vec::new();
        for error in self.validator.iter_errors(value) {
            let problem = describe(&error, &self.schema);
            if !problems.contains(&problem) {
                problems.push(problem);
            }
            if problems.len() == MAX_PROBLEMS {
                break;
            }
        }
        Err(problems)
    }
}

pub(super) fn options() -> ValidationOptions<'static> {
    jsonschema::options()
        .offline()
        .should_validate_formats(false)
        .should_ignore_unknown_formats(true)
        .with_pattern_options(
            PatternOptions::regex()
                .size_limit(PATTERN_BYTES)
                .dfa_size_limit(PATTERN_BYTES),
        )
}

/// A validator of a scalar's own keywords without its type; `None` when there are none.
pub(super) fn constraints(schema: &Map<String, Value>) -> Option<Validator> {
    let keywords = [
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minLength",
        "maxLength",
        "pattern",
        "not",
    ];
    let own: Map<String, Value> = keywords
        .iter()
        .filter_map(|&keyword| Some((keyword.to_owned(), schema.get(keyword)?.clone())))
        .collect();
    // Keywords that do not compile alone (a `not` with a reference) are left to the validation of the whole.
    if own.is_empty() {
        None
    } else {
        options().build(&Value::Object(own)).ok()
    }
}

/// The error for a schema that does not compile. The instance of `error` is the schema.
pub(super) fn schema_error(error: &ValidationError<'_>) -> SchemaError {
    let message = match error.kind() {
        ValidationErrorKind::Format { format } if format == "regex" => format!(
            "the pattern {} is not one that runs in bounded time (no look-around, no back references, 1 MiB)",
            shorten(error.instance())
        ),
        ValidationErrorKind::Referencing(source) => format!("reference cannot be resolved: {source}"),
        _ => expected(error, &Value::Null),
    };
    SchemaError::Invalid {
        path: format!("#{}", error.instance_path().as_str()),
        message: shorten_text(&message, MAX_TEXT),
    }
}

/// The error text for one error of an instance.
pub(super) fn describe(error: &ValidationError<'_>, schema: &Value) -> Problem {
    let error = innermost(error);
    let mut path = path_text(error.instance_path().segments());
    if let ValidationErrorKind::Required { property } = error.kind() {
        let name = property.as_str().unwrap_or_default();
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(name);
        return Problem {
            path: shorten_text(&path, 200),
            message: "required".to_owned(),
        };
    }
    let mut message = expected(error, schema);
    if let Some(advice) = unit_advice(error, schema) {
        message = format!("{message}; {advice}");
    }
    Problem {
        path: shorten_text(&path, 200),
        message: shorten_text(&message, MAX_TEXT),
    }
}

/// What to write instead of a number with its unit.
fn unit_advice(error: &ValidationError<'_>, schema: &Value) -> Option<String> {
    let wants_number = match error.kind() {
        ValidationErrorKind::Type {
            kind: TypeKind::Single(kind),
        } => matches!(kind, JsonType::Integer | JsonType::Number),
        ValidationErrorKind::Type { .. }
        | ValidationErrorKind::AnyOf { .. }
        | ValidationErrorKind::OneOfNotValid { .. } => true,
        _ => false,
    };
    if !wants_number {
        return None;
    }
    // The name and the description stand at the property, or at the list whose item the value is.
    let mut at = error.schema_path().as_str();
    let mut described = String::new();
    loop {
        let part = schema.pointer(at);
        if let Some(Value::String(text)) = part.and_then(|part| part.get("description"))
            && described.is_empty()
        {
            described.clone_from(text);
        }
        let (parent, last) = at.rsplit_once('/')?;
        if parent.ends_with("/properties") {
            return unit::advice(error.instance(), last, &described);
        }
        at = parent;
    }
}

/// The error to report for a union. If only one alternative was plausible, it is that alternative's first error,
/// because that is clearer than the error of the union.
fn innermost<'e>(error: &'e ValidationError<'e>) -> &'e ValidationError<'e> {
    let mut error = error;
    while let Some(context) = alternatives(error) {
        let depth = error.instance_path().segments().count();
        let meant: Vec<&Vec<ValidationError<'_>>> = context
            .iter()
            .filter(|errors| !errors.iter().any(|inner| is_other_kind(inner, depth)))
            .collect();
        match meant.as_slice() {
            [only] if !only.is_empty() => error = &only[0],
            _ => break,
        }
    }
    error
}

/// Whether an alternative was clearly not meant: the type or the tag differs at the union's own place.
fn is_other_kind(error: &ValidationError<'_>, depth: usize) -> bool {
    let below = error.instance_path().segments().count().saturating_sub(depth);
    match error.kind() {
        ValidationErrorKind::Type { .. } => below == 0,
        ValidationErrorKind::Constant { .. } => below <= 1,
        _ => false,
    }
}

fn alternatives<'e>(error: &'e ValidationError<'_>) -> Option<&'e Vec<Vec<ValidationError<'static>>>> {
    match error.kind() {
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            Some(context)
        }
        _ => None,
    }
}

/// The text "expected .., got .." of an error.
fn expected(error: &ValidationError<'_>, schema: &Value) -> String {
    let value = error.instance();
    let got = || format!("got {}", shorten(value));
    let count = |what: &str, limit: u64, found: usize, word: &str| {
        format!(
            "expected at {word} {limit} {what}{}, got {found}",
            if limit == 1 { "" } else { "s" }
        )
    };
    match error.kind() {
        ValidationErrorKind::Type { .. }
        | ValidationErrorKind::Enum { .. }
        | ValidationErrorKind::Constant { .. }
        | ValidationErrorKind::Minimum { .. }
        | ValidationErrorKind::Maximum { .. }
        | ValidationErrorKind::ExclusiveMinimum { .. }
        | ValidationErrorKind::ExclusiveMaximum { .. }
        | ValidationErrorKind::MultipleOf { .. } => format!("expected {}, {}", accepts(error, schema), got()),
        ValidationErrorKind::AnyOf { .. } | ValidationErrorKind::OneOfNotValid { .. } => {
            format!("expected {}, {}", union_text(error, schema), got())
        }
        ValidationErrorKind::OneOfMultipleValid { .. } => {
            format!(
                "expected exactly one of the alternatives to fit, several do: {}",
                shorten(value)
            )
        }
        ValidationErrorKind::Pattern { pattern } => {
            format!(
                "expected text that matches /{}/, {}",
                shorten_text(pattern, 120),
                got()
            )
        }
        ValidationErrorKind::MinLength { limit } => format!(
            "{}: {}",
            count("character", *limit, length(value), "least"),
            shorten(value)
        ),
        ValidationErrorKind::MaxLength { limit } => format!(
            "{}: {}",
            count("character", *limit, length(value), "most"),
            shorten(value)
        ),
        ValidationErrorKind::MinItems { limit } => count("item", *limit, length(value), "least"),
        ValidationErrorKind::MaxItems { limit } => count("item", *limit, length(value), "most"),
        ValidationErrorKind::AdditionalItems { limit } => count("item", *limit as u64, length(value), "most"),
        ValidationErrorKind::MinProperties { limit } => {
            count("entry", *limit, length(value), "least").replace("entrys", "entries")
        }
        ValidationErrorKind::MaxProperties { limit } => {
            count("entry", *limit, length(value), "most").replace("entrys", "entries")
        }
        ValidationErrorKind::UniqueItems => format!("expected no two equal items, {}", got()),
        ValidationErrorKind::Not { schema } => {
            format!("expected anything but {}, {}", shorten(schema), got())
        }
        ValidationErrorKind::Contains => format!("expected an item that matches `contains`, {}", got()),
        ValidationErrorKind::FalseSchema => "not accepted here".to_owned(),
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
            let names: Vec<String> = unexpected
                .iter()
                .take(MAX_MEMBERS)
                .map(|name| shorten_text(name, 60))
                .collect();
            format!("unknown: {}", names.join(", "))
        }
        ValidationErrorKind::PropertyNames { error } => {
            format!("a key is not accepted: {}", expected(error, schema))
        }
        ValidationErrorKind::Referencing(source) => source.to_string(),
        // The other errors are rare, and the validator's own text without the value is good enough for them.
        _ => format!("{}, {}", error.masked(), got()),
    }
}

/// What is accepted at the place of an error: a type with its members or range.
fn accepts(error: &ValidationError<'_>, schema: &Value) -> String {
    let members = match error.kind() {
        ValidationErrorKind::Enum { options } => options.as_array().cloned(),
        ValidationErrorKind::Constant { expected_value } => Some(vec![(**expected_value).clone()]),
        _ => None,
    };
    let beside = error
        .schema_path()
        .as_str()
        .rsplit_once('/')
        .and_then(|(parent, _)| schema.pointer(parent));
    let members = members.or_else(|| beside?.get("enum")?.as_array().cloned());
    if let Some(members) = members {
        let texts: Vec<String> = members.iter().take(MAX_MEMBERS).map(shorten).collect();
        let more = if members.len() > MAX_MEMBERS {
            format!(" (of {})", members.len())
        } else {
            String::new()
        };
        let one_of = if members.len() == 1 { "" } else { "one of " };
        return format!("{one_of}{}{more}", texts.join(", "));
    }
    let kind = match error.kind() {
        ValidationErrorKind::Type {
            kind: TypeKind::Single(kind),
        } => kind.to_string(),
        ValidationErrorKind::Type {
            kind: TypeKind::Multiple(kinds),
        } => {
            let kinds: Vec<String> = kinds.into_iter().map(|kind| kind.to_string()).collect();
            kinds.join(" or ")
        }
        _ => beside
            .and_then(|beside| beside.get("type")?.as_str())
            .unwrap_or("number")
            .to_owned(),
    };
    // An error whose keyword is not found in the schema still has its own limit.
    let own = match error.kind() {
        ValidationErrorKind::Minimum { limit } => vec![format!("at least {limit}")],
        ValidationErrorKind::Maximum { limit } => vec![format!("at most {limit}")],
        ValidationErrorKind::ExclusiveMinimum { limit } => vec![format!("more than {limit}")],
        ValidationErrorKind::ExclusiveMaximum { limit } => vec![format!("less than {limit}")],
        ValidationErrorKind::MultipleOf { multiple_of } => vec![format!("a multiple of {multiple_of}")],
        _ => Vec::new(),
    };
    let ranges = beside
        .map(ranges)
        .filter(|ranges| !ranges.is_empty())
        .unwrap_or(own);
    if ranges.is_empty() {
        kind
    } else {
        format!("{kind} {}", ranges.join(" and "))
    }
}

fn ranges(schema: &Value) -> Vec<String> {
    [
        ("minimum", "at least"),
        ("exclusiveMinimum", "more than"),
        ("maximum", "at most"),
        ("exclusiveMaximum", "less than"),
        ("multipleOf", "a multiple of"),
    ]
    .iter()
    .filter_map(|(keyword, words)| Some(format!("{words} {}", schema.get(keyword)?)))
    .collect()
}

/// What the alternatives of a union accept.
fn union_text(error: &ValidationError<'_>, schema: &Value) -> String {
    let mut texts: Vec<String> = Vec::new();
    for errors in alternatives(error).into_iter().flatten() {
        let Some(first) = errors.first() else { continue };
        let text = if first.instance_path() == error.instance_path() && alternatives(first).is_none() {
            match first.kind() {
                ValidationErrorKind::Required { property } => format!("an object with {property}"),
                ValidationErrorKind::AdditionalProperties { unexpected } => {
                    format!("an object without {}", shorten_text(&unexpected.join(", "), 60))
                }
                ValidationErrorKind::Type { .. }
                | ValidationErrorKind::Enum { .. }
                | ValidationErrorKind::Constant { .. } => accepts(first, schema),
                _ => expected(first, schema)
                    .trim_start_matches("expected ")
                    .split(", got ")
                    .next()
                    .unwrap_or_default()
                    .to_owned(),
            }
        } else {
            let inner = describe(first, schema);
            format!("({inner})")
        };
        if !texts.contains(&text) && texts.len() < MAX_MEMBERS {
            texts.push(text);
        }
    }
    if texts.is_empty() {
        "one of the alternatives".to_owned()
    } else {
        texts.join(" or ")
    }
}

fn length(value: &Value) -> usize {
    match value {
        Value::String(text) => text.chars().count(),
        Value::Array(items) => items.len(),
        Value::Object(map) => map.len(),
        _ => 0,
    }
}

/// A path as text, such as `arm.joints[2]`.
pub(super) fn path_text<'a>(segments: impl Iterator<Item = LocationSegment<'a>>) -> String {
    let mut text = String::new();
    for segment in segments {
        match segment {
            LocationSegment::Property(name) => {
                if !text.is_empty() {
                    text.push('.');
                }
                text.push_str(&name);
            }
            LocationSegment::Index(index) => text.push_str(&format!("[{index}]")),
        }
    }
    text
}
