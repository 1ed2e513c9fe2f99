//! The motion tool: four waves over the subsystems of one or more units, with faults on request.
//!
//! calibrate each subsystem -> move each -> join (the first two together) -> retract each.

use std::sync::atomic::Ordering;
use std::time::Instant;

use ovos_toolbox_sdk::prelude::*;
use ovos_toolbox_sdk::tokio;
use ovos_toolbox_sdk::wire::Outcome;

use crate::Testbed;

/// Assembles something: calibrates, moves, joins and retracts.
#[derive(Deserialize, JsonSchema)]
#[serde(default)]
struct AssembleArgs {
    /// Between two motor commands, in milliseconds.
    step_ms: u64,
    /// Motor commands of each action, after its `start`.
    steps: u32,
    /// How many machines; with more than one, subsystems are called `u1/left_arm` and so on.
    units: u32,
    /// Of left_arm, right_arm, gantry and base.
    subsystems: Vec<String>,
    /// Id of the action that fails at half time, such as `move:left_arm` or `join`.
    fail_at: Option<String>,
    /// Id of the action that never ends by itself.
    hang_at: Option<String>,
    /// Id of the action that panics at half time.
    panic_at: Option<String>,
    /// Actions do not end when they are cancelled. They command nothing after a halt all the same.
    ignore_cancel: bool,
    /// As `ignore_cancel`, and actions keep a processor busy between their commands.
    spin: bool,
    /// Timeout of each action, in milliseconds.
    timeout_ms: Option<u64>,
    /// How far the machine is to turn, in degrees. This and what follows are for clients that count; no motor obeys them.
    deg: Option<f64>,
    /// Where it is to drive.
    direction: Option<String>,
    /// How far it is to drive, in metres.
    distance: Option<f64>,
    /// How fast it is to drive, in metres per second.
    speed: Option<f64>,
    /// How long it is to drive, in seconds.
    duration: Option<f64>,
}

impl Default for AssembleArgs {
    fn default() -> Self {
        Self {
            step_ms: 50,
            steps: 4,
            units: 1,
            subsystems: ["left_arm", "right_arm", "gantry", "base"]
                .map(String::from)
                .to_vec(),
            fail_at: None,
            hang_at: None,
            panic_at: None,
            ignore_cancel: false,
            spin: false,
            timeout_ms: None,
            deg: None,
            direction: None,
            distance: None,
            speed: None,
            duration: None,
        }
    }
}

/// What one action has to do.
#[derive(Serialize, Deserialize)]
struct Motion {
    step_ms: u64,
    steps: u32,
    fault: Option<Fault>,
    ignore_cancel: bool,
    spin: bool,
}

#[derive(Clone, Copy, Serialize, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Fault {
    Fail,
    Hang,
    Panic,
}

#[derive(Serialize, JsonSchema)]
struct MotionOutput {
    commands: u32,
}

#[derive(Serialize, JsonSchema)]
struct AssembleOutput {
    /// Whether everything was done.
    success: bool,
    /// Ids of the actions that completed.
    completed: Vec<String>,
    /// Ids of the actions that did not, with what happened to them.
    failed: Vec<String>,
    /// Ids of the actions that were never started.
    skipped: Vec<String>,
    /// This machine is pretended.
    simulated: bool,
}

