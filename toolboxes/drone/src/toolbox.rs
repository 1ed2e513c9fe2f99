//! The toolbox as the service sees it: plan, halt, and the conclusion of every call.
//!
//! Owns only the [`Fleet`]. Every call ends in a result, even when it is cancelled or stopped, because models read
//! results rather than errors. Read [`Drone`].

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ovos_toolbox_sdk::prelude::*;
use ovos_toolbox_sdk::wire::{CallOutcome, Outcome};

use crate::answer::{self, Reply};
use crate::config::Config;
use crate::fleet::Fleet;
use crate::guard::{Caller, Mode};
use crate::sentences;
use crate::tools::{self, Entry};
use crate::vehicle::{BrakeOutcome, Gate, Outside, RestState, Vehicle, stop_from_nothing};

/// The bus topic of scenes.
const SCENE: &str = "drone.vision.scene";
/// How long a halt waits for the vehicle's acknowledgement; the service allows 50 ms.
const ACKNOWLEDGE: Duration = Duration::from_millis(40);
/// How long the conclusion of a stop watches whether the vehicle comes to rest; the service allows 1 s.
const REST: Duration = Duration::from_millis(850);

/// The toolbox's instance.
pub struct Drone {
    fleet: Fleet,
}

struct Bus(Host);

impl Outside for Bus {
    fn event(&self, kind: &str, data: Value) {
        self.0.event(kind, data);
    }

    fn latched(&self, reason: &str) {
        self.0.latched(reason);
    }
}

impl Gate for Context<Drone> {
    fn command(&self, send: &mut dyn FnMut()) -> bool {
        Self::command(self, send).is_ok()
    }

    fn progress(&self, fraction: f64, message: &str) {
        Self::progress(self, fraction, message);
    }

    fn caller(&self) -> Caller {
        Caller {
            operator: self.is_operator(),
            latched: self.is_latched(),
        }
    }

    fn show(&self, content: Content) {
        self.show_item(content);
    }
}

impl Toolbox for Drone {
    type Config = Config;

    fn manifest() -> Manifest {
        Manifest {
            exclusive: true,
            simulated_by_default: true,
            subscribes: vec![SCENE.to_string()],
            guide: include_str!("../GUIDE.md").to_string(),
            ..manifest!("drone")
        }
    }

    async fn open(host: Host, config: Config) -> Result<Self, ToolError> {
        let fleet = Fleet::open(config, Arc::new(Bus(host)))?;
        Ok(Self { fleet })
    }

    fn tools(&self) -> Vec<Tool<Self>> {
        tools::entries()
            .map(|entry| {
                tool(entry)
                    .for_models(self.fleet.for_models(entry))
                    .agent_end(self.at_agent_end(entry))
            })
            .collect()
    }

    fn actions(&self) -> Vec<ActionHandler<Self>> {
        // `takeoff` with `arm: true` arms as its first step.
        vec![ActionHandler::new("arm", step)]
    }

    fn sentences(&self, tool: &str, args: &Object) -> BTreeMap<String, String> {
        sentences::of(tool, args)
    }

    fn halt(&self, halt: &Halt) -> Result<(), ToolError> {
        self.fleet.record(
            "halt",
            || json!({"subsystems": halt.subsystems, "emergency": halt.emergency}),
        );
        let named = |vehicle: &&Arc<Vehicle>| halt.includes(&format!("{}/flight", vehicle.id));
        let braked: Vec<BrakeOutcome> = self
            .fleet
            .vehicles()
            .iter()
            .filter(named)
            .map(|vehicle| vehicle.brake(halt.emergency, "halt"))
            .collect();
        let until = Instant::now() + ACKNOWLEDGE;
        let mut result = Ok(());
        for one in braked {
            match one {
                BrakeOutcome::Nothing(_) | BrakeOutcome::Foreign(_) => {}
                BrakeOutcome::Unreachable(why) => result = Err(ToolError::msg(why)),
                // Sent; the brake itself watches for a late acknowledgement.
                BrakeOutcome::Sent(_, acknowledgement) => {
                    result = result.and(acknowledged(acknowledgement, until))
                }
            }
        }
        result
    }

