//! One conversation: its sockets, one after the other, and the calls that it receives through them.
//!
//! `ledger`, `silence`, `floor` and `backoff` decide what follows from a call, a lost socket or an interruption. `sockets`
//! carries out these decisions, and `hearing` those that follow from a frame.

mod conversation;
mod hearing;
mod sockets;

pub(crate) use self::conversation::Chat;
