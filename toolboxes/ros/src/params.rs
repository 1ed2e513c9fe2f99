//! `ros_params`: the parameters of a node.

use std::time::Duration;

use ovos_toolbox_sdk::prelude::*;

use crate::list::nodes;
use crate::name::full;
use crate::shown::{fits, fitting};
use crate::toolbox::Ros;

/// How long a node is given for each of both questions.
const PATIENCE: Duration = Duration::from_secs(4);

/// So many parameters are asked for at once.
const MOST: usize = 500;

/// Read the parameters of a ROS node.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct ParamsArgs {
    /// The node: `/controller_server`.
    node: String,
    /// Only those whose name has this text.
    #[serde(default)]
    filter: String,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct ParamsOutput {
    node: String,
    /// Values by name.
    parameters: Object,
    /// What was left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

pub(crate) async fn params(context: Context<Ros>, args: ParamsArgs) -> Result<ParamsOutput, ToolError> {
    let node = full(&args.node)?;
    let graph = context.toolbox().joined.graph().await?;
    let known = nodes(&graph.entities().await?.services);
    if !known.contains(&node) {
        let known: Vec<String> = known.into_iter().take(40).collect();
        let known = if known.is_empty() {
            "none".to_owned()
        } else {
            known.join(", ")
        };
        return Err(ToolError::bad_args(format!(
            "there is no node {node} with parameters; known: {known}"
        )));
    }
    let listed = graph
        .call(
            &format!("{node}/list_parameters"),
            &json!({"prefixes": [], "depth": 0}),
            PATIENCE,
        )
        .await?;
    let names = listed["result"]["names"].as_array().into_iter().flatten();
    let filter = args.filter.trim();
    let all: Vec<&str> = names
        .filter_map(Value::as_str)
        .filter(|name| name.contains(filter))
        .collect();
    let asked = &all[..all.len().min(MOST)];
    let answer = graph
        .call(
            &format!("{node}/get_parameters"),
            &json!({"names": asked}),
            PATIENCE,
        )
        .await?;
    let values = answer["values"].as_array().map(Vec::as_slice).unwrap_or_default();
    let read: Vec<(&str, Value)> = asked.iter().copied().zip(values.iter().map(value)).collect();
    // The longest list that is small enough: half of it, again and again, costs nothing here.
    let mut shown = read.len();
    loop {
        let parameters = fitting(|cut| {
            let each = read[..shown]
                .iter()
                .map(|(name, value)| ((*name).to_owned(), cut.apply(value)));
            Value::Object(each.collect())
        });
        if fits(&parameters) || shown == 0 {
            let Value::Object(parameters) = parameters else {
                continue;
            };
            let note = (shown < all.len()).then(|| {
                format!(
                    "only {} of {} parameters are shown: name a part with filter",
                    shown,
                    all.len()
                )
            });
            return Ok(ParamsOutput {
                node,
                parameters,
                note,
            });
        }
        shown /= 2;
    }
}

/// The value of an rcl_interfaces/ParameterValue.
fn value(parameter: &Value) -> Value {
    let field = match parameter["type"].as_u64() {
        Some(1) => "bool_value",
        Some(2) => "integer_value",
        Some(3) => "double_value",
        Some(4) => "string_value",
        Some(5) => "byte_array_value",
        Some(6) => "bool_array_value",
        Some(7) => "integer_array_value",
        Some(8) => "double_array_value",
        Some(9) => "string_array_value",
        _ => return Value::Null,
    };
    parameter[field].clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_parameter_is_its_value() {
        for (number, field, expected) in [
            (0, "none", json!(null)),
            (1, "bool_value", json!(true)),
            (2, "integer_value", json!(-7)),
            (3, "double_value", json!(0.5)),
            (4, "string_value", json!("map")),
            (6, "bool_array_value", json!([true])),
            (9, "string_array_value", json!(["a", "b"])),
            (10, "none", json!(null)),
        ] {
            assert_eq!(
                value(&json!({"type": number, field: expected})),
                expected,
                "{field}"
            );
        }
    }
}
