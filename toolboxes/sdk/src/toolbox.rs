//! What an author implements.
//!
//! Owns the trait and its plain arguments. Every method has a default except those that make a toolbox (manifest, open,
//! tools and the type of the configuration) and `halt`. Read [`Toolbox`].

use std::time::Duration;

use ovos_toolbox_wire::Manifest;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{ActionHandler, Host, Tool, ToolError};

/// A toolbox: one instance of it drives one backend and owns its tools.
///
/// Two instances, or two generations, can be alive in one process: keep all state in the instance, none in statics.
pub trait Toolbox: Sized + Send + Sync + 'static {
    /// The toolbox's section in the configuration; its schema goes into the manifest. [`NoConfig`] when there is none.
    type Config: DeserializeOwned + JsonSchema + Send + 'static;

    /// What the toolbox says about itself: usually [`manifest!`](crate::manifest).
    fn manifest() -> Manifest;

    /// Threads, grace and log level of an instance.
    #[must_use]
    fn options() -> Options {
        Options::default()
    }

    /// Makes an instance, within 9 s (the host allows 10): connects to the backend and brings it to rest. Never arms, homes, enables
    /// torque or moves.
    ///
    /// # Errors
    /// The backend cannot be used, with the reason and what to do.
    ///
    /// # Cancel safety
    /// The future is dropped when the 9 s are over.
    fn open(host: Host, config: Self::Config) -> impl Future<Output = Result<Self, ToolError>> + Send;

    /// The tools of this instance. Asked after `open` and again after [`Host::tools_changed`].
    fn tools(&self) -> Vec<Tool<Self>>;

    /// What runs the actions of planned tools, by the action's name. Asked together with [`Toolbox::tools`].
    #[must_use]
    fn actions(&self) -> Vec<ActionHandler<Self>> {
        Vec::new()
    }

    /// Sends the command that ends motion and returns within 50 ms; coming to rest is the machine's. Called on any
    /// thread. When it is called, the running motion actions of these subsystems have lost their right to command
    /// (see [`Context::command`](crate::Context::command)) and are being cancelled.
    ///
    /// A toolbox in which nothing moves has [`no_motion!`](crate::no_motion) instead.
    ///
    /// # Errors
    /// The command could not be sent.
    fn halt(&self, halt: &Halt) -> Result<(), ToolError>;

    /// Whether there is a `halt`; false only through [`no_motion!`](crate::no_motion).
    #[doc(hidden)]
    const HALTS: bool = true;

    /// The emergency stop is about to be lifted. Never moves. Called on any thread.
    ///
    /// # Errors
    /// It must not be lifted yet, with the reason: the button is still pressed, the robot has fallen.
    fn resume(&self) -> Result<(), ToolError> {
        Ok(())
    }

    /// A message on a topic of the manifest's `subscribes`. `data` is the message's data. Returns at once.
    fn message(&self, topic: &str, data: Value) {
        let _ = (topic, data);
    }

    /// Whether a reload may close this instance now.
    ///
    /// # Errors
    /// It must not, with the reason in a word or two: "recording".
    fn may_close(&self) -> Result<(), ToolError> {
        Ok(())
    }

    /// Brings the hardware to rest from nothing, in a process that has no instance. Blocks until the command is sent.
    /// For async code: `tokio::runtime::Builder::new_current_thread()`.
    ///
    /// # Errors
    /// The hardware could not be reached.
    fn safe_stop(config: Self::Config) -> Result<(), ToolError> {
        let _ = config;
        Ok(())
    }

    /// Says goodbye to the backend, within [`Options::close`]. Every run has ended or was dropped; the instance is dropped afterwards.
    /// Joins every thread the toolbox itself has started.
    ///
    /// # Cancel safety
    /// The future is dropped when that time is over.
    fn close(&self) -> impl Future<Output = ()> + Send {
        async {}
    }
}

/// A configuration without keys. Unknown ones are ignored.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub struct NoConfig {}

/// How an instance is run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Threads of the instance's tokio runtime, at least 1. Default 2.
    pub workers: usize,
    /// How long a tool that watches [`Context::cancelled`](crate::Context::cancelled) may clean up. Default 500 ms.
    pub cancel_grace: Duration,
    /// The most talkative level that reaches the host's log. Default debug.
    pub log_level: tracing::Level,
    /// How long [`Toolbox::close`] may take, at most 8 s: the host allows 10 s for all of it. Default 4 s.
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

/// Which motion to end.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Halt {
    /// `["all"]` for everything.
    pub subsystems: Vec<String>,
    /// True: do what the configuration says for an emergency. False: hold position with power.
    pub emergency: bool,
}

impl Halt {
    pub(crate) fn new(subsystems: Vec<String>, emergency: bool) -> Self {
        Self {
            subsystems,
            emergency,
        }
    }

    /// Whether it ends the motion of `subsystem`: it is named, or covered by `all` or `<unit>/all`.
    #[must_use]
    pub fn includes(&self, subsystem: &str) -> bool {
        self.subsystems.iter().any(|halted| overlap(halted, subsystem))
    }
}

/// Whether two subsystems share something: equal, or one is the `all` of the other.
fn overlap(a: &str, b: &str) -> bool {
    let covers = |all: &str, one: &str| {
        all == "all"
            || all
                .strip_suffix("/all")
                .is_some_and(|unit| one.strip_prefix(unit).is_some_and(|rest| rest.starts_with('/')))
    };
    a == b || covers(a, b) || covers(b, a)
}

#[cfg(test)]
mod tests {
    use super::overlap;

    #[test]
    fn subsystems_overlap_by_name_unit_and_all() {
        for (a, b, expected) in [
            ("left_arm", "left_arm", true),
            ("left_arm", "right_arm", false),
            ("all", "left_arm", true),
            ("all", "two/flight", true),
            ("two/all", "two/flight", true),
            ("two/all", "twofold/flight", false),
            ("two/all", "one/flight", false),
            ("two/flight", "all", true),
        ] {
            assert_eq!(overlap(a, b), expected, "{a} and {b}");
            assert_eq!(overlap(b, a), expected, "{b} and {a}");
        }
    }
}
