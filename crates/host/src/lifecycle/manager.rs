//! All toolboxes of the service: loading, replacing, removing, closing.
//!
//! Owns every generation from its file to its close. Knows neither calls nor the bus: the service drains generations and
//! receives their events. Read [`Manager`] first.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use ovos_toolbox_wire::{Event, Failure};
use serde_json::Value;
use tokio::time::{Instant, timeout};

use crate::artifact::scan::FailedFile;
use crate::artifact::stage::StageError;
use crate::contract::services::{HostServices, Origin};
use crate::lifecycle::opening;
use crate::lifecycle::reload;
use crate::lifecycle::settings::{Drain, Publish, Settings};
use crate::lifecycle::shared::{Shared, Turn};
use crate::lifecycle::status::{Live, ReloadReport};

/// Owns the toolboxes of a service.
pub struct Manager {
    shared: Arc<Shared>,
}

impl std::fmt::Debug for Manager {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Manager")
            .field("settings", &self.shared.settings)
            .finish_non_exhaustive()
    }
}

impl Manager {
    /// Creates a manager without toolboxes; [`Manager::reload`] loads them. Needs a tokio runtime.
    ///
    /// # Errors
    /// No folder can hold the private copies of plugins.
    pub fn new(
        settings: Settings,
        services: Arc<dyn HostServices>,
        drain: Arc<dyn Drain>,
        publish: Publish,
    ) -> Result<Self, StageError> {
        let shared = Arc::new(Shared::new(settings, services, drain, publish)?);
        shared.tracker.spawn(refresh(Arc::clone(&shared)));
        Ok(Self { shared })
    }

    /// Loads, replaces and removes toolboxes until they match the plugin folders and the configuration. Unchanged
    /// toolboxes are left alone; if a replacement fails, the working copy stays. Returns after the swaps; replaced
    /// copies are drained and closed in the background. One reload runs at a time, and requests that wait for it
    /// share the next one.
    ///
    /// # Cancel safety
    /// A reload that has begun continues.
    pub async fn reload(&self) -> ReloadReport {
        let ticket = self.shared.tickets.fetch_add(1, Ordering::SeqCst) + 1;
        let shared = Arc::clone(&self.shared);
        let done = self.shared.tracker.spawn(async move {
            let mut turn = shared.turn.lock().await;
            if turn.covers < ticket {
                let covers = shared.tickets.load(Ordering::SeqCst);
                let report = reload::run(&shared).await;
                *turn = Turn { covers, report };
            }
            turn.report.clone()
        });
        done.await.unwrap_or_else(|error| ReloadReport {
            broken: vec![FailedFile {
                path: self.shared.stage.folder().to_owned(),
                toolbox_id: None,
                reason: format!("bug in the service: the reload did not finish: {error}"),
            }],
            ..ReloadReport::default()
        })
    }

    /// The current snapshot.
    #[must_use]
    pub fn live(&self) -> Arc<Live> {
        self.shared.copies().snapshot()
    }

    /// Passes a bus message to the toolboxes that subscribe to its topic. Never waits.
    pub fn deliver_message(&self, topic: &str, data: &str) {
        for slot in self.shared.copies().slots.values() {
            slot.instance.message(topic, data);
        }
    }

    /// Passes the answer to a request to the copy that asked; false if the copy is gone or the request was answered
    /// already.
    pub fn deliver_response(&self, origin: &Origin, request: u64, answer: &Result<Value, Failure>) -> bool {
        let asked = self
            .shared
            .copies()
            .instances
            .get(origin)
            .and_then(std::sync::Weak::upgrade);
        asked.is_some_and(|instance| instance.respond(request, answer))
    }

    /// Halts and closes every toolbox, including those that are being drained. Toolboxes that do not end before the
    /// deadline are abandoned; true if all ended. Call it before the process exits: a toolbox that still runs at the
    /// exit races with the destructors of its own library. Dropping the manager afterwards removes the staged files.
    ///
    /// # Cancel safety
    /// The closes that have begun continue; the other toolboxes are closed when the manager is dropped.
    pub async fn shutdown(&self, deadline: Duration) -> bool {
        if let Some(end) = Instant::now().checked_add(deadline) {
            // Only once: a second shutdown waits for what the first one began.
            _ = self.shared.deadline.set(end);
        }
        self.shared.stop.cancel();
        let all = async {
            // Before the lock of the reload is taken: the reload may wait for hardware that does not answer.
            let closed = self.shared.rest_all().await;
            // A reload ends early because of the token; the copies that it has installed meanwhile are closed after
            // it.
            let turn = self.shared.turn.lock().await;
            let closed = self.shared.rest_all().await && closed;
            drop(turn);
            self.shared.tracker.close();
            self.shared.tracker.wait().await;
            // A toolbox that was being started again may have been installed meanwhile.
            self.shared.rest_all().await && closed
        };
        timeout(deadline, all).await.unwrap_or(false)
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        // This ends the tasks, which own the shared state.
        self.shared.stop.cancel();
    }
}

/// Asks toolboxes for their tools again, after `tools_changed`.
async fn refresh(shared: Arc<Shared>) {
    loop {
        tokio::select! {
            () = shared.services.wake.notified() => {}
            () = shared.stop.cancelled() => return,
        }
        for (origin, event) in shared.services.take_changed() {
            let asking = Arc::clone(&shared);
            // Each in a task of its own: a toolbox that does not answer delays no other.
            shared.tracker.spawn(async move {
                let listing = list_again(&asking, &origin, event);
                asking.stop.run_until_cancelled(listing).await;
                asking.services.listed(&origin);
            });
        }
    }
}

/// Asks a toolbox for its tools, publishes them, and passes on its `tools_changed` event.
async fn list_again(shared: &Shared, origin: &Origin, event: Event) {
    let instance = {
        let mut copies = shared.copies();
        let slot = copies.slots.get(&*origin.toolbox_id);
        let instance = slot
            .map(|slot| &slot.instance)
            .filter(|instance| *instance.origin() == *origin);
        let Some(instance) = instance.cloned() else {
            if copies.instances.contains_key(origin) {
                copies.changed_early.insert(origin.clone(), event);
            }
            return;
        };
        instance
    };
    match instance.tools().await {
        Ok(tools) => {
            opening::log_dropped(origin, &tools);
            let mut copies = shared.copies();
            let slot = copies.slots.get_mut(&*origin.toolbox_id);
            if let Some(slot) = slot.filter(|slot| *slot.instance.origin() == *origin) {
                slot.tools = Arc::new(tools);
                shared.publish(copies);
                // Sent only now, because a client that receives the event asks for the list.
                shared.services.pass(origin, event);
            }
        }
        Err(failure) => {
            let Origin {
                toolbox_id,
                generation,
            } = origin;
            tracing::warn!(toolbox = &**toolbox_id, generation, %failure, "its tools changed, but it does not list the new \
                ones; the previous list stays");
        }
    }
}
