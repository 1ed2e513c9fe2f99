//! Which optional functions a toolbox has.

use serde::{Deserialize, Serialize};

/// The optional functions that a toolbox has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Functions {
    #[serde(default)]
    pub(crate) plan: bool,
    #[serde(default)]
    pub(crate) conclude: bool,
    #[serde(default)]
    pub(crate) message: bool,
    #[serde(default)]
    pub(crate) halt: bool,
    #[serde(default)]
    pub(crate) safe_stop: bool,
}
