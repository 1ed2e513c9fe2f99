//! Changes one value in the text of a file, and leaves comments, order and layout as they are. Pure. Read [`set`].

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::merge::lookup;
use super::origin::dotted;
use super::text::{LINE_ENDS, parse_json};

/// Returns the text with this value at a path of keys, in a JSON file with comment lines.
///
/// # Errors
/// The text is no such file, or something other than an object stands where the path needs one.
pub fn set(text: &str, path: &[&str], value: &Value) -> Result<String, String> {
    let plain = without_comments(text);
    let new_line = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let changed = if plain.trim().is_empty() {
        let before = text.trim_end();
        let gap = if before.is_empty() { "" } else { new_line };
        format!(
            "{before}{gap}{}{new_line}",
            written(&nested(path, value), "", new_line)
        )
    } else {
        parse_json(text)?;
        change(text, &plain, path, value, new_line)?
    };
    // What is written replaces a file of the user's, so it is read back first.
    match parse_json(&changed)? {
        Value::Object(values) if lookup(&values, path) == Some(value) => Ok(changed),
        _ => Err(format!(
            "{} cannot be set in this file",
            dotted(path.iter().copied())
        )),
    }
}

fn change(text: &str, plain: &str, path: &[&str], value: &Value, new_line: &str) -> Result<String, String> {
    let mut object = span(plain, plain.trim());
    for (depth, key) in path.iter().enumerate() {
        let rest = &path[depth + 1..];
        let members = members(&plain[object.clone()]).ok_or_else(|| {
            let at = match depth {
                0 => "the file".to_owned(),
                _ => dotted(path[..depth].iter().copied()),
            };
            format!("{at} is not an object, so {key:?} cannot be set in it")
        })?;
        let Some(found) = members.get(*key) else {
            let value = nested(rest, value);
            return Ok(insert(text, plain, object, &members, (key, &value), new_line));
        };
        let found = span(plain, found.get());
        if rest.is_empty() || &plain[found.clone()] == "null" {
            let indent = indent(plain, found.start);
            let value = written(&nested(rest, value), indent, new_line);
            return Ok(format!("{}{value}{}", &text[..found.start], &text[found.end..]));
        }
        object = found;
    }
    Ok(text.to_owned())
}

/// Adds a member behind the others.
fn insert(
    text: &str,
    plain: &str,
    object: Range<usize>,
    members: &BTreeMap<String, &RawValue>,
    (key, value): (&str, &Value),
    new_line: &str,
) -> String {
    let outer = indent(plain, object.start);
    let spans = || members.values().map(|value| span(plain, value.get()));
    let first = spans().map(|span| span.start).min();
    let one_line = |at| !plain[object.start..at].contains(LINE_ENDS);
    let key = Value::from(key);
    match (first, spans().map(|span| span.end).max()) {
        (Some(first), Some(last)) if one_line(first) => {
            format!("{}, {key}: {value}{}", &text[..last], &text[last..])
        }
        (Some(first), Some(last)) => {
            let indent = indent(plain, first);
            let value = written(value, indent, new_line);
            format!(
                "{},{new_line}{indent}{key}: {value}{}",
                &text[..last],
                &text[last..]
            )
        }
        _ => {
            let inner = format!("{outer}  ");
            let value = written(value, &inner, new_line);
            // Behind comments that stand in the empty object.
            let end = object.end - 1;
            let before = text[..end].trim_end();
            format!(
                "{before}{new_line}{inner}{key}: {value}{new_line}{outer}{}",
                &text[end..]
            )
        }
    }
}

/// The members of a JSON object, as they are written.
fn members(object: &str) -> Option<BTreeMap<String, &RawValue>> {
    serde_json::from_str(object).ok()
}

/// The value inside objects with these keys.
fn nested(path: &[&str], value: &Value) -> Value {
    path.iter().rev().fold(value.clone(), |value, key| {
        Value::Object(Map::from_iter([((*key).to_owned(), value)]))
    })
}

fn written(value: &Value, indent: &str, new_line: &str) -> String {
    format!("{value:#}").replace('\n', &format!("{new_line}{indent}"))
}

/// Where a part of a text stands in it.
fn span(text: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr().addr() - text.as_ptr().addr();
    start..start + part.len()
}

/// The white space at the start of the line of an offset.
fn indent(text: &str, at: usize) -> &str {
    let start = text[..at].rfind(LINE_ENDS).map_or(0, |end| end + 1);
    let line = text.get(start..).unwrap_or_default();
    let width = line.len() - line.trim_start_matches([' ', '\t']).len();
    &line[..width]
}

/// The text with blanks in the place of comment lines, byte for byte.
fn without_comments(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for line in text.split_inclusive(LINE_ENDS) {
        let trimmed = line.trim_start();
        if trimmed.starts_with("//") || trimmed.starts_with('#') {
            let end = line.len() - line.trim_end_matches(LINE_ENDS).len();
            plain.extend(std::iter::repeat_n(' ', line.len() - end));
            plain.push_str(&line[line.len() - end..]);
        } else {
            plain.push_str(line);
        }
    }
    plain
}
