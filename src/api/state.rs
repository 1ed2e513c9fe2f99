//! What the API answers from: the engine, the registry and the toolboxes, what the configuration says, and what was counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio::sync::watch;

use super::list_cache::ListCache;
use super::outbox::Outbox;
use super::pages::OpenPages;
use super::settings::Settings;
use super::toolboxes::Toolboxes;
use crate::content::Store;
use crate::registry::Registry;
use engine::Engine;

/// Answers requests.
pub struct Api {
    pub(super) engine: Arc<Engine>,
    pub(super) registry: Arc<Registry>,
    pub(super) toolboxes: Arc<dyn Toolboxes>,
    pub(super) outbox: Arc<dyn Outbox>,
    pub(super) settings: Settings,
    pub(super) content: Store,
    pub(super) list_cache: ListCache,
    pub(super) open_pages: OpenPages,
    pub(super) ready: AtomicBool,
    pub(super) all_loaded: watch::Sender<bool>,
    /// The number of requests of every topic since the start.
    pub(super) requests: AtomicU64,
    pub(super) call_ids: AtomicU64,
}

impl Api {
    /// Creates the API. It reports that it is not ready until [`Self::set_ready`].
    #[must_use]
    pub fn new(
        engine: Arc<Engine>,
        registry: Arc<Registry>,
        toolboxes: Arc<dyn Toolboxes>,
        outbox: Arc<dyn Outbox>,
        settings: Settings,
    ) -> Self {
        Self {
            engine,
            registry,
            toolboxes,
            outbox,
            content: Store::new(settings.content_dir.clone()),
            open_pages: OpenPages::new(settings.max_answer_bytes),
            settings,
            list_cache: ListCache::default(),
            ready: AtomicBool::new(false),
            all_loaded: watch::Sender::new(false),
            requests: AtomicU64::new(0),
            call_ids: AtomicU64::new(0),
        }
    }

    /// Sets the answer to `is_ready`.
    pub fn set_ready(&self, ready: bool) {
        self.ready.store(ready, Ordering::Relaxed);
    }

    /// Declares that every toolbox is loaded or has failed. From now on a tool that is missing is unknown.
    pub fn set_all_loaded(&self) {
        self.all_loaded.send_replace(true);
    }

    /// Resolves when every toolbox is loaded or has failed.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn all_loaded(&self) {
        // The sender is part of `self`, so this ends with a value.
        _ = self.all_loaded.subscribe().wait_for(|loaded| *loaded).await;
    }
}
