//! A tool: its row in the table of the guards, its schemas, and what it does. Read [`Entry`].

use futures_util::future::BoxFuture;
use ovos_toolbox_sdk::prelude::*;

use crate::answer::Reply;
use crate::guard::{self, Refusal, Row};
use crate::vehicle::Call;

/// A call that the guards have allowed.
pub(crate) struct Job {
    pub(crate) call: Call,
    pub(crate) row: &'static Row,
    pub(crate) args: Value,
}

/// One tool.
pub(crate) struct Entry {
    pub(crate) row: &'static Row,
    pub(crate) argument_schema: Value,
    pub(crate) output_schema: Value,
    pub(crate) run: fn(Job) -> BoxFuture<'static, Reply>,
    /// Checks that the arguments deserialize.
    pub(crate) readable: fn(&Value) -> Result<(), Refusal>,
    /// Required fields of the answer, for a call that did not produce them.
    pub(super) blank: fn() -> Value,
}

impl Entry {
    /// Checks for unknown arguments. A tool that brings a vehicle to safety drops them, because it must not be refused for an extra
    /// argument; for every other tool the call is refused, and the error names the argument.
    pub(crate) fn known_arguments(&self, args: Value) -> Result<Value, Refusal> {
        let Value::Object(mut args) = args else {
            return Ok(args);
        };
        let has_argument = |name: &str| self.argument_schema["properties"].get(name).is_some();
        if matches!(self.row.effect, Effect::Safe | Effect::Stop) {
            args.retain(|name, _| has_argument(name));
        } else if let Some(name) = args.keys().find(|name| !has_argument(name)) {
            let names = self.argument_schema["properties"].as_object();
            let names: Vec<&str> = names
                .into_iter()
                .flatten()
                .map(|(name, _)| name.as_str())
                .collect();
            return guard::refuse(
                "bad_args",
                format!("unknown argument '{name}'; known: {}", names.join(", ")),
            );
        }
        Ok(Value::Object(args))
    }

    /// Adds the fields that the output schema requires to an answer without them.
    pub(crate) fn complete(&self, mut reply: Reply) -> Reply {
        if let Value::Object(blank) = (self.blank)() {
            for (key, value) in blank {
                reply.fields.entry(key).or_insert(value);
            }
        }
        reply
    }
}
