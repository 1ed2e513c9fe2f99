//! Places of the base and of hands: remember_place, go_to_place, list_places, forget_place.

use ovos_toolbox_sdk::argument_schema;
use ovos_toolbox_sdk::prelude::*;

use super::arguments::{Arm, word};
use super::listing::{Listing, Planned, reaching};
use crate::capability::Capabilities;
use crate::error::tool_error;
use crate::graph::{Graph, aside, on};
use crate::resolve::way_seconds;
use crate::step::Step;
use crate::subsystem::Subsystem;
use crate::unit::Unit;

/// The longest name of a place.
const LONGEST: usize = 64;
/// How many seconds a way may take whose length is not known yet.
const UNKNOWN: f64 = 60.0;

pub(super) fn list(listing: &mut Listing<'_>) {
    let mut arguments = argument_schema::<RememberPlace>();
    if !listing.reaches()
        && let Some(properties) = arguments["properties"].as_object_mut()
    {
        properties.shift_remove("arm");
    }
    listing.add_with(
        "remember_place",
        Effect::Write,
        remembers,
        remember_place,
        (arguments, json!({})),
    );
    let go = (
        argument_schema::<GoToPlace>(),
        json!({"place": {"description": null}}),
    );
    listing.add_with("go_to_place", Effect::Motion, located, go_to_place, go);
    listing.add("list_places", Effect::Read, remembers, list_places);
    listing.audience = Audience::Person;
    listing.add("forget_place", Effect::Write, remembers, forget_place);
}

fn remembers(robot: &Capabilities) -> bool {
    located(robot) || reaching(robot)
}

fn located(robot: &Capabilities) -> bool {
    robot.base.is_some() && robot.services.position
}

/// Checks the name of a place.
fn place(given: &str) -> Result<String, ToolError> {
    let place = word("place", given)?;
    match place.chars().count() <= LONGEST {
        true => Ok(place),
        false => Err(ToolError::bad_args(format!(
            "place: expected 1 to {LONGEST} characters on one line"
        ))),
    }
}

/// Remember where the robot stands now, and which way it faces, under a name.
#[derive(Deserialize, JsonSchema)]
struct RememberPlace {
    /// One of the same name is replaced.
    place: String,
    /// Whose hand is there, for pick_object, place_object and move_arm.
    #[serde(default)]
    arm: Option<Arm>,
}

fn remember_place(unit: &Unit, args: RememberPlace) -> Planned<'_> {
    let place = place(&args.place)?;
    let only = [Subsystem::RightArm, Subsystem::LeftArm]
        .into_iter()
        .find(|arm| unit.capabilities().reaches(*arm) && !located(unit.capabilities()));
    // What is remembered holds still while its position is taken.
    let part = args.arm.map(Arm::subsystem).or(only).unwrap_or(Subsystem::Base);
    Ok(Graph::new(unit).wave([on(part, 5.0, Step::RememberPlace { place })]))
}

/// Send the robot to a remembered place. Without a map of its own it drives straight and sees nothing in its way.
#[derive(Deserialize, JsonSchema)]
struct GoToPlace {
    /// One of list_places.
    place: String,
}

fn go_to_place(unit: &Unit, args: GoToPlace) -> Planned<'_> {
    let place = place(&args.place)?;
    let found = unit.places().find(&place).and_then(|place| place.spot().cloned());
    let way = found
        .map_err(|why| ToolError::new("ValueError", why))
        .and_then(|to| {
            let from = unit.here_in_frame_of(&to).map_err(tool_error)?;
            Ok(way_seconds(unit, &from, &to))
        });
    let seconds = *way.as_ref().unwrap_or(&UNKNOWN);
    let step = Step::GoToPlace { place };
    Ok(Graph::new(unit)
        .refused(way.err())
        .wave([on(Subsystem::Base, 15.0, step).lasting(seconds)]))
}

/// List the places that the robot remembers, and where it is now.
#[derive(Deserialize, JsonSchema)]
struct ListPlaces {}

fn list_places(unit: &Unit, _: ListPlaces) -> Planned<'_> {
    Ok(Graph::new(unit).wave([aside(5.0, Step::ListPlaces {})]))
}

/// Have the robot forget a remembered place.
#[derive(Deserialize, JsonSchema)]
struct ForgetPlace {
    /// One of list_places.
    place: String,
}

fn forget_place(unit: &Unit, args: ForgetPlace) -> Planned<'_> {
    let place = place(&args.place)?;
    Ok(Graph::new(unit).wave([aside(5.0, Step::ForgetPlace { place })]))
}
