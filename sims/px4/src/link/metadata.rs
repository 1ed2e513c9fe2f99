//! The vehicle's metadata files: the index of metadata, and the texts of the events.
//!
//! PX4 has the same files under the same names, compressed and much larger. Start with [`announce`].

use std::sync::LazyLock;

use mavlink::dialects::common::{COMPONENT_METADATA_DATA, CompMetadataType, MavMessage};
use serde_json::{Map, Value, json};

use super::address::AUTOPILOT;
use super::events::{ARMING_SUMMARY, HEALTH_SUMMARY, NAV_STATES, sub_id};
use crate::{
    quirks::Quirk,
    vehicle::{
        Vehicle,
        checks::{Check, PARTS},
    },
};

const GENERAL: &str = "etc/extras/component_general.json";
const EVENTS: &str = "etc/extras/all_events.json";

/// Path and contents.
static FILES: LazyLock<[(&str, Vec<u8>); 2]> = LazyLock::new(|| {
    let events = events().to_string().into_bytes();
    let general = json!({
        "version": 1,
        "metadataTypes": [{
            "type": CompMetadataType::COMP_METADATA_TYPE_EVENTS as u32,
            "uri": format!("mftp://{EVENTS}"),
            "fileCrc": crc32(&events),
        }],
    });
    [(GENERAL, general.to_string().into_bytes()), (EVENTS, events)]
});

/// The file at this path, with or without a leading slash.
pub(super) fn file(vehicle: &Vehicle, path: &str) -> Option<&'static [u8]> {
    if vehicle.quirks.has(Quirk::NoEventMetadata) {
        return None;
    }
    let path = path.trim_start_matches('/');
    let file = FILES.iter().find(|(name, _)| *name == path);
    file.map(|(_, bytes)| bytes.as_slice())
}

/// The message with the location of the index file.
pub(super) fn announce(vehicle: &Vehicle) -> Option<MavMessage> {
    let general = file(vehicle, GENERAL)?;
    Some(MavMessage::COMPONENT_METADATA(COMPONENT_METADATA_DATA {
        time_boot_ms: vehicle.boot_ms(),
        file_crc: crc32(general),
        uri: format!("mftp://{GENERAL}").as_str().into(),
    }))
}

/// MAVLink's checksum of a file: CRC-32 of IEEE 802.3 without inversions.
pub(super) fn crc32(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            if crc & 1 == 1 {
                crc >> 1 ^ 0xedb8_8320
            } else {
                crc >> 1
            }
        })
    })
}

/// The texts of all events.
fn events() -> Value {
    let mut groups = [Map::new(), Map::new()];
    for check in Check::ALL {
        let mut arguments = vec![
            argument("modes", "navigation_mode_group_t"),
            argument("health_component_index", "uint8_t"),
        ];
        if check.is_numbered() {
            arguments.push(argument("index", "uint8_t"));
        }
        let event = json!({"name": check.name, "message": check.message, "arguments": arguments});
        groups[usize::from(check.health)].insert(sub_id(check.name).to_string(), event);
    }
    let (part, mode) = ("health_component_t", "navigation_mode_group_t");
    let arming: &[_] = &[
        ("error", part),
        ("warning", part),
        ("can_arm", mode),
        ("can_run", mode),
    ];
    let health: &[_] = &[("is_present", part), ("error", part), ("warning", part)];
    for (group, name, arguments) in [(0, ARMING_SUMMARY, arming), (1, HEALTH_SUMMARY, health)] {
        let mut all = vec![argument("chunk_idx", "uint8_t")];
        all.extend(arguments.iter().map(|(name, kind)| argument(name, kind)));
        let event = json!({"name": name, "message": "", "type": "summary", "arguments": all});
        groups[group].insert(sub_id(name).to_string(), event);
    }
    let [arming, health] = groups;
    json!({
        "version": 2,
        "components": {AUTOPILOT.to_string(): {
            "namespace": "px4",
            "enums": {
                part: bits("Parts", PARTS.iter().map(|(number, name, label)| (*number, *name, *label))),
                mode: bits("Modes", NAV_STATES.iter().map(|(_, number, name)| (*number, *name, *name))),
            },
            "event_groups": {"arming_check": {"events": arming}, "health": {"events": health}},
            "navigation_mode_groups": {"groups": groups_of_modes()},
            "supported_protocols": ["health_and_arming_check"],
        }},
    })
}

fn argument(name: &str, kind: &str) -> Value {
    json!({"name": name, "type": kind})
}

fn bits<'a>(description: &str, entries: impl Iterator<Item = (u8, &'a str, &'a str)>) -> Value {
    let entry = |(number, name, label): (u8, &str, &str)| {
        let bit = (1_u32 << number).to_string();
        (bit, json!({"name": name, "description": label}))
    };
    let entries: Map<String, Value> = entries.map(entry).collect();
    json!({"type": "uint32_t", "is_bitfield": true, "description": description, "entries": entries})
}

/// The `custom_mode` of each mode, by PX4's number of the mode.
fn groups_of_modes() -> Map<String, Value> {
    let modes = NAV_STATES.iter();
    modes
        .map(|(mode, number, _)| (number.to_string(), json!([mode.custom_mode()])))
        .collect()
}
