//! The part of a toolbox's section that its host obeys: whether the toolbox is loaded, and what its process may access.
//!
//! Owns the types and what each of their fields accepts. `config` reads them from files, of which `host` knows nothing.
//! Read [`ToolboxConfig`].

mod confine;
pub mod fields;
mod program;
mod python;
mod toolbox;

pub use confine::{Confine, Usual};
pub use program::ProgramConfig;
pub use python::{PythonConfig, Switch};
pub use toolbox::ToolboxConfig;
