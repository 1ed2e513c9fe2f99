//! Arms and head: wave, move_arm, look_at, nod, go_to_pose.

use ovos_toolbox_sdk::argument_schema;
use ovos_toolbox_sdk::prelude::*;

use super::arguments::{Arms, Point, Target, half, range, range_of, without_point, word, words};
use super::listing::{Listing, Planned, any_arm, arm_or_head, head};
use crate::adapter::ActionError;
use crate::error::tool_error;
use crate::graph::{Graph, Node, on};
use crate::limits::check_positions;
use crate::model::{Intensity, Kind, Rounds};
use crate::resolve::{farthest_seconds, lift_seconds, routine_seconds};
use crate::step::{LiftStep, Step, Where};
use crate::subsystem::Subsystem;
use crate::unit::Unit;

pub(super) fn list(listing: &mut Listing<'_>) {
    listing.add("wave", Effect::Motion, any_arm, wave);
    let mut arguments = argument_schema::<MoveArm>();
    if listing.reaches() {
        arguments["required"] = json!(["arm"]);
    } else {
        arguments = without_point(arguments);
    }
    let arguments = (arguments, json!({"speed": null}));
    listing.add_with("move_arm", Effect::Motion, any_arm, move_arm, arguments);
    let for_models = json!({"target": {"type": "string"}, "tilt_degrees": null});
    let arguments = argument_schema::<LookAt>();
    listing.add_with("look_at", Effect::Motion, head, look_at, (arguments, for_models));
    let arguments = (argument_schema::<Nod>(), json!({"intensity": null}));
    listing.add_with("nod", Effect::Motion, head, nod, arguments);
    let mut arguments = argument_schema::<GoToPose>();
    arguments["properties"]["pose"]["enum"] = json!(listing.poses());
    let arguments = (arguments, json!({}));
    listing.add_with("go_to_pose", Effect::Motion, arm_or_head, go_to_pose, arguments);
}

words!(
    /// How to wave.
    WaveStyle, Friendly: Friendly "friendly", Excited "excited", Royal "royal", Shy "shy"
);
words!(
    /// What a nod says.
    NodType, Yes: Yes "yes", No "no", Maybe "maybe"
);
words!(
    /// How large a nod is.
    NodIntensity, Normal: Subtle "subtle", Normal "normal", Emphatic "emphatic"
);

/// Wave with the robot's arm, to greet or say goodbye.
#[derive(Deserialize, JsonSchema)]
struct Wave {
    /// Which arm.
    #[serde(default)]
    arm: Arms,
    /// How to wave.
    #[serde(default)]
    style: WaveStyle,
}

fn wave(unit: &Unit, args: Wave) -> Planned<'_> {
    let style = args.style.as_str();
    let wave = |arm| {
        let step = Step::Wave {
            style: style.to_string(),
        };
        on(arm, 10.0, step).lasting(routine_seconds(
            unit,
            Kind::Wave,
            style,
            arm,
            Rounds::One(Intensity::NORMAL),
        ))
    };
    let (able, unable): (Vec<_>, Vec<_>) = args
        .arm
        .each()
        .into_iter()
        .partition(|arm| unit.capabilities().waves(*arm));
    if let ([], [arm, ..]) = (able.as_slice(), unable.as_slice()) {
        let what = format!("waving with {arm} (its built-in wave moves the other arm)");
        return Err(tool_error(unit.lacks(what)));
    }
    let graph = unable.iter().fold(Graph::new(unit), |graph, arm| {
        graph.note(format!(
            "{arm} did not wave: {}'s built-in wave moves one arm",
            unit.name
        ))
    });
    Ok(graph.wave(able.into_iter().map(wave)))
}

/// Move the robot's arm to a pose or to joint angles, and keep it there.
#[derive(Deserialize, JsonSchema)]
struct MoveArm {
    /// Which arm.
    arm: Arms,
    /// A pose of go_to_pose, or joint values in degrees from the shoulder: [0, -45, 90, 45, 0, 0].
    #[schemars(required)]
    position: Option<Position>,
    /// Part of the full speed.
    #[serde(default = "half")]
    #[schemars(range(min = 0.1, max = 1.0))]
    speed: f64,
    #[serde(flatten)]
    at: Point,
}

