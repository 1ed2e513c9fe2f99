//! Why a robot's file, or a file of poses, cannot be used.
//!
//! Owns the texts: the file, its line, what is wrong there, what is accepted, and the name that was probably meant. Read
//! [`ModelError`].

use crate::error::ActionError;

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
    #[error("{name}: {what}: {source}")]
    Position {
        /// Which file, with the line where it is known.
        name: String,
        /// Which pose.
        what: String,
        /// The joint and its limit.
        source: ActionError,
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
            Self::Position { what, source, .. } => Self::Position { name, what, source },
        }
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
        let (name, what) = match &mut self {
            Self::Parse { name, message } => {
                let entry = message.split_once(':').map_or("", |(entry, _)| entry);
                let last = entry.rsplit('.').next().unwrap_or_default();
                (name, last.to_owned())
            }
            Self::Position { name, what, .. } => (name, what.clone()),
        };
        let begins = |line: &str| {
            // `wave = {...}` in a table, or `[poses.wave]`.
            let line = line.trim().trim_start_matches('[');
            let key = line.split(['=', ']']).next().unwrap_or_default();
            let last = key.rsplit('.').next().unwrap_or_default();
            last.trim().trim_matches(['"', '\'']) == what
        };
        if let Some(line) = text.lines().position(begins) {
            *name = at(name, line + 1);
        }
        self
    }
}

/// A place in a file.
fn at(name: &str, line: usize) -> String {
    format!("{name}, line {line}")
}

/// The message of a parser, in one line, with the accepted name that is nearest to an unknown one.
pub(crate) fn taught(message: &str) -> String {
    let message = message.trim().replace('\n', "; ");
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
        ] {
            assert_eq!(taught(said), expected);
        }
    }
}
