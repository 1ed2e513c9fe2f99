//! The last commanded positions of a K1's arms and head.

use std::collections::BTreeMap;
use std::time::Instant;

use parking_lot::Mutex;

use crate::ros::path::Path;
use crate::subsystem::Subsystem;

/// The last command for a part, in degrees.
enum Command {
    /// It was led to a position.
    Position(Vec<f64>),
    /// It goes along a path by itself, since then.
    Path(Path, Instant),
}

/// The last commands for arms and head.
#[derive(Default)]
pub(super) struct LastAngles(Mutex<BTreeMap<Subsystem, Command>>);

impl LastAngles {
    /// Where a part was sent; where it should be by now, while it goes there by itself.
    pub(super) fn get(&self, on: Subsystem) -> Option<Vec<f64>> {
        self.0.lock().get(&on).map(|command| match command {
            Command::Position(positions) => positions.clone(),
            Command::Path(path, since) => path.at(since.elapsed()),
        })
    }

    /// Where a part should be by now that goes along a path by itself, and is not at its end yet.
    pub(super) fn under_way(&self, on: Subsystem) -> Option<Vec<f64>> {
        match self.0.lock().get(&on)? {
            Command::Path(path, since) if since.elapsed() < path.time() => Some(path.at(since.elapsed())),
            Command::Path(..) | Command::Position(_) => None,
        }
    }

    pub(super) fn set(&self, on: Subsystem, positions: Vec<f64>) {
        self.0.lock().insert(on, Command::Position(positions));
    }

    /// A part goes along a path by itself from now on.
    pub(super) fn set_off(&self, on: Subsystem, path: Path) {
        self.0.lock().insert(on, Command::Path(path, Instant::now()));
    }

    /// Drops the command of one part.
    pub(super) fn remove(&self, on: Subsystem) {
        self.0.lock().remove(&on);
    }

    pub(super) fn forget(&self) {
        self.0.lock().clear();
    }
}
