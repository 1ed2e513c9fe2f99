//! The camera as a separate MAVLink component.
//!
//! Start with [`command`].

use mavlink::dialects::common::{
    CAMERA_CAPTURE_STATUS_DATA, CAMERA_IMAGE_CAPTURED_DATA, CAMERA_INFORMATION_DATA, CAMERA_SETTINGS_DATA,
    CameraCapFlags, CameraMode, HEARTBEAT_DATA, MavAutopilot, MavBool, MavMessage, MavModeFlag, MavState,
    MavType, STORAGE_INFORMATION_DATA, StorageStatus, StorageType, StorageUsageFlag,
};

use crate::log::Ack;
use crate::vehicle::{Photo, Vehicle};

/// Stream id of the camera's heartbeats; no autopilot message has it.
pub(super) const HEARTBEAT: u32 = u32::MAX;

const START_CAPTURE: u32 = 2000;
const STOP_CAPTURE: u32 = 2001;
const START_VIDEO: u32 = 2500;
const STOP_VIDEO: u32 = 2501;

/// Executes a command to the camera.
pub(super) fn command(vehicle: &mut Vehicle, command: u32) -> Ack {
    match command {
        START_CAPTURE => vehicle.take_photo(),
        STOP_CAPTURE => Ack::Accepted,
        START_VIDEO => vehicle.start_video(),
        STOP_VIDEO => vehicle.stop_video(),
        _ => Ack::Unsupported,
    }
}

/// The camera's message with this id.
pub(super) fn message(vehicle: &Vehicle, id: u32) -> Option<MavMessage> {
    let time_boot_ms = (vehicle.time() * 1e3) as u32;
    let recording = vehicle.payload.recording_since;
    let message = match id {
        259 => MavMessage::CAMERA_INFORMATION(CAMERA_INFORMATION_DATA {
            time_boot_ms,
            firmware_version: 1,
            focal_length: 4.0,
            sensor_size_h: 6.0,
            sensor_size_v: 4.5,
            flags: CameraCapFlags::CAMERA_CAP_FLAGS_CAPTURE_IMAGE
                | CameraCapFlags::CAMERA_CAP_FLAGS_CAPTURE_VIDEO
                | CameraCapFlags::CAMERA_CAP_FLAGS_CAN_CAPTURE_IMAGE_IN_VIDEO_MODE
                | CameraCapFlags::CAMERA_CAP_FLAGS_CAN_CAPTURE_VIDEO_IN_IMAGE_MODE,
            resolution_h: 1280,
            resolution_v: 720,
            cam_definition_version: 0,
            vendor_name: name(b"px4-sim"),
            model_name: name(b"simulated camera"),
            lens_id: 0,
            cam_definition_uri: "".into(),
            gimbal_device_id: 0,
            camera_device_id: 0,
        }),
        260 => MavMessage::CAMERA_SETTINGS(CAMERA_SETTINGS_DATA {
            time_boot_ms,
            mode_id: CameraMode::CAMERA_MODE_IMAGE,
            zoomLevel: f32::NAN,
            focusLevel: f32::NAN,
            camera_device_id: 0,
        }),
        261 => MavMessage::STORAGE_INFORMATION(STORAGE_INFORMATION_DATA {
            time_boot_ms,
            total_capacity: 16_000.0,
            used_capacity: vehicle.payload.photos as f32,
            available_capacity: 16_000.0 - vehicle.payload.photos as f32,
            read_speed: 50.0,
            write_speed: 50.0,
            storage_id: 1,
            storage_count: 1,
            status: StorageStatus::STORAGE_STATUS_READY,
            mavtype: StorageType::STORAGE_TYPE_OTHER,
            name: "simulated".into(),
            storage_usage: StorageUsageFlag::STORAGE_USAGE_FLAG_SET
                | StorageUsageFlag::STORAGE_USAGE_FLAG_PHOTO
                | StorageUsageFlag::STORAGE_USAGE_FLAG_VIDEO,
        }),
        262 => MavMessage::CAMERA_CAPTURE_STATUS(CAMERA_CAPTURE_STATUS_DATA {
            time_boot_ms,
            image_interval: 0.0,
            recording_time_ms: recording.map_or(0, |since| ((vehicle.time() - since) * 1e3) as u32),
            available_capacity: 16_000.0,
            image_status: 0,
            video_status: u8::from(recording.is_some()),
            image_count: vehicle.payload.photos,
            camera_device_id: 0,
        }),
        _ => return None,
    };
    Some(message)
}

fn name(text: &[u8]) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes[..text.len()].copy_from_slice(text);
    bytes
}

pub(super) fn heartbeat() -> MavMessage {
    MavMessage::HEARTBEAT(HEARTBEAT_DATA {
        custom_mode: 0,
        mavtype: MavType::MAV_TYPE_CAMERA,
        autopilot: MavAutopilot::MAV_AUTOPILOT_INVALID,
        base_mode: MavModeFlag::empty(),
        system_status: MavState::MAV_STATE_ACTIVE,
        mavlink_version: 3,
    })
}

pub(super) fn captured(photo: &Photo) -> MavMessage {
    let (sin, cos) = (photo.yaw / 2.0).sin_cos();
    MavMessage::CAMERA_IMAGE_CAPTURED(CAMERA_IMAGE_CAPTURED_DATA {
        time_utc: 0,
        time_boot_ms: 0,
        lat: (photo.lat * 1e7).round() as i32,
        lon: (photo.lon * 1e7).round() as i32,
        alt: (photo.alt * 1e3) as i32,
        relative_alt: (photo.height * 1e3) as i32,
        q: [cos as f32, 0.0, 0.0, sin as f32],
        image_index: photo.index,
        camera_id: 0,
        capture_result: MavBool::MAV_BOOL_TRUE,
        file_url: format!("simulated://photo/{}", photo.index).as_str().into(),
    })
}
