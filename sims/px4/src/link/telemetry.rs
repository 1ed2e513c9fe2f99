//! The telemetry messages, each made by one function from the vehicle's state.
//!
//! Start with [`message`].

use mavlink::dialects::common::{
    ALTITUDE_DATA, ATTITUDE_DATA, ATTITUDE_QUATERNION_DATA, AUTOPILOT_VERSION_DATA, BATTERY_STATUS_DATA,
    CURRENT_MODE_DATA, DISTANCE_SENSOR_DATA, EXTENDED_SYS_STATE_DATA, GLOBAL_POSITION_INT_DATA,
    GPS_RAW_INT_DATA, GpsFixType, HEARTBEAT_DATA, HOME_POSITION_DATA, LOCAL_POSITION_NED_DATA,
    MISSION_CURRENT_DATA, MISSION_ITEM_REACHED_DATA, MavAutopilot, MavBatteryChargeState, MavBatteryFault,
    MavBatteryFunction, MavBatteryMode, MavBatteryType, MavDistanceSensor, MavLandedState, MavMessage,
    MavModeFlag, MavProtocolCapability, MavSensorOrientation, MavSeverity, MavStandardMode, MavState,
    MavSysStatusSensor, MavSysStatusSensorExtended, MavType, MavVtolState, MissionState, PING_DATA,
    RC_CHANNELS_DATA, STATUSTEXT_DATA, SYS_STATUS_DATA, TIMESYNC_DATA, VFR_HUD_DATA,
};

use super::address::Peer;
use super::metadata;
use crate::{
    geo::horizontal,
    mode::Mode,
    vehicle::{Landed, Vehicle},
};

pub(super) const HEARTBEAT: u32 = 0;
pub(super) const SYS_STATUS: u32 = 1;
pub(super) const GPS_RAW_INT: u32 = 24;
pub(super) const ATTITUDE: u32 = 30;
pub(super) const ATTITUDE_QUATERNION: u32 = 31;
pub(super) const LOCAL_POSITION_NED: u32 = 32;
pub(super) const GLOBAL_POSITION_INT: u32 = 33;
pub(super) const MISSION_CURRENT: u32 = 42;
pub(super) const RC_CHANNELS: u32 = 65;
pub(super) const VFR_HUD: u32 = 74;
pub(super) const DISTANCE_SENSOR: u32 = 132;
pub(super) const ALTITUDE: u32 = 141;
pub(super) const BATTERY_STATUS: u32 = 147;
pub(super) const AUTOPILOT_VERSION: u32 = 148;
pub(super) const HOME_POSITION: u32 = 242;
pub(super) const EXTENDED_SYS_STATE: u32 = 245;
pub(super) const CURRENT_MODE: u32 = 436;
const COMPONENT_METADATA: u32 = 397;

/// The firmware version that it reports: 1.16.1, a release.
const FIRMWARE: u32 = 1 << 24 | 16 << 16 | 1 << 8 | 255;
/// A lithium battery: cells, volts of an empty cell, and the volts that a full one adds.
const CELLS: (u8, f64, f64) = (4, 3.5, 0.7);
/// Range of the downward range sensor, metres.
const DOWN_RANGE_M: f64 = 40.0;

/// The messages with this id; none for an id that the vehicle does not send.
pub(super) fn message(vehicle: &Vehicle, nonce: u64, id: u32) -> Vec<MavMessage> {
    match id {
        HEARTBEAT => vec![heartbeat(vehicle)],
        SYS_STATUS => vec![sys_status(vehicle)],
        GPS_RAW_INT => vec![gps(vehicle)],
        ATTITUDE => vec![attitude(vehicle)],
        ATTITUDE_QUATERNION => vec![quaternion(vehicle)],
        LOCAL_POSITION_NED if vehicle.health.gps => vec![local(vehicle)],
        GLOBAL_POSITION_INT if vehicle.health.gps => vec![global(vehicle)],
        MISSION_CURRENT => vec![mission_current(vehicle)],
        RC_CHANNELS => vec![rc(vehicle)],
        VFR_HUD => vec![hud(vehicle)],
        DISTANCE_SENSOR => vec![range_ahead(vehicle), range_behind(vehicle), range_below(vehicle)],
        ALTITUDE => vec![altitude(vehicle)],
        BATTERY_STATUS => vec![battery(vehicle)],
        AUTOPILOT_VERSION => vec![version(nonce)],
        HOME_POSITION if vehicle.health.home => vec![home(vehicle)],
        EXTENDED_SYS_STATE => vec![landed(vehicle)],
        CURRENT_MODE => vec![current_mode(vehicle)],
        COMPONENT_METADATA => metadata::announce(vehicle).into_iter().collect(),
        _ => Vec::new(),
    }
}

