//! All vehicles, and the one function that runs a tool on one of them.
//!
//! Owns the vehicles and the run log. [`Fleet::call`] does the same as a tool's handler, with or without a service:
//! select the vehicle, apply the guards, run, answer. Read [`Fleet`].

use std::sync::Arc;
use std::time::Duration;

use ovos_toolbox_sdk::UnitError;
use ovos_toolbox_sdk::prelude::*;
use tonic::transport::Channel;

use crate::answer::{self, Reply};
use crate::clock::Clock;
use crate::config::{Config, VehicleConfig};
use crate::guard::{self, Caller, Facts, Refusal};
use crate::reserve::keep_watch;
use crate::run_log::RunLog;
use crate::tools::{self, Entry, Job, VEHICLE};
use crate::vehicle::{BrakeOutcome, Gate, Link, Outside, OverrideReport, Reach, Vehicle};

/// The vehicles of one toolbox.
pub struct Fleet {
    pub(crate) config: Arc<Config>,
    vehicles: Units<Arc<Vehicle>>,
    log: RunLog,
    clock: Clock,
}

/// A toolbox without a bus: events are dropped.
#[derive(Default)]
struct DetachedHost(Caller);

impl Outside for DetachedHost {
    fn event(&self, _: &str, _: Value) {}
    fn latched(&self, _: &str) {}
}

impl Gate for DetachedHost {
    fn command(&self, send: &mut dyn FnMut()) -> bool {
        send();
        true
    }
    fn progress(&self, _: f64, _: &str) {}
    fn caller(&self) -> Caller {
        self.0
    }
}

/// A call that has no answer yet. If it is dropped without one, it writes `dropped` into the run log.
struct OpenCall<'a> {
    fleet: &'a Fleet,
    vehicle: &'a Vehicle,
    id: &'a str,
    tool: &'a str,
    answered: bool,
}

impl Drop for OpenCall<'_> {
    fn drop(&mut self) {
        if self.answered {
            return;
        }
        self.fleet.log.write(
            "dropped",
            || json!({"call_id": self.id, "tool": self.tool, "telemetry": self.fleet.snapshot(self.vehicle)}),
        );
    }
}

/// Gives the answer of a call that a takeover has ended the takeover's final name: a pilot or a failsafe.
async fn named(vehicle: &Vehicle, reply: Reply) -> Reply {
    if reply.code != Some("pilot_override") {
        return reply;
    }
    vehicle.takeover_named().await;
    match vehicle.overridden() {
        Some(taken) if taken.failsafe => Reply {
            code: Some(taken.code()),
            msg: taken.how,
            ..reply
        },
        _ => reply,
    }
}

impl Fleet {
    /// Starts connecting to the configured vehicles.
    ///
    /// # Errors
    /// The configuration is invalid, or the run log cannot be created.
    pub(crate) fn open(config: Config, outside: Arc<dyn Outside>) -> Result<Self, ToolError> {
        let config = config.checked()?;
        let clock = Clock::new(config.speed());
        let fleet = Self::build(config, clock, outside)?;
        for vehicle in fleet.vehicles() {
            vehicle.start(Reach::Configured);
            keep_watch(vehicle);
        }
        Ok(fleet)
    }

    /// What models see otherwise in a tool's arguments.
    pub(crate) fn for_models(&self, entry: &Entry) -> Object {
        let vehicles: Vec<&str> = self.vehicles.iter().map(|vehicle| vehicle.id.as_str()).collect();
        let limits = &self.config.flight_limits;
        tools::shown::for_models(entry, &vehicles, limits)
    }

    /// A fleet of one vehicle on the given channel, on tokio's clock alone: for tests that pause the clock and
    /// implement MAVSDK's services themselves. Scenes are stamped with [`Fleet::unix`].
    ///
    /// # Errors
    /// The configuration is invalid.
    pub fn over(channel: Channel, config: Value) -> Result<Self, ToolError> {
        Self::over_each(vec![channel], config)
    }

