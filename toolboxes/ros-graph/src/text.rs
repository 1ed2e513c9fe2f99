//! The language of `.msg`, `.srv` and `.action` files. It looks no type up. Read [`parse`].

mod line;
mod literal;

use crate::definition::{Definition, Field, Kind, TypeName};
use crate::error::TypeError;

/// The parts of a file of this kind, between the lines `---`.
fn parts_of(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Message => &[""],
        Kind::Service => &["_Request", "_Response"],
        Kind::Action => &["_Goal", "_Result", "_Feedback"],
    }
}

/// The messages of a file: one, or the two of a service, or the three of an action.
///
/// # Errors
/// A line is not of the language, or there are more or fewer `---` than the kind has.
pub fn parse(name: &TypeName, text: &str) -> Result<Vec<Definition>, TypeError> {
    let suffixes = parts_of(name.kind);
    let empty = |suffix: &&str| Definition {
        name: name.part(suffix),
        fields: Vec::new(),
        constants: Vec::new(),
    };
    let mut parts: Vec<Definition> = suffixes.iter().map(empty).collect();
    let mut part = 0;
    let mut above = String::new();
    for (number, raw) in text.lines().enumerate() {
        let wrong = |reason: &str| TypeError::Syntax {
            name: name.to_string(),
            line: number + 1,
            reason: reason.to_owned(),
            text: raw.trim().to_owned(),
        };
        let (written, comment) = line::split_comment(raw.trim());
        if written == "---" {
            part += 1;
            above.clear();
            if part == parts.len() {
                return Err(wrong("more parts than a file of this kind has"));
            }
            continue;
        }
        if written.is_empty() {
            match comment {
                Some(comment) => {
                    above.push_str(comment);
                    above.push(' ');
                }
                None => above.clear(),
            }
            continue;
        }
        let comment = comment.map_or_else(|| above.trim().to_owned(), str::to_owned);
        above.clear();
        match line::read(written, name).map_err(|reason| wrong(&reason))? {
            line::Line::Constant(constant) => parts[part].constants.push(constant),
            line::Line::Field(field) => {
                if parts[part].fields.iter().any(|known| known.name == field.name) {
                    return Err(wrong("a second field of this name"));
                }
                parts[part].fields.push(Field { comment, ..field });
            }
        }
    }
    match part + 1 == parts.len() {
        true => Ok(parts),
        false => Err(TypeError::Syntax {
            name: name.to_string(),
            line: text.lines().count(),
            reason: format!("expected {} parts with --- between them", parts.len()),
            text: String::new(),
        }),
    }
}

#[cfg(test)]
#[path = "text/tests.rs"]
mod tests;
