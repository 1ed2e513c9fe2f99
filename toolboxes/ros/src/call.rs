//! `ros_call`: a service that an owner allows.

use std::time::Duration;

use ovos_toolbox_sdk::prelude::*;

use crate::name::subsystem;
use crate::shown::fitting;
use crate::toolbox::{Ros, limit_ms};

/// How long the service and its answer are waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// Call a service of the ROS graph that the owner allows. Its effect cannot be undone.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct CallArgs {
    /// Such as /motor_power.
    service: String,
    /// The fields; those that are left out are zero.
    #[serde(default)]
    request: Object,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct CallOutput {
    service: String,
    /// What it answered.
    response: Value,
}

/// The plan of a call: what it holds.
pub(crate) fn plan(toolbox: &Ros, args: Object) -> Result<Vec<Action>, ToolError> {
    let service = args.get("service").and_then(Value::as_str).unwrap_or_default();
    let service = toolbox.config.allow.call(service)?;
    Ok(vec![Action {
        subsystems: vec![subsystem(&service)],
        timeout_ms: Some(limit_ms(PATIENCE.as_secs_f64())),
        params: args,
        ..Action::named("ros_call")
    }])
}

pub(crate) async fn call(context: Context<Ros>, args: CallArgs) -> Result<CallOutput, ToolError> {
    let toolbox = context.toolbox();
    let service = toolbox.config.allow.call(&args.service)?;
    let graph = toolbox.joined.graph().await?;
    // A call that was halted meanwhile is not sent.
    context.command(|| ())?;
    let response = graph
        .call(&service, &Value::Object(args.request), PATIENCE)
        .await?;
    Ok(CallOutput {
        service,
        response: fitting(|cut| cut.apply(&response)),
    })
}
