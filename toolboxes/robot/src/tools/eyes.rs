//! Cameras: look.

use std::collections::BTreeSet;

use ovos_toolbox_sdk::argument_schema;
use ovos_toolbox_sdk::prelude::*;

use super::listing::{Listing, Planned};
use super::movement::unknown;
use crate::capability::Capabilities;
use crate::graph::{Graph, aside};
use crate::step::Step;
use crate::unit::Unit;

pub(super) fn list(listing: &mut Listing<'_>) {
    let units = listing.robots.units().iter();
    let cameras: BTreeSet<&String> = units
        .flat_map(|unit| unit.capabilities().cameras.keys())
        .collect();
    let mut arguments = argument_schema::<Look>();
    arguments["properties"]["camera"]["enum"] = json!(cameras);
    let sees = |robot: &Capabilities| !robot.cameras.is_empty();
    listing.add_with("look", Effect::Read, sees, look, (arguments, json!({})));
}

/// See what a camera of the robot sees now: one picture, with its age.
#[derive(Deserialize, JsonSchema)]
struct Look {
    /// Which camera; the first when not given.
    #[serde(default)]
    camera: Option<String>,
}

fn look(unit: &Unit, args: Look) -> Planned<'_> {
    let known: Vec<&str> = unit.capabilities().cameras.keys().map(String::as_str).collect();
    let camera = args
        .camera
        .as_deref()
        .or(known.first().copied())
        .unwrap_or_default();
    if !known.contains(&camera) {
        return Err(unknown("camera", "camera", camera, &known));
    }
    let camera = camera.to_owned();
    Ok(Graph::new(unit).wave([aside(10.0, Step::Look { camera })]))
}
