//! Content: the pictures and other media that a tool returns beside its output.
//!
//! A toolbox says what it returns (`check`), usually as the name of a file in its own folder. The service copies such a
//! file into a folder that no confined toolbox can write (`store`), so what a client opens is what was checked. An item that
//! breaks a rule is left out and named; the tool's output and the other items stay. `docs/content.md` has the rules.

mod check;
mod store;
mod sweep;

pub(crate) use store::{Gathered, Store};

/// The folder of what answers carry; no toolbox has this id.
const OWN: &str = "service";

/// The most bytes of an answer's content in the answer itself, together and decoded; also of what a toolbox gives as `data`.
const MAX_INLINE: u64 = 4 << 20;