    fn resume(&self) -> Result<(), ToolError> {
        let lifted = self.fleet.resume();
        self.fleet
            .record("resume", || json!({"refused": lifted.as_ref().err()}));
        lifted.map_err(ToolError::msg)
    }

    fn message(&self, topic: &str, data: Value) {
        if topic == SCENE {
            self.fleet.see(data);
        }
    }

    fn may_close(&self) -> Result<(), ToolError> {
        let flying = self.fleet.vehicles().iter().find(|vehicle| {
            let telemetry = vehicle.telemetry();
            telemetry.link_ok() && telemetry.in_air == Some(true)
        });
        flying.map_or(Ok(()), |vehicle| {
            Err(ToolError::busy(format!("{} is in flight", vehicle.id)))
        })
    }

    fn safe_stop(config: Config) -> Result<(), ToolError> {
        let runtime = ovos_toolbox_sdk::tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime
            .block_on(rest_from_nothing(config))
            .map_err(ToolError::msg)
    }

    async fn close(&self) {
        self.fleet.close().await;
    }
}

impl Drone {
    /// The calls of a tool that an agent makes when its run has ended: one for each vehicle.
    fn at_agent_end(&self, entry: &Entry) -> Vec<Object> {
        if self.fleet.config.agent_end.tool() != Some(entry.row.tool) {
            return Vec::new();
        }
        match self.fleet.vehicles() {
            [_] => vec![Object::new()],
            several => several
                .iter()
                .map(|vehicle| Object::from_iter([(tools::VEHICLE.to_string(), json!(vehicle.id))]))
                .collect(),
        }
    }
}

