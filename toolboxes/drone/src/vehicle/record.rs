//! Writes what happens during a flight into the run log: changes of state, status texts, scenes, the results of
//! commands and brakes, and the guards' verdicts.
//!
//! Decides nothing. Read [`Vehicle::record`].

use std::time::Duration;

use ovos_toolbox_sdk::prelude::*;
use tokio::time::Instant;

use super::command::{Command, Trouble};
use super::log_line::{Asker, LoggedState};
use super::telemetry::Telemetry;
use super::unit::Vehicle;
use crate::scene::SceneError;

/// Shortest interval between two logged scenes of one source; a camera may send fifty a second.
const SCENE_EVERY: Duration = Duration::from_millis(100);
/// Greatest number of sources whose scenes are limited to that interval.
const SOURCES: usize = 16;

impl Vehicle {
    /// Logs what has changed since `before`.
    pub(super) fn record(&self, before: LoggedState, heard: &Telemetry) {
        let now = LoggedState::by(heard);
        if now == before {
            return;
        }
        let texts = heard.texts.iter().filter(|text| text.number > before.texts);
        for text in texts {
            self.log.write(
                "text",
                || json!({"vehicle": self.id, "severity": text.severity, "text": &*text.text}),
            );
        }
        if (LoggedState { texts: 0, ..now }) == (LoggedState { texts: 0, ..before }) {
            return;
        }
        self.log.write("mode", || {
            json!({
                "vehicle": self.id,
                "mode": now.mode,
                "before": before.mode,
                "armed": now.armed,
                "landed": now.landed.map(|landed| format!("{landed:?}")),
            })
        });
    }

    /// Logs a command and its origin.
    pub(super) fn record_command(&self, by: Asker<'_>, command: &Command) {
        self.log.write("command", || by.command(&self.id, command));
    }

    /// Logs the result of a command. Setpoints come twenty times a second; only their failures are logged.
    pub(super) fn record_answer(&self, by: Asker<'_>, command: &Command, done: &Result<(), Trouble>) {
        if done.is_ok() && matches!(command, Command::Position { .. } | Command::Standstill) {
            return;
        }
        self.log.write("ack", || by.ack(&self.id, command, done));
    }

    /// Logs the origin of a brake, its number if anything was sent, and why not if nothing was.
    pub(super) fn record_brake(
        &self,
        emergency: bool,
        asked_by: &str,
        number: Option<u64>,
        why: Option<&str>,
    ) {
        self.log.write("brake", || {
            let mut line = json!({"vehicle": self.id, "emergency": emergency, "asked_by": asked_by});
            if let Some(number) = number {
                line["brake"] = json!(number);
            }
            if let Some(why) = why {
                line["nothing_sent"] = json!(why);
            }
            line
        });
    }

    /// Stores a scene and logs it.
    ///
    /// # Errors
    /// Like [`crate::scene::SceneStore::put`].
    pub(crate) fn see(&self, scene: Value) -> Result<(), SceneError> {
        let kept = (self.log.is_kept() && self.scene_is_due(&scene)).then(|| scene.clone());
        let taken = self.scene.put(scene);
        if let Some(scene) = kept {
            let refused = taken.as_ref().err().map(ToString::to_string);
            self.log.write(
                "scene",
                || json!({"vehicle": self.id, "scene": scene, "refused": refused}),
            );
        }
        taken
    }

    fn scene_is_due(&self, scene: &Value) -> bool {
        let of = |key: &str| scene[key].as_str().unwrap_or_default().to_string();
        let source = (of("frame"), of("source"));
        let mut written = self.scenes_written.lock();
        if written.get(&source).is_some_and(|at| at.elapsed() < SCENE_EVERY) {
            return false;
        }
        if written.len() >= SOURCES {
            written.clear();
        }
        written.insert(source, Instant::now());
        true
    }
}
