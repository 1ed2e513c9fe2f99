//! What crosses between a toolbox and the service, as types: what a toolbox says is read and judged here, and what it may
//! ask of the service is named here.
//!
//! Pure: no thread, no file, no foreign call.

pub(crate) mod counts;
pub(crate) mod hosted;
pub(crate) mod json;
pub(crate) mod manifest;
pub(crate) mod services;
pub(crate) mod tools;
