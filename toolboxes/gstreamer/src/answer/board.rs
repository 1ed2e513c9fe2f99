//! A summary of the machine, and its devices.

use std::path::PathBuf;

use ovos_toolbox_sdk::prelude::*;

use crate::devices::{AudioDevice, VideoDevice};
use crate::holders::Holders;
use crate::machine::Machine;
use crate::storage;

#[derive(Serialize, JsonSchema)]
pub(crate) struct Board {
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
    /// The device as an element takes it.
    device: String,
    /// The name that people know.
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
    /// The device as an element takes it.
    device: String,
    /// The name that people know.
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

#[derive(Serialize, JsonSchema)]
pub(crate) struct VideoDevices {
    /// The inputs there are now.
    devices: Vec<VideoDevice>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct AudioDevices {
    /// The devices there are now.
    devices: Vec<AudioDevice>,
}

/// Sums up the machine. Blocks.
pub(super) fn sum_up(machine: &Machine, holders: &Holders) -> Board {
    Board {
        video_inputs: video(machine, holders)
            .devices
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
        audio_inputs: audio(machine, holders)
            .devices
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
        running_instances: holders.running,
    }
}

pub(super) fn video(machine: &Machine, holders: &Holders) -> VideoDevices {
    let owner = |device: &str| holders.owner_of(device);
    let devices = machine.devices.video(&machine.config, &owner);
    VideoDevices { devices }
}

pub(super) fn audio(machine: &Machine, holders: &Holders) -> AudioDevices {
    let owner = |device: &str| holders.owner_of(device);
    let devices = machine.devices.audio(&machine.config, &owner);
    AudioDevices { devices }
}
