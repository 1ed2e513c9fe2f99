//! The pipelines that run.
//!
//! Owns the table of instances, who holds which device and file, the list on disk, and what happens on stops and closes.
//! Each instance has a thread of its own (`worker`); nothing here waits for an element. Read [`Instances`].

mod build;
mod change;
mod command;
mod entry;
mod life;
mod meters;
mod record;
mod recover;
mod status;
mod table;
mod trial;
mod view;
mod worker;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use ovos_toolbox_sdk::prelude::*;
use ovos_toolbox_sdk::tokio;
use tokio::sync::oneshot;

use crate::config::{Config, Restart};
use crate::policy::{Policy, Refusal, canonical_device};
use build::BuildError;
pub(crate) use change::Changed;
use change::names;
use command::{Command, Input};
use entry::Instance;
use record::Store;
pub(crate) use record::make_private;
pub(crate) use status::{Status, Summary};
use table::Table;
pub(crate) use view::{Phase, Said};

/// The running pipelines.
pub(crate) struct Instances {
    table: Arc<Table>,
}

/// What `start_pipeline` is asked for.
pub(crate) struct Ask {
    pub(crate) pipeline: String,
    pub(crate) name: Option<String>,
    pub(crate) restart: Restart,
    pub(crate) autostart: bool,
}

/// An instance whose call is still under way. Where stops end pipelines it ends with its call, unless [`Begun::keep`] is
/// called.
pub(crate) struct Begun {
    instance: Arc<Instance>,
    ends: bool,
}

impl Begun {
    pub(crate) fn id(&self) -> String {
        self.instance.id()
    }

    /// It ends with its call, whatever the configuration says.
    #[must_use]
    pub(crate) fn bound(mut self) -> Self {
        self.ends = true;
        self
    }

    /// The caller knows it now.
    pub(crate) fn keep(mut self) {
        self.ends = false;
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        if self.ends {
            self.instance.halt();
        }
    }
}

/// Beyond the end of the stream: to NULL and out.
const TO_NULL: Duration = Duration::from_secs(5);
/// How long the answer to a question may take before the last known one is given.
const REFRESH: Duration = Duration::from_millis(500);

/// The error of a call for a refusal.
pub(crate) fn refused(refusal: Refusal) -> ToolError {
    let data = json!({"element": refusal.element, "property": refusal.property, "key": refusal.key});
    ToolError::new("PermissionError", &refusal).with_data(data)
}

impl From<BuildError> for ToolErrorOf {
    fn from(error: BuildError) -> Self {
        Self(match error {
            BuildError::Refused(refusal) => refused(refusal),
            BuildError::Parse(failure) => ToolError::new("PipelineError", failure),
            BuildError::InUse { .. } | BuildError::NotNow(_) => ToolError::busy(error),
        })
    }
}

/// A [`ToolError`], which takes every error with the kind `ToolError` otherwise.
struct ToolErrorOf(ToolError);

impl Instances {
    /// Reads the list on disk and starts what belongs to it.
    ///
    /// # Errors
    /// The list cannot be written.
    ///
    /// # Cancel safety
    /// Nothing runs when it is dropped before its first await has come back.
    pub(crate) async fn open(
        host: Host,
        config: Arc<Config>,
        policy: Arc<Policy>,
    ) -> Result<Self, ToolError> {
        let table = Arc::new(Table {
            store: Store::new(&config.state_dir)?,
            config,
            policy,
            host,
            log: tracing::dispatcher::get_default(Clone::clone),
            state: Mutex::default(),
            closing: AtomicBool::new(false),
        });
        let own = Arc::clone(&table);
        tokio::task::spawn_blocking(move || own.recover()).await??;
        Ok(Self { table })
    }

    /// All instances that are not over, in order of their start.
    pub(crate) fn summary(&self) -> Vec<Summary> {
        self.table.sweep();
        let live: Vec<Arc<Instance>> = self.table.lock().live.values().cloned().collect();
        live.iter().map(|instance| instance.summary()).collect()
    }

    /// Those that are over, the newest last.
    pub(crate) fn over(&self) -> Vec<Summary> {
        self.table
            .lock()
            .over
            .iter()
            .map(|over| over.summary.clone())
            .collect()
    }

