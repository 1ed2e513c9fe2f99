//! The in-process MAVSDK of the tests behaves like the vehicle model it wraps.
use std::time::Duration;

use drone::mavsdk::action::action_service_client::ActionServiceClient;
use drone::mavsdk::action::{ArmRequest, SetTakeoffAltitudeRequest, TakeoffRequest};
use drone::mavsdk::info::GetIdentificationRequest;
use drone::mavsdk::info::info_service_client::InfoServiceClient;
use drone::mavsdk::offboard::offboard_service_client::OffboardServiceClient;
use drone::mavsdk::offboard::{SetVelocityBodyRequest, StartRequest, VelocityBodyYawspeed};
use drone::mavsdk::telemetry::SubscribePositionRequest;
use drone::mavsdk::telemetry::telemetry_service_client::TelemetryServiceClient;
use px4_sim::{Mode, Vehicle};

use crate::fake_mavsdk::FakeMavsdk;

#[tokio::test(start_paused = true)]
async fn a_flight_takes_no_time() {
    let began = std::time::Instant::now();
    let fake = FakeMavsdk::start(Vehicle::default());
    let channel = fake.channel();
    let identity = InfoServiceClient::new(channel.clone())
        .get_identification(GetIdentificationRequest {})
        .await
        .unwrap()
        .into_inner();
    assert_eq!(
        identity.identification.unwrap().legacy_uid,
        px4_sim::link::SITL_UID
    );

    let mut action = ActionServiceClient::new(channel.clone());
    let early = action.arm(ArmRequest {}).await.unwrap().into_inner();
    assert_eq!(early.action_result.unwrap().result, 5, "not while it boots");
    tokio::time::sleep(Duration::from_secs(5)).await;
    let armed = action.arm(ArmRequest {}).await.unwrap().into_inner();
    assert_eq!(armed.action_result.unwrap().result, 1);
    action
        .set_takeoff_altitude(SetTakeoffAltitudeRequest { altitude: 5.0 })
        .await
        .unwrap();
    action.takeoff(TakeoffRequest {}).await.unwrap();
    let mut positions = TelemetryServiceClient::new(channel.clone())
        .subscribe_position(SubscribePositionRequest {})
        .await
        .unwrap()
        .into_inner();
    loop {
        let report = positions.message().await.unwrap().unwrap().position.unwrap();
        if report.relative_altitude_m > 4.5 {
            break;
        }
        assert!(fake.lock().vehicle.time() < 60.0, "it never took off");
    }

    let mut offboard = OffboardServiceClient::new(channel);
    let none = offboard.start(StartRequest {}).await.unwrap().into_inner();
    assert_eq!(none.offboard_result.unwrap().result, 7, "no set point yet");
    let velocity = VelocityBodyYawspeed {
        forward_m_s: 1.0,
        ..VelocityBodyYawspeed::default()
    };
    let request = SetVelocityBodyRequest {
        velocity_body_yawspeed: Some(velocity),
    };
    offboard.set_velocity_body(request).await.unwrap();
    offboard.start(StartRequest {}).await.unwrap();
    drop(offboard);
    // No client sends anything any more, and the vehicle flies on: the server repeats the last setpoint.
    tokio::time::sleep(Duration::from_secs(60)).await;
    let sim = fake.lock();
    assert_eq!(sim.vehicle.mode(), Mode::Offboard);
    assert!(sim.vehicle.body().position[0] > 50.0, "{:?}", sim.vehicle.body());
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
}
