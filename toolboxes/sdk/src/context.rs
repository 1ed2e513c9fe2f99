//! The context of a running action.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ovos_toolbox_wire::{CallIdentity, Content, ContentKind, Effect, Progress};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::run::Run;
use crate::{Host, ToolError};

/// The context of one run of one action. Clones belong to the same run.
pub struct Context<T> {
    toolbox: Arc<T>,
    inner: Arc<Inner>,
}

struct Inner {
    host: Host,
    run: Arc<Run>,
    call: CallIdentity,
    action: ActionInfo,
    inputs: HashMap<String, Box<RawValue>>,
    deadline: Option<Instant>,
    /// The number in the name of the next file that the run shows.
    shown: AtomicU64,
}

/// The identity of the action.
pub(crate) struct ActionInfo {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) subsystems: Vec<String>,
    pub(crate) effect: Effect,
}

impl<T> Clone for Context<T> {
    fn clone(&self) -> Self {
        Self {
            toolbox: Arc::clone(&self.toolbox),
            inner: Arc::clone(&self.inner),
        }
    }
}

impl<T> Context<T> {
    pub(crate) fn new(
        toolbox: Arc<T>,
        host: Host,
        run: Arc<Run>,
        call: CallIdentity,
        action: ActionInfo,
        inputs: HashMap<String, Box<RawValue>>,
    ) -> Self {
        let deadline = (call.deadline_ms > 0)
            .then(|| Instant::now().checked_add(Duration::from_millis(call.deadline_ms)))
            .flatten();
        Self {
            toolbox,
            inner: Arc::new(Inner {
                host,
                run,
                call,
                action,
                inputs,
                deadline,
                shown: AtomicU64::new(1),
            }),
        }
    }

    /// The instance that the action runs in.
    #[must_use]
    pub fn toolbox(&self) -> &T {
        &self.toolbox
    }

    /// The service.
    #[must_use]
    pub fn host(&self) -> &Host {
        &self.inner.host
    }

    /// Identifies the call on the bus and in the logs.
    #[must_use]
    pub fn call_id(&self) -> &str {
        &self.inner.call.call_id
    }

    /// The tool that was called.
    #[must_use]
    pub fn tool(&self) -> &str {
        &self.inner.call.tool
    }

    /// Session of the request, if it named one.
    #[must_use]
    pub fn session_id(&self) -> Option<&str> {
        self.inner.call.session_id.as_deref()
    }

    /// Language of the session, such as `en-US`.
    #[must_use]
    pub fn lang(&self) -> Option<&str> {
        self.inner.call.lang.as_deref()
    }

    /// `context.source` of the request.
    #[must_use]
    pub fn source(&self) -> Option<&str> {
        self.inner.call.source.as_deref()
    }

    /// The action's id, unique in its plan.
    #[must_use]
    pub fn action_id(&self) -> &str {
        &self.inner.action.id
    }

    /// The action's name.
    #[must_use]
    pub fn action(&self) -> &str {
        &self.inner.action.name
    }

    /// The subsystems that the action uses.
    #[must_use]
    pub fn subsystems(&self) -> &[String] {
        &self.inner.action.subsystems
    }

    /// The action's effect on the world.
    #[must_use]
    pub fn effect(&self) -> Effect {
        self.inner.action.effect
    }

