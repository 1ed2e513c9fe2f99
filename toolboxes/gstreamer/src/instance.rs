//! The running pipelines.
//!
//! Owns the table of instances, the ownership of devices and files, the list on disk, and the behaviour on stop and
//! close. Each instance has a process of its own, which plays it (`crate::worker`), and a thread here that keeps the process
//! (`keeper`): nothing here waits for an element, and a crash costs one pipeline. Read [`Instances`].

mod entry;
mod keeper;
mod launch;
mod process;
mod record;
mod recover;
mod status;
mod table;
mod view;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use ovos_toolbox_sdk::prelude::*;
use ovos_toolbox_sdk::tokio;
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use tokio::sync::oneshot;

use crate::config::{Config, Section};
use crate::holders::Holders;
use crate::order::{Changed, Command, Format};
use crate::report::{Drawing, Phase, Picture, RecordedFile};
use entry::Instance;
pub(crate) use launch::Ask;
use record::Store;
pub(crate) use status::{Status, Summary};
use table::Table;

/// The running pipelines.
pub(crate) struct Instances {
    table: Arc<Table>,
}

/// An instance whose call is still running. If stops end pipelines, it ends with its call unless [`StartedInstance::keep`] is
/// called.
pub(crate) struct StartedInstance {
    instance: Arc<Instance>,
    ends: bool,
}

impl StartedInstance {
    pub(crate) fn id(&self) -> String {
        self.instance.id()
    }

    /// Makes the instance end with its call, regardless of the configuration.
    #[must_use]
    pub(crate) fn bound(mut self) -> Self {
        self.ends = true;
        self
    }

    /// Lets the instance outlive its call, because the caller knows its id now.
    pub(crate) fn keep(mut self) {
        self.ends = false;
    }
}

impl Drop for StartedInstance {
    fn drop(&mut self) {
        if self.ends {
            self.instance.halt();
        }
    }
}

/// Time in which a pipeline is over after the time limit of its end of stream: its process is killed then.
const TO_NULL: Duration = Duration::from_secs(1);
/// Time limit of a command.
const COMMAND: Duration = Duration::from_secs(60);
/// Time limit of a query; after it the last known state is returned.
const REFRESH: Duration = Duration::from_millis(500);

impl Instances {
    /// Reads the list on disk and starts the pipelines that should run.
    ///
    /// # Errors
    /// The list cannot be written.
    ///
    /// # Cancel safety
    /// When dropped before its first await has returned, nothing is running.
    pub(crate) async fn open(host: Host, config: Arc<Config>, written: Section) -> Result<Self, ToolError> {
        let table = Arc::new(Table {
            store: Store::new(&config.state_dir)?,
            config,
            written,
            host,
            log: tracing::dispatcher::get_default(Clone::clone),
            state: Mutex::default(),
            closing: AtomicBool::new(false),
        });
        let own = Arc::clone(&table);
        tokio::task::spawn_blocking(move || own.recover()).await??;
        Ok(Self { table })
    }

    /// All running instances, in order of their start.
    pub(crate) fn summary(&self) -> Vec<Summary> {
        self.table.sweep();
        let live: Vec<Arc<Instance>> = self.table.lock().live.values().cloned().collect();
        live.iter().map(|instance| instance.summary()).collect()
    }

    /// The ended instances, newest last.
    pub(crate) fn over(&self) -> Vec<Summary> {
        self.table
            .lock()
            .over
            .iter()
            .map(|over| over.summary.clone())
            .collect()
    }

    /// Which instances hold which devices.
    pub(crate) fn holders(&self) -> Holders {
        let state = self.table.lock();
        let held = state.claims.iter().filter_map(|(claim, owner)| {
            let owner = state.live.get(owner)?;
            Some((claim.clone(), owner.id()))
        });
        Holders::new(held.collect(), state.live.len())
    }

