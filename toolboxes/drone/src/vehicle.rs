//! One vehicle: its telemetry, the permission to command it, and the one way to send a command.
//!
//! Owns the telemetry cache, the right to command and every command in flight. All commands go through [`Call::send`],
//! which checks that the call may still command; only [`brake`] bypasses it. Other modules decide the guards. Read
//! [`Vehicle`].

mod attend;
mod attention;
mod brake;
mod call;
mod command;
mod control;
mod flying;
mod hover;
mod link;
mod link_state;
mod log_line;
mod mode_report;
mod open_commands;
mod orphan;
mod outside;
mod prepare;
mod process;
mod programs;
mod recognise;
mod record;
mod rest;
mod right;
mod streams;
mod telemetry;
mod unit;

pub(crate) use brake::BrakeOutcome;
pub(crate) use call::Call;
pub(crate) use command::{Command, Waypoint};
pub(crate) use flying::{Flying, Target};
pub(crate) use link::Reach;
pub(crate) use link::stop_through_own_server;
pub(crate) use link_state::Link;
pub(crate) use orphan::stop_from_nothing;
pub(crate) use outside::{Gate, Outside};
pub(crate) use rest::RestState;
pub(crate) use telemetry::Telemetry;
pub(crate) use unit::{OverrideReport, Vehicle};
