//! The answer to an order. Read [`Answer`].

use ovos_toolbox_wire::Failure;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Raw;

/// What came of an order: exactly one of the keys is present.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Answer<T> {
    /// It was done.
    Ok(T),
    /// It was not done.
    Error(Raw<Failure>),
    /// It was not done: the toolbox is closed.
    Lost(Raw<Failure>),
}

impl<T> From<Result<T, Failure>> for Answer<T> {
    fn from(result: Result<T, Failure>) -> Self {
        match result {
            Ok(value) => Self::Ok(value),
            Err(failure) => Self::Error(Raw::of(&failure)),
        }
    }
}
