//! The live copies of toolboxes: finding, opening, replacing and restarting them.

pub(crate) mod claimed_finding;
pub(crate) mod claims;
pub(crate) mod code;
pub(crate) mod common_program;
pub(crate) mod content;
pub(crate) mod copies;
pub(crate) mod door_keeper;
pub(crate) mod examine;
pub(crate) mod health;
pub mod inspect;
pub(crate) mod manager;
pub(crate) mod offers;
pub(crate) mod opening;
pub(crate) mod program;
pub(crate) mod program_keeper;
pub(crate) mod python;
pub(crate) mod reads;
pub(crate) mod reload;
pub(crate) mod settings;
pub(crate) mod shared;
pub(crate) mod status;
pub(crate) mod supervise;
pub(crate) mod swap;
pub(crate) mod tally;
