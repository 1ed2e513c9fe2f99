//! Starting, stopping and changing pipelines.

use ovos_toolbox_sdk::prelude::*;

use super::for_models::{hidden, untold};
use crate::config::Restart;
use crate::instance::Ask;
use crate::order::Changed;
use crate::question::Question;
use crate::report::{Message, Phase};
use crate::toolbox::Gstreamer;
use crate::validate::Validation;

/// The tools of this family.
pub(crate) fn tools() -> Vec<Tool<Gstreamer>> {
    vec![
        Tool::write("start_pipeline", start_pipeline)
            .category("pipelines")
            .for_models(
                hidden(&["autostart", "wait_for", "wait_ms"])
                    .into_iter()
                    .chain(untold(&["restart"]))
                    .collect(),
            )
            .timeout(Duration::from_secs(90)),
        Tool::write("stop_pipeline", stop_pipeline)
            .category("pipelines")
            .timeout(Duration::from_secs(75)),
        Tool::write("pause_pipeline", pause_pipeline)
            .category("pipelines")
            .timeout(Duration::from_secs(70)),
        Tool::write("resume_pipeline", resume_pipeline)
            .category("pipelines")
            .timeout(Duration::from_secs(70)),
        Tool::write("set_pipeline_property", set_pipeline_property)
            .category("pipelines")
            .audience(Audience::Person)
            .timeout(Duration::from_secs(70)),
    ]
}

