//! Drives a toolbox through its real C table, without a service.
//!
//! Owns a stand-in for the host: it starts actions, waits for their completions with a deadline, collects events,
//! progress and logs, and answers bus requests. It does not plan waves, validate schemas or reserve subsystems;
//! [`Harness::invoke`] runs the actions of a plan one after the other. For tests and doctests. Read [`Harness`].

mod built;
mod committed;
mod harness;
mod invoke;
mod outcome;
mod peer;
mod run;
mod stand_in;

pub use built::built;
pub use committed::assert_tools_committed;
pub use harness::Harness;
pub use outcome::{CloseReport, Refused, RunOutcome};
pub use peer::{LogLine, Responder};
pub use run::Run;
pub use stand_in::{role_env, role_host, stand_in};
