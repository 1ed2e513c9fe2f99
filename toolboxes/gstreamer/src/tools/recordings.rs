//! Recordings of running pipelines.

use std::path::PathBuf;

use ovos_toolbox_sdk::prelude::*;

use crate::folder::new_recording;
use crate::toolbox::Gstreamer;

/// The tools of this family.
pub(super) fn tools() -> Vec<Tool<Gstreamer>> {
    vec![
        Tool::write("record", record)
            .category("pipelines")
            .timeout(Duration::from_secs(70)),
        Tool::write("stop_recording", stop_recording)
            .category("pipelines")
            .timeout(Duration::from_secs(70)),
    ]
}

/// Record what the encoders of a running pipeline make, without a gap in the stream.
#[derive(Deserialize, JsonSchema)]
struct RecordPipeline {
    instance_id: String,
    /// A new .mkv, .mp4, .mov, .ts or .webm, in the folder for recordings unless absolute; chosen when missing.
    #[serde(default)]
    path: Option<PathBuf>,
}

#[derive(Serialize, JsonSchema)]
struct Recording {
    /// The file.
    path: PathBuf,
}

async fn record(context: Context<Gstreamer>, args: RecordPipeline) -> Result<Recording, ToolError> {
    let toolbox = context.toolbox();
    let folder = toolbox.config.write_roots.first();
    let folder = folder.ok_or_else(|| {
        ToolError::bad_args("no folder may be written: see `write_roots` in the configuration of gstreamer")
    })?;
    let path = args.path.unwrap_or_else(|| new_recording(folder));
    let text = path.display().to_string();
    let checked = toolbox.policy.check_output(&text, "record");
    let path = checked.map_err(|refusal| refusal.denial())?;
    if path.exists() {
        return Err(ToolError::bad_args(format!(
            "{} exists: give the path of a new file",
            path.display()
        )));
    }
    toolbox.instances.record(&args.instance_id, path.clone()).await?;
    Ok(Recording { path })
}

/// Stop a recording and finish its file, while the pipeline plays on.
#[derive(Deserialize, JsonSchema)]
struct StopRecording {
    instance_id: String,
    /// The file, where there are several.
    #[serde(default)]
    path: Option<PathBuf>,
}

#[derive(Serialize, JsonSchema)]
struct StoppedRecording {
    /// The file.
    path: PathBuf,
    /// Whether the file is complete.
    file_finished: bool,
    /// Why it is not, and what to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    trouble: Option<String>,
}

async fn stop_recording(
    context: Context<Gstreamer>,
    args: StopRecording,
) -> Result<StoppedRecording, ToolError> {
    let toolbox = context.toolbox();
    let whole = |path: PathBuf| {
        let checked = toolbox
            .policy
            .check_output(&path.display().to_string(), "stop_recording");
        // One that may not be written is no recording, which is what the error says then.
        checked.unwrap_or(path)
    };
    let path = args.path.map(whole);
    let file = toolbox.instances.stop_recording(&args.instance_id, path).await?;
    Ok(StoppedRecording {
        path: file.path,
        file_finished: file.trouble.is_none(),
        trouble: file.trouble,
    })
}
