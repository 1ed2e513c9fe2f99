//! The doors that the service starts (`start: true`): it watches them, and ends them before itself. Read
//! [`StartedDoors::start`].

use std::ffi::OsString;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use client::payload::DoorStatus;
use config::{Config, Overrides};
use host::DoorKeeper;

/// The doors of one service.
#[derive(Default)]
pub(super) struct StartedDoors {
    doors: Vec<Arc<DoorKeeper>>,
    /// Those whose programs are not there.
    missing: Vec<&'static str>,
    tracker: TaskTracker,
    stop: CancellationToken,
}

impl StartedDoors {
    /// Finds the programs of the doors that the configuration starts. They get the options with which the service itself was
    /// started.
    pub(super) fn find(config: &Config, overrides: &Overrides) -> Self {
        let mut options: Vec<OsString> = Vec::new();
        if let Some(bus) = &overrides.bus {
            options.extend(["--bus".into(), bus.into()]);
        }
        if let Some(file) = &overrides.config {
            options.extend(["--config".into(), file.into()]);
        }
        let mut found = Self::default();
        for (name, arguments) in config.doors.started() {
            let arguments = options
                .iter()
                .cloned()
                .chain(arguments.into_iter().map(OsString::from));
            match cli::find_door(name) {
                Some(program) => found.doors.push(Arc::new(DoorKeeper::new(
                    name,
                    program,
                    arguments.collect(),
                    config.service.max_failures,
                ))),
                None => {
                    tracing::error!(door = name, "{}", missing(name));
                    found.missing.push(name);
                }
            }
        }
        found
    }

    pub(super) fn start(&self) {
        for door in &self.doors {
            self.tracker.spawn(door.clone().keep(self.stop.clone()));
        }
    }

    /// Ends them; each gets some time for its calls.
    pub(super) async fn shut_down(&self) {
        self.stop.cancel();
        self.tracker.close();
        self.tracker.wait().await;
    }

    /// What the status says of them.
    pub(super) fn status(&self) -> Vec<DoorStatus> {
        let of_door = |door: &Arc<DoorKeeper>| {
            let report = door.report();
            DoorStatus {
                name: door.name.to_owned(),
                pid: report.pid,
                restarts: report.restarts,
                reason: report.reason,
            }
        };
        let of_missing = |name: &&'static str| DoorStatus {
            name: (*name).to_owned(),
            reason: Some(missing(name)),
            ..DoorStatus::default()
        };
        let missing = self.missing.iter().map(of_missing);
        self.doors.iter().map(of_door).chain(missing).collect()
    }
}

fn missing(name: &str) -> String {
    format!(
        "the program ovos-tools-{name}, which `start` asks for, is neither next to ovos-tools nor in PATH: `make install` installs both"
    )
}
