//! What of a flight is written into the run log besides calls and their commands: what the vehicle showed and said, what
//! was seen, what came of every command and brake, and each judgement on the way.
//!
//! Writes lines and decides nothing. Read [`Vehicle::record`].

use std::time::Duration;

use ovos_toolbox_sdk::prelude::*;
use tokio::time::Instant;

use super::{Braked, Call, Command, Telemetry, Trouble, Vehicle, lock};
use crate::guard::{Landed, Mode, Refusal};
use crate::scene::SceneError;

/// A source of scenes is written down at most so often: a camera may tell fifty a second.
const SCENE_EVERY: Duration = Duration::from_millis(100);
/// Sources that are remembered for that; more of them are written down more often.
const SOURCES: usize = 16;

/// What the vehicle showed, for comparison.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Shown {
    mode: Option<Mode>,
    armed: Option<bool>,
    landed: Option<Landed>,
    texts: u64,
}

impl Shown {
    pub(super) fn by(heard: &Telemetry) -> Self {
        Self {
            mode: heard.mode,
            armed: heard.armed,
            landed: heard.landed,
            texts: heard.texts_so_far,
        }
    }
}

impl Vehicle {
    /// Writes what has changed since `before`.
    pub(super) fn record(&self, before: Shown, heard: &Telemetry) {
        let now = Shown::by(heard);
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
        if (Shown { texts: 0, ..now }) == (Shown { texts: 0, ..before }) {
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

    /// Writes what came of a command. Set points come twenty times a second and are written when they fail.
    pub(super) fn record_answer(&self, call_id: &str, command: &Command, done: &Result<(), Trouble>) {
        if done.is_ok() && matches!(command, Command::Position { .. } | Command::Standstill) {
            return;
        }
        self.log.write("ack", || {
            json!({"call_id": call_id, "vehicle": self.id, "command": command.what(), "ack": match done {
                Ok(()) => json!("done"),
                Err(trouble) => json!({"failed": trouble.code(), "why": trouble.to_string()}),
            }})
        });
    }

    /// Writes that a brake sent nothing. One that sends writes that itself.
    pub(super) fn record_brake(&self, emergency: bool, braked: &Braked) {
        let why = match braked {
            Braked::Sent(_) => return,
            Braked::Nothing(why) => (*why).to_string(),
            Braked::Unreachable(why) | Braked::Foreign(why) => why.clone(),
        };
        self.log.write(
            "brake",
            || json!({"vehicle": self.id, "emergency": emergency, "nothing_sent": why}),
        );
    }

    /// Takes a scene.
    ///
    /// # Errors
    /// As [`crate::scene::SceneStore::put`].
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
        let mut written = lock(&self.scenes_written);
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

impl Call {
    /// Writes what a check of the guards has found, and hands it on.
    ///
    /// # Errors
    /// Those of the check.
    pub(crate) fn judged<T: Serialize>(
        &self,
        check: &str,
        verdict: Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        self.vehicle.log.write("verdict", || {
            json!({"call_id": self.id, "check": check, "verdict": match &verdict {
                Ok(found) => json!({"allowed": found}),
                Err(refusal) => json!({"refused": refusal.code, "why": refusal.msg}),
            }})
        });
        verdict
    }
}
