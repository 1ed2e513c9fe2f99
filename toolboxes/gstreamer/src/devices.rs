//! Cameras, HDMI inputs, microphones and loudspeakers.
//!
//! Lists the present devices: every call looks again, so that hot-plugged devices are included. Reads sysfs and procfs
//! below `sysroot`, queries video devices, and runs a GStreamer device monitor. Starts no stream. Read [`Devices`].

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

/// The sources of device information.
pub(crate) struct Devices {
    inquiry: Inquiry,
    monitor: Option<Monitor>,
}

impl Devices {
    /// A monitor is for a `sysroot` of `/` alone, because GStreamer looks at the real machine.
    pub(crate) fn new(monitor: Option<Monitor>) -> Self {
        Self {
            inquiry: Inquiry::new(v4l2::Kernel),
            monitor,
        }
    }

    /// Video inputs. `owner` returns the instance that holds a device. Blocks.
    pub(crate) fn video(&self, config: &Config, owner: &dyn Fn(&str) -> Option<String>) -> Vec<VideoDevice> {
        let mut devices = video::list(config, &self.inquiry, owner);
        if let Some(monitor) = &self.monitor {
            monitor.add_video(&mut devices, owner);
        }
        devices
    }

    /// Audio inputs and outputs. Blocks.
    pub(crate) fn audio(&self, config: &Config, owner: &dyn Fn(&str) -> Option<String>) -> Vec<AudioDevice> {
        let mut devices = audio::list(config, owner);
        if let Some(monitor) = &self.monitor {
            monitor.add_audio(&mut devices, owner);
        }
        devices
    }
}
