//! What the tools and an adapter say to each other: the trait, its outputs and its notices.
//!
//! Read [`Adapter`].

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use ovos_toolbox_sdk::wire::Object;
use serde_json::{Value, json};

use super::control::Control;
use crate::action::Action;
use crate::capability::Capabilities;
use crate::error::ActionError;
use crate::spot::Fix;
use crate::subsystem::Subsystem;

/// Drives one machine. Every method may be called on any thread.
///
/// A [`Driver`](crate::driver::Driver) makes it: the channels of a robot's file.
pub trait Adapter: Send + Sync {
    /// The robot's parts and limits, which never change.
    fn capabilities(&self) -> &Capabilities;

    /// Connects and brings the machine to rest. Never arms, homes, enables torque or moves. Returns within 8 s. An
    /// adapter whose machine is away keeps trying and reports the connection through [`Notify`]; until then its
    /// actions fail with [`ActionError::NotConnected`].
    ///
    /// # Errors
    /// The machine is not connected yet; the error says why.
    ///
    /// # Cancel safety
    /// The future may be dropped; [`Adapter::close`] is called all the same.
    fn connect(&self) -> BoxFuture<'_, Result<(), ActionError>>;

    /// Does one action and returns when it has ended, with the machine at rest.
    ///
    /// Every command goes through [`Control::command`]. At the latest 50 ms after [`Control::is_cancelled`] is true, the
    /// future returns [`ActionError::Cancelled`] or is dropped at an await. In both cases [`Adapter::halt`] is called,
    /// before or after that, so the future itself has nothing to undo.
    ///
    /// # Errors
    /// The action was not done, and nothing moves any more; the error says why.
    ///
    /// # Cancel safety
    /// The future may be dropped at any await.
    fn execute<'a>(
        &'a self,
        action: &'a Action,
        control: &'a Control,
    ) -> BoxFuture<'a, Result<ActionOutput, ActionError>>;

    /// The last known state of a subsystem, without a question to the machine. Has the keys `positions` (where there
    /// are joints) and `connected`, and `mode: "simulation"` where it is simulated.
    fn state(&self, subsystem: Subsystem) -> Value;

    /// Ends the motion of these subsystems: sends the command and returns within 50 ms, even while other work is
    /// under way. With `emergency` it does what the configuration's `estop` says and refuses motion until
    /// [`Adapter::reset`]; without, it holds position with power.
    ///
    /// # Errors
    /// The command could not be sent.
    fn halt(&self, subsystems: &[Subsystem], emergency: bool) -> Result<(), ActionError>;

    /// Allows motion to be commanded again. Never moves and never enables torque.
    ///
    /// # Errors
    /// Motion must not be commanded yet; the error says why: a button is pressed, the robot has fallen.
    fn reset(&self) -> Result<(), ActionError>;

    /// Ends threads and connections within 3 s. The caller has halted all motion.
    ///
    /// # Cancel safety
    /// The future may be dropped.
    fn close(&self) -> BoxFuture<'_, ()>;

    /// The next picture on a topic of the robot's graph.
    ///
    /// # Errors
    /// The robot is in no graph, nothing comes on the topic, or it is none of pictures.
    ///
    /// # Cancel safety
    /// The subscription ends with the future.
    fn picture<'a>(&'a self, topic: &'a str) -> BoxFuture<'a, Result<SeenMessage, ActionError>> {
        Box::pin(std::future::ready(Err(ActionError::NotSupported {
            robot: self.capabilities().model.clone(),
            what: format!("a picture on {topic}: it is in no graph of ROS"),
        })))
    }

    /// Where the base stands, as it was measured last, without a question to the machine; `None` while that is not known.
    /// For a robot with [`Services::position`](crate::capability::Services::position).
    fn fix(&self) -> Option<Fix> {
        None
    }

    /// The ranges of an arm's joints in degrees, where the machine itself keeps narrower ones than its file; `None` where it has none.
    ///
    /// # Errors
    /// They could not be read.
    ///
    /// # Cancel safety
    /// Only reads.
    fn ranges<'a>(
        &'a self,
        arm: Subsystem,
        control: &'a Control,
    ) -> BoxFuture<'a, Result<Option<Vec<[f64; 2]>>, ActionError>> {
        let _ = (arm, control);
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Where a person or a thing is; `None` if the robot cannot tell.
    fn locate(&self, what: &str) -> Option<Sighting> {
        let _ = what;
        None
    }

    /// Whether a hand holds something; `None` if that is not known.
    fn holds(&self, arm: Subsystem) -> Option<bool> {
        let _ = arm;
        None
    }

    /// Answers a recognition question that no handler on the bus has answered. Only the simulator's people can.
    fn recognise(&self, tool: &str, args: &Value) -> Option<Value> {
        let _ = (tool, args);
        None
    }
}