    /// Like [`Fleet::over`], with one channel for each configured vehicle.
    ///
    /// # Errors
    /// The configuration is invalid.
    pub fn over_each(channels: Vec<Channel>, config: Value) -> Result<Self, ToolError> {
        let mut config: Config = serde_json::from_value(config)?;
        config.upload_fence.get_or_insert(true);
        let config = config.checked()?;
        let clock = Clock::new(1.0).virtual_from(1_700_000_000.0);
        let fleet = Self::build(config, clock, Arc::new(DetachedHost::default()))?;
        for (vehicle, channel) in fleet.vehicles().iter().zip(channels) {
            vehicle.start(Reach::Given(channel));
            keep_watch(vehicle);
        }
        Ok(fleet)
    }

    fn build(config: Config, clock: Clock, outside: Arc<dyn Outside>) -> Result<Self, ToolError> {
        let log = match &config.run_log {
            None => RunLog::default(),
            Some(folder) => RunLog::open(folder, clock)
                .map_err(|error| ToolError::msg(format!("run_log {}: {error}", folder.display())))?,
        };
        log.write(
            "open",
            || json!({"version": env!("CARGO_PKG_VERSION"), "config": &config}),
        );
        let config = Arc::new(config);
        let reported = OverrideReport::default();
        let make = |own: VehicleConfig| {
            Vehicle::new(
                Arc::clone(&config),
                own,
                clock,
                log.clone(),
                Arc::clone(&outside),
                Arc::clone(&reported),
            )
        };
        let vehicles = config.vehicles().into_iter().map(make).collect();
        Ok(Self {
            config,
            vehicles: Units::new(VEHICLE, vehicles, |vehicle| &vehicle.id),
            log,
            clock,
        })
    }

    /// The time of day that scenes carry, in seconds since 1970.
    #[must_use]
    pub fn unix(&self) -> f64 {
        self.clock.unix()
    }

    pub(crate) fn vehicles(&self) -> &[Arc<Vehicle>] {
        &self.vehicles
    }

    /// Selects the vehicle of a call.
    pub(crate) fn vehicle(&self, effect: Effect, args: &Value) -> Result<&Arc<Vehicle>, Refusal> {
        self.vehicles.of_call(effect, args).map_err(|error| Refusal {
            code: "bad_args",
            msg: match error {
                UnitError::Missing { known, .. } => format!("vehicle not given: expected one of {known}"),
                UnitError::Unknown { given, known, .. } => {
                    format!("vehicle {given}: expected one of {known}")
                }
                other => other.to_string(),
            },
        })
    }

    /// Whether the vehicle, or every vehicle, is recognised as a simulation.
    pub(crate) fn simulated(&self, vehicle: Option<&Vehicle>) -> bool {
        match vehicle {
            Some(vehicle) => vehicle.is_simulated(),
            None => self.vehicles.iter().all(|vehicle| vehicle.is_simulated()),
        }
    }

    /// Takes a scene for a vehicle. A scene that names no vehicle belongs to the only one.
    pub fn see(&self, mut scene: Value) {
        let vehicle = match &mut scene {
            Value::Object(scene) => self.vehicles.take(scene),
            _ => self.vehicles.find(None),
        };
        let Ok(vehicle) = vehicle else {
            tracing::warn!("ignored vision data for a vehicle that is not configured in drone.vehicles");
            return;
        };
        if let Err(error) = vehicle.see(scene) {
            tracing::warn!(vehicle = vehicle.id, %error, "ignored invalid vision data");
        }
    }

    /// Runs a tool for an operator without a way to cancel it, and returns the service's answer.
    ///
    /// # Cancel safety
    /// When dropped, nothing more is sent.
    pub async fn call(&self, tool: &str, args: Value) -> Value {
        let operator = Caller {
            operator: true,
            latched: false,
        };
        self.call_as(operator, tool, args).await
    }

