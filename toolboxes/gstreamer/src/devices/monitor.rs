//! GStreamer's device monitor, which runs as long as the judge.
//!
//! It reports devices that the kernel does not: PipeWire cameras, sound servers, network sources that announce
//! themselves. The toolbox is told of devices that come and go.

use std::sync::Arc;
use std::time::Duration;

use gst::prelude::*;
use ovos_toolbox_sdk::Mouth;
use parking_lot::{Condvar, Mutex};

use super::audio::AudioDevice;
use super::video::VideoDevice;
use crate::question::{JudgeMessage, MonitoredDevice};

/// A device monitor.
pub(crate) struct Monitor {
    monitor: gst::DeviceMonitor,
    /// Starting may take long (a sound server that does not answer), so it happens once, in the background.
    started: Arc<(Mutex<bool>, Condvar)>,
}

/// How long a list of devices waits for the monitor.
const STARTS: Duration = Duration::from_secs(2);

impl Monitor {
    /// Starts the monitor in the background.
    pub(crate) fn start(mouth: Mouth) -> Self {
        let monitor = gst::DeviceMonitor::new();
        for class in ["Video/Source", "Audio/Source", "Audio/Sink"] {
            monitor.add_filter(Some(class), None);
        }
        let started = Arc::new((Mutex::new(false), Condvar::new()));
        let (starting, ready) = (monitor.clone(), Arc::clone(&started));
        let watching = move || {
            if starting.start().is_err() {
                return;
            }
            let present: Vec<gst::Device> = starting.devices().into_iter().collect();
            // Before anything that waits for the devices is answered.
            mouth.say(&JudgeMessage::Present(present.iter().map(named).collect()));
            *ready.0.lock() = true;
            ready.1.notify_all();
            let bus = starting.bus();
            for message in bus.iter_timed(gst::ClockTime::NONE) {
                match message.view() {
                    gst::MessageView::DeviceAdded(added) if !present.contains(&added.device()) => {
                        mouth.say(&JudgeMessage::Came(named(&added.device())));
                    }
                    gst::MessageView::DeviceRemoved(removed) => {
                        mouth.say(&JudgeMessage::Went(named(&removed.device())));
                    }
                    _ => {}
                }
            }
        };
        // Without it there are only the kernel's devices.
        _ = std::thread::Builder::new()
            .name("monitor".to_owned())
            .spawn(watching);
        Self { monitor, started }
    }

    /// The devices; none if it has not started in time.
    fn devices(&self) -> Vec<gst::Device> {
        let started = {
            let mut started = self.started.0.lock();
            let waiting = &self.started.1;
            waiting.wait_while_for(&mut started, |started| !*started, STARTS);
            *started
        };
        if started {
            self.monitor.devices().into_iter().collect()
        } else {
            Vec::new()
        }
    }

    /// Adds elements and caps to the known devices, and appends the unknown ones.
    pub(super) fn add_video(&self, known: &mut Vec<VideoDevice>, owner: &dyn Fn(&str) -> Option<String>) {
        for device in self
            .devices()
            .iter()
            .filter(|device| device.has_classes("Video/Source"))
        {
            let found = DeviceDescription::read(device);
            if let Some(same) = known
                .iter_mut()
                .find(|same| Some(&same.device) == found.path.as_ref())
            {
                same.element = found.element;
                same.caps = found.caps;
                continue;
            }
            let name = found.path.unwrap_or_else(|| found.name.clone());
            let in_use_by = owner(&name);
            known.push(VideoDevice {
                device: name,
                name: found.name,
                kind: "gst",
                available: in_use_by.is_none(),
                reason: in_use_by
                    .as_ref()
                    .map(|owner| format!("the pipeline '{owner}' uses it: stop that pipeline first")),
                in_use_by,
                current_signal: None,
                signal: None,
                formats: Vec::new(),
                format_details: Vec::new(),
                driver: None,
                bus: None,
                element: found.element,
                caps: found.caps,
            });
        }
    }

    /// Adds elements and caps to the known audio devices, and appends the unknown ones.
    pub(super) fn add_audio(&self, known: &mut Vec<AudioDevice>, owner: &dyn Fn(&str) -> Option<String>) {
        for device in &self.devices() {
            let direction = if device.has_classes("Audio/Source") {
                "capture"
            } else if device.has_classes("Audio/Sink") {
                "playback"
            } else {
                continue;
            };
            let found = DeviceDescription::read(device);
            let same = |same: &&mut AudioDevice| {
                same.direction == direction && Some(&same.device) == found.path.as_ref()
            };
            if let Some(same) = known.iter_mut().find(same) {
                same.element = found.element;
                same.caps = found.caps;
                continue;
            }
            let name = found.path.unwrap_or_else(|| found.name.clone());
            let in_use_by = owner(&name);
            known.push(AudioDevice {
                device: name,
                name: found.name,
                card: None,
                kind: "gst",
                direction,
                available: in_use_by.is_none(),
                reason: in_use_by
                    .as_ref()
                    .map(|owner| format!("the pipeline '{owner}' uses it: stop that pipeline first")),
                in_use_by,
                element: found.element,
                caps: found.caps,
            });
        }
    }
}

/// A device as GStreamer describes it.
struct DeviceDescription {
    name: String,
    /// The value of its element's property `device`.
    path: Option<String>,
    element: Option<String>,
    caps: Option<String>,
}

impl DeviceDescription {
    fn read(device: &gst::Device) -> Self {
        let element = device.create_element(None).ok();
        let set = element.as_ref().and_then(|element| {
            let spec = element.find_property("device")?;
            (spec.value_type() == gst::glib::Type::STRING).then_some(())?;
            element.property::<Option<String>>("device")
        });
        Self {
            name: device.display_name().to_string(),
            path: set,
            element: element
                .and_then(|element| element.factory())
                .map(|factory| factory.name().to_string()),
            caps: device.caps().map(|caps| caps.to_string()),
        }
    }
}

fn named(device: &gst::Device) -> MonitoredDevice {
    MonitoredDevice {
        name: device.display_name().to_string(),
        class: device.device_class().to_string(),
    }
}
