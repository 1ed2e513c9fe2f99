//! Content: the pictures and other media that a tool returns beside its output.
//!
//! A toolbox names what it returns (`check`), usually as a file in its own folder. The service copies such a file into a folder
//! that no confined toolbox can write (`store`), so a client opens exactly the file that was checked. An item that breaks a rule
//! is left out and named. The tool's output and the other items stay. `docs/content.md` has the rules.

mod check;
mod store;
mod sweep;

pub(crate) use store::{Gathered, Store};

/// The folder of the files that answers carry; no toolbox has this id.
const OWN: &str = "service";

/// The most bytes of content in the answer itself, decoded and added up. The limit applies also to what a toolbox returns as
/// `data`.
const MAX_INLINE: u64 = 4 << 20;