    /// When the service ends the action; `None` without a time limit.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.inner.deadline
    }

    /// The output of a dependency, by its action id.
    ///
    /// # Errors
    /// There is no such dependency, or its output does not deserialize as `O`.
    pub fn input<O: DeserializeOwned>(&self, action_id: &str) -> Result<O, ToolError> {
        let Some(raw) = self.inner.inputs.get(action_id) else {
            return Err(ToolError::msg(format!(
                "the action {action_id} is not a dependency, or has no output"
            )));
        };
        serde_json::from_str(raw.get())
            .map_err(|error| ToolError::msg(format!("cannot deserialize the output of {action_id}: {error}")))
    }

    /// The ids of the dependencies that have an output, sorted.
    #[must_use]
    pub fn input_ids(&self) -> Vec<&str> {
        let mut ids: Vec<&str> = self.inner.inputs.keys().map(String::as_str).collect();
        ids.sort_unstable();
        ids
    }

    /// Reports progress: `fraction` from 0.0 to 1.0, `message` for people.
    pub fn progress(&self, fraction: f64, message: impl Into<String>) {
        self.report(&Progress {
            fraction: Some(fraction.clamp(0.0, 1.0)),
            message: Some(message.into()),
            data: None,
        });
    }

    /// Reports progress in any form. Does nothing after the action has ended.
    pub fn report(&self, progress: &Progress) {
        self.inner.run.progress(self.inner.host.gate(), progress);
    }

    /// Returns a picture or another medium beside the action's output: the bytes become a file in the content folder.
    /// The caller gets the file if the action completes; the service allows 8 items, with files of 8 MiB in total. Does
    /// nothing without a [content folder](Self::content_folder).
    ///
    /// # Errors
    /// The file cannot be written.
    ///
    /// # Cancel safety
    /// If the future is dropped, the file may have been written, but it is not returned.
    pub async fn show(&self, kind: ContentKind, mime_type: &str, bytes: Vec<u8>) -> Result<(), ToolError> {
        let Some(folder) = self.content_folder() else {
            return Ok(());
        };
        let name = format!(
            "{}-{}",
            self.inner.run.id,
            self.inner.shown.fetch_add(1, Ordering::Relaxed)
        );
        let path: PathBuf = folder.join(&name);
        tokio::task::spawn_blocking(move || std::fs::write(path, bytes)).await??;
        self.show_item(Content::file(kind, mime_type, name));
        Ok(())
    }

    /// Returns an item of content as it stands: a short text, a link, or a file that is in the content folder already.
    pub fn show_item(&self, content: Content) {
        self.inner.run.show(content);
    }

    /// The folder for files that this action returns as content; `None` if the caller asks for no content, or if the
    /// service gives this toolbox no folder, which the service then logs. The service removes files from it after a
    /// while.
    #[must_use]
    pub fn content_folder(&self) -> Option<&Path> {
        self.inner.call.content_dir.as_deref().map(Path::new)
    }

    /// Whether the service holds this toolbox in emergency stop. An action of a `safe` or `stop` tool that is started
    /// during the emergency stop must not move anything. If this process started after the stop,
    /// [`Toolbox::halt`](crate::Toolbox::halt) may not have been called in it.
    #[must_use]
    pub fn is_latched(&self) -> bool {
        self.inner.call.latched
    }

    /// Whether the caller is an operator: the service runs with `operator_tools`. A `safe` tool that takes a machine
    /// over from a person checks this first.
    #[must_use]
    pub fn is_operator(&self) -> bool {
        self.inner.call.operator
    }

    /// Whether the action was cancelled or halted.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.inner.run.token.is_cancelled()
    }

    /// Resolves when the action is cancelled or halted. An action that calls this is not dropped at once, but has
    /// [`Options::cancel_grace`](crate::Options::cancel_grace) to clean up and return.
    ///
    /// # Cancel safety
    /// Safe.
    pub fn cancelled(&self) -> impl Future<Output = ()> + Send + 'static {
        self.inner.run.watch_cancel();
        self.inner.run.token.clone().cancelled_owned()
    }

    /// Sends one command to a machine: runs `send`, which must be short and must not block, unless the action was
    /// cancelled or halted. [`Toolbox::halt`](crate::Toolbox::halt) is called after the last such closure has returned,
    /// and none runs after it, so that no command of this action follows the one that ends the motion.
    ///
    /// # Errors
    /// The action was cancelled or halted; nothing was sent.
    pub fn command<R>(&self, send: impl FnOnce() -> R) -> Result<R, ToolError> {
        self.inner.run.command(send)
    }

    /// Sends a request to a bus topic; see [`Host::request`].
    ///
    /// # Errors
    /// See [`Host::request`].
    ///
    /// # Cancel safety
    /// See [`Host::request`].
    pub async fn request(
        &self,
        topic: &str,
        data: impl Serialize,
        timeout: Duration,
    ) -> Result<Value, ToolError> {
        self.inner.host.request(topic, data, timeout).await
    }
}