/// A message with a picture.
#[derive(Clone, Debug, PartialEq)]
pub struct SeenMessage {
    /// sensor_msgs/Image or CompressedImage.
    pub message: Value,
    /// How long ago it came.
    pub age: Duration,
}

/// Where something is, seen from the robot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sighting {
    /// Degrees from straight ahead, negative to the left.
    pub bearing: f64,
    /// Degrees, positive downwards.
    pub tilt: f64,
    /// Metres.
    pub distance: f64,
    /// Where it is in the frame of an arm's base, in metres, where that is known.
    pub at: Option<[f64; 3]>,
}

/// What an action returns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ActionOutput {
    /// For a person.
    pub message: String,
    /// For a program.
    pub data: Object,
    /// The parts that were missing: "no gripper: closed nothing".
    pub notes: Vec<String>,
    /// Another action of the same call did the work, and this one did nothing.
    pub along: bool,
    /// What a test or a question has found wrong: the action was done, and the call is no success.
    pub trouble: Option<String>,
}

impl ActionOutput {
    /// An output without data.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            ..Self::default()
        }
    }

    /// The output of an action whose part is moved by another action of the same call.
    #[must_use]
    pub fn along(message: impl Into<String>) -> Self {
        Self {
            along: true,
            ..Self::new(message)
        }
    }

    /// Adds a value to the data.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.data.insert(key.to_string(), value.into());
        self
    }

    /// What a test or a question has found wrong, if anything.
    #[must_use]
    pub fn trouble(mut self, trouble: Option<String>) -> Self {
        self.trouble = trouble;
        self
    }

    /// Says that a joint ends before the position that was asked for.
    #[must_use]
    pub fn ends_at(self, argument: &str, asked: f64, used: f64) -> Self {
        let tenth = |value: f64| (value * 10.0).round() / 10.0;
        let (asked, used) = (tenth(asked), tenth(used));
        self.with("clamped", json!({argument: {"asked": asked, "used": used}}))
            .note(format!("it went to {used} mm, its end"))
    }

    /// Adds a note about a part that was missing.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }
}

/// A change that the adapter noticed outside of an action.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Notice {
    /// The connection changed, and why.
    Backend {
        /// How the connection is now.
        state: BackendState,
        /// For a person.
        reason: String,
    },
    /// The machine has stopped itself: its button was pressed, it fell.
    Latched {
        /// For a person.
        reason: String,
    },
}

/// The state of the connection to a robot. A later variant needs more attention than an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BackendState {
    /// There is no machine.
    Simulated,
    /// The machine answers.
    Connected,
    /// The machine has not been reached yet.
    Connecting,
    /// The machine answers and cannot do everything.
    Degraded,
    /// The machine is away.
    Lost,
}

impl BackendState {
    /// The word in the service's notices.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Simulated => "simulated",
            Self::Connected => "connected",
            Self::Connecting => "connecting",
            Self::Degraded => "degraded",
            Self::Lost => "lost",
        }
    }
}

/// Where an adapter's notices go. Never blocks.
pub type Notify = Arc<dyn Fn(Notice) + Send + Sync>;
