//! Orders and notices: what the service tells a toolbox that is a program of its own, and what it answers.
//!
//! Owns the shapes only: no IO, no threads, no policy. `docs/protocol.md` describes them for authors of programs, with an
//! example of each, and `schemas/protocol/` has their JSON Schemas. Unknown keys are ignored and unknown orders and notices
//! are passed over, so either side may be newer. No order and no notice holds free JSON: what may be of any shape is
//! [`Raw`], which the side that needs it reads by itself. Read [`Order`], then [`Notice`].
#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod address;
mod answer;
mod notice;
mod order;
mod raw;
mod unknown;

pub use address::{address, write};
pub use answer::Answer;
pub use notice::{Counts, Functions, Hello, Notice, RunEnd};
pub use order::{Opening, Order};
pub use raw::Raw;

/// The feature of a program that consists of several toolboxes.
pub const TOOLBOXES: &str = "toolboxes";

/// The feature of a program whose toolbox is on another machine. That machine brings its hardware to rest by itself, so nothing here
/// does so in its place when the program dies.
pub const REMOTE: &str = "remote";

/// Most toolboxes of one program.
pub const MAX_TOOLBOXES: usize = 256;

/// The version of the protocol. Each side refuses the other when theirs differ.
pub const PROTOCOL: u32 = 2;

/// Largest order or notice on the data lane, in bytes of its JSON: the largest result that may be configured, with room for escape
/// sequences.
pub const MAX_DATA: usize = 64 << 20;

/// Largest order or notice on the control lane, in bytes of its JSON: a list of subsystems, or a failure.
pub const MAX_CONTROL: usize = 1 << 20;
