//! Processes for toolboxes: how they are started and confined.

pub(crate) mod confine;
pub mod descriptors;
pub(crate) mod program_host;
pub(crate) mod spawner;
pub(crate) mod started;
pub(crate) mod usual;
pub(crate) mod work_folder;
