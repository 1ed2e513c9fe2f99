//! PX4's arming checks as the server reports them, and the heartbeats of all components.

use drone::mavsdk::events::events_service_server::EventsService;
use drone::mavsdk::events::*;
use drone::mavsdk::mavlink_direct::mavlink_direct_service_server::MavlinkDirectService;
use drone::mavsdk::mavlink_direct::*;
use futures_util::StreamExt;
use ovos_toolbox_sdk::serde_json::{self, Value};
use px4_sim::{Quirk, vehicle::Check};
use tonic::{Request, Status};

use super::{Answered, FakeMavsdk, ModeReports, Sim, Told};

/// The server's report from the vehicle's events.
fn report(sim: &Sim) -> HealthAndArmingCheckReport {
    let failing = sim.vehicle.failing_checks();
    let problem = |check: &&'static Check| HealthAndArmingCheckProblem {
        message: check.sentence(),
        log_level: check.severity.into(),
        ..HealthAndArmingCheckProblem::default()
    };
    let here = failing.iter().filter(|check| check.concerns(sim.vehicle.mode()));
    HealthAndArmingCheckReport {
        current_mode_intention: Some(HealthAndArmingCheckMode {
            mode_name: "Hold".to_owned(),
            can_arm_or_run: sim.vehicle.armable(),
            problems: here.map(problem).collect(),
        }),
        all_problems: failing.iter().map(problem).collect(),
    }
}

#[tonic::async_trait]
impl EventsService for FakeMavsdk {
    type SubscribeHealthAndArmingChecksStream = Told<HealthAndArmingChecksResponse>;

    async fn subscribe_health_and_arming_checks(
        &self,
        _: Request<SubscribeHealthAndArmingChecksRequest>,
    ) -> Answered<Self::SubscribeHealthAndArmingChecksStream> {
        let read = |sim: &Sim| {
            let has_texts = !sim.vehicle.quirks.has(Quirk::NoEventMetadata);
            has_texts.then(|| HealthAndArmingChecksResponse {
                report: Some(report(sim)),
            })
        };
        Ok(self.every(1.0, read).into())
    }
}

#[tonic::async_trait]
impl MavlinkDirectService for FakeMavsdk {
    type SubscribeMessageStream = Told<MessageResponse>;

    /// Only the request for a heartbeat of the autopilot: MAV_CMD_REQUEST_MESSAGE, message 0.
    async fn send_message(&self, request: Request<SendMessageRequest>) -> Answered<SendMessageResponse> {
        let message = request.into_inner().message.unwrap_or_default();
        let fields: Value = serde_json::from_str(&message.fields_json).unwrap_or_default();
        let asked =
            ["target_system", "target_component", "command", "param1"].map(|key| fields[key].as_f64());
        if message.message_name != "COMMAND_LONG" || asked != [1.0, 1.0, 512.0, 0.0].map(Some) {
            return Err(Status::invalid_argument(
                "only requests for a heartbeat are faked",
            ));
        }
        self.delay().await;
        let sim = self.lock();
        if sim.mode_reports == ModeReports::Asked && !sim.silent {
            // There may be no receiver.
            drop(sim.asked_modes.send(sim.vehicle.mode()));
        }
        drop(sim);
        let mavlink_direct_result = Some(MavlinkDirectResult {
            result: 1,
            result_str: "Success".to_owned(),
        });
        Ok(SendMessageResponse {
            mavlink_direct_result,
        }
        .into())
    }

    async fn subscribe_message(
        &self,
        request: Request<SubscribeMessageRequest>,
    ) -> Answered<Self::SubscribeMessageStream> {
        if request.into_inner().message_name != "HEARTBEAT" {
            return Err(Status::invalid_argument("only heartbeats are faked"));
        }
        let heartbeat = |component_id: u32, kind: u32| MessageResponse {
            message: Some(MavlinkMessage {
                message_name: "HEARTBEAT".to_owned(),
                system_id: 1,
                component_id,
                fields_json: format!("{{\"message_name\":\"HEARTBEAT\",\"type\":{kind}}}"),
            }),
        };
        let read = move |sim: &Sim| {
            let camera = sim.vehicle.payload.present.then(|| heartbeat(100, 30));
            Some([Some(heartbeat(1, 2)), camera])
        };
        let both = self.every(1.0, read);
        let each = both.flat_map(|both| {
            let both = both.unwrap_or_default();
            futures_util::stream::iter(both.into_iter().flatten().map(Ok))
        });
        let each: Self::SubscribeMessageStream = Box::pin(each);
        Ok(each.into())
    }
}
