//! All toolboxes of the service: loading, replacing, removing, closing.
//!
//! Owns every generation from its file to its close, and publishes a snapshot after each change. Knows neither calls
//! nor the bus: the service drains generations and receives their events. Read [`Manager`] first.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use ovos_toolbox_wire::{Event, Failure};
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::artifact::scan::FailedFile;
use crate::artifact::stage::{Stage, StageError};
use crate::contract::services::{HostServices, Origin, Request};
use crate::lifecycle::book::Book;
use crate::lifecycle::opening;
use crate::lifecycle::reload;
use crate::lifecycle::settings::{Drain, Publish, Settings};
use crate::lifecycle::status::{Live, ReloadReport};
use crate::transport::hosted::Hosted;
use engine::{Halt, Toolbox};

/// How long the service may take to end the calls of a drained copy. The service has a limit of its own, which
/// depends on how long the machine takes to come to rest; this one only guards against a bug.
const PATIENCE: Duration = Duration::from_secs(120);

/// Owns the toolboxes of a service.
pub struct Manager {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) settings: Settings,
    pub(crate) stage: Arc<Stage>,
    pub(crate) services: Arc<Relay>,
    pub(crate) drain: Arc<dyn Drain>,
    pub(crate) tracker: TaskTracker,
    pub(crate) stop: CancellationToken,
    publish: Publish,
    book: Mutex<Book>,
    /// The number of snapshots taken of the book.
    snapshots: AtomicU64,
    /// The number of the newest published snapshot. Its lock is not the book's: publishing takes a moment, and a bus
    /// message waits for the book.
    published: Mutex<u64>,
    tickets: AtomicU64,
    pub(crate) turn: tokio::sync::Mutex<Turn>,
}

/// The last reload: the requests that it covered, and its report.
#[derive(Default)]
pub(crate) struct Turn {
    covers: u64,
    report: ReloadReport,
}

impl std::fmt::Debug for Manager {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Manager")
            .field("settings", &self.inner.settings)
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
        let stage = Arc::new(Stage::new(&settings.stage_dirs)?);
        let inner = Arc::new(Inner {
            settings,
            stage,
            services: Arc::new(Relay {
                services,
                changed: Mutex::default(),
                wake: Notify::new(),
            }),
            drain,
            tracker: TaskTracker::new(),
            stop: CancellationToken::new(),
            publish,
            book: Mutex::default(),
            snapshots: AtomicU64::new(0),
            published: Mutex::default(),
            tickets: AtomicU64::new(0),
            turn: tokio::sync::Mutex::default(),
        });
        inner.tracker.spawn(refresh(Arc::clone(&inner)));
        Ok(Self { inner })
    }

    /// Loads, replaces and removes toolboxes until they match the plugin folders and the configuration. Unchanged
    /// toolboxes are left alone; if a replacement fails, the working copy stays. Returns after the swaps; replaced
    /// copies are drained and closed in the background. One reload runs at a time, and requests that wait for it
    /// share the next one.
    ///
    /// # Cancel safety
    /// A reload that has begun continues.
    pub async fn reload(&self) -> ReloadReport {
        let ticket = self.inner.tickets.fetch_add(1, Ordering::SeqCst) + 1;
        let inner = Arc::clone(&self.inner);
        let done = self.inner.tracker.spawn(async move {
            let mut turn = inner.turn.lock().await;
            if turn.covers < ticket {
                let covers = inner.tickets.load(Ordering::SeqCst);
                let report = reload::run(&inner).await;
                *turn = Turn { covers, report };
            }
            turn.report.clone()
        });
        done.await.unwrap_or_else(|error| ReloadReport {
            broken: vec![FailedFile {
                path: self.inner.stage.folder().to_owned(),
                toolbox_id: None,
                reason: format!("bug in the service: the reload did not finish: {error}"),
            }],
            ..ReloadReport::default()
        })
    }

    /// The current snapshot.
    #[must_use]
    pub fn live(&self) -> Arc<Live> {
        self.inner.book().snapshot()
    }

    /// Passes a bus message to the toolboxes that subscribe to its topic. Never waits.
    pub fn deliver_message(&self, topic: &str, data: &str) {
        for slot in self.inner.book().slots.values() {
            slot.instance.message(topic, data);
        }
    }

    /// Passes the answer to a request to the copy that asked; false if the copy is gone or the request was answered
    /// already.
    pub fn deliver_response(&self, origin: &Origin, request: u64, answer: &Result<Value, Failure>) -> bool {
        let asked = self
            .inner
            .book()
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
        self.inner.stop.cancel();
        let all = async {
            // Before the lock of the reload, which may wait for hardware that does not answer.
            let closed = self.inner.rest_all().await;
            // A reload ends early because of the token; the copies that it has installed meanwhile are closed after
            // it.
            let turn = self.inner.turn.lock().await;
            let closed = self.inner.rest_all().await && closed;
            drop(turn);
            self.inner.tracker.close();
            self.inner.tracker.wait().await;
            closed
        };
        timeout(deadline, all).await.unwrap_or(false)
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        // This ends the tasks, which hold the inner part.
        self.inner.stop.cancel();
    }
}

