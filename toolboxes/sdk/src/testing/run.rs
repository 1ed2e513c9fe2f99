//! Runs that a test starts.

use std::sync::atomic::Ordering;
use std::time::Duration;

use ovos_toolbox_wire::{Action, Progress};
use serde_json::{Value, json};

use super::harness::Harness;
use super::outcome::{Refused, RunOutcome};
use super::peer;

impl Harness {
    /// Starts a tool as one action, as the host does when there is no plan.
    ///
    /// # Errors
    /// The toolbox refused it.
    pub fn start(&self, tool: &str, args: Value) -> Result<Run<'_>, Refused> {
        let params = args.as_object().cloned().unwrap_or_default();
        self.start_action(
            tool,
            Action {
                params,
                ..Action::named(tool)
            },
            json!({}),
        )
    }

    /// Starts one action of a call.
    ///
    /// # Errors
    /// The toolbox refused it.
    pub fn start_action(&self, tool: &str, action: Action, inputs: Value) -> Result<Run<'_>, Refused> {
        let effect = action.effect.unwrap_or_else(|| self.effect_of(tool));
        let start = json!({
            "call": {
                "call_id": format!("call-{}", self.runs.load(Ordering::Relaxed)),
                "toolbox_id": self.manifest().id,
                "tool": tool,
                "session_id": "default",
                "lang": "en-US",
                "source": "testing",
                "deadline_ms": action.timeout_ms.unwrap_or(10_000),
                "stop_epoch": self.stop_epoch.load(Ordering::SeqCst),
                "operator": self.operator,
                "content_dir": self.content_dir,
            },
            "action": {
                "id": action.id.as_ref().unwrap_or(&action.name),
                "name": action.name,
                "subsystems": action.subsystems,
                "params": action.params,
                "effect": effect,
            },
            "inputs": inputs,
        });
        self.start_text(&start.to_string())
    }

    /// Starts a run with exactly this JSON.
    ///
    /// # Errors
    /// The toolbox refused it.
    pub fn start_text(&self, json: &str) -> Result<Run<'_>, Refused> {
        let id = self.begin(json)?;
        Ok(Run { harness: self, id })
    }
}

/// A run that was accepted.
pub struct Run<'a> {
    harness: &'a Harness,
    id: u64,
}

impl Run<'_> {
    /// The run's id.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Waits for the completion.
    ///
    /// # Panics
    /// The run did not complete within the harness's deadline.
    #[must_use]
    pub fn wait(&self) -> RunOutcome {
        self.wait_for(self.harness.deadline).unwrap_or_else(|| {
            panic!(
                "run {} did not complete within {:?}",
                self.id, self.harness.deadline
            )
        })
    }

    /// Waits for the completion, at most this long.
    #[must_use]
    pub fn wait_for(&self, at_most: Duration) -> Option<RunOutcome> {
        self.harness
            .peer
            .wait(at_most, |seen| seen.ended.get(&self.id).cloned())
    }

    /// Asks the run to end.
    pub fn cancel(&self) {
        self.harness.cancel(self.id);
    }

    /// The progress so far.
    #[must_use]
    pub fn progress(&self) -> Vec<Progress> {
        self.harness
            .peer
            .see(|seen| seen.progress.get(&self.id).cloned().unwrap_or_default())
    }

    /// Waits until the run has reported progress `count` times.
    ///
    /// # Panics
    /// The run did not report that often within the harness's deadline.
    #[must_use]
    pub fn wait_progress(&self, count: usize) -> Vec<Progress> {
        let reports = |seen: &peer::Received| {
            seen.progress
                .get(&self.id)
                .filter(|reports| reports.len() >= count)
                .cloned()
        };
        self.harness
            .peer
            .wait(self.harness.deadline, reports)
            .unwrap_or_else(|| panic!("run {} did not report progress {count} times", self.id))
    }
}