    /// Like [`Fleet::call`], for another caller.
    ///
    /// # Cancel safety
    /// As [`Fleet::call`].
    pub async fn call_as(&self, caller: Caller, tool: &str, args: Value) -> Value {
        let Some(entry) = tools::entry(tool) else {
            return Reply::failed("bad_args", format!("no tool {tool}")).json(None, self.simulated(None));
        };
        let mut last = Value::Null;
        for (entry, args) in tools::steps(entry, args) {
            last = self
                .run(entry, args, "direct".to_string(), Arc::new(DetachedHost(caller)))
                .await;
            if last["ok"] != true {
                break;
            }
        }
        last
    }

    /// Brings every vehicle to rest, like a stop from the service, and waits for the acknowledgements.
    ///
    /// # Cancel safety
    /// The commands are sent before the first yield.
    pub async fn halt(&self, emergency: bool) -> Result<(), String> {
        let braked: Vec<BrakeOutcome> = self
            .vehicles
            .iter()
            .map(|vehicle| vehicle.brake(emergency, "halt"))
            .collect();
        let mut result = Ok(());
        for one in braked {
            let one = match one {
                BrakeOutcome::Nothing(_) | BrakeOutcome::Foreign(_) => Ok(()),
                BrakeOutcome::Unreachable(why) => Err(why),
                BrakeOutcome::Sent(_, acknowledgement) => acknowledgement
                    .await
                    .unwrap_or_else(|_| Err("the toolbox is closing".to_string())),
            };
            result = result.and(one);
        }
        result
    }

    /// Lifts the latch of every vehicle.
    ///
    /// # Errors
    /// A pilot is still flying.
    pub fn resume(&self) -> Result<(), String> {
        self.vehicles.iter().try_for_each(|vehicle| vehicle.resume())
    }

    /// Ends the tasks of every vehicle and waits for them.
    ///
    /// # Cancel safety
    /// When dropped, the tasks end anyway.
    pub async fn close(&self) {
        futures_util::future::join_all(self.vehicles().iter().map(|vehicle| vehicle.close())).await;
        self.log.write("close", || json!({}));
        self.log.close();
    }

    /// Runs a tool's handler.
    pub(crate) async fn run(
        &self,
        entry: &'static Entry,
        args: Value,
        id: String,
        gate: Arc<dyn Gate>,
    ) -> Value {
        let row = entry.row;
        let vehicle = match self.vehicle(row.effect, &args) {
            Ok(vehicle) => vehicle,
            Err(refusal) => return entry.complete(refusal.into()).json(None, self.simulated(None)),
        };
        self.log.write(
            "call",
            || json!({"call_id": id, "tool": row.tool, "args": args, "telemetry": self.snapshot(vehicle)}),
        );
        // A cancelled or stopped call is dropped at an await below; [`Fleet::answered_elsewhere`] records its answer.
        let mut unanswered = OpenCall {
            fleet: self,
            vehicle,
            id: &id,
            tool: row.tool,
            answered: false,
        };
        let attended = vehicle.attend();
        let patience = self.config.connect_timeout_ms.unwrap_or(8000).min(60_000);
        let patience = Duration::from_millis(patience);
        if attended.woken {
            vehicle.wait_awake(patience).await;
        } else if !row.needs.is_empty() && !matches!(vehicle.link(), Link::Up) {
            vehicle.wait_link(patience).await;
        } else if row.tool == "vehicle_health" || row.tool == "battery_status" {
            vehicle.wait_link(Duration::from_millis(800)).await;
        }
        let arms = tools::arms(entry, &args);
        let reply = self
            .judge_and_run(entry, args, id.clone(), vehicle, Arc::clone(&gate))
            .await;
        if arms && !reply.ok {
            // The call has failed, and it armed the vehicle only for its own take-off.
            tools::disarm_standing(&vehicle.begin(id.clone(), Effect::Safe, gate)).await;
        }
        let reply = entry.complete(reply);
        let answer = reply.json(
            Some(answer::state(&vehicle.id, &vehicle.facts())),
            self.simulated(Some(vehicle)),
        );
        unanswered.answered = true;
        self.log.write("answer", || {
            json!({"call_id": id, "tool": row.tool, "answer": answer, "telemetry": self.snapshot(vehicle)})
        });
        answer
    }

