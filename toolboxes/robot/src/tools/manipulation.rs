//! Hands: pick_object, place_object, gripper.

use ovos_toolbox_sdk::argument_schema;
use ovos_toolbox_sdk::prelude::*;

use super::arguments::{Arm, Point, without_point, word};
use super::listing::{Listing, Planned};
use super::movement::look;
use crate::capability::Capabilities;
use crate::graph::{Graph, Node, on};
use crate::resolve::{REACH_SPEED, farthest_seconds, grip_seconds};
use crate::step::{Grip, LiftStep, Step, Where};
use crate::subsystem::Subsystem;
use crate::unit::Unit;

pub(super) fn list(listing: &mut Listing<'_>) {
    let arguments = with_points(listing, argument_schema::<PickObject>());
    listing.add_with(
        "pick_object",
        Effect::Motion,
        grip,
        pick_object,
        (arguments, json!({"object": {"description": null}})),
    );
    let arguments = with_points(listing, argument_schema::<PlaceObject>());
    listing.add_with(
        "place_object",
        Effect::Motion,
        grip,
        place_object,
        (arguments, json!({"location": {"description": null}})),
    );
    listing.add("gripper", Effect::Motion, grip, gripper);
}

/// The arguments with x, y and z where an arm can be sent to points.
fn with_points(listing: &Listing<'_>, arguments: Value) -> Value {
    match listing.reaches() {
        true => arguments,
        false => without_point(arguments),
    }
}

/// The seconds of the way to above a thing: the longest that a hand goes, and for a point by way of home.
fn above_seconds(unit: &Unit, arm: Subsystem) -> f64 {
    let far = farthest_seconds(unit, arm, REACH_SPEED);
    match unit.capabilities().reaches(arm) {
        true => 3.0 * far,
        false => far,
    }
}

fn grip(robot: &Capabilities) -> bool {
    [&robot.left_arm, &robot.right_arm]
        .into_iter()
        .flatten()
        .any(|arm| arm.gripper.is_some())
}

/// Opens or closes a hand.
fn hand(unit: &Unit, arm: Subsystem, step: Step) -> Node {
    on(arm, 3.0, step).lasting(grip_seconds(unit, arm))
}

/// Have the robot grasp and lift a thing, at the place taught for it or the usual one. It does not search.
#[derive(Deserialize, JsonSchema)]
struct PickObject {
    /// Such as "cup".
    object: String,
    /// Which hand.
    #[serde(default)]
    hand: Arm,
    #[serde(flatten)]
    at: Point,
}

fn pick_object(unit: &Unit, args: PickObject) -> Planned<'_> {
    let object = word("object", &args.object)?;
    let at = args.at.point()?;
    let arm = args.hand.subsystem();
    let far = farthest_seconds(unit, arm, REACH_SPEED);
    let target = || object.clone();
    let above = Step::MoveToPosition(Where::Above {
        target: target(),
        offset: [0.0, 0.0, 0.1],
        at,
    });
    let open = Step::Gripper { action: Grip::Open };
    let close = Step::Grasp {
        action: Grip::Close,
        force: 0.5,
    };
    let lift = Step::Lift(LiftStep::Hand {
        target: target(),
        height: 0.15,
    });
    Ok(Graph::new(unit)
        .wave([look(unit, &object).optional()])
        .wave([on(arm, 10.0, above).lasting(above_seconds(unit, arm))])
        .wave([hand(unit, arm, open)])
        .wave([on(arm, 5.0, Step::Approach { target: target() }).lasting(far / 2.0)])
        .wave([hand(unit, arm, close)])
        .wave([on(arm, 5.0, lift).lasting(far / 2.0)]))
}

/// Have the robot put down what it holds, at the place taught for a name or the usual one.
#[derive(Deserialize, JsonSchema)]
struct PlaceObject {
    /// Such as "table".
    location: String,
    /// Which hand.
    #[serde(default)]
    hand: Arm,
    #[serde(flatten)]
    at: Point,
}

fn place_object(unit: &Unit, args: PlaceObject) -> Planned<'_> {
    let location = word("location", &args.location)?;
    let at = args.at.point()?;
    let arm = args.hand.subsystem();
    let far = farthest_seconds(unit, arm, REACH_SPEED);
    let target = || location.clone();
    let above = Step::MoveToPosition(Where::Above {
        target: target(),
        offset: [0.0, 0.0, 0.1],
        at,
    });
    let lower = Step::Lower {
        target: target(),
        height: -0.15,
    };
    let open = Step::Gripper { action: Grip::Open };
    Ok(Graph::new(unit)
        .wave([look(unit, &location).optional()])
        .wave([on(arm, 10.0, above).lasting(above_seconds(unit, arm))])
        .wave([on(arm, 5.0, lower).lasting(far / 2.0)])
        .wave([hand(unit, arm, open)])
        .wave([on(arm, 5.0, Step::Retract { target: target() }).lasting(far / 2.0)]))
}

/// Open or close the robot's hand. Open lets go.
#[derive(Deserialize, JsonSchema)]
struct Gripper {
    /// Which hand.
    #[serde(default)]
    arm: Arm,
    /// What it does.
    action: Grip,
}

fn gripper(unit: &Unit, args: Gripper) -> Planned<'_> {
    let step = Step::Gripper { action: args.action };
    Ok(Graph::new(unit).wave([hand(unit, args.arm.subsystem(), step)]))
}
