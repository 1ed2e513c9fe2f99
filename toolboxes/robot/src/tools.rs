//! The tools: one small function each, which makes a graph of the call's arguments.
//!
//! Owns names, categories, effects, arguments and graphs. A tool is listed where a robot has what it needs. Nothing
//! here moves anything. The README has a table of the tools.

mod arguments;
pub mod base;
pub mod calibration;
pub mod diagnostics;
pub mod expression;
pub mod eyes;
pub mod lift_hitch;
mod listing;
pub mod locomotion;
pub mod manipulation;
pub mod movement;
pub mod places;
pub mod policy;
pub mod recognition;
pub mod safety;

use ovos_toolbox_sdk::prelude::*;

use self::listing::Listing;
use crate::robots::Robots;

/// Every tool that one of the robots can do.
#[must_use]
pub fn all(robots: &Robots) -> Vec<Tool<Robots>> {
    let mut listing = Listing::new(robots);
    let recognition = if robots.recogniser().is_there() {
        Audience::Model
    } else {
        Audience::Unready
    };
    for (category, audience, list) in [
        (
            "movement",
            Audience::Model,
            movement::list as fn(&mut Listing<'_>),
        ),
        ("expression", Audience::Model, expression::list),
        ("manipulation", Audience::Model, manipulation::list),
        ("locomotion", Audience::Model, locomotion::list),
        ("locomotion", Audience::Model, places::list),
        ("locomotion", Audience::Model, base::list),
        ("eyes", Audience::Model, eyes::list),
        ("manipulation", Audience::Model, policy::list),
        ("safety", Audience::Model, safety::list),
        ("lift_hitch", Audience::Person, lift_hitch::list),
        ("diagnostics", Audience::Person, diagnostics::list),
        ("calibration", Audience::Person, calibration::list),
        ("recognition", recognition, recognition::list),
    ] {
        (listing.category, listing.audience) = (category, audience);
        list(&mut listing);
    }
    listing.tools
}