/// Angles also come as text: a model that fills in a string writes "[0, -45]".
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
enum Position {
    Text(String),
    Angles(#[schemars(length(max = 64))] Vec<f64>),
}

fn move_arm(unit: &Unit, args: MoveArm) -> Planned<'_> {
    let speed = range("speed", args.speed, 0.1, 1.0)?;
    let arms = args.arm.each();
    let (angles, pose) = match (args.position, args.at.point()?) {
        (Some(_), Some(_)) => {
            return Err(ToolError::bad_args(
                "position, x: give either position, or x, y and z",
            ));
        }
        (None, None) => {
            return Err(ToolError::bad_args(
                "position: expected a position, or x, y and z where the arm can be sent to points",
            ));
        }
        (None, Some(at)) => return to_point(unit, &arms, (at, false), speed),
        (Some(Position::Angles(angles)), None) => (Some(angles), String::new()),
        (Some(Position::Text(text)), None) => (angles(&text)?, text.trim().to_string()),
    };
    // A place that was remembered for the hand, unless a pose has its name.
    if let [arm] = arms[..]
        && angles.is_none()
        && unit.model.pose_of(&pose, arm).is_none()
        && let Some(at) = hand_place(unit, &pose, arm)?
    {
        return to_point(unit, &arms, (at, true), speed);
    }
    match &angles {
        // Both arms are checked now, so that neither sets out before the other is refused.
        Some(positions) => {
            for arm in &arms {
                check_positions(&unit.name, unit.capabilities(), *arm, positions).map_err(refused)?;
            }
        }
        None => known_pose(unit, &pose, &arms)?,
    }
    let step = || match &angles {
        Some(positions) => Step::MoveToPosition(Where::Angles {
            positions: positions.clone(),
            speed,
        }),
        None => Step::MoveToPose {
            pose: pose.clone(),
            speed,
        },
    };
    Ok(Graph::new(unit).wave(
        arms.into_iter()
            .map(|arm| on(arm, 15.0, step()).lasting(farthest_seconds(unit, arm, speed))),
    ))
}

fn hand_place(unit: &Unit, name: &str, arm: Subsystem) -> Result<Option<[f64; 3]>, ToolError> {
    let body = unit.body(arm);
    let found = unit.places().hand(name, (arm, body.as_ref()));
    found.map_err(|why| tool_error(ActionError::Refused(why)))
}

/// To a point in the frame of an arm's base, with the tip, or with what is between the fingers.
fn to_point<'u>(
    unit: &'u Unit,
    arms: &[Subsystem],
    (point, grasp): ([f64; 3], bool),
    speed: f64,
) -> Planned<'u> {
    let [arm] = arms[..] else {
        return Err(ToolError::bad_args(
            "arm: x, y and z are in the frame of one arm: give left or right",
        ));
    };
    if unit.capabilities().has(arm) && !unit.capabilities().reaches(arm) {
        return Err(tool_error(unit.lacks(format!(
            "x, y, z with {arm}: the robot's file has no parts.{arm}.geometry"
        ))));
    }
    let step = Step::MoveToPosition(Where::Point { point, speed, grasp });
    // By way of home and above the point at most, and then closer.
    let seconds = 3.0 * farthest_seconds(unit, arm, speed);
    Ok(Graph::new(unit).wave([on(arm, 15.0, step).lasting(seconds)]))
}

/// A wrong number of angles is the caller's mistake, too.
fn refused(error: ActionError) -> ToolError {
    match error {
        ActionError::Refused(text) => ToolError::bad_args(text),
        other => tool_error(other),
    }
}

/// "[1, 2.5]" and "1, 2.5" are angles; a word is a pose.
fn angles(position: &str) -> Result<Option<Vec<f64>>, ToolError> {
    let text = position.trim();
    let inside = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    if inside.is_none() && !text.contains(',') {
        word("position", text)?;
        return Ok(None);
    }
    let numbers: Result<Vec<f64>, _> = inside
        .unwrap_or(text)
        .split(',')
        .take(64)
        .map(|number| number.trim().parse::<f64>())
        .collect();
    numbers.map(Some).map_err(|_| {
        ToolError::bad_args(format!(
            "position: expected a pose or [degrees, ...], got {text:?}"
        ))
    })
}

fn known_pose(unit: &Unit, pose: &str, arms: &[Subsystem]) -> Result<(), ToolError> {
    let has = |name: &str| arms.iter().all(|arm| unit.model.pose_of(name, *arm).is_some());
    if has(pose) {
        return Ok(());
    }
    let known: Vec<&str> = unit.model.pose_names().filter(|name| has(name)).collect();
    Err(unknown("position", "pose", pose, &known))
}

/// The error for an unknown name: it lists the known names, the most similar first.
pub(super) fn unknown(argument: &str, what: &str, given: &str, known: &[&str]) -> ToolError {
    let near = known
        .iter()
        .map(|name| (strsim::jaro_winkler(&given.to_lowercase(), name), name))
        .filter(|(similarity, _)| *similarity > 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0));
    let hint = near.map_or_else(|| ".".to_string(), |(_, name)| format!(", did you mean {name}?"));
    let given: String = given.chars().take(60).collect();
    ToolError::bad_args(format!(
        "{argument}: no {what} {given:?}{hint} Known are {}",
        known.join(", ")
    ))
}