fn heartbeat(vehicle: &Vehicle) -> MavMessage {
    let custom = MavModeFlag::MAV_MODE_FLAG_CUSTOM_MODE_ENABLED;
    let armed = vehicle.armed();
    MavMessage::HEARTBEAT(HEARTBEAT_DATA {
        custom_mode: vehicle.mode().custom_mode(),
        mavtype: kind(vehicle),
        autopilot: MavAutopilot::MAV_AUTOPILOT_PX4,
        base_mode: if armed {
            custom | MavModeFlag::MAV_MODE_FLAG_SAFETY_ARMED
        } else {
            custom
        },
        system_status: if armed {
            MavState::MAV_STATE_ACTIVE
        } else {
            MavState::MAV_STATE_STANDBY
        },
        mavlink_version: 3,
    })
}

/// The vehicle type of the parameter `MAV_TYPE`.
fn kind(vehicle: &Vehicle) -> MavType {
    match vehicle.params.int("MAV_TYPE") {
        1 => MavType::MAV_TYPE_FIXED_WING,
        2 => MavType::MAV_TYPE_QUADROTOR,
        10 => MavType::MAV_TYPE_GROUND_ROVER,
        13 => MavType::MAV_TYPE_HEXAROTOR,
        14 => MavType::MAV_TYPE_OCTOROTOR,
        22 => MavType::MAV_TYPE_VTOL_FIXEDROTOR,
        _ => MavType::MAV_TYPE_GENERIC,
    }
}

fn current_mode(vehicle: &Vehicle) -> MavMessage {
    MavMessage::CURRENT_MODE(CURRENT_MODE_DATA {
        custom_mode: vehicle.mode().custom_mode(),
        intended_custom_mode: vehicle.intended().custom_mode(),
        standard_mode: MavStandardMode::MAV_STANDARD_MODE_NON_STANDARD,
    })
}

fn sys_status(vehicle: &Vehicle) -> MavMessage {
    type Bit = MavSysStatusSensor;
    let health = vehicle.health;
    let bits = [
        (Bit::MAV_SYS_STATUS_SENSOR_3D_GYRO, health.gyro),
        (Bit::MAV_SYS_STATUS_SENSOR_3D_ACCEL, health.accel),
        (Bit::MAV_SYS_STATUS_SENSOR_3D_MAG, health.mag),
        (Bit::MAV_SYS_STATUS_SENSOR_GPS, health.gps),
        (Bit::MAV_SYS_STATUS_SENSOR_RC_RECEIVER, health.rc),
        (Bit::MAV_SYS_STATUS_SENSOR_BATTERY, vehicle.battery_pct > 0.0),
        (
            Bit::MAV_SYS_STATUS_PREARM_CHECK,
            vehicle.armed() || vehicle.armable(),
        ),
    ];
    let mut present = Bit::empty();
    let mut healthy = Bit::empty();
    for (bit, ok) in bits {
        present |= bit;
        if ok {
            healthy |= bit;
        }
    }
    MavMessage::SYS_STATUS(SYS_STATUS_DATA {
        onboard_control_sensors_present: present,
        onboard_control_sensors_enabled: present,
        onboard_control_sensors_health: healthy,
        load: 200,
        voltage_battery: (volts(vehicle) * 1e3) as u16,
        current_battery: (amperes(vehicle) * 100.0) as i16,
        battery_remaining: vehicle.battery_pct.floor() as i8,
        drop_rate_comm: 0,
        errors_comm: 0,
        errors_count1: 0,
        errors_count2: 0,
        errors_count3: 0,
        errors_count4: 0,
        onboard_control_sensors_present_extended: MavSysStatusSensorExtended::empty(),
        onboard_control_sensors_enabled_extended: MavSysStatusSensorExtended::empty(),
        onboard_control_sensors_health_extended: MavSysStatusSensorExtended::empty(),
    })
}

/// Voltage of the whole battery.
pub(crate) fn volts(vehicle: &Vehicle) -> f64 {
    f64::from(CELLS.0) * (CELLS.1 + CELLS.2 * vehicle.battery_pct / 100.0)
}

fn amperes(vehicle: &Vehicle) -> f64 {
    match (vehicle.armed(), vehicle.landed()) {
        (false, _) => 0.3,
        (true, Landed::OnGround) => 2.0,
        _ => 15.0,
    }
}

