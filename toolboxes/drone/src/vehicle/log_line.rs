//! The lines of the run log about commands, and the part of the telemetry that it has.

use ovos_toolbox_sdk::prelude::*;

use super::command::{Command, Trouble};
use super::telemetry::Telemetry;
use crate::guard::{Landed, Mode};

/// The origin of a command.
#[derive(Clone, Copy)]
pub(super) enum Asker<'a> {
    /// A call, by its id.
    Call(&'a str),
    /// A brake, by its number.
    Brake(u64),
}

impl Asker<'_> {
    fn line(self, mut line: Value) -> Value {
        match self {
            Self::Call(id) => line["call_id"] = json!(id),
            Self::Brake(number) => line["brake"] = json!(number),
        }
        line
    }

    /// The line of a command.
    pub(super) fn command(self, vehicle: &str, command: &Command) -> Value {
        self.line(json!({"vehicle": vehicle, "command": format!("{command:?}")}))
    }

    /// The line of a command's result.
    pub(super) fn ack(self, vehicle: &str, command: &Command, done: &Result<(), Trouble>) -> Value {
        self.line(
            json!({"vehicle": vehicle, "command": command.what(), "ack": match done {
                Ok(()) => json!("done"),
                Err(trouble) => json!({"failed": trouble.code(), "why": trouble.to_string()}),
            }}),
        )
    }
}

/// The logged part of the telemetry, for comparison.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct LoggedState {
    pub(super) mode: Option<Mode>,
    pub(super) armed: Option<bool>,
    pub(super) landed: Option<Landed>,
    pub(super) texts: u64,
}

impl LoggedState {
    pub(super) fn by(heard: &Telemetry) -> Self {
        Self {
            mode: heard.mode,
            armed: heard.armed,
            landed: heard.landed,
            texts: heard.texts_so_far,
        }
    }
}
