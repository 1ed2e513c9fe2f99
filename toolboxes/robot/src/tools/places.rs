//! Places of the base: remember_place, go_to_place, list_places, forget_place.

use ovos_toolbox_sdk::prelude::*;

use super::arguments::word;
use super::listing::{Listing, Planned};
use crate::capability::Capabilities;
use crate::error::tool_error;
use crate::graph::{Graph, aside, on};
use crate::position;
use crate::resolve::way_seconds;
use crate::step::Step;
use crate::subsystem::Subsystem;
use crate::unit::Unit;

/// The longest name of a place.
const LONGEST: usize = 64;
/// How many seconds a way may take whose length is not known yet.
const UNKNOWN: f64 = 60.0;

pub(super) fn list(listing: &mut Listing<'_>) {
    listing.add("remember_place", Effect::Write, located, remember_place);
    listing.add("go_to_place", Effect::Motion, located, go_to_place);
    listing.add("list_places", Effect::Read, located, list_places);
    listing.audience = Audience::Person;
    listing.add("forget_place", Effect::Write, located, forget_place);
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
}

fn remember_place(unit: &Unit, args: RememberPlace) -> Planned<'_> {
    let place = place(&args.place)?;
    // The base holds still while its position is taken.
    Ok(Graph::new(unit).wave([on(Subsystem::Base, 5.0, Step::RememberPlace { place })]))
}

/// Send the robot to a remembered place. Without a map of its own it drives straight and sees nothing in its way.
#[derive(Deserialize, JsonSchema)]
struct GoToPlace {
    place: String,
}

fn go_to_place(unit: &Unit, args: GoToPlace) -> Planned<'_> {
    let place = place(&args.place)?;
    let found = unit.places().find(&place).map(|place| place.spot.clone());
    let way = found
        .map_err(|why| ToolError::new("ValueError", why))
        .and_then(|to| {
            let from = position::here_in_frame_of(unit, &to).map_err(tool_error)?;
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
    place: String,
}

fn forget_place(unit: &Unit, args: ForgetPlace) -> Planned<'_> {
    let place = place(&args.place)?;
    Ok(Graph::new(unit).wave([aside(5.0, Step::ForgetPlace { place })]))
}
