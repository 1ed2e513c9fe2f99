//! Telemetry at the rates of the real vehicle.

use drone::mavsdk::telemetry::telemetry_service_server::TelemetryService;
use drone::mavsdk::telemetry::*;
use futures_util::{StreamExt, stream};
use px4_sim::{Landed, Mode};
use tonic::Request;

use super::{Answered, FakeMavsdk, ModeReports, Sim, Told, change_stream};

/// Interval of positions, seconds.
const FAST: f64 = 0.1;

fn mode_number(mode: Mode) -> i32 {
    match mode {
        Mode::Ready => 1,
        Mode::Takeoff => 2,
        Mode::Hold => 3,
        Mode::Mission => 4,
        Mode::Return => 5,
        Mode::Land => 6,
        Mode::Offboard => 7,
        Mode::Follow => 8,
        Mode::Manual => 9,
        Mode::Altctl => 10,
        Mode::Posctl => 11,
        Mode::Acro => 12,
        Mode::Stabilized => 13,
    }
}

fn degrees(yaw: f64) -> EulerAngle {
    EulerAngle {
        yaw_deg: yaw.to_degrees() as f32,
        ..EulerAngle::default()
    }
}

/// The value while there is a position.
fn located<T>(sim: &Sim, make: impl FnOnce() -> T) -> Option<T> {
    sim.vehicle.health.gps.then(make)
}

fn accepted() -> Option<TelemetryResult> {
    Some(TelemetryResult {
        result: 1,
        result_str: "Success".to_owned(),
    })
}

fn range(current: f64, maximum: f64, pitch_deg: f32, yaw_deg: f32) -> DistanceSensorResponse {
    DistanceSensorResponse {
        distance_sensor: Some(DistanceSensor {
            minimum_distance_m: 0.1,
            maximum_distance_m: maximum as f32,
            current_distance_m: current.clamp(0.1, maximum) as f32,
            orientation: Some(EulerAngle {
                pitch_deg,
                yaw_deg,
                ..EulerAngle::default()
            }),
        }),
    }
}

#[tonic::async_trait]
impl TelemetryService for FakeMavsdk {
    type SubscribePositionStream = Told<PositionResponse>;
    type SubscribeInAirStream = Told<InAirResponse>;
    type SubscribeLandedStateStream = Told<LandedStateResponse>;
    type SubscribeArmedStream = Told<ArmedResponse>;
    type SubscribeAttitudeEulerStream = Told<AttitudeEulerResponse>;
    type SubscribeGpsInfoStream = Told<GpsInfoResponse>;
    type SubscribeBatteryStream = Told<BatteryResponse>;
    type SubscribeFlightModeStream = Told<FlightModeResponse>;
    type SubscribeHealthStream = Told<HealthResponse>;
    type SubscribeStatusTextStream = Told<StatusTextResponse>;
    type SubscribePositionVelocityNedStream = Told<PositionVelocityNedResponse>;
    type SubscribeDistanceSensorStream = Told<DistanceSensorResponse>;

    async fn subscribe_position(
        &self,
        _: Request<SubscribePositionRequest>,
    ) -> Answered<Self::SubscribePositionStream> {
        let read = |sim: &Sim| {
            located(sim, || {
                let (lat, lon, _) = sim.vehicle.global();
                let alt = sim.vehicle.believed_amsl();
                let error = sim.height_error_m;
                let stands = sim.vehicle.landed() == Landed::OnGround;
                let counted = if stands { error } else { 0.0 };
                let position = Some(Position {
                    latitude_deg: lat,
                    longitude_deg: lon,
                    absolute_altitude_m: (alt + error) as f32,
                    relative_altitude_m: (alt - sim.vehicle.home_amsl() + counted) as f32,
                });
                PositionResponse { position }
            })
        };
        Ok(self.every(FAST, read).into())
    }

    async fn subscribe_in_air(
        &self,
        _: Request<SubscribeInAirRequest>,
    ) -> Answered<Self::SubscribeInAirStream> {
        let read = |sim: &Sim| {
            let is_in_air = sim.vehicle.landed() != Landed::OnGround;
            Some(InAirResponse { is_in_air })
        };
        Ok(self.every(1.0, read).into())
    }

