//! One run: it observes, lets the model reason, and acts, until something ends it.

mod end_calls;
mod ledger;
mod own_tools;
mod steps;
mod turn;

pub(crate) use self::ledger::Run;
