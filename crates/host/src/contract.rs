//! The types that cross between a toolbox and the service. The texts of a toolbox are read and checked here, and the
//! functions that the service offers to it are declared here.
//!
//! Pure: no thread, no file, no foreign call.

pub(crate) mod answer;
pub(crate) mod manifest;
pub(crate) mod services;
pub(crate) mod tools;
