//! The configuration of the running service: the one in force, and the newest one read since.

use std::sync::Arc;

use ovos_toolbox_wire::Object;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::last_good;
use bus::Message;
use config::{Config, Overrides, Patch, ProcessEnvironment};
use logs::Logs;

/// Holds the configuration in force and the newest one.
pub(super) struct Configuration {
    /// The configuration in force for the service since its start.
    applied: Arc<Config>,
    overrides: Overrides,
    logs: Option<Logs>,
    state: Mutex<State>,
    /// How many changes of the files were reported.
    reported: watch::Sender<u64>,
    /// How many of these have been read.
    read: watch::Sender<u64>,
}

struct State {
    /// Why the files that were read last are not used, if they are wrong.
    refused: Option<String>,
    /// The newest valid configuration; toolboxes take their section from it when they are reloaded.
    newest: Arc<Config>,
    patch: Patch,
}

impl Configuration {
    pub(super) fn new(config: Arc<Config>, overrides: Overrides, logs: Option<Logs>) -> Self {
        let state = Mutex::new(State {
            refused: None,
            newest: config.clone(),
            patch: Patch::default(),
        });
        Self {
            applied: config,
            overrides,
            logs,
            state,
            reported: watch::Sender::new(0),
            read: watch::Sender::new(0),
        }
    }

    /// The configuration in force since the start.
    pub(super) fn applied(&self) -> &Arc<Config> {
        &self.applied
    }

    /// The newest valid configuration.
    pub(super) fn newest(&self) -> Arc<Config> {
        self.state.lock().newest.clone()
    }

    /// What is wrong with the files: those that were read last and are not used, and notices of the newest configuration.
    pub(super) fn problems(&self) -> Vec<String> {
        let state = self.state.lock();
        let notices = state.newest.notices.iter().map(ToString::to_string);
        state.refused.iter().cloned().chain(notices).collect()
    }

    /// Requests another read of the files. A request during a read causes one more read.
    pub(super) fn files_changed(&self) {
        self.reported.send_modify(|reported| *reported += 1);
    }

    /// Waits until the files have been read after the last reported change.
    pub(super) async fn until_read(&self) {
        let reported = *self.reported.borrow();
        // This fails only if the sender is dropped, but `self` owns it.
        _ = self.read.subscribe().wait_for(|read| *read >= reported).await;
    }

    /// Reads the files again after every reported change, on a thread that may block on a disk.
    pub(super) async fn follow(self: Arc<Self>) {
        let (mut reported, mut read) = (self.reported.subscribe(), 0);
        while let Ok(now) = reported
            .wait_for(|reported| *reported > read)
            .await
            .map(|now| *now)
        {
            let this = self.clone();
            if let Err(error) = tokio::task::spawn_blocking(move || this.read_again()).await {
                tracing::error!(%error, "bug in the service: the configuration was not read again");
            }
            read = now;
            self.read.send_replace(now);
        }
    }

    /// Reads the files again. An invalid configuration is logged and changes nothing.
    fn read_again(&self) {
        let before = self.newest();
        match Config::load(&ProcessEnvironment, &self.overrides, Some(&before)) {
            Ok(config) => {
                for notice in &config.notices {
                    tracing::warn!("{notice}");
                }
                let changes = before.changes(&config);
                last_good::keep(&config);
                {
                    let mut state = self.state.lock();
                    state.newest = config;
                    state.refused = None;
                }
                self.apply_level();
                // Logged last, because a reader of the log may ask for the status at once.
                if !changes.is_empty() {
                    tracing::info!(keys = ?changes.keys, toolboxes = ?changes.toolboxes, programs = ?changes.programs, "the configuration changed");
                }
            }
            Err(errors) => {
                tracing::error!(%errors, "the changed configuration is not used");
                let text = format!("the changed configuration is not used: {errors}");
                self.state.lock().refused = Some(text);
            }
        }
    }

    /// Applies the part of a `configuration.patch` that may take effect: the log level.
    pub(super) fn patch(&self, head: &Message, data: &Object) {
        let report = self.state.lock().patch.accept(data);
        let source = head.context.get("source").and_then(|source| source.as_str());
        if report.touches_us {
            tracing::warn!(
                source,
                "ignored a configuration.patch of the section of ovos-tools: edit the file instead"
            );
        }
        if report.touches_logging {
            self.apply_level();
        }
    }

    /// Forgets all patches: the level of the files applies again.
    pub(super) fn clear_patches(&self) {
        self.state.lock().patch = Patch::default();
        self.apply_level();
    }

    /// Returns the keys of the service whose new values take effect only after a restart.
    pub(super) fn pending(&self) -> Vec<String> {
        let of_service = self.applied.changes(&self.newest()).keys;
        of_service
            .into_iter()
            .filter(|key| !key.starts_with("logging"))
            .collect()
    }

    fn apply_level(&self) {
        let level = {
            let state = self.state.lock();
            state.patch.level(&state.newest)
        };
        if let Some(logs) = &self.logs
            && let Err(error) = logs.set_level(level)
        {
            tracing::error!(%error, "the log level was not changed");
        }
    }
}
