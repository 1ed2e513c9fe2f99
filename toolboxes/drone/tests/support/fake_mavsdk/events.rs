//! PX4's arming checks as the server reports them, and the heartbeats of all components.

use drone::mavsdk::events::events_service_server::EventsService;
use drone::mavsdk::events::*;
use drone::mavsdk::mavlink_direct::mavlink_direct_service_server::MavlinkDirectService;
use drone::mavsdk::mavlink_direct::*;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use ovos_toolbox_sdk::serde_json::{self, Value};
use px4_sim::log::Cause;
use px4_sim::{Mode, Quirk, vehicle::checks::Check};
use tonic::{Request, Status};

use super::{Answered, FakeMavsdk, MODES_S, ModeReports, Sim, Told};

/// Interval at which PX4 publishes an unchanged status, seconds.
const PUBLISHED_S: f64 = 0.5;

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

impl FakeMavsdk {
    /// The vehicle's mode and intention, at the interval that was asked for.
    fn modes(&self) -> Told<MessageResponse> {
        let (sim, clock) = (self.clone(), tokio::time::interval(Duration::from_millis(10)));
        // PX4 sends it when its status was published again: at a change, and twice a second.
        let start = (clock, 0.0, f64::NEG_INFINITY, None);
        Box::pin(stream::unfold(
            start,
            move |(mut clock, mut due, mut sent, mut last)| {
                let sim = sim.clone();
                async move {
                    loop {
                        clock.tick().await;
                        let sim = sim.lock();
                        let now = sim.vehicle.time();
                        let Some(every) = sim.modes_every_s.filter(|_| !sim.silent && now >= due) else {
                            continue;
                        };
                        let present = (sim.vehicle.mode(), sim.vehicle.intended());
                        if last == Some(present) && now - sent < PUBLISHED_S {
                            continue;
                        }
                        (due, sent, last) = (now + every, now, Some(present));
                        let (mode, intended) = present;
                        let [mode, intended] = [mode, intended].map(Mode::custom_mode);
                        let message = MavlinkMessage {
                            message_name: "CURRENT_MODE".to_owned(),
                            system_id: 1,
                            component_id: 1,
                            fields_json: format!(
                                "{{\"custom_mode\":{mode},\"intended_custom_mode\":{intended}}}"
                            ),
                        };
                        let response = MessageResponse {
                            message: Some(message),
                        };
                        drop(sim);
                        return Some((Ok(response), (clock, due, sent, last)));
                    }
                }
            },
        ))
    }
}

#[tonic::async_trait]
impl MavlinkDirectService for FakeMavsdk {
    type SubscribeMessageStream = Told<MessageResponse>;

    /// Three commands to the autopilot: MAV_CMD_REQUEST_MESSAGE for a heartbeat, MAV_CMD_SET_MESSAGE_INTERVAL for its mode,
    /// and MAV_CMD_DO_SET_MODE.
    async fn send_message(&self, request: Request<SendMessageRequest>) -> Answered<SendMessageResponse> {
        let message = request.into_inner().message.unwrap_or_default();
        let fields: Value = serde_json::from_str(&message.fields_json).unwrap_or_default();
        let number = |key: &str| fields[key].as_f64().unwrap_or(f64::NAN) as i64;
        let to = ["target_system", "target_component"].map(number);
        let numbers = ["command", "param1"].map(number);
        if message.message_name != "COMMAND_LONG"
            || to != [1, 1]
            || !matches!(numbers, [512, 0] | [511, 436] | [176, _])
        {
            return Err(Status::invalid_argument("this message is not faked"));
        }
        self.delay().await;
        let mut sim = self.lock();
        match numbers {
            _ if sim.silent => {}
            [512, _] if sim.mode_reports == ModeReports::Asked => {
                // There may be no receiver.
                drop(sim.asked_modes.send(sim.vehicle.mode()));
            }
            [511, _] => {
                let seconds = fields["param2"].as_f64().unwrap_or_default() / 1e6;
                let interval = if seconds > 0.0 { seconds } else { MODES_S };
                sim.modes_every_s = sim.modes_every_s.map(|_| interval);
            }
            [176, _] => {
                let mode = Mode::from_numbers(number("param2") as u8, number("param3") as u8);
                let mode = mode.ok_or_else(|| Status::invalid_argument("no such mode"))?;
                sim.vehicle.set_mode(mode, Cause::Command);
            }
            _ => {}
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
        match request.into_inner().message_name.as_str() {
            "HEARTBEAT" => {}
            "CURRENT_MODE" => return Ok(self.modes().into()),
            _ => return Err(Status::invalid_argument("this message is not faked")),
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
            let kind = sim.vehicle.params.int("MAV_TYPE").cast_unsigned();
            Some([Some(heartbeat(1, kind)), camera])
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
