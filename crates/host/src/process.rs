//! Processes for toolboxes: how they are started and confined.

pub(crate) mod confine;
pub(crate) mod default_confinement;
pub mod descriptors;
pub(crate) mod program_host;
pub(crate) mod spawner;
pub(crate) mod started_process;
pub(crate) mod work_folder;
