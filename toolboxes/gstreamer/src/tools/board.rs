//! The board: devices, storage, and a summary.

use std::path::PathBuf;
use std::sync::Arc;

use ovos_toolbox_sdk::prelude::*;
use ovos_toolbox_sdk::tokio;

use crate::answer::{AudioDevices, Board, VideoDevices};
use crate::judge::AnswerText;
use crate::question::Question;
use crate::storage::{self, Place};
use crate::toolbox::Gstreamer;

/// The tools of this family.
pub(super) fn tools() -> Vec<Tool<Gstreamer>> {
    vec![
        Tool::read("get_board_info", get_board_info)
            .category("discovery")
            .timeout(Duration::from_secs(30)),
        Tool::read("list_video_devices", list_video_devices).category("discovery"),
        Tool::read("list_audio_devices", list_audio_devices).category("discovery"),
        Tool::read("check_storage", check_storage).category("discovery"),
    ]
}

/// Sum up what this machine has for media: video and audio inputs, encoders, storage, custom plugins.
#[derive(Deserialize, JsonSchema)]
struct BoardArguments {}

async fn get_board_info(
    context: Context<Gstreamer>,
    _: BoardArguments,
) -> Result<AnswerText<Board>, ToolError> {
    context.toolbox().ask(Question::Board).await
}

/// List the cameras and HDMI inputs with their capabilities.
#[derive(Deserialize, JsonSchema)]
struct VideoArguments {}

async fn list_video_devices(
    context: Context<Gstreamer>,
    _: VideoArguments,
) -> Result<AnswerText<VideoDevices>, ToolError> {
    context.toolbox().ask(Question::Video).await
}

/// List the microphones and other sound inputs and outputs.
#[derive(Deserialize, JsonSchema)]
struct AudioArguments {}

async fn list_audio_devices(
    context: Context<Gstreamer>,
    _: AudioArguments,
) -> Result<AnswerText<AudioDevices>, ToolError> {
    context.toolbox().ask(Question::Audio).await
}

/// Check the places for recordings and their free space.
#[derive(Deserialize, JsonSchema)]
struct StorageArguments {
    /// Absolute; all known places when missing.
    #[serde(default)]
    path: Option<PathBuf>,
}

#[derive(Serialize, JsonSchema)]
struct Places {
    /// The locations.
    storage: Vec<Place>,
}

async fn check_storage(
    context: Context<Gstreamer>,
    arguments: StorageArguments,
) -> Result<Places, ToolError> {
    if let Some(path) = arguments.path.as_ref().filter(|path| !path.is_absolute()) {
        return Err(ToolError::bad_args(format!(
            "`path` is {}: expected an absolute path such as /data",
            path.display()
        )));
    }
    let config = Arc::clone(&context.toolbox().config);
    let storage = tokio::task::spawn_blocking(move || match &arguments.path {
        Some(path) => vec![storage::one(&config, path)],
        None => storage::all(&config),
    })
    .await?;
    Ok(Places { storage })
}
