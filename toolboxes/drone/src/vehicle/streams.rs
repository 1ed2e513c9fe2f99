//! The telemetry streams, written into [`Telemetry`].
//!
//! One task per stream, opened once per connection. Sends no commands and decides nothing. Read [`listen`].

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use ovos_toolbox_sdk::prelude::*;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tonic::transport::Channel;

use super::mode_report::AUTOPILOT;
use super::recognise::parameter;
use super::telemetry::Telemetry;
use super::telemetry::{Battery, GlobalPosition, Mission, ModeReport, Reading};
use super::unit::Vehicle;
use crate::guard::{Checks, Health, Landed, Mode};
use crate::mavsdk::camera::camera_service_client::CameraServiceClient;
use crate::mavsdk::core::core_service_client::CoreServiceClient;
use crate::mavsdk::events::events_service_client::EventsServiceClient;
use crate::mavsdk::mavlink_direct::mavlink_direct_service_client::MavlinkDirectServiceClient;
use crate::mavsdk::mission::mission_service_client::MissionServiceClient;
use crate::mavsdk::telemetry::telemetry_service_client::TelemetryServiceClient;
use crate::mavsdk::{camera, core, events, mavlink_direct, mission, telemetry};
use crate::scene::Side;

/// Opens a stream and stores each of its messages, in a task of its own.
macro_rules! stream {
    ($vehicle:expr, $channel:expr, $streams:expr; $client:ident, $method:ident, $request:expr, |$heard:ident, $message:ident| $write:expr) => {
        let (vehicle, mut client) = (Arc::clone($vehicle), $client::new($channel.clone()));
        $streams.spawn(async move {
            let mut stream = match client.$method($request).await {
                Ok(stream) => stream.into_inner(),
                Err(status) => return Some(format!("{}: {}", stringify!($method), status.message())),
            };
            while let Some(message) = stream.next().await {
                let $message = match message {
                    Ok(message) => message,
                    Err(status) => return Some(format!("{}: {}", stringify!($method), status.message())),
                };
                vehicle.update_telemetry(|$heard: &mut Telemetry| $write);
            }
            Some("mavsdk_server closed the connection".to_string())
        });
    };
}