/// Start a GStreamer pipeline and keep it running: record, play or stream. Call validate_pipeline first.
#[derive(Deserialize, JsonSchema)]
struct StartPipeline {
    /// In gst-launch-1.0 syntax: `v4l2src ! videoconvert ! x264enc ! mp4mux ! filesink location=a.mp4`.
    /// A file without a folder goes to the folder for recordings.
    pipeline: String,
    /// A name for other calls, in place of the id.
    #[serde(default)]
    #[schemars(length(max = 64))]
    name: Option<String>,
    #[serde(default)]
    restart: Restart,
    /// Also start it each time that the toolbox starts.
    #[serde(default)]
    autostart: bool,
    /// `started` returns at once; `playing` waits.
    #[serde(default)]
    wait_for: WaitFor,
    /// Milliseconds to wait for playing.
    #[serde(default = "five_seconds")]
    #[schemars(range(max = 60_000))]
    wait_ms: u64,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum WaitFor {
    #[default]
    Playing,
    Started,
}

fn five_seconds() -> u64 {
    5_000
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Started")]
struct StartedPipeline {
    /// The id that the other tools take.
    instance_id: String,
    /// Its state; `starting` when it does not play within `wait_ms`, such as a player that waits for its peer.
    state: Phase,
    /// The files, or patterns of file names, that it writes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    files: Vec<std::path::PathBuf>,
    /// The last error of a pipeline that is being restarted.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

async fn start_pipeline(
    context: Context<Gstreamer>,
    args: StartPipeline,
) -> Result<StartedPipeline, ToolError> {
    let instances = &context.toolbox().instances;
    let text = args.pipeline.clone();
    let instance = instances
        .start(Ask {
            pipeline: args.pipeline,
            name: args.name,
            restart: args.restart,
            autostart: args.autostart,
        })
        .await;
    let instance = match instance {
        Err(error) if error.kind() == "PipelineError" => {
            let message = explained(&context, text, error.message()).await;
            return Err(ToolError::new("PipelineError", message));
        }
        instance => instance?,
    };
    let instance_id = instance.id();
    let wait = match args.wait_for {
        WaitFor::Playing => Duration::from_millis(args.wait_ms.min(60_000)),
        WaitFor::Started => Duration::ZERO,
    };
    let phase = instances.wait_playing(&instance_id, wait).await;
    // An instance that has ended is not in the table; its last message gives the reason.
    let status = instances.status(&instance_id).await?;
    if status.summary.state == Phase::Failed {
        let error = status.last_error.as_ref();
        let message = error.map_or_else(
            || "it failed, and no element gave a reason".to_owned(),
            Message::line,
        );
        let message = explained(&context, text, &message).await;
        return Err(ToolError::new("PipelineError", message)
            .with_data(json!({"instance_id": instance_id, "error": error})));
    }
    instance.keep();
    Ok(StartedPipeline {
        instance_id,
        state: phase
            .filter(|phase| !phase.is_over())
            .unwrap_or(status.summary.state),
        files: status.summary.files,
        error: status.summary.error,
    })
}

/// What is wrong with a description.
#[derive(Deserialize)]
struct Verdict {
    error: Option<String>,
    suggestion: Option<String>,
}

/// The message of a failed start, with what a check finds wrong in the description.
async fn explained(context: &Context<Gstreamer>, text: String, message: &str) -> String {
    let found = context
        .toolbox()
        .ask::<Validation>(Question::Pipeline(text))
        .await;
    let Ok(found) = found.and_then(|found| found.read::<Verdict>()) else {
        return message.to_owned();
    };
    let error = found
        .error
        .filter(|error| !message.replace('"', "'").contains(error.as_str()));
    let why: Vec<String> = [error, found.suggestion].into_iter().flatten().collect();
    if why.is_empty() {
        return message.to_owned();
    }
    format!("{message}; {}", why.join(": "))
}

/// Stop a pipeline. Its recordings are finished first.
#[derive(Deserialize, JsonSchema)]
struct StopPipeline {
    instance_id: String,
    /// Without finishing files.
    #[serde(default)]
    force: bool,
}

#[derive(Serialize, JsonSchema)]
struct Stopped {
    instance_id: String,
    /// Whether the end of the stream went through the whole pipeline, so that its files are complete.
    files_finished: bool,
}

async fn stop_pipeline(context: Context<Gstreamer>, args: StopPipeline) -> Result<Stopped, ToolError> {
    let files_finished = context
        .toolbox()
        .instances
        .stop(&args.instance_id, args.force)
        .await?;
    Ok(Stopped {
        instance_id: args.instance_id,
        files_finished,
    })
}

/// Pause a pipeline until resume_pipeline.
#[derive(Deserialize, JsonSchema)]
struct PausePipeline {
    instance_id: String,
}

/// Resume a paused pipeline.
#[derive(Deserialize, JsonSchema)]
struct ResumePipeline {
    instance_id: String,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Held")]
struct HeldPipeline {
    instance_id: String,
    /// Its state.
    state: Phase,
}

async fn pause_pipeline(context: Context<Gstreamer>, args: PausePipeline) -> Result<HeldPipeline, ToolError> {
    context.toolbox().instances.pause(&args.instance_id).await?;
    held(&context, args.instance_id, Phase::Paused).await
}

async fn resume_pipeline(
    context: Context<Gstreamer>,
    args: ResumePipeline,
) -> Result<HeldPipeline, ToolError> {
    context.toolbox().instances.resume(&args.instance_id).await?;
    held(&context, args.instance_id, Phase::Playing).await
}

async fn held(context: &Context<Gstreamer>, id: String, wanted: Phase) -> Result<HeldPipeline, ToolError> {
    let instances = &context.toolbox().instances;
    let state = instances.wait_phase(&id, wanted, Duration::from_secs(2)).await?;
    Ok(HeldPipeline {
        instance_id: id,
        state,
    })
}

/// Change a property in a running pipeline, such as an encoder's bitrate.
#[derive(Deserialize, JsonSchema)]
struct SetPipelineProperty {
    instance_id: String,
    /// The element's name, such as `x264enc0`, or its factory where the pipeline has only one: `x264enc`.
    element: String,
    /// Such as `bitrate`.
    property: String,
    /// The new value, as text in gst-launch-1.0.
    #[schemars(extend("type" = ["string", "number", "boolean", "null"]))]
    value: Value,
}

async fn set_pipeline_property(
    context: Context<Gstreamer>,
    args: SetPipelineProperty,
) -> Result<Changed, ToolError> {
    context
        .toolbox()
        .instances
        .set(&args.instance_id, args.element, args.property, args.value)
        .await
}
