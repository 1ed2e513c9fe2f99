//! A base's velocity, of the type that the graph has: `Twist` or `TwistStamped`.
//!
//! The one place of this crate that moves something. What is said holds for as long as the base keeps it: who says a velocity
//! repeats it and ends it. Read [`Velocity`].

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::definition::{Kind, TypeName};
use crate::error::GraphError;
use crate::graph::{Graph, Publisher};

/// How a base is commanded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VelocityConfig {
    /// The topic: `/cmd_vel`.
    pub topic: String,
    /// The frame of stamped velocities.
    pub frame: String,
    /// Whether velocities are stamped, for a topic that others hear in both types; otherwise the graph says it.
    pub stamped: Option<bool>,
}

impl VelocityConfig {
    /// The types that may be spoken, the usual one first.
    fn kinds(&self) -> Vec<TypeName> {
        let may = |of: &TypeName| self.stamped.is_none_or(|stamped| stamped == is_stamped(of));
        kinds().into_iter().filter(may).collect()
    }
}

impl Default for VelocityConfig {
    fn default() -> Self {
        Self {
            topic: "/cmd_vel".to_owned(),
            frame: "base_link".to_owned(),
            stamped: None,
        }
    }
}

/// A velocity in the frame of the base.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Speed {
    /// Forward, in metres per second.
    pub forward: f64,
    /// To the left, in metres per second.
    pub left: f64,
    /// Counter-clockwise, in radians per second.
    pub turn: f64,
}

/// How often zero is said to a base whose commander is gone.
const SHOUTS: u32 = 10;
/// The pause between two looks at the graph.
const LOOK: Duration = Duration::from_millis(10);

/// Says velocities to a base.
pub struct Velocity {
    publisher: Arc<dyn Publisher>,
    stamped: bool,
    frame: String,
}

impl Velocity {
    /// Opens the channel in the type under which the graph hears it: `Twist` where it hears both.
    ///
    /// # Errors
    /// Nothing listens within `patience`, or it listens to another type.
    ///
    /// # Cancel safety
    /// Safe: nothing is commanded.
    pub async fn open(
        graph: &dyn Graph,
        config: VelocityConfig,
        patience: Duration,
    ) -> Result<Self, GraphError> {
        let end = Instant::now() + patience;
        let left = || end.saturating_duration_since(Instant::now());
        let found = loop {
            match heard_as(graph, &config.topic).await? {
                Some(found) => break found,
                None if left().is_zero() => {
                    return Err(GraphError::Unheard { topic: config.topic });
                }
                None => tokio::time::sleep(LOOK).await,
            }
        };
        let mut failure = None;
        for of in config.kinds().iter().filter(|of| found.contains(of)) {
            // Another one that publishes may have a type that nothing hears.
            let publisher = match graph.publisher(&config.topic, of).await {
                Ok(publisher) => publisher,
                Err(error) => {
                    failure = Some(error);
                    continue;
                }
            };
            match publisher.ready(left()).await {
                Ok(()) => return Ok(Self::over(publisher, of, &config)),
                Err(error) => failure = Some(error),
            }
        }
        Err(failure.unwrap_or_else(|| other(&config, &found)))
    }

    /// Says zero in every type that the topic is heard in, from its first listener on until one has surely heard it: for a
    /// base whose commander is gone.
    ///
    /// # Errors
    /// Nothing listens within `patience`, or it listens to another type.
    ///
    /// # Cancel safety
    /// Safe: nothing but zeros is sent.
    pub async fn shout_zero(
        graph: &dyn Graph,
        config: &VelocityConfig,
        patience: Duration,
    ) -> Result<(), GraphError> {
        let end = Instant::now() + patience;
        let mut channels: Vec<(TypeName, Self)> = Vec::new();
        let mut shouts = 0;
        let mut found = Vec::new();
        while shouts < SHOUTS {
            if Instant::now() >= end {
                // A carrier that does not tell who listens shows the right type all the same.
                let fits = config.kinds().iter().any(|of| found.contains(of));
                return Err(match found.is_empty() || fits {
                    true => GraphError::Unheard {
                        topic: config.topic.clone(),
                    },
                    false => other(config, &found),
                });
            }
            found = heard_as(graph, &config.topic).await?.unwrap_or_default();
            for of in config.kinds().iter().filter(|of| found.contains(of)) {
                if !channels.iter().any(|(there, _)| there == of)
                    && let Ok(publisher) = graph.publisher(&config.topic, of).await
                {
                    channels.push((of.clone(), Self::over(publisher, of, config)));
                }
            }
            let mut has_heard = false;
            for (_, channel) in &channels {
                // What is sent before the listener knows us may be lost or not: that costs nothing and may win time.
                let sent = channel.say(Speed::default()).is_ok();
                has_heard |= sent && channel.check_listener().is_ok();
            }
            shouts += u32::from(has_heard);
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    }

    fn over(publisher: Arc<dyn Publisher>, of: &TypeName, config: &VelocityConfig) -> Self {
        Self {
            publisher,
            stamped: is_stamped(of),
            frame: config.frame.clone(),
        }
    }

    /// Whether velocities are stamped.
    #[must_use]
    pub fn is_stamped(&self) -> bool {
        self.stamped
    }

    /// Whether what is said now is heard.
    ///
    /// # Errors
    /// Nothing listens, or it listens to another type.
    pub fn check_listener(&self) -> Result<(), GraphError> {
        self.publisher.check_listener()
    }

    /// Says a velocity now, before it returns.
    ///
    /// # Errors
    /// It is not known to be heard: nothing listens, it listens to another type, or the base is lost.
    pub fn say(&self, speed: Speed) -> Result<(), GraphError> {
        let twist = json!({
            "linear": {"x": speed.forward, "y": speed.left, "z": 0.0}, "angular": {"x": 0.0, "y": 0.0, "z": speed.turn}
        });
        let message = match self.stamped {
            false => twist,
            true => json!({"header": {"stamp": now(), "frame_id": self.frame}, "twist": twist}),
        };
        self.publisher.publish(&message)
    }
}

fn kinds() -> [TypeName; 2] {
    ["Twist", "TwistStamped"].map(|name| TypeName::new("geometry_msgs", Kind::Message, name))
}

fn is_stamped(of: &TypeName) -> bool {
    of.name == "TwistStamped"
}

/// The types under which the graph hears a topic; `None` where nothing listens.
async fn heard_as(graph: &dyn Graph, topic: &str) -> Result<Option<Vec<TypeName>>, GraphError> {
    let topics = graph.entities().await?.topics;
    let found = topics.into_iter().find(|found| found.name == topic);
    let listened = found.filter(|topic| topic.sinks != Some(0));
    // A carrier may write the type as ROS 1 does.
    Ok(listened.map(|topic| topic.types.iter().filter_map(|of| of.parse().ok()).collect()))
}

fn other(config: &VelocityConfig, found: &[TypeName]) -> GraphError {
    let expected: Vec<String> = config.kinds().iter().map(ToString::to_string).collect();
    GraphError::OtherType {
        name: config.topic.clone(),
        expected: expected.join(" or "),
        found: found.iter().map(ToString::to_string).collect(),
    }
}

fn now() -> Value {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    json!({"sec": since.as_secs(), "nanosec": since.subsec_nanos()})
}