/// Subscribes to everything the tools read. Each stream is opened once, because its first message takes up to 2 s.
pub(super) fn listen(vehicle: &Arc<Vehicle>, channel: &Channel, streams: &mut JoinSet<Option<String>>) {
    stream!(
        vehicle, channel, streams;
        CoreServiceClient,
        subscribe_connection_state,
        core::SubscribeConnectionStateRequest {},
        |heard, message| {
            heard.connected = message.connection_state.is_some_and(|state| state.is_connected);
        }
    );
    stream!(
        vehicle, channel, streams;
        TelemetryServiceClient,
        subscribe_position,
        telemetry::SubscribePositionRequest {},
        |heard, message| {
            if let Some(position) = message.position {
                heard.place = Some(Reading::now(GlobalPosition {
                    lat: position.latitude_deg,
                    lon: position.longitude_deg,
                    amsl_m: position.absolute_altitude_m.into(),
                    relative_m: position.relative_altitude_m.into(),
                }));
                heard.settle_home();
            }
        }
    );
    stream!(
        vehicle, channel, streams;
        TelemetryServiceClient,
        subscribe_position_velocity_ned,
        telemetry::SubscribePositionVelocityNedRequest {},
        |heard, message| {
            if let Some(telemetry::PositionVelocityNed {
                position: Some(p),
                velocity: Some(v),
            }) = message.position_velocity_ned
            {
                let place = [p.north_m, p.east_m, p.down_m].map(f64::from);
                let velocity = [v.north_m_s, v.east_m_s, v.down_m_s].map(f64::from);
                heard.moved(place, velocity);
            }
        }
    );
    stream!(
        vehicle, channel, streams;
        TelemetryServiceClient,
        subscribe_attitude_euler,
        telemetry::SubscribeAttitudeEulerRequest {},
        |heard, message| {
            if let Some(attitude) = message.attitude_euler {
                heard.time(attitude.timestamp_us);
                heard.yaw_deg = Some(Reading::now(attitude.yaw_deg.into()));
            }
        }
    );
    stream!(
        vehicle, channel, streams;
        TelemetryServiceClient,
        subscribe_armed,
        telemetry::SubscribeArmedRequest {},
        |heard, message| {
            heard.armed = Some(message.is_armed);
        }
    );
    stream!(
        vehicle, channel, streams;
        TelemetryServiceClient,
        subscribe_in_air,
        telemetry::SubscribeInAirRequest {},
        |heard, message| {
            heard.in_air = Some(message.is_in_air);
        }
    );
    stream!(
        vehicle, channel, streams;
        TelemetryServiceClient,
        subscribe_landed_state,
        telemetry::SubscribeLandedStateRequest {},
        |heard, message| {
            heard.landed = match message.landed_state {
                1 => Some(Landed::OnGround),
                2 => Some(Landed::InAir),
                3 => Some(Landed::TakingOff),
                4 => Some(Landed::Landing),
                _ => None,
            };
        }
    );
    stream!(
        vehicle, channel, streams;
        TelemetryServiceClient,
        subscribe_flight_mode,
        telemetry::SubscribeFlightModeRequest {},
        |heard, message| {
            heard.mode = Some(Mode::of(message.flight_mode));
            heard.mode_at = Some(Instant::now());
        }
    );
    stream!(
        vehicle, channel, streams;
        TelemetryServiceClient,
        subscribe_health,
        telemetry::SubscribeHealthRequest {},
        |heard, message| {
            heard.health = message.health.map(|health| Health {
                gyro: health.is_gyrometer_calibration_ok,
                accel: health.is_accelerometer_calibration_ok,
                mag: health.is_magnetometer_calibration_ok,
                local: health.is_local_position_ok,
                global: health.is_global_position_ok,
                home: health.is_home_position_ok,
                armable: health.is_armable,
            });
        }
    );
    stream!(
        vehicle, channel, streams;
        TelemetryServiceClient,
        subscribe_battery,
        telemetry::SubscribeBatteryRequest {},
        |heard, message| {
            if let Some(battery) = message.battery {
                let remaining = f64::from(battery.time_remaining_s);
                let battery_state = Battery {
                    pct: percent(battery.remaining_percent.into()),
                    voltage_v: battery.voltage_v.into(),
                    remaining_s: (remaining.is_finite() && remaining > 0.0).then_some(remaining),
                };
                heard.batteries.insert(battery.id, Reading::now(battery_state));
            }
        }
    );
    stream!(
        vehicle, channel, streams;
        TelemetryServiceClient,
        subscribe_gps_info,
        telemetry::SubscribeGpsInfoRequest {},
        |heard, message| {
            heard.satellites = message.gps_info.map(|gps| gps.num_satellites);
        }
    );
    stream!(
        vehicle, channel, streams;
        TelemetryServiceClient,
        subscribe_status_text,
        telemetry::SubscribeStatusTextRequest {},
        |heard, message| {
            if let Some(text) = message.status_text {
                let severity = [
                    "debug",
                    "info",
                    "notice",
                    "warning",
                    "error",
                    "critical",
                    "alert",
                    "emergency",
                ];
                let severity = usize::try_from(text.r#type)
                    .ok()
                    .and_then(|index| severity.get(index))
                    .copied();
                heard.record_text(severity.unwrap_or("unknown"), &text.text);
            }
        }
    );
    stream!(
        vehicle, channel, streams;
        MissionServiceClient,
        subscribe_mission_progress,
        mission::SubscribeMissionProgressRequest {},
        |heard, message| {
            heard.mission = message.mission_progress.map(|progress| {
                Reading::now(Mission {
                    current: progress.current,
                    total: progress.total,
                })
            });
        }
    );
    cameras(vehicle, channel, streams);
    modes(vehicle, channel, streams);
    arming_checks(vehicle, channel, streams);
    range_sensors(vehicle, channel, streams);
}

/// MAVLink's component ids of cameras, and the component type of a camera.
const CAMERAS: std::ops::RangeInclusive<u32> = 100..=105;
const CAMERA_TYPE: u64 = 30;

/// Subscribes to the camera after a camera's heartbeat. After the first request for cameras, mavsdk_server asks every
/// component with a heartbeat, the autopilot included, for a camera's state every 5 s as long as it runs; PX4 refuses
/// each request with a beep.
fn cameras(vehicle: &Arc<Vehicle>, channel: &Channel, streams: &mut JoinSet<Option<String>>) {
    let (vehicle, channel) = (Arc::clone(vehicle), channel.clone());
    streams.spawn(async move {
        if let Err(why) = camera_heard(&vehicle, &channel).await {
            return Some(why);
        }
        let mut streams = JoinSet::new();
        stream!(
            &vehicle, &channel, &mut streams;
            CameraServiceClient,
            subscribe_camera_list,
            camera::SubscribeCameraListRequest {},
            |heard, message| {
                heard.camera = message
                    .camera_list
                    .and_then(|list| list.cameras.first().map(|camera| camera.component_id));
            }
        );
        stream!(
            &vehicle, &channel, &mut streams;
            CameraServiceClient,
            subscribe_capture_info,
            camera::SubscribeCaptureInfoRequest {},
            |heard, message| {
                match message.capture_info {
                    // A photo of another camera.
                    Some(capture) if heard.camera.is_some_and(|ours| ours != capture.component_id) => {}
                    Some(capture) if capture.is_success => {
                        heard.captures += 1;
                        heard.photo_url = capture.file_url;
                    }
                    Some(_) => heard.failed_captures += 1,
                    None => {}
                }
            }
        );
        stream!(
            &vehicle, &channel, &mut streams;
            CameraServiceClient,
            subscribe_storage,
            camera::SubscribeStorageRequest {},
            |heard, message| {
                if let Some(update) = message.update
                    && heard.camera.is_none_or(|ours| ours == update.component_id)
                    && let Some(storage) = update.storage
                {
                    heard.recording = Some(Reading::now(storage.video_on));
                }
            }
        );
        streams
            .join_next()
            .await?
            .unwrap_or_else(|error| Some(error.to_string()))
    });
}

/// How often an armed vehicle is asked for its mode: a pilot who took over 20 ms before a command of ours was overridden
/// by it.
const MODES_EVERY: Duration = Duration::from_millis(20);
/// Reports farther apart than this are not those that were asked for, vehicle time.
const MODES_RARE: Duration = Duration::from_millis(1200);
/// How long to wait before asking again.
const MODES_ASKED: Duration = Duration::from_secs(2);
/// How long a vehicle may send no mode at all before it is asked.
const MODES_SILENT: Duration = Duration::from_secs(3);

/// Waits for a camera's heartbeat, and stores the vehicle's number from the autopilot's.
async fn camera_heard(vehicle: &Arc<Vehicle>, channel: &Channel) -> Result<(), String> {
    let request = mavlink_direct::SubscribeMessageRequest {
        message_name: "HEARTBEAT".to_string(),
    };
    let failed = |status: &tonic::Status| format!("subscribe_message: {}", status.message());
    let request = MavlinkDirectServiceClient::new(channel.clone())
        .subscribe_message(request)
        .await;
    let mut stream = match request {
        Ok(stream) => stream.into_inner(),
        // An older server has no such subscription; PX4 also keeps its type as a parameter.
        Err(status) if status.code() == tonic::Code::Unimplemented => {
            let kind = parameter(channel, "MAV_TYPE").await?;
            vehicle.update_telemetry(|heard| heard.kind = kind.and_then(|kind| u64::try_from(kind).ok()));
            return Ok(());
        }
        Err(status) => return Err(failed(&status)),
    };
    let (mut camera, mut autopilot) = (false, false);
    while let Some(message) = stream.next().await {
        let message = message.map_err(|status| failed(&status))?.message;
        let Some(heartbeat) = message else { continue };
        if heartbeat.component_id == AUTOPILOT && !autopilot {
            autopilot = true;
            let kind = field(&heartbeat, "type");
            vehicle.update_telemetry(|heard| {
                heard.system = Some(heartbeat.system_id);
                heard.kind = kind;
            });
        }
        camera |= is_camera(&heartbeat);
        if camera && autopilot {
            return Ok(());
        }
    }
    Err("mavsdk_server closed the connection".to_string())
}

fn is_camera(heartbeat: &mavlink_direct::MavlinkMessage) -> bool {
    CAMERAS.contains(&heartbeat.component_id) || field(heartbeat, "type") == Some(CAMERA_TYPE)
}

/// A whole number in a MAVLink message.
fn field(message: &mavlink_direct::MavlinkMessage, name: &str) -> Option<u64> {
    let fields: Value = serde_json::from_str(&message.fields_json).ok()?;
    fields[name].as_u64()
}

/// Reads the vehicle's mode as it changes. By itself PX4 sends it every two seconds. Asked for a shorter interval, PX4 sends
/// it that soon after a change, and otherwise twice a second: an armed vehicle is asked for that. An older vehicle or
/// server does not have this message, and then the mode is as old as the last heartbeat.
fn modes(vehicle: &Arc<Vehicle>, channel: &Channel, streams: &mut JoinSet<Option<String>>) {
    let (vehicle, channel) = (Arc::clone(vehicle), channel.clone());
    streams.spawn(async move {
        let request = mavlink_direct::SubscribeMessageRequest {
            message_name: "CURRENT_MODE".to_string(),
        };
        let mut client = MavlinkDirectServiceClient::new(channel.clone());
        let Ok(stream) = client.subscribe_message(request).await else {
            return None;
        };
        let mut stream = stream.into_inner();
        let (mut last, mut asked) = (None::<Instant>, None::<Instant>);
        loop {
            let message = tokio::time::timeout(MODES_SILENT, stream.next()).await;
            let now = Instant::now();
            let present = match message {
                Ok(Some(Ok(message))) => message.message.filter(|one| one.component_id == AUTOPILOT),
                // The other streams notice that the server has gone.
                Ok(_) => return None,
                Err(_) => None,
            };
            let gap = last.map(|at| now - at);
            if let Some(message) = present {
                last = Some(now);
                let mode = |name| field(&message, name).map(Mode::of_px4);
                if let (Some(mode), Some(intended)) = (mode("custom_mode"), mode("intended_custom_mode")) {
                    vehicle.update_telemetry(|heard| heard.hear_mode(ModeReport { mode, intended }, now));
                }
            }
            let armed = vehicle.telemetry().armed == Some(true);
            let rare = gap.is_none_or(|gap| gap > vehicle.clock.wall(MODES_RARE));
            if armed == rare && asked.is_none_or(|at| now - at > MODES_ASKED) {
                asked = Some(now);
                let every = armed.then(|| vehicle.clock.vehicle(MODES_EVERY));
                vehicle.request_modes(&channel, every).await;
            }
        }
    });
}

/// Why the vehicle would not arm. PX4 reports it as events, whose texts mavsdk_server first reads from the vehicle.
fn arming_checks(vehicle: &Arc<Vehicle>, channel: &Channel, streams: &mut JoinSet<Option<String>>) {
    let (vehicle, mut client) = (Arc::clone(vehicle), EventsServiceClient::new(channel.clone()));
    streams.spawn(async move {
        let request = events::SubscribeHealthAndArmingChecksRequest {};
        let failed = |status: &tonic::Status| format!("arming checks: {}", status.message());
        let mut stream = match client.subscribe_health_and_arming_checks(request).await {
            Ok(stream) => stream.into_inner(),
            // An older server: only the vehicle's status texts remain.
            Err(status) if status.code() == tonic::Code::Unimplemented => return None,
            Err(status) => return Some(failed(&status)),
        };
        while let Some(message) = stream.next().await {
            match message {
                Ok(message) => vehicle.update_telemetry(|heard| heard.checks = message.report.map(checks)),
                Err(status) => return Some(failed(&status)),
            }
        }
        Some("mavsdk_server closed the connection".to_string())
    });
}

/// The problems of the mode in which the vehicle would arm, or else of any mode: those of severity warning and worse.
/// If none of them is an error, all problems: PX4 reports a mode that does not arm and an unknown home as information.
fn checks(report: events::HealthAndArmingCheckReport) -> Checks {
    let mode = report.current_mode_intention.unwrap_or_default();
    let problems = if mode.problems.is_empty() {
        report.all_problems
    } else {
        mode.problems
    };
    let error =
        |problem: &events::HealthAndArmingCheckProblem| problem.log_level <= events::LogLevel::Error as i32;
    let least = if problems.iter().any(error) {
        events::LogLevel::Warning
    } else {
        events::LogLevel::Debug
    };
    Checks {
        mode: mode.mode_name,
        passed: mode.can_arm_or_run,
        problems: problems
            .into_iter()
            .filter(|problem| problem.log_level <= least as i32 && !problem.message.is_empty())
            .map(|problem| problem.message)
            .collect(),
    }
}

/// Range sensors: one that looks ahead measures obstacles, one that looks down the height above ground.
fn range_sensors(vehicle: &Arc<Vehicle>, channel: &Channel, streams: &mut JoinSet<Option<String>>) {
    let (vehicle, mut client) = (Arc::clone(vehicle), TelemetryServiceClient::new(channel.clone()));
    streams.spawn(async move {
        let request = telemetry::SubscribeDistanceSensorRequest {};
        let mut stream = match client.subscribe_distance_sensor(request).await {
            Ok(stream) => stream.into_inner(),
            Err(status) => return Some(format!("subscribe_distance_sensor: {}", status.message())),
        };
        while let Some(message) = stream.next().await {
            let sensor = match message {
                Ok(message) => message.distance_sensor,
                Err(status) => return Some(format!("subscribe_distance_sensor: {}", status.message())),
            };
            let Some((sensor, towards)) = sensor.and_then(|sensor| Some((sensor, sensor.orientation?)))
            else {
                continue;
            };
            let metres = f64::from(sensor.current_distance_m);
            let (pitch, yaw) = (
                crate::geo::wrap_deg(towards.pitch_deg.into()),
                crate::geo::wrap_deg(towards.yaw_deg.into()),
            );
            let reach_m = f64::from(sensor.maximum_distance_m);
            if pitch.abs() < 20.0 && yaw.abs() < 20.0 {
                vehicle.scene.put_range(Side::Ahead, metres, reach_m);
            } else if pitch.abs() < 20.0 && yaw.abs() > 160.0 {
                vehicle.scene.put_range(Side::Behind, metres, reach_m);
            } else if (pitch + 90.0).abs() < 20.0 {
                vehicle.update_telemetry(|heard| heard.clearance_m = Some(Reading::now(metres)));
            }
        }
        Some("mavsdk_server closed the connection".to_string())
    });
}

/// MAVSDK reports 0 to 100; forks have reported 0 to 1 or hundredths of a percent. Any other value means an unknown
/// charge.
fn percent(reported: f64) -> f64 {
    match reported {
        reported if (0.0..=100.0).contains(&reported) => reported,
        reported if reported > 100.0 && reported <= 10_000.0 => reported / 100.0,
        _ => f64::NAN,
    }
}
