//! The tools: one small function each, which makes a graph of the call's arguments.
//!
//! Owns names, categories, effects, arguments and graphs. A tool is listed where a robot has what it needs. Nothing
//! here moves anything. The README has a table of the tools.

mod arguments;
pub mod calibration;
pub mod diagnostics;
pub mod expression;
pub mod lift_hitch;
mod listing;
pub mod locomotion;
pub mod manipulation;
pub mod movement;
pub mod recognition;
pub mod safety;

use ovos_toolbox_sdk::prelude::*;

use self::listing::Listing;
use crate::robots::Robots;

/// Every tool that one of the robots can do.
#[must_use]
pub fn all(robots: &Robots) -> Vec<Tool<Robots>> {
    let mut listing = Listing::new(robots);
    for (category, list) in [
        ("movement", movement::list as fn(&mut Listing<'_>)),
        ("expression", expression::list),
        ("manipulation", manipulation::list),
        ("locomotion", locomotion::list),
        ("safety", safety::list),
        ("lift_hitch", lift_hitch::list),
        ("diagnostics", diagnostics::list),
        ("calibration", calibration::list),
        ("recognition", recognition::list),
    ] {
        listing.category = category;
        list(&mut listing);
    }
    listing.tools
}
