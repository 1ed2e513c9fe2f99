//! The telemetry streams: what the vehicle says, written into [`Telemetry`].
//!
//! One task a stream, opened once a connection. Never commands, never decides. Read [`listen`].

use std::sync::Arc;

use futures_util::StreamExt as _;
use tokio::task::JoinSet;
use tonic::transport::Channel;

use super::telemetry::{Battery, Mission, Place, Seen};
use super::{Telemetry, Vehicle};
use crate::guard::{Health, Landed, Mode};
use crate::mavsdk::camera::camera_service_client::CameraServiceClient;
use crate::mavsdk::core::core_service_client::CoreServiceClient;
use crate::mavsdk::mission::mission_service_client::MissionServiceClient;
use crate::mavsdk::telemetry::telemetry_service_client::TelemetryServiceClient;
use crate::mavsdk::{camera, core, mission, telemetry};

/// Subscribes to everything the tools read. Each stream is opened once: an opening costs up to 2 s until the first word.
pub(super) fn listen(vehicle: &Arc<Vehicle>, channel: &Channel, streams: &mut JoinSet<Option<String>>) {
    macro_rules! stream {
        ($client:ident, $method:ident, $request:expr, |$heard:ident, $message:ident| $write:expr) => {
            let (vehicle, mut client) = (Arc::clone(vehicle), $client::new(channel.clone()));
            streams.spawn(async move {
                let mut stream = match client.$method($request).await {
                    Ok(stream) => stream.into_inner(),
                    Err(status) => return Some(format!("{}: {}", stringify!($method), status.message())),
                };
                while let Some(message) = stream.next().await {
                    let $message = match message {
                        Ok(message) => message,
                        Err(status) => return Some(format!("{}: {}", stringify!($method), status.message())),
                    };
                    vehicle.hear(|$heard: &mut Telemetry| $write);
                }
                Some("mavsdk_server closed the connection".to_string())
            });
        };
    }

    stream!(
        CoreServiceClient,
        subscribe_connection_state,
        core::SubscribeConnectionStateRequest {},
        |heard, message| {
            heard.connected = message.connection_state.is_some_and(|state| state.is_connected);
        }
    );
    stream!(
        TelemetryServiceClient,
        subscribe_position,
        telemetry::SubscribePositionRequest {},
        |heard, message| {
            if let Some(position) = message.position {
                heard.place = Some(Seen::now(Place {
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
                heard.local = Some(Seen::now((place, velocity)));
            }
        }
    );
    stream!(
        TelemetryServiceClient,
        subscribe_attitude_euler,
        telemetry::SubscribeAttitudeEulerRequest {},
        |heard, message| {
            if let Some(attitude) = message.attitude_euler {
                heard.yaw_deg = Some(Seen::now(attitude.yaw_deg.into()));
            }
        }
    );
    stream!(
        TelemetryServiceClient,
        subscribe_armed,
        telemetry::SubscribeArmedRequest {},
        |heard, message| {
            heard.armed = Some(message.is_armed);
        }
    );
    stream!(
        TelemetryServiceClient,
        subscribe_in_air,
        telemetry::SubscribeInAirRequest {},
        |heard, message| {
            heard.in_air = Some(message.is_in_air);
        }
    );
    stream!(
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
        TelemetryServiceClient,
        subscribe_flight_mode,
        telemetry::SubscribeFlightModeRequest {},
        |heard, message| {
            heard.mode = Some(Mode::of(message.flight_mode));
        }
    );
    stream!(
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
        TelemetryServiceClient,
        subscribe_battery,
        telemetry::SubscribeBatteryRequest {},
        |heard, message| {
            if let Some(battery) = message.battery {
                let remaining = f64::from(battery.time_remaining_s);
                let told = Battery {
                    pct: percent(battery.remaining_percent.into()),
                    voltage_v: battery.voltage_v.into(),
                    remaining_s: (remaining.is_finite() && remaining > 0.0).then_some(remaining),
                };
                heard.batteries.insert(battery.id, Seen::now(told));
            }
        }
    );
    stream!(
        TelemetryServiceClient,
        subscribe_gps_info,
        telemetry::SubscribeGpsInfoRequest {},
        |heard, message| {
            heard.satellites = message.gps_info.map(|gps| gps.num_satellites);
        }
    );
    stream!(
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
                heard.said(severity.unwrap_or("unknown"), &text.text);
            }
        }
    );
    stream!(
        MissionServiceClient,
        subscribe_mission_progress,
        mission::SubscribeMissionProgressRequest {},
        |heard, message| {
            heard.mission = message.mission_progress.map(|progress| {
                Seen::now(Mission {
                    current: progress.current,
                    total: progress.total,
                })
            });
        }
    );
    stream!(
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
        CameraServiceClient,
        subscribe_capture_info,
        camera::SubscribeCaptureInfoRequest {},
        |heard, message| {
            match message.capture_info {
                // Another camera's photo says nothing about ours.
                Some(capture) if heard.camera.is_some_and(|ours| ours != capture.component_id) => {}
                Some(capture) if capture.is_success => heard.captures += 1,
                Some(_) => heard.failed_captures += 1,
                None => {}
            }
        }
    );
    stream!(
        CameraServiceClient,
        subscribe_storage,
        camera::SubscribeStorageRequest {},
        |heard, message| {
            if let Some(update) = message.update
                && heard.camera.is_none_or(|ours| ours == update.component_id)
                && let Some(storage) = update.storage
            {
                heard.recording = Some(Seen::now(storage.video_on));
            }
        }
    );
    range_sensors(vehicle, channel, streams);
}

/// Range sensors: one that looks ahead is an obstacle's distance, one that looks down the ground's.
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
            if pitch.abs() < 20.0 && yaw.abs() < 20.0 {
                vehicle.scene.put_range(metres);
            } else if (pitch + 90.0).abs() < 20.0 {
                vehicle.hear(|heard| heard.clearance_m = Some(Seen::now(metres)));
            }
        }
        Some("mavsdk_server closed the connection".to_string())
    });
}

/// MAVSDK says 0 to 100; forks have said 0 to 1, or hundredths of a percent. What makes no sense is no charge.
fn percent(said: f64) -> f64 {
    match said {
        said if (0.0..=100.0).contains(&said) => said,
        said if said > 100.0 && said <= 10_000.0 => said / 100.0,
        _ => f64::NAN,
    }
}
