//! The commands that were sent and may still be carried out.
//!
//! A command may reach the vehicle after one that was sent later. mavsdk_server serves requests side by side; it carries
//! a flight to a position out in two steps, and takes the second one only when the vehicle has acknowledged the first
//! (`ActionImpl::goto_location_async`); and it keeps a command back while another of the same number is unacknowledged
//! (`MavlinkCommandSender::do_work`). Its answer to a request says that it sends nothing more for it. Read
//! [`OpenCommands`].

use std::collections::BTreeMap;

use tokio::sync::watch;

use super::command::Command;
use crate::guard::Mode;

/// The open commands of one vehicle: those of its calls, and those of its brakes.
#[derive(Debug, Default)]
pub(super) struct OpenCommands {
    /// Number of commands so far.
    sent: u64,
    setpoints: usize,
    /// Those that are not setpoints, by number, with the mode that they lead to; a vehicle that holds or lands ignores
    /// setpoints.
    leading: BTreeMap<u64, Option<Mode>>,
}

impl OpenCommands {
    /// Whether there is one.
    pub(super) fn any(&self) -> bool {
        self.setpoints > 0 || self.leads()
    }

    /// Whether one of them is not a setpoint.
    pub(super) fn leads(&self) -> bool {
        !self.leading.is_empty()
    }

    /// Number of commands so far; the next command has this number.
    pub(super) fn sent(&self) -> u64 {
        self.sent
    }

    /// How many of them were sent before command `number`, setpoints excepted.
    pub(super) fn before(&self, number: u64) -> usize {
        self.leading.range(..number).count()
    }

    /// The modes that they lead to.
    pub(super) fn modes(&self) -> impl Iterator<Item = Mode> {
        self.leading.values().filter_map(|mode| *mode)
    }
}

/// One open command, until this value is dropped.
pub(super) struct OpenCommand {
    all: watch::Sender<OpenCommands>,
    /// `None`: a setpoint.
    leads: Option<u64>,
}

impl OpenCommand {
    /// Counts a command; `None` if it neither moves nor arms the vehicle.
    pub(super) fn begin(all: &watch::Sender<OpenCommands>, command: &Command) -> Option<Self> {
        let setpoint = matches!(command, Command::Position { .. } | Command::Standstill);
        let leads = command.takes_control() || matches!(command, Command::Arm);
        (setpoint || leads).then(|| Self::count(all, leads.then(|| command.mode())))
    }

    /// Counts a brake that may have to repeat its commands.
    pub(super) fn of_brake(all: &watch::Sender<OpenCommands>, rest: Mode) -> Self {
        Self::count(all, Some(Some(rest)))
    }

    fn count(all: &watch::Sender<OpenCommands>, leads: Option<Option<Mode>>) -> Self {
        let mut number = 0;
        all.send_modify(|open| {
            number = open.sent;
            open.sent += 1;
            match leads {
                Some(mode) => drop(open.leading.insert(number, mode)),
                None => open.setpoints += 1,
            }
        });
        Self {
            all: all.clone(),
            leads: leads.map(|_| number),
        }
    }
}

impl Drop for OpenCommand {
    fn drop(&mut self) {
        self.all.send_modify(|open| match self.leads {
            Some(number) => drop(open.leading.remove(&number)),
            None => open.setpoints -= 1,
        });
    }
}
