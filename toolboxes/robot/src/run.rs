//! Runs one action of a plan.
//!
//! Owns the way from an action's name and params to the adapter, and back to an output or an error. Read [`run`].

use std::sync::Arc;
use std::time::Instant;

use futures_util::future::BoxFuture;
use ovos_toolbox_sdk::prelude::*;

use crate::adapter::{ActionError, ActionOutput, Control, Right, Sighting};
use crate::conclude::Done;
use crate::recognition;
use crate::resolve::{SPEAKER, resolve, sought};
use crate::robots::Robots;
use crate::step::Step;
use crate::store;
use crate::subsystem::Subsystem;
use crate::unit::Unit;

/// How sure the direction of a voice has to be, from 0 to 1.
const SURE: f64 = 0.3;

/// Every error of an adapter, as callers see it.
#[must_use]
pub fn tool_error(error: ActionError) -> ToolError {
    let kind = match &error {
        ActionError::NotSupported { .. } => "NotSupported",
        ActionError::NotConnected { .. } => "NotConnected",
        ActionError::Cancelled => return ToolError::cancelled(),
        ActionError::Stopped => "EmergencyStop",
        ActionError::OutOfRange { .. } => "ValueError",
        ActionError::Timeout { .. } => "TimeoutError",
        ActionError::Hardware { .. } => "HardwareError",
        _ => "RobotError",
    };
    ToolError::new(kind, error)
}

/// For actions that bear their tool's name: the SDK hands over a value.
///
/// # Errors
/// As [`run`].
///
/// # Cancel safety
/// As [`run`].
pub async fn run_value(context: Context<Robots>, params: Value) -> Result<Value, ToolError> {
    let params = match params {
        Value::Object(params) => params,
        _ => Object::new(),
    };
    Ok(serde_json::to_value(run(context, params).await?)?)
}

/// For stop and reset, which the service carries out itself: only somebody who drives the toolbox directly comes here.
///
/// # Errors
/// Nothing was reset, with the reason.
///
/// # Cancel safety
/// Does not wait.
pub async fn run_whole(context: Context<Robots>, _: Value) -> Result<Value, ToolError> {
    let robots = context.toolbox();
    if context.effect() == Effect::Stop {
        robots.halt_all()?;
        return Ok(json!({"success": true, "message": "Emergency stop activated"}));
    }
    robots.reset_all()?;
    Ok(json!({"success": true, "message": "Emergency stop lifted"}))
}

/// Runs one action.
///
/// # Errors
/// It was not done, and why; nothing moves any more.
///
/// # Cancel safety
/// May be dropped at any await; the halt that follows ends the motion.
pub async fn run(context: Context<Robots>, mut params: Object) -> Result<Done, ToolError> {
    let optional = params.shift_remove("optional").is_some();
    let robot = params.shift_remove("robot");
    let (unit, on) = place(&context, robot.as_ref())?;
    let done = perform(&context, unit, on, params).await;
    match done {
        // What the robot cannot do for now does not take the rest with it; a cancel does.
        Err(error) if optional && !error.is_cancelled() => Ok(Done {
            notes: vec![format!("left out {}: {}", context.action_id(), error.message())],
            left_out: true,
            ..Done::default()
        }),
        done => done,
    }
}

/// Which robot and which part of it: the first subsystem says it.
fn place<'c>(
    context: &'c Context<Robots>,
    robot: Option<&Value>,
) -> Result<(&'c Unit, Subsystem), ToolError> {
    let robots = context.toolbox();
    let Some(first) = context.subsystems().first() else {
        let unit = robots.unit(robot.and_then(Value::as_str))?;
        return Ok((unit, Subsystem::All));
    };
    let (name, part) = match first.split_once('/') {
        Some((name, part)) => (Some(name), part),
        None => (None, first.as_str()),
    };
    Ok((robots.unit(name)?, part.parse()?))
}

