//! The base: move_base, walk, spin, turn, dance.

use ovos_toolbox_sdk::argument_schema;
use ovos_toolbox_sdk::prelude::*;

use super::arguments::{Direction, Target, half, range, range_of, words};
use super::listing::{Listing, Planned, arm_or_head, base};
use super::movement::look;
use crate::graph::{Graph, Node, allow, on};
use crate::model::{Kind, Rounds};
use crate::resolve::{rotation_seconds, routine_seconds, straight_seconds};
use crate::step::{Heading, Step};
use crate::subsystem::Subsystem;
use crate::unit::Unit;

pub(super) fn list(listing: &mut Listing<'_>) {
    // Where the service filled these in, they would be there for every direction.
    let for_models = json!({"distance": {"default": 0.5}, "degrees": {"default": 30}});
    let arguments = (argument_schema::<MoveBase>(), for_models);
    listing.add_with("move_base", Effect::Motion, base, move_base, arguments);
    listing.add("walk", Effect::Motion, base, walk);
    // The direction is the other argument.
    let for_models = json!({"speed": null, "degrees": {"description": null}});
    let arguments = (argument_schema::<SpinArgs>(), for_models);
    listing.add_with("spin", Effect::Motion, base, spin, arguments);
    let arguments = (argument_schema::<Turn>(), json!({"speed": null}));
    listing.add_with("turn", Effect::Motion, base, turn, arguments);
    listing.add("dance", Effect::Motion, arm_or_head, dance);
}

words!(
    /// Which way round.
    Spin, Clockwise: Clockwise "clockwise", Counterclockwise "counterclockwise", Cw "cw", Ccw "ccw"
);
words!(
    /// How to dance.
    DanceStyle, Happy: Happy "happy", Silly "silly", Groovy "groovy", Victory "victory"
);

/// Move the robot by a short distance, or turn it on the spot.
#[derive(Deserialize, JsonSchema)]
struct MoveBase {
    /// left and right go sideways.
    direction: Direction,
    /// Metres; not for turns.
    #[serde(default)]
    #[schemars(range(min = 0.01, max = 2.0))]
    distance: Option<f64>,
    /// rotate_left is counter-clockwise.
    #[serde(default)]
    #[schemars(range(min = 1.0, max = 360.0))]
    degrees: Option<f64>,
}

fn move_base(unit: &Unit, args: MoveBase) -> Planned<'_> {
    let distance = range_of("distance", args.distance, 0.01, 2.0)?;
    let degrees = range_of("degrees", args.degrees, 1.0, 360.0)?;
    let direction = args.direction.as_str();
    let node = match (args.direction, distance, degrees) {
        (Direction::RotateLeft | Direction::RotateRight, Some(distance), _) => {
            return Err(ToolError::bad_args(format!(
                "distance: it is in metres, and {direction} turns on the spot: send degrees (the former distance of {distance} \
                 rad is degrees {:.0})",
                distance.to_degrees()
            )));
        }
        (Direction::RotateLeft | Direction::RotateRight, None, degrees) => {
            base_turn(unit, direction, degrees.unwrap_or(30.0))
        }
        (_, _, Some(_)) => {
            return Err(ToolError::bad_args(format!(
                "degrees: it is for rotate_left and rotate_right; for {direction} send distance, in metres"
            )));
        }
        (_, distance, None) => base_move(unit, direction, distance.unwrap_or(0.5)),
    };
    Ok(Graph::new(unit).wave([node]))
}

/// A movement of the base by metres, with the time it may take.
pub(super) fn base_move(unit: &Unit, direction: &str, distance: f64) -> Node {
    let seconds = straight_seconds(unit, direction, distance);
    let step = Step::BaseMove {
        direction: direction.to_string(),
        distance: Some(distance),
        degrees: None,
    };
    on(Subsystem::Base, 10.0, step).lasting(seconds)
}

/// A turn of the base on the spot, with the time it may take.
fn base_turn(unit: &Unit, direction: &str, degrees: f64) -> Node {
    let seconds = straight_seconds(unit, direction, degrees.to_radians());
    let step = Step::BaseMove {
        direction: direction.to_string(),
        distance: None,
        degrees: Some(degrees),
    };
    on(Subsystem::Base, 10.0, step).lasting(seconds)
}

/// Walk or drive the robot for a time.
#[derive(Deserialize, JsonSchema)]
struct Walk {
    /// Which way.
    #[serde(default)]
    direction: Direction,
    /// Metres per second; not for turns.
    #[serde(default = "walking_pace")]
    #[schemars(range(min = 0.1, max = 1.0))]
    speed: f64,
    /// Seconds.
    #[serde(default = "two")]
    #[schemars(range(min = 0.1, max = 30.0))]
    duration: f64,
}

fn walking_pace() -> f64 {
    0.3
}

fn two() -> f64 {
    2.0
}