    /// Starts a pipeline, which outlives the call.
    ///
    /// # Errors
    /// The pipeline is not allowed or invalid, or something it needs is in use.
    ///
    /// # Cancel safety
    /// When dropped, the instance may have been started; `summary` shows it. [`StartedInstance`] says when it ends then.
    pub(crate) async fn start(&self, ask: Ask) -> Result<StartedInstance, ToolError> {
        let table = Arc::clone(&self.table);
        let begin = move || {
            let ends = table.config.stop_ends_pipelines;
            table
                .begin(ask)
                .map(|instance| StartedInstance { instance, ends })
        };
        tokio::task::spawn_blocking(begin).await?
    }

    /// Waits at most this long until an instance plays or has ended, and returns its phase.
    ///
    /// # Cancel safety
    /// Safe.
    pub(crate) async fn wait_playing(&self, id: &str, at_most: Duration) -> Option<Phase> {
        let instance = self.find(id).ok()?;
        let mut phase = instance.phase.subscribe();
        let settled = phase.wait_for(|phase| *phase != Phase::Starting);
        let settled = tokio::time::timeout(at_most, settled).await;
        match settled {
            Ok(Ok(phase)) => Some(*phase),
            Ok(Err(_)) | Err(_) => Some(*instance.phase.borrow()),
        }
    }

    /// Waits at most this long until an instance is in a phase or has ended, and returns its phase.
    ///
    /// # Errors
    /// No instance has this id.
    ///
    /// # Cancel safety
    /// Safe.
    pub(crate) async fn wait_phase(
        &self,
        id: &str,
        wanted: Phase,
        at_most: Duration,
    ) -> Result<Phase, ToolError> {
        let instance = self.find(id)?;
        let mut phase = instance.phase.subscribe();
        let reached = phase.wait_for(|phase| *phase == wanted || phase.is_over());
        // After a timeout the present phase is returned.
        _ = tokio::time::timeout(at_most, reached).await.is_ok();
        let now = *instance.phase.borrow();
        Ok(now)
    }

    /// Ends an instance, with an end of stream first, so that its files are playable, unless `force`. Returns whether
    /// the stream was ended properly. An instance that has ended by itself is no longer restarted with the toolbox.
    ///
    /// # Errors
    /// No instance has this id.
    ///
    /// # Cancel safety
    /// When dropped, the stop continues.
    pub(crate) async fn stop(&self, id: &str, force: bool) -> Result<bool, ToolError> {
        let (table, over) = (Arc::clone(&self.table), id.to_owned());
        let struck = tokio::task::spawn_blocking(move || table.strike_off(&over)).await?;
        if let Some(over) = self.table.over(id) {
            return Ok(over.files_finished.unwrap_or(false));
        }
        if struck {
            return Ok(false);
        }
        let instance = self.find(id)?;
        let grace = if force {
            Duration::ZERO
        } else {
            self.table.config.eos_timeout
        };
        self.table.end(&instance, grace);
        if !wait_over(&instance, grace + TO_NULL).await {
            // Its thread has not come to kill it yet.
            instance.kill();
            wait_over(&instance, TO_NULL).await;
        }
        let table = Arc::clone(&self.table);
        // Joins its thread, which has finished.
        tokio::task::spawn_blocking(move || table.sweep()).await?;
        let finished = instance.lock().finished.unwrap_or(false);
        Ok(finished)
    }

    /// Pauses an instance.
    ///
    /// # Errors
    /// No instance has this id, or it cannot be paused.
    ///
    /// # Cancel safety
    /// When dropped, the change continues.
    pub(crate) async fn pause(&self, id: &str) -> Result<(), ToolError> {
        self.ask::<Value>(id, Command::Pause, COMMAND).await.map(drop)
    }

    /// Resumes an instance.
    ///
    /// # Errors
    /// No instance has this id, or it cannot be resumed.
    ///
    /// # Cancel safety
    /// When dropped, the change continues.
    pub(crate) async fn resume(&self, id: &str) -> Result<(), ToolError> {
        self.ask::<Value>(id, Command::Resume, COMMAND).await.map(drop)
    }

