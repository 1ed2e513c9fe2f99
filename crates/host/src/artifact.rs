//! Files: which may be loaded, private copies of them, and what is in them.

pub(crate) mod check;
pub(crate) mod elf;
pub(crate) mod file;
pub mod probe;
pub(crate) mod scan;
pub(crate) mod stage;