    /// The instance that holds a device, such as `/dev/video0` or `hw:0,0`.
    pub(crate) fn owner_of(&self, device: &str) -> Option<String> {
        let name = canonical_device(device).ok()?;
        let state = self.table.lock();
        let owner = state
            .claims
            .get(&name)
            .or_else(|| state.claims.get(&format!("{name} (playback)")))?;
        Some(state.live.get(owner)?.id())
    }

    /// Starts a pipeline. It goes on after the call.
    ///
    /// # Errors
    /// It is not allowed, not a pipeline, or something it needs is in use.
    ///
    /// # Cancel safety
    /// When it is dropped the instance may have been started; `summary` says so. See [`Begun`] for when it is ended then.
    pub(crate) async fn start(&self, ask: Ask) -> Result<Begun, ToolError> {
        let table = Arc::clone(&self.table);
        let begin = move || {
            let ends = table.config.stop_ends_pipelines;
            table.begin(ask).map(|instance| Begun { instance, ends })
        };
        tokio::task::spawn_blocking(begin)
            .await?
            .map_err(|error| ToolErrorOf::from(error).0)
    }

    /// Waits until an instance plays or is over, at most this long, and gives its phase.
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

    /// Waits until an instance is in a phase or over, at most this long, and gives the phase it is in.
    ///
    /// # Errors
    /// There is none of this id.
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
        // Not in time is an answer, too: the phase it is in.
        _ = tokio::time::timeout(at_most, reached).await.is_ok();
        let now = *instance.phase.borrow();
        Ok(now)
    }

    /// Ends an instance: with an end of stream first, so that files can be played, unless `force`. Gives whether the
    /// stream was ended properly, also of one that has ended by itself, which does not come back with the toolbox any more.
    ///
    /// # Errors
    /// There is none of this id, or an element holds it up.
    ///
    /// # Cancel safety
    /// The stop goes on when it is dropped.
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
            return Err(ToolError::new(
                "TimeoutError",
                format!(
                    "{} does not stop: an element holds it up. It is left as it is; `ovos.tools.reload` with force ends \
                     the toolbox's process",
                    instance.id()
                ),
            ));
        }
        let table = Arc::clone(&self.table);
        // Joins its thread, which has said its last word.
        tokio::task::spawn_blocking(move || table.sweep()).await?;
        let finished = instance.lock().finished.unwrap_or(false);
        Ok(finished)
    }

    /// Holds an instance.
    ///
    /// # Errors
    /// There is none of this id, or it cannot be held.
    ///
    /// # Cancel safety
    /// The change goes on when it is dropped.
    pub(crate) async fn pause(&self, id: &str) -> Result<(), ToolError> {
        self.ask(id, Command::Pause).await?
    }

    /// Lets an instance go on.
    ///
    /// # Errors
    /// There is none of this id, or it cannot go on.
    ///
    /// # Cancel safety
    /// The change goes on when it is dropped.
    pub(crate) async fn resume(&self, id: &str) -> Result<(), ToolError> {
        self.ask(id, Command::Resume).await?
    }

    /// Sets a property of an element of an instance.
    ///
    /// # Errors
    /// There is none of this name, the value does not fit, or the policy forbids it.
    ///
    /// # Cancel safety
    /// The change goes on when it is dropped.
    pub(crate) async fn set(
        &self,
        id: &str,
        element: String,
        property: String,
        value: Value,
    ) -> Result<Changed, ToolError> {
        let command = |reply| Command::Set {
            element,
            property,
            value,
            reply,
        };
        self.ask(id, command).await?
    }

    /// Everything about an instance; one that is held up answers with what was known last.
    ///
    /// # Errors
    /// There is none of this id.
    ///
    /// # Cancel safety
    /// Safe.
    pub(crate) async fn status(&self, id: &str) -> Result<Status, ToolError> {
        if let Some(over) = self.table.over(id) {
            return Ok(over);
        }
        let instance = self.find(id)?;
        let (reply, answer) = oneshot::channel();
        let held_up = instance
            .lock()
            .busy_since
            .is_some_and(|since| since.elapsed() >= REFRESH);
        if !held_up
            && instance
                .inputs
                .try_send(Input::Command(Command::Refresh(reply)))
                .is_ok()
        {
            // A thread that hangs answers late; what is known is given instead.
            _ = tokio::time::timeout(REFRESH, answer).await;
        }
        Ok(instance.status())
    }

    /// The pipeline of an instance that runs, for a look at it.
    ///
    /// # Errors
    /// There is none of this id, or it does not run.
    pub(crate) fn pipeline(&self, id: &str) -> Result<gst::Pipeline, ToolError> {
        let instance = self.find(id)?;
        let pipeline = instance
            .pipeline
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        pipeline.ok_or_else(|| ToolError::busy(format!("{id} does not run just now")))
    }

    /// See [`Toolbox::halt`]: at once, without an end of stream.
    pub(crate) fn halt(&self, _: &Halt) -> Result<(), ToolError> {
        if self.table.config.stop_ends_pipelines {
            for instance in self.table.lock().live.values() {
                instance.halt();
            }
        }
        Ok(())
    }

    /// The user said "stop": ends every instance as a stop by tool does, where the configuration says so. Returns at once.
    pub(crate) fn user_stop(&self) {
        if self.table.config.stop_ends_pipelines {
            for instance in self.table.lock().live.values() {
                self.table.end(instance, self.table.config.eos_timeout);
            }
        }
    }

    /// See [`Toolbox::may_close`].
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

    /// See [`Toolbox::close`]: ends every instance, with an end of stream first.
    ///
    /// # Cancel safety
    /// The instances go on ending when it is dropped.
    pub(crate) async fn close(&self) {
        let table = Arc::clone(&self.table);
        table.closing.store(true, Ordering::SeqCst);
        let grace = table.config.eos_timeout.min(CLOSING_GRACE);
        let live: Vec<Arc<Instance>> = table.lock().live.values().cloned().collect();
        let own = Arc::clone(&table);
        // Before anything ends, and leaves the list: should the process be killed on the way, this was a close and no crash.
        _ = tokio::task::spawn_blocking(move || own.save_closed()).await;
        for instance in &live {
            table.end(instance, grace);
        }
        let until = Instant::now() + grace + CLOSING_TO_NULL;
        for instance in &live {
            let left = until.saturating_duration_since(Instant::now());
            if !wait_over(instance, left).await {
                tracing::warn!(
                    instance = instance.id(),
                    "an element holds it up: it is left behind"
                );
            }
        }
        _ = tokio::task::spawn_blocking(move || table.sweep()).await;
    }

    /// Sends a command that is answered.
    async fn ask<T>(
        &self,
        id: &str,
        command: impl FnOnce(oneshot::Sender<T>) -> Command,
    ) -> Result<T, ToolError> {
        let instance = self.find(id)?;
        let (reply, answer) = oneshot::channel();
        let sent = instance.inputs.try_send(Input::Command(command(reply)));
        if sent.is_err() {
            return Err(ToolError::busy(format!("{id} has too much to do, or is over")));
        }
        match tokio::time::timeout(self.table.config.eos_timeout + TO_NULL, answer).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(_)) => Err(ToolError::new("PipelineError", format!("{id} ended meanwhile"))),
            Err(_) => Err(ToolError::new(
                "TimeoutError",
                format!("{id} does not answer: an element holds it up"),
            )),
        }
    }

    /// By id, or by name.
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
            return Err(ToolError::bad_args(format!("{id} is over ({reason}{error})")));
        }
        let ids: Vec<String> = state.live.values().map(|instance| instance.id()).collect();
        let ids = if ids.is_empty() {
            "none runs".to_owned()
        } else {
            format!("there are {}", ids.join(", "))
        };
        Err(ToolError::bad_args(format!("no instance {id}: {ids}")))
    }

    /// The names of the elements of an instance.
    pub(crate) fn element_names(pipeline: &gst::Pipeline) -> Vec<String> {
        names(pipeline)
    }
}

/// For the end of the stream when the toolbox is closed; with what follows it is below [`Options::close`], and that below
/// the ten seconds after which a host gives a toolbox up.
const CLOSING_GRACE: Duration = Duration::from_millis(6_500);
const CLOSING_TO_NULL: Duration = Duration::from_secs(2);

async fn wait_over(instance: &Instance, at_most: Duration) -> bool {
    let mut phase = instance.phase.subscribe();
    let over = phase.wait_for(|phase| phase.is_over());
    tokio::time::timeout(at_most, over)
        .await
        .is_ok_and(|over| over.is_ok())
}