fn plan(_: &Testbed, args: AssembleArgs) -> Result<Vec<Action>, ToolError> {
    if args.subsystems.is_empty() {
        return Err(ToolError::bad_args("subsystems: expected at least one"));
    }
    let mut actions = Vec::new();
    for unit in 1..=args.units.max(1) {
        let many = args.units > 1;
        let of_unit = |name: &str| {
            if many {
                format!("u{unit}/{name}")
            } else {
                name.to_string()
            }
        };
        let subsystems: Vec<String> = args.subsystems.iter().map(|name| of_unit(name)).collect();
        let ids = |name: &str| {
            subsystems
                .iter()
                .map(|on| format!("{name}:{on}"))
                .collect::<Vec<_>>()
        };
        let join = if many {
            format!("join:u{unit}")
        } else {
            "join".to_string()
        };
        let mut each = |name: &str, after: &[String]| {
            for (id, on) in ids(name).into_iter().zip(&subsystems) {
                actions.push(action(&args, name, id, vec![on.clone()], after.to_vec()));
            }
        };
        each("calibrate", &[]);
        each("move", &ids("calibrate"));
        let both = subsystems.iter().take(2).cloned().collect();
        actions.push(action(&args, "join", join.clone(), both, ids("move")));
        let mut each = |name: &str, after: &[String]| {
            for (id, on) in ids(name).into_iter().zip(&subsystems) {
                actions.push(action(&args, name, id, vec![on.clone()], after.to_vec()));
            }
        };
        each("retract", &[join]);
    }
    Ok(actions)
}

fn action(
    args: &AssembleArgs,
    name: &str,
    id: String,
    subsystems: Vec<String>,
    after: Vec<String>,
) -> Action {
    let at = |wanted: &Option<String>| wanted.as_ref() == Some(&id);
    let fault = if at(&args.fail_at) {
        Some(Fault::Fail)
    } else if at(&args.hang_at) {
        Some(Fault::Hang)
    } else if at(&args.panic_at) {
        Some(Fault::Panic)
    } else {
        None
    };
    let motion = Motion {
        step_ms: args.step_ms,
        steps: args.steps,
        fault,
        ignore_cancel: args.ignore_cancel,
        spin: args.spin,
    };
    let params = match json!(motion) {
        Value::Object(params) => params,
        _ => Object::new(),
    };
    Action {
        id: Some(id),
        subsystems,
        params,
        dependencies: after,
        timeout_ms: args.timeout_ms,
        ..Action::named(name)
    }
}

async fn run(context: Context<Testbed>, motion: Motion) -> Result<MotionOutput, ToolError> {
    if motion.ignore_cancel || motion.spin {
        // Inside one poll, so that the SDK cannot drop it.
        return tokio::task::block_in_place(|| stubborn(&context, &motion));
    }
    let mut sent = command_all(&context, "start")?;
    for step in 0..motion.steps {
        tokio::time::sleep(Duration::from_millis(motion.step_ms)).await;
        misbehave(&context, &motion, step)?;
        sent += command_all(&context, "step")?;
        context.progress(f64::from(step + 1) / f64::from(motion.steps), "moving");
    }
    if motion.fault == Some(Fault::Hang) {
        std::future::pending::<()>().await;
    }
    sent += command_all(&context, "stop")?;
    Ok(MotionOutput { commands: sent })
}

/// Continues after a cancel; only the loss of the right to command ends it.
fn stubborn(context: &Context<Testbed>, motion: &Motion) -> Result<MotionOutput, ToolError> {
    let mut sent = command_all(context, "start").unwrap_or(0);
    for step in 0..motion.steps {
        let step_takes = Duration::from_millis(motion.step_ms);
        if motion.spin {
            let start = Instant::now();
            while start.elapsed() < step_takes && !context.host().is_closing() {
                std::hint::spin_loop();
            }
        } else {
            std::thread::sleep(step_takes);
        }
        misbehave(context, motion, step)?;
        sent += command_all(context, "step").unwrap_or(0);
    }
    // Bounded, so that a test process can end.
    let end = Instant::now() + Duration::from_secs(30);
    while motion.fault == Some(Fault::Hang) && Instant::now() < end && !context.host().is_closing() {
        std::thread::sleep(Duration::from_millis(10));
    }
    sent += command_all(context, "stop").unwrap_or(0);
    Ok(MotionOutput { commands: sent })
}

fn misbehave(context: &Context<Testbed>, motion: &Motion, step: u32) -> Result<(), ToolError> {
    if step < motion.steps / 2 {
        return Ok(());
    }
    match motion.fault {
        Some(Fault::Fail) => Err(ToolError::new(
            "HardwareError",
            format!("{} was told to fail", context.action_id()),
        )),
        Some(Fault::Panic) => panic!("{} was told to panic", context.action_id()),
        Some(Fault::Hang) | None => Ok(()),
    }
}

