//! The trait that an author implements.
//!
//! Owns the trait and its plain arguments. An author states the type of the configuration and writes `manifest`, `open`, `tools` and
//! `halt`; the other methods have defaults. Read [`Toolbox`].

use std::collections::BTreeMap;
use std::time::Duration;

use ovos_toolbox_wire::{Manifest, Object};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{ActionHandler, Halt, Host, Tool, ToolError};

/// A toolbox: each instance drives one backend and owns its tools.
///
/// Two instances, or two generations, can be alive in one process: keep all state in the instance, never in statics.
pub trait Toolbox: Sized + Send + Sync + 'static {
    /// The toolbox's section in the configuration; its schema goes into the manifest. [`NoConfig`] if there is none.
    type Config: DeserializeOwned + JsonSchema + Send + 'static;

    /// The manifest, usually [`manifest!`](crate::manifest).
    fn manifest() -> Manifest;

    /// Threads, time limits and log level of an instance.
    #[must_use]
    fn options() -> Options {
        Options::default()
    }

    /// Makes an instance within 9 s (the host allows 10 s): connects to the backend and brings it to rest. Never arms,
    /// homes, enables torque or moves.
    ///
    /// # Errors
    /// The backend cannot be used; the error says why and what to do.
    ///
    /// # Cancel safety
    /// The future is dropped after 9 s.
    fn open(host: Host, config: Self::Config) -> impl Future<Output = Result<Self, ToolError>> + Send;

    /// The tools of this instance. Called after `open` and again after [`Host::tools_changed`].
    fn tools(&self) -> Vec<Tool<Self>>;

    /// The handlers of the actions of planned tools, by the action's name. Called together with [`Toolbox::tools`].
    #[must_use]
    fn actions(&self) -> Vec<ActionHandler<Self>> {
        Vec::new()
    }

    /// What a call would do, as a sentence by language (`en`, `de`), for the person who has to confirm it. It completes "Shall I
    /// ...?" and has the arguments with their units, because it is what a voice says: [`sentence::sentences`](crate::sentence::sentences)
    /// makes it from a table. Pure and fast: it is asked with each plan. Without one the service makes a sentence from the tool's name
    /// and its arguments.
    #[must_use]
    fn sentences(&self, tool: &str, args: &Object) -> BTreeMap<String, String> {
        let _ = (tool, args);
        BTreeMap::new()
    }

    /// Sends the command that ends motion and returns within 50 ms, without waiting for the machine to come to rest.
    /// Called on any thread. Before the call, the running motion actions of these subsystems have lost their right to
    /// command (see [`Context::command`](crate::Context::command)) and are being cancelled.
    ///
    /// A toolbox in which nothing moves uses [`no_motion!`](crate::no_motion) instead.
    ///
    /// # Errors
    /// The command could not be sent.
    fn halt(&self, halt: &Halt) -> Result<(), ToolError>;

    /// Whether the toolbox has a `halt`; false only with [`no_motion!`](crate::no_motion).
    #[doc(hidden)]
    const HALTS: bool = true;

    /// Called before the emergency stop is lifted. Never moves. Called on any thread.
    ///
    /// # Errors
    /// The emergency stop must not be lifted yet; the error says why, for example because the button is still pressed
    /// or the robot has fallen.
    fn resume(&self) -> Result<(), ToolError> {
        Ok(())
    }

    /// Handles a message on a topic of the manifest's `subscribes`; `data` is the message's data. Returns at once.
    fn message(&self, topic: &str, data: Value) {
        let _ = (topic, data);
    }

    /// Whether a reload may close this instance now.
    ///
    /// # Errors
    /// The instance must not be closed; the error gives the reason in a word or two, such as "recording".
    fn may_close(&self) -> Result<(), ToolError> {
        Ok(())
    }

    /// Brings the hardware to rest in a process without an instance. Blocks until the command is sent. No runtime is there: async code
    /// needs its own, as from `tokio::runtime::Builder::new_current_thread()`.
    ///
    /// # Errors
    /// The hardware could not be reached.
    fn safe_stop(config: Self::Config) -> Result<(), ToolError> {
        let _ = config;
        Ok(())
    }

    /// Disconnects from the backend within [`Options::close`], and joins every thread that the toolbox has started.
    /// Every run has ended or was dropped before; the instance is dropped afterwards.
    ///
    /// # Cancel safety
    /// The future is dropped after `Options::close`.
    fn close(&self) -> impl Future<Output = ()> + Send {
        async {}
    }
}

/// A configuration without keys; unknown keys are ignored.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub struct NoConfig {}

/// Options of an instance.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Threads of the instance's tokio runtime, at least 1. Default 2.
    pub workers: usize,
    /// Time for a tool that watches [`Context::cancelled`](crate::Context::cancelled) to clean up. Default 500 ms.
    pub cancel_grace: Duration,
    /// The most verbose level that is sent to the host's log. Default debug.
    pub log_level: tracing::Level,
    /// Time limit of [`Toolbox::close`], at most 8 s: the host allows 10 s in total. Default 4 s.
    pub close: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            workers: 2,
            cancel_grace: Duration::from_millis(500),
            log_level: tracing::Level::DEBUG,
            close: Duration::from_secs(4),
        }
    }
}
