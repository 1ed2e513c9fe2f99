//! Plugin files and programs: whether they may be loaded, private copies of them, and their content.

pub(crate) mod elf;
pub(crate) mod file;
pub(crate) mod fingerprint;
pub mod greeter;
pub(crate) mod program;
pub mod python;
pub(crate) mod scan;
pub(crate) mod stage;