    async fn subscribe_landed_state(
        &self,
        _: Request<SubscribeLandedStateRequest>,
    ) -> Answered<Self::SubscribeLandedStateStream> {
        let read = |sim: &Sim| {
            let landed_state = match sim.vehicle.landed() {
                Landed::OnGround => 1,
                Landed::InAir => 2,
                Landed::TakingOff => 3,
                Landed::Landing => 4,
            };
            Some(LandedStateResponse { landed_state })
        };
        Ok(self.every(1.0, read).into())
    }

    async fn subscribe_armed(
        &self,
        _: Request<SubscribeArmedRequest>,
    ) -> Answered<Self::SubscribeArmedStream> {
        let read = |sim: &Sim| {
            let is_armed = sim.vehicle.armed();
            Some(ArmedResponse { is_armed })
        };
        Ok(self.every(1.0, read).into())
    }

    async fn subscribe_attitude_euler(
        &self,
        _: Request<SubscribeAttitudeEulerRequest>,
    ) -> Answered<Self::SubscribeAttitudeEulerStream> {
        let read = |sim: &Sim| {
            let attitude_euler = Some(EulerAngle {
                timestamp_us: (sim.vehicle.time() * 1e6) as u64,
                ..degrees(sim.vehicle.body().yaw)
            });
            Some(AttitudeEulerResponse { attitude_euler })
        };
        Ok(self.every(FAST, read).into())
    }

    async fn subscribe_gps_info(
        &self,
        _: Request<SubscribeGpsInfoRequest>,
    ) -> Answered<Self::SubscribeGpsInfoStream> {
        let read = |sim: &Sim| {
            let (num_satellites, fix_type) = if sim.vehicle.health.gps { (12, 3) } else { (0, 1) };
            let gps_info = Some(GpsInfo {
                num_satellites,
                fix_type,
            });
            Some(GpsInfoResponse { gps_info })
        };
        Ok(self.every(1.0, read).into())
    }

    async fn subscribe_battery(
        &self,
        _: Request<SubscribeBatteryRequest>,
    ) -> Answered<Self::SubscribeBatteryStream> {
        let read = |sim: &Sim| {
            let own = (0, sim.vehicle.battery_pct);
            let batteries = std::iter::once(&own).chain(sim.batteries.as_ref()?);
            let message = |(id, pct): &(u32, f64)| BatteryResponse {
                battery: Some(Battery {
                    id: *id,
                    voltage_v: (14.0 + 2.8 * pct / 100.0) as f32,
                    remaining_percent: pct.floor() as f32,
                    time_remaining_s: (pct / sim.vehicle.drain.max(1e-6)) as f32,
                    ..Battery::default()
                }),
            };
            Some(batteries.map(message).collect::<Vec<_>>())
        };
        let each = self.every(2.0, read).flat_map(|told| match told {
            Ok(told) => stream::iter(told.into_iter().map(Ok).collect::<Vec<_>>()),
            Err(status) => stream::iter(vec![Err(status)]),
        });
        let each: Self::SubscribeBatteryStream = Box::pin(each);
        Ok(each.into())
    }

    async fn subscribe_flight_mode(
        &self,
        _: Request<SubscribeFlightModeRequest>,
    ) -> Answered<Self::SubscribeFlightModeStream> {
        let response = |mode: Mode| FlightModeResponse {
            flight_mode: mode_number(mode),
        };
        let read =
            move |sim: &Sim| (sim.mode_reports != ModeReports::Missing).then(|| response(sim.vehicle.mode()));
        let changes = change_stream(self.lock().asked_modes.subscribe(), response);
        let both: Self::SubscribeFlightModeStream = Box::pin(stream::select(self.every(1.0, read), changes));
        Ok(both.into())
    }

    async fn subscribe_health(
        &self,
        _: Request<SubscribeHealthRequest>,
    ) -> Answered<Self::SubscribeHealthStream> {
        let read = |sim: &Sim| {
            let health = sim.vehicle.health;
            sim.tells_health.then(|| HealthResponse {
                health: Some(Health {
                    is_gyrometer_calibration_ok: health.gyro,
                    is_accelerometer_calibration_ok: health.accel,
                    is_magnetometer_calibration_ok: health.mag,
                    is_local_position_ok: health.gps,
                    is_global_position_ok: health.gps,
                    is_home_position_ok: health.home,
                    is_armable: sim.vehicle.armed() || sim.vehicle.armable(),
                }),
            })
        };
        Ok(self.every(1.0, read).into())
    }

