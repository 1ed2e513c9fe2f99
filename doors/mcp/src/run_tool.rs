//! The door's tool `run_steps`, which runs several tools of the list in one call. It is shown only if the configuration says so.

use std::sync::Arc;

use ovos_toolbox_wire::Object;
use rmcp::model::Tool;
use serde_json::{Value, json};

pub(crate) const NAME: &str = "run_steps";

const DESCRIPTION: &str = "Run several of these tools as one call; later steps can take values from the results of earlier \
    ones. A \
    step begins when the steps that it takes values from, and those in `after`, have completed; steps that are ready begin \
together. After a step that fails, is stopped or has to be confirmed no further one begins. The result says what became of each \
step. It does what its steps do, which may move a machine. Do not put a stop into a run: call it by itself, at once. A run that \
has one carries out the stop alone.";

/// The definition for clients, without annotations.
pub(crate) fn definition() -> Tool {
    Tool::new(NAME, DESCRIPTION, Arc::new(arguments()))
}

/// The schema of its arguments.
pub(crate) fn arguments() -> Object {
    let schema = json!({
        "type": "object",
        "properties": {"steps": {
            "type": "array",
            "minItems": 1,
            "maxItems": 64,
            "items": {
                "type": "object",
                "properties": {
                    "id": {"type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$", "description": "Unique in the run."},
                    "name": {"type": "string", "description": "A tool of this list."},
                    "args": {"type": "object", "additionalProperties": true, "description": "Its arguments. {\"$from\": \"STEP.PATH\"} in place of a value \
                        takes it from the result of that step, such as {\"$from\": \"find.pose.x\"}."},
                    "after": {"type": "array", "items": {"type": "string"}, "description": "Ids of further steps to wait for."},
                },
                "required": ["id", "name"],
            },
        }},
        "required": ["steps"],
    });
    match schema {
        Value::Object(schema) => schema,
        _ => Object::new(),
    }
}
