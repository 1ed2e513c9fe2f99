//! What the arguments of all tools have in common.

use ovos_toolbox_sdk::prelude::*;
use ovos_toolbox_sdk::serde::de::DeserializeOwned;

use crate::guard::Refusal;

/// The argument of every tool that names the vehicle. The fleet reads it; the types of the arguments do not have it.
pub(crate) const VEHICLE: &str = "vehicle";

/// No arguments but [`VEHICLE`].
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoArgs {}

/// Reads the arguments of a tool.
pub(super) fn parsed<A: DeserializeOwned>(mut args: Value) -> Result<A, Refusal> {
    if let Value::Object(args) = &mut args {
        args.shift_remove(VEHICLE);
    }
    serde_json::from_value(args).map_err(|error| Refusal {
        code: "bad_args",
        msg: error.to_string(),
    })
}