    async fn subscribe_status_text(
        &self,
        _: Request<SubscribeStatusTextRequest>,
    ) -> Answered<Self::SubscribeStatusTextStream> {
        let texts = self.lock().texts.subscribe();
        // MAVLink counts severities down, MAVSDK up.
        let make = |(severity, text): (u8, String)| StatusTextResponse {
            status_text: Some(StatusText {
                r#type: 7 - i32::from(severity.min(7)),
                text,
            }),
        };
        Ok(change_stream(texts, make).into())
    }

    async fn subscribe_position_velocity_ned(
        &self,
        _: Request<SubscribePositionVelocityNedRequest>,
    ) -> Answered<Self::SubscribePositionVelocityNedStream> {
        let read = |sim: &Sim| {
            located(sim, || {
                let [north_m, east_m, down_m] = sim.vehicle.believed().map(|value| value as f32);
                let [north_m_s, east_m_s, down_m_s] = sim.vehicle.body().velocity.map(|value| value as f32);
                let position_velocity_ned = Some(PositionVelocityNed {
                    position: Some(PositionNed {
                        north_m,
                        east_m,
                        down_m,
                    }),
                    velocity: Some(VelocityNed {
                        north_m_s,
                        east_m_s,
                        down_m_s,
                    }),
                });
                PositionVelocityNedResponse {
                    position_velocity_ned,
                }
            })
        };
        Ok(self.every(FAST, read).into())
    }

    async fn subscribe_distance_sensor(
        &self,
        _: Request<SubscribeDistanceSensorRequest>,
    ) -> Answered<Self::SubscribeDistanceSensorStream> {
        let read = |sim: &Sim| {
            let body = sim.vehicle.body();
            let world = &sim.vehicle.world;
            let free = |turned: f64| world.obstacle_ahead(body.position, body.yaw + turned);
            let reach = world.camera.obstacle_range_m;
            Some([
                range(free(0.0), reach, 0.0, 0.0),
                range(free(std::f64::consts::PI), reach, 0.0, 180.0),
                range(sim.vehicle.height(), 40.0, -90.0, 0.0),
            ])
        };
        let both = self.every(FAST, read);
        let each = both.flat_map(|pair| match pair {
            Ok(pair) => stream::iter(pair.map(Ok).to_vec()),
            Err(status) => stream::iter(vec![Err(status)]),
        });
        let each: Self::SubscribeDistanceSensorStream = Box::pin(each);
        Ok(each.into())
    }

    async fn set_rate_position(
        &self,
        _: Request<SetRatePositionRequest>,
    ) -> Answered<SetRatePositionResponse> {
        let telemetry_result = accepted();
        Ok(SetRatePositionResponse { telemetry_result }.into())
    }

    async fn set_rate_position_velocity_ned(
        &self,
        _: Request<SetRatePositionVelocityNedRequest>,
    ) -> Answered<SetRatePositionVelocityNedResponse> {
        let telemetry_result = accepted();
        Ok(SetRatePositionVelocityNedResponse { telemetry_result }.into())
    }

    async fn set_rate_attitude_euler(
        &self,
        _: Request<SetRateAttitudeEulerRequest>,
    ) -> Answered<SetRateAttitudeEulerResponse> {
        let telemetry_result = accepted();
        Ok(SetRateAttitudeEulerResponse { telemetry_result }.into())
    }

    async fn set_rate_landed_state(
        &self,
        _: Request<SetRateLandedStateRequest>,
    ) -> Answered<SetRateLandedStateResponse> {
        let telemetry_result = accepted();
        Ok(SetRateLandedStateResponse { telemetry_result }.into())
    }

    async fn set_rate_distance_sensor(
        &self,
        _: Request<SetRateDistanceSensorRequest>,
    ) -> Answered<SetRateDistanceSensorResponse> {
        let telemetry_result = accepted();
        Ok(SetRateDistanceSensorResponse { telemetry_result }.into())
    }
}