/// Turn the robot's head. Needs target or bearing_degrees.
#[derive(Deserialize, JsonSchema)]
struct LookAt {
    /// forward, left, right, up, down, floor, or a person or thing.
    #[serde(default)]
    target: Option<Target>,
    /// From straight ahead; positive is left.
    #[serde(default)]
    #[schemars(range(min = -180.0, max = 180.0))]
    bearing_degrees: Option<f64>,
    /// Degrees; positive is up. With bearing_degrees.
    #[serde(default)]
    #[schemars(range(min = -90.0, max = 90.0))]
    tilt_degrees: Option<f64>,
}

fn look_at(unit: &Unit, args: LookAt) -> Planned<'_> {
    let bearing = range_of("bearing_degrees", args.bearing_degrees, -180.0, 180.0)?;
    let tilt = range_of("tilt_degrees", args.tilt_degrees, -90.0, 90.0)?;
    let target = match (args.target, bearing) {
        (Some(_), Some(_)) => {
            return Err(ToolError::bad_args(
                "target, bearing_degrees: give one of them: a name or a side as target, or degrees as bearing_degrees",
            ));
        }
        (Some(target), None) => {
            let target = target.word("target")?;
            not_clockwise(&target)?;
            if tilt.is_some() {
                return Err(ToolError::bad_args(
                    "tilt_degrees: it goes with bearing_degrees; bearing_degrees 0 is straight ahead",
                ));
            }
            target
        }
        (None, None) if tilt.is_none() => {
            return Err(ToolError::bad_args("target: expected target or bearing_degrees"));
        }
        (None, bearing) => format!("{},{}", bearing.unwrap_or(0.0), tilt.unwrap_or(0.0)),
    };
    Ok(Graph::new(unit).wave([look(unit, &target)]))
}

/// Refuses degrees as they were written before, negative to the left and upwards: it says what to write now.
fn not_clockwise(target: &str) -> Result<(), ToolError> {
    let numbers: Option<Vec<f64>> = target
        .trim_matches(['[', ']'])
        .split(',')
        // Nan is a name.
        .map(|part| part.trim().parse().ok().filter(|number: &f64| number.is_finite()))
        .collect();
    let Some([pan, tilt @ ..]) = numbers.as_deref() else {
        return Ok(());
    };
    let tilt = tilt.first();
    let tilt = tilt.map_or_else(String::new, |tilt| format!(", tilt_degrees {}", 0.0 - tilt));
    Err(ToolError::bad_args(format!(
        "target: it no longer takes degrees (negative to the left); use bearing_degrees (positive to the left): for {target} \
         send bearing_degrees {}{tilt}",
        0.0 - pan
    )))
}

/// A look at something, with the time it may take.
pub(super) fn look(unit: &Unit, target: &str) -> Node {
    let target = target.to_string();
    on(Subsystem::Gantry, 5.0, Step::LookAt { target }).lasting(farthest_seconds(
        unit,
        Subsystem::Gantry,
        crate::resolve::LOOK_SPEED,
    ))
}

/// Answer with the robot's head: nod for yes, shake it for no.
#[derive(Deserialize, JsonSchema)]
struct Nod {
    /// The answer.
    #[serde(default)]
    r#type: NodType,
    /// Strength of the gesture.
    #[serde(default)]
    intensity: NodIntensity,
}

fn nod(unit: &Unit, args: Nod) -> Planned<'_> {
    let (kind, intensity) = (args.r#type.as_str(), args.intensity.as_str());
    let seconds = routine_seconds(
        unit,
        Kind::Nod,
        kind,
        Subsystem::Gantry,
        Rounds::One(crate::resolve::intensity(intensity)),
    );
    let step = Step::Nod {
        r#type: kind.to_string(),
        intensity: intensity.to_string(),
    };
    Ok(Graph::new(unit).wave([on(Subsystem::Gantry, 5.0, step).lasting(seconds)]))
}

/// Bring the whole robot into a named pose and keep it there.
#[derive(Deserialize, JsonSchema)]
struct GoToPose {
    /// Which pose.
    pose: String,
}

fn go_to_pose(unit: &Unit, args: GoToPose) -> Planned<'_> {
    let Some(pose) = unit.model.pose(&args.pose) else {
        let known: Vec<&str> = unit.model.pose_names().collect();
        return Err(unknown("pose", "pose", &args.pose, &known));
    };
    let mut nodes: Vec<Node> = pose
        .joints
        .keys()
        .map(|part| {
            let step = Step::MoveToPose {
                pose: args.pose.clone(),
                speed: half(),
            };
            on(*part, 15.0, step).lasting(farthest_seconds(unit, *part, half()))
        })
        .collect();
    if let Some(to) = pose.lift {
        let step = Step::Lift(LiftStep::Lift {
            action: "up".to_string(),
            distance_mm: None,
            position_mm: Some(to),
        });
        nodes.push(on(Subsystem::Lift, 15.0, step).lasting(lift_seconds(unit)));
    }
    Ok(Graph::new(unit).wave(nodes))
}
