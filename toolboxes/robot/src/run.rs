//! Runs one action of a plan.
//!
//! Owns how an action's name and params reach the adapter, and how its output or error returns. Read [`run`].

use std::sync::Arc;
use std::time::Instant;

use futures_util::future::BoxFuture;
use ovos_toolbox_sdk::prelude::*;

use crate::adapter::{ActionOutput, Control, Right, Sighting};
use crate::aim::aim;
use crate::conclude::ActionResult;
use crate::error::tool_error;
use crate::eyes;
use crate::geometry::End;
use crate::journey;
use crate::places::{HandPoint, Remembered};
use crate::reach;
use crate::recognition;
use crate::resolve::{self, SPEAKER, resolve, sought};
use crate::robots::Robots;
use crate::spot::Spot;
use crate::step::{CLOSE_HITCH, Step, Where};
use crate::store;
use crate::subsystem::Subsystem;
use crate::unit::Unit;

/// How sure the direction of a voice has to be, from 0 to 1.
const SURE: f64 = 0.3;

/// Runs an action that has the name of its tool: the SDK passes the params of such an action as a value.
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

/// Runs stop and reset. The service carries them out itself, so only a program that drives the toolbox directly calls
/// this.
///
/// # Errors
/// A robot could not be stopped or reset; the error says why.
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
/// The action was not done, and nothing moves any more; the error says why.
///
/// # Cancel safety
/// May be dropped at any await; the halt that follows ends the motion.
pub async fn run(context: Context<Robots>, mut params: Object) -> Result<ActionResult, ToolError> {
    let optional = params.shift_remove("optional").is_some();
    let robot = params.shift_remove("robot");
    let (unit, on) = place(&context, robot.as_ref())?;
    // What else the call does goes on, and a base that may still drive is no success of it.
    let stands = context.action() == "stop";
    let done = perform(&context, unit, on, params).await;
    match done {
        // The failure of an optional action does not end the call; a cancel does.
        Err(error) if optional && !error.is_cancelled() => Ok(ActionResult {
            notes: vec![format!("left out {}: {}", context.action_id(), error.message())],
            left_out: true,
            trouble: stands.then(|| error.message().to_owned()),
            ..ActionResult::default()
        }),
        done => done,
    }
}

/// The robot and its part, from the first subsystem.
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
) -> Result<ActionResult, ToolError> {
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
        Step::Look { camera } => return eyes::look(context, unit, camera).await,
        Step::Stop {} if !unit.capabilities().has(Subsystem::Base) => {
            return Ok(ActionResult::default());
        }
        _ => {}
    }
    if let Some(done) = remembered(context, unit, on, &step).await {
        return done;
    }
    let trouble = check_held(context, unit, on, &step)?;
    if let Step::SetTowMode { towing } = step {
        unit.memory().towing = towing;
        let message = if towing { "towing" } else { "not towing" };
        return Ok(ActionResult::from(
            ActionOutput::new(message).with("towing", towing),
        ));
    }
    let seen = find(context, unit, &step).await?;
    let control = Control::new(Arc::new(Rightful {
        context: context.clone(),
    }));
    // The action holds both arms. The arm on the person's side points.
    let nearer = matches!(step, Step::Point { nearer: true, .. });
    let on = match seen {
        Some(seen) if nearer => unit.nearer_arm(seen.bearing),
        _ => on,
    };
    let aimed = aim(context, unit, on, &step, &control).await?;
    let backup = match step.writes_calibration() {
        true => Some(store::backup(context, unit, on, &control).await?),
        false => None,
    };
    let mut output = match (&step, &aimed) {
        (step, Some(aimed)) => aimed.reach(unit, on, step, &control).await?,
        (Step::LoadConfig { name, write, .. }, None) => {
            let done = store::load(context, unit, (name, *write), &control).await;
            done.map_err(|error| with_backup(error, backup.as_ref()))?
        }
        (Step::GoToPlace { place }, None) if !unit.capabilities().services.navigates => {
            let to = resolve::spot(unit, place).map_err(tool_error)?;
            journey::travel(unit, &to, &control).await.map_err(tool_error)?
        }
        (Step::MoveToPosition(Where::Point { point, speed, grasp }), None) => {
            let end = if *grasp { End::Grasp } else { End::Tip };
            let brought = reach::bring(unit, on, (*point, end), *speed, &step, &control).await;
            brought.map_err(tool_error)?
        }
        _ => {
            let resolved = resolve(unit, on, &step, seen).map_err(tool_error)?;
            let done = unit.execute(&resolved.action, &control).await;
            let done = done.map_err(|error| with_backup(tool_error(error), backup.as_ref()))?;
            let mut output = resolved.remarks.on(done);
            if matches!(step, Step::Grasp { .. }) && !output.data.contains_key("holding") {
                output.trouble = Some(format!(
                    "{} cannot tell whether {on} holds anything: look before you rely on it",
                    unit.name
                ));
            }
            output
        }
    };
    if let Some((name, path)) = &backup {
        output = output
            .with("backup", path.clone())
            .with("restore", format!("load_config name={name} write=true"));
    }
    let mut output = remember(context, unit, &step, output).await?;
    output.trouble = output.trouble.or(trouble);
    if nearer {
        let home = Step::MoveToPose {
            pose: "home".to_string(),
            speed: 0.5,
        };
        let lowered = resolve(unit, on, &home, None).map_err(tool_error)?;
        let lowered = unit
            .execute(&lowered.action, &control)
            .await
            .map_err(tool_error)?;
        output.notes.extend(lowered.notes);
        output = output.with("arm", on.to_string());
    }
    Ok(output.into())
}