    /// Sets a property of an element of an instance.
    ///
    /// # Errors
    /// No element or property has this name, the value does not fit, or the policy forbids it.
    ///
    /// # Cancel safety
    /// When dropped, the change continues.
    pub(crate) async fn set(
        &self,
        id: &str,
        element: String,
        property: String,
        value: Value,
    ) -> Result<Changed, ToolError> {
        let command = Command::Set {
            element,
            property,
            value,
        };
        self.ask(id, command, COMMAND).await
    }

    /// The full status of an instance; the last known one if an element blocks it.
    ///
    /// # Errors
    /// No instance has this id.
    ///
    /// # Cancel safety
    /// Safe.
    pub(crate) async fn status(&self, id: &str) -> Result<Status, ToolError> {
        if let Some(over) = self.table.over(id) {
            return Ok(over);
        }
        let instance = self.find(id)?;
        let (reply, answer) = oneshot::channel();
        let is_late = |last: Instant| last.elapsed() >= 2 * REFRESH;
        let held_up = instance.lock().last_word.is_none_or(is_late);
        if !held_up && instance.ask(Command::Refresh, Some(reply)).is_ok() {
            // A blocked process answers late; the last known state is returned then.
            _ = tokio::time::timeout(REFRESH, answer).await;
        }
        Ok(instance.status())
    }

    /// Writes a picture of an instance's video to a new file.
    ///
    /// # Errors
    /// No instance or element has this name, it has no uncompressed video, or the file exists or cannot be written.
    ///
    /// # Cancel safety
    /// When dropped, the file may be written.
    pub(crate) async fn picture(
        &self,
        id: &str,
        element: Option<String>,
        format: Format,
        path: PathBuf,
    ) -> Result<Picture, ToolError> {
        let command = Command::Picture {
            element,
            format,
            path,
        };
        self.ask(id, command, COMMAND).await
    }

    /// Records what an instance encodes to a new file, while it plays on.
    ///
    /// # Errors
    /// No instance has this id, nothing is encoded in it, or the file is in use.
    ///
    /// # Cancel safety
    /// When dropped, the recording may have begun.
    pub(crate) async fn record(&self, id: &str, path: PathBuf) -> Result<(), ToolError> {
        let instance = self.find(id)?;
        self.table.claim_file(&instance, &path)?;
        let command = Command::Record { path: path.clone() };
        let answer = self.ask::<Value>(id, command, COMMAND).await.map(drop);
        if answer.is_err() {
            self.table.release_file(&instance, &path);
        }
        answer
    }

    /// Finishes the file of a recording; the only one if there is no path.
    ///
    /// # Errors
    /// No instance has this id, or it has no such recording.
    ///
    /// # Cancel safety
    /// When dropped, the file is finished all the same.
    pub(crate) async fn stop_recording(
        &self,
        id: &str,
        path: Option<PathBuf>,
    ) -> Result<RecordedFile, ToolError> {
        let instance = self.find(id)?;
        let file: RecordedFile = self.ask(id, Command::StopRecording { path }, COMMAND).await?;
        self.table.release_file(&instance, &file.path);
        Ok(file)
    }

    /// The graph of an instance, with what is negotiated and the properties that were set.
    ///
    /// # Errors
    /// No instance has this id, or it does not run.
    ///
    /// # Cancel safety
    /// Safe.
    pub(crate) async fn drawing(&self, id: &str, caps: bool, properties: bool) -> Result<Drawing, ToolError> {
        self.ask(id, Command::Draw { caps, properties }, COMMAND).await
    }

    /// Implements [`Toolbox::halt`]: ends instances at once, without an end of stream.
    pub(crate) fn halt(&self, _: &Halt) -> Result<(), ToolError> {
        if self.table.config.stop_ends_pipelines {
            for instance in self.table.lock().live.values() {
                instance.halt();
            }
        }
        Ok(())
    }

    /// Handles the user's "stop": ends every instance like `stop_pipeline`, if the configuration says so. Returns at
    /// once.
    pub(crate) fn user_stop(&self) {
        if self.table.config.stop_ends_pipelines {
            for instance in self.table.lock().live.values() {
                self.table.end(instance, self.table.config.eos_timeout);
            }
        }
    }