/// Waits for an acknowledgement within the service's time limit. A missing one is no error.
fn acknowledged(
    mut acknowledgement: ovos_toolbox_sdk::tokio::sync::oneshot::Receiver<Result<(), String>>,
    until: Instant,
) -> Result<(), ToolError> {
    loop {
        match acknowledgement.try_recv() {
            Ok(answer) => return answer.map_err(ToolError::msg),
            Err(ovos_toolbox_sdk::tokio::sync::oneshot::error::TryRecvError::Closed) => return Ok(()),
            Err(ovos_toolbox_sdk::tokio::sync::oneshot::error::TryRecvError::Empty) => {}
        }
        if Instant::now() >= until {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Stops every vehicle from a fresh process, through its mavsdk_server or a newly started one.
async fn rest_from_nothing(config: Config) -> Result<(), String> {
    // Our simulator ended with the process that started it.
    if config.backend == crate::config::Backend::Px4Sim {
        return Ok(());
    }
    // In parallel: all of them share one time limit.
    let stops = config.vehicles().into_iter().map(|own| {
        let config = &config;
        async move {
            let one = match &own.address {
                Some(address) => stop_from_nothing(address, &own.id, config).await,
                None => crate::vehicle::stop_through_own_server(config, &own).await,
            };
            one.map_err(|why| format!("{}: {why}", own.id))
        }
    });
    let stopped = futures_util::future::join_all(stops).await;
    let failed: Vec<String> = stopped.into_iter().filter_map(Result::err).collect();
    if failed.is_empty() {
        Ok(())
    } else {
        Err(failed.join("; "))
    }
}

/// Runs a tool under the call's right to command.
async fn answer(context: Context<Drone>, entry: &'static Entry, args: Value) -> Value {
    let gate: Arc<dyn Gate> = Arc::new(context.clone());
    let id = context.call_id().to_string();
    context.toolbox().fleet.run(entry, args, id, gate).await
}

/// Runs one step of a call with the tool of that name. Unless its answer is `ok`, the call ends with that answer.
async fn step(context: Context<Drone>, args: Value) -> Result<Value, ToolError> {
    let entry = tools::entry(context.action())
        .ok_or_else(|| ToolError::msg(format!("{} is not a tool of the drone", context.action())))?;
    let answer = answer(context, entry, args).await;
    if answer["ok"] == true {
        return Ok(answer);
    }
    let msg = answer["msg"].as_str().unwrap_or_default().to_owned();
    Err(ToolError::msg(msg).with_data(answer))
}

/// The definition of one tool.
fn tool(entry: &'static Entry) -> Tool<Drone> {
    let row = entry.row;
    let run =
        move |context: Context<Drone>, args: Value| async move { Ok(answer(context, entry, args).await) };
    Tool::dynamic(
        row.tool,
        row.effect,
        entry.argument_schema.clone(),
        entry.output_schema.clone(),
        run,
    )
    .category(row.category)
    .timeout(row.timeout())
    .plan(move |toolbox: &Drone, args: Object| Ok(plan(toolbox, entry, args)))
    .conclude(move |toolbox: &Drone, args: Value, report: Report| {
        Ok(conclude(toolbox, entry, &args, &report))
    })
}

/// Plans an action for each step, named after the tool that does it.
fn plan(toolbox: &Drone, entry: &'static Entry, args: Object) -> Vec<Action> {
    let mut actions: Vec<Action> = Vec::new();
    for (step, args) in tools::steps(entry, Value::Object(args)) {
        let before = actions.iter().map(|action| action.name.clone()).collect();
        actions.push(Action {
            dependencies: before,
            timeout_ms: u64::try_from(step.row.timeout().as_millis()).ok(),
            ..action(toolbox, step, args)
        });
    }
    actions
}

/// An action on the subsystem of the named vehicle.
fn action(toolbox: &Drone, entry: &Entry, args: Value) -> Action {
    let vehicle = toolbox.fleet.vehicle(entry.row.effect, &args);
    let part = match entry.row.effect {
        Effect::Motion | Effect::Safe | Effect::Stop => Some("flight"),
        _ if entry.row.category == "camera" => Some("camera"),
        _ => None,
    };
    // A call for an unknown vehicle uses no subsystem: it moves nothing, and its answer reports the error.
    let subsystems = match (vehicle, part) {
        (Ok(vehicle), Some(part)) => vec![format!("{}/{part}", vehicle.id)],
        _ => Vec::new(),
    };
    let params = match args {
        Value::Object(args) => args,
        _ => Object::new(),
    };
    Action {
        subsystems,
        params,
        ..Action::named(entry.row.tool)
    }
}

/// The result of a call, even of one that never started.
fn conclude(toolbox: &Drone, entry: &Entry, args: &Value, report: &Report) -> Value {
    if entry.row.effect == Effect::Stop {
        let answer = stopped(toolbox, entry);
        toolbox.fleet.answered_elsewhere(entry, args, &answer);
        return answer;
    }
    // The result is that of the last step, or of the first that did not complete.
    let action = report
        .actions
        .iter()
        .find(|action| action.outcome != Outcome::Completed)
        .or(report.actions.last());
    if let Some(output) = action
        .filter(|action| action.outcome == Outcome::Completed)
        .and_then(|action| action.output.clone())
    {
        return output;
    }
    let error = action.and_then(|action| action.error.as_ref());
    if let Some(answer) = error.and_then(|error| error.data.clone())
        && answer.get("ok").is_some()
    {
        return answer;
    }
    let bad_args = error.is_some_and(|error| error.kind == "ValueError");
    let vehicle = toolbox
        .fleet
        .vehicle(entry.row.effect, args)
        .ok()
        .map(Arc::as_ref);
    let overridden = vehicle.and_then(|vehicle| vehicle.overridden());
    let (code, msg) = match (overridden, report.outcome) {
        (Some(taken), _) if entry.row.effect == Effect::Motion => (taken.code(), taken.how),
        (_, CallOutcome::TimedOut) => (
            "timeout",
            "the time was up; the vehicle was told to hold".to_string(),
        ),
        (_, CallOutcome::Cancelled) => ("cancelled", "the call was cancelled".to_string()),
        (_, CallOutcome::Stopped) => ("stopped", "an emergency stop ended the call".to_string()),
        _ if bad_args => (
            "bad_args",
            error.map(|error| error.message.clone()).unwrap_or_default(),
        ),
        _ => (
            "failed",
            error.map_or_else(|| "the call failed".to_string(), ToString::to_string),
        ),
    };
    let state = vehicle.map(|vehicle| answer::state(&vehicle.id, &vehicle.facts()));
    let answer = entry
        .complete(Reply::failed(code, msg))
        .json(state, toolbox.fleet.simulated(vehicle));
    toolbox.fleet.answered_elsewhere(entry, args, &answer);
    answer
}

/// The result of the brake: whether telemetry shows that every vehicle comes to rest. It answers as soon as they are seen
/// to slow down; the event `at_rest` of each vehicle follows.
fn stopped(toolbox: &Drone, entry: &Entry) -> Value {
    let until = Instant::now() + REST;
    let mut seen = Stopped::read(&toolbox.fleet);
    while !seen.is_confirmed() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(10));
        seen = Stopped::read(&toolbox.fleet);
    }
    let state = toolbox
        .fleet
        .vehicles()
        .first()
        .map(|vehicle| answer::state(&vehicle.id, &vehicle.facts()));
    entry
        .complete(seen.reply())
        .json(state, toolbox.fleet.simulated(None))
}

/// What telemetry shows of all vehicles after a stop.
#[derive(Default)]
struct Stopped {
    /// Those that hold and slow down, and the longest time until one of them is at rest, seconds.
    braking: Vec<String>,
    rest_in_s: f64,
    moving: Vec<String>,
    foreign: Vec<String>,
    /// The code of the last foreign one.
    code: &'static str,
}

impl Stopped {
    fn read(fleet: &Fleet) -> Self {
        let mut seen = Self::default();
        for vehicle in fleet.vehicles() {
            match vehicle.resting() {
                RestState::Yes => {}
                RestState::Braking(seconds) => {
                    seen.braking.push(vehicle.id.clone());
                    seen.rest_in_s = seen.rest_in_s.max(seconds);
                }
                RestState::No => {
                    let facts = vehicle.facts();
                    let speed = facts.pose.map(|pose| format!(" at {:.1} m/s", pose.speed()));
                    let mode = facts.mode.map_or("an unknown mode", Mode::name);
                    seen.moving
                        .push(format!("{} ({mode}{})", vehicle.id, speed.unwrap_or_default()));
                }
                RestState::Foreign(taken) => {
                    seen.code = taken.code();
                    seen.foreign.push(format!("{} ({})", vehicle.id, taken.how));
                }
            }
        }
        seen
    }

    fn is_confirmed(&self) -> bool {
        self.moving.is_empty() && self.foreign.is_empty()
    }

    fn reply(&self) -> Reply {
        if !self.moving.is_empty() {
            return Reply::failed(
                "unconfirmed",
                format!(
                    "the brake was sent, but {} has not slowed down yet (a vehicle that was speeding up may take a second). An \
                     event at_rest or not_at_rest follows",
                    self.moving.join(", ")
                ),
            );
        }
        if !self.foreign.is_empty() {
            return Reply::failed(
                self.code,
                format!(
                    "another party took control of the vehicle, and it is not holding: {}",
                    self.foreign.join("; ")
                ),
            );
        }
        if self.braking.is_empty() {
            return Reply::done(
                "every vehicle holds or stands; motion is refused until an operator runs `ovos-tools resume`",
            );
        }
        Reply::done(format!(
            "braking: {} at rest in about {:.0} s, and the event at_rest follows; motion is refused until an operator runs `ovos-tools \
             resume`",
            self.braking.join(", "),
            self.rest_in_s.ceil().max(1.0)
        ))
    }
}