fn battery(vehicle: &Vehicle) -> MavMessage {
    let mut voltages = [u16::MAX; 10];
    for cell in &mut voltages[..usize::from(CELLS.0)] {
        *cell = (volts(vehicle) / f64::from(CELLS.0) * 1e3) as u16;
    }
    let left = if vehicle.drain > 0.0 {
        vehicle.battery_pct / vehicle.drain
    } else {
        0.0
    };
    MavMessage::BATTERY_STATUS(BATTERY_STATUS_DATA {
        current_consumed: ((100.0 - vehicle.battery_pct) * 50.0) as i32,
        energy_consumed: -1,
        temperature: 2500,
        voltages,
        current_battery: (amperes(vehicle) * 100.0) as i16,
        id: 0,
        battery_function: MavBatteryFunction::MAV_BATTERY_FUNCTION_ALL,
        mavtype: MavBatteryType::MAV_BATTERY_TYPE_LIPO,
        battery_remaining: vehicle.battery_pct.floor() as i8,
        time_remaining: left as i32,
        charge_state: MavBatteryChargeState::MAV_BATTERY_CHARGE_STATE_OK,
        voltages_ext: [0; 4],
        mode: MavBatteryMode::MAV_BATTERY_MODE_UNKNOWN,
        fault_bitmask: MavBatteryFault::empty(),
    })
}

fn gps(vehicle: &Vehicle) -> MavMessage {
    let (lat, lon, alt) = vehicle.global();
    let ok = vehicle.health.gps;
    let velocity = vehicle.body().velocity;
    MavMessage::GPS_RAW_INT(GPS_RAW_INT_DATA {
        time_usec: (vehicle.time() * 1e6) as u64,
        lat: (lat * 1e7).round() as i32,
        lon: (lon * 1e7).round() as i32,
        alt: (alt * 1e3) as i32,
        eph: if ok { 80 } else { u16::MAX },
        epv: if ok { 120 } else { u16::MAX },
        vel: (horizontal(velocity) * 100.0) as u16,
        cog: u16::MAX,
        fix_type: if ok {
            GpsFixType::GPS_FIX_TYPE_3D_FIX
        } else {
            GpsFixType::GPS_FIX_TYPE_NO_FIX
        },
        satellites_visible: if ok { 12 } else { 0 },
        alt_ellipsoid: ((alt + 47.0) * 1e3) as i32,
        h_acc: 800,
        v_acc: 1200,
        vel_acc: 100,
        hdg_acc: 0,
        yaw: 0,
    })
}

fn attitude(vehicle: &Vehicle) -> MavMessage {
    let body = vehicle.body();
    MavMessage::ATTITUDE(ATTITUDE_DATA {
        time_boot_ms: vehicle.boot_ms(),
        roll: 0.0,
        pitch: 0.0,
        yaw: body.yaw as f32,
        rollspeed: 0.0,
        pitchspeed: 0.0,
        yawspeed: body.yaw_rate as f32,
    })
}

fn quaternion(vehicle: &Vehicle) -> MavMessage {
    let body = vehicle.body();
    let (sin, cos) = (body.yaw / 2.0).sin_cos();
    MavMessage::ATTITUDE_QUATERNION(ATTITUDE_QUATERNION_DATA {
        time_boot_ms: vehicle.boot_ms(),
        q1: cos as f32,
        q4: sin as f32,
        yawspeed: body.yaw_rate as f32,
        ..ATTITUDE_QUATERNION_DATA::DEFAULT
    })
}

fn local(vehicle: &Vehicle) -> MavMessage {
    let [x, y, z] = vehicle.believed().map(|v| v as f32);
    let [vx, vy, vz] = vehicle.body().velocity.map(|v| v as f32);
    MavMessage::LOCAL_POSITION_NED(LOCAL_POSITION_NED_DATA {
        time_boot_ms: vehicle.boot_ms(),
        x,
        y,
        z,
        vx,
        vy,
        vz,
    })
}

fn global(vehicle: &Vehicle) -> MavMessage {
    let (lat, lon, _) = vehicle.global();
    let alt = vehicle.believed_amsl();
    let [vx, vy, vz] = vehicle.body().velocity.map(|v| (v * 100.0) as i16);
    let heading = vehicle.body().yaw.to_degrees().rem_euclid(360.0);
    MavMessage::GLOBAL_POSITION_INT(GLOBAL_POSITION_INT_DATA {
        time_boot_ms: vehicle.boot_ms(),
        lat: (lat * 1e7).round() as i32,
        lon: (lon * 1e7).round() as i32,
        alt: (alt * 1e3).round() as i32,
        relative_alt: ((alt - vehicle.home_amsl()) * 1e3).round() as i32,
        vx,
        vy,
        vz,
        hdg: (heading * 100.0) as u16,
    })
}

