//! draft
pub mod cdr;
pub mod dds;
pub mod definition;
pub mod description;
pub mod error;
pub mod graph;
pub mod inbox;
pub mod library;
pub mod rosbridge;
pub mod shape;
pub mod shipped;
pub mod text;