/// Does what a step does with the places that the robot remembers; `None` for another step.
async fn remembered(
    context: &Context<Robots>,
    unit: &Unit,
    on: Subsystem,
    step: &Step,
) -> Option<Result<ActionResult, ToolError>> {
    let done = match step {
        Step::RememberPlace { place } => remember_place(context, unit, on, place).await,
        Step::ForgetPlace { place } => {
            let place = place.clone();
            let gone = unit.change_places(move |places| places.forget(&place)).await;
            gone.map_err(refused)
                .map(|gone| ActionOutput::new(format!("forgot {}", gone.name)).with("position", gone.shown()))
        }
        Step::ListPlaces {} => listed(unit),
        _ => return None,
    };
    Some(done.map(ActionResult::from))
}

fn refused(why: String) -> ToolError {
    ToolError::new("RobotError", why)
}

async fn remember_place(
    context: &Context<Robots>,
    unit: &Unit,
    on: Subsystem,
    place: &str,
) -> Result<ActionOutput, ToolError> {
    let control = Control::new(Arc::new(Rightful {
        context: context.clone(),
    }));
    let found = if on.is_arm() {
        let at = reach::here(unit, on, &control).await.map_err(tool_error)?;
        Remembered::of_hand(place, HandPoint::new(on, at, unit.body(on)))
    } else {
        // A base that was halted or pushed measures where it is when it makes sure that it stands.
        let stands = resolve(unit, Subsystem::Base, &Step::Stop {}, None).map_err(tool_error)?;
        unit.execute(&stands.action, &control).await.map_err(tool_error)?;
        Remembered::of_base(place, unit.here().map_err(tool_error)?)
    };
    let output = ActionOutput::new(format!("remembered {place}")).with("position", found.shown());
    let before = unit.change_places(move |places| places.remember(found)).await;
    Ok(match before.map_err(refused)? {
        Some(before) => output
            .with("replaced", before.shown())
            .note(format!("{} was another place before", before.name)),
        None => output,
    })
}

fn listed(unit: &Unit) -> Result<ActionOutput, ToolError> {
    let here = unit.here().ok();
    let places = unit.places();
    let shown = places.all().map_err(refused)?.map(|place| {
        let mut shown = place.shown();
        shown["place"] = json!(place.name);
        let reachable = match (&place.spot, &place.hand, &here) {
            (Some(spot), _, Some(here)) if here.frame == spot.frame => Ok(()),
            (Some(spot), _, Some(here)) => Err(format!(
                "it was remembered in the frame {}, and the robot is in the frame {} now",
                spot.frame, here.frame
            )),
            (Some(_), _, None) => Err("where the robot is now is not known".to_owned()),
            (None, Some(hand), _) => hand.check(unit.body(hand.arm).as_ref()),
            (None, None, _) => Err("the place has no position: forget it and remember it again".to_owned()),
        };
        shown["reachable"] = json!(reachable.is_ok());
        if let Err(why) = reachable {
            shown["reason"] = json!(why);
        }
        shown
    });
    let shown: Vec<Value> = shown.collect();
    let position = here.as_ref().map_or(Value::Null, Spot::shown);
    Ok(ActionOutput::new("the places")
        .with("places", shown)
        .with("position", position))
}

