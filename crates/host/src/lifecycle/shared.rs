//! The state that the tasks of the manager share: the copies, the stage, the connection to the service.
//!
//! Publishes a snapshot after each change, and brings copies to rest. Decides nothing. Read [`Shared`].

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::future::join_all;
use ovos_toolbox_wire::Event;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, OwnedMutexGuard};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::artifact::stage::{Stage, StageError};
use crate::contract::services::{HostServices, Origin, Request};
use crate::lifecycle::copies::Copies;
use crate::lifecycle::settings::{Drain, Publish, Settings};
use crate::lifecycle::status::ReloadReport;
use crate::transport::hosted::Hosted;
use engine::{Halt, NoAnswer, Toolbox};

/// How long the service may take to end the calls of a drained copy. The service has a limit of its own, which
/// depends on how long the machine takes to come to rest; this one only guards against a bug.
const PATIENCE: Duration = Duration::from_secs(120);

/// The state that the tasks of the manager share.
pub(crate) struct Shared {
    pub(crate) settings: Settings,
    pub(crate) stage: Arc<Stage>,
    pub(crate) services: Arc<Relay>,
    pub(crate) drain: Arc<dyn Drain>,
    pub(crate) tracker: TaskTracker,
    pub(crate) stop: CancellationToken,
    /// Until when the service waits for its toolboxes after `stop`.
    pub(crate) deadline: OnceLock<Instant>,
    publish: Publish,
    copies: Mutex<Copies>,
    /// The number of snapshots that were taken.
    snapshots: AtomicU64,
    /// The number of the newest published snapshot. It has a lock of its own: publishing takes a moment, and bus
    /// messages wait for the lock of the copies.
    published: Mutex<u64>,
    /// Locks for toolboxes that are being replaced, removed or started again. One entry for each id that was ever used.
    alone: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
    pub(crate) tickets: AtomicU64,
    pub(crate) turn: tokio::sync::Mutex<Turn>,
}

/// The last reload: the requests that it covered, and its report.
#[derive(Default)]
pub(crate) struct Turn {
    pub(crate) covers: u64,
    pub(crate) report: ReloadReport,
}

impl Shared {
    pub(crate) fn new(
        settings: Settings,
        services: Arc<dyn HostServices>,
        drain: Arc<dyn Drain>,
        publish: Publish,
    ) -> Result<Self, StageError> {
        Ok(Self {
            stage: Arc::new(Stage::new(&settings.stage_dirs)?),
            settings,
            services: Arc::new(Relay {
                services,
                changed: Mutex::default(),
                wake: Notify::new(),
            }),
            drain,
            tracker: TaskTracker::new(),
            stop: CancellationToken::new(),
            deadline: OnceLock::new(),
            publish,
            copies: Mutex::default(),
            snapshots: AtomicU64::new(0),
            published: Mutex::default(),
            alone: Mutex::default(),
            tickets: AtomicU64::new(0),
            turn: tokio::sync::Mutex::default(),
        })
    }

    pub(crate) fn copies(&self) -> MutexGuard<'_, Copies> {
        self.copies.lock()
    }

    /// Publishes a snapshot of the copies. When this returns, this snapshot or a newer one is published.
    pub(crate) fn publish(&self, copies: MutexGuard<'_, Copies>) {
        let snapshot = copies.snapshot();
        // Numbered under the lock of the copies, and so in the order of the changes.
        let number = self.snapshots.fetch_add(1, Ordering::SeqCst) + 1;
        drop(copies);
        let mut published = self.published.lock();
        if *published < number {
            (self.publish)(snapshot);
            *published = number;
        }
    }

    /// Waits until nothing else opens or closes copies of this toolbox. Nothing else does so while the guard lives,
    /// because hardware may be opened only once.
    pub(crate) async fn alone(&self, id: &str) -> OwnedMutexGuard<()> {
        let of_id = Arc::clone(self.alone.lock().entry(id.to_owned()).or_default());
        of_id.lock_owned().await
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
    pub(crate) async fn rest_all(&self) -> bool {
        let instances: Vec<Arc<Hosted>> = {
            let copies = self.copies();
            let slots = copies.slots.values();
            slots.map(|slot| Arc::clone(&slot.instance)).collect()
        };
        let closed = join_all(instances.iter().map(|instance| rest(instance))).await;
        closed.into_iter().all(|closed| closed)
    }

    /// Drains a copy that is out of service, for at most `drain`, then halts and closes it.
    pub(crate) async fn retire(&self, instance: Arc<Hosted>, drain: Duration) {
        tokio::select! {
            () = self.drained(instance.origin(), drain) => {}
            () = self.stop.cancelled() => {}
        }
        rest(&instance).await;
        let origin = instance.origin();
        self.drain.closed(&origin.toolbox_id, origin.generation);
        self.copies().forget(origin);
    }

    /// Waits until no call uses a copy, or the time of the drain is up.
    async fn drained(&self, origin: &Origin, limit: Duration) {
        let Origin {
            toolbox_id,
            generation,
        } = origin;
        let drain = self.drain.drain(toolbox_id, *generation, limit);
        if timeout(limit + PATIENCE, drain).await.is_err() {
            tracing::error!(
                toolbox = &**toolbox_id,
                generation,
                "calls still use this version after the drain; closing it anyway"
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
    if let Err(NoAnswer::Failed(failure)) = instance.halt(halt).await {
        let Origin {
            toolbox_id,
            generation,
        } = instance.origin();
        tracing::error!(toolbox = &**toolbox_id, generation, %failure, "halt before closing failed");
    }
    instance.close().await
}

/// Passes events and requests of toolboxes on to the service, and handles `tools_changed`.
pub(crate) struct Relay {
    services: Arc<dyn HostServices>,
    changed: Mutex<ChangedCopies>,
    pub(crate) wake: Notify,
}

/// Copies whose tools changed.
#[derive(Default)]
struct ChangedCopies {
    /// The copies to ask for their tools, each with its newest `tools_changed` event.
    waiting: HashMap<Origin, Event>,
    /// The copies that are being asked. A copy is asked once at a time.
    asked: HashSet<Origin>,
}

impl Relay {
    pub(crate) fn tools_changed(&self, origin: &Origin, event: Event) {
        self.changed.lock().waiting.insert(origin.clone(), event);
        self.wake.notify_one();
    }

    /// The copies to ask now. The caller reports each one to `listed` when it has been asked.
    pub(crate) fn take_changed(&self) -> Vec<(Origin, Event)> {
        let mut changed = self.changed.lock();
        let ChangedCopies { waiting, asked } = &mut *changed;
        waiting
            .extract_if(|origin, _| asked.insert(origin.clone()))
            .collect()
    }

    /// Notes that a copy has been asked for its tools.
    pub(crate) fn listed(&self, origin: &Origin) {
        self.changed.lock().asked.remove(origin);
        // The tools may have changed again.
        self.wake.notify_one();
    }

    /// Passes an event on as it is.
    pub(crate) fn pass(&self, origin: &Origin, event: Event) {
        self.services.event(origin, event);
    }
}

impl HostServices for Relay {
    fn event(&self, origin: &Origin, event: Event) {
        if event.kind == "tools_changed" {
            // The event is passed on when the new list is published.
            return self.tools_changed(origin, event);
        }
        self.services.event(origin, event);
    }

    fn request(&self, origin: &Origin, request: Request) {
        self.services.request(origin, request);
    }
}
