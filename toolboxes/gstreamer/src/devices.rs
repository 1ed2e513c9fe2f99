//! Cameras, HDMI inputs, microphones and loudspeakers.
//!
//! Owns what this machine has now: every call looks again, so that what is plugged in and out is right. Reads sysfs and
//! procfs below the folder that stands for `/`, asks video devices what they can do, and keeps a GStreamer device
//! monitor beside it. Starts no stream. Read [`Devices`].

mod amlogic;
mod audio;
mod monitor;
mod v4l2;
mod video;

pub(crate) use audio::AudioDevice;
pub(crate) use monitor::Monitor;
pub(crate) use video::VideoDevice;

use crate::config::Config;
use v4l2::Inquiry;

/// What finds devices.
pub(crate) struct Devices {
    inquiry: Inquiry,
    monitor: Option<Monitor>,
}

impl Devices {
    /// With a monitor only where the folder that stands for `/` is `/`: GStreamer looks at the real machine.
    pub(crate) fn new(monitor: Option<Monitor>) -> Self {
        Self {
            inquiry: Inquiry::new(v4l2::Kernel),
            monitor,
        }
    }

    /// What pictures come from. `owner` says which instance holds a device. Blocks.
    pub(crate) fn video(&self, config: &Config, owner: &dyn Fn(&str) -> Option<String>) -> Vec<VideoDevice> {
        let mut devices = video::list(config, &self.inquiry, owner);
        if let Some(monitor) = &self.monitor {
            monitor.add_video(&mut devices, owner);
        }
        devices
    }

    /// What sound comes from and goes to. Blocks.
    pub(crate) fn audio(&self, config: &Config, owner: &dyn Fn(&str) -> Option<String>) -> Vec<AudioDevice> {
        let mut devices = audio::list(config, owner);
        if let Some(monitor) = &self.monitor {
            monitor.add_audio(&mut devices, owner);
        }
        devices
    }

    /// Ends the watch for new devices. Blocks.
    pub(crate) fn close(&self) {
        if let Some(monitor) = &self.monitor {
            monitor.stop();
        }
    }
}