/// Refuses a step that needs something in the hand or the hitch where there is nothing; returns what is wrong
/// with a success where the robot cannot tell.
fn check_held(
    context: &Context<Robots>,
    unit: &Unit,
    on: Subsystem,
    step: &Step,
) -> Result<Option<String>, ToolError> {
    match step {
        Step::Lower { .. } => match unit.adapter.holds(on) {
            Some(true) => Ok(None),
            Some(false) => Err(ToolError::new(
                "RobotError",
                format!("{on} holds nothing that could be put down"),
            )),
            None => Ok(Some(format!(
                "{} cannot tell whether {on} held anything: look before you rely on it",
                unit.name
            ))),
        },
        Step::SetTowMode { towing: true } if context.input_ids().contains(&CLOSE_HITCH) => {
            let closed: ActionResult = context.input(CLOSE_HITCH)?;
            match closed.data.get("holding") {
                Some(Value::Null | Value::Bool(false)) => Err(ToolError::new(
                    "RobotError",
                    "the hitch holds nothing, because it closed all the way: no cart is attached",
                )),
                _ => Ok(None),
            }
        }
        _ => Ok(None),
    }
}

/// Names the file with the old settings in an error that may leave some of them changed.
fn with_backup(error: ToolError, backup: Option<&(String, String)>) -> ToolError {
    match backup {
        Some((name, path)) if !error.is_cancelled() => ToolError::new(
            error.kind(),
            format!(
                "{}; what the motors kept before is in {path}, load_config name={name} write=true restores it",
                error.message()
            ),
        ),
        _ => error,
    }
}

/// Remembers what later calls need to know about a step that was done.
async fn remember(
    context: &Context<Robots>,
    unit: &Unit,
    step: &Step,
    mut output: ActionOutput,
) -> Result<ActionOutput, ToolError> {
    match step {
        Step::HitchStatus {} => output = output.with("towing", unit.memory().towing),
        Step::Point { target, .. } if target.trim().parse::<f64>().is_err() => {
            unit.memory()
                .pointed
                .insert(target.to_lowercase(), Instant::now());
        }
        Step::SaveConfig { name, .. } => return store::save(context, unit, name, output).await,
        _ => {}
    }
    Ok(output)
}

fn announced(context: &Context<Robots>, unit: &Unit, kind: &str, data: Value) -> ActionResult {
    let mut event = data.clone();
    event["robot"] = json!(unit.name);
    context.host().event(kind, event);
    let data = match data {
        Value::Object(data) => data,
        _ => Object::new(),
    };
    ActionResult {
        message: format!("{kind} set"),
        data,
        ..ActionResult::default()
    }
}

/// The place of the person or thing that the step names.
async fn find(context: &Context<Robots>, unit: &Unit, step: &Step) -> Result<Option<Sighting>, ToolError> {
    let Some(what) = sought(unit, step) else {
        return Ok(None);
    };
    if what == SPEAKER && context.input_ids().contains(&"get_speaker_direction") {
        let direction: ActionResult = context.input("get_speaker_direction")?;
        return speaker(&direction).map(Some);
    }
    if let Some(seen) = unit.adapter.locate(what) {
        return Ok(Some(seen));
    }
    Ok(recognition::locate(context, unit, what, None).await)
}

fn speaker(direction: &ActionResult) -> Result<Sighting, ToolError> {
    let number = |keys: &[&str]| keys.iter().find_map(|key| direction.data.get(*key)?.as_f64());
    let confidence = number(&["confidence"]).unwrap_or(0.0);
    match number(&[recognition::BEARING]) {
        Some(bearing) if confidence >= SURE => Ok(Sighting {
            bearing: -bearing,
            tilt: 0.0,
            distance: 1.0,
            at: None,
        }),
        _ => Err(ToolError::new(
            "RobotError",
            format!("no voice is heard clearly: confidence {confidence:.2}, at least {SURE} is needed"),
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
