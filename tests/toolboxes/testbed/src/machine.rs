//! The simulated machine: every command is a line in a file that tests read.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;

use ovos_toolbox_sdk::prelude::*;
use rustix::time::{ClockId, clock_gettime};

/// The log of motor commands.
pub(crate) struct Machine {
    log: Option<File>,
}

impl Machine {
    pub(crate) fn open(log: Option<&Path>) -> Result<Self, ToolError> {
        let log = log
            .map(|path| {
                OpenOptions::new()
                    .create(true)
                    .append(true)
                    .open(path)
                    .map_err(|error| ToolError::msg(format!("motor_log {}: {error}", path.display())))
            })
            .transpose()?;
        Ok(Self { log })
    }

    /// Sends one command: `start`, `step`, `stop`, `halt` or `emergency`.
    pub(crate) fn command(&self, kind: &str, subsystem: &str, run: &str) -> Result<(), ToolError> {
        let Some(mut log) = self.log.as_ref() else {
            return Ok(());
        };
        let now = clock_gettime(ClockId::Monotonic);
        let ns = i128::from(now.tv_sec) * 1_000_000_000 + i128::from(now.tv_nsec);
        // One write with O_APPEND: lines of several generations and processes never mix.
        log.write_all(format!("{ns} {kind} {subsystem} {run}\n").as_bytes())?;
        Ok(())
    }
}
