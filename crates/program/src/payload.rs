//! What `complete` and `conclude` carry: an output or an error. Read [`read`].
//!
//! A broken payload becomes a [`Failure`] that says what is wrong with it; nothing in a payload makes a function here panic.

use std::fmt::Display;

use ovos_toolbox_wire::{Content, Failure, FailureKind};
use protocol::Raw;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};

use crate::json;

/// The largest failure: a longer one is a mistake of the toolbox.
pub const MAX_FAILURE_BYTES: usize = 64 * 1024;

/// The content beside an output, which the service reads.
pub type Shown = Option<Raw<Vec<Content>>>;

/// As lenient about unknown keys as the boundary promises.
#[derive(Deserialize)]
#[serde(bound(deserialize = "T: Deserialize<'de>"))]
struct Payload<T> {
    #[serde(default, deserialize_with = "present")]
    output: Option<T>,
    #[serde(default)]
    error: Option<Failure>,
    /// Used by `complete` only.
    #[serde(default)]
    content: Shown,
}

/// Reads a value so that `null` differs from a missing key.
fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

/// The output and its content, or the failure that the toolbox reported instead.
///
/// # Errors
/// The text is not such a payload.
pub fn read<T: DeserializeOwned>(what: &str, text: &str) -> Result<Result<(T, Shown), Failure>, Failure> {
    let payload: Payload<T> = json::read(text).map_err(|e| unusable(what, &e))?;
    match (payload.output, payload.error) {
        (Some(output), None) => Ok(Ok((output, payload.content))),
        (None, Some(error)) => Ok(Err(error)),
        (Some(_), Some(_)) => Err(broken(
            what,
            "has both `output` and `error`; exactly one is expected",
        )),
        (None, None) => Err(broken(
            what,
            "has neither `output` nor `error`; exactly one is expected",
        )),
    }
}

/// A failure because the toolbox broke the rules of the boundary, not because its work failed.
pub fn broken(what: &str, cause: impl Display) -> Failure {
    Failure::new(FailureKind::ToolboxError, format!("{what} {cause}"))
}

/// The failure for a text that is not what it should be.
pub fn unusable(what: &str, error: &serde_json::Error) -> Failure {
    broken(&format!("{what} is not usable:"), error)
}

/// The failure for a text that is no list of tools.
pub fn no_list(error: &serde_json::Error) -> Failure {
    broken("the tool list is not {\"tools\": [...]}:", error)
}
