//! The action service: arming, take-off, landing, goto.

use drone::mavsdk::action::action_service_server::ActionService;
use drone::mavsdk::action::*;
use px4_sim::log::Cause;
use px4_sim::params::Param;
use px4_sim::{Ack, Mode, Vehicle};
use tonic::Request;

use super::{Answered, FakeMavsdk, Sim, verdict};

const TIMEOUT: (i32, &str) = (8, "Timeout");
/// mavsdk_server gives a command up after this long, milliseconds: four tries of half a second.
const PATIENCE_MS: u64 = 2000;

impl FakeMavsdk {
    async fn act(
        &self,
        request: &str,
        command: impl FnOnce(&mut Vehicle) -> Ack + Send + 'static,
    ) -> Option<ActionResult> {
        self.delay().await;
        let longer = self.lock().command_delay_s;
        tokio::time::sleep(std::time::Duration::from_secs_f64(longer)).await;
        let step = |sim: &mut Sim| {
            let ack = sim.reachable().then(|| command(&mut sim.vehicle));
            ack.filter(|_| !sim.unacknowledged)
        };
        let (result, text) = match self.last_step(request, step).await {
            Some(ack) => verdict(ack),
            None => {
                tokio::time::sleep(std::time::Duration::from_millis(PATIENCE_MS)).await;
                TIMEOUT
            }
        };
        Some(ActionResult {
            result,
            result_str: text.to_owned(),
        })
    }
}

fn set(vehicle: &mut Vehicle, name: &str, value: f32) -> Ack {
    match vehicle.params.set(name, Param::Float(value)) {
        Ok(()) => Ack::Accepted,
        Err(_) => Ack::Failed,
    }
}

#[tonic::async_trait]
impl ActionService for FakeMavsdk {
    async fn arm(&self, _: Request<ArmRequest>) -> Answered<ArmResponse> {
        let arm = |vehicle: &mut Vehicle| {
            if matches!(vehicle.mode(), Mode::Mission | Mode::Return) {
                vehicle.set_mode(Mode::Hold, Cause::Command);
            }
            vehicle.arm()
        };
        let action_result = self.act("arm", arm).await;
        Ok(ArmResponse { action_result }.into())
    }

    async fn disarm(&self, _: Request<DisarmRequest>) -> Answered<DisarmResponse> {
        let action_result = self
            .act("disarm", |vehicle| vehicle.disarm(false, Cause::Command))
            .await;
        Ok(DisarmResponse { action_result }.into())
    }

    async fn takeoff(&self, _: Request<TakeoffRequest>) -> Answered<TakeoffResponse> {
        let action_result = self.act("takeoff", Vehicle::takeoff).await;
        Ok(TakeoffResponse { action_result }.into())
    }

    async fn land(&self, _: Request<LandRequest>) -> Answered<LandResponse> {
        let action_result = self.act("land", Vehicle::land).await;
        Ok(LandResponse { action_result }.into())
    }

    async fn return_to_launch(&self, _: Request<ReturnToLaunchRequest>) -> Answered<ReturnToLaunchResponse> {
        let action_result = self
            .act("return", |vehicle| vehicle.set_mode(Mode::Return, Cause::Command))
            .await;
        Ok(ReturnToLaunchResponse { action_result }.into())
    }

    async fn goto_location(&self, request: Request<GotoLocationRequest>) -> Answered<GotoLocationResponse> {
        let to = request.into_inner();
        let error = self.lock().height_error_m;
        let hold = |vehicle: &mut Vehicle| {
            if vehicle.mode() != Mode::Hold {
                vehicle.set_mode(Mode::Hold, Cause::Command);
            }
        };
        if self.lock().held_back.is_some_and(|(name, _)| name == "goto") {
            hold(&mut self.lock().vehicle);
        }
        let goto = move |vehicle: &mut Vehicle| {
            hold(vehicle);
            let yaw = to.yaw_deg.is_finite().then(|| f64::from(to.yaw_deg).to_radians());
            let alt = to
                .absolute_altitude_m
                .is_finite()
                .then(|| f64::from(to.absolute_altitude_m) - error);
            vehicle.reposition(Some((to.latitude_deg, to.longitude_deg)), alt, yaw)
        };
        let action_result = self.act("goto", goto).await;
        Ok(GotoLocationResponse { action_result }.into())
    }

    async fn hold(&self, _: Request<HoldRequest>) -> Answered<HoldResponse> {
        let action_result = self
            .act("hold", |vehicle| vehicle.set_mode(Mode::Hold, Cause::Command))
            .await;
        Ok(HoldResponse { action_result }.into())
    }

    async fn set_takeoff_altitude(
        &self,
        request: Request<SetTakeoffAltitudeRequest>,
    ) -> Answered<SetTakeoffAltitudeResponse> {
        let altitude = request.into_inner().altitude;
        let action_result = self
            .act("takeoff altitude", move |vehicle| {
                set(vehicle, "MIS_TAKEOFF_ALT", altitude)
            })
            .await;
        Ok(SetTakeoffAltitudeResponse { action_result }.into())
    }

    async fn set_return_to_launch_altitude(
        &self,
        request: Request<SetReturnToLaunchAltitudeRequest>,
    ) -> Answered<SetReturnToLaunchAltitudeResponse> {
        let altitude = request.into_inner().relative_altitude_m;
        let action_result = self
            .act("return altitude", move |vehicle| {
                set(vehicle, "RTL_RETURN_ALT", altitude)
            })
            .await;
        Ok(SetReturnToLaunchAltitudeResponse { action_result }.into())
    }

    async fn set_current_speed(
        &self,
        _: Request<SetCurrentSpeedRequest>,
    ) -> Answered<SetCurrentSpeedResponse> {
        let action_result = self.act("speed", |_| Ack::Accepted).await;
        Ok(SetCurrentSpeedResponse { action_result }.into())
    }
}