fn walk(unit: &Unit, args: Walk) -> Planned<'_> {
    let speed = range("speed", args.speed, 0.1, 1.0)?;
    let duration = range("duration", args.duration, 0.1, 30.0)?;
    let step = Step::Walk {
        direction: args.direction.as_str().to_string(),
        speed,
        duration,
    };
    Ok(Graph::new(unit).wave([on(Subsystem::Base, allow(duration), step)]))
}

/// Spin the robot on the spot, once round by default.
#[derive(Deserialize, JsonSchema)]
struct SpinArgs {
    /// Seen from above: clockwise (cw) is to the right.
    direction: Spin,
    /// Degrees in that direction.
    #[serde(default = "full_turn")]
    #[schemars(range(min = 1.0, max = 720.0))]
    degrees: f64,
    /// 1 is 90 degrees per second.
    #[serde(default = "half")]
    #[schemars(range(min = 0.1, max = 1.0))]
    speed: f64,
}

fn full_turn() -> f64 {
    360.0
}

fn spin(unit: &Unit, args: SpinArgs) -> Planned<'_> {
    let degrees = range("degrees", args.degrees, 1.0, 720.0)?;
    let speed = range("speed", args.speed, 0.1, 1.0)?;
    let degrees = match args.direction {
        Spin::Clockwise | Spin::Cw => -degrees,
        Spin::Counterclockwise | Spin::Ccw => degrees,
    };
    Ok(Graph::new(unit).wave([base_rotate(unit, degrees, speed, 5.0)]))
}

fn base_rotate(unit: &Unit, degrees: f64, speed: f64, seconds: f64) -> Node {
    let step = Step::BaseRotate(Heading::By { degrees, speed });
    on(Subsystem::Base, seconds, step).lasting(rotation_seconds(unit, degrees, speed))
}

/// Turn the whole robot.
#[derive(Deserialize, JsonSchema)]
struct Turn {
    /// left, right, around, degrees (positive is left, counter-clockwise), or a person or thing that it sees.
    target: Target,
    /// 1 is 90 degrees per second.
    #[serde(default = "half")]
    #[schemars(range(min = 0.1, max = 1.0))]
    speed: f64,
}

fn turn(unit: &Unit, args: Turn) -> Planned<'_> {
    let target = args.target.word("target")?;
    let speed = range("speed", args.speed, 0.1, 1.0)?;
    let degrees = match target.to_lowercase().as_str() {
        "left" => Some(90.0),
        "right" => Some(-90.0),
        "around" | "behind" | "back" => Some(180.0),
        other => match other.parse::<f64>() {
            Ok(degrees) => Some(range("target", degrees, -360.0, 360.0)?),
            // The degrees to the left at which the robot sees the target. For a target that the robot itself does not
            // see, the handler is asked when the robot turns.
            Err(_) => unit.adapter.locate(&target).map(|seen| -seen.bearing),
        },
    };
    // The head looks where the base turns to, and straight ahead again when the base has arrived there.
    let (rotate, look_there) = match degrees {
        Some(degrees) => (
            base_rotate(unit, degrees, speed, 15.0),
            format!("{}", degrees.clamp(-90.0, 90.0)),
        ),
        None => {
            let step = Step::BaseRotate(Heading::To {
                target: target.clone(),
                speed,
            });
            let half_turn = rotation_seconds(unit, 180.0, speed);
            (on(Subsystem::Base, 15.0, step).lasting(half_turn), target)
        }
    };
    Ok(Graph::new(unit)
        .wave([rotate, look(unit, &look_there).optional()])
        .wave([look(unit, "forward").optional().called("look_ahead")]))
}

/// Have the robot dance on the spot, with arms and head.
#[derive(Deserialize, JsonSchema)]
struct Dance {
    /// Which dance.
    #[serde(default)]
    style: DanceStyle,
    /// Seconds.
    #[serde(default = "three")]
    #[schemars(range(min = 0.1, max = 30.0))]
    duration: f64,
}

fn three() -> f64 {
    3.0
}

fn dance(unit: &Unit, args: Dance) -> Planned<'_> {
    let duration = range("duration", args.duration, 0.1, 30.0)?;
    let style = args.style.as_str();
    let time = Duration::from_secs_f64(duration);
    let part = |part: Subsystem| {
        let step = Step::Dance {
            style: style.to_string(),
            duration,
        };
        let seconds = routine_seconds(unit, Kind::Dance, style, part, Rounds::For(time));
        let base = (part == Subsystem::RightArm && unit.capabilities().own.dance_moves_base)
            .then_some(Subsystem::Base);
        on(part, duration + 5.0, step)
            .lasting(seconds)
            .optional()
            .holding(base)
    };
    let [left, right, head] = [Subsystem::LeftArm, Subsystem::RightArm, Subsystem::Gantry].map(part);
    Ok(Graph::new(unit).wave([left, right, head.named("head_bob")]))
}