    /// Records the answer of a call that [`Fleet::run`] did not answer: one that was cancelled, timed out, stopped or
    /// never started, and the service's own brake.
    pub(crate) fn answered_elsewhere(&self, entry: &Entry, args: &Value, answer: &Value) {
        let (tool, vehicle) = (entry.row.tool, self.vehicle(entry.row.effect, args));
        self.log.write("answer", || {
            let telemetry = vehicle.map_or(Value::Null, |vehicle| self.snapshot(vehicle));
            json!({"tool": tool, "args": args, "answer": answer, "telemetry": telemetry})
        });
    }

    /// Records a stop by the service, or the end of such a stop.
    pub(crate) fn record(&self, kind: &str, fields: impl FnOnce() -> Value) {
        self.log.write(kind, fields);
    }

    async fn judge_and_run(
        &self,
        entry: &'static Entry,
        args: Value,
        id: String,
        vehicle: &Arc<Vehicle>,
        gate: Arc<dyn Gate>,
    ) -> Reply {
        let args = match entry.known_arguments(args) {
            Ok(args) => args,
            Err(refusal) => return refusal.into(),
        };
        if let Err(refusal) = (entry.readable)(&args) {
            return refusal.into();
        }
        // Asks for the mode first, so that the guards see a takeover that happened after the last report.
        let report = if entry.row.commands() {
            vehicle.await_mode(entry.row.effect).await
        } else {
            Ok(())
        };
        let facts = Facts {
            caller: gate.caller(),
            ..vehicle.facts()
        };
        // A missing program explains more than the guard that fails because of it.
        if let Link::Missing(why) = vehicle.link()
            && !entry.row.needs.is_empty()
        {
            return Reply::failed("not_installed", why);
        }
        let judged = guard::require(entry.row.needs, &facts, &self.config.flight_limits).and(report);
        self.log.write("guard", || {
            json!({"call_id": id, "tool": entry.row.tool, "verdict": match &judged {
                Ok(()) => json!("allowed"),
                Err(refusal) => json!({"refused": refusal.code, "why": refusal.msg}),
            }})
        });
        if let Err(refusal) = judged {
            let why = match vehicle.link() {
                Link::Connecting(why) | Link::Absent(why) | Link::Lost(why)
                    if refusal.code == "link_down" =>
                {
                    format!("{}: {why}", refusal.msg)
                }
                _ => refusal.msg,
            };
            return Reply::failed(refusal.code, why);
        }
        let call = vehicle.begin(id, entry.row.effect, gate);
        let reply = (entry.run)(Job {
            call,
            row: entry.row,
            args,
        })
        .await;
        named(vehicle, reply).await
    }

    /// The vehicle's state for a line of the run log.
    fn snapshot(&self, vehicle: &Vehicle) -> Value {
        let facts = vehicle.facts();
        json!({
            "vehicle": vehicle.id,
            "link_ok": facts.link_ok,
            "mode": facts.mode,
            "armed": facts.armed,
            "in_air": facts.in_air,
            "ned": facts.pose.map(|pose| pose.ned),
            "velocity": facts.pose.map(|pose| pose.velocity),
            "yaw_deg": facts.pose.map(|pose| pose.yaw_deg),
            "alt_m": facts.pose.map(|pose| pose.alt_m),
            "battery_pct": facts.battery_pct,
            "free_ahead_m": facts.free_ahead_m.ok(),
            "detections": vehicle.scene.detections().ok(),
            "rotation_accum_deg": facts.rotation_accum_deg,
            "forward_accum_m": facts.forward_accum_m,
            "status_text": facts.last_text,
        })
    }
}
