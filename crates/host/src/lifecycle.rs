//! The live copies of toolboxes: finding, opening, replacing and restarting them.

pub(crate) mod book;
pub(crate) mod code;
pub(crate) mod examine;
pub mod inspect;
pub(crate) mod manager;
pub(crate) mod opening;
pub(crate) mod reload;
pub(crate) mod settings;
pub(crate) mod status;
pub(crate) mod supervise;