fn mission_current(vehicle: &Vehicle) -> MavMessage {
    let mission = vehicle.mission();
    let total = mission.items.len();
    let last = total.saturating_sub(1);
    MavMessage::MISSION_CURRENT(MISSION_CURRENT_DATA {
        seq: mission.current.min(last) as u16,
        total: total as u16,
        mission_state: match (total, vehicle.mode()) {
            (0, _) => MissionState::MISSION_STATE_NO_MISSION,
            _ if mission.current >= total => MissionState::MISSION_STATE_COMPLETE,
            (_, Mode::Mission) => MissionState::MISSION_STATE_ACTIVE,
            _ if mission.current == 0 => MissionState::MISSION_STATE_NOT_STARTED,
            _ => MissionState::MISSION_STATE_PAUSED,
        },
        mission_mode: 0,
        mission_id: 0,
        fence_id: 0,
        rally_points_id: 0,
    })
}

fn rc(vehicle: &Vehicle) -> MavMessage {
    MavMessage::RC_CHANNELS(RC_CHANNELS_DATA {
        time_boot_ms: vehicle.boot_ms(),
        chancount: if vehicle.health.rc { 8 } else { 0 },
        rssi: if vehicle.health.rc { 100 } else { 0 },
        ..RC_CHANNELS_DATA::DEFAULT
    })
}

fn hud(vehicle: &Vehicle) -> MavMessage {
    let body = vehicle.body();
    MavMessage::VFR_HUD(VFR_HUD_DATA {
        airspeed: horizontal(body.velocity) as f32,
        groundspeed: horizontal(body.velocity) as f32,
        alt: vehicle.believed_amsl() as f32,
        climb: -body.velocity[2] as f32,
        heading: body.yaw.to_degrees().rem_euclid(360.0) as i16,
        throttle: if vehicle.armed() { 50 } else { 0 },
    })
}

fn range(vehicle: &Vehicle, id: u8, orientation: MavSensorOrientation, metres: f64, most: f64) -> MavMessage {
    MavMessage::DISTANCE_SENSOR(DISTANCE_SENSOR_DATA {
        time_boot_ms: vehicle.boot_ms(),
        min_distance: 10,
        max_distance: (most * 100.0) as u16,
        current_distance: (metres.clamp(0.1, most) * 100.0).round() as u16,
        mavtype: MavDistanceSensor::MAV_DISTANCE_SENSOR_LASER,
        id,
        orientation,
        covariance: u8::MAX,
        horizontal_fov: 0.0,
        vertical_fov: 0.0,
        quaternion: [0.0; 4],
        signal_quality: 100,
    })
}

fn range_ahead(vehicle: &Vehicle) -> MavMessage {
    let body = vehicle.body();
    let metres = vehicle.world.obstacle_ahead(body.position, body.yaw);
    let ahead = MavSensorOrientation::MAV_SENSOR_ROTATION_NONE;
    range(vehicle, 1, ahead, metres, vehicle.world.camera.obstacle_range_m)
}

fn range_behind(vehicle: &Vehicle) -> MavMessage {
    let body = vehicle.body();
    let metres = vehicle
        .world
        .obstacle_ahead(body.position, body.yaw + std::f64::consts::PI);
    let behind = MavSensorOrientation::MAV_SENSOR_ROTATION_YAW_180;
    range(vehicle, 2, behind, metres, vehicle.world.camera.obstacle_range_m)
}

fn range_below(vehicle: &Vehicle) -> MavMessage {
    let below = MavSensorOrientation::MAV_SENSOR_ROTATION_PITCH_270;
    range(vehicle, 0, below, vehicle.height(), DOWN_RANGE_M)
}

fn altitude(vehicle: &Vehicle) -> MavMessage {
    let height = vehicle.height() as f32;
    let above_sea = vehicle.believed_amsl() as f32;
    MavMessage::ALTITUDE(ALTITUDE_DATA {
        time_usec: (vehicle.time() * 1e6) as u64,
        altitude_monotonic: above_sea,
        altitude_amsl: above_sea,
        altitude_local: -vehicle.believed()[2] as f32,
        altitude_relative: (vehicle.believed_amsl() - vehicle.home_amsl()) as f32,
        altitude_terrain: f32::NAN,
        bottom_clearance: height,
    })
}

