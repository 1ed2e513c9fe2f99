//! The syntax of one file: JSON with whole comment lines (`//` or `#`), or YAML if the name ends in `.yml` or
//! `.yaml`. Knows no keys.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;
use serde_json::{Map, Value};

use super::yaml;

/// The largest file that is read. A longer one is a mistake, and would take the memory of the service.
const LARGEST: u64 = 8 << 20;

/// Reads one file. `None` if nothing has that name, or the null device does; an empty YAML file is an empty object.
///
/// # Errors
/// The cause, with the line where it is known. A name that leads to something other than a readable file is an error:
/// a link without a target, a folder, a pipe.
pub(super) fn read(path: &Path) -> Result<Option<Map<String, Value>>, String> {
    let Some(bytes) = content(path)? else {
        return Ok(None);
    };
    let text = String::from_utf8(bytes)
        .map_err(|error| format!("not UTF-8 at byte {}", error.utf8_error().valid_up_to()))?;
    let value = if is_yaml(path) {
        yaml::parse(&text)?
    } else {
        parse_json(&text)?
    };
    match value {
        Value::Object(values) => Ok(Some(values)),
        other if !truthy(&other) => Ok(Some(Map::new())),
        other => Err(format!(
            "the file contains {}, expected an object of sections",
            describe(&other)
        )),
    }
}

/// Returns what can be read of a file that cannot be parsed, in lower case; `None` if its content cannot be read.
pub(super) fn words(path: &Path) -> Option<String> {
    let bytes = content(path).ok().flatten()?;
    Some(String::from_utf8_lossy(&bytes).to_lowercase())
}

fn content(path: &Path) -> Result<Option<Vec<u8>>, String> {
    let absent = |error: &io::Error| matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory);
    // The opening of a pipe would wait for a writer.
    let opened = File::options()
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(path);
    let file = match opened {
        Ok(file) => file,
        Err(error) if absent(&error) && fs::symlink_metadata(path).is_err_and(|error| absent(&error)) => {
            return Ok(None);
        }
        Err(error) if absent(&error) => {
            return Err("it is a symbolic link to a file that does not exist".to_owned());
        }
        Err(error) => return Err(error.to_string()),
    };
    let found = file.metadata().map_err(|error| error.to_string())?;
    if found.file_type().is_char_device() {
        // The way to name no file.
        return Ok(None);
    }
    if !found.is_file() {
        let what = if found.is_dir() {
            "a folder"
        } else {
            "not a regular file"
        };
        return Err(format!("it is {what}, expected a file"));
    }
    let mut bytes = Vec::new();
    file.take(LARGEST + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| error.to_string())?;
    if bytes.len() as u64 > LARGEST {
        return Err(format!("it is larger than {} MiB", LARGEST >> 20));
    }
    Ok(Some(bytes))
}

/// Whether a file of this name is parsed as YAML.
pub(super) fn is_yaml(path: &Path) -> bool {
    path.as_os_str()
        .to_str()
        .is_some_and(|name| name.ends_with(".yml") || name.ends_with(".yaml"))
}

/// The characters that end a line for Python's `str.splitlines`, in addition to `\r\n`.
pub(super) const LINE_ENDS: [char; 10] = [
    '\n', '\r', '\x0b', '\x0c', '\x1c', '\x1d', '\x1e', '\u{85}', '\u{2028}', '\u{2029}',
];

/// Parses strict JSON after removing the comment lines. Lines are joined with blanks as in OVOS, so a string may be
/// broken across lines.
///
/// # Errors
/// The parser's message, with the line number in the file.
pub(super) fn parse_json(text: &str) -> Result<Value, String> {
    let text = text.replace("\r\n", "\n");
    let mut joined = String::with_capacity(text.len());
    // The offset of each kept line in `joined`, and its number in the file.
    let mut starts = Vec::new();
    for (number, line) in text.split(LINE_ENDS).enumerate() {
        let trimmed = line.trim_start();
        if trimmed.starts_with("//") || trimmed.starts_with('#') {
            continue;
        }
        if !starts.is_empty() {
            joined.push(' ');
        }
        starts.push((joined.len(), number + 1));
        joined.push_str(line);
    }
    if joined.trim().is_empty() {
        return Err("the file is empty, expected at least {}".to_owned());
    }
    serde_json::from_str(&joined).map_err(|error| {
        // The joined text is one line, so the parser's column is an offset into it.
        let offset = error.column().saturating_sub(1);
        let line = starts
            .partition_point(|(start, _)| *start <= offset)
            .checked_sub(1)
            .map_or(1, |at| starts[at].1);
        let message = error.to_string();
        let cause = message
            .rsplit_once(" at line ")
            .map_or(message.as_str(), |(cause, _)| cause);
        let rest = joined.get(offset..).unwrap_or_default().trim_start();
        if rest.starts_with("//") || rest.starts_with('#') {
            return format!("line {line}: {cause} (OVOS allows comments only on a line of their own)");
        }
        format!("line {line}: {cause}")
    })
}

/// Applies Python's truth test.
pub(super) fn truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(flag) => *flag,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(values) => !values.is_empty(),
    }
}

/// Returns the type of a value that may be secret, for an error message.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Formats a value for an error message: lists and objects by their type, strings of more than 60 characters cut.
pub(super) fn describe(value: &Value) -> String {
    match value {
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        Value::String(text) if text.chars().count() > 60 => {
            format!("{:?}...", text.chars().take(60).collect::<String>())
        }
        other => other.to_string(),
    }
}
