//! Which toolboxes are installed, and which generations of them take calls.
//!
//! Read [`Engine::attach`] and [`Engine::drain`].

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::call::Cause;
use super::engine::Engine;
use super::fact::Fact;
use super::known_toolbox::{KnownToolbox, Lease};
use super::limits::Limits;
use super::plan::StepTools;
use super::toolbox::Toolbox;

impl Engine {
    /// Sets which toolboxes are installed: those with a live generation, those that are being started or restarted, and
    /// those that were given up until a reload. A stop reaches all of these, and a stop of any other name stops all of
    /// them. The latch of a removed toolbox stays and holds the toolbox again when it comes back.
    pub fn set_installed(&self, toolbox_ids: &BTreeSet<&str>) {
        let mut toolboxes = self.toolboxes.write();
        for toolbox_id in toolbox_ids {
            toolboxes.of(toolbox_id, Limits::default());
        }
        for known in toolboxes.by_id.values() {
            known.set_installed(toolbox_ids.contains(known.toolbox_id.as_str()));
        }
    }

    /// Sets whether toolboxes are being loaded for the first time. Meanwhile a stop of every toolbox also holds those
    /// that are attached later, until [`Self::resume_all`].
    pub fn set_starting(&self, starting: bool) {
        self.toolboxes.write().starting = starting;
    }

    /// Makes a generation of a toolbox callable, including one that was drained. A new generation is halted at once if
    /// its toolbox is in emergency stop.
    pub fn attach(&self, toolbox_id: &str, generation: u64, toolbox: Arc<dyn Toolbox>, limits: Limits) {
        let entry = self.toolboxes.write().of(toolbox_id, limits);
        if entry.attach(generation, toolbox, limits) {
            self.facts.make(|| Fact::ToolboxUp {
                toolbox_id: toolbox_id.to_owned(),
                generation,
            });
        }
    }

    /// Sets the tools of a toolbox and which of them are forbidden; the toolbox's plans are checked against them. Must
    /// be called before the toolbox is attached.
    pub fn set_step_tools(&self, toolbox_id: &str, tools: StepTools) {
        let entry = self.toolboxes.write().of(toolbox_id, Limits::default());
        entry.set_step_tools(tools);
    }

    /// Holds a generation for a call; `None` when the generation is unknown or takes no new calls.
    #[must_use]
    pub fn lease(&self, toolbox_id: &str, generation: u64) -> Option<Lease> {
        self.known_toolbox(toolbox_id)?.lease(generation)
    }

    /// The number of emergency stops of a toolbox so far; 0 where the engine does not know the toolbox.
    #[must_use]
    pub fn stop_epoch(&self, toolbox_id: &str) -> u64 {
        let entry = self.known_toolbox(toolbox_id);
        entry.map_or(0, |entry| entry.latch.epoch())
    }

    /// Refuses new calls for a generation and waits for its calls to end. After `limit` it ends them and waits once
    /// more, for at most `settle + grace + 2 * halt + 2 * plan` of the toolbox's [`Limits`].
    ///
    /// # Cancel safety
    /// Dropped early, the generation still takes no new calls; [`Self::attach`] undoes that.
    pub async fn drain(&self, toolbox_id: &str, generation: u64, limit: Duration) {
        let Some(known) = self.known_toolbox(toolbox_id) else {
            return;
        };
        if timeout(limit, known.drained(generation)).await.is_ok() {
            return;
        }
        let cause = Cause::Reloaded {
            toolbox_id: toolbox_id.to_owned(),
        };
        self.end_all(&cause, |call| {
            call.toolbox_id == toolbox_id && call.generation() == generation
        });
        let limits = known.limits();
        let patience = limits.settle + limits.grace + 2 * limits.halt + 2 * limits.plan;
        if timeout(patience, known.drained(generation)).await.is_err() {
            tracing::error!(
                toolbox = toolbox_id,
                generation,
                "calls did not end in time for the reload"
            );
        }
    }

    /// Removes a closed generation. The latch stays.
    pub fn detach(&self, toolbox_id: &str, generation: u64) {
        let entry = self.known_toolbox(toolbox_id);
        if entry.is_some_and(|entry| entry.detach(generation)) {
            self.facts.make(|| Fact::ToolboxDown {
                toolbox_id: toolbox_id.to_owned(),
                generation,
            });
        }
    }

    /// The longest `settle` of all toolboxes: how long the slowest machine may take to come to rest.
    #[must_use]
    pub fn longest_settle(&self) -> Duration {
        let toolboxes = self.toolboxes();
        let settles = toolboxes.iter().map(|known| known.limits().settle);
        settles.max().unwrap_or_default()
    }

    pub(crate) fn toolboxes(&self) -> Vec<Arc<KnownToolbox>> {
        self.toolboxes.read().by_id.values().cloned().collect()
    }

    pub(crate) fn known_toolbox(&self, toolbox_id: &str) -> Option<Arc<KnownToolbox>> {
        self.toolboxes.read().by_id.get(toolbox_id).cloned()
    }
}