    /// Implements [`Toolbox::may_close`].
    pub(crate) fn may_close(&self) -> Result<(), ToolError> {
        let live: Vec<Arc<Instance>> = self.table.lock().live.values().cloned().collect();
        let recording: Vec<String> = live
            .iter()
            .filter(|instance| !instance.lock().writes.is_empty())
            .map(|instance| instance.id())
            .collect();
        if recording.is_empty() {
            return Ok(());
        }
        Err(ToolError::busy(format!("recording: {}", recording.join(", "))))
    }

    /// Implements [`Toolbox::close`]: ends every instance, with an end of stream first.
    ///
    /// # Cancel safety
    /// When dropped, the instances continue to end.
    pub(crate) async fn close(&self) {
        let table = Arc::clone(&self.table);
        table.closing.store(true, Ordering::SeqCst);
        let grace = table.config.eos_timeout.min(CLOSING_GRACE);
        let live: Vec<Arc<Instance>> = {
            let state = table.lock();
            for process in &state.making {
                process.kill();
            }
            state.live.values().cloned().collect()
        };
        let own = Arc::clone(&table);
        // Saved before any instance ends and leaves the list: if the process is killed meanwhile, the list shows a
        // close rather than a crash.
        _ = tokio::task::spawn_blocking(move || own.save_closed()).await;
        for instance in &live {
            table.end(instance, grace);
        }
        let until = Instant::now() + grace + CLOSING_TO_NULL;
        for instance in &live {
            let left = until.saturating_duration_since(Instant::now());
            if !wait_over(instance, left).await {
                instance.kill();
            }
        }
        _ = tokio::task::spawn_blocking(move || table.sweep()).await;
    }

    /// Sends a command and waits for its answer.
    async fn ask<T: DeserializeOwned>(
        &self,
        id: &str,
        command: Command,
        at_most: Duration,
    ) -> Result<T, ToolError> {
        let instance = self.find(id)?;
        let (reply, answer) = oneshot::channel();
        instance.ask(command, Some(reply))?;
        match tokio::time::timeout(at_most, answer).await {
            Ok(Ok(answer)) => Ok(serde_json::from_value(answer?)?),
            Ok(Err(_)) => Err(ToolError::new(
                "PipelineError",
                format!("{id} ended before it answered"),
            )),
            Err(_) => Err(ToolError::new(
                "TimeoutError",
                format!("{id} does not answer, because an element is blocked; `stop_pipeline` ends it"),
            )),
        }
    }

    /// Finds an instance by id or name.
    fn find(&self, id: &str) -> Result<Arc<Instance>, ToolError> {
        let state = self.table.lock();
        let found = state.live.values().find(|instance| instance.id() == id);
        let found = found.or_else(|| state.live.values().find(|instance| instance.name() == id));
        if let Some(found) = found {
            return Ok(Arc::clone(found));
        }
        if let Some(Status { summary: over, .. }) = state.over.iter().rfind(|over| over.summary.is(id)) {
            let reason = over.reason.clone().unwrap_or_default();
            let error = over
                .error
                .as_ref()
                .map(|error| format!(": {error}"))
                .unwrap_or_default();
            return Err(ToolError::bad_args(format!("{id} has ended ({reason}{error})")));
        }
        let ids: Vec<String> = state.live.values().map(|instance| instance.id()).collect();
        let ids = if ids.is_empty() {
            "none is running".to_owned()
        } else {
            format!("running: {}", ids.join(", "))
        };
        Err(ToolError::bad_args(format!("no pipeline {id}; {ids}")))
    }
}

/// Time limits of the end of stream and of the change to NULL at a close; together below [`Options::close`], which is
/// below the host's limit of ten seconds.
const CLOSING_GRACE: Duration = Duration::from_millis(6_500);
const CLOSING_TO_NULL: Duration = Duration::from_secs(2);

async fn wait_over(instance: &Instance, at_most: Duration) -> bool {
    let mut phase = instance.phase.subscribe();
    let over = phase.wait_for(|phase| phase.is_over());
    tokio::time::timeout(at_most, over)
        .await
        .is_ok_and(|over| over.is_ok())
}