impl Inner {
    pub(crate) fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock()
    }

    /// Publishes a snapshot of the book, or a newer one; it is in force when this returns.
    pub(crate) fn publish(&self, book: MutexGuard<'_, Book>) {
        let snapshot = book.snapshot();
        // Numbered under the lock of the book, and so in the order of the changes.
        let number = self.snapshots.fetch_add(1, Ordering::SeqCst) + 1;
        drop(book);
        let mut published = self.published.lock();
        if *published < number {
            (self.publish)(snapshot);
            *published = number;
        }
    }

    /// Runs a blocking function on another thread.
    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, String> + Send + 'static,
    ) -> Result<T, String> {
        let done = self.tracker.spawn_blocking(work).await;
        done.unwrap_or_else(|error| Err(format!("bug in the service: {error}")))
    }

    /// Brings every live copy to rest and closes it; true if all closed in time.
    async fn rest_all(&self) -> bool {
        let instances: Vec<Arc<Hosted>> = {
            let book = self.book();
            let slots = book.slots.values();
            slots.map(|slot| Arc::clone(&slot.instance)).collect()
        };
        let closed = join_all(instances.iter().map(|instance| rest(instance))).await;
        closed.into_iter().all(|closed| closed)
    }

    /// Drains, halts and closes a copy that is out of service.
    pub(crate) async fn retire(&self, instance: Arc<Hosted>) {
        tokio::select! {
            () = self.drained(instance.origin()) => {}
            () = self.stop.cancelled() => {}
        }
        rest(&instance).await;
        let origin = instance.origin();
        self.drain.closed(&origin.toolbox_id, origin.generation);
        self.book().forget(origin);
    }

    /// Waits until no call uses a copy, or the time of the drain is up.
    async fn drained(&self, origin: &Origin) {
        let Origin {
            toolbox_id,
            generation,
        } = origin;
        let limit = self.settings.drain;
        let drain = self.drain.drain(toolbox_id, *generation, limit);
        if timeout(limit + PATIENCE, drain).await.is_err() {
            tracing::error!(
                toolbox = &**toolbox_id,
                generation,
                "calls still use this copy after the drain; it is closed now"
            );
        }
    }
}

/// Brings a copy to rest and closes it; true if it closed in time.
pub(crate) async fn rest(instance: &Hosted) -> bool {
    let halt = Halt {
        subsystems: vec!["all".to_owned()],
        // A gentle halt would undo what the backend does in an emergency (such as releasing torque).
        emergency: instance.is_stopped(),
        stop_epoch: instance.stop_epoch(),
    };
    if let Err(failure) = instance.halt(halt).await
        && !matches!(failure.kind.as_str(), "ToolboxClosed" | "ToolboxCrashed")
    {
        let Origin {
            toolbox_id,
            generation,
        } = instance.origin();
        tracing::error!(toolbox = &**toolbox_id, generation, %failure, "halt before closing failed");
    }
    instance.close().await
}

/// Asks toolboxes for their tools again, after `tools_changed`.
async fn refresh(inner: Arc<Inner>) {
    loop {
        tokio::select! {
            () = inner.services.wake.notified() => {}
            () = inner.stop.cancelled() => return,
        }
        for origin in inner.services.take_changed() {
            let instance = {
                let mut book = inner.book();
                let slot = book.slots.get(&*origin.toolbox_id);
                let instance = slot
                    .map(|slot| &slot.instance)
                    .filter(|instance| *instance.origin() == origin);
                let instance = instance.cloned();
                if instance.is_none() && book.instances.contains_key(&origin) {
                    book.changed_early.insert(origin.clone());
                }
                instance
            };
            let Some(instance) = instance else { continue };
            match instance.tools().await {
                Ok(tools) => {
                    opening::name_dropped(&origin, &tools);
                    let mut book = inner.book();
                    let slot = book.slots.get_mut(&*origin.toolbox_id);
                    if let Some(slot) = slot.filter(|slot| *slot.instance.origin() == origin) {
                        slot.tools = Arc::new(tools);
                        inner.publish(book);
                    }
                }
                Err(failure) => {
                    let Origin {
                        toolbox_id,
                        generation,
                    } = &origin;
                    tracing::warn!(toolbox = &**toolbox_id, generation, %failure, "its tools changed, but it does not list them; the old ones stay");
                }
            }
        }
    }
}

/// Passes events and requests of toolboxes on to the service, and handles `tools_changed`.
pub(crate) struct Relay {
    services: Arc<dyn HostServices>,
    /// At most as many as there are loaded copies.
    changed: Mutex<HashSet<Origin>>,
    wake: Notify,
}

impl Relay {
    pub(crate) fn tools_changed(&self, origin: &Origin) {
        self.changed.lock().insert(origin.clone());
        self.wake.notify_one();
    }

    fn take_changed(&self) -> HashSet<Origin> {
        std::mem::take(&mut *self.changed.lock())
    }
}

impl HostServices for Relay {
    fn event(&self, origin: &Origin, event: Event) {
        if event.kind == "tools_changed" {
            self.tools_changed(origin);
        }
        self.services.event(origin, event);
    }

    fn request(&self, origin: &Origin, request: Request) {
        self.services.request(origin, request);
    }
}
