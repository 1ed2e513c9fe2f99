//! `ovos.tools.export`: the tools in a model's own format.

use super::{Api, Request};
use serde_json::Value;

impl Api {
    pub(super) fn export(&self, _request: &Request) -> Value {
        Value::Null
    }
}