fn version(nonce: u64) -> MavMessage {
    type Can = MavProtocolCapability;
    let mut uid2 = [0; 18];
    uid2[..8].copy_from_slice(&nonce.to_be_bytes());
    MavMessage::AUTOPILOT_VERSION(AUTOPILOT_VERSION_DATA {
        capabilities: Can::MAV_PROTOCOL_CAPABILITY_MISSION_INT
            | Can::MAV_PROTOCOL_CAPABILITY_COMMAND_INT
            | Can::MAV_PROTOCOL_CAPABILITY_FTP
            | Can::MAV_PROTOCOL_CAPABILITY_PARAM_ENCODE_BYTEWISE
            | Can::MAV_PROTOCOL_CAPABILITY_SET_POSITION_TARGET_LOCAL_NED
            | Can::MAV_PROTOCOL_CAPABILITY_SET_POSITION_TARGET_GLOBAL_INT
            | Can::MAV_PROTOCOL_CAPABILITY_FLIGHT_TERMINATION
            | Can::MAV_PROTOCOL_CAPABILITY_MAVLINK2
            | Can::MAV_PROTOCOL_CAPABILITY_MISSION_FENCE,
        uid: nonce,
        flight_sw_version: FIRMWARE,
        middleware_sw_version: FIRMWARE,
        os_sw_version: 0,
        board_version: 0,
        vendor_id: 0,
        product_id: 0,
        flight_custom_version: [0; 8],
        middleware_custom_version: [0; 8],
        os_custom_version: [0; 8],
        uid2,
    })
}

fn home(vehicle: &Vehicle) -> MavMessage {
    let (north, east) = vehicle.launch();
    let (lat, lon) = vehicle.home.to_global(north, east);
    MavMessage::HOME_POSITION(HOME_POSITION_DATA {
        latitude: (lat * 1e7).round() as i32,
        longitude: (lon * 1e7).round() as i32,
        altitude: (vehicle.home_amsl() * 1e3).round() as i32,
        x: north as f32,
        y: east as f32,
        q: [1.0, 0.0, 0.0, 0.0],
        time_usec: (vehicle.time() * 1e6) as u64,
        ..HOME_POSITION_DATA::DEFAULT
    })
}

fn landed(vehicle: &Vehicle) -> MavMessage {
    MavMessage::EXTENDED_SYS_STATE(EXTENDED_SYS_STATE_DATA {
        vtol_state: MavVtolState::MAV_VTOL_STATE_UNDEFINED,
        landed_state: match vehicle.landed() {
            Landed::OnGround => MavLandedState::MAV_LANDED_STATE_ON_GROUND,
            Landed::InAir => MavLandedState::MAV_LANDED_STATE_IN_AIR,
            Landed::TakingOff => MavLandedState::MAV_LANDED_STATE_TAKEOFF,
            Landed::Landing => MavLandedState::MAV_LANDED_STATE_LANDING,
        },
    })
}

/// A status text in chunks of fifty bytes.
pub(super) fn text(severity: u8, text: &str, id: u16) -> Vec<MavMessage> {
    let severity = match severity {
        0 => MavSeverity::MAV_SEVERITY_EMERGENCY,
        1 => MavSeverity::MAV_SEVERITY_ALERT,
        2 => MavSeverity::MAV_SEVERITY_CRITICAL,
        3 => MavSeverity::MAV_SEVERITY_ERROR,
        4 => MavSeverity::MAV_SEVERITY_WARNING,
        5 => MavSeverity::MAV_SEVERITY_NOTICE,
        6 => MavSeverity::MAV_SEVERITY_INFO,
        _ => MavSeverity::MAV_SEVERITY_DEBUG,
    };
    let pieces: Vec<&[u8]> = text.as_bytes().chunks(50).collect();
    let alone = pieces.len() == 1;
    let piece = |(index, piece): (usize, &&[u8])| {
        let mut bytes = [0; 50];
        bytes[..piece.len()].copy_from_slice(piece);
        MavMessage::STATUSTEXT(STATUSTEXT_DATA {
            severity,
            text: bytes.into(),
            id: if alone { 0 } else { id },
            chunk_seq: index as u8,
        })
    };
    pieces.iter().enumerate().map(piece).collect()
}

pub(super) fn reached(seq: u16) -> MavMessage {
    MavMessage::MISSION_ITEM_REACHED(MISSION_ITEM_REACHED_DATA { seq })
}

pub(super) fn timesync(vehicle: &Vehicle, ts1: i64, peer: Peer) -> MavMessage {
    MavMessage::TIMESYNC(TIMESYNC_DATA {
        tc1: (vehicle.time() * 1e9) as i64,
        ts1,
        target_system: peer.system,
        target_component: peer.component,
    })
}

pub(super) fn pong(ping: &PING_DATA, peer: Peer) -> MavMessage {
    MavMessage::PING(PING_DATA {
        target_system: peer.system,
        target_component: peer.component,
        ..ping.clone()
    })
}
