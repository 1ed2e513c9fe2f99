//! The result of one check.

use serde::Serialize;

/// The result of one check.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    /// The part of the installation that was checked, such as `toolbox robot`.
    pub(super) part: String,
    pub(super) state: State,
    /// What was found.
    pub(super) found: String,
    /// The command that repairs it, or other advice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) mend: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum State {
    Good,
    /// It works, but not completely.
    Limited,
    /// It does not work.
    Broken,
}

impl Finding {
    pub(super) fn good(part: &str, found: impl Into<String>) -> Self {
        Self {
            part: part.to_owned(),
            state: State::Good,
            found: found.into(),
            mend: None,
        }
    }

    pub(super) fn limited(part: &str, found: impl Into<String>, mend: impl Into<String>) -> Self {
        Self {
            state: State::Limited,
            mend: Some(mend.into()),
            ..Self::good(part, found)
        }
    }

    pub(super) fn broken(part: &str, found: impl Into<String>, mend: impl Into<String>) -> Self {
        Self {
            state: State::Broken,
            ..Self::limited(part, found, mend)
        }
    }
}
