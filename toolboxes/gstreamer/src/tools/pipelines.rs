//! Descriptions of pipelines.

use ovos_toolbox_sdk::prelude::*;

use super::{glance, look};
use crate::Gstreamer;
use crate::validate::{Kind, Validation, validate};

/// The tools of this family.
pub(super) fn tools() -> Vec<Tool<Gstreamer>> {
    vec![
        Tool::read("validate_pipeline", validate_pipeline)
            .category("pipelines")
            .timeout(Duration::from_secs(30)),
    ]
}

/// Check whether a GStreamer pipeline can be started, and what to fix. Starts nothing.
#[derive(Deserialize, JsonSchema)]
struct PipelineArguments {
    /// Pipeline in the syntax of gst-launch-1.0.
    pipeline: String,
}

async fn validate_pipeline(
    context: Context<Gstreamer>,
    arguments: PipelineArguments,
) -> Result<Validation, ToolError> {
    let found = glance(&context, |machine| validate(machine, &arguments.pipeline));
    let missing = found.error_kind == Some(Kind::NoElement);
    if !missing || glance(&context, |machine| machine.suggestions.is_fresh()) {
        return Ok(found);
    }
    look(&context, move |machine| {
        machine.suggestions.refresh();
        validate(machine, &arguments.pipeline)
    })
    .await
}