fn command_all(context: &Context<Testbed>, kind: &str) -> Result<u32, ToolError> {
    let run = format!("{}/{}", context.call_id(), context.action_id());
    let mut sent = 0;
    for subsystem in context.subsystems() {
        context.command(|| context.toolbox().machine.command(kind, subsystem, &run))??;
        sent += 1;
    }
    Ok(sent)
}

fn conclude(_: &Testbed, _: AssembleArgs, report: Report) -> Result<AssembleOutput, ToolError> {
    let ids = |wanted: &dyn Fn(Outcome) -> bool| {
        report
            .actions
            .iter()
            .filter(|line| wanted(line.outcome))
            .map(|line| line.id.clone())
            .collect::<Vec<_>>()
    };
    let failed = report
        .actions
        .iter()
        .filter(|line| !matches!(line.outcome, Outcome::Completed | Outcome::Skipped));
    Ok(AssembleOutput {
        success: report
            .actions
            .iter()
            .all(|line| line.outcome == Outcome::Completed),
        completed: ids(&|outcome| outcome == Outcome::Completed),
        failed: failed
            .map(|line| format!("{} {}", line.id, line.outcome.as_str()))
            .collect(),
        skipped: ids(&|outcome| outcome == Outcome::Skipped),
        simulated: true,
    })
}

/// Holds the machine still.
#[derive(Deserialize, JsonSchema)]
#[serde(default)]
struct BrakeArgs {
    /// How long, in milliseconds.
    ms: u64,
    /// What to hold.
    subsystems: Vec<String>,
}

impl Default for BrakeArgs {
    fn default() -> Self {
        Self {
            ms: 200,
            subsystems: vec!["all".to_string()],
        }
    }
}

#[derive(Serialize, JsonSchema)]
struct BrakeOutput {
    held_ms: u64,
}

fn plan_brake(_: &Testbed, args: BrakeArgs) -> Result<Vec<Action>, ToolError> {
    let mut params = Object::new();
    params.insert("ms".to_string(), json!(args.ms));
    Ok(vec![Action {
        subsystems: args.subsystems,
        params,
        ..Action::named("brake")
    }])
}

async fn brake(context: Context<Testbed>, args: BrakeArgs) -> Result<BrakeOutput, ToolError> {
    command_all(&context, "stop")?;
    tokio::time::sleep(Duration::from_millis(args.ms)).await;
    Ok(BrakeOutput { held_ms: args.ms })
}

/// Stops the machine at once.
#[derive(Deserialize, JsonSchema)]
struct StopArgs {}

#[derive(Serialize, JsonSchema)]
struct StopOutput {
    stopped: bool,
}

async fn stop(_: Context<Testbed>, _: StopArgs) -> Result<StopOutput, ToolError> {
    Ok(StopOutput { stopped: true })
}

/// Lifts the emergency stop.
#[derive(Deserialize, JsonSchema)]
struct ResetStopArgs {}

#[derive(Serialize, JsonSchema)]
struct ResetStopOutput {
    reset: bool,
}

async fn reset_stop(context: Context<Testbed>, _: ResetStopArgs) -> Result<ResetStopOutput, ToolError> {
    let refused = context.toolbox().refuse_resume.load(Ordering::SeqCst);
    Ok(ResetStopOutput { reset: !refused })
}

pub(crate) fn tools() -> Vec<Tool<Testbed>> {
    vec![
        Tool::planned("assemble", Effect::Motion, plan, conclude).timeout(Duration::from_secs(15)),
        Tool::safe("brake", brake)
            .plan(plan_brake)
            .timeout(Duration::from_secs(60)),
        Tool::stop("stop", stop),
        Tool::resume("reset_stop", reset_stop),
    ]
}

pub(crate) fn actions() -> Vec<ActionHandler<Testbed>> {
    ["calibrate", "move", "join", "retract"]
        .map(|name| ActionHandler::new(name, run))
        .into()
}
