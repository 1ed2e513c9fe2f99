//! The service's state of one open toolbox: the waiting callers, the runs that move something, and how the toolbox
//! ended.
//!
//! Owns the answers: each caller is answered exactly once, by the toolbox or because the toolbox ended. Sends nothing
//! but refusals, and never under its lock. `hosted` sends the orders, and a transport passes the notices on to here.
//! Read [`Peer`].

mod keeper_view;
mod notices;
mod state;

pub use state::Death;
pub(crate) use state::{End, Peer};
