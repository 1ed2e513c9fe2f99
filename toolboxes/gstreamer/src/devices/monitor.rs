//! GStreamer's device monitor, which runs as long as the toolbox.
//!
//! It reports devices that the kernel does not: PipeWire cameras, sound servers, network sources that announce
//! themselves. Added and removed devices are sent as events.

use std::sync::{Mutex, PoisonError};

use futures_util::StreamExt;
use gst::prelude::*;
use ovos_toolbox_sdk::prelude::*;

use super::audio::AudioDevice;
use super::video::VideoDevice;

/// A device monitor.
pub(crate) struct Monitor {
    monitor: gst::DeviceMonitor,
    /// Starting may take long (a sound server that does not answer), so it happens once, in the background.
    started: std::sync::Arc<Mutex<Started>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Started {
    NotYet,
    Yes,
    Stopped,
}

impl Monitor {
    /// Starts the monitor in the background.
    pub(crate) fn start(host: &Host) -> Self {
        let monitor = gst::DeviceMonitor::new();
        for class in ["Video/Source", "Audio/Source", "Audio/Sink"] {
            monitor.add_filter(Some(class), None);
        }
        let started = std::sync::Arc::new(Mutex::new(Started::NotYet));
        let mut messages = monitor.bus().stream();
        let (starting, watched) = (monitor.clone(), std::sync::Arc::clone(&started));
        let events = host.clone();
        host.spawn(async move {
            let done = tokio::task::spawn_blocking(move || {
                let mut started = watched.lock().unwrap_or_else(PoisonError::into_inner);
                if *started == Started::NotYet && starting.start().is_ok() {
                    *started = Started::Yes;
                }
            });
            if done.await.is_err() {
                return;
            }
            // Devices present at the start are not reported; they do not arrive as messages either.
            while let Some(message) = messages.next().await {
                report(&events, &message);
            }
        });
        Self { monitor, started }
    }

    /// Stops the monitor. Blocks.
    pub(super) fn stop(&self) {
        let mut started = self.started.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::replace(&mut *started, Started::Stopped) == Started::Yes {
            self.monitor.stop();
        }
    }

    /// The devices; none until it has started.
    fn devices(&self) -> Vec<gst::Device> {
        match self.started.try_lock() {
            Ok(started) if *started == Started::Yes => self.monitor.devices().into_iter().collect(),
            _ => Vec::new(),
        }
    }

    /// Adds elements and caps to the known devices, and appends the unknown ones.
    pub(super) fn add_video(&self, known: &mut Vec<VideoDevice>, owner: &dyn Fn(&str) -> Option<String>) {
        for device in self
            .devices()
            .iter()
            .filter(|device| device.has_classes("Video/Source"))
        {
            let found = Found::read(device);
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
                    .map(|owner| format!("the instance '{owner}' holds it")),
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
            let found = Found::read(device);
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
                    .map(|owner| format!("the instance '{owner}' holds it")),
                in_use_by,
                element: found.element,
                caps: found.caps,
            });
        }
    }
}

/// A device as GStreamer describes it.
struct Found {
    name: String,
    /// The value of its element's property `device`.
    path: Option<String>,
    element: Option<String>,
    caps: Option<String>,
}

impl Found {
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

fn report(host: &Host, message: &gst::Message) {
    let (kind, device) = match message.view() {
        gst::MessageView::DeviceAdded(added) => ("device_added", added.device()),
        gst::MessageView::DeviceRemoved(removed) => ("device_removed", removed.device()),
        _ => return,
    };
    let (name, class) = (
        device.display_name().to_string(),
        device.device_class().to_string(),
    );
    tracing::info!(kind, device = name, class, "devices");
    host.event(kind, json!({"name": name, "class": class}));
}
