//! Content: the pictures and other media that a tool returns beside its output.
//!
//! A toolbox names what it returns (`check`), usually as a file in its own folder. The service copies such a file into a folder
//! that no confined toolbox can write (`store`), so a client opens exactly the file that was checked. An item that breaks a rule
//! is left out and named. The tool's output and the other items stay. `docs/content.md` has the rules.

mod check;
mod store;
mod sweep;

pub(crate) use store::{GatheredContent, Store};
