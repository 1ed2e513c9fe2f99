//! Mounted MCP servers through the bus: what one that behaves gets, that one that does not costs only itself, and that no
//! process is left behind.

mod calls;
mod ends;
mod http;
mod misbehaviour;
mod names;
mod published;
mod scene;
mod signing_in;
