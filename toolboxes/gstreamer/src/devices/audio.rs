//! Audio devices of ALSA, from procfs.

use std::fs;
use std::io;

use ovos_toolbox_sdk::prelude::*;

use super::video::why;
use crate::config::Config;

/// A sound device.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct AudioDevice {
    /// The device as an element takes it, such as `hw:0,0`.
    pub(crate) device: String,
    /// The name that people know.
    pub(crate) name: String,
    /// The card it is on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) card: Option<String>,
    /// `hdmi-audio`, `usb-audio`, `analog` or `gst`, which only GStreamer knows.
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    /// `capture` or `playback`.
    pub(crate) direction: &'static str,
    /// Whether a pipeline could start with it now.
    pub(crate) available: bool,
    /// Why it is not available.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    /// The instance that holds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) in_use_by: Option<String>,
    /// The element that uses it, as GStreamer's device monitor says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) element: Option<String>,
    /// What that element can give or take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) caps: Option<String>,
}

/// The kernel's devices, below `sysroot`.
pub(super) fn list(config: &Config, owner: &dyn Fn(&str) -> Option<String>) -> Vec<AudioDevice> {
    let pcm = fs::read_to_string(config.below_sysroot("/proc/asound/pcm")).unwrap_or_default();
    let cards = fs::read_to_string(config.below_sysroot("/proc/asound/cards")).unwrap_or_default();
    let mut devices = Vec::new();
    for line in pcm.lines() {
        let Some(entry) = Entry::read(line) else { continue };
        for (present, direction, letter) in [(entry.captures, "capture", 'c'), (entry.plays, "playback", 'p')]
        {
            if present {
                devices.push(describe(config, &entry, &cards, direction, letter, owner));
            }
        }
    }
    devices
}

/// `00-02: USB Audio : USB Audio : playback 1 : capture 1`.
struct Entry<'a> {
    card: u32,
    number: u32,
    name: &'a str,
    captures: bool,
    plays: bool,
}

impl<'a> Entry<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let (place, rest) = line.split_once(": ")?;
        let (card, number) = place.trim().split_once('-')?;
        let mut parts = rest.split(" : ").map(str::trim);
        let (id, name) = (parts.next()?, parts.next()?);
        let mut entry = Self {
            card: card.parse().ok()?,
            number: number.parse().ok()?,
            name: if name.is_empty() { id } else { name },
            captures: false,
            plays: false,
        };
        for part in parts {
            entry.captures |= part.starts_with("capture");
            entry.plays |= part.starts_with("playback");
        }
        Some(entry)
    }
}

fn describe(
    config: &Config,
    entry: &Entry<'_>,
    cards: &str,
    direction: &'static str,
    letter: char,
    owner: &dyn Fn(&str) -> Option<String>,
) -> AudioDevice {
    let Entry {
        card, number, name, ..
    } = *entry;
    let device = format!("hw:{card},{number}");
    let card_name = card_name(cards, card);
    let folder = config.below_sysroot(&format!("/proc/asound/card{card}"));
    let node = config.below_sysroot(&format!("/dev/snd/pcmC{card}D{number}{letter}"));
    let is_hdmi = |text: &str| text.to_ascii_lowercase().contains("hdmi");
    let kind = if is_hdmi(name) || card_name.as_deref().is_some_and(is_hdmi) {
        "hdmi-audio"
    } else if folder.join("usbid").exists() {
        "usb-audio"
    } else {
        "analog"
    };
    let in_use_by = owner(&device);
    let owned = in_use_by
        .as_ref()
        .map(|owner| format!("the pipeline '{owner}' uses it: stop that pipeline first"));
    let permission = rustix::fs::access(&node, rustix::fs::Access::READ_OK | rustix::fs::Access::WRITE_OK);
    let problem = permission.err().map(|error| why(&io::Error::from(error), &node));
    let reason = owned
        .or(problem)
        .or_else(|| busy(&folder.join(format!("pcm{number}{letter}/sub0/status"))));
    AudioDevice {
        device,
        name: name.to_owned(),
        card: card_name,
        kind,
        direction,
        available: reason.is_none(),
        reason,
        in_use_by,
        element: None,
        caps: None,
    }
}

/// ` 0 [PCH            ]: HDA-Intel - HDA Intel PCH`.
fn card_name(cards: &str, number: u32) -> Option<String> {
    cards.lines().find_map(|line| {
        let (place, name) = line.split_once("]: ")?;
        let found: u32 = place.split('[').next()?.trim().parse().ok()?;
        let name = name.split_once(" - ").map_or(name, |(_, name)| name);
        (found == number).then(|| name.trim().to_owned())
    })
}

/// Whether the device is in use; the status is `closed` or names the owner.
fn busy(status: &std::path::Path) -> Option<String> {
    let status = fs::read_to_string(status).ok()?;
    let owner = status
        .lines()
        .find_map(|line| line.trim_start().strip_prefix("owner_pid"))?;
    let process = owner.trim_start_matches([' ', ':', '\t']);
    Some(format!("process {process} uses it"))
}
