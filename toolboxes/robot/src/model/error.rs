//! Why a robot's file, or a file of poses, cannot be used.
//!
//! Owns the texts: the file, its line, what is wrong there, what is accepted, and the name that was probably meant. Read
//! [`ModelError`].

use crate::error::ActionError;

/// Where a position that no line of the file gives comes from.
const MIRRORED: &str = "; the left arm takes the angles of the right arm, each times its number of `mirror`";

/// A file cannot be used.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The file has the wrong shape, or cannot be read.
    #[error("{name}: {message}")]
    Parse {
        /// Which file, with the line where it is known.
        name: String,
        /// Where and why.
        message: String,
    },
    /// A position is beyond a limit.
    #[error("{name}: {what}: {source}{}", if *mirrored { MIRRORED } else { "" })]
    Position {
        /// Which file, with the line where it is known.
        name: String,
        /// Which pose.
        what: String,
        /// The joint and its limit.
        source: ActionError,
        /// Whether it is the position of the right arm, mirrored for the left one.
        mirrored: bool,
    },
}

impl ModelError {
    /// An error of an entry: `entry: what is wrong with it`.
    pub(crate) fn parse(name: &str, message: impl Into<String>) -> Self {
        Self::Parse {
            name: name.to_owned(),
            message: message.into(),
        }
    }

    /// The same error, of another file.
    #[must_use]
    pub(crate) fn of(self, origin: &str) -> Self {
        let name = origin.to_owned();
        match self {
            Self::Parse { message, .. } => Self::Parse { name, message },
            Self::Position {
                what,
                source,
                mirrored,
                ..
            } => Self::Position {
                name,
                what,
                source,
                mirrored,
            },
        }
    }

    /// The same error, of a position that was mirrored.
    pub(crate) fn mirrored(mut self) -> Self {
        if let Self::Position { mirrored, .. } = &mut self {
            *mirrored = true;
        }
        self
    }

    /// An error of TOML, with its line, what is accepted, and the nearest name.
    pub(crate) fn toml(name: &str, text: &str, error: &toml::de::Error) -> Self {
        let message = taught(error.message());
        Self::Parse {
            name: match error.span() {
                Some(span) => at(
                    name,
                    text.get(..span.start).unwrap_or_default().matches('\n').count() + 1,
                ),
                None => name.to_owned(),
            },
            message,
        }
    }

    /// The error with the line at which its entry begins.
    #[must_use]
    pub(crate) fn located(mut self, text: &str) -> Self {
        let (name, entry) = match &mut self {
            Self::Parse { name, message } => {
                let entry = message.split_once(':').map_or("", |(entry, _)| entry);
                (name, entry.to_owned())
            }
            Self::Position { name, what, .. } => (name, what.clone()),
        };
        if let Some(line) = line_of(text, &entry) {
            *name = at(name, line);
        }
        self
    }
}

/// The line of an entry such as `parts.right_arm.gripper.open`: its own, or that of what it stands in, before one of another table
/// that has the same key.
fn line_of(text: &str, entry: &str) -> Option<usize> {
    let wanted: Vec<&str> = entry.split('.').collect();
    let mut table: Vec<&str> = Vec::new();
    let mut best = None;
    for (before, line) in text.lines().enumerate() {
        let Some((keys, is_table)) = keys_of(line.trim()) else {
            continue;
        };
        let path = match is_table {
            true => keys,
            false => table.iter().copied().chain(keys).collect(),
        };
        let same_key = path.last() == wanted.last();
        let rank = if path == wanted {
            (4, 0)
        } else if path.len() > 1 && wanted.starts_with(&path) {
            (3, path.len())
        } else if same_key && path.first() == wanted.first() {
            (2, 0)
        } else if wanted.starts_with(&path) {
            (1, 0)
        } else {
            (0, 0)
        };
        let is_candidate = rank.0 > 0 || same_key;
        if is_candidate && best.is_none_or(|(other, _)| rank > other) {
            best = Some((rank, before + 1));
        }
        if is_table {
            table = path;
        }
    }
    best.map(|(_, line)| line)
}

