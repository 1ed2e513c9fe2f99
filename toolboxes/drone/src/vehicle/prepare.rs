//! Settings sent once after a vehicle is found: telemetry rates, return height, fence.
//!
//! Never arms or moves the vehicle, and changes parameters only on the ground. Read [`prepare`].

use std::sync::Arc;
use std::time::Duration;

use tonic::transport::Channel;

use super::telemetry::Telemetry;
use super::unit::Vehicle;
use crate::guard::{Fence, Home, Pace};
use crate::mavsdk::action::SetReturnToLaunchAltitudeRequest;
use crate::mavsdk::action::action_service_client::ActionServiceClient;
use crate::mavsdk::geofence::geofence_service_client::GeofenceServiceClient;
use crate::mavsdk::geofence::{self, UploadGeofenceRequest};
use crate::mavsdk::telemetry::telemetry_service_client::TelemetryServiceClient;
use crate::mavsdk::telemetry::{
    SetRateAttitudeEulerRequest, SetRateDistanceSensorRequest, SetRateLandedStateRequest,
    SetRatePositionRequest, SetRatePositionVelocityNedRequest,
};

/// Greatest height of a return, metres above home: PX4's default for multicopters.
const RETURN_M: f64 = 30.0;
/// Attempts at settings that the vehicle has to confirm.
const TRIES: u32 = 5;

/// Sends the settings. Failures are not errors: every guard works without them.
pub(super) async fn prepare(vehicle: Arc<Vehicle>, channel: Channel) -> Option<String> {
    rates(channel.clone()).await;
    let mut reports = vehicle.heard.subscribe();
    let standing = |telemetry: &Telemetry| {
        telemetry.armed == Some(false) && telemetry.home.is_some() && telemetry.health.is_some()
    };
    // A vehicle found in the air gets them after its landing.
    if reports.wait_for(standing).await.is_err() {
        return None;
    }
    let limits = &vehicle.config.flight_limits;
    let height = RETURN_M.min(limits.max_alt_m - Pace::PX4.below_ceiling(limits.braking));
    for _ in 0..TRIES {
        let request = SetReturnToLaunchAltitudeRequest {
            relative_altitude_m: height as f32,
        };
        let asked = ActionServiceClient::new(channel.clone())
            .set_return_to_launch_altitude(request)
            .await;
        if asked.is_ok_and(|answer| {
            answer
                .into_inner()
                .action_result
                .is_some_and(|result| result.result == 1)
        }) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    if vehicle.config.upload_fence != Some(false) {
        upload(&vehicle, channel).await;
    }
    None
}

async fn rates(channel: Channel) {
    let mut client = TelemetryServiceClient::new(channel);
    // A vehicle that does not know a rate keeps its own.
    let _ = client
        .set_rate_position_velocity_ned(SetRatePositionVelocityNedRequest { rate_hz: 20.0 })
        .await;
    let _ = client
        .set_rate_position(SetRatePositionRequest { rate_hz: 10.0 })
        .await;
    let _ = client
        .set_rate_attitude_euler(SetRateAttitudeEulerRequest { rate_hz: 20.0 })
        .await;
    let _ = client
        .set_rate_landed_state(SetRateLandedStateRequest { rate_hz: 5.0 })
        .await;
    let _ = client
        .set_rate_distance_sensor(SetRateDistanceSensorRequest { rate_hz: 10.0 })
        .await;
}

/// Sends the fence and checks that the vehicle enforces it: PX4 also acknowledges a fence that it then ignores.
async fn upload(vehicle: &Arc<Vehicle>, channel: Channel) {
    let Some(home) = vehicle.heard.borrow().home else {
        return;
    };
    let fence = &vehicle.config.fence;
    if fence.inside(home, [home.north_m, home.east_m, home.down_m]) < 0.0 {
        tracing::error!(
            vehicle = vehicle.id,
            "the fence does not contain home: the vehicle would ignore it"
        );
        return;
    }
    let words = vehicle.heard.borrow().texts_so_far;
    for _ in 0..TRIES {
        let request = UploadGeofenceRequest {
            geofence_data: Some(data(fence, home)),
        };
        let asked = GeofenceServiceClient::new(channel.clone())
            .upload_geofence(request)
            .await;
        if asked.is_ok_and(|answer| {
            answer
                .into_inner()
                .geofence_result
                .is_some_and(|result| result.result == 1)
        }) {
            vehicle.clock.sleep(Duration::from_secs(1)).await;
            let words = vehicle.heard.borrow().words_since(words).unwrap_or_default();
            if words.to_lowercase().contains("geofence invalid") {
                tracing::error!(
                    vehicle = vehicle.id,
                    words,
                    "the vehicle ignores its fence; ours is checked"
                );
            }
            return;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    tracing::warn!(
        vehicle = vehicle.id,
        "the fence could not be sent to the vehicle; ours is checked"
    );
}

fn data(fence: &Fence, home: Home) -> geofence::GeofenceData {
    use crate::guard::Global;
    let inclusion = geofence::FenceType::Inclusion as i32;
    let point = |lat: f64, lon: f64| geofence::Point {
        latitude_deg: lat,
        longitude_deg: lon,
    };
    match fence.global(home) {
        Global::Circle(lat, lon, radius) => geofence::GeofenceData {
            polygons: Vec::new(),
            circles: vec![geofence::Circle {
                point: Some(point(lat, lon)),
                radius: radius as f32,
                fence_type: inclusion,
            }],
        },
        Global::Polygon(corners) => geofence::GeofenceData {
            polygons: vec![geofence::Polygon {
                points: corners.iter().map(|[lat, lon]| point(*lat, *lon)).collect(),
                fence_type: inclusion,
            }],
            circles: Vec::new(),
        },
    }
}
