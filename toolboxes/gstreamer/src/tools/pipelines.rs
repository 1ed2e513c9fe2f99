//! Descriptions of pipelines.

use ovos_toolbox_sdk::prelude::*;

use crate::judge::AnswerText;
use crate::question::Question;
use crate::toolbox::Gstreamer;
use crate::validate::Validation;

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
    pipeline: String,
}

async fn validate_pipeline(
    context: Context<Gstreamer>,
    arguments: PipelineArguments,
) -> Result<AnswerText<Validation>, ToolError> {
    context
        .toolbox()
        .ask(Question::Pipeline(arguments.pipeline))
        .await
}
