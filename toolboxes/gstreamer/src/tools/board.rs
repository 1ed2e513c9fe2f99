//! The board: devices, storage, and a summary.

use std::path::PathBuf;

use ovos_toolbox_sdk::prelude::*;

use super::look;
use crate::devices::{AudioDevice, VideoDevice};
use crate::storage::{self, Place};
use crate::{Gstreamer, Machine};

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

#[derive(Serialize, JsonSchema)]
struct Board {
    /// Where pictures come from.
    video_inputs: Vec<VideoInput>,
    /// Where sound comes from.
    audio_inputs: Vec<AudioInput>,
    /// The encoders, hardware first, then by rank.
    encoders: Vec<String>,
    /// Plugins that come neither from GStreamer's own modules nor from the distribution.
    custom_plugins: Vec<String>,
    /// Places for files.
    storage: Vec<Storage>,
    /// The version of GStreamer.
    gstreamer: String,
    /// How many pipelines run.
    running_instances: usize,
}

#[derive(Serialize, JsonSchema)]
struct VideoInput {
    /// What an element is given.
    device: String,
    /// What people call it.
    name: String,
    /// `hdmi-in`, `usb-cam`, `camera` or `gst`.
    #[serde(rename = "type")]
    kind: &'static str,
    /// Whether a pipeline could start with it now.
    available: bool,
    /// What comes in through the cable, such as `1080p60`.
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<String>,
    /// Why it is not available.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct AudioInput {
    /// What an element is given.
    device: String,
    /// What people call it.
    name: String,
    /// `hdmi-audio`, `usb-audio`, `analog` or `gst`.
    #[serde(rename = "type")]
    kind: &'static str,
    /// Whether a pipeline could start with it now.
    available: bool,
    /// Why it is not available.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Storage {
    /// Its folder.
    path: PathBuf,
    /// Whether it is there and files can be written to it.
    available: bool,
    /// Room for new files in GB (1000000000 bytes); null when it is not there.
    free_gb: Option<f64>,
}

async fn get_board_info(context: Context<Gstreamer>, _: BoardArguments) -> Result<Board, ToolError> {
    look(&context, |machine| Board {
        video_inputs: video(machine)
            .into_iter()
            .map(|device| VideoInput {
                device: device.device,
                name: device.name,
                kind: device.kind,
                available: device.available,
                signal: device.signal.map(|signal| signal.short()),
                reason: device.reason,
            })
            .collect(),
        audio_inputs: audio(machine)
            .into_iter()
            .filter(|device| device.direction == "capture")
            .map(|device| AudioInput {
                device: device.device,
                name: device.name,
                kind: device.kind,
                available: device.available,
                reason: device.reason,
            })
            .collect(),
        encoders: machine.catalog.encoder_names(),
        custom_plugins: machine.catalog.custom_plugins().to_vec(),
        storage: storage::all(&machine.config)
            .into_iter()
            .map(|place| Storage {
                path: place.path,
                available: place.available,
                free_gb: place.free_gb,
            })
            .collect(),
        gstreamer: gst::version_string().to_string(),
        running_instances: machine.instances.summary().len(),
    })
    .await
}

fn video(machine: &Machine) -> Vec<VideoDevice> {
    let owner = |device: &str| machine.instances.owner_of(device);
    machine.devices.video(&machine.config, &owner)
}

fn audio(machine: &Machine) -> Vec<AudioDevice> {
    let owner = |device: &str| machine.instances.owner_of(device);
    machine.devices.audio(&machine.config, &owner)
}

/// List the cameras and HDMI inputs with their capabilities.
#[derive(Deserialize, JsonSchema)]
struct VideoArguments {}

#[derive(Serialize, JsonSchema)]
struct VideoDevices {
    /// The inputs there are now.
    devices: Vec<VideoDevice>,
}

async fn list_video_devices(
    context: Context<Gstreamer>,
    _: VideoArguments,
) -> Result<VideoDevices, ToolError> {
    let devices = look(&context, video).await?;
    Ok(VideoDevices { devices })
}

/// List the microphones and other sound inputs and outputs.
#[derive(Deserialize, JsonSchema)]
struct AudioArguments {}

#[derive(Serialize, JsonSchema)]
struct AudioDevices {
    /// The devices there are now.
    devices: Vec<AudioDevice>,
}

async fn list_audio_devices(
    context: Context<Gstreamer>,
    _: AudioArguments,
) -> Result<AudioDevices, ToolError> {
    let devices = look(&context, audio).await?;
    Ok(AudioDevices { devices })
}

/// Check the places for recordings and their free space.
#[derive(Deserialize, JsonSchema)]
struct StorageArguments {
    /// An absolute path; all known places when missing.
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
    let storage = look(&context, move |machine| match &arguments.path {
        Some(path) => vec![storage::one(&machine.config, path)],
        None => storage::all(&machine.config),
    })
    .await?;
    Ok(Places { storage })
}