/// The keys that a line begins: those of a table, or of a value in the table before it.
fn keys_of(line: &str) -> Option<(Vec<&str>, bool)> {
    let table = line.trim_start_matches('[');
    let is_table = table != line;
    let (keys, _) = table.split_once(if is_table { ']' } else { '=' })?;
    let keys: Vec<&str> = keys
        .split('.')
        .map(|key| key.trim().trim_matches(['"', '\'']))
        .collect();
    let is_key = |key: &&str| {
        !key.is_empty()
            && key
                .chars()
                .all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | ' '))
    };
    keys.iter().all(is_key).then_some((keys, is_table))
}

/// A place in a file.
fn at(name: &str, line: usize) -> String {
    format!("{name}, line {line}")
}

/// The message of a parser, in one line, with the accepted name that is nearest to an unknown one.
pub(crate) fn taught(message: &str) -> String {
    let mut message = message.trim().replace('\n', "; ");
    // The parser names types of ours.
    if let Some((before, expected)) = message.split_once("expected ") {
        let (word, mut rest) = first_word(expected);
        let plain = match word {
            "u8" => "a whole number from 0 to 255",
            "u16" => "a whole number from 0 to 65535",
            "u32" | "u64" | "usize" => "a whole number, 0 or more",
            "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
            "f32" | "f64" => "a number",
            "struct" => {
                rest = first_word(rest.trim_start()).1;
                "a table"
            }
            other => other,
        };
        message = format!("{before}expected {plain}{rest}");
    }
    let mut names = message.split('`').skip(1).step_by(2);
    let unknown = message.starts_with("unknown field") || message.starts_with("unknown variant");
    let Some(given) = names.next().filter(|_| unknown) else {
        return message;
    };
    match nearest(given, names) {
        Some(near) => format!("{message}; did you mean `{near}`?"),
        None => message,
    }
}

/// The letters and digits that a text begins with, and what follows them.
fn first_word(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_alphanumeric()).unwrap_or(text.len()))
}

/// The name that was probably meant.
pub(crate) fn nearest<'a>(given: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let given = given.to_lowercase();
    known
        .map(|name| (strsim::jaro_winkler(&given, name), name))
        .filter(|(similarity, _)| *similarity > 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_found_where_it_stands() {
        let text = "name = \"x\"\n[parts.left_arm]\njoints = [\n    { name = \"open\", min = 0 },\n]\n[parts.right_arm]\n\
                    gripper = { joint = 2, open = 50 }\n[[channels.buses]]\nmotors = [\n]\n[keyframes]\nopen = [0]\n\
                    \"two words\" = [1]\n[point]\njoint = 0\n[places.cup]\nat = [0]\n";
        for (entry, line) in [
            ("name", Some(1)),
            ("parts.right_arm.gripper.open", Some(7)),
            ("parts.right_arm.gripper.joint", Some(7)),
            ("parts.right_arm.joints", Some(6)),
            ("parts.left_arm.joints.open.min", Some(3)),
            ("channels.buses", Some(8)),
            ("channels.motors", Some(9)),
            ("keyframes.open", Some(12)),
            ("open", Some(12)),
            ("two words", Some(13)),
            ("point.joint", Some(15)),
            ("places.cup.at", Some(17)),
            ("cup", Some(16)),
            ("nothing", None),
        ] {
            assert_eq!(line_of(text, entry), line, "{entry}");
        }
    }

    #[test]
    fn an_unknown_word_is_answered_with_the_nearest() {
        for (said, expected) in [
            (
                "unknown field `pots`, expected one of `baud`, `ports`\n",
                "unknown field `pots`, expected one of `baud`, `ports`; did you mean `ports`?",
            ),
            (
                "unknown variant `zzz`, expected `hold` or `damp`",
                "unknown variant `zzz`, expected `hold` or `damp`",
            ),
            ("missing field `name`", "missing field `name`"),
            (
                "invalid type: string \"/scan\", expected struct ScanChannel",
                "invalid type: string \"/scan\", expected a table",
            ),
            (
                "invalid type: map, expected u64",
                "invalid type: map, expected a whole number, 0 or more",
            ),
            (
                "invalid value: integer `300`, expected u8; in `id`",
                "invalid value: integer `300`, expected a whole number from 0 to 255; in `id`",
            ),
            (
                "invalid type: map, expected f32 here",
                "invalid type: map, expected a number here",
            ),
            (
                "invalid value, expected usual words",
                "invalid value, expected usual words",
            ),
        ] {
            assert_eq!(taught(said), expected);
        }
    }
}
