//! Setpoints, which the server repeats.

use drone::mavsdk::offboard::offboard_service_server::OffboardService;
use drone::mavsdk::offboard::*;
use px4_sim::log::Cause;
use px4_sim::vehicle::Setpoint;
use px4_sim::{Ack, Mode};
use tonic::{Request, Status};

use super::{Answered, FakeMavsdk, Sim};

fn result(result: i32, text: &str) -> Option<OffboardResult> {
    Some(OffboardResult {
        result,
        result_str: text.to_owned(),
    })
}

impl Sim {
    fn set(&mut self, setpoint: Setpoint) -> Option<OffboardResult> {
        self.setpoint = Some(setpoint);
        self.repeat();
        result(1, "Success")
    }

    fn start_offboard(&mut self) -> Option<OffboardResult> {
        if self.setpoint.is_none() {
            return result(7, "No Setpoint Set");
        }
        self.started = self.vehicle.time();
        let ack = self.vehicle.set_mode(Mode::Offboard, Cause::Command);
        match ack {
            Ack::Accepted => result(1, "Success"),
            _ => result(5, "Command Denied"),
        }
    }
}

#[tonic::async_trait]
impl OffboardService for FakeMavsdk {
    async fn start(&self, _: Request<StartRequest>) -> Answered<StartResponse> {
        let step = |sim: &mut Sim| sim.reachable().then(|| sim.start_offboard());
        let offboard_result = match self.last_step("offboard", step).await {
            Some(done) => done,
            None => {
                tokio::time::sleep(std::time::Duration::from_secs(2)).await;
                result(6, "Timeout")
            }
        };
        Ok(StartResponse { offboard_result }.into())
    }

    async fn stop(&self, _: Request<StopRequest>) -> Answered<StopResponse> {
        let offboard_result = {
            let mut sim = self.lock();
            sim.setpoint = None;
            if sim.reachable() {
                sim.vehicle.set_mode(Mode::Hold, Cause::Command);
            }
            result(1, "Success")
        };
        Ok(StopResponse { offboard_result }.into())
    }

    async fn is_active(&self, _: Request<IsActiveRequest>) -> Answered<IsActiveResponse> {
        let is_active = self.lock().setpoint.is_some();
        Ok(IsActiveResponse { is_active }.into())
    }

    async fn set_position_ned(
        &self,
        request: Request<SetPositionNedRequest>,
    ) -> Answered<SetPositionNedResponse> {
        let to = request
            .into_inner()
            .position_ned_yaw
            .ok_or_else(|| Status::invalid_argument("no position"))?;
        let offboard_result = self.lock().set(Setpoint::Position {
            place: [to.north_m.into(), to.east_m.into(), to.down_m.into()],
            velocity: None,
            yaw: Some(f64::from(to.yaw_deg).to_radians()),
        });
        Ok(SetPositionNedResponse { offboard_result }.into())
    }

    async fn set_velocity_body(
        &self,
        request: Request<SetVelocityBodyRequest>,
    ) -> Answered<SetVelocityBodyResponse> {
        let to = request
            .into_inner()
            .velocity_body_yawspeed
            .ok_or_else(|| Status::invalid_argument("no velocity"))?;
        let offboard_result = self.lock().set(Setpoint::BodyVelocity {
            velocity: [to.forward_m_s.into(), to.right_m_s.into(), to.down_m_s.into()],
            yaw_rate: f64::from(to.yawspeed_deg_s).to_radians(),
        });
        Ok(SetVelocityBodyResponse { offboard_result }.into())
    }
}