async fn perform(
    context: &Context<Robots>,
    unit: &Unit,
    on: Subsystem,
    params: Object,
) -> Result<Done, ToolError> {
    let name = context.action();
    if recognition::TOOLS.contains(&name) {
        return recognition::answer(context, unit, name, params).await;
    }
    let step = Step::from_parts(name, params).map_err(ToolError::bad_args)?;
    match &step {
        Step::SetFlag { enabled, style } => {
            unit.memory().gestures = enabled.then(|| style.clone());
            let data = json!({"enabled": enabled, "style": style});
            return Ok(announced(context, unit, "gesture_while_speaking", data));
        }
        Step::SetSafety {
            enabled,
            sensitivity,
            auto_alert,
        } => {
            let data = json!({"enabled": enabled, "sensitivity": sensitivity, "auto_alert": auto_alert});
            unit.memory().fire_detection = enabled.then(|| data.clone());
            return Ok(announced(context, unit, "fire_detection", data));
        }
        Step::Stop {} if !unit.capabilities().has(Subsystem::Base) => {
            return Ok(Done::default());
        }
        _ => {}
    }
    let seen = find(context, unit, &step).await?;
    let control = Control::new(Arc::new(Rightful {
        context: context.clone(),
    }));
    let output = match &step {
        Step::LoadConfig { name } => store::load(context, unit, name, &control).await?,
        _ => {
            let resolved = resolve(unit, on, &step, seen).map_err(tool_error)?;
            let mut output = unit
                .execute(&resolved.action, &control)
                .await
                .map_err(tool_error)?;
            output.notes.extend(resolved.notes);
            output
        }
    };
    let output = remember(context, unit, &step, output).await?;
    Ok(Done {
        message: output.message,
        data: output.data,
        notes: output.notes,
        left_out: output.along,
    })
}

/// What a step that was done leaves behind.
async fn remember(
    context: &Context<Robots>,
    unit: &Unit,
    step: &Step,
    output: ActionOutput,
) -> Result<ActionOutput, ToolError> {
    match step {
        Step::SetTowMode { towing } => unit.memory().towing = *towing,
        Step::Point { target } if target.trim().parse::<f64>().is_err() => {
            unit.memory()
                .pointed
                .insert(target.to_lowercase(), Instant::now());
        }
        Step::SaveConfig { name, .. } => return store::save(context, unit, name, output).await,
        _ => {}
    }
    Ok(output)
}

fn announced(context: &Context<Robots>, unit: &Unit, kind: &str, data: Value) -> Done {
    let mut event = data.clone();
    event["robot"] = json!(unit.name);
    context.host().event(kind, event);
    let data = match data {
        Value::Object(data) => data,
        _ => Object::new(),
    };
    Done {
        message: format!("{kind} set"),
        data,
        ..Done::default()
    }
}

/// Where the thing is that the step is about.
async fn find(context: &Context<Robots>, unit: &Unit, step: &Step) -> Result<Option<Sighting>, ToolError> {
    let Some(what) = sought(unit, step) else {
        return Ok(None);
    };
    if what == SPEAKER && context.input_ids().contains(&"get_speaker_direction") {
        let heard: Done = context.input("get_speaker_direction")?;
        return speaker(&heard).map(Some);
    }
    if let Some(seen) = unit.adapter.locate(what) {
        return Ok(Some(seen));
    }
    Ok(recognition::locate(context, unit, what).await)
}

fn speaker(heard: &Done) -> Result<Sighting, ToolError> {
    let number = |keys: &[&str]| keys.iter().find_map(|key| heard.data.get(*key)?.as_f64());
    let confidence = number(&["confidence"]).unwrap_or(0.0);
    let bearing = number(&["angle", "direction", "direction_degrees", "bearing"]);
    match bearing {
        Some(bearing) if confidence >= SURE => Ok(Sighting {
            bearing,
            tilt: 0.0,
            distance: 1.0,
        }),
        _ => Err(ToolError::new(
            "RobotError",
            format!("nobody is heard clearly: confidence {confidence:.2}, at least {SURE} is needed"),
        )),
    }
}

/// The SDK's right to command, for adapters.
struct Rightful {
    context: Context<Robots>,
}

impl Right for Rightful {
    fn pass(&self, send: &mut dyn FnMut()) -> bool {
        self.context.command(send).is_ok()
    }

    fn cancelled(&self) -> BoxFuture<'static, ()> {
        Box::pin(self.context.cancelled())
    }

    fn is_cancelled(&self) -> bool {
        self.context.is_cancelled()
    }

    fn is_latched(&self) -> bool {
        self.context.is_latched()
    }

    fn progress(&self, fraction: f64, message: &str) {
        self.context.progress(fraction, message);
    }

    fn label(&self) -> String {
        format!("{}/{}", self.context.call_id(), self.context.action_id())
    }
}
