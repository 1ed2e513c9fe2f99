//! Processes for toolboxes: how they are started, and what they may reach.

pub(crate) mod confine;
pub(crate) mod spawner;
pub(crate) mod usual;
