//! Which pipelines run.

use ovos_toolbox_sdk::prelude::*;

use crate::instance::Summary;
use crate::toolbox::Gstreamer;

/// The tools of this family.
pub(crate) fn tools() -> Vec<Tool<Gstreamer>> {
    vec![Tool::read("get_running_instances", get_running_instances).category("pipelines")]
}

/// List the running GStreamer pipelines and their states.
#[derive(Deserialize, JsonSchema)]
struct NoArguments {}

#[derive(Serialize, JsonSchema)]
struct Running {
    /// The pipelines that run, in order of their start.
    instances: Vec<Summary>,
    /// The last pipelines that ended, the newest last.
    ended: Vec<Summary>,
}

async fn get_running_instances(context: Context<Gstreamer>, _: NoArguments) -> Result<Running, ToolError> {
    Ok(Running {
        instances: context.toolbox().instances.summary(),
        ended: context.toolbox().instances.over(),
    })
}
