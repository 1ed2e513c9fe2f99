//! The part of a toolbox's section that its host obeys: whether the toolbox is loaded, and what its process may access.
//!
//! Owns the types and what each of their fields accepts, and patterns for names. `config` reads them from files, of which `host` and
//! the API know nothing.
//! Read [`ToolboxConfig`].
//!
//! ```
//! use ovos_tools_section::ProgramConfig;
//!
//! let entry = ProgramConfig {
//!     command: vec!["/opt/arm/arm.py".to_owned()],
//!     toolboxes: vec!["arm".to_owned(), "arm-*".to_owned()],
//!     ..ProgramConfig::new("arms")
//! };
//! assert!(entry.may_offer("arm-left") && !entry.may_offer("drone"));
//! ```

mod confine;
pub mod fields;
mod hidden_arguments;
pub mod pattern;
mod program;
mod python;
mod toolbox;

pub use confine::{Confine, DefaultConfinement};
pub use hidden_arguments::{HiddenArguments, plain_name};
pub use program::ProgramConfig;
pub use python::{PythonConfig, Switch};
pub use toolbox::ToolboxConfig;
